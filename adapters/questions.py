"""What is asked of a hospital system: a search in FHIR's terms."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias
from uuid import UUID


class ResourceType(StrEnum):
    """The resource types that an adapter can search and read."""

    ENCOUNTER = "Encounter"
    PATIENT = "Patient"
    ORGANIZATION = "Organization"


class Prefix(StrEnum):
    """How a date value compares (spec 4.1, note 2)."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    LT = "lt"
    GE = "ge"
    LE = "le"


class StringMatch(StrEnum):
    """How a text value compares; case and accents never count, but in EXACT."""

    STARTS_WITH = "starts-with"
    CONTAINS = "contains"
    EXACT = "exact"


class SortKey(StrEnum):
    """What results can be ordered by; the id is always the last key."""

    DATE = "date"
    LAST_UPDATED = "_lastUpdated"
    ID = "_id"


@dataclass(frozen=True, slots=True)
class Token:
    """A code or an identifier: `system` None is any, "" is none; `code` None is any."""

    system: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class DateValue:
    """The half-open interval [low, high) that a date text stands for; both aware."""

    prefix: Prefix
    low: datetime
    high: datetime


@dataclass(frozen=True, slots=True)
class TokenCriterion:
    """One of these tokens; codes (status, class, gender, unit) come without a system."""

    parameter: str
    values: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class DateCriterion:
    """One of these date comparisons."""

    parameter: str
    values: tuple[DateValue, ...]


@dataclass(frozen=True, slots=True)
class StringCriterion:
    """One of these texts, as the client wrote them."""

    parameter: str
    values: tuple[str, ...]
    match: StringMatch = StringMatch.STARTS_WITH


@dataclass(frozen=True, slots=True)
class ReferenceCriterion:
    """One of these ids of resources that this service itself serves."""

    parameter: str
    values: tuple[str, ...]


Criterion: TypeAlias = (
    TokenCriterion | DateCriterion | StringCriterion | ReferenceCriterion
)

Key: TypeAlias = str | int | float | Decimal | datetime | date | UUID | None


class Group(StrEnum):
    """Rows that have the sort key come first, the others after them (decision 12)."""

    KEYED = "keyed"
    UNKEYED = "unkeyed"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a row stands in its order, in the source's own full precision.

    `key` and `id` are what the source returned, not what was made of it, so that a
    walk can go on from a row that could not be mapped. Where several sources stand
    behind one door, `source` is the place of the row's own in their list, and `moment`
    the instant of the key, which is all that the others can be asked by.
    """

    group: Group
    key: Key
    id: Key
    moment: datetime | None = None
    source: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a source goes on that is one of several: beside an instant, at no row of its own.

    Without `moment` it is the seam between rows that have the sort key and the others.
    `included` says whether rows at the very instant are still to come.
    """

    moment: datetime | None = None
    included: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of results: by `key`, then by id in the same direction."""

    key: SortKey
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search in FHIR's terms: all criteria hold together.

    A criterion without values matches nothing. Every parameter named here is offered
    by the deployment; whether anything matches is the source's business. A page starts
    at the first row, or by at most one of these: `after` a position, `before` one
    (its rows are the last ones ahead of it), or `from_end` (the last rows of all).
    `placed` asks for the position of every row of the page, its instant included.
    """

    resource_type: ResourceType
    criteria: tuple[Criterion, ...]
    sort: Sort
    count: int
    after: Position | Bound | None = None
    before: Position | Bound | None = None
    from_end: bool = False
    placed: bool = False

    @property
    def backwards(self) -> bool:
        """Whether rows are sought against the order of the query."""
        return self.from_end or self.before is not None
