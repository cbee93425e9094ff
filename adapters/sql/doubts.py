"""What only data beside the mapped columns shows: a mapping that is served, and wrong.

Labels of lookup tables, other times of the same rows, the times behind days, stays of merged
patients. Labels are compared with words, and never quoted.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from adapters.contract import (
    EncounterRecord,
    RowFault,
    SortKey,
    SourceDataError,
)
from adapters.inspection import (
    ENOUGH,
    FEW,
    SAMPLE,
    Finding,
    Severity,
    contradicted,
    has_offset,
    plain_text,
    rows_that,
)
from adapters.labels import marks
from adapters.mapping.model import ResourceMapping, TimeRule
from adapters.mapping.slots import Kind, Place
from adapters.mapping.times import to_instant
from adapters.mapping.values import text_or_none
from adapters.sql.catalog import Holds, Table, read_table
from adapters.sql.dialects.base import Origin
from adapters.sql.inspect import Findings, Inspection
from adapters.sql.joins import arguments_behind, comparisons
from adapters.sql.merges import MOST
from adapters.sql.query import ALWAYS, Columns, all_of, in_rows

_CLEARLY = 0.9
_SAME, _NEAR = timedelta(minutes=1), timedelta(days=2)
_HOUR = timedelta(hours=1)
_CLOCKS = (Holds.LOCAL_TIME, Holds.INSTANT)
_CLOCK = re.compile(r"\d[ T](?!00:00(?![:.]*0*[1-9]))\d\d:\d\d")
_NO, _YES = {"", "0", "n", "no", "f", "false"}, {"1", "y", "yes", "t", "true"}
_YES |= {*"josvx"}
_PLANNED = re.compile("plan|expec|prev|sched|appoi|book|erwart|agend", re.IGNORECASE)


class Doubts:
    """The checks of a section that read what the mapping does not select."""

    def __init__(self, inspection: Inspection) -> None:
        self._of, self._section = inspection, inspection.section
        self._database = inspection.database
        self._rows = inspection.section.mapping.rows

    def labels(self) -> Findings:
        """Report codes whose labels in a lookup table say another FHIR code."""
        for counts, codes in self._of.counted:
            origin = None if counts.place.rows else self._of.origin(counts.place)
            labels: dict[str, list[tuple[str, str]]] = {}
            for key in self._lookups(origin) if origin else ():
                for code, where, label in self._labels(key, codes):
                    labels.setdefault(code, []).append((where, label))
            yield from contradicted(counts, labels)

    def _lookups(self, origin: Origin) -> Iterator[Origin]:
        """Yield the keys that a column of codes leads to: its own, declared, joined."""
        table = read_table(self._database, origin.table)
        # A table of people may have few rows: nothing of it is read.
        keys = [origin] * bool(table and table.is_unique(origin.column))
        keys += [
            Origin(foreign.table, foreign.referred[0])
            for foreign in (table.foreign_keys if table else ())
            if foreign.columns == (origin.column,)
        ]
        for each in comparisons(self._rows):
            ends = (each.inner.origin, each.outer.origin)
            for one, other in (ends, ends[::-1]):
                keys += [other] * (_plain(one) == _plain(origin))
        # The tables of sections hold people and stays.
        own = set[str]()
        for section in self._of.mapping.sections:
            ids = section.fields["id"].columns
            origins = self._of.origins_of(section.rows) if section.rows else {}
            own |= {_plain(origins[name])[0] for name in ids if name in origins}
        unlike = {_plain(key): key for key in keys}
        yield from (key for (name, _), key in unlike.items() if name not in own)

    def _labels(
        self, key: Origin, codes: Sequence[object]
    ) -> Iterator[tuple[str, str, str]]:
        """Yield codes with the columns and texts of their one row in a lookup table."""
        if (table := read_table(self._database, key.table)) is None:
            return
        texts = [each.name for each in table.columns if each.holds is Holds.TEXT]
        names = {name.lower(): name for name in table.by_name}
        column: Any = sa.column(names.get(key.column.lower(), key.column))
        select = sa.select(column, *map(sa.column, texts)).where(column.in_(codes))
        try:
            rows = self._first(select.select_from(_written(table)), len(codes) + 1)
        except SourceDataError:
            return
        for code, *cells in rows if len({row[0] for row in rows}) == len(rows) else ():
            for name, cell in zip(texts, cells, strict=True):
                # F may be female, or a flag.
                if name != column.name and len(str(cell or "")) > 1:
                    yield text_or_none(code) or "", f"{table.name}.{name}", str(cell)

    def _first(self, select: Any, rows: int) -> Sequence[Any]:
        return self._database.fetch(self._database.dialect.first(select, rows))

    @cached_property
    def _of_id(self) -> tuple[Origin, Table, Columns] | None:
        """The table of the id: the column of the id, and its columns as they are."""
        origin = self._of.origin(self._of.place("id"))
        table = read_table(self._database, origin.table) if origin else None
        if origin is None or table is None:
            return None
        rows = f"SELECT * FROM {table.written}"
        try:
            described = self._database.columns(rows)
            columns = Columns(self._database.dialect, rows, described)
            self._database.fetch(columns.select([origin.column], ALWAYS, limit=1))
        except SourceDataError:
            # The account may read a view of it alone.
            return None
        return origin, table, columns

    def marks(self) -> Findings:
        """Report served rows that a column of their table marks, which the file does not name.

        More rows are served than marked: else `active` stands for who is still there.
        """
        if self._of_id is None:
            return
        (origin, table, columns), own = self._of_id, self._section
        fields = (place.field for place in self._of.places)
        named = " ".join((self._rows, *(c for f in fields for c in f.columns)))
        key = columns.column(origin.column)
        served = in_rows(key, own.columns, own.id, self._of.served)
        for name in table.by_name:
            meant = marks(name) & {"deleted", "cancelled", "active"}
            if not meant or re.search(rf"\b{re.escape(name)}\b", named, re.IGNORECASE):
                continue
            counts = columns.count_by(columns.column(name), served, 3)
            values = self._database.fetch(counts)
            rows = {plain_text(value).lower(): number for value, number in values}
            no, yes = (next(iter(rows.keys() & each), None) for each in (_NO, _YES))
            if len(values) != 2 or no is None or yes is None:
                continue
            gone, others = (no, yes) if meant == {"active"} else (yes, no)
            if rows[gone] <= rows[others]:
                text = (
                    f"{rows[gone]:,} of {rows_that(sum(rows.values()))} that clients see have"
                    f" '{gone}' in {name}, which the file does not name: are they cancelled"
                    " or deleted?"
                )
                of, source = (
                    (own.mapping.mark, text, self._of.kind),
                    Origin(table.name, name),
                )
                yield Finding.at(*of, str(source), Severity.WARNING)

    def numbers(self) -> Findings:
        """Report visit numbers that stays of other patients have in a table before this one.

        Stays of one patient may share theirs: one visit in two tables.
        """
        own = self._section.mapping
        every = [s for s in self._of.sample if isinstance(s, EncounterRecord)]
        # No database refuses so many values.
        every = [s for s in every if s.visit_number][:: 1 + len(every) // SAMPLE]
        stays = {stay.visit_number or "": stay for stay in every}
        for section in self._of.mapping.beside.values():
            if section is own:
                return
            if not (system := _numbers_of(own)) or system != _numbers_of(section):
                continue
            other, fields = self._of.opened(section), section.fields
            number, patient = fields["visit_number"], fields["patient_id"]
            among = other.columns.equal(number, stays)
            names = [number.columns[0], patient.columns[0]]
            select = other.columns.select(names, all_of([other.filters.served, among]))
            pairs = {
                (text_or_none(value) or "", f"{patient.prefix}{text_or_none(of)}")
                for value, of in self._database.fetch(select)
            }
            shared = {number for number, _ in pairs} & stays.keys()
            mixed = sum((each, stays[each].patient_id) not in pairs for each in shared)
            if mixed >= max(ENOUGH, len(shared) / 2):
                text = (
                    f"{mixed:,} of {len(stays):,} stays share theirs with other patients of"
                    f" {fields['id'].prefix}: give each source its own visit_number_system"
                )
                place = self._of.place("visit_number")
                yield self._of.at(place, text, Severity.WARNING)

    def changes(self) -> Findings:
        """Report rows without a last change where another audit time of the table is filled."""
        lost, kind = list[tuple[int, int, Origin]](), self._of.kind
        for origin, pairs in self._beside:
            meant = marks(origin.column)
            if meant & {"audit", "changed"} and "deleted" not in meant:
                count = sum(v is not None and not one.last_updated for one, v in pairs)
                lost.append((count, len(pairs), origin))
        count, rows, origin = max(lost, default=(0, 0, Origin("", "")))
        if count < ENOUGH:
            return
        text = f"{count:,} of {rows_that(rows, 'have')} none, but {origin} is filled"
        if "last_updated" in self._section.mapping.fields:
            place = self._of.place("last_updated")
            name = (self._of.origin(place) or origin).column
            remedy = f"in the SELECT: COALESCE({name}, {origin.column})"
            yield self._of.at(place, text, Severity.WARNING, remedy)
            return
        of = (s for s in self._of.mapping.beside.values() if s.resource_type is kind)
        if any(SortKey.LAST_UPDATED in each.sorts for each in of):
            text = f"'_lastUpdated' is offered, and this source has no last_updated: {text}"
            yield self._of.finding(text, Severity.WARNING)

    @cached_property
    def _beside(self) -> Sequence[tuple[Origin, Sequence[tuple[Any, Any]]]]:
        """The times of the table of the id, mapped or not: records with their values."""
        if self._of_id is None:
            return ()
        (origin, table, columns), place = self._of_id, self._of.place("id")
        every = [row for row in self._of.sample if not isinstance(row, RowFault)]
        every = every[:: max(1, len(every) // SAMPLE)]
        records = {each.id.removeprefix(place.field.prefix): each for each in every}
        names = [column.name for column in table.columns if column.holds in _CLOCKS]
        among = columns.among(columns.column(origin.column), records)
        cells = self._database.fetch(columns.select([origin.column, *names], among))
        # Of several rows of an id the SELECT chooses one.
        if len(cells) > len(records):
            return ()
        pairs = [(records.get(str(text_or_none(id))), row) for id, *row in cells]
        return [
            (Origin(table.name, name), [(one, row[at]) for one, row in pairs if one])
            for at, name in enumerate(names)
        ]

    def times(self) -> Findings:
        """Report times that others of the same rows, or a time behind a day, contradict."""
        for place in self._of.places:
            rule = place.field.time
            if (
                rule
                and place.kind is Kind.TIME
                and place.field.columns
                and not place.rows
            ):
                yield from self._days(place, rule)
                if origin := self._of.origin(place):
                    yield from self._zone(place, rule, origin)
                if origin and place.slot == "start":
                    yield from self._real_start(place, rule, origin)

    def _real_start(self, place: Place, rule: TimeRule, start: Origin) -> Findings:
        """Report a start that planned stays have, where another time has the real one.

        That is empty for all planned stays and filled for the others, with another time of
        about the same day. A column that holds either of both is right.
        """
        mapped = [
            _plain(origin) for p in self._of.places if (origin := self._of.origin(p))
        ]
        for origin, pairs in self._beside:
            planned, present, begun = (
                [
                    (stay.start, _moment(v, rule))
                    for stay, v in pairs
                    if stay.start and stay.status in of
                ]
                for of in (["planned"], ["in-progress"], ["in-progress", "finished"])
            )
            are_planned = len(planned) >= FEW and not any(v for _, v in planned)
            is_filled = all(
                len(of) >= least and sum(bool(v) for _, v in of) >= _CLEARLY * len(of)
                for of, least in ((present, FEW), (begun, ENOUGH))
            )
            differ = sum(bool(v) and _SAME < abs(s - v) < _NEAR for s, v in begun if v)
            is_other = differ >= len(begun) / 2 and _plain(origin) not in mapped
            if are_planned and is_filled and is_other:
                text = (
                    f"planned stays have it too, and {origin} is filled for the others alone"
                    f" ({differ:,} of {len(begun):,} differ): is that the real start?"
                )
                remedy = f"in the SELECT: COALESCE({origin.column}, {start.column})"
                is_named = _PLANNED.search(start.column)
                severity = Severity.WARNING if is_named else Severity.NOTE
                yield self._of.at(place, text, severity, remedy)

    def _zone(self, place: Place, rule: TimeRule, own: Origin) -> Findings:
        """Report a time that is whole hours off one with a zone, in nearly all rows.

        Of an end that may be so: some stays take whole hours.
        """
        columns = {_plain(origin): records for origin, records in self._beside}
        if any(has_offset(value) for _, value in columns.get(_plain(own), ())):
            return
        for origin, records in self._beside:
            apart = [
                getattr(record, place.slot) - moment
                for record, value in records
                if getattr(record, place.slot) and has_offset(value)
                if (moment := _moment(value, rule))
            ]
            whole = [
                n
                for each in apart
                if abs(each - (n := round(each / _HOUR)) * _HOUR) <= _SAME
            ]
            low, high = min(whole, default=0), max(whole, default=0)
            odd = len(whole) - whole.count(0)
            is_clear = odd >= max(ENOUGH, len(apart) / 3) and high - low <= 1
            # Two numbers: one in summer, one in winter.
            if is_clear and len(whole) >= _CLEARLY * len(apart):
                by = f"{low:+}" if low == high else f"{low:+} or {high:+}"
                text = (
                    f"{odd:,} of {len(apart):,} times are {by} hours off {origin}, which has"
                    f" a zone: is {rule.zone} right (time_zone:)?"
                )
                severity = Severity.NOTE if place.slot == "end" else Severity.WARNING
                yield self._of.at(place, text, severity)
                return

    def _days(self, place: Place, rule: TimeRule) -> Findings:
        """Report a day whose time of day stands in a column beside, or behind it."""
        name, origin = place.field.columns[0], self._of.origin(place)
        if (rule.at is None and origin) or len(place.field.columns) > 1:
            return
        if origin and (table := read_table(self._database, origin.table)):
            stem, is_date, _ = origin.column.lower().rpartition("date")
            clocks = [each.name for each in table.columns if each.holds in _CLOCKS]
            times = [each for each in clocks if each.lower().startswith(stem)]
            if stem and is_date and times and origin.column not in clocks:
                text = f"a date, at the same time of day in all rows: does {times[0]} hold it?"
                yield self._of.at(place, text, Severity.WARNING)
            return
        shown = self._section.columns.select([name], self._of.served, limit=SAMPLE)
        values = [value for (value,) in self._database.fetch(shown) if value]
        if any(map(_has_clock, values)) or (rule.at is None and len(values) < ENOUGH):
            return
        for column, tables in arguments_behind(self._rows, name):
            source = self._database.dialect.bound(tables, rule.zone)
            select: Any = sa.select(sa.literal_column(column)).select_from(source)
            try:
                rows = self._first(select, SAMPLE)
            except SourceDataError:
                continue
            number = sum(_has_clock(value) for (value,) in rows)
            # Fewer may be those of a condition, as in CASE WHEN.
            if number and number >= len(rows) / 10:
                text = (
                    f"the SELECT keeps the day of {column} alone, which has a time of day in"
                    f" {number:,} of {len(rows):,} rows: select it as it is, without at:"
                )
                yield self._of.at(place, text, Severity.WARNING)
                return

    def merges(self) -> Findings:
        """Report merges of which the patient who was replaced has the newest stay.

        Where stays keep the number of a merged patient it may be so: a double that is found
        at once.
        """
        merges, fields = self._section.merges, self._section.mapping.fields
        start, field = fields.get("start"), fields["patient_id"]
        if merges is None or not (start and start.columns and field.columns):
            return
        pairs = merges.pairs(self._database)[: MOST // 2]
        columns, names = self._section.columns, [field.columns[0], start.columns[0]]
        patients = sorted({id for pair in pairs for id in pair})
        among = columns.among(columns.column(names[0]), patients)
        newest: dict[str | None, str] = {}
        stays = columns.select(names, among, limit=10 * SAMPLE)
        for patient, began in self._database.fetch(stays):
            id, began = text_or_none(patient), str(began or "")
            newest[id] = max(began, newest.get(id, ""))
        known = [(a, b) for a, b in pairs if newest.get(a) or newest.get(b)]
        late = sum(newest.get(a, "") > newest.get(b, "") for a, b in known)
        if late >= max(FEW, _CLEARLY * len(known)):
            text = (
                f"of {len(known):,} merges with stays, the patient who was replaced has the"
                f" newest stay in {late:,}: are both patients the wrong way round?"
            )
            severity = Severity.NOTE if field.follows_merges else Severity.WARNING
            yield self._of.at_survivor(text, severity)


def _numbers_of(section: ResourceMapping) -> tuple[str | None, ...]:
    """Return system and hospital of the visit numbers, nothing where rows say them."""
    systems = map(section.fields.get, ("visit_number_system", "organization_id"))
    said = [each for each in systems if each]
    read = map(section.fields.get, ("visit_number", "patient_id"))
    is_constant = not any(each.columns for each in said)
    are_columns = all(each and each.columns for each in read)
    return tuple(s.constant for s in said) if is_constant and are_columns else ()


def _moment(value: object, rule: TimeRule) -> datetime | None:
    try:
        return None if value is None else to_instant(value, rule)
    except ValueError:
        return None


def _has_clock(value: object) -> bool:
    if isinstance(value, datetime):
        return value.time() != time()
    return isinstance(value, str) and bool(_CLOCK.search(value))


def _written(table: Table) -> Any:
    return sa.table(table.bare, schema=table.schema)


def _plain(origin: Origin) -> tuple[str, str]:
    """Return table and column as two names of the same compare, with a schema or not."""
    table = origin.table.rpartition(".")[2]
    return re.sub(r'["`]', "", table).lower(), origin.column.lower()
