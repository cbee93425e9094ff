"""A mapping file as checked, typed values: what the rest of the adapters work from.

The loader (`load.py`) makes these; nothing here reads YAML. Column names are those of
the `rows` SELECT; slot names are the field names of the records in `contract.py`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo

from adapters.contract import ResourceType, SortKey
from adapters.mapping.constants import Constants
from adapters.mapping.http_model import HttpSection, HttpSource
from adapters.mapping.kept import Reader, from_disk
from adapters.mapping.time_rule import DECISIVE, TimeRule

HIDDEN = "hidden"
"""A status of the mapping: the row is never served (decision 17)."""

REMOVED = "removed"
"""A status of the mapping: the row was served once and is gone (decision 17)."""

WAIT_SECONDS = 1.0
"""How long a request waits for a free connection before it is told to come again."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a mapping file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class CodeTable:
    """Source codes and what they become; `otherwise` is for the codes no entry names."""

    name: str
    table: Mapping[str, str]
    otherwise: str | None = None
    mark: Mark | None = field(default=None, compare=False)

    def sources(self, target: str) -> tuple[str, ...]:
        """Return the source codes that become `target`, in the file's order."""
        return tuple(code for code, made in self.table.items() if made == target)


@dataclass(frozen=True, slots=True)
class Condition:
    """A list item counts only where `column` holds one of `values`."""

    column: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Where one value comes from: columns, or a constant.

    `columns` has two entries only for a date and its time of day. `search_column` is
    what filters compare instead of `columns`, when the file names one. `absent` are
    texts that stand for no value. `split` cuts one text into several. `prefix` stands
    before the source's own id, where several sources hold such resources.
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

    def own(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return those of the ids that are of this source, as it has them; none is absent."""
        length = len(self.prefix)
        own = [id[length:] for id in ids if id.startswith(self.prefix)]
        return tuple([id for id in own if id not in self.absent])

    @property
    def filter_column(self) -> str | None:
        """The column that a filter compares, None for a constant."""
        if self.search_column:
            return self.search_column
        return self.columns[0] if self.columns else None


@dataclass(frozen=True, slots=True, eq=False)
class ItemMapping:
    """One item of a list slot (identifiers, names, telecoms, addresses); itself alone.

    With `rows` and `key` the items come from a second SELECT: its columns are those
    that the fields name, and `key` is the one that holds the id of the resource's row.
    """

    slot: str
    mark: Mark
    fields: Mapping[str, FieldMapping] = field(hash=False)
    lines: tuple[FieldMapping, ...] = field(default=(), hash=False)
    only_if: Condition | None = None
    rows: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """One section of the file: `encounter`, `patient` or `organization`.

    `fields` and `items` are by slot. `required` are the slots without which a row is a
    fault. `parameters` and `sorts` are what the section offers. `http` stands in place
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


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Where the system is, its time limits, a class's own `options`; secrets are resolved."""

    kind: str
    mark: Mark
    url: str = ""
    timeout_seconds: float = 5.0
    count_timeout_seconds: float = 2.0
    connections: int = 8
    wait_seconds: float = WAIT_SECONDS
    may_write: bool = False
    http: HttpSource | None = None
    options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)


class DateReading(StrEnum):
    """What the parameter `date` of a stay is compared with (decision 5)."""

    START = "start"
    PERIOD = "period"


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """What a check says at a place of source or resource, and why it is meant to stay."""

    at: str
    says: str
    because: str
    mark: Mark


@dataclass(frozen=True)
class SourceMapping:
    """A whole mapping file, checked.

    Where it has several sources, or one resource type from several, `parts` holds them
    in the order of the file, `resources` nothing, and `source` is the first. `read` reads
    the files beside it.
    """

    file: str
    name: str
    profile: str
    profile_directory: Path
    time_zone: ZoneInfo
    source: SourceConfig
    constants: Constants
    resources: Mapping[ResourceType, ResourceMapping]
    codes: Mapping[str, CodeTable] = field(default_factory=dict)
    date_reading: DateReading = DateReading.START
    parts: tuple["PartMapping", ...] = ()
    known: tuple[KnownFinding, ...] = ()
    read: Reader = field(default=from_disk, compare=False, repr=False)

    @property
    def sections(self) -> tuple[ResourceMapping, ...]:
        """Every section of the file, those of several sources too."""
        return (*self.resources.values(), *(part.section for part in self.parts))

    @property
    def sources(self) -> Mapping[str, SourceConfig]:
        """Every source by the name that logs and counts have for it."""
        named = {part.name: part.mapping.source for part in self.parts}
        return named or {self.name: self.source}

    @property
    def fingerprint(self) -> str:
        """A digest of what a stored walk depends on: source, rows, filters, order.

        It is equal in every process and wherever the file stands; a new password of
        the source changes nothing.
        """
        place = self.source.url.rpartition("@")[2]
        walked: list[object] = [self.source.kind, place, self.date_reading]
        walked.append(self.time_zone.key)
        for kind, section in sorted(self.resources.items()):
            walked += [kind, section.rows, *filter(None, [section.http])]
            walked += [_walked(field) for _, field in sorted(section.fields.items())]
            for item in (item for items in section.items.values() for item in items):
                walked += [item.slot, item.rows, item.key]
                walked += [_walked(f) for _, f in sorted(item.fields.items())]
        walked += [(part.kind, part.mapping.fingerprint) for part in self.parts]
        return hashlib.sha256("\0".join(map(repr, walked)).encode()).hexdigest()[:16]


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


def _walked(field: FieldMapping) -> tuple[object, ...]:
    """Return what makes a field's filter and order, without its place in the file."""
    codes = field.codes and (tuple(field.codes.table.items()), field.codes.otherwise)
    time = field.time and tuple(str(getattr(field.time, n)) for n in DECISIVE)
    compared = (field.columns, field.search_column, tuple(sorted(field.absent)))
    prefix = (field.prefix,) if field.prefix else ()
    return (field.slot, field.constant, codes, time, *compared, *prefix)
