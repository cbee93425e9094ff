"""The SELECT of a section, put together column by column, join by join."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

from adapters.sql.database import Database
from adapters.sql.tables import Table, TableColumn
from adapters.sql.tallies import different
from app.tools.starting.references import Reference
from app.tools.starting.words import meaning

_WIDTH = 88
_BARE = frozenset({"ID", "CODE", "NUMBER", "NAME", "LABEL"})


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a table that a SELECT reads, under the name by which it goes there."""

    place: int
    column: TableColumn


@dataclass(frozen=True, slots=True)
class _Join:
    table: Table
    key: str
    before: int
    column: str


@dataclass
class Select:
    """A SELECT on one table, with the tables that are joined to it.

    `place` numbers its tables, 0 the first. Columns are added with the name that the
    mapping then uses.
    """

    table: Table
    _joins: list[_Join] = field(default_factory=list)
    _columns: dict[str, tuple[str, tuple[Cell, ...]]] = field(default_factory=dict)
    _where: list[tuple[str, tuple[Cell, ...]]] = field(default_factory=list)

    def join(self, way: Sequence[Reference]) -> int:
        """Join the tables along a way of references; return the place of the last."""
        place = 0
        for step in way:
            place = self.join_at(place, step.column, step.target, step.key)
        return place

    def join_at(self, before: int, column: str, table: Table, key: str) -> int:
        """Join a table by its key, once; return its place."""
        wanted = _Join(table, key, before, column)
        if wanted not in self._joins:
            self._joins.append(wanted)
        return self._joins.index(wanted) + 1

    def add(self, column: TableColumn, place: int = 0) -> str:
        """Read a column as it is and return its name in the SELECT."""
        cell = Cell(place, column)
        for name, (template, cells) in self._columns.items():
            if template == "{0}" and cells == (cell,):
                return name
        longer = f"{_last_word(self._table(place))}_{column.name}"
        # `code` of a unit among the columns of a stay is its `unit_code`.
        bare = (
            place
            and meaning(column.name).known <= _BARE
            and not meaning(column.name).unknown
        )
        if bare:
            return self.express(longer, "{0}", cell)
        return self._put(column.name, re.sub(r"\W+", "_", longer), "{0}", (cell,))

    def express(self, name: str, template: str, *cells: Cell) -> str:
        """Read an expression on columns, {0} for the first, and return its name."""
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "made"
        return self._put(plain, f"{plain}_2", template, cells)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables, the first one first."""
        return (self.table, *(join.table for join in self._joins))

    def drop(self, name: str) -> None:
        """Read a column or expression no more."""
        del self._columns[name]

    def only(self, names: Container[str]) -> "Select":
        """Return the statement with some of its columns; its tables and rows are the same."""
        kept = {name: of for name, of in self._columns.items() if name in names}
        return replace(self, _columns=kept)

    @property
    def read(self) -> frozenset[str]:
        """The columns of the first table that are read, or that something leads by."""
        return self.read_of(self.table)

    def read_of(self, table: Table) -> frozenset[str]:
        """Return the columns of a table that are read, or by which tables are joined."""
        cells = [cell for _, of in self._columns.values() for cell in of]
        cells += [cell for _, of in self._where for cell in of]
        read = [(cell.place, cell.column.name) for cell in cells]
        read += [(join.before, join.column) for join in self._joins]
        read += [(place, join.key) for place, join in enumerate(self._joins, 1)]
        return frozenset(
            name for place, name in read if self._table(place).name == table.name
        )

    @property
    def leaves_out(self) -> bool:
        """Whether it has fewer rows than its first table."""
        return bool(self._where)

    def showing(self, **cells: Cell) -> "Select":
        """Return the statement with the same rows and these columns alone."""
        shown: dict[str, tuple[str, tuple[Cell, ...]]] = {
            name: ("{0}", (cell,)) for name, cell in cells.items()
        }
        return replace(self, _columns=shown)

    def only_where(self, template: str, *columns: TableColumn) -> None:
        """Leave out rows for which a condition on columns of the first table fails."""
        self._where.append((template, tuple(Cell(0, column) for column in columns)))

    def doubts(self, database: Database) -> Iterator[str]:
        """Yield a question for each joined table whose key nothing keeps unique."""
        for join in self._joins:
            if join.table.is_unique(join.key):
                continue
            counted = different(database, join.table, join.key)
            if counted is None or counted[1] == counted[2]:
                said = "nothing keeps unique"
                asked = "has it one row for each, and will it?"
            else:
                number = counted[1] - counted[2]
                said = f"{number} row{'s repeat' if number > 1 else ' repeats'}"
                asked = "which of them counts? As it is, ids occur twice"
            yield f"{join.table.name} is joined by {join.key}, which {said}: {asked}"

    def cell(self, name: str) -> Cell | None:
        """Return what a name reads, None where that is no single column."""
        _, cells = self._columns[name]
        return cells[0] if len(cells) == 1 else None

    def beside(self, column: str, other: "Select", key: str, cell: Cell) -> Cell:
        """Join another statement's tables by its key, as far as a cell of it needs them.

        Return where the cell stands here.
        """
        if not cell.place:
            return replace(cell, place=self.join_at(0, column, other.table, key))
        join = other._joins[cell.place - 1]
        before = Cell(join.before, other._table(join.before).by_name[join.column])
        place = self.beside(column, other, key, before).place
        return replace(
            cell, place=self.join_at(place, join.column, join.table, join.key)
        )

    def copy(self) -> "Select":
        """Return a statement with the same rows, whatever is joined to it later."""
        return replace(self, _joins=[*self._joins], _columns={**self._columns})

    @property
    def text(self) -> str:
        """The statement."""
        return "\n".join(self.lines())

    @property
    def besides(self) -> str:
        """What its columns and joins add to a statement on the same table, in one line."""
        lines = replace(self, _where=[]).lines()
        return f"SELECT …, {' '.join(map(str.strip, lines)).removeprefix('SELECT ')}"

    def lines(self) -> Iterator[str]:
        """Yield the lines of the statement."""
        columns = [
            self._written(name, template, cells)
            for name, (template, cells) in self._columns.items()
        ]
        yield from _wrapped("SELECT ", columns)
        alias = f" {self._alias(0)}" if self._is_named else ""
        yield f"FROM {self._table(0).written}{alias}"
        for place, join in enumerate(self._joins, 1):
            key = join.table.by_name[join.key].written
            own = self._table(join.before).by_name[join.column].written
            here, there = self._alias(place), self._alias(join.before)
            yield f"LEFT JOIN {join.table.written} {here} ON {here}.{key} = {there}.{own}"
        for number, (template, cells) in enumerate(self._where):
            condition = template.format(*map(self._cell, cells))
            yield f"{'  AND' if number else 'WHERE'} {condition}"

    @property
    def _is_named(self) -> bool:
        """Whether its tables go by names of one letter, for there is more than one."""
        return bool(self._joins) or any("SELECT" in said for said, _ in self._where)

    def _put(
        self, name: str, other: str, template: str, cells: tuple[Cell, ...]
    ) -> str:
        taken = {known.lower() for known in self._columns}
        chosen = name if name.lower() not in taken else other
        while chosen.lower() in taken:
            chosen += "_2"
        self._columns[chosen] = (template, cells)
        return chosen

    def _written(self, name: str, template: str, cells: tuple[Cell, ...]) -> str:
        text = template.format(*map(self._cell, cells))
        own = template == "{0}" and cells[0].column.name == name
        return text if own else f"{text} AS {name}"

    def _cell(self, cell: Cell) -> str:
        alias = f"{self._alias(cell.place)}." if self._is_named else ""
        return alias + cell.column.written

    def _table(self, place: int) -> Table:
        return self._joins[place - 1].table if place else self.table

    def _alias(self, place: int) -> str:
        # One letter: longer ones may be words of SQL.
        letters = [_last_word(self._table(p))[0] for p in range(len(self._joins) + 1)]
        letter = letters[place]
        number = letters[: place + 1].count(letter)
        return letter if letters.count(letter) == 1 else f"{letter}{number}"


def _last_word(table: Table) -> str:
    words = [w for w in meaning(table.bare).words if w.isalpha() and w.isascii()]
    return words[-1] if words else "t"


def _wrapped(start: str, parts: Sequence[str]) -> Iterator[str]:
    line = start
    for number, part in enumerate(parts):
        text = part + ("," if number < len(parts) - 1 else "")
        if len(line) + len(text) > _WIDTH and line.strip() not in ("SELECT", ""):
            yield line.rstrip()
            line = " " * len(start)
        line += f"{text} "
    yield line.rstrip()
