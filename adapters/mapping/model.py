"""A mapping file as checked, typed values: what the rest of the adapters work from.

The loader (`load.py`) makes these; nothing here reads YAML. Column names are those of the
`rows` SELECT; slot names are the field names of the records in `contract.py`; `paths.py`
defines the paths into the answers of an HTTP source.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time
from enum import StrEnum
from pathlib import Path as PathlibPath
from typing import TypeAlias
from zoneinfo import ZoneInfo

from adapters.contract import Prefix, ResourceType, SortKey
from adapters.lifetime import LIFETIME_SECONDS
from adapters.mapping.binary import BinaryForm
from adapters.mapping.paths import Path, ValuePlace
from adapters.mapping.template import QueryPairs, Template, TextTemplate, ValueRule
from adapters.parameters import SEARCH_PARAMETERS

ReadFile: TypeAlias = Callable[[PathlibPath], bytes]
"""Returns what a file holds; raises OSError."""


Secret: TypeAlias = str
"""A text that the file may name by {env: NAME}; a mapping holds its value."""


def from_disk(path: PathlibPath) -> bytes:
    """Return what a file holds."""
    return path.read_bytes()


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a mapping file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Constants:
    """Values of the deployment that no row holds (spec 2.2 to 2.4).

    `class_systems` names another system for single class codes (decision 18).
    """

    visit_number_system: str | None = None
    identifier_type_system: str = (
        "http://www.interopsante.org/fhir/valueset/fr-encounter-identifier-type"
    )
    identifier_type_version: str = "3.0.1"
    identifier_type_display: str = "Visit Number"
    functional_unit_extension: str | None = None
    class_code_system: str = "http://hl7.org/fhir/v3/ActCode"
    class_systems: Mapping[str, str] = field(default_factory=dict)
    patient_identifier_type_system: str = (
        "http://interopsante.org/fhir/CodeSystem/fr-v2-0203"
    )
    organization_identifier_type_system: str = (
        "http://interopsante.org/fhir/CodeSystem/fr-v2-0203"
    )


class Twice(StrEnum):
    """Which instant a local time that happens twice is (the autumn clock change)."""

    FIRST = "first"
    SECOND = "second"
    REFUSE = "refuse"


class Never(StrEnum):
    """What a local time that never happens is (the spring clock change)."""

    REFUSE = "refuse"
    SHIFT = "shift"


@dataclass(frozen=True, slots=True)
class TimeRule:
    """How a source value becomes an instant.

    `zone` is the zone of values without an offset; `says_zone` is whether the field or its
    source names it, and not the file alone. Clients see the offset of the zone `written`.
    `format` is a strptime format for text or one of `times.EPOCHS`, None for ISO 8601 text
    and the database's own types. A year of two digits is one of the hundred years from
    `pivot` on. `at` is the time of day of a date without one.
    """

    zone: ZoneInfo
    written: ZoneInfo
    format: str | None = None
    at: time | None = None
    twice: Twice = Twice.FIRST
    never: Never = Never.REFUSE
    # It changes no value: search sessions continue if it changes.
    says_zone: bool = field(default=True, compare=False, repr=False)
    pivot: int | None = None


class Step(StrEnum):
    """The precision with which a source compares times."""

    DAY = "day"
    MINUTE = "minute"
    SECOND = "second"


class Method(StrEnum):
    """How a list is requested: parameters in the address, or as a form."""

    GET = "get"
    POST = "post"


class Nulls(StrEnum):
    """Where a source puts rows without the sort key; HIGH sorts them as the greatest key."""

    LAST = "last"
    FIRST = "first"
    HIGH = "high"
    LOW = "low"

    def come_first(self, *, descending: bool) -> bool:
        """Whether they come before the rows that have the key."""
        return self is Nulls.FIRST or self is (Nulls.HIGH if descending else Nulls.LOW)


class PagingKind(StrEnum):
    """How a source leads from one page to the next."""

    OFFSET = "offset"
    PAGE = "page"
    NEXT = "next"
    TOKEN = "token"  # noqa: S105 - a word of the format


@dataclass(frozen=True, slots=True)
class Basic:
    """A user and a password, sent with every request."""

    user: Secret
    password: Secret


@dataclass(frozen=True, slots=True)
class OAuth2:
    """Client credentials (RFC 6749, 4.4), exchanged for a token at `token_url`.

    Id and secret are sent as HTTP Basic, or in the form: `credentials` is "header" or "form".
    """

    token_url: Secret
    client_id: Secret
    client_secret: Secret
    scope: str | None = None
    audience: str | None = None
    credentials: str = "header"


@dataclass(frozen=True, slots=True)
class Login:
    """A session of the source's own; `format` writes `{token}` into `header`.

    It is opened with `body`, as JSON, or else with `form`.
    """

    path: str
    token: Path
    header: str
    body: Mapping[str, Secret] | None = None
    form: Mapping[str, Secret] = field(default_factory=dict)
    format: str = "{token}"


Auth: TypeAlias = Basic | OAuth2 | Login


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """How an error in an answer is recognised, and what it means.

    The value at `path` is the code of an error unless it is empty, false or one of `fine`.
    Codes in the other sets mean the error that each is named after.
    """

    path: Path
    fine: frozenset[str] = frozenset()
    not_found: frozenset[str] = frozenset()
    unavailable: frozenset[str] = frozenset()
    expired: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HttpSource:
    """How requests to an HTTP source are sent, and its answers read; secrets are resolved.

    `hosts` are other hosts that its links may lead to, `encoding` that of answers that
    are not UTF-8 and name none, `values` how it reads values in templates.
    """

    headers: Mapping[str, Secret] = field(default_factory=dict)
    auth: Auth | None = None
    error: ErrorRule | None = None
    hosts: frozenset[str] = frozenset()
    encoding: str = ""
    values: ValueRule = field(default_factory=ValueRule)


@dataclass(frozen=True, slots=True)
class ReadCall:
    """How one resource is requested; `row` is its place in the answer.

    `mark` is its place in the file; it is no part of the request.
    """

    path: TextTemplate
    row: Path = ()
    mark: Mark | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CountCall:
    """A separate call that returns how many rows match."""

    path: str
    total: ValuePlace


@dataclass(frozen=True, slots=True)
class Paging:
    """How further pages are requested.

    `query` is what is sent (of OFFSET, PAGE, TOKEN), `path` where the answer holds the
    link or token of the next page, `first` the number of the first page. `mark` is where
    the file says so; it is no part of the request.
    """

    kind: PagingKind
    query: Template | None = None
    path: ValuePlace = ()
    first: int = 1
    mark: Mark | None = field(default=None, compare=False, repr=False)

    @property
    def is_numbered(self) -> bool:
        """Whether a page is requested by a number, so that pages go both ways."""
        return self.kind in (PagingKind.OFFSET, PagingKind.PAGE)


@dataclass(frozen=True, slots=True)
class ListCall:
    """How rows are requested; `fixed` is sent with every request.

    `combine` is what stands between the texts of one parameter that several templates
    fill, by its name. `mark` is the place in the file.
    """

    path: str
    rows: Path
    count: Template
    method: Method = Method.GET
    total: ValuePlace | None = None
    counting: CountCall | None = None
    paging: Paging | None = None
    fixed: QueryPairs = ()
    combine: Mapping[str, str] = field(default_factory=dict)
    mark: Mark | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SearchCall:
    """How one search parameter is sent.

    Codes and ids have `query` and, for codes that are not to match, `excluding`;
    identifiers also `system`, for those with a system, and `codes`, the source's code of
    each system. Texts have a template for each way to compare, times one for each bound
    (ge, gt, le, lt). A request holds up to `most` values, with `separator` between them.
    `step` is the precision of the source, `zone` that of the bounds.
    """

    name: str
    query: Template | None = None
    separator: str = ""
    most: int = 100
    system: Template | None = None
    codes: Mapping[str, str] | None = None
    excluding: Template | None = None
    merged: bool = False
    contains: Template | None = None
    exact: Template | None = None
    bounds: Mapping[Prefix, Template] = field(default_factory=dict)
    step: Step = Step.SECOND
    zone: ZoneInfo | None = None

    @property
    def lower(self) -> Template | None:
        """What is sent for the lower bound."""
        return self.bounds.get(Prefix.GE) or self.bounds.get(Prefix.GT)

    @property
    def upper(self) -> Template | None:
        """What is sent for the upper bound."""
        return self.bounds.get(Prefix.LT) or self.bounds.get(Prefix.LE)


@dataclass(frozen=True, slots=True)
class SortCall:
    """What is sent for each sort key, a descending one with `-` before its name.

    `nulls` is where the source puts the rows without the key.
    """

    by: Mapping[str, QueryPairs]
    mark: Mark | None = field(compare=False, repr=False)
    nulls: Nulls = Nulls.LAST


@dataclass(frozen=True, slots=True)
class HttpSection:
    """How one resource type is read and searched."""

    read: ReadCall
    list: ListCall | None
    search: Mapping[str, SearchCall]
    sort: SortCall | None = None
    order: str = ""


HIDDEN = "hidden"
"""A status of the mapping: the row is never served (decision 17)."""

REMOVED = "removed"
"""A status of the mapping: the row was served once and is gone (decision 17)."""

TIMEOUT_SECONDS = 5.0
"""The time limit of a search or a read."""

COUNT_TIMEOUT_SECONDS = 2.0
"""The time limit of a count."""

CONNECTIONS = 8
"""The maximum number of connections to a source."""

WAIT_SECONDS = 1.0
"""How long a request waits for a free connection before it gets 503."""


@dataclass(frozen=True, slots=True)
class CodeTable:
    """Source codes and what they become; codes without an entry become `otherwise`."""

    name: str
    table: Mapping[str, str]
    otherwise: str | None = None
    mark: Mark | None = field(default=None, compare=False)

    def sources(self, target: str) -> tuple[str, ...]:
        """Return the source codes that become `target`, in the file's order."""
        return tuple(code for code, result in self.table.items() if result == target)


