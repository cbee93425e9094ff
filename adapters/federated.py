"""Several sources as one list: searched at the same time, merged into one order.

An id begins with the prefix of its source, a reference with that of the source that it
leads to: a search reaches only the sources that can match. Either all of these answer, or
the search fails: a list is never shorter than it should be.

Rows are ordered by the instant of their sort key, then by the index of their source, then
as their source orders them, since no two databases agree on the order of ids. Descending
is the reverse, but rows without the sort key come last in both directions (decisions 8 and
12). Ordered by id alone, one source follows the other.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from adapters.contract import (
    Adapter,
    Bound,
    Capabilities,
    Criterion,
    Group,
    Limit,
    NotFoundError,
    Page,
    ParameterCapability,
    Position,
    Prefix,
    Problem,
    Record,
    ReferenceCriterion,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
    StringMatch,
    TokenCriterion,
)
from adapters.parameters import SEARCH_PARAMETERS

T = TypeVar("T")

_FINEST_FIRST = (None, Limit.SECOND, Limit.MINUTE, Limit.DAY)
"""The units in which sources compare times; None for every instant."""

_ONE_BY_ONE = "one source after the other, each in its own order"
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)

_THREADS = 64
"""Threads for each source: more than a worker has requests, so that calls wait only for
the source's own limit on concurrent calls. They start when they are needed."""


@dataclass(frozen=True, slots=True)
class Part:
    """Resources of one type from one source, whose ids begin with `prefix`.

    `name` is that of the source; its adapter serves and understands ids as clients see
    them. `patients` is the prefix of the patients that its stays refer to. `lacks` are
    parameters and sort keys that none of its rows has a value for. `systems` are those of
    all its identifiers, by parameter, where the mapping names every one.
    """

    name: str
    kind: ResourceType
    adapter: Adapter
    prefix: str = ""
    patients: str = ""
    lacks: frozenset[str] = frozenset()
    systems: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def capabilities(self) -> ResourceCapabilities:
        """What the source can do with these resources."""
        return self.adapter.capabilities[self.kind]

    def can_match(self, query: SearchQuery) -> bool:
        """Whether a row of this part can match a search."""
        return all(self._can_meet(criterion) for criterion in query.criteria)

    def lacks_key(self, query: SearchQuery) -> bool:
        """Whether no row of this part has the sort key of a search."""
        return query.sort.key is not SortKey.ID and query.sort.key in self.lacks

    def named(self, call: Callable[[], T]) -> T:
        """Return what a call returns; a failure names the source."""
        try:
            return call()
        except (SourceUnavailableError, SourceDataError) as error:
            error.args = (self.titled(error),)
            error.source = self.name
            raise

    def titled(self, text: object) -> str:
        """Return a text with the name of the source before it, if it has one."""
        return f"source {self.name}: {text}" if self.name else str(text)

    def _can_meet(self, criterion: Criterion) -> bool:
        """Whether a row of this part can meet a criterion."""
        row = SEARCH_PARAMETERS[self.kind][criterion.parameter]
        is_patient = row.target is ResourceType.PATIENT
        if is_patient and isinstance(criterion, ReferenceCriterion):
            return any(id.startswith(self.patients) for id in criterion.values)
        if isinstance(criterion, TokenCriterion) and row.is_id:
            ids = [token.code or "" for token in criterion.values]
            return any(id.startswith(self.prefix) for id in ids)
        systems = self.systems.get(criterion.parameter)
        if isinstance(criterion, TokenCriterion) and systems is not None:
            return any(token.system in (None, *systems) for token in criterion.values)
        return criterion.parameter not in self.lacks


