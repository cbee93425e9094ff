"""Which column fills which slot: by a key, by its type, by the words of its name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import sqlalchemy as sa

from adapters.contract import ResourceType
from adapters.mapping.model import HIDDEN
from adapters.mapping.slots import (
    FHIR_ID,
    LINES,
    LISTS,
    REFERS,
    SLOTS,
    STATUSES,
    Kind,
    Slot,
)
from adapters.mapping.values import as_text
from adapters.sql.engine import Database
from toolkit.catalogue import DAYS, MOMENTS, TIMES_OF_TEXTS, CodeCount, Holds, no_yes
from toolkit.names import OF_ROW, all_of, code_of, fit, without_time
from toolkit.tables import (
    IDS,
    PATIENT,
    TEXTS,
    TIMES,
    Column,
    Found,
    Rows,
    Structure,
    best,
)

_TYPES = {
    **{Kind.ID: IDS, Kind.EXACT: IDS | {Holds.NUMBER}},
    **dict.fromkeys((Kind.CODE, Kind.FLAG), TEXTS | {Holds.FLAG}),
    Kind.TIME: TIMES,
    Kind.DATE: TIMES | {Holds.TEXT},
    **dict.fromkeys((Kind.TEXT, Kind.PARTS), frozenset({Holds.TEXT})),
}
"""What a column may hold to fill a slot of a kind."""

_WORDS = {
    "status": "stay status, status",
    "class": "stay class, class",
    "start": "admission start, start, =stay",
    "visit_number": "~stay number, =stay, =number, ~stay code, =code, =name",
    "patient_id": "patient",
    "functional_unit": "~unit code, ~unit, unit start",
    "active": "active, =deleted, =status",
    "organization_id": "~hospital code, ~hospital",
    "last_updated": "changed",
    "gender": "sex",
    "birth_date": "~birth",
    "deceased": "death",
    "deceased_at": "death",
    "name": "=name, hospital name, ~name",
}
"""By slot the meanings that the name of its column needs, as `fit` reads them.

