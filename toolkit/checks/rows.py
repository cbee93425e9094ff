"""What rows show of their mapping, whatever source they come from.

Invalid rows, codes without an entry, fields that no row fills, times that cannot be. An
adapter reads the rows; a check states what they show. No finding quotes a value of a person:
counts, codes, columns and rules only.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from adapters.contract import Record, RowFault, SourceTimedOutError
from adapters.mapping.model import HIDDEN, REMOVED, CodeTable, Mark, ResourceMapping
from adapters.mapping.row_mapper import (
    Cell,
    CellError,
    Reader,
    Row,
    compile_cell,
    item_positions,
    item_reader,
)
from adapters.mapping.slots import LISTS, Place, own_places, places_of
from adapters.mapping.times import presence, read_day, says_offset
from adapters.mapping.values import LONGEST_CODE, as_text
from toolkit.checks.inspection import Findings, Inspection
from toolkit.findings import Finding, Severity

SAMPLE_ROWS = 1000
"""How many rows are read from each end of an order, and at once of a whole list."""

API_PAGE = 100
"""How many rows are requested of an API at once: the largest page of a client."""

ENOUGH_ROWS = 20
"""In fewer rows or times than these a pattern means nothing."""

FEW_ROWS = 5
"""So many rows are no slip of a clerk."""


def rows_that(number: int, verb: str = "") -> str:
    """Return a number of rows in words, with a plural verb: "1 row has", "1,200 rows have"."""
    if number != 1:
        return f"{number:,} rows {verb}".rstrip()
    if not verb:
        return "1 row"
    return "1 row has" if verb == "have" else f"1 row {verb}s"


def selects(section: ResourceMapping) -> Iterator[tuple[str, Mark]]:
    """Yield each SELECT of a section, and where the file has it."""
    yield section.rows, section.mark
    for items in section.items.values():
        yield from ((item.rows, item.mark) for item in items if item.rows)


def plain_text(value: object) -> str:
    """Return the text of a cell, "" for NULL and for a value that has no text."""
    try:
        return "" if value is None else as_text(value)
    except ValueError:
        return ""


# Rows that cannot be served


RULES_OF_CODES = ("no entry for ", "required and empty")
"""How the rules of faults begin that `codes` reports, as it counts all rows."""

_HINTS: Mapping[str, str] = {
    "a local time that does not exist (clock change)": " (set time_zone if the"
    " column is in UTC or another zone; otherwise never: shift serves such rows)",
    "not readable as a time": " (set its format; a month or day of zeros is invalid)",
    "outside the years 1 to 9999": " (if it means no value, add it to absent)",
}


def invalid_rows(inspection: Inspection) -> Findings:
    """Report how many rows of the sample break which rule.

    Faults that another check has counted in all rows are omitted.
    """
    faults = Counter(row for row in inspection.sample if isinstance(row, RowFault))
    for fault, number in faults.most_common():
        rules = [rule for name, rule in inspection.reported if name == fault.column]
        if any(fault.rule.startswith(rule) for rule in rules):
            continue
        text = (
            f"{number:,} of {len(inspection.sample):,} rows of the sample cannot be"
            f" served: {fault.rule}{_HINTS.get(fault.rule, '')}"
        )
        source = inspection.name(fault.column)
        named = [place for place in inspection.places if place.slot == fault.field]
        exact = [p for p in named if ", ".join(p.field.columns) == fault.column]
        if named:
            yield Finding.of_field((exact or named)[0], source, text, Severity.ERROR)
        else:
            yield Finding.at(
                inspection.section.mark, text, str(inspection.kind), source
            )


def empty(place: Place, column: str, rows: int) -> Finding:
    """Return the finding of rows without a value in a required field."""
    text = (
        f"{rows_that(rows, 'have')} no value here, but the field requires one: they cannot"
        " be served"
    )
    return Finding.of_field(place, column, text, Severity.ERROR)


_CODE_OF_RULE = re.compile(r" for .* in (?=codes\.)", re.DOTALL)


def without_code(rule: str) -> str:
    """Return the rule of a fault without the code that it quotes, to count faults alike."""
    return _CODE_OF_RULE.sub(" in ", rule)


# Codes


MOST_DIFFERENT = 100
"""A column with more different values than this holds no codes."""

_OFTEN = 3
"""Values are codes if each has so many rows on average."""

_RARELY = 0.05
"""In a larger share of the rows, codes without an entry are a warning and no note."""

_OPEN = ("UNK", "unknown", "other", HIDDEN, REMOVED)
"""Values of `otherwise` that say nothing of the code: an entry may have been forgotten."""

_SHOWN = 20
MEANS = {HIDDEN: "never served", REMOVED: "answered 410"}
"""What the two words mean that are no status of FHIR."""

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


def code_of(place: Place, cell: object) -> str:
    """Return the code in a cell of a coded field, "" for none."""
    text = plain_text(cell)
    return "" if text in place.field.absent else text


@dataclass(frozen=True)
class CodeCounts:
    """The codes of one field and how many rows have each.

    `nothing` is the number of rows without a code, `column` the column as the source names it.
    """

    place: Place
    column: str
    counts: Mapping[str, int]
    nothing: int

    @classmethod
    def of(cls, inspection: Inspection, place: Place) -> "CodeCounts":
        """Count the codes of a field, in the rows that meet its `only_if`."""
        counts: Counter[str] = Counter()
        for value, rows in inspection.counted_codes(place):
            counts[code_of(place, value)] += rows
        nothing = counts.pop("", 0)
        return cls(place, inspection.column(place), counts=counts, nothing=nothing)

    @property
    def table(self) -> CodeTable:
        """The table that reads the field."""
        table = self.place.field.codes
        assert table is not None, "only coded fields are counted"
        return table

    @property
    def unnamed(self) -> Mapping[str, int]:
        """How many rows have each code without an entry in the table.

        Texts that may be no codes are not quoted (decision 16): "" has the sum of their rows.
        """
        unnamed = Counter[str]()
        are_codes = self._are_codes
        for code, rows in self.counts.items():
            if code in self.table.table:
                continue
            if are_codes and len(code) <= LONGEST_CODE:
                unnamed[code] += rows
            else:
                unnamed[""] += rows
        return unnamed

    @property
    def _are_codes(self) -> bool:
        """Whether the values are codes, rather than names of people or free text.

        They are if there are few, if each has several rows, or if the table names half of them:
        a small copy of a hospital has few rows of each code.
        """
        different = len(self.counts)
        if different <= FEW_ROWS:
            return True
        if different > MOST_DIFFERENT:
            return False
        named = self.counts.keys() & self.table.table.keys()
        are_repeated = sum(self.counts.values()) >= _OFTEN * different
        return are_repeated or 2 * len(named) >= different

    def findings(self, required: Collection[str]) -> Findings:
        """Yield the finding of codes without an entry, and of a required field without a code."""
        place, table, unnamed = self.place, self.table, self.unnamed
        is_required = place.item is None and place.field.slot in required
        if self.nothing and table.otherwise is None and is_required:
            yield empty(place, self.column, self.nothing)
        if not unnamed:
            return
        codes = sorted((code for code in unnamed if code), key=self._rank)
        texts = [f"{c!r} ({rows_that(unnamed[c])})" for c in codes[:_SHOWN]]
        if len(codes) > _SHOWN:
            texts.append(f"{len(codes) - _SHOWN} more")
        if hidden_rows := unnamed.get("", 0):
            values = f"{len(self.counts)} values"
            if len(self.counts) > MOST_DIFFERENT:
                values = f"over {MOST_DIFFERENT} values"
            texts.append(f"texts not shown here ({rows_that(hidden_rows)}; {values})")
        text = f"codes.{table.name} has no entry for {', '.join(texts)}"
        doubt = "" if codes else ". Check that this is a column of codes"
        if table.otherwise is None:
            text += f": such rows cannot be served{doubt}"
            mark = (table.mark if codes else None) or place.field.mark
            remedy = "\n".join(map(self._entry, codes[:_SHOWN]))
            yield Finding.at(mark, text, place.element, self.column, remedy=remedy)
            return
        rows = sum(unnamed.values())
        is_rare = rows < max(FEW_ROWS, _RARELY * sum(self.counts.values()))
        is_meant = bool(codes) and (is_rare or table.otherwise not in _OPEN)
        severity = Severity.NOTE if is_meant else Severity.WARNING
        text += f": all become '{table.otherwise}'{doubt}"
        topic = "code tables whose 'otherwise' is used"
        yield Finding.of_field(place, self.column, text, severity, topic=topic)

    def _rank(self, code: str) -> tuple[int, str]:
        """Return a sort key: codes with many rows first."""
        return -self.counts[code], code

    def _entry(self, code: str) -> str:
        """Return the entry to add, with "?" as its value and the choices as a comment."""
        values = self.place.takes or dict.fromkeys(self.table.table.values())
        choices = ", ".join(f"{v} ({MEANS[v]})" if v in MEANS else v for v in values)
        written = code if _PLAIN.fullmatch(code) else repr(code)
        return f"{written}: '?'   # {rows_that(self.counts[code])}; {choices}"


def codes(inspection: Inspection) -> Findings:
    """Count the codes of each field and compare them with their tables."""
    for place in inspection.places:
        if place.field.codes is None or not place.field.columns:
            continue
        try:
            counts = CodeCounts.of(inspection, place)
        except SourceTimedOutError:
            subject = f"codes of {inspection.column(place)}"
            inspection.skip(subject, "it took longer than source.timeout_seconds")
            continue
        column = place.field.columns[0]
        inspection.reported |= {(column, rule) for rule in RULES_OF_CODES}
        yield from counts.findings(inspection.section.required)


# Fields that no row fills


_RARE = ("replaced_by", "deceased_at")
"""Fields that few patients have, so that a sample without a value is nothing unusual."""

_EMPTY_IN_SOURCE = "fields that are empty in the source"


def never_filled(inspection: Inspection) -> Findings:
    """Report each field and each item of a list that no sampled row fills.

    Columns without any value are a note; columns with values that give none are a warning.
    """
    columns, rows = inspection.cells()
    if len(rows) < ENOUGH_ROWS:
        return
    section = inspection.section
    positions = {column: at for at, column in enumerate(columns)}
    own_rows = [row for row, _ in rows]
    for place in own_places(section):
        if place.item is None and place.field.slot not in _RARE:
            yield from _never_filled_field(inspection, place, positions, own_rows)
    for listed in LISTS[section.resource_type]:
        for item in section.items.get(listed.name, ()):
            in_item = item_positions(item, positions)
            item_rows = own_rows
            if item.rows:
                item_rows = [row for _, items in rows for row in items.get(item, ())]
            if _is_filled(item_reader(item, listed, positions), item_rows):
                places = [place for place in places_of(section) if place.item is item]
                for place in places:
                    yield from _never_filled_field(
                        inspection, place, in_item, item_rows
                    )
                continue
            fields = [item.fields[n] for n in listed.content if n in item.fields]
            names = [name for field in (*fields, *item.lines) for name in field.columns]
            at = [in_item[name] for name in names if name in in_item]
            cells = [row[index] for row in item_rows for index in at]
            remedy = ""
            if item.only_if and (item_rows or not item.rows):
                remedy = f". Check the values of only_if '{item.only_if.column}'"
            elif item.key:
                remedy = f". Check that key '{item.key}' is the id of the row"
            severity, text = _emptiness(len(own_rows), cells, remedy)
            element = f"{section.resource_type}.{listed.element}"
            yield Finding.at(
                item.mark, text, element, severity=severity, topic=_EMPTY_IN_SOURCE
            )


def _never_filled_field(
    inspection: Inspection,
    place: Place,
    positions: Mapping[str, int],
    rows: Sequence[Row],
) -> Findings:
    """Yield the finding of a field that has columns and that no row fills."""
    columns = place.field.columns
    read = compile_cell(Cell(place.field, place.slot, positions), place.kind)
    if columns and not _is_filled(read, rows):
        cells = [row[positions[name]] for row in rows for name in columns]
        severity, text = _emptiness(len(rows), cells)
        yield inspection.at(place, text, severity, topic=_EMPTY_IN_SOURCE)


def _is_filled(read: Reader, rows: Iterable[Row]) -> bool:
    """Whether one of the rows gives a value, or a fault, which `invalid_rows` reports."""
    for row in rows:
        try:
            if read(row) not in (None, ()):
                return True
        except CellError:
            return True
    return False


def _emptiness(
    rows: int, cells: Sequence[object], remedy: str = ""
) -> tuple[Severity, str]:
    """Return the severity and the text of a finding that none of so many rows has a value.

    It is a note if the cells are all empty; else a warning, which ends in the remedy.
    """
    text = f"none of {rows:,} rows has a value"
    is_empty = not any(str(cell).strip() for cell in cells if cell is not None)
    if cells and is_empty:
        return Severity.NOTE, f"{text}: it is empty in the source"
    return Severity.WARNING, text + remedy


# Times


ZONE = "Check the time zone of the column (time_zone:)"


_TIMES = ("start", "end", "last_updated", "deceased_at")
_NEVER_AHEAD = ("start", "last_updated")


def doubtful_times(inspection: Inspection) -> Findings:
    """Report times of the sample that are in the future, or all at midnight of UTC."""
    for place in inspection.places:
        rule = place.field.time
        if rule is None or place.slot not in _TIMES:
            continue
        records: Sequence[Record] = inspection.records
        if place.slot == "start":
            begun = ("in-progress", "finished")
            records = [stay for stay in inspection.stays if stay.status in begun]
        values = (getattr(record, place.slot, None) for record in records)
        times: list[datetime] = [value for value in values if value is not None]
        if rule.at is None and len(times) >= ENOUGH_ROWS:
            midnight = time()
            are_utc = all(m.astimezone(UTC).time() == midnight for m in times)
            are_local = all(m.astimezone(rule.zone).time() == midnight for m in times)
            if are_utc and not are_local:
                number = f"{len(times):,}"
                text = f"all {number} times are at 00:00 in UTC, not in {rule.zone}"
                yield inspection.at(place, f"{text}. {ZONE}", Severity.WARNING)
        if place.slot not in _NEVER_AHEAD:
            continue
        now = inspection.now
        future = [moment for moment in times if moment > now]
        if future:
            text = (
                f"{len(future):,} of {len(times):,} times are in the future. {ZONE}, the clock"
                " and the years"
            )
            yield inspection.at(place, text, Severity.WARNING)


_OFFSET = re.compile(r":\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)$", re.IGNORECASE)


def has_offset(value: object) -> bool:
    """Whether a time, or a text of one, has an offset from UTC of its own."""
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return isinstance(value, str) and bool(_OFFSET.search(value.strip()))


def unknown_zone(inspection: Inspection, place: Place) -> Findings:
    """Report a `last_updated` whose zone neither the file nor an offset in a value names.

    No other check can show that its values are read in the wrong zone.
    """
    rule = place.field.time
    is_change = place.field.slot == "last_updated" and bool(place.field.columns)
    if rule is None or rule.says_zone or not is_change or says_offset(rule.format):
        return
    if any(map(has_offset, inspection.values(place))):
        return
    zone = rule.zone.key
    text = (
        f"neither the file nor the values name a time zone: the service reads them in {zone},"
        " and no check can verify that. Ask the vendor for the zone, and set time_zone"
    )
    remedy = f"time_zone: UTC   # or {zone}"
    yield inspection.at(place, text, Severity.WARNING, remedy)


FAR_AHEAD = timedelta(days=20 * 365)
"""A later time is no plan: it probably stands for no value."""

EARLIEST_DAY = date(1000, 1, 1)
"""An earlier day is a typing error, or stands for no value."""


def far_days(inspection: Inspection) -> Findings:
    """Report days before EARLIEST_DAY and after FAR_AHEAD, with their numbers of rows.

    A day that one row has is counted and not quoted: it may be a typing error.
    """
    for place in inspection.places:
        if not place.field.time or not place.field.columns or place.rows:
            continue
        # By far day, as the source writes it.
        far: Counter[str] = Counter()
        for value, rows in inspection.counted_days(place):
            day = _day(value, place)
            if day and not EARLIEST_DAY <= day <= (inspection.now + FAR_AHEAD).date():
                is_day = isinstance(value, datetime) and value.time() == time()
                far[str(day) if is_day else str(value).rstrip()] += rows
        repeated = sorted(text for text, rows in far.items() if rows > 1)
        if repeated:
            if place.slot in ("start", "end"):
                groups = [f"{rows_that(far[d], place.slot)} on {d}" for d in repeated]
            else:
                groups = [f"{rows_that(far[d], 'have')} {d}" for d in repeated]
            text = f"{' and '.join(groups)}. If that means no value, set absent"
            values = [*sorted(place.field.absent), *repeated]
            remedy = f"absent: {json.dumps(values, ensure_ascii=False)}"
            yield inspection.at(place, text, Severity.WARNING, remedy)
        single = sum(rows for text, rows in far.items() if text not in repeated)
        if single:
            text = (
                f"{rows_that(single, 'have')} a day more than 20 years ahead, or before"
                " the year 1000. Check their years"
            )
            yield inspection.at(place, text, Severity.WARNING)


def _day(value: object, place: Place) -> date | None:
    """Return the day of a cell of a time, None for no value and for an unreadable one."""
    present = presence(place.field.absent)(value)
    assert place.field.time is not None, "only times are compared with the clock"
    try:
        return None if present is None else read_day(present, place.field.time)
    except ValueError:
        return None