class FederatedAdapter:
    """Parts that are searched and read as one hospital system.

    The order of `parts` is part of the order of results, and of `fingerprint`. Several
    parts of one resource type must have `keyset`; a part alone may page as it likes.
    """

    def __init__(self, parts: Iterable[Part], fingerprint: str) -> None:
        self._parts = tuple(parts)
        self._fingerprint = fingerprint
        self._by_kind: Mapping[ResourceType, Sequence[Part]] = {
            kind: tuple(part for part in self._parts if part.kind is kind)
            for kind in dict.fromkeys(part.kind for part in self._parts)
        }
        self._capabilities = {kind: common(p) for kind, p in self._by_kind.items()}
        names = {part.name for part in self._parts}
        self._threads = ThreadPoolExecutor(_THREADS * len(names))

    @property
    def capabilities(self) -> Capabilities:
        """What all sources of a resource type can do."""
        return self._capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of all sources, rows and orders."""
        return self._fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows of all sources from where the query starts."""
        parts = self._by_kind[query.resource_type]
        concerned = [part for part in parts if part.can_match(query)]
        if not concerned:
            return Page(())
        if len(parts) == 1:
            (part,) = parts
            return part.named(partial(part.adapter.search, query))
        query = replace(query, shared={})
        queries = list(self._queries(query))
        pages = self._gather(
            (part, partial(part.adapter.search, source_query))
            for _, part, source_query in queries
        )
        rows = [
            _placed(page, index, keyless=part.lacks_key(query))
            for (index, part, _), page in zip(queries, pages, strict=True)
        ]
        return _merged(rows, any(page.more for page in pages), query)

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match in all sources."""
        query = replace(query, shared={})
        parts = self._by_kind[query.resource_type]
        counts = self._gather(
            (part, partial(part.adapter.count, query))
            for part in parts
            if part.can_match(query)
        )
        return sum(counts)

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource, from the one source that can have it."""
        for part in self._by_kind.get(resource_type, ()):
            if id.startswith(part.prefix):
                return part.named(partial(part.adapter.read, resource_type, id))
        raise NotFoundError(resource_type)

    def explain(self, query: SearchQuery) -> str:
        """Return what each source would be sent, after its name."""
        return "\n\n".join(
            f"-- {part.name or part.prefix}\n"
            + part.named(partial(part.adapter.explain, source_query))
            for _, part, source_query in self._queries(query)
        )

    def check(self) -> Iterable[Problem]:
        """Return why sources do not answer or no longer fit the mapping."""
        problems = (
            replace(problem, text=part.titled(problem.text), source=part.name)
            for part in self._parts
            for problem in part.adapter.check()
        )
        return tuple(dict.fromkeys(problems))

    def close(self) -> None:
        """Close all sources."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for part in self._parts:
            part.adapter.close()

    def _queries(self, query: SearchQuery) -> Iterator[tuple[int, Part, SearchQuery]]:
        """Yield the sources that can have rows of a page, and what each is sent."""
        for index, part in enumerate(self._by_kind[query.resource_type]):
            if part.can_match(query):
                keyless = part.lacks_key(query)
                if source_query := _query_of_source(query, index, keyless=keyless):
                    yield index, part, source_query

    def _gather(self, calls: Iterable[tuple[Part, Callable[[], T]]]) -> list[T]:
        """Return the answers in the order of the calls; raises the first failure.

        Sources answer at the same time, the tables of one source one after the other: a
        search uses one connection of each source, and never waits for its own.
        """
        by_source: dict[str, list[tuple[int, Part, Callable[[], T]]]] = {}
        for index, (part, call) in enumerate(calls):
            by_source.setdefault(part.name, []).append((index, part, call))
        # This thread calls the first source, others call the other sources meanwhile.
        first, *others = by_source.values() or [[]]
        futures = [
            self._threads.submit(copy_context().run, _answers, calls_of_source)
            for calls_of_source in others
        ]
        try:
            answers = _answers(first)
            for future in futures:
                answers |= future.result()
        finally:
            for future in futures:
                future.cancel()
        return [answers[index] for index in sorted(answers)]


def _answers(
    calls: Iterable[tuple[int, Part, Callable[[], T]]],
) -> dict[int, T]:
    """Return the answers to calls of one source, by the index of the call."""
    return {index: part.named(call) for index, part, call in calls}


def common(parts: Sequence[Part]) -> ResourceCapabilities:
    """Return what all parts can do.

    A part that lacks a parameter's field matches nothing and withdraws nothing; one that
    has the field and cannot filter by it withdraws the parameter. Sort keys likewise.
    """
    capabilities = [part.capabilities for part in parts]
    if len(capabilities) == 1:
        return capabilities[0]
    names = dict.fromkeys(
        name for capability in capabilities for name in capability.parameters
    )
    keys = dict.fromkeys(key for capability in capabilities for key in capability.sorts)
    has_keyset = all(capability.keyset for capability in capabilities)
    assert has_keyset, "other pages cannot be merged"
    sorts = tuple(
        key
        for key in keys
        if all(key in part.capabilities.sorts or key in part.lacks for part in parts)
    )
    return ResourceCapabilities(
        parameters={
            name: _narrowest(name, parts)
            for name in names
            if all(name in p.capabilities.parameters or name in p.lacks for p in parts)
        },
        sorts=sorts,
        keyset=True,
        dated=all(capability.dated for capability in capabilities),
        order="" if sorts else _ONE_BY_ONE,
    )


def _narrowest(name: str, parts: Sequence[Part]) -> ParameterCapability:
    """Return what all parts that have the field of a parameter can do with it."""
    capabilities = [
        part.capabilities.parameters[name]
        for part in parts
        if name not in part.lacks and name in part.capabilities.parameters
    ]
    limits = [capability.most for capability in capabilities if capability.most]
    return ParameterCapability(
        prefixes=frozenset(Prefix).intersection(*(c.prefixes for c in capabilities)),
        matches=frozenset(StringMatch).intersection(*(c.matches for c in capabilities)),
        finest=max((c.finest for c in capabilities), key=_FINEST_FIRST.index),
        period=any(c.period for c in capabilities),
        most=min(limits, default=None),
        own_words=any(c.own_words for c in capabilities),
    )


def _query_of_source(
    query: SearchQuery, index: int, *, keyless: bool
) -> SearchQuery | None:
    """Return the search of the source at `index` for a page of all, None if it has no row on it.

    No row of a `keyless` source has the sort key: they follow all rows that do.
    """
    sort = Sort(SortKey.ID, query.sort.descending) if keyless else query.sort
    source_query = replace(query, after=None, before=None, placed=True, sort=sort)
    cursor = query.after or query.before
    backwards = query.backwards

    def starting_at(start: Position | Bound) -> SearchQuery:
        if backwards:
            return replace(source_query, before=start)
        return replace(source_query, after=start)

    # The first page, or the last one.
    if not isinstance(cursor, Position):
        return source_query

    # The cursor is a row of this source.
    if index == cursor.source:
        group = Group.KEYED if keyless else cursor.group
        return starting_at(Position(group, cursor.key, cursor.id))

    # It is a row of another source. Of rows at its instant, those of this source are `ahead`
    # if they come after it as the page is read.
    later_source = index > cursor.source
    reads_upwards = sort.descending != backwards
    ahead = later_source != reads_upwards
    if cursor.moment is not None and not keyless:
        return starting_at(Bound(cursor.moment, included=ahead))

    # The page begins between the rows of this source that have the key and those without.
    among_unkeyed = cursor.group is Group.UNKEYED and not keyless
    if among_unkeyed and ahead != backwards:
        return starting_at(Bound())

    # All of its rows are ahead, or none is: those without the key follow every instant.
    all_are_ahead = ahead if cursor.moment is None else not backwards
    return replace(source_query, from_end=backwards) if all_are_ahead else None


_Placed = tuple[Position, Record | RowFault]


def _placed(page: Page, index: int, *, keyless: bool) -> list[_Placed]:
    """Return the rows of one source with their positions among those of all."""
    return [
        (
            replace(
                position,
                group=Group.UNKEYED if keyless else position.group,
                source=index,
            ),
            row,
        )
        for row, position in zip(page.rows, page.positions, strict=True)
    ]


def _merged(pages: list[list[_Placed]], more: bool, query: SearchQuery) -> Page:
    """Return one page of the rows of all sources."""
    sign = -1 if query.sort.descending else 1

    def rank(placed: _Placed) -> tuple[bool, int]:
        """Rows without the sort key come last, the others by their instants."""
        position, _ = placed
        ticks = (position.moment - _ORIGIN) // _TICK if position.moment else 0
        return position.group is Group.UNKEYED, sign * ticks

    # Sorting is stable: rows of one instant stay in the order of the sources, and of each.
    rows = sorted((row for page in pages[::sign] for row in page), key=rank)
    more = more or len(rows) > query.count
    rows = rows[-query.count :] if query.backwards else rows[: query.count]
    if not rows:
        return Page(())
    positions = tuple(position for position, _ in rows)
    records = tuple(record for _, record in rows)
    return Page(
        records, more, first=positions[0], last=positions[-1], positions=positions
    )
