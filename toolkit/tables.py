"""Which tables hold stays, patients and hospitals, and the columns that a SELECT can read.

Declared foreign keys come first. Where none is declared a column leads to the table whose key
or name it has; that is a guess, and named as one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.problems import did_you_mean
from app.console import CannotRunError
from toolkit.catalogue import Catalogue, Contents, Holds, Table, TableColumn, no_yes
from toolkit.labels import is_mark
from toolkit.names import (
    OF_ROW,
    Words,
    all_of,
    fit,
    meanings_of,
    prefix_of,
    without_time,
    words_of,
)

STAY, PATIENT, ORGANIZATION = ResourceType

TIMES = frozenset({Holds.DATE, Holds.LOCAL_TIME, Holds.INSTANT})
TEXTS = frozenset({Holds.TEXT, Holds.INTEGER})
IDS = TEXTS | {Holds.UUID}
_NUMBERS = frozenset({Holds.INTEGER, Holds.NUMBER})

_TABLES: Mapping[ResourceType, tuple[str, set[str]]] = {
    STAY: ("stay", {"patient", "start", "end", "status", "class", "unit"}),
    PATIENT: ("patient", {"birth", "sex", "family", "given", "death"}),
    ORGANIZATION: ("hospital", {"name", "lines", "city", "postal_code", "phone"}),
}
"""What the name of a table of each kind means, and the names of its columns."""

_ENOUGH = 4  # The score of a table whose name means its kind and nothing else.
_WHOLE = 2  # That the most tables lead to it adds this; that it leads to one takes it.

_NEUTRAL = frozenset(
    {"patient", "hospital", "start", "end", "admission", "audit", "day", "emergency"}
)
"""What the name of a table may mean beside its kind: "encounter_type" holds no stays."""

_CODED = frozenset({"unit", "class", "status", "sex", "city", "country", "prefix"})
_CODES = "=code, unit code, =unit, =number"
_LABELS = "=code, {0} code, =name, {0} name, ~name, ~code"
_NAMES = "=name, {0} name, ~name"
"""What the names of keys to units, types or states mean, and of the columns that say which."""

_ADDRESS = frozenset({"lines", "city", "postal_code", "country"})

_OF_PLACE = _ADDRESS | {"name", "phone", "fax", "email", "identifiers"}

_OF_TIMES = {"start", "end", "birth", "death", "changed", "audit"}
_LATER = "its years are of another calendar: subtract in the SELECT"

_MOST_KEYS = 2  # A table that more columns of a row lead to says what something means.
_MOST_WORDS = 4  # So many words of a table's name a column may leave out.
_GONE = {"deleted", "cancelled"}  # Marks of rows that are not served.
_TRUE_DIALECTS = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})
"""Databases in which a condition may say IS NOT TRUE."""

Options = Mapping[ResourceType, Sequence[str]]
Choices = dict[ResourceType, Sequence[Table]]
"""By section its tables: of stays each is a source, of others the rest adds to the first."""


class Reference(NamedTuple):
    """A column of another table that a column leads to, and what is open about it."""

    table: Table
    column: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a SELECT can read, after a `join`; `note` is what is open about it.

    `select` is its expression, which the SELECT may have `renamed`; `labels` is the key of
    which it says what it means, `format` the form of a text that is a time.
    """

    table: Table
    source: TableColumn
    select: str
    words: Words
    refers: Reference | None = None
    renamed: str = ""
    note: str = ""
    join: tuple[str, ...] = ()
    labels: "Column | None" = None
    format: str = ""

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
        name = self.renamed or self.source.written
        if self.holds is Holds.UUID:
            return f"CAST({self.select} AS VARCHAR(36)) AS {name}"
        is_plain = self.select.endswith(f".{name}")
        return self.select if is_plain else f"{self.select} AS {name}"

    @property
    def is_unique(self) -> bool:
        """Whether the database itself keeps two rows from the same value."""
        return self.table.is_unique(self.source.name)

    def computed(self, select: str, holds: Holds, name: str) -> "Column":
        """Return a column of the SELECT that is computed from this one and others."""
        source = replace(self.source, holds=holds)
        return replace(self, source=source, select=select, renamed=name.lower())

    @property
    def is_time(self) -> bool:
        """Whether the database itself has it as a day or time."""
        return self.table.by_name[self.source.name].holds in TIMES

    @property
    def is_key(self) -> bool:
        """Whether it is the key of its rows, or leads to another table."""
        return bool(self.refers) or (self.source.name,) == self.table.primary_key


Found = tuple[Column | None, str]  # With what is open about the choice.


def best(columns: Iterable[Column], patterns: str, namesake: str = "") -> Found:
    """Return the column whose name fits best, and what is open: of an only namesake nothing."""
    # Of a day and a time with equal names the time says more, and both more than a text.
    none = {Holds.DATE: 1, Holds.LOCAL_TIME: 0, Holds.INSTANT: 0}
    ranked = list[tuple[tuple[int, ...], Column]]()
    for column in columns:
        if rank := fit(column.words, patterns):
            is_other = column.source.name.lower() != namesake
            more = (len(column.join), none.get(column.holds, 2))
            ranked.append(((rank[0], is_other, rank[1], *more), column))
    if not ranked:
        return None, ""
    ranked.sort(key=lambda each: each[0])
    best_rank, first = ranked[0]
    # What follows a whole name says that it is a copy, as for a search.
    equal = [c for rank, c in ranked if rank == best_rank]
    equal = [c for c in equal if first.name.startswith(c.name)]
    first = min(equal, key=lambda c: len(c.name))
    near = [c for rank, c in ranked[:7] if rank[0] == best_rank[0]]
    others = [c.name for c in near if c != first]
    if not (best_rank[1] or others):
        return first, ""
    return first, f"by its name{', or ' if others else ''}{', '.join(others)}"


