"""Where the columns of a patient are found: in its own table, or in that of the person."""

from collections.abc import Mapping

from adapters.contract import ResourceType
from adapters.sql.tables import Table, TableColumn
from app.tools.starting.draft import Found
from app.tools.starting.guesses import slots
from app.tools.starting.references import References


class Sight:
    """The tables that one SELECT reads, each with its place and likeliest columns."""

    def __init__(self, references: References) -> None:
        self._references = references
        self.places: list[tuple[Table, int]] = []

    def see(self, table: Table, place: int) -> None:
        """Look into a table as well, after those seen before."""
        self.places.append((table, place))

    def slots_of(self, table: Table) -> Mapping[str, TableColumn]:
        """Return the likeliest column of each slot in one table."""
        return slots(table, ResourceType.PATIENT, self._references)

    def every(self, slot: str) -> list[Found]:
        """Return the columns that fill a slot, one a table at most."""
        return [
            Found(table, self.slots_of(table)[slot], place)
            for table, place in self.places
            if slot in self.slots_of(table)
        ]

    def first(self, slot: str) -> Found | None:
        """Return the column that fills a slot in the first table that has one."""
        return next(iter(self.every(slot)), None)

    def last(self, slot: str) -> Found | None:
        """Return the column that fills a slot in the last table that has one."""
        return next(reversed(self.every(slot)), None)

    def named(self, name: str) -> Found | None:
        """Return the first column of a name."""
        for table, place in self.places:
            if name in table.by_name:
                return Found(table, table.by_name[name], place)
        return None
