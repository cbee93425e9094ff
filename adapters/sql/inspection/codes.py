"""The codes that rows of a section have, counted by the database."""

from collections.abc import Iterator

from adapters.errors import SourceTimedOutError
from adapters.inspection import Observation
from adapters.inspection.codes import MOST, Counted, counted, unnamed, unused
from adapters.mapping.places import Place
from adapters.sql.conditions import ALWAYS, Filter, all_of
from adapters.sql.inspection.rows import Looked
from adapters.sql.statements import Shape
from adapters.sql.values import Columns


class CodesSeen:
    """What the coded columns of a section hold."""

    def __init__(self, looked: Looked) -> None:
        self._looked = looked

    def observations(self) -> Iterator[Observation]:
        """Count the codes of each column and hold them against their tables."""
        found = []
        for place in self._looked.places:
            if place.field.codes is None or not place.field.columns:
                continue
            try:
                found.append(self._count(place))
            except SourceTimedOutError:
                yield self._looked.untold(f"codes of {self._looked.column(place)}")
        required = self._looked.section.mapping.required
        seen = (one for each in found for one in unnamed(each, required))
        yield from dict.fromkeys(seen)
        yield from self._unused(found)

    def _unused(self, found: list[Counted]) -> Iterator[Observation]:
        tables: dict[str, list[Counted]] = {}
        by_name = {each.codes.name: each.codes for each in found}
        for each in found:
            tables.setdefault(each.codes.name, []).append(each)
        for name, of_table in tables.items():
            if all(len(each.counts) <= MOST for each in of_table):
                yield from unused(by_name[name], of_table)

    def _count(self, place: Place) -> Counted:
        looked = self._looked
        rows = place.rows or looked.section.mapping.rows
        (name,) = place.field.columns
        column = self._columns(place).column(name)
        wanted = self._wanted(place)
        shape = Shape(rows, (), wanted.condition, limited=True, grouped=column)
        values = looked.database.fetch(shape, wanted.values, 2 * MOST)
        looked.told.add(name)
        return counted(place, looked.column(place), values)

    def _columns(self, place: Place) -> Columns:
        filters = self._looked.section.filters
        return filters.item_columns[place.rows] if place.rows else filters.columns

    def _wanted(self, place: Place) -> Filter:
        """Return which rows count: those that are served, of an item those that it takes."""
        parts = []
        if not place.rows and place.field.slot != "status":
            parts.append(self._looked.served)
        if place.only_if is not None:
            values = sorted(place.only_if.values)
            parts.append(self._columns(place).among(place.only_if.column, values))
        return all_of(parts) if parts else ALWAYS