@dataclass(frozen=True, slots=True)
class Rows:
    """What a SELECT reads: of a section, or of a table that holds items of its lists.

    `id` is the column of the section's id, `start` what follows the columns, before joins and
    the condition `where`; `questions` are what is open, `doubt` what all columns depend on.
    """

    kind: ResourceType
    table: Table
    words: Words
    columns: Sequence[Column]
    id: str
    id_note: str
    start: str
    where: str = ""
    questions: Sequence[str] = ()
    doubt: str = ""
    children: Sequence["Rows"] = ()


@dataclass(frozen=True)
class Structure:
    """A catalogue with what its names mean and where its columns lead to."""

    catalogue: Catalogue
    values: Contents

    def is_filled(self, column: Column) -> bool:
        """Whether a column has a value in a row, as far as there are rows."""
        is_filled, table = self.values.is_filled, column.table
        return is_filled(table, column.source.name) or not is_filled(table)

    def is_of_persons(self, table: Table) -> bool:
        """Whether the rows of a table are about persons: a draft quotes nothing of them."""
        columns = (
            c for c in self.columns[table.name] if c.holds in {Holds.TEXT, *TIMES}
        )
        said = (all_of(c.words) for c in columns)
        meant = (words for words in said if not words & {"other", *OF_ROW})
        about = all_of((*self.names[table.name], *meant))
        is_said = not about.isdisjoint({"person", "birth", "given", "family"})
        return is_said or bool(self.births(table))

    def is_within(self, column: Column, to: Reference | None) -> bool:
        """Whether the values of a column are all keys of another table."""
        own, is_within = (column.table, column.source.name), self.values.is_within
        return to is not None and is_within(*own, to.table, to.column)

    def is_vocabulary(self, table: Table, of: Table) -> bool:
        """Whether many columns of another table lead to a table of words."""
        keys = [c.refers for c in self.columns[of.name] if c.refers]
        number = sum(key.table == table for key in keys)
        return number > _MOST_KEYS and not self.is_of_persons(table)

    def same(self, table: Table) -> list[Table]:
        """Return the tables to which rows lead one to one: a patient's person."""
        keys = [(c, c.refers.table) for c in self.columns[table.name] if c.refers]
        return [to for c, to in keys if self.is_one_to_one(c, to)]

    def is_one_to_one(self, key: Column, to: Table) -> bool:
        """Whether a key, or its values, say that people of a table have one row each."""
        said = all_of(self.names[key.table.name])
        is_most = self.values.filled(key.table) > self.values.filled(to) / 2
        if key.is_unique and key.refers and (is_most or not key.refers.note):
            return True
        is_named = "patient" in said and "identifiers" not in said
        is_of_person = is_named or not [*self._times(key.table)]
        return is_most and is_of_person and to in self._births and self.is_each(key)

    def _times(self, table: Table) -> Iterator[frozenset[str]]:
        """Yield what the times of rows mean that are not of the row itself."""
        times = (c for c in self.columns[table.name] if c.holds in TIMES)
        return (said for c in times if not (said := all_of(c.words)) & OF_ROW)

    @cached_property
    def people(self) -> frozenset[str]:
        """The names of the tables of patients: of most births, and those one to one with it."""
        tables, born = self.catalogue.tables, self._born
        same = [born, *self.same(born)] if born else []
        leading = (t for t in tables if born and born in self.same(t))
        return frozenset(t.name for t in (*same, *leading) if t)

    def is_of_events(self, table: Table) -> bool:
        """Whether rows are of patients at some time."""
        columns = [(c, c.refers) for c in self.columns[table.name]]
        keys = [(c, to) for c, to in columns if to and to.table.name in self.people]
        are_people = any(not to.note or self.is_within(c, to) for c, to in keys)
        is_event = table.name not in self.people and [*self._times(table)]
        return are_people and bool(is_event)

    def births(self, table: Table) -> list[str]:
        """Return the columns of a table whose days are spread as births are."""
        found = []
        for column in table.columns:
            said = all_of(meanings_of(column.name))
            is_text = column.holds is Holds.TEXT and "birth" in said
            # To count the times of a row, or of a stay, takes a large table long.
            is_open = column.holds in TIMES and not said & {"start", "end", *OF_ROW}
            if (is_text or is_open) and self.values.are_births(table, column.name):
                found.append(column.name)
        return found

    @cached_property
    def _births(self) -> list[Table]:
        return [*filter(self.births, self.catalogue.tables)]

    @cached_property
    def _born(self) -> Table | None:
        """The table of most births: stays are of more people than those who care for them.

        Where a name says patient it is that table's, or without births the one named so.
        """
        role, values, every = _TABLES[PATIENT][0], self.values, self.catalogue.tables
        said = {t: [word for word in self.names[t.name] if word] for t in every}
        own = {
            t: sum(role in w for w in of) / max(1, len(self.names[t.name]))
            for t, of in said.items()
        }
        named = [t for t in every if own[t] and all(role in word for word in said[t])]
        named = [t for t in named if values.is_filled(t)]
        same = [t for n in named for t in (n, *self.same(n))]
        same += (t for t in every for n in named if n in self.same(t))
        found = [t for t in self._births if t in same or own[t]]
        found = found or self._births or named
        found = found or [t for t in every if own[t] or "birth" in self.contents(t)]
        rank = {t: (t.is_view, -own[t], -values.filled(t)) for t in found}
        return min(found, key=lambda t: rank[t], default=None)

    def is_each(self, key: Column) -> bool:
        """Whether a key has another value in each row."""
        every, filled, different = self.values.figures(key.table, key.source.name)
        return key.is_unique or every == filled == different > 0

    @cached_property
    def led_to(self) -> Mapping[str, set[str]]:
        """The names of the tables that lead to each table."""
        every = chain.from_iterable(self.columns.values())
        leading = [(c.table.name, c.refers.table.name) for c in every if c.refers]
        return {name: {n for n, to in leading if to == name} for name in self.columns}

    def own_words(self, table: Table) -> set[str]:
        """Return the words of the name of a table."""
        return {_singular([word]) for word in words_of(table.bare, self._prefix)}

    @cached_property
    def _prefix(self) -> str:
        return prefix_of(table.bare for table in self.catalogue.tables)

    @cached_property
    def names(self) -> Mapping[str, Words]:
        """What the name of each table means."""
        tables, names = self.catalogue.tables, dict[str, Words]()
        for table in tables:
            # Another table's name may stand before the rest of a word.
            low = table.bare.lower()
            fronts = [n for t in tables if low.startswith(n := t.bare.lower())]
            front = max((len(n) for n in fronts if low[len(n) :].isalpha()), default=0)
            name = f"{table.bare[:front]}_{table.bare[front:]}"
            names[table.name] = meanings_of(name, self._prefix)
        return names

    @cached_property
    def columns(self) -> Mapping[str, Sequence[Column]]:
        """The columns of each table, with what they mean and where they lead to."""
        return {table.name: [*self._columns(table)] for table in self.catalogue.tables}

    def _columns(self, table: Table) -> Iterator[Column]:
        prefix, declared = prefix_of(table.by_name), dict[str, Reference]()
        for key in table.foreign_keys:
            other = self.catalogue.by_name.get(key.table)
            if other is not None and len(key.columns) == 1:
                declared[key.columns[0]] = Reference(other, key.referred[0])
        behind = {day.name: clock.holds for day, clock in pairwise(table.columns)}
        for column in table.columns:
            name, words = column.name, self._words(table, column, prefix)
            # What a row is written with has no time of its own.
            if behind.get(name) is Holds.CLOCK and column.holds is Holds.DATE:
                words = tuple(word - {"audit"} for word in words)
            select = f"{alias_of(table)}.{column.written}"
            own = Column(table, column, select, words, declared.get(name))
            own = replace(own, refers=own.refers or self._guess(own, prefix))
            if own.refers and column.holds is Holds.NUMBER:
                own = replace(own, source=replace(column, holds=Holds.INTEGER))
            is_named = not _OF_TIMES.isdisjoint(all_of(words))
            is_named |= without_time(name) != name.lower().replace("_", "")
            is_open = column.holds in TEXTS and is_named and not own.refers
            yield self.timed(own, is_named=True) if is_open else own

    def _words(self, table: Table, column: TableColumn, prefix: str) -> Words:
        # The table's own name may stand before the rest of a word.
        own_name = rf"(?i)^{re.escape(table.bare)}?(?=[a-z]{{4}})"
        names = (column.name, re.sub(own_name, r"\g<0>_", column.name))
        both = [meanings_of(each, prefix) for each in names]
        words = max(both, key=lambda each: len(all_of(each)))
        # A number without a digit is a name, as in Portuguese.
        if {"number"} in words and self.values.is_named(table, column.name):
            is_name = frozenset({"name"})
            words = tuple(is_name if w == {"number"} else w for w in words)
        is_changed = column.is_stamped and not all_of(words)
        return (*words, frozenset({"changed"})) if is_changed else words

    def timed(self, column: Column, *, is_named: bool = False) -> Column:
        """Return a column whose texts are times as one that holds them."""
        form = self.values.time_form(column.table, column.source.name)
        # Without a name digits may be a number.
        if not form or (form[1].startswith("%Y%m") and not is_named):
            return column
        holds, text, is_later = form
        source, note = replace(column.source, holds=holds), _LATER * is_later
        return replace(column, source=source, format=text, note=note or column.note)

    def links(self, table: Table) -> Iterator[tuple[Column, Reference]]:
        """Yield the columns of a table by which one row of another can be joined."""
        own = {column.name: column for column in self.columns[table.name]}
        yield from ((column, column.refers) for column in own.values() if column.refers)
        for back in (column for of in self.columns.values() for column in of):
            to, note = back.refers, back.refers.note if back.refers else ""
            if to and to.table == table != back.table:
                if not back.is_unique:
                    # Of a table of deaths, or of ends, the rows say that each has one.
                    about = {*_TABLES[PATIENT][1], "replaced_by"}
                    is_about = not about.isdisjoint(all_of(self.names[back.table.name]))
                    is_about |= self._has_end(back.table) and not self._has_end(table)
                    if not is_about or self.values.variety(back.table, back.name) < 1:
                        continue
                    note = f"no key of {back.table.name} keeps one from having two rows"
                yield own[to.column], Reference(back.table, back.name, note)

    def _has_end(self, table: Table) -> bool:
        return any("end" in said for said in self._times(table))

    def contents(self, table: Table) -> frozenset[str]:
        """Return what the columns of a table mean, also by the tables they lead to."""
        every = set[str]()
        for column in self.columns[table.name]:
            refers = self.names[column.refers.table.name] if column.refers else ()
            meanings = all_of((*column.words, *refers))
            if not meanings & {"other", *OF_ROW}:
                is_time = column.holds in TIMES
                every |= meanings if is_time else meanings - {"start", "end"}
        return frozenset(every)

    @cached_property
    def _keys(self) -> Mapping[str, list[Reference]]:
        """The keys of tables by the table's name, the end of that, and the key's name."""
        keys = [(table, *key_of(table)) for table in self.catalogue.tables]
        single = [Reference(t, key) for t, key, question in keys if not question]
        names = [(words_of(key.table.bare), key) for key in single]
        every = [(_singular(w[n:]), k) for n in range(_MOST_WORDS) for w, k in names]
        by_name: dict[str, list[Reference]] = {}
        single.sort(key=lambda key: -self.values.filled(key.table))
        for name, key in (*every, *((key.column.lower(), key) for key in single)):
            by_name.setdefault(name, []).append(key)
        for name in ("", "id"):
            by_name.pop(name, None)
        return by_name

    def _guess(self, column: Column, front: str) -> Reference | None:
        """Return where a column leads to by its name, or as all its patients are there."""
        words, table = words_of(column.name, front), column.table
        is_number = any(fit(meanings_of(word), "number") for word in words)
        words = _stem_of(words)
        ends = [_singular(words[skipped:]) for skipped in range(len(words))]
        found = list[Reference]()
        for name in (*ends[:1], column.name.lower(), *ends[1:]):
            keys = [*self._keys.get(name, ())]
            is_own = (column.source.name,) == table.primary_key and [name] == ends[:1]
            if (is_number or is_own) and keys and keys[0].table == table:
                # It is a number of the row itself, or its key.
                return None
            keys = [key for key in keys if key.table != table]
            alike = [key for key in keys if key.column.lower() == column.name.lower()]
            found += (*alike, *keys)[:1]
        kinds = _NUMBERS if column.holds in _NUMBERS else {column.holds}
        found = [key for key in found if key.table.by_name[key.column].holds in kinds]
        note = "undeclared: is it {0.table.name}.{0.column}?"
        return next((key._replace(note=note.format(key)) for key in found), None)


