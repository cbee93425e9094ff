"""What all sections are built with: code tables, times, and the database behind them."""

from dataclasses import dataclass, field

from adapters.contract import ResourceType
from adapters.mapping.slots import LISTS, SLOTS
from adapters.sql.catalogue import Catalogue, Holds, Table, TableColumn
from adapters.sql.database import Database
from adapters.sql.samples import CodeCount, code_counts, some_times
from app.tools.starting.codes import all_known, entries
from app.tools.starting.draft import CodeTable, Draft, Part, Value
from app.tools.starting.references import References
from app.tools.starting.select import Cell, Select
from app.tools.starting.tables import Roles
from app.tools.starting.times import Writing, writing_of
from app.tools.starting.words import meaning

_BARE_FLAGS = frozenset({"0", "1", "true", "false"})
_CLOCKS = {
    5: ("%H:%M", "00:00"),
    8: ("%H:%M:%S", "00:00:00"),
    4: ("%H%M", "0000"),
    6: ("%H%M%S", "000000"),
}
_FRENCH = frozenset(
    "sejour sejours venue etat statut entree sortie naissance nom prenom sexe etablissement"
    " uf unite annule deces lit dossier maj numero date_entree adresse commune libelle".split()
)

_CLASSES = (
    ("EMERGENCY", "EMER"),
    ("INPATIENT", "IMP"),
    ("OUTPATIENT", "AMB"),
    ("APPOINTMENT", "AMB"),
)

CODES: dict[str, tuple[str, ...]] = {
    slot.name: slot.codes for of in SLOTS.values() for slot in of if slot.codes
} | {"yes": ("true", "false"), "active": ("true", "false")}
"""The codes that each coded slot takes."""

_OF_LISTS = {
    f"{listed.name}.{slot.name}": slot.codes
    for listed in LISTS[ResourceType.PATIENT]
    for slot in listed.slots
}
CODES |= {
    "telecom_system": _OF_LISTS["telecoms.system"],
    "telecom_use": _OF_LISTS["telecoms.use"],
    "address_use": _OF_LISTS["addresses.use"],
    "identifier_type": ("PI", "INS-NIR", "INS-NIA", "INS-C", "NDP"),
}