@dataclass(frozen=True, slots=True)
class ItemCondition:
    """A list item counts only where `column` holds one of `values`."""

    column: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Where one value comes from: columns, or a constant.

    `columns` has two entries only for a date and its time of day. `search_column` is
    what filters compare instead of `columns`, when the file names one. `absent` are
    texts that mean no value. `split` cuts one text into several. `prefix` stands
    before the source's own id, where several sources hold such resources; `strip` stands
    before it in the source itself (Patient/). `follows_merges`: rows of stays keep the
    ids of merged patients, and the service follows them (decision 9). `form` is how bytes
    are written, None for hexadecimal digits in an id and for a fault elsewhere.
    """

    slot: str
    mark: Mark
    columns: tuple[str, ...] = ()
    constant: str | None = None
    codes: CodeTable | None = None
    time: TimeRule | None = None
    absent: frozenset[str] = frozenset()
    search_column: str | None = None
    split: str | None = None
    covers_all: bool = False
    prefix: str = ""
    strip: str = ""
    follows_merges: bool = False
    form: BinaryForm | None = None

    def source_ids(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of this source in its own form; others and absent ones are left out."""
        length = len(self.prefix)
        unprefixed = [id[length:] for id in ids if id.startswith(self.prefix)]
        return tuple([self.strip + id for id in unprefixed if id not in self.absent])

    @property
    def filter_column(self) -> str | None:
        """The column that a filter compares, None for a constant."""
        if self.search_column:
            return self.search_column
        return self.columns[0] if self.columns else None