def _stem_of(words: Iterable[str]) -> list[str]:
    """Return words without those that say that something is a number or a code."""
    return [w for w in words if not all_of(meanings_of(w)) & {"number", "code"}]


def _singular(words: Iterable[str]) -> str:
    """Return words in one text, whatever their order and number (`encounter_class_nr`)."""
    # A German plural may change a vowel (Fall, Faelle).
    plain = (re.sub("([aou])e(?=.)", r"\1", word) for word in words)
    return "_".join(sorted(re.sub("(?<=..)(y|[eis]+)$", "", word) for word in plain))


def key_of(table: Table) -> tuple[str, str]:
    """Return the column that is the id of a row, and the question that it leaves."""
    texts = [column.name for column in table.columns if column.holds in TEXTS]
    names = [*table.primary_key, *texts, table.columns[0].name]
    if unique := [name for name in names if table.is_unique(name)]:
        # Next to another key a UUID is for other systems.
        return min(unique, key=lambda name: "uuid" in name.lower()), ""
    if many := ", ".join(table.primary_key):
        return names[0], f"the key is {many}: make one text of them in the SELECT"
    return names[0], "no key is declared: is this column different in each row?"


def best_tables(structure: Structure, kind: ResourceType, of: Choices) -> list[Table]:
    """Return the tables that may be of a kind, the best first: by names, columns and keys."""
    chosen = [table for tables in of.values() for table in tables]
    columns = [c for table in chosen for c in structure.columns[table.name]]
    columns = [c for c in columns if "other" not in all_of(c.words)]
    leading = [(c, c.refers) for c in columns if c.refers]
    free = [t for t in structure.catalogue.tables if t not in chosen]
    scores = {t.name: _score(structure, kind, t, leading) for t in free}
    tables = [t for t in free if scores[t.name] >= _ENOUGH]
    tables = [t for t in tables if not _means(structure, kind, t)]
    if kind is STAY:
        events = [t for t in free if structure.is_of_events(t)]
        # Of a stay that its name says the times may be in a document.
        tables = [*events, *(t for t in tables if t not in events)]
    elif kind is PATIENT:
        people = [t for t in free if t.name in structure.people]
        led = [t for t in people if any(to.table == t for _, to in leading)]
        named = [t for t in people if "patient" in all_of(structure.names[t.name])]
        born = [t for t in people if structure.births(t)]
        # A stay may lead to a person, of whom a table of patients says more.
        both = ([t for t in of if t in led] for of in (named, born))
        tables = next(filter(None, (*both, named, born)), tables)
    else:
        tables = [t for t in tables if not structure.is_of_persons(t)]
    # The whole is what most tables lead to; what leads to another one is a part of it.
    led_to = structure.led_to
    most = max([1, *(len(led_to[table.name]) for table in tables)])
    for table in tables:
        is_part = any(table.name in led_to[t.name] for t in tables if t != table)
        scores[table.name] += _WHOLE * (len(led_to[table.name]) / most - is_part)
    is_filled = {t.name: structure.values.is_filled(t) for t in tables}
    tables.sort(
        key=lambda t: (not is_filled[t.name], t.is_view, -scores[t.name], len(t.name))
    )
    return tables


