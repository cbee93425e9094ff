"""The interface between the web side and a hospital's system; neither side sees past it.

`app` builds a `SearchQuery` and presents records. An adapter translates the query, maps
the rows of its source to records, or raises an error that names what to do next:

    AdapterError
    ├── NotFoundError            no such resource
    ├── GoneError                the resource has been removed
    ├── SourceUnavailableError   the source does not answer: try again later
    │   ├── SourceTimedOutError  it exceeds its time limit
    │   └── SourceBusyError      every connection to it is in use
    ├── SourceDataError          the answer cannot be read: tell the integrator
    │   └── SourceChangedError   its parts contradict each other: try again
    ├── TooCostlyError           the search exceeds its time limit: narrow it
    └── NotAskableError          the source cannot run this search: change it

No error knows HTTP.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias
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
    """How a text value compares; only EXACT heeds case and accents.

    STARTS_WITH: each word starts a word of the values of the resource, in any order.
    """

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
    """A code or an identifier.

    `system` None means any system, "" a code without one; `code` None means any code.
    """

    system: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class DateValue:
    """How a date is compared with the half-open interval [low, high); both are aware."""

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

Key: TypeAlias = str | bytes | int | float | Decimal | datetime | date | UUID | None


class Group(StrEnum):
    """Rows that have the sort key come first, the others after them (decision 12)."""

    KEYED = "keyed"
    UNKEYED = "unkeyed"


@dataclass(frozen=True, slots=True)
class Position:
    """The cursor of a row: its sort key and id, as the source returned them.

    The values are not mapped, so that a page can start after an invalid row. With several
    sources, `source` is the index of the row's source, and `moment` the instant of the key,
    from which the other sources continue.
    """

    group: Group
    key: Key
    id: Key
    moment: datetime | None = None
    source: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """The cursor of a source where the last row of the page is from another source.

    It is an instant; `included` is whether the rows at this instant follow. Without
    `moment` it is between the rows that have the sort key and those without.
    """

    moment: datetime | None = None
    included: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of results: by `key`, then by id in the same direction."""

    key: SortKey
    descending: bool = False

    def __str__(self) -> str:
        """The key, behind a minus where the order is descending."""
        return f"-{self.key}" if self.descending else str(self.key)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search in FHIR's terms: a row matches if it meets all criteria.

    A criterion without values matches nothing. A page has the first rows, those `after` a
    cursor, the last ones `before` a cursor, or with `from_end` the last of all. `placed`
    requests the position of every row, with the instant of its sort key; only sources with
    `keyset` get it. `shared` holds what the sources of one search have found out and use
    together, None for a source alone.
    """

    resource_type: ResourceType
    criteria: tuple[Criterion, ...]
    sort: Sort
    count: int
    after: Position | Bound | None = None
    before: Position | Bound | None = None
    from_end: bool = False
    placed: bool = False
    shared: dict[Any, Any] | None = dataclasses.field(
        default=None, compare=False, repr=False
    )

    @property
    def backwards(self) -> bool:
        """Whether the page is read against the order of the query."""
        return self.from_end or self.before is not None


class IdentifierRecord(NamedTuple):
    """An identifier of a patient or an organization; `type` is its code (PI, INS-NIR)."""

    value: str
    system: str | None = None
    type: str | None = None
    use: str | None = None
    assigner_id: str | None = None


class NameRecord(NamedTuple):
    """A person's name; `use` is a FHIR name-use code."""

    use: str | None = None
    family: str | None = None
    given: tuple[str, ...] = ()
    prefix: str | None = None
    text: str | None = None


class TelecomRecord(NamedTuple):
    """A way to reach somebody; `system` is a FHIR contact-point-system code."""

    value: str
    system: str | None = None
    use: str | None = None


class AddressRecord(NamedTuple):
    """A postal address."""

    use: str | None = None
    lines: tuple[str, ...] = ()
    city: str | None = None
    postal_code: str | None = None
    country: str | None = None


