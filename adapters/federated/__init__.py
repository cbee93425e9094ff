"""Several sources behind one door: asked at the same time, merged into one list.

An id and a reference begin with the prefix of their source, so that who is concerned is
known before anything is asked. Either every source that is concerned answers, or the
answer is that one did not: a list is never shorter than it should be.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from adapters.contract import (
    Adapter,
    Capabilities,
    NotFoundError,
    Page,
    Problem,
    Record,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.federated.merge import merged, placed, question
from adapters.federated.parts import Part, common
from adapters.mapping.model import PartMapping, SourceConfig, SourceMapping

__all__ = ["FederatedAdapter", "Part", "open_federated"]

Answer = TypeVar("Answer")


class FederatedAdapter:
    """Parts that are searched and read as one hospital system.

    The order of `parts` is part of the order of results, and of `fingerprint`.
    """

    def __init__(self, parts: Iterable[Part], fingerprint: str) -> None:
        self._parts = tuple(parts)
        self._fingerprint = fingerprint
        kinds = dict.fromkeys(part.kind for part in self._parts)
        self._by_kind = {
            kind: tuple(p for p in self._parts if p.kind is kind) for kind in kinds
        }
        self._capabilities = {kind: common(p) for kind, p in self._by_kind.items()}

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked of all the sources of a resource type at once."""
        return self._capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of all sources, rows and orders."""
        return self._fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows of all sources from where the query starts."""
        asked = [
            (index, part, own)
            for index, part in self._concerned(query)
            if (own := question(query, index, keyless=part.keyless(query)))
        ]
        calls = [(part, partial(part.adapter.search, own)) for _, part, own in asked]
        pages = _at_once(calls)
        rows = [
            placed(page, index, keyless=part.keyless(query))
            for (index, part, _), page in zip(asked, pages, strict=True)
        ]
        return merged(rows, any(page.more for page in pages), query)

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match in all sources."""
        calls = [
            (part, partial(part.adapter.count, _countable(part, query)))
            for _, part in self._concerned(query)
        ]
        return sum(_at_once(calls))

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource, from the one source that it can be in."""
        for part in self._by_kind.get(resource_type, ()):
            if id.startswith(part.prefix):
                return part.named(partial(part.adapter.read, resource_type, id))
        raise NotFoundError(resource_type)

    def explain(self, query: SearchQuery) -> str:
        """Return what each source would be asked, after its name."""
        asked = [
            (part, own)
            for index, part in self._concerned(query)
            if (own := question(query, index, keyless=part.keyless(query)))
        ]
        return "\n\n".join(
            f"-- {part.name}\n{part.named(partial(part.adapter.explain, own))}"
            for part, own in asked
        )

    def check(self) -> Iterable[Problem]:
        """Tell which sources do not answer or do not fit the mapping."""
        found = (
            replace(
                problem, text=f"source {part.name}: {problem.text}", source=part.name
            )
            for part in self._parts
            for problem in part.adapter.check()
        )
        return tuple(dict.fromkeys(found))

    def close(self) -> None:
        """Close all sources."""
        for part in self._parts:
            part.lane.shutdown(wait=False, cancel_futures=True)
            part.adapter.close()

    def _concerned(self, query: SearchQuery) -> list[tuple[int, Part]]:
        parts = enumerate(self._by_kind[query.resource_type])
        return [(index, part) for index, part in parts if part.concerns(query)]


def _countable(part: Part, query: SearchQuery) -> SearchQuery:
    if part.keyless(query):
        return replace(query, sort=Sort(SortKey.ID, query.sort.descending))
    return query


def _at_once(calls: Sequence[tuple[Part, Callable[[], Answer]]]) -> list[Answer]:
    """Return the answers in the order of the calls; the first failure is raised."""
    if len(calls) == 1:
        ((part, call),) = calls
        return [part.named(call)]
    futures = [part.lane.submit(part.named, call) for part, call in calls]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def open_federated(mapping: SourceMapping) -> FederatedAdapter:
    """Return the adapter for a mapping that has parts."""
    lanes: dict[SourceConfig, Executor] = {}
    adapters: dict[SourceConfig, Adapter] = {}
    parts = []
    for part in mapping.parts:
        source = part.mapping.source
        # As many at once as the source has connections: one that hangs holds no other.
        lane = lanes.setdefault(source, ThreadPoolExecutor(source.connections))
        adapter = _open(part.mapping, adapters.get(source))
        adapters.setdefault(source, adapter)
        parts.append(_part(part, adapter, lane))
    return FederatedAdapter(parts, mapping.fingerprint)


def _open(mapping: SourceMapping, beside: Adapter | None) -> Adapter:
    # Here, so that who only reads mapping files loads no database library.
    from adapters import open_adapter
    from adapters.sql import SqlAdapter

    if isinstance(beside, SqlAdapter):
        return SqlAdapter(mapping, beside)
    return open_adapter(mapping)


def _part(part: PartMapping, adapter: Adapter, lane: Executor) -> Part:
    fields = part.section.fields
    patient = fields.get("patient_id")
    return Part(
        name=part.name,
        kind=part.kind,
        adapter=adapter,
        lane=lane,
        prefix=fields["id"].prefix,
        patients=patient.prefix if patient else "",
        lacks=part.lacks,
    )
