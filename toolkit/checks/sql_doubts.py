"""What only data beside the mapped columns shows: a mapping that is served, and wrong.

Labels of lookup tables, other times of the same rows, the times behind days, stays of merged
patients. Labels are compared with words, and never quoted.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime, time, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from adapters.contract import (
    EncounterRecord,
    PatientRecord,
    ResourceType,
    RowFault,
    SortKey,
    SourceDataError,
)
from adapters.mapping.model import ResourceMapping, TimeRule
from adapters.mapping.slots import REFERS, Kind, Place
from adapters.mapping.times import to_instant
from adapters.mapping.values import text_or_none
from adapters.sql.dialects.base import Origin, Sql
from adapters.sql.merges import MOST
from adapters.sql.query import ALWAYS, Columns, all_of, in_rows
from toolkit.catalogue import ForeignKey, Holds, Table, TableColumn, read_table
from toolkit.checks.engine import (
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
from toolkit.checks.joins import arguments_behind, comparisons, tables_of
from toolkit.checks.labels import (
    CANCELLED,
    MERGES,
    STATES,
    TABLES,
    holds_people,
    is_audit,
    is_mark,
    names_only,
    says,
    words_of,
)
from toolkit.checks.plausibility import CLEARLY
from toolkit.checks.sql import Findings, Inspection

_SAME, _NEAR = timedelta(minutes=1), timedelta(days=2)
_HOUR = timedelta(hours=1)
_EARLY = 0.05
_CLOCKS = (Holds.LOCAL_TIME, Holds.INSTANT)
_CLOCK = re.compile(r"\d[ T](?!00:00(?![:.]*0*[1-9]))\d\d:\d\d")
_NO, _YES = {"", "0", "n", "no", "f", "false"}, {"1", "y", "yes", "t", "true"}
_YES |= {*"josvx"}
_VALUES = 100
"""How many values of a column are counted."""
_GONE = {"deleted", "cancelled", "active"}
_KEYS = ("patient_id", "organization_id", "functional_unit")
_STATES = {
    "start": ("planned", "in-progress", "in-progress finished"),
    "end": ("in-progress", "finished", "finished"),
}
"""The states of stays that have a planned time alone, that are new, and that have a real one."""
_TIME_OF_DAY = re.compile("time|tim$|zeit|heure|hour|hora|ora$|clock|hhmm")
_DAY_OR_TIME = re.compile(
    "datetime|timestamp|datum|date|data|fecha|day|jour|dat$|dt$|uhrzeit|zeit|time|tim$"
    "|heure|hour|hora|ora$|clock|hhmm|_"
)
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
        keys += self._referred(origin)
        for each in comparisons(self._rows):
            ends = (each.inner.origin, each.outer.origin)
            for one, other in (ends, ends[::-1]):
                keys += [other] * (_plain(one) == _plain(origin))
        # The tables of sections hold people and stays.
        own = {table for _, table in self._sections}
        unlike = {_plain(key): key for key in keys}
        yield from (key for (name, _), key in unlike.items() if name not in own)

    @cached_property
    def _sections(self) -> Collection[tuple[ResourceType, str]]:
        """The types of all sections, each with the table of its ids."""
        tables = ((s, self._of.table_of(s)[0]) for s in self._of.mapping.sections)
        return {(s.resource_type, _plain(Origin(of, ""))[0]) for s, of in tables if of}

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
        return self._database.fetch(select.limit(rows))

    @cached_property
    def _of_id(self) -> tuple[str, Table, Columns] | None:
        """The table of the id: the column of the id, and its columns as they are."""
        name, computed, id = self._of.table_of(self._section.mapping)
        if not id or (table := read_table(self._database, name)) is None:
            return None
        rows = computed or f"SELECT * FROM {table.written}"
        try:
            described = self._database.columns(rows)
            columns = Columns(self._database.dialect, rows, described)
            self._database.fetch(columns.select([id], ALWAYS, limit=1))
        except SourceDataError:
            # The account may read a view of it alone; an id may be made of two tables.
            return None
        return id, table, columns

    @property
    def _table(self) -> Table | None:
        return self._of_id[1] if self._of_id else None

    def _unnamed(
        self, table: Table | None, idle: Collection[str] = ()
    ) -> Sequence[TableColumn]:
        """The columns of a table that the file does not name, but for idle ones."""
        fields = (place.field for place in self._of.places)
        named = " ".join((self._rows, *(c for f in fields for c in f.columns)))
        words = Counter(word.lower() for word in re.findall(r"\w+", named))
        words.subtract(idle)
        columns = table.columns if table else ()
        return [each for each in columns if words[each.name.lower()] <= 0]

    def _values(self, column: str) -> Mapping[str, int]:
        """Return how many served rows have each of the commonest values of a column."""
        assert self._of_id is not None, "the table has the column"
        (id, _, columns), own = self._of_id, self._section
        served = in_rows(columns.column(id), own.columns, own.id, self._of.served)
        counts = columns.count_by(columns.column(column), served, _VALUES)
        try:
            values = self._database.fetch(counts)
        except SourceDataError:
            # Of a type that the database does not group.
            return {}
        rows: Counter[str] = Counter()
        for value, number in values:
            rows[plain_text(value)] += number
        return rows

    def marks(self) -> Findings:
        """Report served rows that a column of their table marks, which the file does not name.

        More rows are served than marked: else `active` stands for who is still there.
        """
        for column in self._unnamed(self._table):
            name, meant = column.name, words_of(column.name) & _GONE
            is_state = column.holds is Holds.TEXT and words_of(name, STATES)
            if not (meant or is_state or name.lower() == "docstatus"):
                continue
            rows = self._values(name)
            gone = [value for value in rows if _is_gone(name, value, rows)]
            number, every = sum(map(rows.__getitem__, gone)), sum(rows.values())
            if 0 < number <= every / 2:
                value = f"'{gone[0].lower()}'" if len(gone) == 1 else "a value"
                text = (
                    f"{number:,} of {rows_that(every)} that clients see have {value} in"
                    f" {name}, which the file does not name: are they cancelled or deleted?"
                )
                source = f"{self._table.name}.{name}" if self._table else name
                details = self._of.kind, source, Severity.WARNING
                yield Finding.at(self._section.mapping.mark, text, *details)

    def keys(self) -> Findings:
        """Report what refers to another table than the keys of its own table show."""
        table = self._table
        every = table.foreign_keys if table else ()
        keys = {key.columns[0]: key for key in every if len(key.columns) == 1}
        for place in (each for each in self._of.places if each.slot in _KEYS):
            origin = self._of.origin(place)
            if place.slot == "functional_unit" and origin:
                yield from self._people(place, origin)
            own = [
                n for n, key in keys.items() if self._is_meant(place.slot, key.table)
            ]
            used: Collection[str] = [origin.column] if origin else ()
            if table and origin and not _is_same(origin.table, table.bare):
                own = [n for n, k in keys.items() if _is_same(k.table, origin.table)]
                used = self._joined(table, [keys[name] for name in own])
            elif origin and (own and self._may_be_meant(place.slot, keys, origin, own)):
                continue
            if used and own and not {*used} & {*own}:
                key = f"the key to {keys[own[0]].table} is {own[0]}"
                text = f"read by {', '.join(sorted(used))}, but {key}"
                yield self._of.at(place, text, Severity.WARNING)
            elif place.slot == "organization_id" and not origin:
                yield from self._several(place, own)

    def _people(self, place: Place, origin: Origin) -> Findings:
        """Report a unit that is a person, or the key of one."""
        to = [each.table for each in self._referred(origin)]
        people = [each for each in (*to, origin.table) if holds_people(each)]
        if people:
            text = f"read from {people[0]}, which by its name holds people"
            yield self._of.at(place, text, Severity.WARNING)

    def _referred(self, origin: Origin) -> Sequence[Origin]:
        """Return the columns that the declared keys of a column refer to."""
        table = read_table(self._database, origin.table)
        return [
            Origin(key.table, key.referred[0])
            for key in (table.foreign_keys if table else ())
            if [name.lower() for name in key.columns] == [origin.column.lower()]
        ]

    def _reached(self, origin: Origin) -> Set[tuple[str, str]]:
        """Return where keys lead from a column, itself included."""
        reached = {_plain(origin): origin}
        for each in (ahead := [origin]):
            ahead += [to for to in self._referred(each) if _plain(to) not in reached]
            reached |= {_plain(to): to for to in ahead}
        return reached.keys()

    def joins(self) -> Findings:
        """Report columns that are joined with the key of another table than their own one's.

        Both may refer to the same column, or one key lead on to the other's.
        """
        for each in dict.fromkeys(comparisons(self._rows)):
            ends = (each.inner.origin, each.outer.origin)
            for one, other in (ends, ends[::-1]):
                ways = self._reached(one)
                table = read_table(self._database, other.table)
                if len(ways) == 1 or not (table and table.is_unique(other.column)):
                    continue
                if not ways & self._reached(other) and _plain(other)[0] not in dict(
                    ways
                ):
                    text = f"rows joins {one} with {other}, but its key leads to"
                    text += f" {self._referred(one)[0]}: is it the right one?"
                    yield self._of.finding(text, Severity.WARNING)

    def births(self) -> Findings:
        """Report stays that begin before their patient was born, one in twenty or more."""
        every = (s for s in self._of.sample if isinstance(s, EncounterRecord))
        if not (starts := [(s.patient_id, s.start) for s in every if s.start]):
            return
        prefix = self._section.mapping.fields["patient_id"].prefix
        section = self._of.mapping.beside.get((ResourceType.PATIENT, prefix))
        # No index finds ids that are computed.
        if section is None or self._of.table_of(section)[1]:
            return
        ids = sorted({id.removeprefix(prefix) for id, _ in starts})[:SAMPLE]
        patients = self._of.opened(section)
        among = patients.columns.among(patients.id, ids)
        cells = self._database.fetch(patients.columns.select(patients.selected, among))
        births = {
            each.id: each.birth_date
            for each in patients.records(self._database, cells)
            if isinstance(each, PatientRecord) and each.birth_date
        }
        known = [(start.date(), births[id]) for id, start in starts if id in births]
        early = sum(start < day for start, day in known)
        if early >= max(FEW, _EARLY * len(known)):
            text = f"{early:,} of {len(known):,} stays start before the birth of their patient:"
            text += " is one of both another day, or patient_id another key?"
            yield self._of.at(self._of.place("start"), text, Severity.WARNING)

    def _may_be_meant(
        self,
        slot: str,
        keys: Mapping[str, ForeignKey],
        origin: Origin,
        own: Sequence[str],
    ) -> bool:
        """Tell whether a column is no key, or one that leads on to what is meant."""
        if origin.column not in keys:
            return True
        to = keys[origin.column].table
        further = read_table(self._database, to)
        leads = (key.table for key in (further.foreign_keys if further else ()))
        is_place = slot != "patient_id" and words_of(to, TABLES)
        return bool(is_place) or any(_is_same(t, keys[own[0]].table) for t in leads)

    def _is_meant(self, slot: str, table: str) -> bool:
        """Tell whether a field refers to a table, by the file, or by the name of it."""
        kind = REFERS.get(slot)
        if kind and (kind, _plain(Origin(table, ""))[0]) in self._sections:
            return True
        word = "organization" if slot == "organization_id" else "unit"
        return slot != "patient_id" and names_only(table.rpartition(".")[2], word)

    def _joined(self, table: Table, keys: Sequence[ForeignKey]) -> set[str]:
        """Return the columns of a table that the SELECT compares with what keys refer to."""
        pairs = [(e.inner.origin, e.outer.origin) for e in comparisons(self._rows)]
        referred = {_plain(Origin(key.table, key.referred[0])) for key in keys}
        return {
            one.column
            for pair in pairs
            for one, two in (pair, pair[::-1])
            if _is_same(one.table, table.bare) and _plain(two) in referred
        }

    def _several(self, place: Place, keys: Sequence[str]) -> Findings:
        """Report one organization for all stays, where a key of their table has several."""
        unnamed = {each.name for each in self._unnamed(self._table)}
        for name in (each for each in keys if each in unnamed):
            rows = self._values(name)
            filled = sum(number for value, number in rows.items() if value)
            used = len(rows.keys() - {""})
            # A key that few rows have says where patients came from.
            if used > 1 and filled >= CLEARLY * sum(rows.values()):
                text = f"one for all rows, but {name} has {used} different ones"
                yield self._of.at(place, text, Severity.WARNING)

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
            meant = words_of(origin.column)
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

    def other_changes(self) -> Findings:
        """Report a last change that is another time than the one that is named so.

        With `covers: all` those of joined tables count as well.
        """
        field = self._section.mapping.fields.get("last_updated")
        if field is None or not field.columns or self._of_id is None:
            return
        place, table = self._of.place("last_updated"), self._of_id[1]
        origin = self._of.origin(place)
        is_own = origin and _is_same(origin.table, table.bare)
        if not (is_own and origin and _is_change(origin.column)):
            for column in filter(_is_changed, self._unnamed(table)):
                text = f"by its name {table.name}.{column.name} says when a row was changed"
                yield self._of.at(place, f"{text}: is that it?", Severity.WARNING)
        if not field.covers_all:
            return
        named = {word.lower() for word in re.findall(r"\w+", self._rows)}
        for name in dict.fromkeys(tables_of(self._rows).values()):
            joined = (
                None if _is_same(name, table.bare) else read_table(self._database, name)
            )
            for column in filter(_is_changed, joined.columns if joined else ()):
                if column.name.lower() not in named:
                    text = (
                        f"it covers all tables, and does not read {name}.{column.name}"
                    )
                    yield self._of.at(place, text, Severity.WARNING)

    @cached_property
    def _beside(self) -> Sequence[tuple[Origin, Sequence[tuple[Any, Any]]]]:
        """The times of the table of the id, mapped or not: records with their values."""
        if self._of_id is None:
            return ()
        (id, table, columns), place = self._of_id, self._of.place("id")
        every = [row for row in self._of.sample if not isinstance(row, RowFault)]
        every = every[:: max(1, len(every) // SAMPLE)]
        records = {each.id.removeprefix(place.field.prefix): each for each in every}
        names = [column.name for column in table.columns if column.holds in _CLOCKS]
        among = columns.among(columns.column(id), records)
        cells = self._database.fetch(columns.select([id, *names], among))
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
            rule, origin = place.field.time, self._of.origin(place)
            if rule is None or not place.field.columns or place.rows:
                continue
            if place.kind is Kind.TIME:
                yield from self._days(place, rule, origin)
            if place.kind is Kind.TIME and origin:
                yield from self._zone(place, rule, origin)
            if place.slot in _STATES and origin:
                yield from self._real(place, rule, origin)

    def _real(self, place: Place, rule: TimeRule, own: Origin) -> Findings:
        """Report a planned time where another column has the real one.

        That is empty for all stays that are planned, or the planned one has a name that says
        it; it is filled for the others, with another time of about the same day. A column
        that holds either of both is right.
        """
        mapped = [
            _plain(origin) for p in self._of.places if (origin := self._of.origin(p))
        ]
        slot, is_named = place.slot, _is_planned(own)
        for origin, pairs in self._beside:
            planned, present, past = (
                [
                    (moment, _moment(value, rule))
                    for stay, value in pairs
                    if (moment := getattr(stay, slot)) and stay.status in states.split()
                ]
                for states in _STATES[slot]
            )
            is_told = len(planned) >= FEW and not any(v for _, v in planned)
            is_filled = all(
                len(of) >= least and sum(bool(v) for _, v in of) >= CLEARLY * len(of)
                for of, least in ((present if is_told else past, FEW), (past, ENOUGH))
            )
            differ = sum(bool(v) and _SAME < abs(s - v) < _NEAR for s, v in past if v)
            is_other = differ >= len(past) / 2 and _plain(origin) not in mapped
            is_real = is_told or (is_named and not is_audit(origin.column))
            if not (is_filled and is_other and is_real) or _is_planned(origin):
                continue
            why = "planned stays have it too" if is_told else "its name says planned"
            alone = " alone" if is_told else ""
            text = (
                f"{why}, and {origin} is filled for the others{alone} ({differ:,} of"
                f" {len(past):,} differ): is that the real {slot}?"
            )
            remedy = f"in the SELECT: COALESCE({origin.column}, {own.column})"
            severity = Severity.WARNING if is_named else Severity.NOTE
            yield self._of.at(place, text, severity, remedy * (slot == "start"))

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
            if is_clear and len(whole) >= CLEARLY * len(apart):
                by = f"{low:+}" if low == high else f"{low:+} or {high:+}"
                text = (
                    f"{odd:,} of {len(apart):,} times are {by} hours off {origin}, which has"
                    f" a zone: is {rule.zone} right (time_zone:)?"
                )
                severity = Severity.NOTE if place.slot == "end" else Severity.WARNING
                yield self._of.at(place, text, severity)
                return

    def _days(self, place: Place, rule: TimeRule, origin: Origin | None) -> Findings:
        """Report a day whose time of day stands in a column beside, or behind it."""
        name = place.field.columns[0]
        if len(place.field.columns) > 1:
            return
        if origin:
            yield from self._clock_beside(place, rule, origin)
            return
        shown = self._section.columns.select([name], self._of.served, limit=SAMPLE)
        values = [value for (value,) in self._database.fetch(shown) if value]
        if any(map(_has_clock, values)) or (rule.at is None and len(values) < ENOUGH):
            return
        for column, tables in arguments_behind(self._rows, name):
            dialect = self._database.dialect
            source, times = dialect.bound(tables)
            arguments = Sql(f"{column} FROM {source}", dialect.times(times, rule.zone))
            try:
                rows = self._database.fetch(dialect.first(arguments, SAMPLE))
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

    def _clock_beside(self, place: Place, rule: TimeRule, day: Origin) -> Findings:
        """Report a column of days beside which another one has the time of day.

        Its name says so, or its type, unless it has the name of another day.
        """
        moments = [getattr(row, place.slot, None) for row in self._of.sample]
        times = {m.astimezone(rule.zone).time() for m in moments if m}
        is_day = rule.at is not None or (times == {time()} and len(moments) >= ENOUGH)
        table = read_table(self._database, day.table) if is_day else None
        if table is None:
            return
        read = {name for each in self._of.places for name in each.field.columns}
        selected = self._of.origins_of(self._rows).items()
        idle = {origin.column.lower() for name, origin in selected if name not in read}
        unnamed = [(_stem(c.name), c) for c in self._unnamed(table, idle)]
        days = [c for c in table.columns if c.holds is not Holds.CLOCK]
        stem, others = _stem(day.column), {_stem(column.name) for column in days}
        holding = [
            column
            for own, column in unnamed
            if own == stem
            if _TIME_OF_DAY.search(column.name.lower())
            or (stem and column.holds in (*_CLOCKS, Holds.CLOCK))
        ]
        of_type = (
            c for own, c in unnamed if c.holds is Holds.CLOCK and own not in others
        )
        for column in holding or of_type:
            select: Any = sa.select(sa.column(column.name))
            shown = self._first(select.select_from(_written(table)), SAMPLE)
            filled = sum(bool(str(value or "").strip("0:. ")) for (value,) in shown)
            if filled > len(shown) / 2:
                text = "a date, at the same time of day in all rows: does"
                text += f" {column.name} hold it?"
                yield self._of.at(place, text, Severity.WARNING)

    def unread_merges(self) -> Findings:
        """Report merges in the patients' own table that are not read, or the wrong way round."""
        if self._of_id is None or self._of.kind is not ResourceType.PATIENT:
            return
        table = self._of_id[1]
        own = {
            key.columns[0]
            for key in table.foreign_keys
            if len(key.columns) == 1 and _is_same(key.table, table.bare)
        }
        if "replaced_by" not in self._section.mapping.fields:
            for name in (c.name for c in self._unnamed(table) if c.name in own):
                merged = sum(n for value, n in self._values(name).items() if value)
                if merged and words_of(name, MERGES):
                    text = f"{merged:,} patients have {name}, a key to their own table: were"
                    text += " they merged (replaced_by:)?"
                    yield self._of.finding(text, Severity.WARNING)
            return
        place = self._of.place("replaced_by")
        origin = self._of.origin(place)
        for joined, outer, _ in comparisons(self._rows):
            ends = (joined.origin, outer.origin)
            are_own = all(_is_same(end.table, table.bare) for end in ends)
            is_read = origin and _plain(origin) == _plain(outer.origin)
            if are_own and is_read and joined.origin.column in own:
                text = f"read from those whose {joined.origin.column} names this patient: are"
                text += " both patients the wrong way round?"
                yield self._of.at(place, text, Severity.WARNING)

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
        if late >= max(FEW, CLEARLY * len(known)):
            text = (
                f"of {len(known):,} merges with stays, the patient who was replaced has the"
                f" newest stay in {late:,}: are both patients the wrong way round?"
            )
            severity = Severity.NOTE if field.follows_merges else Severity.WARNING
            yield Finding.of_field(*self._of.survivor, text, severity)


