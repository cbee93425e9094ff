"""Which tables hold stays, patients and hospitals, and the columns that a SELECT can read.

Declared foreign keys come first. Where none is declared a column leads to the table whose key
or name it has; that is a guess, and named as one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.problems import did_you_mean
from adapters.sql.catalog import Catalogue, Holds, Table, TableColumn
from app.cli.check import CannotRunError
from app.cli.names import Words, all_of, fit, meanings_of, prefix_of, words_of

STAY, PATIENT, ORGANIZATION = ResourceType

TIMES = frozenset({Holds.DATE, Holds.LOCAL_TIME, Holds.INSTANT})
TEXTS = frozenset({Holds.TEXT, Holds.INTEGER})

_TABLES: Mapping[ResourceType, tuple[str, str]] = {
    STAY: ("stay", "patient start end status class unit"),
    PATIENT: ("patient", "birth sex family given death"),
    ORGANIZATION: ("hospital", "name lines city postal_code phone"),
}
"""What the name of a table of each kind means, and the names of its columns."""

_ENOUGH = 4
"""The score of a table whose name means its kind and nothing else."""

_NEUTRAL = frozenset({"patient", "hospital", "start", "end", "audit"})
"""What the name of a table may mean beside its kind: "encounter_type" holds no stays."""

_CODED = frozenset({"unit", "class", "status", "sex"})
_CODES = "=code, unit code, =number"
_LABELS = "=code, class code, =name, class name"
"""What the names of keys to units, types or states mean, and of the columns that say which."""

_TRUE_DIALECTS = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})
"""Databases in which a condition may say IS NOT TRUE."""


class Reference(NamedTuple):
    """A column of another table that a column leads to, and what is open about it."""

    table: Table
    column: str
    note: str = ""


class Choice(NamedTuple):
    """The tables of a section, and the question that their choice leaves.

    Of stays each is a source; of others the first is the section's, the rest adds to its rows.
    """

    tables: Sequence[Table]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a SELECT can read, after a `join`; `note` is what is open about it.

    `select` is its expression, which the SELECT may have `renamed`.
    """

    table: Table
    source: TableColumn
    select: str
    words: Words
    refers: Reference | None = None
    renamed: str = ""
    note: str = ""
    join: str = ""

    @property
    def holds(self) -> Holds:
        """What it is declared to hold."""
        return self.source.holds

    @property
    def name(self) -> str:
        """What the SELECT calls it."""
        return self.renamed or self.source.name

    @property
    def selected(self) -> str:
        """What the SELECT lists for it."""
        is_plain = not self.renamed and self.select.endswith(f".{self.source.written}")
        name = self.renamed or self.source.written
        return self.select if is_plain else f"{self.select} AS {name}"

    @property
    def meanings(self) -> frozenset[str]:
        """All that its name means."""
        return all_of(self.words)

    @property
    def is_other(self) -> bool:
        """Whether it is about somebody or something else."""
        return "other" in self.meanings

    @property
    def is_audit(self) -> bool:
        """Whether it holds a time of the row itself, or one that is only planned."""
        return bool(self.meanings & {"audit", "changed", "planned", "birth"})

    @property
    def is_key(self) -> bool:
        """Whether it is different in each row, or leads to another table."""
        is_unique = self.table.is_unique(self.source.name)
        return bool(self.refers) or (is_unique and not self.join)


def best(columns: Iterable[Column], patterns: str) -> tuple[Column | None, str]:
    """Return the column whose name fits best, and what is open about the choice."""
    ranked = [(rank, c) for c in columns if (rank := fit(c.words, patterns))]
    # Of a day and a time with equal names the time says more.
    ranked.sort(key=lambda each: (*each[0], each[1].holds is Holds.DATE))
    if not ranked:
        return None, ""
    others = [c.name for rank, c in ranked[1:4] if rank[0] == ranked[0][0][0]]
    return ranked[0][1], f"by its name{', or ' if others else ''}{', '.join(others)}"


@dataclass(frozen=True, slots=True)
class Rows:
    """What a SELECT reads: of a section, or of a table that holds items of its lists.

    `id` is the column of the section's id, `start` what follows the columns, before joins and
    the condition `where`; `questions` are what is open.
    """

    kind: ResourceType
    table: Table
    words: Words
    columns: Sequence[Column]
    id: str
    id_note: str
    start: str
    where: str
    questions: Sequence[str]
    children: Sequence["Rows"] = ()


