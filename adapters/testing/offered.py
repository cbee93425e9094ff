"""An adapter under test: what it does not offer skips the test, and says why."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest

from adapters.contract import (
    Adapter,
    Capabilities,
    Criterion,
    DateCriterion,
    Limit,
    NotAskableError,
    Page,
    Problem,
    Record,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    StringCriterion,
)

LARGEST_PAGE = 100
"""What the service asks for at most."""


class Offered:
    """An adapter, asked for no more than it offers.

    `columns` says the suite's name of a column for the adapter's own, which its faults
    name.
    """

    def __init__(self, adapter: Adapter, columns: Mapping[str, str]) -> None:
        self._adapter = adapter
        self._columns = columns

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked."""
        return self._adapter.capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order."""
        return self._adapter.fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return the rows of a page, in the service's order where the source has none."""
        with self._asking(query):
            page = self._adapter.search(self._as_served(query))
        rows = tuple(
            self._named(row) if isinstance(row, RowFault) else row for row in page.rows
        )
        return replace(page, rows=rows)

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        with self._asking(query):
            return self._adapter.count(self._as_served(query))

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource; raises as the adapter does."""
        if resource_type not in self.capabilities:
            pytest.skip(f"{resource_type} is not offered")
        try:
            return self._adapter.read(resource_type, id)
        except SourceDataError as error:
            error.fault = error.fault and self._named(error.fault)
            raise

    def explain(self, query: SearchQuery) -> str:
        """Return what would be sent."""
        with self._asking(query):
            return self._adapter.explain(self._as_served(query))

    def check(self) -> Iterable[Problem]:
        """Tell what is wrong with the source."""
        return self._adapter.check()

    def close(self) -> None:
        """Give connections back."""
        self._adapter.close()

    def sorts_by(self, query: SearchQuery) -> bool:
        """Whether the source can give the order that the query names."""
        return query.sort.key in self.capabilities[query.resource_type].sorts

    def takes(self, query: SearchQuery) -> bool:
        """Whether the adapter answers the query at all."""
        if lack(self.capabilities, query):
            return False
        try:
            self._adapter.count(self._as_served(query))
        except NotAskableError:
            return False
        return True

    @contextmanager
    def _asking(self, query: SearchQuery) -> Iterator[None]:
        if reason := lack(self.capabilities, query):
            pytest.skip(reason)
        try:
            yield
        except NotAskableError as error:
            asked = f"{query.resource_type} by {error.parameter}"
            pytest.skip(f"{asked} {error.limit or 'is not asked for so'}")

    def _as_served(self, query: SearchQuery) -> SearchQuery:
        asked = replace(query, count=min(query.count, LARGEST_PAGE))
        if self.sorts_by(query):
            return asked
        sorts = self.capabilities[query.resource_type].sorts
        key = sorts[0] if sorts else SortKey.ID
        return replace(asked, sort=Sort(key, key is not SortKey.ID))

    def _named(self, fault: RowFault) -> RowFault:
        return fault._replace(column=self._columns.get(fault.column, fault.column))


def lack(capabilities: Capabilities, query: SearchQuery) -> str:
    """Return what of the query is not offered, "" when all of it is."""
    offered = capabilities.get(query.resource_type)
    if offered is None:
        return f"{query.resource_type} is not offered"
    if query.after is not None and not offered.paging:
        return "further pages are not offered"
    if query.backwards and not (offered.paging and offered.backwards):
        return "earlier pages are not offered"
    lacks = (_lack(offered, criterion) for criterion in query.criteria)
    lacking = next(filter(None, lacks), "")
    return f"{query.resource_type} by {lacking}" if lacking else ""


def _lack(offered: ResourceCapabilities, criterion: Criterion) -> str:
    name = criterion.parameter
    able = offered.parameters.get(name)
    if able is None:
        return f"{name} is not offered"
    if isinstance(criterion, StringCriterion) and criterion.match not in able.matches:
        return f"{name}:{criterion.match} is not offered"
    dates = criterion.values if isinstance(criterion, DateCriterion) else ()
    if any(value.prefix not in able.prefixes for value in dates):
        return f"{name} {Limit.PREFIX}"
    return ""