def _means(structure: Structure, kind: ResourceType, table: Table) -> bool:
    """Whether the name of a table says something else than its kind."""
    role, words = _TABLES[kind][0], structure.names[table.name]
    if kind is ORGANIZATION and _TABLES[kind][1] <= structure.contents(table):
        words = tuple(word - {"unit"} for word in words)
    return any(word - _NEUTRAL and role not in word for word in words)


def _score(
    structure: Structure,
    kind: ResourceType,
    table: Table,
    keys: Sequence[tuple[Column, Reference]],
) -> float:
    """Return how much says that a table is of a kind, to which some keys may lead."""
    (role, wanted), words = _TABLES[kind], structure.names[table.name]
    contents = wanted & structure.contents(table)
    own = sum(role in word for word in words) / max(1, len(words))
    own_keys = [(c, to) for c, to in keys if to.table == table]
    score = len(contents) + _ENOUGH * own
    if kind is not ORGANIZATION:
        return score + max((2 if to.note else 3 for _, to in own_keys), default=0)
    filled = structure.values.filled
    # A stay without one has another one who pays.
    fulls = (filled(c.table, c.name) == filled(c.table) for c, _ in own_keys)
    # Anything has a name: a hospital also has a place.
    is_led = own or contents > {"name"}
    is_only = len(contents) > _MOST_KEYS and filled(table) == 1
    led = max((3 if is_full else -3 for is_full in fulls), default=0)
    return score + led * bool(is_led) + _ENOUGH * is_only