A slot that is not here needs the meaning with its own name. A key that leads to the section
that the slot refers to (`REFERS`) comes before them, and so does the slot's own name.
"""


class ItemEvidence(NamedTuple):
    """What fills an item of a list: words by slot, of which it `needs` one, and constants.

    `about` is what the name of a table of its own means, "" for anything; None are the
    columns of the section itself, of one `kind` if any.
    """

    name: str
    about: str | None
    needs: set[str]
    words: Mapping[str, str]
    constants: Mapping[str, tuple[str, str]] = {}
    kind: ResourceType | None = None


_HOSPITAL = ResourceType.ORGANIZATION
_NAME = {
    **{"family": "family, birth name, =name", "given": "given, =name"},
    **{"prefix": "prefix", "text": "patient name, =name"},
}
_ADDRESS = {
    "lines": "~lines name, ~lines",
    "city": "city",
    "postal_code": "postal_code",
    "country": "country",
}
_OF_TABLE = {"system": "class", "value": "=value, ~identifiers, =number, =code"}
_OF_PATIENT = {"value": "identifiers, ~patient number, =number, ~patient code"}
_LAST = {"value": "~number, ~code"}
_OF_HOSPITAL = {"value": "hospital identifiers, identifiers, hospital code, ~code"}
_PHONE, _FAX, _EMAIL = ({"system": (of, "")} for of in ("phone", "fax", "email"))
_SYSTEM = {"system": ("https://example.org/identifiers", "the system of these numbers")}
_PI = {"type": ("PI", "PI, RRI, INS-NIR, …"), **_SYSTEM}
_VALUE = {"value"}
_ITEMS = (
    ItemEvidence("names", None, {"family", "given", "text"}, _NAME),
    ItemEvidence("names", "", {"given"}, _NAME),
    ItemEvidence("addresses", None, {"lines", "city", "postal_code"}, _ADDRESS),
    ItemEvidence("addresses", "", {"city"}, _ADDRESS),
    ItemEvidence(
        "telecoms", None, _VALUE, {"value": "phone, ~contact number, =contact"}, _PHONE
    ),
    ItemEvidence("telecoms", None, _VALUE, {"value": "fax"}, _FAX),
    ItemEvidence("telecoms", None, _VALUE, {"value": "email"}, _EMAIL),
    ItemEvidence("telecoms", "contact phone", _VALUE, _OF_TABLE, _PHONE),
    ItemEvidence("telecoms", "", _VALUE, {"value": "phone"}, _PHONE),
    ItemEvidence("identifiers", None, _VALUE, _OF_PATIENT, _PI, PATIENT),
    ItemEvidence("identifiers", None, _VALUE, _LAST, _PI, PATIENT),
    ItemEvidence("identifiers", None, _VALUE, _OF_HOSPITAL, _SYSTEM, _HOSPITAL),
    ItemEvidence("identifiers", "identifiers", _VALUE, _OF_TABLE, _PI),
)

_ASKED = {Holds.DATE: "at which time of day?", Holds.LOCAL_TIME: "by whose clock?"}
# An end that is not between these days stands for none.
_FIRST, _FAR = datetime(1800, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local times
# By slot what the name of its column does not mean.
_NEVER = {
    **dict.fromkeys(("start", "end"), OF_ROW | {"planned", "birth"}),
    **dict.fromkeys((*_NAME, *_ADDRESS, *_OF_TABLE), frozenset({"status"})),
    "value": frozenset({"class", "status"}),
    **{"birth_date": OF_ROW | {"planned", "death"}, "deceased_at": OF_ROW | {"birth"}},
}
_AS_NUMBER = "by what it holds: a different number in each row"
_NO_NUMBER = "no column holds another number: this is the key"
_OF_NUMBER = {"number", "identifiers", "code", "name", "value", "patient"}
_OF_NUMBER |= {"stay", "admission", "start"}
_REACHED = ("organization_id", "patient_id")
_MOST_CANDIDATES = 6
_FEWEST = 5  # A code that fewer rows have is not written: it may be about one person.
_MOST_PATIENT_CODES = 12  # In a table of persons more different values may be names.
_DIFFERENT = 0.5  # Of stays so many numbers differ: those of one visit may share it.
_MOSTLY = 0.9  # Of identifiers so many differ.
_MOST_ITEMS = 3  # So many phone numbers or identifiers are written.
_MANY = 100  # In so many rows a code has more than one value.


@dataclass(frozen=True, slots=True)
class Field:
    """A slot with its column or constant, or else the `candidates` that may fill it.

    `table` is the code table that reads it, "" for none, with the codes and how many `rare`
    ones it does not name; `more` are further lines of an address, `absent` times that stand
    for none.
    """

    slot: Slot
    column: Column | None = None
    note: str = ""
    constant: str = ""
    candidates: Sequence[str] = ()
    table: str = ""
    codes: Sequence[CodeCount] = ()
    rare: int = 0
    more: Sequence[Column] = ()
    absent: Sequence[str] = ()


class Part(NamedTuple):
    """Fields and lists of a section, or of an item: that has no rows if they are the section's."""

    rows: Rows | None
    fields: Sequence[Field]
    items: Mapping[str, Sequence["Part"]] = {}


