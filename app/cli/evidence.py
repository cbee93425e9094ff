"""Which column fills which slot: by a key, by its type, by the words of its name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from adapters.contract import ResourceType, SourceDataError, SourceTimedOutError
from adapters.mapping.slots import LINES, LISTS, REFERS, SLOTS, STATUSES, Kind, Slot
from adapters.mapping.values import as_text
from adapters.sql.catalog import CodeCount, Holds, code_counts
from adapters.sql.engine import Database
from app.cli.names import all_of
from app.cli.tables import ORGANIZATION, PATIENT, TEXTS, TIMES, Column, Rows, best

_TYPES = {
    **dict.fromkeys((Kind.ID, Kind.EXACT), TEXTS),
    **dict.fromkeys((Kind.CODE, Kind.FLAG), TEXTS | {Holds.FLAG}),
    Kind.TIME: TIMES,
    Kind.DATE: TIMES | {Holds.TEXT},
    **dict.fromkeys((Kind.TEXT, Kind.PARTS), frozenset({Holds.TEXT})),
}
"""What a column may hold to fill a slot of a kind."""

_WORDS = {
    "visit_number": "~stay number, =stay, =number, =code, =name",
    "patient_id": "patient",
    "functional_unit": "~unit",
    "organization_id": "~hospital",
    "last_updated": "changed",
    "gender": "sex",
    "birth_date": "~birth",
    "deceased": "death",
    "deceased_at": "death",
    "name": "=name, hospital name, name",
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


_NAME = {"family": "family, name", "given": "given, =name", "prefix": "prefix"}
_ADDRESS = {slot: slot for slot in ("lines", "city", "postal_code", "country")}
_OF_TABLE = {"system": "class", "value": "=value, =identifiers, =number, =code"}
_OF_PATIENT = {"value": "identifiers, ~patient number, =number"}
_OF_HOSPITAL = {
    "value": "hospital identifiers, identifiers, hospital code, =code",
}
_PHONE, _EMAIL = {"system": ("phone", "")}, {"system": ("email", "")}
_SYSTEM = {"system": ("https://example.org/identifiers", "the system of these numbers")}
_PI = {"type": ("PI", "PI, RRI, INS-NIR, …"), **_SYSTEM}
_VALUE = {"value"}
_ITEMS = (
    ItemEvidence("names", None, {"family", "given"}, _NAME),
    ItemEvidence("names", "", {"given"}, _NAME),
    ItemEvidence("addresses", None, {"lines", "city"}, _ADDRESS),
    ItemEvidence("addresses", "", {"city"}, _ADDRESS),
    ItemEvidence("telecoms", None, _VALUE, {"value": "phone number, phone"}, _PHONE),
    ItemEvidence("telecoms", None, _VALUE, {"value": "email"}, _EMAIL),
    ItemEvidence("telecoms", "contact phone", _VALUE, _OF_TABLE, _PHONE),
    ItemEvidence("identifiers", None, _VALUE, _OF_PATIENT, _PI, PATIENT),
    ItemEvidence("identifiers", None, _VALUE, _OF_HOSPITAL, _SYSTEM, ORGANIZATION),
    ItemEvidence("identifiers", "identifiers", _VALUE, _OF_TABLE, _PI),
)

_TIME_QUESTIONS = {
    Holds.DATE: "at which time of day?",
    Holds.LOCAL_TIME: "by whose clock?",
}
_FIRST, _LAST = datetime(1800, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local times
"""An end that is not between these days stands for none."""

_ROW_TIMES = frozenset({"audit", "changed", "planned", "birth"})
"""What the names of times mean that are of the row itself, or only planned."""

_FEWEST = 5
"""A code that fewer rows have is not written: it may be about one person."""

_MOST_PATIENT_CODES = 12
"""In a table of persons a column with more different values may hold names."""

_MOST_CANDIDATES = 6

_MANY = 100
"""In so many rows a code has more than one value."""


@dataclass(frozen=True, slots=True)
class Field:
    """A slot with its column or constant, or else the `candidates` that may fill it.

    `table` is the code table that reads it, "" for none, with the codes and how many `rare`
    ones it does not name; `absent` are times that stand for none.
    """

    slot: Slot
    column: Column | None = None
    note: str = ""
    constant: str = ""
    candidates: Sequence[str] = ()
    table: str = ""
    codes: Sequence[CodeCount] = ()
    rare: int = 0
    absent: Sequence[str] = ()


class Part(NamedTuple):
    """Rows with the fields that they fill: of a section with its lists, or of their items.

    An item of the section's own columns has no rows.
    """

    rows: Rows | None
    fields: Sequence[Field]
    items: Mapping[str, Sequence["Part"]] = {}


@dataclass(frozen=True)
class Evidence:
    """Fills the slots of sections; `hospital` is the id of the only one, "" for none."""

    database: Database
    dialect: str
    sections: Mapping[ResourceType, Sequence[Rows]]
    hospital: str

    def parts(self) -> Mapping[ResourceType, Sequence[Part]]:
        """Return the sections with their fields."""
        return {
            kind: [Part(rows, self._fields(rows), self._items(rows)) for rows in of]
            for kind, of in self.sections.items()
        }

    def _fields(self, rows: Rows) -> Sequence[Field]:
        columns, fields = [*rows.columns], dict[str, Field]()
        for slot in (s for s in SLOTS[rows.kind] if s.kind is not Kind.SYSTEM):
            fitting = [
                column for column in columns if column.holds in _TYPES[slot.kind]
            ]
            column, note = self._column(rows, slot, fitting)
            is_led = column is not None and column.refers
            if slot.name == "organization_id" and self.hospital and not is_led:
                fields[slot.name] = Field(
                    slot, None, "the only hospital", self.hospital
                )
            elif column is not None:
                fields[slot.name] = self._field(rows, slot, column, note)
                columns = [each for each in columns if each != column]
            else:
                # What a key leads to says most.
                if REFERS.get(slot.name) is rows.kind:
                    keys = {c.holds for c in rows.columns if c.name == rows.id}
                    fitting = [column for column in fitting if column.holds in keys]
                names = [c.name for c in fitting if c.refers and not c.join]
                names += [c.name for c in fitting if not c.refers and not c.join]
                table = _table_name(rows, slot) if slot.takes else ""
                candidates = names[:_MOST_CANDIDATES]
                fields[slot.name] = Field(slot, candidates=candidates, table=table)
        if "status" in fields and fields["status"].column is None:
            fields["status"] = self._derived(**fields)
        return [*fields.values()]

    def _column(
        self, rows: Rows, slot: Slot, fitting: Sequence[Column]
    ) -> tuple[Column | None, str]:
        """Return the column of a slot and what is open about it, "" where it is declared."""
        if slot.name == "id":
            return next((c for c in fitting if c.name == rows.id), None), rows.id_note
        patterns = _WORDS.get(slot.name, slot.name)
        if slot.name in REFERS:
            fitting = [column for column in fitting if not column.join]
            leading = [c for c in fitting if self._leads(c, REFERS[slot.name])]
            own = [c for c in leading if "other" not in all_of(c.words)]
            if len(own) == 1 and own[0].refers:
                return own[0], own[0].refers.note
            if leading:
                return best(own, patterns.removeprefix("~"))
        # When a row was written is no start.
        others = _ROW_TIMES if slot.name in ("start", "end") else frozenset()
        plain = [c for c in fitting if not (c.is_key or all_of(c.words) & others)]
        column, note = best(plain, patterns, slot.name)
        while column is not None and slot.kind is Kind.CODE and self._says_one(column):
            plain = [each for each in plain if each != column]
            column, note = best(plain, patterns, slot.name)
        if column is not None:
            return column, note or ("by its name" if slot.name in REFERS else "")
        if slot.name == "visit_number":
            return best((c for c in rows.columns if c.name == rows.id), "~stay number")
        return _by_type(slot, plain)

    def _says_one(self, column: Column) -> bool:
        """Whether a column has one value in all of many rows."""
        counts = code_counts(self.database, column.table, column.source.name) or ()
        return not column.join and len(counts) == 1 and counts[0].rows >= _MANY

    def _leads(self, column: Column, kind: ResourceType) -> bool:
        refers, sections = column.refers, self.sections.get(kind)
        if not refers or not sections or column.is_unique:
            return False
        return (refers.table, refers.column) == (sections[0].table, sections[0].id)

    def _field(self, rows: Rows, slot: Slot, column: Column, note: str) -> Field:
        is_time = slot.kind is Kind.TIME
        question = _TIME_QUESTIONS.get(column.holds, "") if is_time else ""
        notes = [note, column.note, question]
        field = Field(slot, column)
        if slot.takes and not (slot.kind is Kind.FLAG and column.holds is Holds.FLAG):
            codes, rare = self._codes(rows, column)
            notes += ["one value in all rows"] if len(codes) + rare == 1 else []
            field = replace(
                field, table=_table_name(rows, slot), codes=codes, rare=rare
            )
        if slot.name == "end":
            far = self._far_times(column)
            # A date of zeros is no time that `absent` could name.
            absent = [text for text in far if not text.startswith("0000")]
            for zero in (text for text in far if text not in absent):
                none = "0" if self.database.dialect.zero_date else f"'{zero}'"
                column = replace(column, select=f"NULLIF({column.select}, {none})")
            field = replace(field, column=column, absent=absent)
        elif slot.kind in (Kind.TIME, Kind.DATE) and column.holds in TIMES:
            far = self._far_times(column)
            field = replace(field, absent=[t for t in far if t.startswith("0000")])
        return replace(field, note="; ".join(filter(None, dict.fromkeys(notes))))

    def _codes(self, rows: Rows, column: Column) -> tuple[Sequence[CodeCount], int]:
        """Return the codes of a column that may be written, and how many others it has."""
        counts = code_counts(self.database, column.table, column.source.name) or ()
        if rows.kind is PATIENT and len(counts) > _MOST_PATIENT_CODES:
            return (), 0
        # The rows of a table of units or types are about nobody.
        fewest = 1 if column.join and rows.kind is not PATIENT else _FEWEST
        codes = [count for count in counts if count.rows >= fewest]
        return codes, len(counts) - len(codes)

    def _far_times(self, column: Column) -> Sequence[str]:
        """Return the times of a column that are so far away that they stand for none."""
        type_ = sa.Date() if column.holds is Holds.DATE else sa.DateTime()
        cell: sa.ColumnElement[Any] = sa.column(column.source.name, type_)
        rows = sa.table(column.table.bare, schema=column.table.schema)
        # As the driver has it: SQLAlchemy makes no date of the zeros in a text of SQLite.
        far = sa.select(sa.type_coerce(cell, sa.String())).select_from(rows)
        far = far.where(sa.or_(cell < _FIRST, cell > _LAST)).distinct().limit(3)
        try:
            return sorted(str(value) for (value,) in self.database.fetch(far))
        except (SourceDataError, SourceTimedOutError, ValueError):
            return ()

    def _derived(
        self, status: Field, start: Field, end: Field, **_others: Field
    ) -> Field:
        """Return a status that follows from start and end, open where they are."""
        holds = {times.column.holds for times in (start, end) if times.column}
        # Only PostgreSQL compares `:now` with an instant (mappings/README.md).
        is_comparable = Holds.INSTANT not in holds or self.dialect == "postgresql"
        if not (start.column and end.column and is_comparable):
            return status
        begin, finish = start.column.select, end.column.select
        now = ":today" if Holds.DATE in holds else ":now"
        select = f"CASE WHEN {begin} > {now} THEN 'planned' WHEN {finish} <= {now}"
        select += " THEN 'finished' ELSE 'in-progress' END"
        column = replace(start.column, select=select, renamed="derived_status")
        codes = [CodeCount(code, 0) for code in STATUSES.split()]
        note = "no column holds it: derived from start and end"
        return replace(status, column=column, codes=codes, note=note)

    def _items(self, rows: Rows) -> Mapping[str, Sequence[Part]]:
        """Return items from the columns of a section, else from a table that refers to it."""
        items = dict[str, Sequence[Part]]()
        for listed in LISTS[rows.kind]:
            slots = {slot.name: slot for slot in (*listed.slots, LINES)}
            kinds = (None, rows.kind)
            every = [e for e in _ITEMS if e.name == listed.name and e.kind in kinds]
            own = [self._item(e, rows, slots) for e in every if e.about is None]
            items[listed.name] = [Part(None, fields) for fields in own if fields]
            for child in rows.children if not items[listed.name] else ():
                words = all_of(child.words)
                about = [e for e in every if e.about is not None]
                fitting = (
                    e for e in about if not e.about or {*e.about.split()} & words
                )
                of_child = (self._item(each, child, slots) for each in fitting)
                items[listed.name] = [
                    Part(child, fields) for fields in of_child if fields
                ]
                if items[listed.name]:
                    break
        return items

    def _item(
        self, evidence: ItemEvidence, rows: Rows, slots: Mapping[str, Slot]
    ) -> Sequence[Field]:
        """Return the fields of an item, none where nothing fills what it needs."""
        columns = [column for column in rows.columns if not column.is_key]
        fields = {
            name: Field(slots[name], None, note, constant)
            for name, (constant, note) in evidence.constants.items()
        }
        filled = set[str]()
        for name, words in evidence.words.items():
            fitting = [
                c for c in columns if c.holds in _TYPES.get(slots[name].kind, TEXTS)
            ]
            column, note = best(fitting, words)
            if column is not None:
                columns.remove(column)
                filled.add(name)
                fields[name] = self._field(rows, slots[name], column, note)
        return [*fields.values()] if filled & evidence.needs else []


def _table_name(rows: Rows, slot: Slot) -> str:
    return re.sub(r"\W", "_", f"{slot.name}_{rows.table.name}")


def _by_type(slot: Slot, times: Sequence[Column]) -> tuple[Column | None, str]:
    """Return the first time that may be a start, or the only one that may be an end."""
    if slot.name == "start":
        times = [column for column in times if "end" not in all_of(column.words)][:1]
    is_clear = slot.name in ("start", "end") and len(times) == 1
    return (times[0], "by its type: no other time is left") if is_clear else (None, "")


def only_hospital(
    database: Database, sections: Mapping[ResourceType, Sequence[Rows]]
) -> tuple[str, str]:
    """Return id and name of the hospital where the database has one, else ""."""
    for rows in sections.get(ORGANIZATION, ()):
        texts = [column for column in rows.columns if column.holds is Holds.TEXT]
        id = next((c for c in rows.columns if c.name == rows.id), None)
        name = best(texts, _WORDS["name"])[0] or id
        if id and name:
            select = f"SELECT {id.select}, {name.select} {rows.start} {name.join} {rows.where}"
            statement = sa.text(select)
            values = database.run(lambda c: c.execute(statement).fetchmany(2))  # noqa: B023
            if len(values) == 1:
                return as_text(values[0][0]), as_text(values[0][1])
    return "", ""
