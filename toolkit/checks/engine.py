"""The check engine: checks, their results, and what these mean for a mapping.

A `Check` yields its results, `Finding`s and `Measurement`s. `run_in_turn` limits and collects
them for `mapping check --live`. An adapter whose source can be checked is `Inspectable`.

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
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import partial
from typing import (
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
)

from adapters.contract import (
    Record,
    ResourceType,
    RowFault,
)
from adapters.folding import fold
from adapters.mapping.model import (
    HIDDEN,
    REMOVED,
    CodeTable,
    ItemMapping,
    Mark,
    ResourceMapping,
)
from adapters.mapping.problems import MappingProblem
from adapters.mapping.row_mapper import (
    Cell,
    CellError,
    Reader,
    Row,
    compile_cell,
    item_positions,
    item_reader,
)
from adapters.mapping.slots import LISTS, Kind, ListSlot, Place, own_places, places_of
from adapters.mapping.times import presence, read_day, to_instant
from adapters.mapping.values import LONGEST_CODE, as_text
from toolkit.checks.labels import CANCELLED, OPEN, Labels, contradicts, says

SAMPLE = 1000
"""How many rows are read from each end of an order, and at once of a whole list."""

SMALL_SAMPLE = 100
"""How many rows are requested of an API at once: the largest page of a client."""

Answer = TypeVar("Answer")


class Severity(StrEnum):
    """How severe a finding is; what is fine, and a note, needs nobody to act."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to correct or to know, at the line of the file that a person would edit.

    `line` and `column` count from 1, 0 for the file as a whole; `file` is "" for what no
    file says. `element` is the FHIR element or the path of keys, `source` the column or
    table.column that it comes from; both are "" where there is none. `remedy` is an SQL
    statement or lines of the file that would help, `part` the name of the source where
    there are several, `topic` the plural under which notes of one kind are printed together.
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
    def is_wrong(self) -> bool:
        """Whether somebody has to act."""
        return self.severity in (Severity.ERROR, Severity.WARNING)

    @property
    def statement(self) -> str:
        """Where it is and what it says, without severity and remedy."""
        return ": ".join(filter(None, (*self._where, self.text)))

    @property
    def headline(self) -> str:
        """Where it is and what it says, without the remedy."""
        is_error = self.severity is Severity.ERROR
        severity = "" if is_error else self.severity
        return ": ".join(filter(None, (*self._where, severity, self.text)))

    @property
    def _where(self) -> tuple[str, str, str]:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        subject = f"{self.element} ← {self.source}" if self.source else self.element
        return place, self.part, subject

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
    """One check; `run` reads what it examines, within the time limits of that.

    It raises SourceUnavailableError when a source is away.
    """

    subject: str
    run: Callable[[], Iterable[Result]]


@dataclass(slots=True)
class Outcome:
    """What a check has yielded so far, and whether it has ended."""

    check: Check
    results: list[Result] = field(default_factory=list)
    is_complete: bool = False

    def collect(self) -> Self:
        """Run the check and keep each result as it comes."""
        for result in self.check.run():
            self.results.append(result)
        self.is_complete = True
        return self

    @property
    def findings(self) -> list[Finding]:
        """Its findings alone."""
        return [each for each in self.results if isinstance(each, Finding)]


def run_in_turn(
    checks: Iterable[Check], seconds: float, show: Callable[[str], None]
) -> Iterator[Outcome]:
    """Run checks one after the other, and show the subject of each.

    None begins after so many seconds: the first of the others is the last outcome.
    """
    deadline = clock.monotonic() + seconds
    try:
        for check in checks:
            if clock.monotonic() > deadline:
                yield Outcome(check)
                return
            show(f"{check.subject} …")
            yield Outcome(check).collect()
    finally:
        show("")


def timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """Return what a call returns, and how many milliseconds it took."""
    began = clock.perf_counter()
    answer = call()
    return answer, round((clock.perf_counter() - began) * 1000, 1)


RULES_OF_CODES = ("no entry for ", "required and empty")
"""How the rules begin whose breaches are reported where all codes are counted."""

Reported: TypeAlias = Collection[tuple[str, str]]
"""Columns, each with the start of a rule whose breaches are reported for all rows."""