def _named_table(catalogue: Catalogue, name: str) -> Table:
    if name in catalogue.by_name:
        return catalogue.by_name[name]
    low, every = name.lower(), catalogue.tables
    names = [t for t in every if low in (t.name.lower(), t.bare.lower())]
    if len(names) != 1:
        near = did_you_mean(name, catalogue.by_name)
        text = near or f"; there are: {_listed([*catalogue.by_name])}"
        raise CannotRunError(f"there is no table '{name}'{text}")
    return names[0]


def _listed(names: Sequence[str]) -> str:
    """Return names in one text, the first sixty where there are more."""
    more = f" and {len(names) - 60} more" if len(names) > 60 else ""
    return ", ".join(names[:60]) + more


@dataclass(frozen=True)
class RowsReader:
    """Reads the chosen tables, with those that keys join to them, as rows of sections."""

    structure: Structure
    options: Options

    def sections(self) -> Mapping[ResourceType, Sequence[Rows]]:
        """Return the rows of each section; of stays each table has its own."""
        return {
            kind: [self._rows(kind, t) for t in (of if kind is STAY else of[:1])]
            for kind, of in self._choices.items()
        }

    @cached_property
    def _choices(self) -> Choices:
        """The tables of each section: those of the options, else the best one.

        Raises CannotRunError where the tables of stays are not known.
        """
        catalogue, choices = self.structure.catalogue, Choices()
        if not catalogue.tables:
            raise CannotRunError(
                "the account sees no table in the default schema; name another with"
                f" --schema: {_listed(catalogue.schemas)}"
            )
        for kind, names in self.options.items():
            tables = [_named_table(catalogue, name) for name in names]
            if tables := tables or best_tables(self.structure, kind, choices)[:1]:
                choices[kind] = tables
        if STAY not in choices:
            words = self.structure.names
            names = sorted(catalogue.by_name, key=lambda n: not fit(words[n], "stay"))
            raise CannotRunError(
                "which table holds the stays? Repeat the command with --stay TABLE, as in"
                f" --stay {names[0]}. The tables are: {_listed(names)}"
            )
        return choices

    @cached_property
    def _own_tables(self) -> Sequence[Table]:
        """The tables that have a section of their own."""
        return [*self._choices[STAY], *(of[0] for of in self._choices.values())]

    def _rows(self, kind: ResourceType, table: Table) -> Rows:
        """Return the rows of a section, with what keys join to its table."""
        id, note = key_of(table)
        rows = self._served(kind, table, id, note)
        stays = (self.structure.columns[stay.name] for stay in self._choices[STAY])
        keys = [column.refers for of in stays for column in of if column.refers]
        if led := [key.column for key in keys if key.table == table]:
            note = "other tables lead to it" if led[0] != rows.id else rows.id_note
            rows = replace(rows, id=led[0], id_note=note)
        columns, owners = [*rows.columns], dict[str, Column | None]({table.name: None})
        for number, (own, to) in enumerate(self.structure.links(table), 1):
            if to.table not in self._own_tables:
                columns = self._linked_by(rows, columns, own, to, number)
                is_person, _ = self._adds(to.table, own)
                if is_person and (own.name == rows.id or own.refers == to):
                    owners[to.table.name] = None if own.name == rows.id else own
        tables = [column.table for column in columns]
        more = () if kind is STAY else self._choices[kind][1:]
        lost = [f"no key leads to {t.name}: join it" for t in more if t not in tables]
        guess = [f"by keys and names this is {table.name}"]
        questions = [*(() if self.options[kind] else guess), *lost, *rows.questions]
        children = self._children(rows, owners) if kind is not STAY else ()
        rows = replace(rows, columns=columns, questions=questions, children=children)
        is_led = any(key.table == table and not key.note for key in keys)
        is_sure = self._is_sure(kind, table, is_led=is_led)
        return replace(rows, doubt="" if is_sure else f"if {table.name} is the table")

    def _is_sure(self, kind: ResourceType, table: Table, *, is_led: bool) -> bool:
        """Whether no other table may be meant: of others than stays a declared key says it."""
        structure = self.structure
        if kind is STAY and not self.options[kind]:
            every = structure.catalogue.tables
            named = [t for t in every if not _means(structure, kind, t)]
            return [t for t in named if _score(structure, kind, t, ()) >= _ENOUGH] == [
                table
            ]
        (role, wanted), names = _TABLES[kind], all_of(structure.names[table.name])
        said = (names | structure.contents(table)) & {role, *wanted}
        # A company that insures has what a hospital has.
        is_hospital = role in names and "other" not in names
        is_said = is_hospital if kind is ORGANIZATION else bool(said)
        return bool(self.options[kind]) or (is_led and is_said)

    def _linked_by(
        self, rows: Rows, columns: list[Column], own: Column, to: Reference, number: int
    ) -> list[Column]:
        """Return columns with what a key of one of them joins, or what it says itself."""
        is_person, is_address = self._adds(to.table, own)
        joined = self._joined(own, to, str(number))
        more = self._merged(rows, to, own, joined)
        if rows.kind is STAY and own.name == rows.id:
            # What is beside the stays may say when they ended.
            ends = (c for c in joined if c.holds in TIMES and "end" in all_of(c.words))
            return [*columns, *more, *ends]
        for place, key in enumerate(joined if is_person or is_address else ()):
            other = key.refers
            if other and other.table not in (*self._own_tables, rows.table):
                there = self._joined(key, other, f"{number}_{place}")
                joined[place] = self._label(rows, key, other, there)
        said = _OF_PLACE if is_person else _ADDRESS
        is_all = is_person and rows.kind is PATIENT
        if is_person or is_address:
            more += [c for c in joined if is_all or all_of(c.words) & said]
        is_kept = is_person or own.name == rows.id
        label = own if is_kept else self._label(rows, own, to, joined)
        return [*(label if c == own else c for c in columns), *more]

    def _joined(self, own: Column, reference: Reference, number: str) -> list[Column]:
        """Return the columns of the row of another table that a key leads to."""
        other, alias = reference.table, f"{alias_of(reference.table)}{number}"
        key = other.by_name[reference.column].written
        join = f"LEFT JOIN {other.written} {alias} ON {alias}.{key} = {own.select}"
        note = reference.note or f"of {other.name}"
        joined = []
        for column in self.structure.columns[other.name]:
            select, name = f"{alias}.{column.source.written}", column.name
            column = replace(column, select=select, renamed=_renamed(other.bare, name))
            joined.append(replace(column, join=(*own.join, join), note=note))
        return joined

    def _merged(
        self, rows: Rows, by: Reference, own: Column, joined: list[Column]
    ) -> list[Column]:
        """Return keys of a joined table: who replaces a patient, whose a stay is, and where."""
        words, said = self.structure.names[by.table.name], frozenset({"replaced_by"})
        keys = [(c, c.refers.table) for c in joined if c.refers]
        keys = [(c, to) for c, to in keys if c.source.name != by.column]
        if rows.kind is STAY:
            wanted = [*self._choices.get(ORGANIZATION, ())]
            is_other = "other" in all_of(own.words)
            wanted += [] if is_other else self._choices.get(PATIENT, ())
            is_of_row = all_of(own.words) & OF_ROW
            return [c for c, to in keys if to in wanted and not is_of_row]
        merged = [c for c, to in keys if to == rows.table]
        merged = [c for c in merged if said & all_of((*words, *c.words))]
        return [replace(column, words=(said,)) for column in merged]

    def _label(
        self, rows: Rows, own: Column, to: Reference, joined: Sequence[Column]
    ) -> Column:
        """Return what a key says: the code of a unit, the name of a type of stay."""
        words, names = own.words, self.structure.names[to.table.name]
        if not all_of(words) & _CODED and all(names):
            words = (*words, *names)
        # What such a table says of the stay itself is its class.
        is_vocabulary = self.structure.is_vocabulary(to.table, rows.table)
        if is_vocabulary and rows.kind is STAY and all_of(words) <= {"stay"}:
            words = (*words, frozenset({"class"}))
        # What is in a hospital is a unit where no name says unit.
        places = self._choices.get(ORGANIZATION, ())
        within = [c.refers.table for c in joined if c.refers]
        is_place = not {t.name for t in within}.isdisjoint(t.name for t in places)
        is_place &= not any(self.structure.is_of_persons(t) for t in within)
        others = (
            c for c in rows.columns if not c.refers or c.refers.table not in places
        )
        if is_place and not _have(others, "unit"):
            words = words if all_of(words) else (frozenset({"unit"}),)
        is_open = not all_of(words) & _CODED or "other" in all_of(words)
        if is_open or self.structure.is_of_persons(to.table):
            return own
        texts = [c for c in joined if c.source.name != to.column]
        texts = [c for c in texts if c.holds is Holds.TEXT]
        texts = [c for c in texts if self.structure.is_filled(c)]
        coded = min(all_of(words) & _CODED)
        # A town is no line of an address, whatever its key is called.
        words = tuple(word - (_ADDRESS - {coded}) for word in words)
        patterns = _NAMES if is_vocabulary or coded == "prefix" else _LABELS
        label, _ = best(texts, _CODES if coded == "unit" else patterns.format(coded))
        if label is None:
            note = to.note or f"the key of {to.table.name}, which has no codes"
            return replace(own, words=words, refers=None, note=note)
        renamed = _renamed(re.sub(r"(?i)_?id$", "", own.name), label.source.name)
        return replace(label, words=words, refers=None, renamed=renamed, labels=own)

    def _adds(self, table: Table, own: Column) -> tuple[bool, bool]:
        """Whether a table holds more of the same persons, and whether an address of theirs."""
        meanings, contents = all_of(own.words), self.structure.contents(table)
        about = meanings | all_of(self.structure.names[table.name])
        row = {"other", *OF_ROW}
        # A user who is another one for each patient is that patient.
        is_each = own.refers is not None and self.structure.is_each(own)
        row -= {"other"} if "person" in about and is_each else set()
        is_other = about & {*row, "hospital", "replaced_by"}
        is_stay = own.table in self._choices[STAY]
        enough = 1 if own.is_unique else 2
        is_person = len(contents & _TABLES[PATIENT][1]) >= enough and not is_other
        is_person |= {table.name, own.table.name} <= self.structure.people
        is_address = len(contents & _ADDRESS) > 1 and self.structure.is_filled(own)
        is_address = is_address and not meanings & {*row, "birth", "death"}
        is_person |= table in self._choices.get(PATIENT, ())
        return is_person and not is_stay, is_address and not is_stay

    def _children(
        self, of: Rows, owners: Mapping[str, Column | None]
    ) -> Sequence[Rows]:
        """Return the tables whose rows refer to a section's, with what they link."""
        children, kind = [], of.kind
        for table in self.structure.catalogue.tables:
            columns = self.structure.columns[table.name]
            keys = [c for c in columns if c.refers and c.refers.table.name in owners]
            keys = [c for c in keys if not all_of(c.words) & {"status", *OF_ROW}]
            if table in self._own_tables or table.name in owners or table.is_view:
                continue
            if keys:
                key = self._key_of_child(keys)
                note = key.refers.note if key.refers else "does each row have one here?"
                rows = self._served(kind, table, key.name, note)
                linked = [*self._linked(key, columns)]
                if key.refers and (own := owners.get(key.refers.table.name)):
                    rows = self._through(rows, key, own, of.id)
                # A unit of a hospital has a name and telephones of its own.
                if kind is PATIENT or linked:
                    children.append(replace(rows, columns=[*rows.columns, *linked]))
            elif shared := self._shared(table, of.table):
                id, where = shared
                rows = self._served(kind, table, id, "by the type beside it")
                where = f"{rows.where} AND {where}" if rows.where else f"WHERE {where}"
                children.append(replace(rows, where=where))
        return children

    def _through(self, rows: Rows, key: Column, own: Column, id: str) -> Rows:
        """Return rows of a table that refers to a person, with the id of the patient who it is."""
        table, alias = own.table, f"{alias_of(own.table)}0"
        is_own = f"{alias}.{own.source.written} = {key.select}"
        start = f"{rows.start} JOIN {table.written} {alias} ON {is_own}"
        column = next(c for c in self.structure.columns[table.name] if c.name == id)
        select = f"{alias}.{column.source.written}"
        column = replace(column, select=select, renamed=_renamed(table.bare, id))
        columns = [*rows.columns, column]
        return replace(rows, columns=columns, id=column.name, start=start)

    def _shared(self, table: Table, owner: Table) -> tuple[str, str] | None:
        """Return the key of a table that many share (`owner_id`, `owner_type`), and whose."""
        names = self.structure.own_words(owner)
        for said in self.structure.columns[table.name]:
            stem, is_type = re.subn("(?i)_?(type|name)$", "", said.name)
            keys = [c for c in table.by_name if c.lower() in (stem, f"{stem}_id")]
            if is_type and keys and said.holds is Holds.TEXT:
                codes = self.structure.values.codes(table, said.name) or ()
                lasts = {re.split(r"\W", code.code)[-1] for code in codes}
                for last in lasts:
                    if {_singular([word]) for word in words_of(last)} == names:
                        return keys[0], f"{said.select} LIKE '%{last}'"
        return None

    def _linked(self, key: Column, columns: Sequence[Column]) -> Iterator[Column]:
        """Yield the columns of what a link table gives to each row of a section alone."""
        structure, own_tables = self.structure, self._own_tables
        is_link = not any(c.holds is Holds.TEXT and not c.is_key for c in columns)
        keys = [(c, c.refers) for c in columns if c != key and is_link]
        keys = [(c, to) for c, to in keys if to and to.table not in own_tables]
        for number, (own, to) in enumerate(keys, 1):
            is_shared = structure.values.variety(own.table, own.name) < 1
            if to and not (is_shared or structure.is_of_persons(to.table)):
                yield from self._joined(own, to, str(number))

    def _key_of_child(self, keys: Sequence[Column]) -> Column:
        """Return the column that says whose a row is: the fullest, declared if none is.

        Else it may be the first of a key, if its values fit.
        """
        table, values = keys[0].table, self.structure.values
        own = [c for c in keys if not all_of(c.words) & {"replaced_by", "other"}]
        own = own or [c for c in keys if "person" in all_of(c.words)]
        own.sort(key=lambda column: -values.filled(table, column.name))
        for column in own:
            is_declared = column.refers and not column.refers.note
            if is_declared or values.filled(table, column.name):
                return column
        firsts = {key[0] for key in (table.primary_key, *table.unique) if key}
        of_keys = (c for c in self.structure.columns[table.name] if c.name in firsts)
        are_within = (c for c in of_keys if self.structure.is_within(c, keys[0].refers))
        return next(are_within, keys[0])

    def _served(self, kind: ResourceType, table: Table, id: str, note: str) -> Rows:
        """Return the rows of a table, without those that are marked as deleted."""
        columns = [self._named(kind, c) for c in self.structure.columns[table.name]]
        words, start = self.structure.names[table.name], f"FROM {table.written} "
        rows = Rows(kind, table, words, columns, id, note, start + alias_of(table))
        marks = [c for c in columns if len(c.words) == 1]
        gone = [c for c in marks if c.words[0] & _GONE]
        read = [c for c in marks if c.words[0] & {"active", *_GONE}]
        if kind is PATIENT:
            # Of all people those who are patients.
            gone += [c for c in marks if "patient" in c.words[0] and not c.refers]
        if kind is not STAY:
            # Of patients a code of it says who is active.
            codes = {"deleted"} if table in self._own_tables else {""}
            read = [c for c in gone if not c.words[0] & codes or c.holds in TIMES]
        said = {column.name: self._is_not(column) for column in read}
        where = " AND ".join(filter(None, said.values()))
        gone = [c for c in gone if c.words[0] & _GONE and c.holds not in TIMES]
        names = [c.name for c in gone if not said.get(c.name)]
        left = [f"{n}: deleted rows? Leave them out by a WHERE" for n in names]
        are = [f"only rows where {where}: are the others deleted?"] if where else []
        where = f"WHERE {where}" if where else ""
        return replace(rows, where=where, questions=[*are, *left])

    def _named(self, kind: ResourceType, column: Column) -> Column:
        """Return a column in whose name that of its table stands for what it holds."""
        said, own = (
            frozenset({_TABLES[kind][0]}),
            self.structure.own_words(column.table),
        )
        front = prefix_of(column.table.by_name)
        words = {_singular([word]) for word in words_of(column.name, front)}
        is_own = column.table in self._own_tables and own and own <= words
        if not is_own or said & all_of(column.words):
            return column
        return replace(column, words=(*column.words, said))

    def _is_not(self, mark: Column) -> str:
        """Return the condition that a row is not marked as deleted, "" where none is known."""
        if mark.holds in TIMES:
            return f"{mark.select} IS NULL" if is_mark(mark.source.name) else ""
        is_active = not mark.words[0].isdisjoint({"active", "patient"})
        counts = self.structure.values.codes(mark.table, mark.source.name) or ()
        codes = no_yes(counts)
        # Where few rows are active it may say that a stay goes on.
        if is_active and not (codes and counts[0].code == codes[1]):
            return ""
        if mark.holds is Holds.FLAG:
            is_known = self.structure.catalogue.dialect in _TRUE_DIALECTS
            is_not = "FALSE" if is_active else "TRUE"
            return f"{mark.select} IS NOT {is_not}" if is_known else ""
        if mark.holds not in TEXTS or not codes:
            return ""
        quote = "'" if mark.holds is Holds.TEXT else ""
        kept, left = reversed(codes) if is_active else codes
        return f"COALESCE({mark.select}, {quote}{kept}{quote}) <> {quote}{left}{quote}"


def _have(columns: Iterable[Column], meaning: str) -> bool:
    return any(meaning in all_of(c.words) for c in columns)


def alias_of(table: Table) -> str:
    """Return a short name for a table in a SELECT."""
    return re.sub(r"[^a-z]", "", table.bare.lower())[:1] or "t"


def _renamed(before: str, name: str) -> str:
    """Return a name that no statement has to quote."""
    return re.sub(r"\W", "_", f"{before}_{name}").lower()