class EncounterRecord(NamedTuple):
    """A stay, with FHIR's codes; times are aware, a missing value is None."""

    id: str
    status: str
    patient_id: str
    visit_number: str | None = None
    visit_number_system: str | None = None
    class_code: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    functional_unit: str | None = None
    ward: str | None = None
    organization_id: str | None = None
    last_updated: datetime | None = None


class PatientRecord(NamedTuple):
    """A patient's administrative data.

    A birth date without its day or month is FHIR's text (1950-06, 1950).
    """

    id: str
    active: bool | None = None
    identifiers: tuple[IdentifierRecord, ...] = ()
    names: tuple[NameRecord, ...] = ()
    telecoms: tuple[TelecomRecord, ...] = ()
    gender: str | None = None
    birth_date: date | str | None = None
    deceased: bool | None = None
    deceased_at: datetime | None = None
    addresses: tuple[AddressRecord, ...] = ()
    organization_id: str | None = None
    replaced_by: str | None = None
    last_updated: datetime | None = None


class OrganizationRecord(NamedTuple):
    """A healthcare structure."""

    id: str
    active: bool | None = None
    identifiers: tuple[IdentifierRecord, ...] = ()
    name: str | None = None
    telecoms: tuple[TelecomRecord, ...] = ()
    addresses: tuple[AddressRecord, ...] = ()
    part_of: str | None = None
    last_updated: datetime | None = None


Record: TypeAlias = EncounterRecord | PatientRecord | OrganizationRecord


@dataclass(frozen=True, slots=True)
class RowFault:
    """A row that could not be mapped: what to correct, never whose row it is (decision 16).

    `rule` may quote a code that is in no table, and no other value. `id` is that of the
    resource, "" if the row has none; it is for clients, never for the log.
    """

    field: str
    column: str
    rule: str
    id: str = dataclasses.field(default="", compare=False, repr=False)

    def described(self) -> dict[str, str]:
        """Return what the log may say."""
        return {"field": self.field, "column": self.column, "rule": self.rule}


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in the order of the query, faults in their place.

    `more` is whether rows follow the last one; in a backwards query, whether rows precede
    the first. `first` and `last` are the positions of the outer rows, None on an empty
    page; `last` is also None if the source has no further pages. `positions` are those of
    all rows, if the query has `placed`. `total` is the number of all matches, if
    the source returns it with the page. `incomplete` is whether the source's list ends here
    before its total (decision 41).
    """

    rows: tuple[Record | RowFault, ...]
    more: bool = False
    first: Position | None = None
    last: Position | None = None
    positions: tuple[Position, ...] = ()
    total: int | None = None
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page of a search with the source values (`cells`) that each of its rows comes from.

    `columns` are the names of the cells of a row.
    """

    page: Page
    columns: tuple[str, ...]
    cells: Sequence[Sequence[object]]


class AdapterError(Exception):
    """A hospital system could not answer. The text is for the log only.

    `source` is its name in the mapping, where there are several. `reason` is for the log
    too: the SQLSTATE and the column or table that a database reports, or a constant text.
    It never quotes a value of the source.
    """

    source: str = ""
    reason: str = ""


class NotFoundError(AdapterError):
    """There is no such resource."""


class GoneError(AdapterError):
    """The resource was there and has been removed."""


class SourceUnavailableError(AdapterError):
    """The source does not answer; a later attempt may succeed."""


class SourceTimedOutError(SourceUnavailableError):
    """The source took longer than its time limit."""


class SourceBusyError(SourceUnavailableError):
    """Every connection to the source is in use; the source itself may work."""


class SourceDataError(AdapterError):
    """The answer of the source cannot be read; `fault` names the row and column, if any.

    `refused` means that the source accepts none of this account's requests. `code` is the
    number of the error that the source returned, 0 without one.
    """

    def __init__(
        self,
        text: str,
        fault: RowFault | None = None,
        *,
        refused: bool = False,
        code: int = 0,
        reason: str = "",
    ) -> None:
        super().__init__(text)
        self.code = code
        self.reason = reason
        self.fault = fault
        self.refused = refused