@dataclass(frozen=True, slots=True, eq=False)
class ItemMapping:
    """One item of a list slot (identifiers, names, telecoms, addresses), equal to no other.

    With `rows` and `key` the items come from a second SELECT: its columns are those
    that the fields name, and `key` is the one that holds the id of the resource's row.
    """

    slot: str
    mark: Mark
    fields: Mapping[str, FieldMapping] = field(hash=False)
    lines: tuple[FieldMapping, ...] = field(default=(), hash=False)
    only_if: ItemCondition | None = None
    rows: str | None = None
    key: str | None = None

    @property
    def all_fields(self) -> tuple[FieldMapping, ...]:
        """Its fields, the lines of an address last."""
        return (*self.fields.values(), *self.lines)


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """One section of the file: `encounter`, `patient` or `organization`.

    `fields` and `items` are by slot. `required` are the slots without which a row is a
    fault. `parameters` and `sorts` are what the section offers. `http` is used in place
    of `rows` where the source is an HTTP API.
    """

    resource_type: ResourceType
    mark: Mark
    rows: str
    fields: Mapping[str, FieldMapping]
    items: Mapping[str, tuple[ItemMapping, ...]] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    sorts: tuple[SortKey, ...] = ()
    required: frozenset[str] = frozenset()
    http: HttpSection | None = None

    @property
    def systems(self) -> Mapping[str, frozenset[str]]:
        """The systems of identifiers, by parameter, where the file names all of them."""
        systems_of_parameter = {}
        for row in SEARCH_PARAMETERS[self.resource_type].values():
            if not row.system_slot:
                continue
            list_name, _, slot = row.system_slot.rpartition(".")
            holders = self.items.get(list_name, ()) if list_name else (self,)
            systems = [_values_of(holder.fields.get(slot)) for holder in holders]
            if None not in systems:
                all_systems = frozenset().union(*filter(None, systems))
                systems_of_parameter[row.name] = all_systems
        return systems_of_parameter


def _values_of(field: FieldMapping | None) -> frozenset[str] | None:
    """Return the values that a field can have, "" for no value; None if any text is possible."""
    if field is None:
        return frozenset({""})
    if field.constant is not None:
        return frozenset({field.constant})
    if field.codes is None:
        return None
    return frozenset({*field.codes.table.values(), field.codes.otherwise or "", ""})


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """The address, time limits and connections of a hospital system; secrets are resolved.

    `zone` is that of `:now` and `:today` in its SELECTs. A connection is closed after
    `lifetime_seconds`. The tables of a database are in `schema`; `prepared` is whether
    statements are prepared, None for the default: unless there is a connection pooler.
    `options` are for a custom adapter.
    """

    kind: str
    mark: Mark
    zone: ZoneInfo
    url: Secret = ""
    timeout_seconds: float = TIMEOUT_SECONDS
    count_timeout_seconds: float = COUNT_TIMEOUT_SECONDS
    connections: int = CONNECTIONS
    wait_seconds: float = WAIT_SECONDS
    may_write: bool = False
    lifetime_seconds: float = LIFETIME_SECONDS
    schema: str = ""
    prepared: bool | None = None
    http: HttpSource | None = None
    options: Mapping[str, Secret] = field(default_factory=dict, hash=False, repr=False)


