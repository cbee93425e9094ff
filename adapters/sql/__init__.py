"""A hospital database as an adapter: search, count and read by SQL (SQLAlchemy Core).

SearchQuery → filters.py → conditions → statements.py → database.py → rows → records
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from adapters.contract import (
    AdapterError,
    Capabilities,
    Group,
    NotFoundError,
    Page,
    ParameterCapability,
    Problem,
    Record,
    ResourceCapabilities,
    ResourceType,
    SearchQuery,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
    StringMatch,
    TooCostlyError,
)
from adapters.errors import SourceTimedOutError
from adapters.inspection import Look, Observation
from adapters.mapping.apply import served
from adapters.mapping.model import DateReading, ResourceMapping, SourceMapping
from adapters.sql.conditions import NEVER
from adapters.sql.database import Database, open_databases
from adapters.sql.pages import (
    Sent,
    check_kept,
    legs_of,
    page_shape,
    placed_position,
    position_of,
    sent_for,
)
from adapters.sql.section import Section, UnfitError, open_section
from adapters.sql.statements import Shape

_MAY_WRITE = (
    "the account of the source may change tables: give it one that may only read"
    " (docs/operators.md, The database account), or say source.may_write: true"
)


class SqlAdapter:
    """A hospital database behind one mapping. Nothing is asked of it before the first call."""

    def __init__(
        self, mapping: SourceMapping, beside: "SqlAdapter | None" = None
    ) -> None:
        """Take the connections of another adapter, `beside`, on the same database.

        Raises SourceDataError where the address of the source cannot be spoken to.
        """
        self._mapping = mapping
        self._fingerprint = mapping.fingerprint
        self._pages: Database
        self._counts: Database
        if beside is None:
            self._pages, self._counts = open_databases(mapping.source)
        else:
            self._pages, self._counts = beside._pages, beside._counts
        self._sections: dict[ResourceType, Section] = {}
        self._capabilities = {
            kind: _capabilities(section, mapping.date_reading)
            for kind, section in mapping.resources.items()
        }

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked of each resource type that the mapping has."""
        return self._capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order."""
        return self._fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        section = self._section(query.resource_type)
        found: list[tuple[Group | None, Any]] = []
        for leg, wanted in legs_of(section, query):
            shape = page_shape(section, leg, wanted.condition)
            missing = query.count + 1 - len(found)
            rows = self._pages.fetch(shape, wanted.values, missing)
            found += [(leg.group, row) for row in rows]
            if len(found) > query.count:
                break
        return self._page(section, query, found)

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        section = self._section(query.resource_type)
        wanted = section.filters.of_query(query)
        if wanted is NEVER:
            return 0
        shape = Shape(section.mapping.rows, (), wanted.condition)
        try:
            rows = self._counts.fetch(shape, wanted.values)
        except SourceTimedOutError as error:
            raise TooCostlyError("the count took too long") from error
        return int(rows[0][0])

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        section = self._section(resource_type)
        wanted = section.filters.of_id(id)
        if wanted is NEVER:
            raise NotFoundError(resource_type)
        shape = Shape(
            section.mapping.rows, section.selected, wanted.condition, limited=True
        )
        rows = self._pages.fetch(shape, wanted.values, 1)
        if not rows:
            raise NotFoundError(resource_type)
        (record,) = section.records(self._pages, rows)
        return served(record)

    def explain(self, query: SearchQuery) -> str:
        """Return the statements of a page in the order in which they would be sent."""
        told = self._sent(query)
        return "\n\n".join(label + self._pages.text(shape) for label, shape, _ in told)

    def explain_values(self, query: SearchQuery) -> str:
        """Return them with the values of their placeholders."""
        pages, limit = self._pages, query.count + 1
        return "\n\n".join(
            f"{label}{pages.text(shape)}\n{pages.legend(shape, values, limit)}"
            for label, shape, values in self._sent(query)
        )

    def _sent(self, query: SearchQuery) -> Iterator[Sent]:
        return sent_for(self._section(query.resource_type), query)

    def check(self) -> Iterable[Problem]:
        """Tell whether the database answers, has the columns, and is safe from changes."""
        for resource_type in self._mapping.resources:
            try:
                open_section(self._pages, self._mapping, resource_type)
            except AdapterError as error:
                yield _problem(error)
        try:
            if not self._mapping.source.may_write and self._pages.may_write():
                yield Problem(f"{self._mapping.source.mark}: {_MAY_WRITE}")
        except AdapterError as error:
            yield _problem(error)

    def looks(self, kinds: Collection[ResourceType]) -> Iterator[Look]:
        """Yield what there is to look at, section by section."""
        # Here: no service looks.
        from adapters.sql.inspection import looks

        yield Look("account", self._account)
        for kind in self._mapping.resources:
            if kind in kinds:
                yield Look(f"{kind}: columns", partial(self._fit, kind))
                try:
                    section = self._section(kind)
                except SourceDataError:
                    continue
                yield from looks(section, self._mapping, self._pages, self.search)

    def _account(self) -> Iterator[Observation]:
        if not self._mapping.source.may_write and self._pages.may_write():
            mark = self._mapping.source.mark
            yield Observation(mark, "source", "", _MAY_WRITE)

    def _fit(self, kind: ResourceType) -> Iterator[Observation]:
        try:
            self._section(kind)
        except UnfitError as error:
            yield from map(Observation.of, error.problems)

    def close(self) -> None:
        """Close the connections."""
        self._pages.close()
        self._counts.close()

    def _section(self, resource_type: ResourceType) -> Section:
        section = self._sections.get(resource_type)
        if section is None:
            # Two that come first at once both ask; nobody waits for a slow answer.
            section = open_section(self._pages, self._mapping, resource_type)
            self._sections[resource_type] = section
        return section

    def _page(
        self,
        section: Section,
        query: SearchQuery,
        found: list[tuple[Group | None, Any]],
    ) -> Page:
        more = len(found) > query.count
        kept = found[: query.count]
        if query.backwards:
            kept.reverse()
        records = section.served(self._pages, [row for _, row in kept])
        if not kept:
            return Page(())
        if not query.placed:
            first, last = (position_of(section, query, *kept[i]) for i in (0, -1))
            if more or query.after or query.before or query.from_end:
                check_kept(first, last)
            return Page(records, more, first, last)
        places = tuple(
            placed_position(section, query, group, row) for group, row in kept
        )
        return Page(records, more, places[0], places[-1], places)


def _problem(error: AdapterError) -> Problem:
    return Problem(str(error), outage=isinstance(error, SourceUnavailableError))


def _capabilities(
    section: ResourceMapping, date_reading: DateReading
) -> ResourceCapabilities:
    names = chain.from_iterable(
        item.fields.values() for item in section.items.get("names", ())
    )
    cut = any(field.split for field in names)
    texts = frozenset({StringMatch.STARTS_WITH, StringMatch.CONTAINS})
    # A name that is one of several in a column cannot be told from the others whole.
    matches = texts if cut else texts | {StringMatch.EXACT}
    parameters: Mapping[str, ParameterCapability] = {
        name: ParameterCapability(
            matches=matches,
            period=name == "date" and date_reading is DateReading.PERIOD,
        )
        for name in section.parameters
    }
    sorts = (
        section.sorts if SortKey.ID in section.sorts else (*section.sorts, SortKey.ID)
    )
    last_updated = section.fields.get("last_updated")
    dated = last_updated is not None and last_updated.covers_all
    return ResourceCapabilities(parameters, sorts, keyset=True, dated=dated)