@dataclass(frozen=True)
class Structure:
    """A catalogue with what its names mean and where its columns lead to."""

    catalogue: Catalogue

    @cached_property
    def names(self) -> Mapping[str, Words]:
        """What the name of each table means."""
        tables = self.catalogue.tables
        prefix = prefix_of(table.bare for table in tables)
        return {table.name: meanings_of(table.bare, prefix) for table in tables}

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

    def links(self, table: Table) -> Iterator[tuple[str, Reference]]:
        """Yield the columns of a table by which one row of another can be joined."""
        yield from self.references[table.name].items()
        for other in self.catalogue.tables:
            for name, back in self.references[other.name].items():
                if back.table == table and other.is_unique(name):
                    yield back.column, Reference(other, name, back.note)

    def columns(self, table: Table, alias: str = "") -> list[Column]:
        """Return the columns of a table that a slot could hold."""
        prefix = prefix_of(column.name for column in table.columns)
        refers = self.references[table.name]
        return [
            Column(
                table,
                column,
                f"{alias}.{column.written}",
                meanings_of(column.name, prefix),
                refers.get(column.name),
            )
            for column in table.columns
            if column.holds is not Holds.OTHER
        ]

    def contents(self, table: Table) -> frozenset[str]:
        """Return what the columns of a table mean, also by the tables they lead to."""
        every = set[str]()
        for column in self.columns(table):
            words = column.words
            if column.refers:
                words += self.names[column.refers.table.name]
            if not all_of(words) & {"other", "audit", "changed"}:
                is_time = column.holds in TIMES
                every |= all_of(words) - (set() if is_time else {"start", "end"})
        return frozenset(every)

    def score(self, kind: ResourceType, table: Table) -> float:
        """Return how much the name and the columns of a table speak for a kind."""
        role, wanted = _TABLES[kind]
        words, contents = self.names[table.name], self.contents(table)
        own = sum(role in word for word in words)
        others = any(word - _NEUTRAL and role not in word for word in words)
        is_person = kind is ORGANIZATION and contents & {"birth", "given", "family"}
        if others or is_person:
            return 0
        return _ENOUGH * own / max(1, len(words)) + len(contents & {*wanted.split()})

    def led_to(self, tables: Iterable[Table]) -> Mapping[str, int]:
        """Return by table whether a key leads there, a declared one counting more."""
        led = dict[str, int]()
        for column in (column for table in tables for column in self.columns(table)):
            if refers := column.refers:
                words = (*column.words, *self.names[refers.table.name])
                if not all_of(words) & {"other", "unit", "class"}:
                    led.setdefault(refers.table.name, 2 if refers.note else 3)
        return led

    @cached_property
    def _keys(self) -> Mapping[str, Reference]:
        """The keys of tables by the table's name, the end of that, and the key's name."""
        keys = [(table, *key_of(table)) for table in self.catalogue.tables]
        single = [
            Reference(table, key) for table, key, question in keys if not question
        ]
        names = [
            (at, _singular(words[at:]), key)
            for key in single
            for words in (words_of(key.table.bare),)
            for at in range(len(words))
        ]
        names.sort(key=lambda each: each[0])
        named = [(name, key) for _, name, key in names]
        named += [(key.column.lower(), key) for key in single if key.column != "id"]
        # The first with a name has it.
        return dict(reversed(named))

    def _guess(self, table: Table, column: TableColumn) -> Reference | None:
        words = words_of(column.name, prefix_of(c.name for c in table.columns))
        words = [word for word in words if not fit(meanings_of(word), "number")]
        ends = [_singular(words[at:]) for at in range(len(words))]
        for name in (*ends[:1], column.name.lower(), *ends[1:]):
            guess = self._keys.get(name)
            if guess is None or guess.table == table:
                continue
            if guess.table.by_name[guess.column].holds is column.holds:
                note = f"undeclared: is it {guess.table.name}.{guess.column}?"
                return guess._replace(note=note)
        return None


def _singular(words: Iterable[str]) -> str:
    return "_".join(word.removesuffix("s") for word in words)


