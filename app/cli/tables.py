"""The tables of a database as parts of a first mapping: columns, joins, keys.

Declared foreign keys come first. Where none is declared a column leads to the table whose key
or name it has; that is a guess, and named as one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property, partial
from itertools import chain
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import sqlalchemy as sa

from adapters.contract import ResourceType, SourceDataError, SourceTimedOutError
from adapters.mapping.problems import did_you_mean
from adapters.mapping.values import LONGEST_CODE, as_text
from adapters.sql.catalog import (
    MOST_CODES,
    Catalogue,
    CodeCount,
    Holds,
    Table,
    TableColumn,
    code_counts,
)
from adapters.sql.engine import Database
from app.cli.check import CannotRunError
from app.cli.draft import MOST_PATIENT_CODES, TEXTS, TIMES, Part, Sections, with_fields
from app.cli.names import Column, best, meanings_of, prefix_of, words_of

STAY, PATIENT, ORGANIZATION = ResourceType

_TABLE_NAMES: Mapping[ResourceType, tuple[str, ...]] = MappingProxyType(
    {
        STAY: ("encounter", "encounters", "stay", "stays"),
        PATIENT: ("patient", "patients"),
        ORGANIZATION: ("organization", "organizations"),
    }
)
"""The names of tables that are recognised without an option."""

_FIRST, _LAST = datetime(1800, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local times
"""An end that is not between these days stands for none."""

_LONGEST_DECLARED = 2 * LONGEST_CODE
"""A longer text is counted only if its name says that it holds codes."""

_CODED_MEANINGS = frozenset({"status", "class", "sex", "active", "death"})


class Reference(NamedTuple):
    """A column of another table that a column leads to, and what is open about it."""

    table: Table
    column: str
    note: str = ""


@dataclass(frozen=True)
class _TableReader:
    """Reads tables into parts; `sections` are the tables that have a section of their own."""

    database: Database
    catalogue: Catalogue
    sections: Sequence[Table]
    known: dict[str, Mapping[str, Reference]] = field(default_factory=dict)

    def part(
        self, kind: ResourceType, table: Table, persons: Sequence[Table], id: str
    ) -> Part:
        """Return the part of a table; `id` is the column that other sections lead to."""
        tables, left = [f"FROM {table.written} {_alias(table, ())}"], []
        owners = {table: _alias(table, ())}
        columns = [*self._columns(kind, table, owners[table])]
        for person in self._persons(kind, table, persons):
            if (link := self._link(table, person)) is None:
                left.append(f"no key of {table.name} leads to {person.name}: join it")
                continue
            alias = _alias(person, owners.values())
            own, other = table.by_name[link[0]].written, person.by_name[link[1]].written
            on = f"{alias}.{other} = {owners[table]}.{own}"
            tables.append(f"LEFT JOIN {person.written} {alias} ON {on}")
            left += [f"{person.name}: {link[2]}"] if link[2] else []
            owners[person] = alias
            columns += self._columns(kind, person, alias, columns)
        if kind is STAY:
            columns = [
                self._led_to(table, column, number)
                for number, column in enumerate(columns)
            ]
        tables += self._without_deleted(columns, left)
        key, question = _key_of(table)
        id = id or key
        question = question if id == key else "other tables lead to it"
        same = [
            o for o in owners if o == table or (self._link(table, o) or ("",))[0] == id
        ]
        children = self._children(same) if kind is PATIENT else ()
        named = (kind, table.name, columns, id, question)
        return Part(*named, tables=tables, left=left, children=[*children])

    def _columns(
        self,
        kind: ResourceType,
        table: Table,
        alias: str,
        before: Sequence[Column] = (),
    ) -> Iterator[Column]:
        prefix = prefix_of(table)
        taken = {column.name.lower() for column in before}
        for column in table.columns:
            if column.holds is Holds.OTHER:
                continue
            reference = self.references(table).get(column.name)
            name = f"{table.bare}_{column.name}" if column.name.lower() in taken else ""
            note = f"of {table.name}" if before else ""
            words = meanings_of(column.name, prefix)
            meanings = frozenset[str]().union(*words)
            ends = column.holds in TIMES and kind is STAY
            absent = self._no_times(table, column) if ends else ()
            # A date of zeros is no time that `absent` could name.
            zeros = [text for text in absent if text.startswith("0000")]
            select = self._without(zeros, f"{alias}.{column.written}")
            yield Column(
                name or column.name,
                column.holds,
                words,
                cache(partial(self._counts, kind, table, column, meanings)),
                select,
                f"{reference.table.name}.{reference.column}" if reference else "",
                (reference.note if reference else "") or note,
                is_key=table.is_unique(column.name),
                absent=tuple(text for text in absent if text not in zeros),
            )

    def _counts(
        self,
        kind: ResourceType,
        table: Table,
        column: TableColumn,
        meanings: frozenset[str],
    ) -> Sequence[CodeCount] | None:
        is_long = (column.length or 0) > _LONGEST_DECLARED and not column.choices
        if table.is_unique(column.name) or (is_long and not meanings & _CODED_MEANINGS):
            return None
        counts = code_counts(self.database, table, column.name, often=True)
        most = MOST_PATIENT_CODES if kind is PATIENT else MOST_CODES
        if column.choices:
            rows = {count.code: count.rows for count in counts or ()}
            return [CodeCount(code, rows.get(code, 0)) for code in column.choices]
        return counts if counts is not None and len(counts) <= most else None

    def _without(self, zeros: Sequence[str], select: str) -> str:
        """Return what a SELECT says for a column without its dates of zeros."""
        if self.database.dialect.zero_date:
            return f"NULLIF({select}, 0)" if zeros else select
        for zero in zeros:
            select = f"NULLIF({select}, '{zero}')"
        return select

    def _no_times(self, table: Table, column: TableColumn) -> tuple[str, ...]:
        """Return the times of a column that are so far away that they stand for none."""
        type_ = sa.Date() if column.holds is Holds.DATE else sa.DateTime()
        cell: sa.ColumnElement[Any] = sa.column(column.name, type_)
        rows = sa.table(table.bare, schema=table.schema)
        is_far = sa.or_(cell < _FIRST, cell > _LAST)
        # As the driver has it: SQLAlchemy makes no date of the zeros in a text of SQLite.
        far = (
            sa.select(sa.type_coerce(cell, sa.String())).select_from(rows).where(is_far)
        )
        try:
            found = self.database.fetch(far.distinct().limit(3))
            return tuple(sorted(str(value) for (value,) in found))
        except (SourceDataError, SourceTimedOutError, ValueError):
            return ()

    @cached_property
    def _tables_by_name(self) -> Mapping[str, tuple[Table, str]]:
        """Tables and their keys by the key's name, the table's, and the end of that."""
        tables = [
            t for t in (*self.sections, *self.catalogue.tables) if not _key_of(t)[1]
        ]
        result: dict[str, tuple[Table, str]] = {}
        for table in tables:
            result.setdefault(_key_of(table)[0].lower(), (table, _key_of(table)[0]))
        for skipped in range(_MOST_WORDS):
            for table in tables:
                name = _singular(words_of(table.bare)[skipped:])
                result.setdefault(name, (table, _key_of(table)[0]))
        return {name: row for name, row in result.items() if name not in ("", "id")}

    def references(self, table: Table) -> Mapping[str, Reference]:
        """Return where the columns of a table lead to, by declared keys or by names."""
        if table.name not in self.known:
            found = {
                column.name: self._guess(table, column) for column in table.columns
            }
            for key in table.foreign_keys:
                other = self.catalogue.by_name.get(key.table)
                if other is not None and len(key.columns) == 1:
                    found[key.columns[0]] = Reference(other, key.referred[0])
            self.known[table.name] = {n: r for n, r in found.items() if r}
        return self.known[table.name]

    def _guess(self, table: Table, column: TableColumn) -> Reference | None:
        words = _singular(words_of(column.name, prefix_of(table)))
        for name in (column.name.lower(), words):
            other, key = self._tables_by_name.get(name, (table, ""))
            if other != table and other.by_name[key].holds is column.holds:
                return Reference(other, key, f"undeclared: is it {other.name}.{key}?")
        return None

    def _link(self, table: Table, person: Table) -> tuple[str, str, str] | None:
        """Return the columns by which two tables are joined, and what is open about it."""
        for name, reference in self.references(table).items():
            if reference.table == person:
                return name, reference.column, reference.note
        for name, reference in self.references(person).items():
            if reference.table == table and person.is_unique(name):
                return reference.column, name, reference.note
        return None

    def _persons(
        self, kind: ResourceType, table: Table, persons: Sequence[Table]
    ) -> Sequence[Table]:
        """Return the tables that hold more of the same persons (or of the hospital)."""
        if kind is STAY:
            return ()
        if kind is ORGANIZATION:
            return [person for person in persons if self._link(table, person)]
        keys = {n: r.table for n, r in self.references(table).items()}
        same = [keys[name] for name in keys if table.is_unique(name)]
        return [*dict.fromkeys((*persons, *same))]

    def _led_to(self, table: Table, column: Column, number: int) -> Column:
        """Return what a key says: the code of a unit, the name of a type of stay."""
        name = column.select.partition(".")[2].strip('`"[]')
        reference = self.references(table).get(name)
        if reference is None or reference.table in self.sections:
            return column
        other = reference.table
        words = (*column.words, *meanings_of(other.bare))
        meanings = frozenset[str]().union(*words)
        wanted = "code" if "unit" in meanings else "label"
        if "other" in meanings or not meanings & {"unit", "class", "status"}:
            return column
        alias = f"{_alias(other, ())}{number}"
        texts = [c for c in self._columns(STAY, other, alias) if c.holds is Holds.TEXT]
        label, _ = best(texts, wanted)
        note = reference.note or f"of {other.name}"
        if label is None:
            note = f"the key of {other.name}, which has no column of codes"
            return replace(column, words=words, refers="", note=note)
        on = f"{alias}.{other.by_name[reference.column].written} = {column.select}"
        join = f"LEFT JOIN {other.written} {alias} ON {on}"
        named = re.sub(r"(?i)_?id$", "", name) + f"_{label.name}"
        counts = cache(partial(code_counts, self.database, other, label.name))
        label = replace(label, name=named, words=words, counts=counts, fewest=1)
        return replace(label, note=note, is_key=False, join=join)

    def _without_deleted(
        self, columns: Sequence[Column], left: list[str]
    ) -> Iterator[str]:
        """Yield the condition that leaves out deleted rows, and name it in `left`."""
        marks = [c for c in columns if "deleted" in c.meanings and len(c.words) == 1]
        flags = [c for c in marks if c.holds is Holds.FLAG]
        if flags and self.catalogue.dialect in _TRUE_DIALECTS:
            names = [column.select for column in flags]
            left.append(
                f"rows whose {' or '.join(names)} is true are left out: are they deleted?"
            )
            yield f"WHERE {' AND '.join(f'{name} IS NOT TRUE' for name in names)}"
        elif names := [c.name for c in marks if c.holds in TEXTS]:
            left.append(f"{', '.join(names)}: deleted rows? Leave them out by a WHERE")

    def _children(self, owners: Sequence[Table]) -> Iterator[Part]:
        """Yield the tables whose rows refer to patients by their id."""
        for table in self.catalogue.tables:
            if table in (*owners, *self.sections) or table.is_view:
                continue
            columns = [*self._columns(PATIENT, table, _alias(table, ()))]
            leading = [
                n for n, r in self.references(table).items() if r.table in owners
            ]
            for key in [c for c in columns if c.name in leading][:1]:
                left: list[str] = []
                tables = [f"FROM {table.written} {_alias(table, ())}"]
                tables += self._without_deleted(columns, left)
                named = (PATIENT, table.name, columns, key.name)
                yield Part(*named, tables=tables, left=left)


_MOST_WORDS = 4
_TRUE_DIALECTS = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})
"""Databases in which a condition may say IS NOT TRUE."""


def _singular(words: Iterable[str]) -> str:
    return "_".join(word.removesuffix("s") for word in words)


def _key_of(table: Table) -> tuple[str, str]:
    """Return the column that is the id of a row, and the question that it leaves."""
    if len(table.primary_key) == 1:
        return table.primary_key[0], ""
    if table.primary_key:
        columns = ", ".join(table.primary_key)
        question = f"the key is {columns}: make one text of them in the SELECT"
        return table.primary_key[0], question
    names = [c.name for c in table.columns if c.holds in TEXTS] or [
        table.columns[0].name
    ]
    if unique := [name for name in names if table.is_unique(name)]:
        return unique[0], ""
    named_id = [name for name in names if name.lower() == "id"]
    question = "no key is declared: is this column different in each row?"
    return (named_id or names)[0], question


def _alias(table: Table, taken: Iterable[str]) -> str:
    """Return a short name for a table in a SELECT."""
    first = re.sub(r"[^a-z]", "", table.bare.lower())[:1] or "t"
    number = sum(re.fullmatch(rf"{first}\d*", name) is not None for name in taken)
    return f"{first}{number + 1}" if number else first


def sections_of(
    options: SimpleNamespace, database: Database, catalogue: Catalogue
) -> tuple[Sections, str]:
    """Return the sections, and the name of the hospital where there is one row of them."""
    if not catalogue.tables:
        raise CannotRunError(
            "the account sees no table in the default schema; name another with --schema:"
            f" {_listed(catalogue.schemas)}"
        )
    tables = {
        kind: _tables(
            catalogue, kind, getattr(options, {STAY: "stay"}.get(kind, kind.lower()))
        )
        for kind in ResourceType
    }
    if not tables[STAY]:
        raise CannotRunError(
            "no table is called stays: name the one or more that hold them with --stay. The"
            f" tables are: {_listed(list(catalogue.by_name))}"
        )
    # Of patients the first table is theirs; others hold the same persons.
    persons = tables[PATIENT][1:]
    chosen = {kind: of if kind is STAY else of[:1] for kind, of in tables.items() if of}
    every = [table for of in chosen.values() for table in of]
    reader = _TableReader(database, catalogue, every)
    if ORGANIZATION not in chosen and (hospital := _hospital(reader, tables[STAY])):
        chosen[ORGANIZATION] = [hospital]
        reader = _TableReader(database, catalogue, [*every, hospital])
    ids = {
        r.table.name: r.column
        for t in tables[STAY]
        for r in reader.references(t).values()
    }
    parts = {
        kind: [reader.part(kind, t, persons, ids.get(t.name, "")) for t in of]
        for kind, of in chosen.items()
    }
    id, name = "", ""
    if ORGANIZATION in chosen:
        id, name = _only_hospital(database, parts[ORGANIZATION][0])
    return with_fields(parts, id), name or "My hospital"


def _hospital(reader: _TableReader, stays: Sequence[Table]) -> Table | None:
    """Return the table of hospitals that stays lead to, as far as names tell."""
    for reference in chain.from_iterable(reader.references(t).values() for t in stays):
        meanings = meanings_of(reference.table.bare)
        if meanings and "hospital" in meanings[-1]:
            return reference.table
    return None


def _only_hospital(database: Database, part: Part) -> tuple[str, str]:
    """Return id and name of the hospital where the database has one, else ""."""
    texts = [column for column in part.columns if column.holds is Holds.TEXT]
    id = next(column for column in part.columns if column.name == part.id)
    name = best(texts, "name")[0] or id
    select = sa.text(f"SELECT {id.select}, {name.select} {' '.join(part.tables)}")
    rows = database.run(lambda connection: connection.execute(select).fetchmany(2))
    return (as_text(rows[0][0]), as_text(rows[0][1])) if len(rows) == 1 else ("", "")


def _tables(
    catalogue: Catalogue, kind: ResourceType, names: Sequence[str]
) -> list[Table]:
    """Return the tables of a type: those named, or else one with an obvious name."""
    by_name = {table.name.lower(): table for table in catalogue.tables}
    if not names:
        obvious = [by_name[name] for name in _TABLE_NAMES[kind] if name in by_name]
        return obvious[:1]
    tables = []
    for name in names:
        table = catalogue.by_name.get(name) or by_name.get(name.lower())
        if table is None:
            near = did_you_mean(name, catalogue.by_name)
            text = near or f"; there are: {_listed(list(catalogue.by_name))}"
            raise CannotRunError(f"there is no table '{name}'{text}")
        tables.append(table)
    return tables


def _listed(names: Sequence[str]) -> str:
    """Return names in one text, the first sixty where there are more."""
    more = f" and {len(names) - 60} more" if len(names) > 60 else ""
    return ", ".join(names[:60]) + more
