"""What databases say each in their own words, inside statements that are else the same."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sqlalchemy as sa

from adapters.sql.columns import Kind

Text: TypeAlias = sa.ColumnElement[str]
Made: TypeAlias = Callable[[sa.ColumnElement[Any]], sa.ColumnElement[Any]]
Select: TypeAlias = sa.Select[tuple[Any, ...]]


def _limit(statement: Select, rows: sa.BindParameter[int]) -> Select:
    return statement.limit(rows)


def _as_it_is(text: Text) -> Text:
    return text


@dataclass(frozen=True, slots=True)
class Idiom:
    """How one kind of database says it.

    `fold` makes of a text what `adapters.words.fold` makes of it, as far as a LIKE can
    tell. `exact` makes of a FOLDING text one that is compared character by character,
    `searched` one that a LIKE takes; `collated` gives a text another collation. `casts`
    are the types that a value needs before columns of a kind are compared with it. For
    columns of unlike kinds, `writes` are the texts that are shown of values, where a CAST
    makes others, and `reads` the values whose texts these are, NULL where a text is of
    none. `first` keeps the first rows of an ordered SELECT. `orders_nulls` says that
    an order names a column even where it is NULL in every row: only then does PostgreSQL
    see that an index has these rows in order, while MariaDB would sort them for it.
    """

    fold: Callable[[Text], Text]
    exact: Callable[[Text], Text] = _as_it_is
    searched: Callable[[Text], Text] = _as_it_is
    collated: Callable[[Text, str], Text] = sa.collate
    casts: Mapping[Kind, sa.types.TypeEngine[Any]] = field(default_factory=dict)
    writes: Mapping[Kind, Made] = field(default_factory=dict)
    reads: Mapping[Kind, Made] = field(default_factory=dict)
    first: Callable[[Select, sa.BindParameter[int]], Select] = _limit
    orders_nulls: bool = False


def read_back(type_: sa.types.TypeEngine[Any], exact: Callable[[Text], Text]) -> Made:
    """Return what reads a text by a CAST that never fails: what writes it again is meant."""

    def made(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # Exact first: MariaDB casts no UUID to a number.
        bare = sa.func.rtrim(exact(text))
        value = sa.cast(bare, type_)
        return sa.case((sa.cast(value, sa.Text) == bare, value))

    return made