def key_of(table: Table) -> tuple[str, str]:
    """Return the column that is the id of a row, and the question that it leaves."""
    texts = [column.name for column in table.columns if column.holds in TEXTS]
    names = [*table.primary_key, *texts, table.columns[0].name]
    if unique := [name for name in names if table.is_unique(name)]:
        return unique[0], ""
    if table.primary_key:
        many = ", ".join(table.primary_key)
        return names[0], f"the key is {many}: make one text of them in the SELECT"
    named_id = [name for name in names if name.lower() == "id"]
    question = "no key is declared: is this column different in each row?"
    return (named_id or names)[0], question


# The choice of tables


def choose(
    structure: Structure, options: Mapping[ResourceType, Sequence[str]]
) -> dict[ResourceType, Choice]:
    """Return the tables of each section: those of the options, else those that score best.

    Raises CannotRunError where the tables of stays are not known.
    """
    catalogue, choices = structure.catalogue, dict[ResourceType, Choice]()
    if not catalogue.tables:
        raise CannotRunError(
            "the account sees no table in the default schema; name another with --schema:"
            f" {_listed(catalogue.schemas)}"
        )
    for kind, names in options.items():
        if names:
            choices[kind] = Choice([_named_table(catalogue, name) for name in names])
        elif choice := _best_table(structure, kind, choices):
            choices[kind] = choice
    if STAY not in choices:
        names = sorted(
            catalogue.by_name, key=lambda n: not fit(structure.names[n], "stay")
        )
        raise CannotRunError(
            "which table holds the stays? Repeat the command with --stay TABLE, as in"
            f" --stay {names[0]}. The tables are: {_listed(names)}"
        )
    return choices


def _best_table(
    structure: Structure, kind: ResourceType, choices: Mapping[ResourceType, Choice]
) -> Choice | None:
    """Return the table of a kind by its name, its columns, and the keys that lead to it."""
    chosen = [table for choice in choices.values() for table in choice.tables]
    led = structure.led_to(chosen)
    scores = {
        table.name: structure.score(kind, table) + led.get(table.name, 0)
        for table in structure.catalogue.tables
        if table not in chosen and structure.score(kind, table)
    }
    ranked = sorted(scores, key=lambda name: -scores[name])
    names = [name for name in ranked if scores[name] >= _ENOUGH][:4]
    if not names:
        return None
    note = f"by keys and names this is {', or '.join((names[0], *names[1:]))}"
    return Choice([structure.catalogue.by_name[names[0]]], note)


def _named_table(catalogue: Catalogue, name: str) -> Table:
    tables = [
        t for t in catalogue.tables if name.lower() in (t.name.lower(), t.bare.lower())
    ]
    if not tables or (len(tables) > 1 and name not in catalogue.by_name):
        near = did_you_mean(name, catalogue.by_name)
        text = near or f"; there are: {_listed(list(catalogue.by_name))}"
        raise CannotRunError(f"there is no table '{name}'{text}")
    return catalogue.by_name.get(name, tables[0])


def _listed(names: Sequence[str]) -> str:
    """Return names in one text, the first sixty where there are more."""
    more = f" and {len(names) - 60} more" if len(names) > 60 else ""
    return ", ".join(names[:60]) + more


# What is read of them


def rows_of(
    structure: Structure, choices: Mapping[ResourceType, Choice]
) -> Mapping[ResourceType, Sequence[Rows]]:
    """Return the rows of each section; of stays each table has its own."""
    reader = _Reader(structure, choices)
    return {
        kind: [
            reader.rows(kind, table, choice.note)
            for table in (choice.tables if kind is STAY else choice.tables[:1])
        ]
        for kind, choice in choices.items()
    }


