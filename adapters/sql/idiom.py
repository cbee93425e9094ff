"""What databases say each in their own words, inside statements that are else the same."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sqlalchemy as sa

from adapters.sql.columns import Kind

Text: TypeAlias = sa.ColumnElement[str]
Select: TypeAlias = sa.Select[tuple[Any, ...]]


def _limit(statement: Select, rows: sa.BindParameter[int]) -> Select:
    return statement.limit(rows)


def _as_it_is(text: Text) -> Text:
    return text


@dataclass(frozen=True, slots=True)
class Idiom:
    """How one kind of database says it.

    `fold` makes of a text what `adapters.words.fold` makes of it, as far as a LIKE can
    tell. `exact` makes of a FOLDING text one that is compared character by character.
    `casts` are the types that a value needs before columns of a kind are compared with
    it. `first` keeps the first rows of an ordered SELECT. `orders_nulls` says that
    an order names a column even where it is NULL in every row: only then does PostgreSQL
    see that an index has these rows in order, while MariaDB would sort them for it.
    """

    fold: Callable[[Text], Text]
    exact: Callable[[Text], Text] = _as_it_is
    casts: Mapping[Kind, sa.types.TypeEngine[Any]] = field(default_factory=dict)
    first: Callable[[Select, sa.BindParameter[int]], Select] = _limit
    orders_nulls: bool = False
