"""What a statement asks of its rows, without the values: hashable, so that it is compiled once.

A `Filter` is a condition and, in the order in which its placeholders are written, the
values to bind. `statements.py` turns conditions into SQL.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from adapters.contract import StringMatch
from adapters.sql.columns import Column

Operator: TypeAlias = Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Compare:
    """`column operator ?`."""

    column: Column
    operator: Operator


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (?, …)`."""

    column: Column
    size: int


@dataclass(frozen=True, slots=True)
class NotIn:
    """`column NOT IN (?, …)`, which holds for no NULL."""

    column: Column
    size: int


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`."""

    column: Column


@dataclass(frozen=True, slots=True)
class NotNull:
    """`column IS NOT NULL`."""

    column: Column


@dataclass(frozen=True, slots=True)
class EndsInBlanks:
    """The text of `column` is another one to the database without its trailing blanks."""

    column: Column


@dataclass(frozen=True, slots=True)
class Matches:
    """The text of `column` starts, holds or is `?`; `folded` columns are searched as they are."""

    column: Column
    match: StringMatch
    folded: bool


@dataclass(frozen=True, slots=True)
class InOrReplaced:
    """`column` is one of the ids, or what replaced one of them.

    Each of the `size` ids is bound twice: as the column holds it, and as `rows.id` does,
    there with the values of `present`, which holds where there is a replacement.
    """

    column: Column
    size: int
    rows: str
    id: Column
    replaced_by: Column
    present: "Condition"


@dataclass(frozen=True, slots=True)
class InRows:
    """`column` is the `key` of a row of a second SELECT that meets `condition`."""

    column: Column
    rows: str
    key: Column
    condition: "Condition"


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; none is needed when there is none."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Any:
    """One of the parts holds; nothing matches when there is none."""

    parts: tuple["Condition", ...]


Condition: TypeAlias = (
    Compare
    | In
    | NotIn
    | IsNull
    | NotNull
    | EndsInBlanks
    | Matches
    | InOrReplaced
    | InRows
    | All
    | Any
)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition with its values."""

    condition: Condition
    values: tuple[object, ...] = ()


NEVER = Filter(Any(()))
ALWAYS = Filter(All(()))
"""The one filter that holds nowhere, and the one that holds everywhere: compare with `is`."""


def all_of(filters: Iterable[Filter]) -> Filter:
    """Return the filter that holds where all do."""
    return _joined(filters, All, ALWAYS, NEVER)


def any_of(filters: Iterable[Filter]) -> Filter:
    """Return the filter that holds where one does."""
    return _joined(filters, Any, NEVER, ALWAYS)


def _joined(
    filters: Iterable[Filter],
    join: type[All] | type[Any],
    of_none: Filter,
    decisive: Filter,
) -> Filter:
    parts = [part for part in filters if part is not of_none]
    if not parts:
        return of_none
    if len(parts) == 1:
        return parts[0]
    # By identity: equality looks into the parts of each, at every search.
    if any(part is decisive for part in parts):
        return decisive
    conditions = tuple([part.condition for part in parts])
    return Filter(join(conditions), tuple(chain(*[part.values for part in parts])))