@dataclass(frozen=True)
class _Reader:
    structure: Structure
    choices: Mapping[ResourceType, Choice]

    @cached_property
    def sections(self) -> Sequence[Table]:
        """The tables that have a section of their own."""
        stays = self.choices[STAY].tables
        return [*stays, *(choice.tables[0] for choice in self.choices.values())]

    def rows(self, kind: ResourceType, table: Table, note: str) -> Rows:
        """Return the rows of a section, with what keys join to its table."""
        rows = self._own(kind, table, *key_of(table))
        leading = (self.structure.references[t.name] for t in self.choices[STAY].tables)
        led = [r.column for of in leading for r in of.values() if r.table == table]
        if led and led[0] != rows.id:
            rows = replace(rows, id=led[0], id_note="other tables lead to it")
        columns, owners = [*rows.columns], [table]
        questions = [note] if note else []
        links = [(n, r) for n, r in self.structure.links(table) if r.table != table]
        for number, (name, reference) in enumerate(links):
            alias = f"{_alias(reference.table)}{number}"
            own = next((c for c in rows.columns if c.name == name), None)
            if own is None or reference.table in self.sections:
                continue
            joined = self._joined(kind, own, reference, alias)
            columns += joined
            owners += [reference.table] if len(joined) > 1 and name == rows.id else []
        lost = {*self.choices[kind].tables[1:]} - {r.table for _, r in links}
        if kind is not STAY:
            questions += [
                f"no key of {table.name} leads to {t.name}: join it" for t in lost
            ]
        children = self._children(owners) if kind is PATIENT else []
        questions += rows.questions
        return replace(rows, columns=columns, questions=questions, children=children)

    def _joined(
        self, kind: ResourceType, own: Column, reference: Reference, alias: str
    ) -> list[Column]:
        """Return the columns of a joined row: all of a person, else the one that names it."""
        other = reference.table
        on = f"{alias}.{other.by_name[reference.column].written} = {own.select}"
        join = f"LEFT JOIN {other.written} {alias} ON {on}"
        note = reference.note or f"of {other.name}"
        columns = [
            replace(c, join=join, note=note, renamed=_name(other.bare, c.name))
            for c in self.structure.columns(other, alias)
        ]
        if kind is not STAY and self._is_person(other, own):
            return columns
        words = (*own.words, *self.structure.names[other.name])
        if not all_of(words) & _CODED:
            return []
        texts = [c for c in columns if c.holds is Holds.TEXT]
        label, _ = best(texts, _CODES if "unit" in all_of(words) else _LABELS)
        if label is None:
            note = reference.note or f"the key of {other.name}, which has no codes"
            return [replace(own, words=words, refers=None, note=note)]
        before = re.sub(r"(?i)_?id$", "", own.name)
        renamed = _name(before, label.source.name)
        return [replace(label, words=words, refers=None, renamed=renamed)]

    def _is_person(self, table: Table, own: Column) -> bool:
        """Whether a table holds more of the same patients, or of the hospital."""
        patients = self.choices.get(PATIENT, Choice([])).tables
        contents = self.structure.contents(table) & {*_TABLES[PATIENT][1].split()}
        names = own.meanings | all_of(self.structure.names[table.name])
        is_other = bool(names & {"other", "hospital", "audit", "changed"})
        return table in patients or (len(contents) > 1 and not is_other)

    def _children(self, owners: Sequence[Table]) -> list[Rows]:
        """Return the tables whose rows refer to patients by their id."""
        children = []
        for table in self.structure.catalogue.tables:
            if table in (*owners, *self.sections) or table.is_view:
                continue
            references = self.structure.references[table.name].items()
            if key := next(
                (each for each in references if each[1].table in owners), None
            ):
                children.append(self._own(PATIENT, table, key[0], key[1].note))
        return children

    def _own(self, kind: ResourceType, table: Table, id: str, note: str) -> Rows:
        """Return the rows of a table, without those that are marked as deleted."""
        columns = self.structure.columns(table, _alias(table))
        marks = [c for c in columns if len(c.words) == 1 and "deleted" in c.meanings]
        flags = [c.select for c in marks if c.holds is Holds.FLAG]
        words, where, questions = self.structure.names[table.name], "", list[str]()
        if flags and self.structure.catalogue.dialect in _TRUE_DIALECTS:
            where = f"WHERE {' AND '.join(f'{flag} IS NOT TRUE' for flag in flags)}"
            are = f"rows whose {' or '.join(flags)} is true are left out"
            questions = [f"{are}: are they deleted?"]
        elif names := ", ".join(c.name for c in marks if c.holds in TEXTS):
            questions = [f"{names}: deleted rows? Leave them out by a WHERE"]
        start = f"FROM {table.written} {_alias(table)}"
        return Rows(kind, table, words, columns, id, note, start, where, questions)


def _alias(table: Table) -> str:
    """Return a short name for a table in a SELECT."""
    return re.sub(r"[^a-z]", "", table.bare.lower())[:1] or "t"


def _name(before: str, name: str) -> str:
    """Return a name that no statement has to quote."""
    return re.sub(r"\W", "_", f"{before}_{name}").lower()