@dataclass
class Builder:
    """The database, what it says of itself, and the draft that grows."""

    database: Database
    catalogue: Catalogue
    references: References
    roles: Roles
    draft: Draft
    _counts: dict[tuple[str, str], tuple[CodeCount, ...] | None] = field(
        default_factory=dict
    )

    @property
    def is_french(self) -> bool:
        """Whether more names of columns are French than not can be."""
        words = {
            w
            for t in self.catalogue.tables
            for c in t.columns
            for w in meaning(c.name).words
        }
        return len(words & _FRENCH) >= 4

    def counts(self, table: Table, column: TableColumn) -> tuple[CodeCount, ...] | None:
        """Return the codes of a column, None where it holds no codes."""
        key = (table.name, column.name)
        if key not in self._counts:
            found = code_counts(self.database, table, column.name)
            seen = {count.code for count in found or ()}
            rest = tuple(
                CodeCount(code, 0) for code in column.choices if code not in seen
            )
            self._counts[key] = None if found is None else found + rest
        return self._counts[key]

    def code_table(
        self, slot: str, name: str, table: Table, column: TableColumn
    ) -> str:
        """Make a code table for a column and return its name, "" where it holds no codes."""
        counts = self.counts(table, column)
        if not counts:
            return ""
        found = entries(slot, counts, french=self.is_french)
        otherwise = ""
        if slot == "class":
            otherwise = class_by_name(table) or "UNK"
        elif slot in ("gender", "telecom_system") and not all_known(found):
            otherwise = {"gender": "unknown", "telecom_system": "other"}[slot]
        chosen = self._free(name, table)
        source = f"{table.name}.{column.name}"
        self.draft.codes[chosen] = CodeTable(source, found, CODES[slot], otherwise)
        return chosen

    def coded(
        self, part: Part, slot: str, table: Table, column: TableColumn, place: int = 0
    ) -> bool:
        """Fill a coded slot from a column; return whether it could be."""
        name = self.code_table(slot, slot, table, column)
        if not name:
            held = self.counts(table, column)
            told = (
                "is empty" if held == () else "holds no codes: it has too many values"
            )
            part.questions.append(f"{slot}: could be {column.name}, which {told}")
            return False
        part.put(slot, {"from": part.select.add(column, place), "codes": name})
        return True

    def flag(
        self,
        part: Part,
        slot: str,
        habit: str,
        table: Table,
        column: TableColumn,
        place: int = 0,
    ) -> None:
        """Fill a slot of true or false from a column that has a value anywhere."""
        counts = self.counts(table, column)
        if not counts:
            return
        codes = {count.code.lower() for count in counts}
        if codes <= _BARE_FLAGS:
            part.put(slot, {"from": part.select.add(column, place)})
            return
        name = self.code_table(habit, slot, table, column)
        part.put(slot, {"from": part.select.add(column, place), "codes": name})

    def told(self, table: Table, column: TableColumn) -> str:
        """Return the codes of a column with their counts, for a question."""
        counts = self.counts(table, column)
        if not counts:
            return ""
        return ", ".join(f"{count.code}: {count.rows}" for count in counts[:6])

    def time(
        self,
        part: Part,
        slot: str,
        table: Table,
        column: TableColumn,
        clock: TableColumn | None = None,
        place: int = 0,
    ) -> None:
        """Fill a slot of times from a column, with its time of day where that is apart."""
        writing = writing_of(self.database, table, column)
        joined = self._with_clock(part.select, table, writing, column, clock, place)
        from_, writing, question = joined or self._alone(
            part.select, writing, column, place
        )
        options: dict[str, Value] = {"from": from_}
        if writing.format:
            options["format"] = writing.format
        if not writing.has_clock:
            options["at"] = "00:00"
            question = (
                question or "days without a time of day: which time do they stand for?"
            )
        if writing.is_utc and not writing.has_zone and not self.draft.source_zone:
            options["time_zone"] = "UTC"
        elif slot == "last_updated" and not (
            writing.has_zone or self.draft.source_zone
        ):
            question = (
                question or "on the hospital's clock, or in UTC (time_zone: UTC)?"
            )
        if writing.absent:
            options["absent"] = list(writing.absent)
        put = part.put if writing.sorts else part.put_unsearched
        put(slot, options, writing.question or question)

    def day(
        self, part: Part, slot: str, table: Table, column: TableColumn, place: int = 0
    ) -> None:
        """Fill a slot of days."""
        writing = writing_of(self.database, table, column)
        from_, writing, question = self._alone(part.select, writing, column, place)
        options: dict[str, Value] = {"from": from_}
        if writing.format:
            options["format"] = writing.format
        if writing.absent:
            options["absent"] = list(writing.absent)
            question = question or "is that a day of birth, or none?"
        part.put(slot, options, writing.question or question)

    def _alone(
        self, select: Select, writing: Writing, column: TableColumn, place: int
    ) -> tuple[str, Writing, str]:
        cell = Cell(place, column)
        if writing.zeros:
            name = select.express(column.name, "NULLIF({0}, '0000-00-00')", cell)
            return name, writing, ""
        if writing.rearranged:
            name = select.express(f"{column.name}_iso", writing.rearranged, cell)
            return name, writing, "rearranged so that it sorts: no index helps"
        return select.add(column, place), writing, ""

    def _with_clock(
        self,
        select: Select,
        table: Table,
        writing: Writing,
        column: TableColumn,
        clock: TableColumn | None,
        place: int,
    ) -> tuple[str, Writing, str] | None:
        """Join a day and its time of day in the SELECT, where the database can."""
        if clock is None or writing.has_clock:
            return None
        cells = (Cell(place, column), Cell(place, clock))
        name = f"{column.name}_{clock.name}"
        whole = Writing(absent=writing.absent, question=writing.question)
        if clock.holds is Holds.CLOCK and self.catalogue.dialect == "postgresql":
            return (
                select.express(name, "{0} + COALESCE({1}, TIME '00:00')", *cells),
                whole,
                "",
            )
        if clock.holds is Holds.CLOCK and self.catalogue.dialect in (
            "mysql",
            "mariadb",
        ):
            return (
                select.express(name, "TIMESTAMP({0}, COALESCE({1}, '00:00'))", *cells),
                whole,
                "",
            )
        form = self._clock_format(table, clock)
        if not form or clock.holds is Holds.INTEGER:
            return None
        day = writing.rearranged or "{0}"
        sql = f"{day} || ' ' || COALESCE({{1}}, '{form[1]}')"
        joined = f"{writing.format or '%Y-%m-%d'} {form[0]}"
        plain = joined == "%Y-%m-%d %H:%M:%S"
        absent = tuple(f"{text} {form[1]}" for text in writing.absent)
        whole = Writing(
            "" if plain else joined, absent=absent, question=writing.question
        )
        return (
            select.express(name, sql, *cells),
            whole,
            "two columns made one: no index helps",
        )

    def _clock_format(self, table: Table, clock: TableColumn) -> tuple[str, str] | None:
        texts = {
            str(v).strip() for v in some_times(self.database, table, clock.name)
        } - {""}
        lengths = {len(text) for text in texts}
        return _CLOCKS.get(lengths.pop()) if len(lengths) == 1 else None

    def _free(self, name: str, table: Table) -> str:
        if name not in self.draft.codes:
            return name
        words = [w for w in meaning(table.bare).words if w.isalpha()]
        named = f"{name}_{words[-1]}" if words else f"{name}_2"
        while named in self.draft.codes:
            named += "_2"
        return named


def class_by_name(table: Table) -> str:
    """Return what the name of a table says of the class of its stays, "" for nothing."""
    known = meaning(table.bare).known
    return next((made for word, made in _CLASSES if word in known), "")
