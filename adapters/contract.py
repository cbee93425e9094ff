"""The door between the web and the hospital: asking, answering, failing, in one place.

`app` builds a `SearchQuery` (`questions.py`) and presents records (`records.py`); an
adapter turns the query into the hospital's own and its rows into records, or raises an
error that says what to do next (`errors.py`). Neither side sees past this module.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from adapters.errors import (
    AdapterError,
    GoneError,
    Limit,
    NotAskableError,
    NotFoundError,
    SourceDataError,
    SourceUnavailableError,
    TooCostlyError,
)
from adapters.questions import (
    Bound,
    Criterion,
    DateCriterion,
    DateValue,
    Group,
    Key,
    Position,
    Prefix,
    ReferenceCriterion,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.records import (
    AddressRecord,
    EncounterRecord,
    IdentifierRecord,
    NameRecord,
    OrganizationRecord,
    Page,
    PatientRecord,
    Record,
    RowFault,
    TelecomRecord,
)

__all__ = [
    "Adapter",
    "AdapterError",
    "AddressRecord",
    "Bound",
    "Capabilities",
    "Criterion",
    "DateCriterion",
    "DateValue",
    "EncounterRecord",
    "GoneError",
    "Group",
    "IdentifierRecord",
    "Key",
    "Limit",
    "NameRecord",
    "NotAskableError",
    "NotFoundError",
    "OrganizationRecord",
    "Page",
    "ParameterCapability",
    "PatientRecord",
    "Position",
    "Prefix",
    "Problem",
    "Record",
    "ReferenceCriterion",
    "ResourceCapabilities",
    "ResourceType",
    "RowFault",
    "SearchQuery",
    "Sort",
    "SortKey",
    "SourceDataError",
    "SourceUnavailableError",
    "StringCriterion",
    "StringMatch",
    "TelecomRecord",
    "Token",
    "TokenCriterion",
    "TooCostlyError",
]


@dataclass(frozen=True, slots=True)
class ParameterCapability:
    """What one search parameter can do on this source.

    `finest` is the limit of a source that compares whole days, minutes or seconds; with
    `period` a date is compared with the whole of a stay, from its start to its end.
    """

    prefixes: frozenset[Prefix] = frozenset(Prefix)
    matches: frozenset[StringMatch] = frozenset({StringMatch.STARTS_WITH})
    finest: Limit | None = None
    period: bool = False


@dataclass(frozen=True, slots=True)
class ResourceCapabilities:
    """What one resource type can do on this source; `parameters` by FHIR name.

    `keyset` is the promise of decision 12. `dated` says that `last_updated` changes
    with everything that the record shows (decision 19). `paging` says that results have
    further pages, `backwards` that they have earlier ones too. A source that sorts by
    nothing has an `order` of its own, told in words.
    """

    parameters: Mapping[str, ParameterCapability] = field(default_factory=dict)
    sorts: tuple[SortKey, ...] = ()
    keyset: bool = False
    dated: bool = False
    paging: bool = True
    backwards: bool = True
    order: str = ""


Capabilities: TypeAlias = Mapping[ResourceType, ResourceCapabilities]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about the source or the mapping that a person has to mend.

    `serious` problems keep the service from being ready; those that are no `outage` last
    until somebody mends the mapping or the source, and keep it from starting. `source` is
    the name that the mapping gives to one of several sources.
    """

    text: str
    serious: bool = True
    outage: bool = False
    source: str = ""


class Adapter(Protocol):
    """A hospital system, seen as resources to search and read. Safe to share between threads."""

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked of each resource type that the source holds."""

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order: pages of one walk hold while it is equal."""

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts.

        Raises NotAskableError, SourceUnavailableError, SourceDataError.
        """

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match, rows that cannot be mapped included.

        Position and page size of the query do not count. Raises TooCostlyError when the
        time budget runs out, NotAskableError, SourceUnavailableError, SourceDataError.
        """

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource.

        Raises NotFoundError, GoneError, SourceUnavailableError, and SourceDataError with
        the fault when the row is there and cannot be mapped.
        """

    def explain(self, query: SearchQuery) -> str:
        """Return what would be sent to the source, values as placeholders."""

    def check(self) -> Iterable[Problem]:
        """Tell whether the source answers and still fits the mapping."""

    def close(self) -> None:
        """Give connections back."""
