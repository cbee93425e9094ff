"""The tables of a database as parts of a first mapping: columns, joins, keys.

Declared foreign keys come first. Where none is declared a column leads to the table whose key
or name it has; that is a guess, and named as one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property, partial
from types import SimpleNamespace
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
from app.cli.draft import TEXTS, TIMES, Part, Sections, with_fields
from app.cli.names import Column, best, meanings_of, prefix_of, words_of

STAY, PATIENT, ORGANIZATION = ResourceType

_NAMES = {
    STAY: ("encounter", "stay"),
    PATIENT: ("patient",),
    ORGANIZATION: ("organization",),
}
"""The names of tables that are recognised without an option, also with an s."""

_FIRST, _LAST = datetime(1800, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local times
"""An end that is not between these days stands for none."""

_MOST_PATIENT_CODES = 12
"""In a table of persons a column with more different values may hold names."""

_LONGEST_DECLARED = 2 * LONGEST_CODE
"""A longer text is counted only if its name says that it holds codes."""

_CODED_MEANINGS = frozenset({"status", "class", "sex", "active", "death"})

_TRUE_DIALECTS = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})
"""Databases in which a condition may say IS NOT TRUE."""

_MOST_WORDS = 4
"""How many words at the beginning of a table's name a column may leave out."""


class Reference(NamedTuple):
    """A column of another table that a column leads to, and what is open about it."""

    table: Table
    column: str
    note: str = ""


