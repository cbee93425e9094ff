"""Which column leads to which table: by foreign keys, or by names where none is declared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.sql.tables import Catalogue, Holds, Table, TableColumn
from app.tools.starting.words import common_words, meaning

_KEYS = frozenset({"ID", "CODE", "NUMBER"})
_NUMBERS = (Holds.INTEGER, Holds.NUMBER)
_FARTHEST = 3


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that holds the key of a row elsewhere; `declared` as a foreign key."""

    table: Table
    column: str
    target: Table
    key: str
    declared: bool


class References:
    """What leads where in a catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._tables = catalogue.tables
        self._marks = common_words(table.bare for table in catalogue.tables)
        self._of: Mapping[str, Mapping[str, Reference]] = {
            table.name: self._found(table) for table in catalogue.tables
        }

    def of(self, table: Table) -> Mapping[str, Reference]:
        """Return the references of a table by column."""
        return self._of[table.name]

    def to(self, target: Table) -> tuple[Reference, ...]:
        """Return the references to a table."""
        every = (r for of in self._of.values() for r in of.values())
        return tuple(r for r in every if r.target.name == target.name)

    def leading(self, table: Table, target: Table | None) -> list[Reference]:
        """Return the references from one table to another."""
        return [
            r
            for r in self.of(table).values()
            if target and r.target.name == target.name
        ]

    def path(
        self, start: Table, targets: Sequence[Table], around: Table | None
    ) -> tuple[Reference, ...]:
        """Return the shortest way to one of the tables, () when there is none.

        `around` is a table that the way does not lead through.
        """
        shut = {start.name, around.name if around else ""}
        wanted = {table.name for table in targets}
        ways: list[tuple[Reference, ...]] = [
            (r,) for r in self.of(start).values() if r.target.name not in shut
        ]
        for _ in range(_FARTHEST):
            for way in ways:
                if way[-1].target.name in wanted:
                    return way
            ways = [
                (*way, further)
                for way in ways
                for further in self.of(way[-1].target).values()
                if further.target.name not in {*shut, *(r.target.name for r in way)}
            ]
        return ()

    def _found(self, table: Table) -> Mapping[str, Reference]:
        found: dict[str, Reference] = {}
        known = {t.name: t for t in self._tables}
        for key in table.foreign_keys:
            if len(key.columns) == 1 and key.table in known and key.referred:
                (name,), (there,) = key.columns, key.referred[:1]
                target = known[key.table]
                found[name] = Reference(table, name, target, there, declared=True)
        for column in table.columns:
            seems = None if column.name in found else self._implied(table, column)
            if seems is not None:
                there, name = seems.primary_key[0], column.name
                found[name] = Reference(table, name, seems, there, declared=False)
        return found

    def _implied(self, table: Table, column: TableColumn) -> Table | None:
        """Return the table that a column seems to lead to by its name."""
        ways = [
            (nearness, len(other.bare), other.name, other)
            for other in self._tables
            if other.name != table.name
            and (nearness := self._near(table, column, other))
        ]
        return min(ways)[-1] if ways else None

    def _near(self, table: Table, column: TableColumn, other: Table) -> int:
        """Return 1 to 3 where a column seems to lead to a table, 0 where it does not."""
        if len(other.primary_key) != 1:
            return 0
        key = other.by_name[other.primary_key[0]]
        if (key.holds in _NUMBERS) is not (column.holds in _NUMBERS):
            return 0
        generic = meaning(key.name).known <= _KEYS and not meaning(key.name).unknown
        about = meaning(key.name).known - _KEYS
        if column.name.lower() == key.name.lower() and not generic:
            owned = about & meaning(other.bare).known
            is_key = (column.name,) == table.primary_key
            return 1 if owned else 0 if is_key else 3
        if (column.name,) == table.primary_key:
            return 0
        words, names = _stems(column.name), self._stems(other)
        return 2 if words and (words == names or words == names[-len(words) :]) else 0

    def _stems(self, table: Table) -> tuple[str, ...]:
        words = _stems(table.bare)
        return (
            words[1:]
            if len(words) > 1 and meaning(table.bare).words[0] in self._marks
            else words
        )


def _stems(name: str) -> tuple[str, ...]:
    """Return the words of a name without plural and without words for keys."""
    words = meaning(name).words
    kept = [w for w in words if not w.isdigit() and w not in _KEY_WORDS]
    return tuple(word.removesuffix("s") for word in kept)


_KEY_WORDS = frozenset({"id", "ids", "code", "key", "no", "num", "pk", "fk", "uid"})