@dataclass(frozen=True)
class Evidence:
    """Fills the slots of sections; `hospital` is the id of the only one, "" for none."""

    database: Database
    structure: Structure
    sections: Mapping[ResourceType, Sequence[Rows]]
    hospital: str

    def parts(self) -> Mapping[ResourceType, Sequence[Part]]:
        """Return the sections with their fields."""
        return {
            kind: [Part(rows, self._fields(rows), self._items(rows)) for rows in of]
            for kind, of in self.sections.items()
        }

    def _fields(self, rows: Rows) -> Sequence[Field]:
        rows = replace(rows, columns=[*map(self._timed, rows.columns)])
        columns, fields, id = [*rows.columns], dict[str, Field](), self.hospital
        for slot in (s for s in SLOTS[rows.kind] if s.kind is not Kind.SYSTEM):
            types, never = _TYPES[slot.kind], _NEVER.get(slot.name, frozenset())
            fitting = [c for c in columns if c.holds in types]
            allowed = [c for c in fitting if not all_of(c.words) & never]
            # An appointment, or when a row was written, is better than no start.
            fitting = allowed or fitting * (slot.name == "start")
            column, note = self._column(rows, slot, fitting)
            is_led = column is not None and column.refers
            if slot.name == "organization_id" and FHIR_ID.fullmatch(id) and not is_led:
                fields[slot.name] = Field(slot, None, "the only hospital", id)
            elif column is not None:
                fields[slot.name] = self._field(rows, slot, column, note)
                columns = [each for each in columns if each != column]
            else:
                fields[slot.name] = self._open(rows, slot, fitting)
        if "status" in fields and fields["status"].column is None:
            fields["status"] = self._derived(**fields)
        if "class" in fields and fields["class"].column is None:
            fields["class"] = self._constant(rows, fields["class"])
        return [replace(f, note=f.note or rows.doubt) for f in fields.values()]

    def _timed(self, column: Column) -> Column:
        """Return a column without words whose texts are times as one that holds them."""
        is_open = column.holds is Holds.TEXT and not (column.join or any(column.words))
        return self.structure.timed(column) if is_open else column

    def _open(self, rows: Rows, slot: Slot, fitting: Sequence[Column]) -> Field:
        """Return a slot with the columns that may fill it, those that say most first."""
        plain = [column for column in fitting if not column.join]
        is_day = slot.kind is Kind.DATE
        plain.sort(key=lambda c: (is_day and c.holds not in TIMES, not c.refers))
        names = [column.name for column in plain[:_MOST_CANDIDATES]]
        table = _table_name(rows, slot) if slot.takes else ""
        return Field(slot, candidates=names, table=table)

    def _column(self, rows: Rows, slot: Slot, fitting: Sequence[Column]) -> Found:
        """Return the column of a slot and what is open about it, "" where it is declared."""
        if slot.name == "id":
            return next((c for c in fitting if c.name == rows.id), None), rows.id_note
        patterns = _WORDS.get(slot.name, slot.name)
        if slot.name in REFERS:
            leading = [c for c in fitting if self._leads(c, REFERS[slot.name])]
            named = [c for c in leading if not c.join or slot.name in all_of(c.words)]
            # The hospital may be that of the unit.
            leading = named or leading * (slot.name in _REACHED)
            fitting = [c for c in fitting if not c.join]
            own = [c for c in leading if c.join or "other" not in all_of(c.words)]
            if len(own) == 1 and (to := own[0].refers):
                is_plain = slot.name == "patient_id" and not own[0].join
                ids = (own[0].source.name, rows.id) if is_plain else ()
                counts = {self.structure.values.filled(rows.table, id) for id in ids}
                doubt = self.sections[REFERS[slot.name]][0].doubt
                return own[0], to.note or doubt or "empty in some rows" * (
                    len(counts) > 1
                )
            if leading:
                return best(own, patterns.removeprefix("~"))
        plain = [c for c in fitting if not c.is_key]
        ranks = [(self._holds(slot, c), c) for c in plain if fit(c.words, patterns)]
        most = max((rank for rank, _ in ranks), default=0)
        named = [column for rank, column in ranks if rank == most >= 0]
        named = self._fullest(slot, named) if slot.kind is Kind.TIME else named
        column, note = best(named, patterns, slot.name)
        days = [c for c in (column,) if c and c.holds in TIMES]
        if slot.name == "birth_date" and not any(map(self.structure.is_filled, days)):
            column, note = self._birth(rows) or (column, note)
        if column is not None:
            notes = [note or "by its name" * (slot.name in REFERS)]
            notes += [] if self.structure.is_filled(column) else ["empty in all rows"]
            return column, "; ".join(filter(None, notes))
        if slot.name == "visit_number":
            number = self._number(rows)
            return number or self._key(rows), _AS_NUMBER if number else _NO_NUMBER
        return self._by_type(slot, fitting)

    def _fullest(self, slot: Slot, times: Iterable[Column]) -> list[Column]:
        """Return first what most rows have, then moments; what few have is no start."""
        figures = self.structure.values.figures
        of = {c: figures(c.table, c.source.name) for c in times}
        ranked = sorted(of, key=lambda c: of[c][1:], reverse=True)
        least = of[ranked[0]][1] / 2 if ranked and slot.name == "start" else 0
        return [c for c in ranked if of[c][1] >= least]

    def _by_type(self, slot: Slot, fitting: Sequence[Column]) -> Found:
        """Return the time that may be a start, the only one that may be an end, or a bed."""
        plain = [c for c in fitting if not c.is_key]
        if slot.name == "start":
            plain = [c for c in plain if not all_of(c.words) & {"end", "changed"}]
            plain = self._fullest(slot, plain)[:1]
        elif slot.name == "birth_date":
            plain = [c for c in plain if c.holds is Holds.DATE and not c.join]
            births = self.structure.births(plain[0].table) if len(plain) > 1 else []
            plain = [c for c in plain if c.source.name in births] or plain
        is_clear = slot.name in ("start", "end", "birth_date") and len(plain) == 1
        return (plain[0] if is_clear else None), "by its type"

    def _key(self, rows: Rows) -> Column | None:
        keys = (c for c in rows.columns if c.name == rows.id and c.holds in IDS)
        return next(keys, None)

    def _number(self, rows: Rows) -> Column | None:
        """Return a column, other than the key, whose values are numbers of the rows."""
        values, plain = self.structure.values, list[Column]()
        for column in rows.columns:
            own = column.table == rows.table and not column.is_key
            is_text = column.holds is Holds.TEXT and column.name != rows.id
            is_said = all_of(column.words) <= _OF_NUMBER and "uuid" not in column.name
            if own and is_text and is_said:
                is_number = values.are_numbers(rows.table, column.source.name)
                plain += [column] if column.is_unique or is_number else []
        return min(plain, key=lambda column: not column.is_unique, default=None)

    def _holds(self, slot: Slot, column: Column) -> int:
        """Return how well what a column holds fits a slot, less than 0 for not at all."""
        is_filled, values = self.structure.is_filled(column), self.structure.values
        if slot.name == "visit_number":
            every, named, different = values.figures(column.table, column.source.name)
            is_number = different >= named * _DIFFERENT and named >= every * _DIFFERENT
            return is_filled if is_number else -1
        if slot.kind is Kind.FLAG:
            return self._marks(column) if is_filled else -1
        own = column.labels or column
        if slot.kind is not Kind.CODE:
            is_key = bool(column.join or column.note or column.labels)
            return is_filled + (slot.name == "functional_unit" and is_key)
        counts = self._counts(column)
        said = [(code_of(slot.name, c.label or c.code), c.rows) for c in counts]
        is_one = [rows >= _MANY for _, rows in said] == [True]
        is_none = is_one and (not column.join or bool(counts[0].label))
        # What says no more than what is cancelled, or cannot be counted, is no code.
        is_none |= {code for code, _ in said} == {HIDDEN}
        if is_none or not is_filled or (not said and values.is_filled(own.table)):
            return -1
        known = sum(rows for code, rows in said if code)
        return 1 + (known > sum(rows for _, rows in said) - known)

    def _marks(self, column: Column) -> int:
        """Return how well a column says yes and no: a text of deleted rows says no."""
        counts, is_flag = self._counts(column), column.holds is Holds.FLAG
        words, is_clear = all_of(column.words), not is_flag and no_yes(counts)
        if not (is_clear or "active" in words or is_flag):
            return -1
        # A flag that is the same in all rows says less than any other mark.
        is_used = len(counts) != 1 or counts[0].rows < _FEWEST
        return is_used or -(not is_flag)

    def _counts(self, column: Column) -> Sequence[CodeCount]:
        """Return the codes of a column; of a vocabulary those keys that are in use."""
        values, own = self.structure.values, column.labels
        counts = values.codes(column.table, column.source.name)
        if counts is None and own and own.refers:
            name, key = own.source.name, own.refers.column
            label = column.source.name
            return values.labels(own.table, name, column.table, key, label)
        return counts or ()

    def _leads(self, column: Column, kind: ResourceType) -> bool:
        refers, sections = column.refers, self.sections.get(kind)
        if not refers or not sections or (column.is_unique and not column.join):
            return False
        return (refers.table, refers.column) == (sections[0].table, sections[0].id)

    def _field(self, rows: Rows, slot: Slot, column: Column, note: str) -> Field:
        codes, rare, table = list[CodeCount](), 0, ""
        values, name = self.structure.values, column.source.name
        notes, absent = [note], list[str]()
        notes += ["are all texts in this form?"] if column.format else []
        is_deleted = "deleted" in all_of(column.words)
        if slot.takes:
            table, (codes, rare) = _table_name(rows, slot), self._codes(rows, column)
            notes += ["one value in all rows"] if len(codes) + rare == 1 else []
            is_flag = column.holds is Holds.FLAG
            if is_flag and slot.kind is Kind.FLAG and not is_deleted:
                table, codes, rare = "", [], 0
            elif column.labels and any(code.label for code in codes):
                column = column.labels
        if slot.kind in (Kind.TIME, Kind.DATE) and column.is_time:
            column, absent = self._without_zeros(rows, slot, column)
        if slot.kind is Kind.ID and not values.are_ids(column.table, name):
            notes.append("some values are no FHIR ids: make other ones in the SELECT")
        if slot.kind is Kind.TIME:
            every, filled, _ = values.figures(column.table, name)
            is_partial = slot.name == "last_updated" and 0 < filled < every
            notes += ["empty in some rows" * is_partial, _ASKED.get(column.holds, "")]
        notes.insert(1, column.note)
        note = "; ".join(filter(None, dict.fromkeys(notes)))
        return Field(slot, column, note, "", (), table, codes, rare, (), absent)

    def _without_zeros(
        self, rows: Rows, slot: Slot, column: Column
    ) -> tuple[Column, list[str]]:
        """Return a time without what stands for none, and what `absent` names of that."""
        name, is_end = column.source.name, slot.name == "end"
        far = self.structure.values.times_outside(column.table, name, _FIRST, _FAR)
        zeros = [text for text in far if text.startswith("0000")]
        column = self._with_clock(rows, slot, column)
        for zero in zeros if is_end else ():
            none = "0" if self.database.dialect.zero_date else f"'{zero}'"
            column = replace(column, select=f"NULLIF({column.select}, {none})")
        # A date of zeros is no end that `absent` could name.
        return column, [text for text in far if (text in zeros) is not is_end]

    def _codes(self, rows: Rows, column: Column) -> tuple[list[CodeCount], int]:
        """Return the codes of a column that may be written, and how many others it has."""
        key = (column.labels or column).refers
        if key and self.structure.is_of_persons(key.table):
            return [], 0
        counts = self._counts(column)
        is_table = column.labels and not any(count.label for count in counts)
        is_of_person = rows.kind is PATIENT and not column.labels
        if is_of_person and len(counts) > _MOST_PATIENT_CODES:
            return [], 0
        # The rows of a table of units or types are about nobody.
        fewest = 1 if is_table else _FEWEST
        codes = [count for count in counts if count.rows >= fewest]
        return codes, len(counts) - len(codes)

    def _with_clock(self, rows: Rows, slot: Slot, column: Column) -> Column:
        """Return a day with the time of day in a column of the same name, or behind it."""
        form, name = MOMENTS.get(self._dialect), without_time(column.name)
        clocks = [c for c in rows.columns if c.holds is Holds.CLOCK]
        clocks = [c for c in clocks if c.join == column.join]
        named = [c for c in clocks if without_time(c.name) == name]
        behind = [c for day, c in pairwise(rows.columns) if day.name == column.name]
        clock = next((c for c in (*named, *behind) if c in clocks), None)
        if not (form and clock and slot.kind is Kind.TIME and column.is_time):
            return column
        values, of = self.structure.values, (column.table, column.source.name)
        if column.holds is not Holds.DATE and not (
            clock in named and values.are_days(*of)
        ):
            return column
        time = "23:59" if slot.name == "end" else "00:00"
        select = form.format(column.select, f"COALESCE({clock.select}, '{time}')")
        if clock not in named:
            column = replace(column, note=f"with {clock.name}, which is behind it")
        return column.computed(select, Holds.LOCAL_TIME, f"{column.name}_{clock.name}")

    def _birth(self, rows: Rows) -> tuple[Column, str] | None:
        """Return a day of birth from columns with its year, month and day, if any."""
        form = DAYS.get(self._dialect)
        numbers = [column for column in rows.columns if column.holds in TEXTS]
        words = ("birth year", "birth month", "birth day, ~birth")
        parts = [column for column, _ in (best(numbers, w) for w in words) if column]
        if not form or len(parts) < len(words):
            return None
        select = form.format(*(part.select for part in parts))
        day = parts[0].computed(select, Holds.DATE, "birth_date")
        return day, "from year, month and day"

    def _derived(self, status: Field, start: Field, end: Field, **_: Field) -> Field:
        """Return a status that follows from start and end, open where they are."""
        columns = [times.column for times in (start, end) if times.column]
        as_time = "{}"
        if not all(column.is_time for column in columns):
            as_time = TIMES_OF_TEXTS.get(self._dialect, "")
            is_sorted = self._dialect != "sqlite" and "%Y%m%d"
            if not as_time or any(c.format not in ("", is_sorted) for c in columns):
                return status
        holds = {column.holds for column in columns}
        # Only PostgreSQL compares `:now` with an instant (mappings/README.md).
        is_comparable = Holds.INSTANT not in holds or self._dialect == "postgresql"
        if not start.column or not is_comparable:
            return status
        now, last = ":today" if Holds.DATE in holds else ":now", "'finished'"
        select = (
            f"CASE WHEN {as_time.format(start.column.select)} > {now} THEN 'planned'"
        )
        if end.column:
            ended = as_time.format(end.column.select)
            select += f" WHEN {ended} <= {now} THEN {last}"
            last = "'in-progress'"
        elif end.candidates or not self.structure.values.is_filled(start.column.table):
            return status
        select += f" ELSE {last} END"
        column = replace(start.column, select=select, renamed="derived_status")
        codes = [CodeCount(code, 0) for code in STATUSES.split()]
        note = f"no column holds it: derived from start{' and end' * bool(end.column)}"
        return replace(status, column=column, codes=codes, note=note)

    def _constant(self, rows: Rows, of: Field) -> Field:
        """Return the class that the table's name says: it is that of all its stays."""
        code = code_of("class", rows.table.bare)
        return replace(of, constant=code, note="no column holds it: is it that of all?")

    @property
    def _dialect(self) -> str:
        return self.structure.catalogue.dialect

    def _items(self, rows: Rows) -> Mapping[str, Sequence[Part]]:
        """Return items from the columns of a section, else from a table that refers to it."""
        items = dict[str, Sequence[Part]]()
        for listed in LISTS[rows.kind]:
            slots = {slot.name: slot for slot in (*listed.slots, LINES)}
            every = [e for e in _ITEMS if e.name == listed.name]
            every = [e for e in every if e.kind in (None, rows.kind)]
            of_rows = [e for e in every if e.about is None]
            own: list[Part | None] = []
            own += self._own_items(of_rows, rows, slots)
            of_tables = (
                [self._item(e, child, slots)]
                for child in rows.children
                for e in every
                if e.about == "" or {*(e.about or "").split()} & all_of(child.words)
            )
            if listed.name == "identifiers" and rows.kind is PATIENT:
                used = {field.column for part in own if part for field in part.fields}
                number = self._number(rows)
                more = self._of_number(number, _AS_NUMBER, slots)
                own = [*own, *([] if number in used else more)][:_MOST_ITEMS]
            ranked = [each for each in (own, *of_tables) if any(each)]
            # A patient may have numbers in both.
            kept = 2 if listed.name == "identifiers" else 1
            items[listed.name] = [part for of in ranked[:kept] for part in of if part]
            if listed.name == "identifiers" and rows.kind is PATIENT:
                key = self._of_number(self._key(rows), _NO_NUMBER, slots)
                items[listed.name] = items[listed.name] or key
        return items

    def _of_number(
        self, number: Column | None, note: str, slots: Mapping[str, Slot]
    ) -> list[Part]:
        """Return an identifier of a patient by what a column holds, if there is one."""
        fields = [Field(slots[n], None, text, c) for n, (c, text) in _PI.items()]
        value = Field(slots["value"], number, note)
        return [Part(None, [*fields, value])] if number else []

    def _own_items(
        self, every: Iterable[ItemEvidence], rows: Rows, slots: Mapping[str, Slot]
    ) -> list[Part]:
        """Return items of a section's own columns: an item for each number that it has."""
        items, columns = list[Part](), rows.columns
        for evidence in every:
            number = 1 if {*evidence.words} != _VALUE else _MOST_ITEMS
            for _ in range(number):
                item = self._item(evidence, replace(rows, columns=columns), slots)
                used = [field.column for field in item.fields] if item else []
                columns = [column for column in columns if column not in used]
                items += [item] if item else []
        return items

    def _item(
        self, evidence: ItemEvidence, rows: Rows, slots: Mapping[str, Slot]
    ) -> Part | None:
        """Return an item, None where nothing fills what it needs."""
        columns = [column for column in rows.columns if not column.is_key]
        constants = evidence.constants.items()
        fields = {n: Field(slots[n], None, note, text) for n, (text, note) in constants}
        filled = set[str]()
        named = filter(self.structure.is_filled, columns)
        said = {"family", "given"} & all_of(w for c in named for w in c.words)
        for name, words in evidence.words.items():
            # A name beside a given one is the family's, and one alone all of it.
            if evidence.words is _NAME and bool(said - {name}) is (name == "text"):
                words = words.removesuffix(", =name")
            types = _TYPES.get(slots[name].kind, TEXTS)
            types = TEXTS if name == "postal_code" else types
            fitting = [c for c in columns if c.holds in types and fit(c.words, words)]
            fitting = [c for c in fitting if not all_of(c.words) & _NEVER[name]]
            if evidence.kind is PATIENT:
                fitting = [c for c in fitting if self._differs(c)]
            used = [c for c in fitting if self.structure.is_filled(c)]
            column, note = best(used or fitting, words)
            if column is not None:
                columns.remove(column)
                filled.add(name)
                more = [c for c in used if c != column and c.words == column.words]
                notes = filter(None, (note, "" if used else "empty in all rows"))
                field = self._field(rows, slots[name], column, "; ".join(notes))
                if name == "lines" and more:
                    field = replace(field, more=more, note="by their names")
                fields[name] = field
        of = rows if evidence.about is not None else None
        return Part(of, [*fields.values()]) if filled & evidence.needs else None

    def _differs(self, column: Column) -> bool:
        values, of = self.structure.values, (column.table, column.source.name)
        return values.variety(*of) > _MOSTLY and values.is_filled(*of)


def _table_name(rows: Rows, slot: Slot) -> str:
    return re.sub(r"\W", "_", f"{slot.name}_{rows.table.name}")


def only_hospital(
    database: Database, sections: Mapping[ResourceType, Sequence[Rows]]
) -> tuple[str, str]:
    """Return id and name of the hospital where the database has one, else ""."""
    for rows in sections.get(_HOSPITAL, ()):
        texts = [column for column in rows.columns if column.holds is Holds.TEXT]
        id = next((c for c in rows.columns if c.name == rows.id), None)
        name = best(texts, _WORDS["name"])[0] or id
        if id and name:
            parts = ("SELECT", f"{id.select}, {name.select}", rows.start, *name.join)
            statement = sa.text(" ".join((*parts, rows.where)))
            values = database.run(lambda c: c.execute(statement).fetchmany(2))  # noqa: B023
            if len(values) == 1:
                return as_text(values[0][0]), as_text(values[0][1])
    return "", ""