class SourceChangedError(SourceDataError):
    """The answers to the requests of one page contradict each other, as when rows move."""


class TooCostlyError(AdapterError):
    """The search exceeds its time limit; a narrower search may not."""


class Limit(StrEnum):
    """Why a source cannot compare a value of a parameter that it offers."""

    ONE_VALUE = "accepts one value"
    MOST = "accepts fewer values at once"
    ONCE = "may occur once, with one value or several"
    DAY = "compares whole days"
    OTHER_DAYS = "compares whole days that begin at another time"
    MINUTE = "compares whole minutes"
    SECOND = "compares whole seconds"
    PREFIX = "cannot compare with this prefix"
    CODE = "has no name for this code"
    SYSTEM = "cannot be searched by this system"


class NotAskableError(AdapterError):
    """The source cannot compare this value of a parameter that it offers."""

    def __init__(
        self, text: str, parameter: str = "", limit: Limit | None = None
    ) -> None:
        super().__init__(text)
        self.parameter = parameter
        self.limit = limit


@dataclass(frozen=True, slots=True)
class ParameterCapability:
    """What one search parameter can do on this source.

    `finest` is set for a source that compares whole days, minutes or seconds. With
    `period`, dates are compared with the whole stay, from its start to its end. `most` is
    how many values one search may name, None without a limit. With `own_words` the source
    gets the whole text, and compares the starts of words by its own rules.
    """

    prefixes: frozenset[Prefix] = frozenset(Prefix)
    matches: frozenset[StringMatch] = frozenset({StringMatch.STARTS_WITH})
    finest: Limit | None = None
    period: bool = False
    most: int | None = None
    own_words: bool = False


@dataclass(frozen=True, slots=True)
class ResourceCapabilities:
    """What one resource type can do on this source; `parameters` by FHIR name.

    `keyset` is the promise of decision 12. `dated` means that `last_updated` changes with
    everything that the record shows (decision 19). `paging` means that results have next
    pages, `backwards` that they have previous ones. `order` describes, in words, the fixed
    order of a source that has no `sorts`. Without `listed` resources are only read by id.
    """

    parameters: Mapping[str, ParameterCapability] = field(default_factory=dict)
    sorts: tuple[SortKey, ...] = ()
    keyset: bool = False
    dated: bool = False
    paging: bool = True
    backwards: bool = True
    order: str = ""
    listed: bool = True


Capabilities: TypeAlias = Mapping[ResourceType, ResourceCapabilities]


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of the source or the mapping that a person has to correct.

    A `serious` problem keeps the service from being ready, and from starting unless it is
    an `outage`, which passes. `source` is the name of the source if there are several.
    """

    text: str
    serious: bool = True
    outage: bool = False
    source: str = ""


class Adapter(Protocol):
    """A hospital system whose resources can be searched and read; safe to share between threads."""

    @property
    def capabilities(self) -> Capabilities:
        """What each resource type that the source holds can do."""

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order: cursors stay valid while it is equal."""

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts.

        Raises NotAskableError, SourceUnavailableError, SourceDataError.
        """

    def count(self, query: SearchQuery) -> int:
        """Return the number of matches, including rows that cannot be mapped.

        Ignores position and page size. Raises TooCostlyError when the time limit for
        counts is reached, NotAskableError, SourceUnavailableError, SourceDataError.
        """

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource.

        Raises NotFoundError, GoneError, SourceUnavailableError, and SourceDataError with
        the fault of a row that cannot be mapped.
        """

    def explain(self, query: SearchQuery) -> str:
        """Return what would be sent to the source, values as placeholders."""

    def check(self) -> Iterable[Problem]:
        """Yield why the source does not answer or no longer fits the mapping."""

    def close(self) -> None:
        """Close the connections."""