@dataclass(frozen=True)
class _TableReader:
    """Reads tables into parts; `chosen` are the tables that have a section of their own.

    `persons` are further tables of patients.
    """

    database: Database
    catalogue: Catalogue
    chosen: Mapping[ResourceType, Sequence[Table]]
    persons: Sequence[Table]

    def part(self, kind: ResourceType, table: Table) -> Part:
        """Return the part of a table."""
        alias = _alias(table)
        aliases, tables, left = {table: alias}, [_from(table)], list[str]()
        columns = [*self._columns(kind, table, alias)]
        for person in self._persons(kind, table):
            own, leads = self._link(table, person)
            if leads is None:
                left.append(f"no key of {table.name} leads to {person.name}: join it")
                continue
            aliases[person] = joined = _alias(person, aliases.values())
            on = f"{joined}.{person.by_name[leads.column].written}"
            on += f" = {alias}.{table.by_name[own].written}"
            tables.append(f"LEFT JOIN {person.written} {joined} ON {on}")
            left += [f"{person.name}: {leads.note}"] if leads.note else []
            taken = {column.name.lower() for column in columns}
            for column in self._columns(kind, person, joined):
                column = replace(column, note=column.note or f"of {person.name}")
                is_taken = column.name.lower() in taken
                columns.append(_named(column, person.bare) if is_taken else column)
        if kind is STAY:
            columns = [self._led_to(table, *each) for each in enumerate(columns)]
        tables += self._without_deleted(columns, left)
        key, question = _key_of(table)
        if (id := self._ids.get(table.name, key)) != key:
            question = "other tables lead to it"
        same = [o for o in aliases if o == table or self._link(table, o)[0] == id]
        children = [*self._children(same)] if kind is PATIENT else ()
        return Part(kind, table.name, columns, id, question, tables, left, children)

    def _columns(
        self, kind: ResourceType, table: Table, alias: str
    ) -> Iterator[Column]:
        prefix = prefix_of(table)
        for column in table.columns:
            if column.holds is Holds.OTHER:
                continue
            reference = self.references[table.name].get(column.name)
            words = meanings_of(column.name, prefix)
            meanings = frozenset[str]().union(*words)
            is_time = column.holds in TIMES and kind is STAY
            far = self._far_times(table, column) if is_time else ()
            # A date of zeros is no time that `absent` could name.
            zeros = [text for text in far if text.startswith("0000")]
            yield Column(
                column.name,
                column.holds,
                words,
                cache(partial(self._counts, kind, table, column, meanings)),
                self._without(zeros, f"{alias}.{column.written}"),
                column.written,
                f"{reference.table.name}.{reference.column}" if reference else "",
                reference.note if reference else "",
                is_key=table.is_unique(column.name),
                absent=tuple(text for text in far if text not in zeros),
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
        if column.choices:
            rows = {count.code: count.rows for count in counts or ()}
            return [CodeCount(code, rows.get(code, 0)) for code in column.choices]
        most = _MOST_PATIENT_CODES if kind is PATIENT else MOST_CODES
        return counts if counts is not None and len(counts) <= most else None

    def _without(self, zeros: Sequence[str], select: str) -> str:
        """Return what a SELECT says for a column without its dates of zeros."""
        if self.database.dialect.zero_date:
            return f"NULLIF({select}, 0)" if zeros else select
        for zero in zeros:
            select = f"NULLIF({select}, '{zero}')"
        return select

    def _far_times(self, table: Table, column: TableColumn) -> tuple[str, ...]:
        """Return the times of a column that are so far away that they stand for none."""
        type_ = sa.Date() if column.holds is Holds.DATE else sa.DateTime()
        cell: sa.ColumnElement[Any] = sa.column(column.name, type_)
        rows = sa.table(table.bare, schema=table.schema)
        # As the driver has it: SQLAlchemy makes no date of the zeros in a text of SQLite.
        far = sa.select(sa.type_coerce(cell, sa.String())).select_from(rows)
        far = far.where(sa.or_(cell < _FIRST, cell > _LAST)).distinct().limit(3)
        try:
            return tuple(sorted(str(value) for (value,) in self.database.fetch(far)))
        except (SourceDataError, SourceTimedOutError, ValueError):
            return ()

    # Where columns lead to

    @cached_property
    def sections(self) -> Sequence[Table]:
        """The tables that have a section of their own."""
        return [table for of in self.chosen.values() for table in of]

    @cached_property
    def references(self) -> Mapping[str, Mapping[str, Reference]]:
        """Where the columns of each table lead to, by declared keys or by names."""
        every = {}
        for table in self.catalogue.tables:
            guesses = ((c.name, self._guess(table, c)) for c in table.columns)
            leading = {name: guess for name, guess in guesses if guess}
            for key in table.foreign_keys:
                other = self.catalogue.by_name.get(key.table)
                if other is not None and len(key.columns) == 1:
                    leading[key.columns[0]] = Reference(other, key.referred[0])
            every[table.name] = leading
        return every

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        """The columns that stays lead to, by their tables."""
        leading = [
            r for t in self.chosen[STAY] for r in self.references[t.name].values()
        ]
        return {reference.table.name: reference.column for reference in leading}

    @cached_property
    def _keys_by_name(self) -> Mapping[str, Reference]:
        """Tables and their keys by the key's name, the table's, and the end of that."""
        tables = (*self.sections, *self.catalogue.tables)
        keys = [(t, _key_of(t)[0]) for t in tables if not _key_of(t)[1]]
        names = [(key.lower(), Reference(table, key)) for table, key in keys]
        for skipped in range(_MOST_WORDS):
            for table, key in keys:
                name = _singular(words_of(table.bare)[skipped:])
                names.append((name, Reference(table, key)))
        # The first with a name has it.
        return {name: key for name, key in reversed(names) if name not in ("", "id")}

    def _guess(self, table: Table, column: TableColumn) -> Reference | None:
        words = _singular(words_of(column.name, prefix_of(table)))
        for name in (column.name.lower(), words):
            guess = self._keys_by_name.get(name)
            if guess is None or guess.table == table:
                continue
            if guess.table.by_name[guess.column].holds is column.holds:
                note = f"undeclared: is it {guess.table.name}.{guess.column}?"
                return guess._replace(note=note)
        return None

    def _link(self, table: Table, other: Table) -> tuple[str, Reference | None]:
        """Return the column by which another table is joined, and what it leads to there."""
        for name, reference in self.references[table.name].items():
            if reference.table == other:
                return name, reference
        for name, reference in self.references[other.name].items():
            if reference.table == table and other.is_unique(name):
                return reference.column, Reference(other, name, reference.note)
        return "", None

    def _persons(self, kind: ResourceType, table: Table) -> Sequence[Table]:
        """Return the tables that hold more of the same persons (or of the hospital)."""
        if kind is STAY:
            return ()
        if kind is ORGANIZATION:
            return [p for p in self.persons if self._link(table, p)[0]]
        leading = self.references[table.name].items()
        same = [reference.table for name, reference in leading if table.is_unique(name)]
        return [*dict.fromkeys((*self.persons, *same))]

    def _led_to(self, table: Table, number: int, column: Column) -> Column:
        """Return what a key says: the code of a unit, the name of a type of stay."""
        reference = self.references[table.name].get(column.name)
        if reference is None or reference.table in self.sections:
            return column
        other = reference.table
        words = (*column.words, *meanings_of(other.bare))
        meanings = frozenset[str]().union(*words)
        if "other" in meanings or not meanings & {"unit", "class", "status"}:
            return column
        alias = f"{_alias(other)}{number}"
        texts = [c for c in self._columns(STAY, other, alias) if c.holds is Holds.TEXT]
        label, _ = best(texts, "code" if "unit" in meanings else "label")
        if label is None:
            note = f"the key of {other.name}, which has no column of codes"
            note = reference.note or note
            return replace(column, words=words, refers="", note=note)
        on = f"{alias}.{other.by_name[reference.column].written} = {column.select}"
        return replace(
            _named(label, re.sub(r"(?i)_?id$", "", column.name)),
            words=words,
            counts=cache(partial(code_counts, self.database, other, label.name)),
            fewest=1,
            note=reference.note or f"of {other.name}",
            is_key=False,
            join=f"LEFT JOIN {other.written} {alias} ON {on}",
        )

    def _without_deleted(
        self, columns: Sequence[Column], left: list[str]
    ) -> Iterator[str]:
        """Yield the condition that leaves out deleted rows, and name it in `left`."""
        marks = [c for c in columns if "deleted" in c.meanings and len(c.words) == 1]
        flags = [c.select for c in marks if c.holds is Holds.FLAG]
        if flags and self.catalogue.dialect in _TRUE_DIALECTS:
            names = " or ".join(flags)
            left.append(f"rows whose {names} is true are left out: are they deleted?")
            yield f"WHERE {' AND '.join(f'{flag} IS NOT TRUE' for flag in flags)}"
        elif names := ", ".join(c.name for c in marks if c.holds in TEXTS):
            left.append(f"{names}: deleted rows? Leave them out by a WHERE")

    def _children(self, owners: Sequence[Table]) -> Iterator[Part]:
        """Yield the tables whose rows refer to patients by their id."""
        for table in self.catalogue.tables:
            if table in (*owners, *self.sections) or table.is_view:
                continue
            references, left = self.references[table.name], list[str]()
            columns = [*self._columns(PATIENT, table, _alias(table))]
            leading = (c for c in columns if c.name in references)
            keys = (c for c in leading if references[c.name].table in owners)
            if key := next(keys, None):
                tables = [_from(table), *self._without_deleted(columns, left)]
                yield Part(PATIENT, table.name, columns, key.name, "", tables, left)


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
    texts = [column.name for column in table.columns if column.holds in TEXTS]
    names = texts or [table.columns[0].name]
    if unique := [name for name in names if table.is_unique(name)]:
        return unique[0], ""
    named_id = [name for name in names if name.lower() == "id"]
    question = "no key is declared: is this column different in each row?"
    return (named_id or names)[0], question


def _alias(table: Table, taken: Iterable[str] = ()) -> str:
    """Return a short name for a table in a SELECT."""
    first = re.sub(r"[^a-z]", "", table.bare.lower())[:1] or "t"
    number = sum(re.fullmatch(rf"{first}\d*", name) is not None for name in taken)
    return f"{first}{number + 1}" if number else first


def _named(column: Column, before: str) -> Column:
    """Return a column with a name that no statement has to quote."""
    name = re.sub(r"\W", "_", f"{before}_{column.name}").lower()
    return replace(column, name=name, written=name)


def _from(table: Table) -> str:
    return f"FROM {table.written} {_alias(table)}"


# Which tables are read


def sections_of(
    options: SimpleNamespace, database: Database, catalogue: Catalogue
) -> tuple[Sections, str]:
    """Return the sections, and the name of the hospital where there is one row of them.

    Raises CannotRunError where the tables of stays are not known.
    """
    if not catalogue.tables:
        raise CannotRunError(
            "the account sees no table in the default schema; name another with --schema:"
            f" {_listed(catalogue.schemas)}"
        )
    options_of = {STAY: options.stay, PATIENT: options.patient}
    tables = {
        kind: _tables(catalogue, kind, options_of.get(kind, options.organization))
        for kind in ResourceType
    }
    if not tables[STAY]:
        raise CannotRunError(_without_stays(catalogue))
    # Of patients the first table is theirs; others hold the same persons.
    chosen = {kind: of if kind is STAY else of[:1] for kind, of in tables.items() if of}
    reader = _TableReader(database, catalogue, chosen, tables[PATIENT][1:])
    if ORGANIZATION not in chosen and (hospital := _hospital(reader)):
        reader = replace(reader, chosen={**chosen, ORGANIZATION: [hospital]})
    parts = {
        kind: [reader.part(kind, table) for table in of]
        for kind, of in reader.chosen.items()
    }
    hospitals = parts.get(ORGANIZATION)
    id, name = _only_hospital(database, hospitals[0]) if hospitals else ("", "")
    return with_fields(parts, id), name or "My hospital"


def _without_stays(catalogue: Catalogue) -> str:
    """Return what to do where no table is known to hold stays."""
    names = [t.name for t in catalogue.tables if _is_about(t, "stay")]
    example = f", as in --stay {names[0]}" if names else ""
    every = _listed([*names, *(n for n in catalogue.by_name if n not in names)])
    return (
        "which table holds the stays? Repeat the command with --stay TABLE, or several"
        f" tables{example}. The tables are: {every}"
    )


def _is_about(table: Table, meaning: str) -> bool:
    return any(meaning in word for word in meanings_of(table.bare)[-1:])


def _hospital(reader: _TableReader) -> Table | None:
    """Return the table of hospitals that stays lead to, as far as names tell."""
    for table in reader.chosen[STAY]:
        for reference in reader.references[table.name].values():
            if _is_about(reference.table, "hospital"):
                return reference.table
    return None


def _only_hospital(database: Database, part: Part) -> tuple[str, str]:
    """Return id and name of the hospital where the database has one, else ""."""
    texts = [column for column in part.columns if column.holds is Holds.TEXT]
    id = next((c for c in part.columns if c.name == part.id), None)
    name = best(texts, "name")[0] or id
    if id is None or name is None:
        return "", ""
    select = sa.text(f"SELECT {id.select}, {name.select} {' '.join(part.tables)}")
    rows = database.run(lambda connection: connection.execute(select).fetchmany(2))
    return (as_text(rows[0][0]), as_text(rows[0][1])) if len(rows) == 1 else ("", "")


def _tables(
    catalogue: Catalogue, kind: ResourceType, names: Sequence[str]
) -> list[Table]:
    """Return the tables of a type: those named, or else one with an obvious name."""
    by_name = {table.name.lower(): table for table in catalogue.tables}
    if not names:
        obvious = [f"{name}{s}" for name in _NAMES[kind] for s in ("", "s")]
        return [by_name[name] for name in obvious if name in by_name][:1]
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
