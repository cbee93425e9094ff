"""The check engine: what a check of a live source examines, whatever the kind of source.

An adapter that can be checked is `Inspectable`: it yields `Check`s, and each of them yields
its results, `Finding`s and `Measurement`s. `mapping check --live` runs and prints them.

The adapters read samples of rows and counts of codes; what these mean for the mapping is
decided here: invalid rows, codes without an entry, fields that no row fills, doubtful times.
No result quotes a value of a person: counts, codes, columns and rules only. For previews
the module also reads one row as its source has it.
"""

import json
import re
import time as clock
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import partial
from typing import (
    Any,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

from adapters.contract import (
    Adapter,
    Capabilities,
    Criterion,
    DateCriterion,
    DateValue,
    EncounterRecord,
    NotFoundError,
    Page,
    Prefix,
    Record,
    ReferenceCriterion,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    StringCriterion,
    Token,
    TokenCriterion,
)
from adapters.folding import fold
from adapters.mapping.model import (
    HIDDEN,
    REMOVED,
    CodeTable,
    ItemMapping,
    Mark,
    ResourceMapping,
    SourceMapping,
    TimeRule,
)
from adapters.mapping.problems import MappingProblem
from adapters.mapping.row_mapper import (
    Cell,
    CellError,
    Reader,
    Row,
    compile_cell,
    counting,
    item_positions,
    item_reader,
)
from adapters.mapping.slots import LISTS, SLOTS, Kind, Place, places_of
from adapters.mapping.times import read_day, to_instant
from adapters.mapping.values import LONGEST_CODE, as_text, presence
from adapters.matching import resource_type_of
from adapters.parameters import SEARCH_PARAMETERS, ParameterType, SearchParameter

SAMPLE = 1000
"""How many rows are read from each end of an order, and at once of a whole list."""

SMALL_SAMPLE = 100
"""How many rows are requested of an API at once: the largest page of a client."""

Answer = TypeVar("Answer")


class Severity(StrEnum):
    """How severe a finding is; a note alone needs nobody to act."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to correct or to know, at the line of the file that a person would edit.

    `line` and `column` count from 1, 0 for the file as a whole. `element` is the FHIR
    element or the path of keys, `source` the column or table.column that it comes from;
    both are "" where there is none. `remedy` is an SQL statement or lines of the file that
    would help, `part` the name of the source where there are several, `topic` the plural
    under which notes of one kind are printed together.
    """

    file: str
    line: int
    column: int
    text: str
    element: str = ""
    source: str = ""
    severity: Severity = Severity.ERROR
    remedy: str = ""
    part: str = ""
    topic: str = ""

    @classmethod
    def at(
        cls,
        mark: Mark,
        text: str,
        element: str = "",
        source: str = "",
        severity: Severity = Severity.ERROR,
        remedy: str = "",
        topic: str = "",
    ) -> Self:
        """Return a finding at a place of a file."""
        where = (mark.file, mark.line, mark.column)
        return cls(*where, text, element, source, severity, remedy, topic=topic)

    @classmethod
    def of(cls, problem: MappingProblem) -> Self:
        """Return the finding for a problem of a mapping file."""
        return cls.at(problem.mark, problem.text, problem.element, problem.column)

    @classmethod
    def of_field(
        cls, place: Place, column: str, text: str, severity: Severity, *details: str
    ) -> Self:
        """Return the finding of a field; `details` are its remedy and its topic."""
        mark, element = place.field.mark, place.element
        return cls.at(mark, text, element, column, severity, *details)

    @property
    def headline(self) -> str:
        """Where it is and what it says, without the remedy."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        subject = f"{self.element} ← {self.source}" if self.source else self.element
        is_error = self.severity is Severity.ERROR
        text = self.text if is_error else f"{self.severity}: {self.text}"
        return ": ".join(part for part in (place, self.part, subject, text) if part)

    def __str__(self) -> str:
        remedy = self.remedy.replace("\n", "\n    ")
        return f"{self.headline}\n    {remedy}" if remedy else self.headline


@dataclass(frozen=True, slots=True)
class Measurement:
    """One search, sort or count that was run as the service runs it.

    `search` is as clients write it, without its value. `rows` were returned, or counted;
    `read` are the rows that the database read for them, None where it does not report
    them. `indexes` are statements that create the indexes which the search lacks.
    """

    search: str
    milliseconds: float
    rows: int
    read: int | None = None
    indexes: tuple[str, ...] = ()
    part: str = ""


Result: TypeAlias = Finding | Measurement


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a source; `run` reads it, within the time limits of the source.

    It raises SourceUnavailableError when the source is away.
    """

    subject: str
    run: Callable[[], Iterable[Result]]


@runtime_checkable
class Inspectable(Protocol):
    """An adapter whose source can be checked."""

    def checks(self, kinds: Collection[ResourceType]) -> Iterator[Check]:
        """Yield the checks of these types; each is run before the next is requested."""


def timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """Return what a call returns, and how many milliseconds it took."""
    began = clock.perf_counter()
    answer = call()
    return answer, round((clock.perf_counter() - began) * 1000, 1)


@runtime_checkable
class Legible(Protocol):
    """An adapter that can explain a search with its values."""

    def explain_values(self, query: SearchQuery) -> str:
        """Return what would be sent, with its values."""


def with_values(adapter: Adapter) -> Callable[[SearchQuery], str]:
    """Return what explains a search, with its values where the adapter can."""
    return adapter.explain_values if isinstance(adapter, Legible) else adapter.explain


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page of a search with the cells that its rows come from.

    `columns` are in the order of the cells of a row.
    """

    page: Page
    columns: tuple[str, ...]
    cells: Sequence[Sequence[object]]


@runtime_checkable
class RowReader(Protocol):
    """An adapter that returns rows as its source has them, besides their records."""

    @property
    def capabilities(self) -> Capabilities:
        """What each resource type that the source holds can do."""

    def search(self, query: SearchQuery) -> Page:
        """Return a page of a search."""

    def search_rows(self, query: SearchQuery) -> SourcePage:
        """Return a page of a search and its cells."""


def all_pages(reader: RowReader, kind: ResourceType) -> Iterator[SourcePage]:
    """Yield all that searches find, page by page; no page is held after it.

    Rows are in the order of their ids where the source has that order. Raises
    SourceDataError where it has no further pages, and SourceUnavailableError.
    """
    able = reader.capabilities[kind]
    sorts = (SortKey.ID, *able.sorts) if able.keyset else able.sorts
    is_by_id = SortKey.ID in sorts or not sorts
    size = SAMPLE if able.keyset else SMALL_SAMPLE
    sort = Sort(SortKey.ID if is_by_id else sorts[0])
    query = SearchQuery(kind, (), sort, size)
    while True:
        rows = reader.search_rows(query)
        if rows.page.rows:
            yield rows
        if not rows.page.more:
            return
        if rows.page.last is None:
            text = f"the source has no page after the first {len(rows.cells):,} rows"
            raise SourceDataError(text)
        query = replace(query, after=rows.page.last)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """The cells of one resource: its own row, and the rows of items with own SELECTs.

    `columns` are in the order of `cells`; those of an item in that of `item_columns`.
    """

    section: ResourceMapping
    columns: tuple[str, ...]
    cells: tuple[object, ...]
    items: Mapping[ItemMapping, Sequence[Sequence[object]]] = field(
        default_factory=dict
    )


def find_row(mapping: SourceMapping, resource_type: ResourceType, id: str) -> SourceRow:
    """Read the row of one resource from its source; the connection is closed again.

    `id` is as clients see it. Raises NotFoundError, SourceUnavailableError,
    SourceDataError, and GoneError where an HTTP source says so itself.
    """
    (row,) = find_rows(mapping, resource_type, [id])
    return row


def find_rows(
    mapping: SourceMapping, resource_type: ResourceType, ids: Sequence[str]
) -> list[SourceRow]:
    """Read the rows of resources, in the order of their ids, over one connection a source.

    Raises what `find_row` raises.
    """
    owners = [_owner(mapping, resource_type, id) for id in ids]
    rows: dict[str, SourceRow] = {}
    for owner in {id(each): each for each in owners}.values():
        own = [text for text, each in zip(ids, owners, strict=True) if each is owner]
        rows |= zip(own, _rows_of(owner, resource_type, own), strict=True)
    return [rows[text] for text in ids]


def _owner(mapping: SourceMapping, kind: ResourceType, id: str) -> SourceMapping:
    """Return the mapping of the source that has an id. Raises NotFoundError."""
    if kind in mapping.resources:
        return mapping
    for part in mapping.parts:
        if part.kind is kind and id.startswith(part.section.fields["id"].prefix):
            return part.mapping
    raise NotFoundError(kind)


def _rows_of(
    mapping: SourceMapping, kind: ResourceType, ids: Sequence[str]
) -> list[SourceRow]:
    section = mapping.resources[kind]
    # Imported here, so that a database needs no HTTP library, and the other way round.
    if section.http is not None:
        from adapters.http.adapter import find_http_rows

        return find_http_rows(mapping, kind, ids)
    if not section.rows:
        raise SourceDataError("a source of this kind does not show its rows")
    from adapters.sql.adapter import find_sql_rows

    return find_sql_rows(mapping, kind, ids)


RULES_OF_CODES = ("no entry for ", "required and empty")
"""How the rules begin whose breaches are reported where all codes are counted."""

Reported: TypeAlias = Collection[tuple[str, str]]
"""Columns, each with the start of a rule whose breaches are reported for all rows."""

_HINTS: Mapping[str, str] = {
    "a local time that never happens (clock change)": " (is the column in UTC, or in"
    " another time zone?)",
    "not readable as a time": " (how is it written? Say so with format)",
    "outside the years that can be written": " (if it stands for none, say so with"
    " absent)",
}


def broken_rules(
    section: ResourceMapping,
    rows: Collection[Record | RowFault],
    columns: Mapping[str, str],
    reported: Reported,
) -> Iterator[Finding]:
    """Yield how many rows break which rule, but for what is reported elsewhere.

    `columns` are names of columns as the source has them.
    """
    places = places_of(section)
    faults = Counter(row for row in rows if isinstance(row, RowFault))
    for fault, number in faults.most_common():
        if any(fault.column == c and fault.rule.startswith(r) for c, r in reported):
            continue
        text = f"{number:,} of {len(rows):,} rows of the sample cannot be served: "
        text += fault.rule + _HINTS.get(fault.rule, "")
        named = [place for place in places if place.slot == fault.field]
        exact = [p for p in named if ", ".join(p.field.columns) == fault.column]
        source = columns.get(fault.column, fault.column)
        if place := next(iter(exact or named), None):
            yield Finding.of_field(place, source, text, Severity.ERROR)
        else:
            yield Finding.at(section.mark, text, section.resource_type, source)


def selects(section: ResourceMapping) -> Iterator[tuple[str, Mark]]:
    """Yield each SELECT of a section, and where the file has it."""
    items = (item for items in section.items.values() for item in items)
    yield section.rows, section.mark
    yield from ((item.rows, item.mark) for item in items if item.rows)


def holds_same(place: Place, shown: object, searched: object) -> bool:
    """Tell whether the column that searches compare holds what its field shows.

    What is no value of its field, and days compared with times, are reported elsewhere.
    """
    rule, is_time = place.field.time, place.kind is Kind.TIME
    if rule is not None and is_time and type(searched) is date:
        return True
    convert = (
        partial(to_instant if is_time else read_day, rule=rule) if rule else as_text
    )
    try:
        value = convert(shown)
    except ValueError:
        return True
    try:
        compared = convert(searched)
    except ValueError:
        return False
    if place.kind in (Kind.TEXT, Kind.PARTS):
        return fold(str(value)) in fold(str(compared))
    return bool(value == compared)


def rows_that(number: int, verb: str = "") -> str:
    """Return so many rows in words, and what they do: "1 row has", "1,200 rows have"."""
    if number == 1:
        return f"1 row {'has' if verb == 'have' else f'{verb}s'}" if verb else "1 row"
    return f"{number:,} rows {verb}".rstrip()


def empty(place: Place, column: str, rows: int) -> Finding:
    """Return the finding of rows that lack what they must have."""
    text = (
        f"{rows_that(rows, 'have')} nothing here, which is required: such rows cannot"
    )
    return Finding.of_field(place, column, f"{text} be served", Severity.ERROR)


MOST = 100
"""A column with more different values than this holds no codes."""

_FEW, _OFTEN = 5, 3
"""More different values than a few are codes where each has so many rows."""

_SHOWN = 20
_MEANS = {HIDDEN: " (never served)", REMOVED: " (answered 410)"}


class Counted(NamedTuple):
    """The codes of one field and how many rows have each, or `nothing`.

    `column` is where they stand.
    """

    place: Place
    column: str
    counts: Mapping[str, int]
    nothing: int

    @property
    def codes(self) -> CodeTable:
        """The table that reads the field."""
        codes = self.place.field.codes
        assert codes is not None, "only coded fields are counted"
        return codes


def counted(place: Place, column: str, values: Iterable[tuple[object, int]]) -> Counted:
    """Return how many rows have each code, as a cell is read."""
    counts: Counter[str] = Counter()
    for value, rows in values:
        counts[code_of(place, value)] += rows
    nothing = counts.pop("", 0)
    return Counted(place, column, counts, nothing)


def code_of(place: Place, cell: object) -> str:
    """Return the code in a cell of a coded field, "" for none."""
    text = plain_text(cell)
    return "" if text in place.field.absent else text


def plain_text(value: object) -> str:
    """Return a value as a cell is read, "" for none and for what has no text."""
    try:
        return "" if value is None else as_text(value)
    except ValueError:
        return ""


def unnamed(column_counts: Counted, required: Collection[str]) -> Iterator[Finding]:
    """Yield the codes that no entry names, and where a required one is missing."""
    place, column, counts, nothing = column_counts
    codes = column_counts.codes
    is_required = place.slot in required and "." not in place.slot
    if nothing and codes.otherwise is None and is_required:
        yield empty(place, column, nothing)
    others = {c: n for c, n in counts.items() if c not in codes.table}
    if not others:
        return
    text = f"codes.{codes.name} names no {_named(others)}"
    if not _are_codes(column_counts):
        yield _many_values(column_counts, sum(others.values()))
    elif codes.otherwise is not None:
        text += f": all become '{codes.otherwise}'"
        topic = "code tables whose 'otherwise' is used"
        yield Finding.of_field(place, column, text, Severity.NOTE, "", topic)
    else:
        text += ": such rows cannot be served"
        mark, lines = codes.mark or place.field.mark, _entries(others, column_counts)
        yield Finding.at(mark, text, place.element, column, remedy=lines)


def missing_codes(column_counts: Counted) -> Mapping[str, int]:
    """Return how many rows have each code that no entry names, "" for all the others.

    The others are texts that may be anything: they are not quoted (decision 16).
    """
    table, missing = column_counts.codes.table, Counter[str]()
    are_codes = _are_codes(column_counts)
    for code, rows in column_counts.counts.items():
        if code not in table:
            missing[code if are_codes and len(code) <= LONGEST_CODE else ""] += rows
    return missing


_CODE_OF_RULE = re.compile(r" for .* in (?=codes\.)", re.DOTALL)


def without_code(rule: str) -> str:
    """Return the rule of a fault without the code that it quotes: a kind of fault."""
    return _CODE_OF_RULE.sub(" in ", rule)


def _are_codes(column_counts: Counted) -> bool:
    """Whether values come back often enough to be codes, and not names of people.

    A table that names half of them was written for codes: a small copy of a hospital has
    few rows of each.
    """
    counts = column_counts.counts
    named = sum(code in column_counts.codes.table for code in counts)
    is_often = sum(counts.values()) >= _OFTEN * len(counts)
    are_few = len(counts) <= _FEW
    return are_few or (len(counts) <= MOST and (is_often or 2 * named >= len(counts)))


def _many_values(column_counts: Counted, rows: int) -> Finding:
    """Return the finding of values that may be anything: how many, and none of them."""
    place, column, counts, _ = column_counts
    many = f"over {MOST}" if len(counts) > MOST else f"{len(counts)}"
    text = f"{many} different values, not shown: is this a column of codes?"
    if column_counts.codes.otherwise is not None:
        return Finding.of_field(place, column, text, Severity.WARNING)
    least = "at least " if len(counts) > MOST else ""
    text = (
        f"{least}{rows_that(rows)} cannot be served: no entry for their value; {text}"
    )
    return Finding.of_field(place, column, text, Severity.ERROR)


def _named(codes: Mapping[str, int]) -> str:
    short = [(c, n) for c, n in _by_rows(codes) if len(c) <= LONGEST_CODE]
    texts = [f"{code!r} ({rows_that(n)})" for code, n in short[:_SHOWN]]
    if longer := sum(n for c, n in codes.items() if len(c) > LONGEST_CODE):
        texts.append(f"texts too long for a code ({rows_that(longer)})")
    return ", ".join(texts) + _more(short)


def _entries(codes: Mapping[str, int], column_counts: Counted) -> str:
    """Return the entries to add, which the check refuses until somebody has decided."""
    takes = column_counts.place.takes or dict.fromkeys(
        column_counts.codes.table.values()
    )
    words = ", ".join(f"{word}{_MEANS.get(word, '')}" for word in takes)
    return "\n".join(
        f"{code if _PLAIN.fullmatch(code) else repr(code)}: '?'   # {rows_that(n)}; {words}"
        for code, n in _by_rows(codes)[:_SHOWN]
        if len(code) <= LONGEST_CODE
    )


_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


def _by_rows(codes: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(codes.items(), key=lambda pair: (-pair[1], pair[0]))


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""


Sampled = Sequence[tuple[Row, Mapping[ItemMapping, Sequence[Row]]]]
"""Rows, each with the rows of the items that have a SELECT or a list of their own."""

_ENOUGH = 20
"""In fewer rows or times than these a pattern means nothing."""

_RARE = ("replaced_by", "deceased_at")
"""What few people have by its nature."""


def never_filled(
    section: ResourceMapping,
    columns: Sequence[str],
    rows: Sampled,
    names: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield each field and item that none of the rows fills.

    A column that is empty in the source leaves nothing to mend, and is a note; one with
    values of which nothing comes is a warning. `columns` are those of a row in order,
    `names` their names as the source has them.
    """
    if len(rows) < _ENOUGH:
        return
    positions = {column: at for at, column in enumerate(columns)}
    kind, text = section.resource_type, f"none of {len(rows):,} rows has it"
    own = [row for row, _ in rows]
    for slot in SLOTS[kind]:
        field = section.fields.get(slot.record)
        if field is None or not field.columns or slot.record in _RARE:
            continue
        read = compile_cell(Cell(field, slot.name, positions), slot.kind)
        if not any(_gives(read, row) for row in own):
            source = ", ".join(names.get(name, name) for name in field.columns)
            has_any = _has_any(own, positions, field.columns)
            element = f"{kind}.{slot.element}"
            yield _unfilled(field.mark, element, source, text, has_any)
    items = (
        (each, item)
        for each in LISTS[kind]
        for item in section.items.get(each.name, ())
    )
    for listed, item in items:
        of = [r for _, below in rows for r in below.get(item, ())] if item.rows else own
        read = item_reader(item, listed, positions)
        if any(_gives(read, row) for row in of):
            continue
        content = [item.fields[n] for n in listed.content if n in item.fields]
        wanted = [c for each in (*content, *item.lines) for c in each.columns]
        why = _why(item, of, positions)
        has_any = bool(why) or _has_any(of, item_positions(item, positions), wanted)
        yield _unfilled(item.mark, f"{kind}.{listed.element}", "", text + why, has_any)


def _why(item: ItemMapping, rows: list[Row], positions: Mapping[str, int]) -> str:
    """Return why an item has nothing, as far as the mapping says."""
    if not rows and item.key:
        return f": its SELECT has no row of theirs; is '{item.key}' the id of the row?"
    if not rows:
        return f": '{item.rows}' has no row for them"
    counts = counting(item, item_positions(item, positions))
    if item.only_if and not any(_gives(lambda r: counts(r) or None, r) for r in rows):
        return f": only_if lets none through, is '{item.only_if.column}' as it says?"
    return ""


def _gives(read: Reader, row: Row) -> bool:
    """Whether a row gives a value; what cannot be read is reported elsewhere."""
    try:
        return read(row) not in (None, ())
    except CellError:
        return True


def _has_any(
    rows: Sequence[Row], positions: Mapping[str, int], columns: Sequence[str]
) -> bool:
    """Whether the columns hold anything in these rows."""
    at = [positions[name] for name in columns if name in positions]
    cells = (row[position] for row in rows for position in at)
    return any(cell is not None and str(cell).strip() for cell in cells)


def _unfilled(
    mark: Mark, element: str, source: str, text: str, has_any: bool
) -> Finding:
    severity = Severity.WARNING if has_any else Severity.NOTE
    why = "" if has_any else ": it is empty in the source"
    topic = "fields that are empty in the source"
    return Finding.at(mark, text + why, element, source, severity, topic=topic)


def criterion_of(parameter: str, record: Record) -> Criterion | None:
    """Return a criterion that the record meets, None when it lacks what is compared."""
    row = SEARCH_PARAMETERS[resource_type_of(record)].get(parameter)
    value, system = _compared(record, row) if row else (None, None)
    if row is None or not value:
        return None
    match row.type:
        case ParameterType.TOKEN:
            return TokenCriterion(parameter, (Token(system, value),))
        case ParameterType.REFERENCE:
            return ReferenceCriterion(parameter, (value,))
        case ParameterType.STRING:
            return StringCriterion(parameter, (value,))
        case ParameterType.DATE:
            zone = value.tzinfo if isinstance(value, datetime) else UTC
            low = datetime(value.year, value.month, value.day, tzinfo=zone)
            days = DateValue(Prefix.EQ, low, low + timedelta(days=1))
            return DateCriterion(parameter, (days,))


def _compared(record: Record, row: SearchParameter) -> tuple[Any, str | None]:
    """Return the first value that a parameter compares, and its system."""
    fields = {s.name: s.record for s in SLOTS[resource_type_of(record)]}
    for slot in row.slots:
        listed, _, name = slot.rpartition(".")
        for holder in getattr(record, listed) if listed else (record,):
            value = getattr(holder, name if listed else fields[name])
            if isinstance(value, tuple):
                value = next(iter(value), None)
            if value:
                system = (row.system_slot or "").rpartition(".")[2]
                return value, getattr(holder, system) if system else None
    return None, None


def hidden_zone(
    place: Place, column: str, values: Callable[[], Iterable[object]]
) -> Iterator[Finding]:
    """Yield the doubt about last changes of which nothing says by whose clock they are.

    No row can show that they are read wrongly. Neither the file says it nor, by its own
    distance from UTC, one of `values`.
    """
    rule = place.field.time
    is_change = place.field.slot == "last_updated" and bool(place.field.columns)
    if rule is None or rule.says_zone or not is_change or "%z" in (rule.format or ""):
        return
    if any(map(_has_offset, values())):
        return
    zone = rule.zone.key
    text = (
        f"nothing says by whose clock it is written: it is read in {zone}, and no row shows"
        " whether that is wrong. Ask the vendor, and say what you are told"
    )
    remedy = f"time_zone: UTC   # or {zone}"
    yield Finding.of_field(place, column, text, Severity.WARNING, remedy)


def _has_offset(value: object) -> bool:
    """Tell whether a value says its own distance from UTC."""
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return isinstance(value, str) and bool(_OFFSET.search(value.strip()))


_OFFSET = re.compile(r":\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)


_FAR = timedelta(days=20 * 365)
"""No stay is known so long before: what ends then may well have no end."""


def far_from(now: datetime) -> datetime:
    """Return the time from which on a day is a far one."""
    return now + _FAR


def has_far_days(place: Place) -> bool:
    """Tell whether a field is one whose far days stand for none in many systems."""
    field = place.field
    is_period = place.slot in ("start", "end")
    return is_period and field.time is not None and bool(field.columns)


def far_days(
    place: Place, column: str, values: Iterable[tuple[object, int]], now: datetime
) -> Iterator[Finding]:
    """Yield the far days among values of a start or an end, each with its number of rows.

    A day that is no end of a year and comes once is not quoted: it may be a typing error.
    """
    rows_of: Counter[date] = Counter()
    texts: dict[date, dict[str, None]] = {}
    for value, rows in values:
        if (day := _day(value, place)) and day > far_from(now).date():
            rows_of[day] += rows
            text = str(value).rstrip()
            if isinstance(value, datetime):
                text = text.removesuffix(" 00:00:00")
            texts.setdefault(day, {})[text] = None
    ends = ((12, 31), (1, 1))
    quoted = [d for d, n in rows_of.items() if n > 1 or (d.month, d.day) in ends]
    if quoted:
        quoted.sort()
        days = (f"{rows_that(rows_of[d], place.slot)} on {d}" for d in quoted)
        absent = [*sorted(place.field.absent), *(t for d in quoted for t in texts[d])]
        text = f"{' and '.join(days)}: no value? Then say so with absent"
        remedy = f"absent: {json.dumps(absent, ensure_ascii=False)}"
        yield Finding.of_field(place, column, text, Severity.WARNING, remedy)
    if others := sum(n for day, n in rows_of.items() if day not in quoted):
        text = f"{rows_that(others, place.slot)} more than 20 years ahead: is a year wrong?"
        yield Finding.of_field(place, column, text, Severity.WARNING)


def _day(value: object, place: Place) -> date | None:
    present = presence(place.field.absent)(value)
    assert place.field.time is not None, "only times are compared with the clock"
    try:
        return None if present is None else read_day(present, place.field.time)
    except ValueError:
        return None


_SHARE = 0.2
"""How many of the stays have to be changed before they begin: a clock is hardly so wrong."""

_JUST = timedelta(minutes=15)
"""A hospital changes some row so often."""

_MIXED = (
    "by less than the zone's offset: is a column of UTC read as local time, or the reverse"
    " (time_zone:)?"
)


def doubtful_times(
    section: ResourceMapping,
    rows: Collection[Record | RowFault],
    columns: Mapping[str, str],
    now: datetime,
) -> Iterator[Finding]:
    """Yield what is odd about the times of records."""
    records = [row for row in rows if not isinstance(row, RowFault)]
    stays = [record for record in records if isinstance(record, EncounterRecord)]
    begun = [stay for stay in stays if stay.status in ("in-progress", "finished")]
    starts = [stay.start for stay in begun if stay.start]
    for place in places_of(section):
        slot, rule = place.field.slot, place.field.time
        if place.kind is not Kind.TIME or rule is None or not place.field.columns:
            continue
        times = [t for r in records if (t := getattr(r, slot))]
        doubts = [*_of_times(times, rule)]
        if slot == "start":
            doubts += _ahead(rule, "stays that have begun start", starts, now)
        elif slot == "last_updated":
            doubts += _ahead(rule, "rows were changed", times, now)
            doubts += _behind(rule, times, now)
            if starts:
                doubts += _changed_early(section.fields["start"].time, begun)
        column = columns.get(place.field.columns[0], place.field.columns[0])
        for severity, text in doubts:
            topic = "columns with doubtful times"
            yield Finding.of_field(place, column, text, severity, "", topic)


_Doubts: TypeAlias = Iterator[tuple[Severity, str]]


def _of_times(times: Collection[datetime], rule: TimeRule) -> _Doubts:
    """Yield the doubt about times that are all days of another zone."""
    if len(times) < _ENOUGH or rule.at is not None:
        return
    is_day, is_utc_day = (
        all(moment.astimezone(zone).time() == time() for moment in times)
        for zone in (rule.zone, UTC)
    )
    if is_utc_day and not is_day:
        text = (
            f"all of {len(times):,} times are at 00:00 in UTC, not in {rule.zone.key}"
        )
        yield Severity.WARNING, f"{text}: is the time zone of the column right?"


def _ahead(
    rule: TimeRule, what: str, times: Sequence[datetime], now: datetime
) -> _Doubts:
    """Yield the doubt about times in the future, of stays that have begun or of changes."""
    if ahead := [moment for moment in times if moment > now]:
        is_near = _is_near(rule, max(ahead), max(ahead) - now)
        why = f", {_MIXED}" if is_near else ": is a clock or a year wrong?"
        text = f"{len(ahead):,} of {len(times):,} {what} in the future{why}"
        yield Severity.WARNING, text


def _behind(rule: TimeRule, changes: Sequence[datetime], now: datetime) -> _Doubts:
    """Yield the doubt about a newest change as long ago as the zone is from UTC."""
    offset = max(changes).astimezone(rule.zone).utcoffset() if changes else None
    is_just = offset and timedelta() <= now - max(changes) - offset < _JUST
    if len(changes) >= _ENOUGH and is_just:
        text = (
            f"the newest change is {offset} hours ago, as far as the zone is from UTC"
        )
        yield Severity.WARNING, f"{text}, {_MIXED}"


def _changed_early(rule: TimeRule | None, begun: Sequence[EncounterRecord]) -> _Doubts:
    """Yield the doubt about stays that were last changed before they began."""
    pairs = [(s.start, s.last_updated) for s in begun if s.start and s.last_updated]
    early = [(start, changed) for start, changed in pairs if changed < start]
    near = sum(_is_near(rule, start, start - changed) for start, changed in early)
    if near >= max(_ENOUGH, _SHARE * len(pairs), len(early) / 2):
        text = f"{near:,} of {len(pairs):,} stays were changed before they began"
        yield Severity.WARNING, f"{text}, {_MIXED}"


def _is_near(rule: TimeRule | None, moment: datetime, apart: timedelta) -> bool:
    """Whether two times are no further apart than the clocks of clients are from UTC."""
    offset = moment.astimezone(rule.written).utcoffset() if rule else None
    return bool(offset) and apart <= abs(offset or timedelta())