def _numbers_of(section: ResourceMapping) -> tuple[str | None, ...]:
    """Return system and hospital of the visit numbers, nothing where rows say them."""
    systems = map(section.fields.get, ("visit_number_system", "organization_id"))
    said = [each for each in systems if each]
    read = map(section.fields.get, ("visit_number", "patient_id"))
    is_constant = not any(each.columns for each in said)
    are_columns = all(each and each.columns for each in read)
    return tuple(s.constant for s in said) if is_constant and are_columns else ()


def _is_change(column: str) -> bool:
    """Tell whether a column says by its whole name when its row was changed."""
    return is_audit(column) and "changed" in words_of(column)


def _is_changed(column: TableColumn) -> bool:
    return column.holds in _CLOCKS and _is_change(column.name)


def _stem(column: str) -> str:
    """Return what the name of a time says but for being one."""
    return _DAY_OR_TIME.sub("", column.lower())


def _is_planned(origin: Origin) -> bool:
    return bool(_PLANNED.search(origin.column))


def _is_gone(column: str, value: str, values: Iterable[str]) -> bool:
    """Tell whether rows with this value of a column, of all its values, are not there.

    A column of times or reasons marks by having one, if its whole name says so.
    """
    meant, value = words_of(column) & _GONE, value.lower()
    every = {each.lower() for each in values}
    if column.lower() == "docstatus":
        return value == "2"
    if not meant:
        return says("status", value) == {CANCELLED}
    if len(every & _NO) == len(every & _YES) == 1 and len(every) == 2:
        return value in (_NO if meant == {"active"} else _YES)
    is_filled = value not in _NO and bool(every & _NO)
    return is_filled and is_mark(column) and meant != {"active"}


def _is_same(one: str, other: str) -> bool:
    """Tell whether two names, with a schema or not, are of one table."""
    return _plain(Origin(one, ""))[0] == _plain(Origin(other, ""))[0]


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