_HINTS: Mapping[str, str] = {
    "a local time that never happens (clock change)": " (a column in UTC, or in another"
    " zone? Else never: shift serves them)",
    "not readable as a time": " (how is it written? Say so with format; a month or day"
    " of zeros is none)",
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
        text = f"{number:,} of {len(rows):,} rows of the sample cannot be served"
        text += f": {fault.rule}{_HINTS.get(fault.rule, '')}"
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

FEW, _OFTEN = 5, 3
"""More different values than a few are codes where each has so many rows."""

_RARELY = 0.05
"""In more of the rows than these, codes that say nothing were forgotten."""

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
    codes, missing = column_counts.codes, missing_codes(column_counts)
    is_required = place.item is None and place.field.slot in required
    if nothing and codes.otherwise is None and is_required:
        yield empty(place, column, nothing)
    if not missing:
        return
    named = sorted(missing.items(), key=lambda pair: (not pair[0], -pair[1], pair[0]))
    texts = [f"{code!r} ({rows_that(rows)})" for code, rows in named if code][:_SHOWN]
    if len(missing) > _SHOWN:
        texts.append(f"{len(missing) - _SHOWN} more")
    if others := missing.get("", 0):
        many = f"over {MOST}" if len(counts) > MOST else f"{len(counts)}"
        texts.append(f"texts that are not shown ({rows_that(others)}; {many} values)")
    text = f"codes.{codes.name} names no {', '.join(texts)}"
    are_codes = any(missing)
    text += "" if are_codes else ": is this a column of codes?"
    if codes.otherwise is None:
        text += ": such rows cannot be served"
        mark = (codes.mark if are_codes else None) or place.field.mark
        remedy = _entries(named, column_counts)
        yield Finding.at(mark, text, place.element, column, remedy=remedy)
    else:
        rows = sum(missing.values())
        is_rare = rows < max(FEW, _RARELY * sum(counts.values()))
        is_meant = are_codes and (is_rare or codes.otherwise not in OPEN)
        severity = Severity.NOTE if is_meant else Severity.WARNING
        topic = "code tables whose 'otherwise' is used"
        text += f": all become '{codes.otherwise}'"
        yield Finding.of_field(place, column, text, severity, "", topic)


def contradicted(column_counts: Counted, labels: Labels) -> Iterator[Finding]:
    """Yield the codes whose labels, or own words, say another FHIR code than their table.

    A warning where nothing but a slip explains it, as two codes that are swapped: an
    admission that is called an emergency may be an inpatient stay.
    """
    place, column, counts, _ = column_counts
    codes, slips = column_counts.codes, list[tuple[str, str, str]]()
    severity, named = Severity.NOTE, {*codes.table, *missing_codes(column_counts)}
    for code, rows in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        shown = codes.table.get(code, codes.otherwise) if code in named else None
        texts = (("the code itself", code), *labels.get(code, ()))
        words = {
            word: where
            for where, text in reversed(texts)
            for word in says(place.slot, text)
        }
        word, where = words.popitem() if len(words) == 1 else ("", "")
        if not (word and shown and contradicts(word, shown)):
            continue
        text = f"'{code}' {shown}, but {where} says {word} ({rows_that(rows)})"
        slips.append((text, code, HIDDEN if word == CANCELLED else word))
        others = (ours for other, ours in codes.table.items() if other != code)
        if word == CANCELLED or place.slot == "gender" or word in others:
            severity = Severity.WARNING
    if slips:
        text = "; ".join(text for text, *_ in slips[:_SHOWN])
        text = f"codes.{codes.name} makes {text}"
        lines = (f"{_entry(code)}: {word}" for _, code, word in slips[:_SHOWN])
        mark = codes.mark or place.field.mark
        details = place.element, column, severity, "\n".join(lines)
        yield Finding.at(mark, text, *details, "code tables that may be wrong")


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
    are_few = len(counts) <= FEW
    return are_few or (len(counts) <= MOST and (is_often or 2 * named >= len(counts)))


def _entries(named: Sequence[tuple[str, int]], column_counts: Counted) -> str:
    """Return the entries to add, which the check refuses until somebody has decided."""
    takes = column_counts.place.takes or dict.fromkeys(
        column_counts.codes.table.values()
    )
    words = ", ".join(f"{word}{_MEANS.get(word, '')}" for word in takes)
    return "\n".join(
        f"{_entry(code)}: '?'   # {rows_that(n)}; {words}"
        for code, n in named[:_SHOWN]
        if code
    )


def _entry(code: str) -> str:
    return code if _PLAIN.fullmatch(code) else repr(code)


_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


Sampled = Sequence[tuple[Row, Mapping[ItemMapping, Sequence[Row]]]]
"""Rows, each with the rows of the items that have a SELECT or a list of their own."""

ENOUGH = 20
"""In fewer rows or times than these a pattern means nothing."""

_RARE = ("replaced_by", "deceased_at")
"""What few people have by its nature."""


class _Filled(NamedTuple):
    """What may fill a field or an item: the rows, their cells, and what makes a value."""

    finding: Finding
    read: Reader
    rows: Sequence[Row]
    cells: Sequence[int]
    doubt: str = ""

    def by(self, row: Row) -> bool:
        """Whether a row gives a value; what cannot be read is reported elsewhere."""
        try:
            return self.read(row) not in (None, ())
        except CellError:
            return True

    @property
    def is_ever(self) -> bool:
        """Whether any row does."""
        return any(map(self.by, self.rows))


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
    if len(rows) < ENOUGH:
        return
    for filled in _fields_and_items(section, columns, rows, names):
        if filled.is_ever:
            continue
        values = (row[cell] for row in filled.rows for cell in filled.cells)
        has_none = not any(str(v).strip() for v in values if v is not None)
        is_empty = bool(filled.rows) and has_none
        text = f"none of {len(rows):,} rows has it"
        text += ": it is empty in the source" if is_empty else filled.doubt
        severity = Severity.NOTE if is_empty else Severity.WARNING
        topic = "fields that are empty in the source"
        yield replace(filled.finding, text=text, severity=severity, topic=topic)


def _fields_and_items(
    section: ResourceMapping,
    columns: Sequence[str],
    rows: Sampled,
    names: Mapping[str, str],
) -> Iterator[_Filled]:
    """Yield what rows may fill: of an item that they fill, each field instead."""
    positions = {column: at for at, column in enumerate(columns)}
    kind, own = section.resource_type, [row for row, _ in rows]
    for place in own_places(section):
        is_rare = place.field.slot in _RARE or not place.field.columns
        if place.item is None and not is_rare:
            yield _of_field(place, positions, own, names)
    for listed in LISTS[kind]:
        for item in section.items.get(listed.name, ()):
            at = item_positions(item, positions)
            below = [row for _, items in rows for row in items.get(item, ())]
            of = below if item.rows else own
            filled = _of_item(item, listed, at, of, kind)
            if not filled.is_ever:
                yield filled
                continue
            known = {} if item.rows else names
            for place in places_of(section):
                if place.item is item and place.field.columns:
                    yield _of_field(place, at, of, known)


def _of_field(
    place: Place,
    positions: Mapping[str, int],
    rows: Sequence[Row],
    names: Mapping[str, str],
) -> _Filled:
    columns = place.field.columns
    read = compile_cell(Cell(place.field, place.slot, positions), place.kind)
    source = ", ".join(names.get(name, name) for name in columns)
    finding = Finding.at(place.field.mark, "", place.element, source)
    return _Filled(finding, read, rows, [positions[name] for name in columns])


def _of_item(
    item: ItemMapping,
    listed: ListSlot,
    positions: Mapping[str, int],
    rows: Sequence[Row],
    kind: ResourceType,
) -> _Filled:
    fields = filter(None, map(item.fields.get, listed.content))
    content = [name for each in (*fields, *item.lines) for name in each.columns]
    doubt = f": is key '{item.key}' the id of the row?" if item.key else ""
    if item.only_if and (rows or not item.rows):
        doubt = f": is only_if '{item.only_if.column}' as it says?"
    finding = Finding.at(item.mark, "", f"{kind}.{listed.element}")
    cells = [positions[name] for name in content if name in positions]
    return _Filled(finding, item_reader(item, listed, positions), rows, cells, doubt)


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
    if any(map(has_offset, values())):
        return
    zone = rule.zone.key
    text = (
        f"neither the file nor its values name a zone: it is read in {zone}, and no row shows"
        " whether that is wrong. Ask the vendor in which zone it is written"
    )
    remedy = f"time_zone: UTC   # or {zone}"
    yield Finding.of_field(place, column, text, Severity.WARNING, remedy)


def has_offset(value: object) -> bool:
    """Tell whether a value says its own distance from UTC."""
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return isinstance(value, str) and bool(_OFFSET.search(value.strip()))


_OFFSET = re.compile(r":\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)


FAR = timedelta(days=20 * 365)
"""No stay is known so long before: what ends then may well have no end."""


def has_far_days(place: Place) -> bool:
    """Tell whether a field is one whose far days stand for none in many systems."""
    field = place.field
    is_period = place.slot in ("start", "end")
    return is_period and field.time is not None and bool(field.columns)


def far_days(
    place: Place, column: str, values: Iterable[tuple[object, int]], now: datetime
) -> Iterator[Finding]:
    """Yield the far days among values of a start or an end, each with its number of rows.

    A day that comes once is not quoted: it may be a typing error.
    """
    rows_of: Counter[str] = Counter()
    for value, rows in values:
        if (day := _day(value, place)) and day > (now + FAR).date():
            is_day = isinstance(value, datetime) and value.time() == time()
            rows_of[f"{day}" if is_day else str(value).rstrip()] += rows
    days = sorted(text for text, rows in rows_of.items() if rows > 1)
    if days:
        each = (f"{rows_that(rows_of[day], place.slot)} on {day}" for day in days)
        text = f"{' and '.join(each)}: no value? Then set absent"
        absent = json.dumps([*sorted(place.field.absent), *days], ensure_ascii=False)
        remedy = f"absent: {absent}"
        yield Finding.of_field(place, column, text, Severity.WARNING, remedy)
    if others := sum(rows for text, rows in rows_of.items() if text not in days):
        text = f"{rows_that(others, place.slot)} more than 20 years ahead: is a year wrong?"
        yield Finding.of_field(place, column, text, Severity.WARNING)


def _day(value: object, place: Place) -> date | None:
    present = presence(place.field.absent)(value)
    assert place.field.time is not None, "only times are compared with the clock"
    try:
        return None if present is None else read_day(present, place.field.time)
    except ValueError:
        return None