def is_own(kind: object) -> bool:
    """Return whether a kind of source is the path of a class: package.module:Class."""
    module, colon, name = str(kind).partition(":")
    return bool(colon) and all(
        part.isidentifier() for part in (*module.split("."), name)
    )


class DateReading(StrEnum):
    """What the parameter `date` of a stay is compared with (decision 5)."""

    START = "start"
    PERIOD = "period"


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding at a place of source or resource, and why it is accepted."""

    at: str
    says: str
    because: str
    mark: Mark


@dataclass(frozen=True)
class SourceMapping:
    """A whole mapping file, checked.

    With several sources, or several sections of one resource type, `parts` holds the sections
    in the order of the file, `resources` is empty, and `source` is the first. `beside` are
    the sections of the same source by type and prefix of their ids, which checks read. `read`
    reads the files that it names. `changed` is the day of the file's last change, if
    `load_mapping` read it.
    """

    file: str
    name: str
    profile: str
    profile_directory: PathlibPath
    time_zone: ZoneInfo
    source: SourceConfig
    constants: Constants
    resources: Mapping[ResourceType, ResourceMapping]
    codes: Mapping[str, CodeTable] = field(default_factory=dict)
    date_reading: DateReading = DateReading.START
    parts: tuple["PartMapping", ...] = ()
    known: tuple[KnownFinding, ...] = ()
    beside: Mapping[tuple[ResourceType, str], ResourceMapping] = field(
        default_factory=dict, compare=False, repr=False
    )
    read: ReadFile = field(default=from_disk, compare=False, repr=False)
    changed: date = field(default=date.min, compare=False, repr=False)

    @property
    def sections(self) -> tuple[ResourceMapping, ...]:
        """Every section of the file, those of several sources too."""
        return (*self.resources.values(), *(part.section for part in self.parts))

    @property
    def sources(self) -> Mapping[str, SourceConfig]:
        """Every source by the name that logs and counts have for it."""
        named = {part.name: part.mapping.source for part in self.parts}
        return named or {self.name: self.source}

    def with_lifetime(self, seconds: float) -> "SourceMapping":
        """Return the mapping with another lifetime, in seconds, of connections to sources."""
        parts = (
            replace(part, mapping=part.mapping.with_lifetime(seconds))
            for part in self.parts
        )
        source = replace(self.source, lifetime_seconds=seconds)
        return replace(self, source=source, parts=tuple(parts))

    @property
    def fingerprint(self) -> str:
        """A digest of what a stored search session depends on: source, rows, filters, order.

        It is equal in every process and for every path of the file; a new password of
        the source changes nothing.
        """
        source = self.source
        decisive: list[object] = [source.kind, source.url.rpartition("@")[2]]
        decisive += [source.schema, self.date_reading, self.time_zone.key]
        for kind, section in sorted(self.resources.items()):
            decisive += [kind, section.rows, section.http]
            decisive += _decisive(section.fields)
            for item in (item for items in section.items.values() for item in items):
                decisive += [item.slot, item.rows, item.key, *_decisive(item.fields)]
                if item.only_if:
                    decisive += [item.only_if.column, sorted(item.only_if.values)]
        decisive += [(part.kind, part.mapping.fingerprint) for part in self.parts]
        return hashlib.sha256("\0".join(map(repr, decisive)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class PartMapping:
    """Resources of one type from one of several sources, as a mapping of that source alone.

    A part of stays holds their patients too (decision 9). `name` is for the log. `lacks`
    are parameters and sort keys without a field here: they match none of its rows.
    """

    name: str
    kind: ResourceType
    mapping: SourceMapping
    lacks: frozenset[str]

    @property
    def section(self) -> ResourceMapping:
        """The one section that the part is about."""
        return self.mapping.resources[self.kind]


def _decisive(fields: Mapping[str, FieldMapping]) -> Iterator[object]:
    """Yield what makes the filters and the order of fields, without their place in the file."""
    for _, value in sorted(fields.items()):
        yield value.slot, value.constant, value.time, value.prefix, value.strip
        yield value.columns, value.search_column, sorted(value.absent)
        yield value.follows_merges, value.form
        if value.codes:
            yield tuple(value.codes.table.items()), value.codes.otherwise
