"""Several sources behind one door: asked at the same time, merged into one list.

An id and a reference begin with the prefix of their source, so that who is concerned is
known before anything is asked. Either every source that is concerned answers, or the
answer is that one did not: a list is never shorter than it should be.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

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
from adapters.guarded import Guard, guarded
from adapters.inspection import Inspectable, Look, Observation, with_values
from adapters.lanes import Lane
from adapters.listener import Listener
from adapters.mapping.model import Mark, PartMapping, SourceConfig, SourceMapping

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
        parts = self._concerned(query)
        if len(self._by_kind[query.resource_type]) == 1:
            alone = (
                Asked(p, p.lane, partial(p.adapter.search, query)) for _, p in parts
            )
            return next(iter(_at_once(alone)), Page(()))
        asked = [
            (index, part, own)
            for index, part in parts
            if (own := question(query, index, keyless=part.keyless(query)))
        ]
        pages = _at_once(
            Asked(part, part.lane, partial(part.adapter.search, own))
            for _, part, own in asked
        )
        rows = [
            placed(page, index, keyless=part.keyless(query))
            for (index, part, _), page in zip(asked, pages, strict=True)
        ]
        return merged(rows, any(page.more for page in pages), query)

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match in all sources."""
        calls = (
            Asked(
                part, part.counts, partial(part.adapter.count, _countable(part, query))
            )
            for _, part in self._concerned(query)
        )
        return sum(_at_once(calls))

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource, from the one source that it can be in."""
        for part in self._by_kind.get(resource_type, ()):
            if id.startswith(part.prefix):
                call = partial(part.adapter.read, resource_type, id)
                return part.named(partial(part.lane.run, call))
        raise NotFoundError(resource_type)

    def explain(self, query: SearchQuery) -> str:
        """Return what each source would be asked, after its name."""
        return self._told(query, lambda adapter: adapter.explain)

    def explain_values(self, query: SearchQuery) -> str:
        """Return the same with the values of the search."""
        return self._told(query, with_values)

    def _told(
        self, query: SearchQuery, how: Callable[[Adapter], Callable[[SearchQuery], str]]
    ) -> str:
        return "\n\n".join(
            f"-- {part.name or part.prefix}\n{part.named(partial(how(part.adapter), own))}"
            for index, part in self._concerned(query)
            if (own := question(query, index, keyless=part.keyless(query)))
        )

    def check(self) -> Iterable[Problem]:
        """Tell which sources do not answer or do not fit the mapping."""
        found = (
            replace(problem, text=part.telling(problem.text), source=part.name)
            for part in self._parts
            for problem in part.adapter.check()
        )
        return tuple(dict.fromkeys(found))

    def looks(self, kinds: Collection[ResourceType]) -> Iterator[Look]:
        """Yield what there is to look at in each source that can be looked into."""
        for part in self._parts:
            if part.kind in kinds and isinstance(part.adapter, Inspectable):
                for look in part.adapter.looks((part.kind,)):
                    yield Look(
                        part.telling(look.subject),
                        partial(_told, part, look),
                    )

    def close(self) -> None:
        """Close all sources."""
        for part in self._parts:
            part.lane.close()
            part.counts.close()
            part.adapter.close()

    def _concerned(self, query: SearchQuery) -> list[tuple[int, Part]]:
        parts = enumerate(self._by_kind[query.resource_type])
        return [(index, part) for index, part in parts if part.concerns(query)]


def _countable(part: Part, query: SearchQuery) -> SearchQuery:
    if part.keyless(query):
        return replace(query, sort=Sort(SortKey.ID, query.sort.descending))
    return query


def _told(part: Part, look: Look) -> list[Observation]:
    return part.named(lambda: list(look.ask()))


class Asked(NamedTuple, Generic[Answer]):
    """A call of a part, and the lane in which it is made."""

    part: Part
    lane: Lane
    call: Callable[[], Answer]


def _at_once(calls: Iterable[Asked[Answer]]) -> list[Answer]:
    """Return the answers in the order of the calls; the first failure is raised."""
    asked = list(calls)
    if len(asked) == 1:
        ((part, lane, call),) = asked
        return [part.named(partial(lane.run, call))]
    begun: dict[int, Future[Answer]] = {}
    try:
        for lane in dict.fromkeys(each.lane for each in asked):
            begun |= _begun(lane, asked)
        return [begun[index].result() for index in range(len(asked))]
    finally:
        for future in begun.values():
            future.cancel()


def _begun(lane: Lane, asked: Sequence[Asked[Answer]]) -> dict[int, Future[Answer]]:
    """Begin the calls of one lane; return them by their place among all."""
    own = [index for index, each in enumerate(asked) if each.lane is lane]
    calls = [partial(asked[i].part.named, asked[i].call) for i in own]
    futures = asked[own[0]].part.named(partial(lane.begin, calls))
    return dict(zip(own, futures, strict=True))


def open_federated(mapping: SourceMapping, listener: Listener) -> FederatedAdapter:
    """Return the adapter for a mapping that has parts; `listener` is told of all calls."""
    # A source is known by its place in the file.
    lanes: dict[Mark, tuple[Lane, Lane]] = {}
    guards: dict[Mark, Guard] = {}
    adapters: dict[Mark, Adapter] = {}
    parts = []
    for part in mapping.parts:
        source = part.mapping.source
        adapter = _open(part.mapping, adapters.get(source.mark))
        adapters.setdefault(source.mark, adapter)
        if source.mark not in lanes:
            lanes[source.mark] = _lanes(source, adapter)
            guards[source.mark] = Guard(part.name, listener)
        asked = guarded(adapter, guards[source.mark])
        parts.append(_part(part, asked, *lanes[source.mark]))
    return FederatedAdapter(parts, mapping.fingerprint)


def _lanes(source: SourceConfig, adapter: Adapter) -> tuple[Lane, Lane]:
    """Return as much room for pages and for counts as the source has connections."""
    from adapters.sql import SqlAdapter
    from adapters.sql.database import COUNTS

    pages = Lane(source.connections, source.wait_seconds)
    if isinstance(adapter, SqlAdapter):
        return pages, Lane(COUNTS, source.wait_seconds)
    return pages, pages


def _open(mapping: SourceMapping, beside: Adapter | None) -> Adapter:
    # Here, so that who only reads mapping files loads no database library.
    from adapters import open_source
    from adapters.http import HttpAdapter
    from adapters.sql import SqlAdapter

    if isinstance(beside, SqlAdapter):
        return SqlAdapter(mapping, beside)
    if isinstance(beside, HttpAdapter):
        return HttpAdapter(mapping, beside)
    return open_source(mapping)


def _part(part: PartMapping, adapter: Adapter, lane: Lane, counts: Lane) -> Part:
    fields = part.section.fields
    patient = fields.get("patient_id")
    return Part(
        name=part.name,
        kind=part.kind,
        adapter=adapter,
        lane=lane,
        counts=counts,
        prefix=fields["id"].prefix,
        patients=patient.prefix if patient else "",
        lacks=part.lacks,
    )
