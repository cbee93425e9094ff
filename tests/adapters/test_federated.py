"""Two hospitals as one: their ids, their order, their totals, and one of them away."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import product
from threading import Barrier, Lock

import pytest

from adapters.contract import (
    Capabilities,
    Criterion,
    Limit,
    NotFoundError,
    Page,
    ParameterCapability,
    Prefix,
    Record,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceBusyError,
    SourceDataError,
    SourceUnavailableError,
    StringMatch,
)
from adapters.federated import FederatedAdapter, Part, common
from adapters.memory import MemoryAdapter
from adapters.testing.harness import (
    ORGANIZATION,
    PATIENT,
    STAY,
    STAYS_FOUND,
    ask,
    ids_of,
    patient,
    rows_of,
    text,
    token,
    walk,
)
from adapters.testing.hospital import (
    EDGES,
    NO_END,
    NO_START,
    PARIS,
    Hospital,
    Ids,
    StayRow,
)
from adapters.testing.suite import ORDERS
from tests.adapters.group import PREFIXES, Group, open_group, served
from tests.databases import NewDatabase

PATIENCE = 60.0
NO_INSTANTS = (NO_START, NO_END, "2024-03-31 02:30:00", "2024-03-31 02:00:00")
"""Clock times that a column of instants cannot hold."""


def _holds_instants(row: StayRow) -> bool:
    return row.began not in NO_INSTANTS and row.ended not in NO_INSTANTS


SOUTH = replace(EDGES, stays=tuple(row for row in EDGES.stays if _holds_instants(row)))


@pytest.fixture(scope="module", params=Ids)
def group(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    new_postgresql: NewDatabase,
) -> Iterator[Group]:
    """Return two hospitals of edge cases with the same ids; tests do not change them."""
    directory = tmp_path_factory.mktemp("group")
    urls = (f"sqlite:///{directory / 'north.db'}", new_postgresql("unicode"))
    ids = request.param
    opened = open_group((EDGES.with_ids(ids), SOUTH.with_ids(ids)), directory, urls)
    yield opened
    opened.close()


def same(group: Group, query: SearchQuery) -> None:
    """Check rows, their order and their number against the model."""
    expected = rows_of(group.model.search(query))
    assert rows_of(group.adapter.search(query)) == expected
    assert group.adapter.count(query) == len(expected)


def test_ids_of_two_hospitals_never_meet(group: Group) -> None:
    own = group.hospitals[0].ids.text(42)
    north, south = (group.adapter.read(STAY, prefix + own) for prefix in PREFIXES)
    assert (north.id, south.id) == (f"n-{own}", f"s-{own}")
    for prefix in PREFIXES:
        found = group.adapter.search(ask(token("_id", prefix + own)))
        assert ids_of(found) == [prefix + own]
    with pytest.raises(NotFoundError):
        group.adapter.read(STAY, own)


def test_patients_and_their_merges_are_those_of_their_own_hospital(
    group: Group,
) -> None:
    ids = group.hospitals[0].ids
    for prefix in PREFIXES:
        query = ask(patient(prefix + ids.text(3)))
        same(group, query)
        found = ids_of(group.adapter.search(query))
        assert found
        assert all(id.startswith((prefix, "!")) for id in found)
    assert group.adapter.count(ask(patient(ids.text(3)))) == 0
    found = ids_of(group.adapter.search(ask(patient("s-" + ids.text(7)))))
    assert found == ["s-" + ids.text(91), "s-" + ids.text(90)]
    survivor = group.adapter.read(PATIENT, "s-" + ids.text(7))
    assert survivor.replaced_by == "s-" + ids.text(8)  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_every_page_size_walks_all_rows_both_ways(
    group: Group, kind: ResourceType, sort: Sort
) -> None:
    expected = rows_of(group.model.search(ask(of=kind, sort=sort)))
    assert len(expected) > 12
    for size in (1, 3, len(expected) - 1, len(expected), len(expected) + 1):
        query = ask(of=kind, sort=sort, count=size)
        forwards = list(walk(group.adapter, query))
        assert [row for page in forwards for row in rows_of(page)] == expected
        assert all(len(page.rows) == size for page in forwards[:-1])
        ahead = replace(query, before=forwards[-1].first)
        backwards = list(walk(group.adapter, ahead, back=True))
        assert [rows_of(page) for page in backwards] == [
            rows_of(page) for page in forwards[-2::-1]
        ]
        last = group.adapter.search(replace(query, from_end=True))
        assert rows_of(last) == expected[-size:]
        assert last.more is (size < len(expected))


def test_searches_of_both_are_those_of_one_list(group: Group) -> None:
    for prefix, (_, criteria, _) in product(PREFIXES, STAYS_FOUND):
        same(group, ask(*(_of(group, prefix, c) for c in criteria)))
    same(group, ask(text("name", "martin"), of=PATIENT))
    same(group, ask(text("name", "hopital"), of=ORGANIZATION))


def _of(group: Group, prefix: str, criterion: Criterion) -> Criterion:
    """Write numbers as ids of one of the hospitals."""
    ids = group.hospitals[0].ids
    if criterion.parameter == "patient":
        numbers = [str(v) for v in criterion.values if str(v).isdecimal()]
        return patient(*(prefix + ids.text(int(n)) for n in numbers))
    if criterion.parameter == "_id":
        numbers = [t.code or "" for t in criterion.values]  # type: ignore[union-attr]
        return token("_id", *(prefix + ids.text(int(n)) for n in numbers))
    return criterion


def test_question_explained_shows_each_source_and_no_value(group: Group) -> None:
    explained = group.adapter.explain(ask(token("identifier", "SECRET-1")))
    # Of a source with two statements each has its label.
    assert explained.startswith(
        "-- north\n-- 1 of 2: rows with a time to sort by\nSELECT"
    )
    assert "\n-- south\nSELECT" in explained
    assert "SECRET-1" not in explained
    assert list(group.adapter.check()) == []


class Able(MemoryAdapter):
    """A hospital of which some things can be asked."""

    def __init__(self, able: ResourceCapabilities) -> None:
        super().__init__((), time_zone=PARIS)
        self._able = {STAY: able}

    @property
    def capabilities(self) -> Capabilities:
        return self._able


def _part(able: ResourceCapabilities, lacks: Collection[str] = ()) -> Part:
    return Part("", STAY, Able(able), lacks=frozenset(lacks))


def _dates(*able: ParameterCapability) -> Mapping[str, ParameterCapability]:
    """Return what is offered of several hospitals that can be asked for dates."""
    parts = [_part(ResourceCapabilities({"date": each})) for each in able]
    return common(parts).parameters


EQUAL, AFTER, BEFORE = Prefix.EQ, Prefix.GT, Prefix.LT
EXACT, STARTS = StringMatch.EXACT, StringMatch.STARTS_WITH
Can = ParameterCapability
LEAST = (
    (
        Can(frozenset({EQUAL, AFTER})),
        Can(frozenset({EQUAL, BEFORE})),
        Can(frozenset({EQUAL})),
    ),
    (
        Can(matches=frozenset({STARTS, EXACT})),
        Can(matches=frozenset({STARTS})),
        Can(matches=frozenset({STARTS})),
    ),
    (Can(finest=Limit.DAY), Can(finest=Limit.SECOND), Can(finest=Limit.DAY)),
    (Can(finest=Limit.MINUTE), Can(), Can(finest=Limit.MINUTE)),
    (Can(period=True), Can(), Can(period=True)),
)
"""What each of two can do, and both."""


def test_what_the_least_of_them_can_do_is_offered() -> None:
    for one, other, both in LEAST:
        assert _dates(one, other) == _dates(other, one) == {"date": both}
    for able in ((True, True), (True, False), (False, True)):
        parts = [_part(ResourceCapabilities(keyset=each, dated=each)) for each in able]
        found = common(parts)
        assert (found.keyset, found.dated) == (all(able),) * 2
        assert (found.unpaged == ()) is all(able)


def test_without_a_key_that_all_sort_by_the_order_is_told_in_words() -> None:
    by_date, by_id = (
        ResourceCapabilities(sorts=(key,)) for key in (SortKey.DATE, SortKey.ID)
    )
    assert common([_part(by_date), _part(by_date)]).order == ""
    mixed = common([_part(by_date), _part(by_id)])
    assert (mixed.sorts, bool(mixed.order)) == ((), True)
    assert common([_part(by_date, {"_id"}), _part(by_id, {"date"})]).order == ""


class Counted(MemoryAdapter):
    """A hospital that counts its calls, and fails or waits if a test says so."""

    def __init__(self, prefix: str) -> None:
        hospital = Hospital(EDGES.stays, EDGES.patients)
        rows = [served(prefix, row) for row in hospital.records()]
        super().__init__(rows, time_zone=PARIS)
        self.calls = 0
        self.enter: Callable[[], object] = lambda: None

    def _enter(self) -> None:
        self.calls += 1
        self.enter()

    def search(self, query: SearchQuery) -> Page:
        self._enter()
        return super().search(query)

    def count(self, query: SearchQuery) -> int:
        self._enter()
        return super().count(query)

    def read(self, resource_type: ResourceType, id: str) -> Record:
        self._enter()
        return super().read(resource_type, id)


class Two:
    """Two counted hospitals behind one adapter."""

    def __init__(self) -> None:
        self.each = tuple(Counted(prefix) for prefix in PREFIXES)
        self.adapter = FederatedAdapter(
            [
                Part(prefix, kind, one, prefix, prefix)
                for kind in (STAY, PATIENT)
                for prefix, one in zip(PREFIXES, self.each, strict=True)
            ],
            "two",
        )

    def calls(self) -> tuple[int, ...]:
        """Return how many calls each had since this was last called."""
        calls = tuple(one.calls for one in self.each)
        for one in self.each:
            one.calls = 0
        return calls


@pytest.fixture
def two() -> Iterator[Two]:
    opened = Two()
    yield opened
    opened.adapter.close()


CONCERNED: tuple[tuple[tuple[Criterion, ...], tuple[int, int]], ...] = (
    ((), (1, 1)),
    ((token("_id", "n-1", "n-2"),), (1, 0)),
    ((token("_id", "n-1", "s-1"),), (1, 1)),
    ((token("_id", "1"),), (0, 0)),
    ((patient("s-3"),), (0, 1)),
    ((patient("3"),), (0, 0)),
    ((patient("s-3"), token("_id", "n-1")), (0, 0)),
    ((token("status", "finished"), patient("n-3")), (1, 0)),
)


def test_who_is_not_concerned_is_not_called(two: Two) -> None:
    for criteria, calls in CONCERNED:
        two.adapter.search(ask(*criteria))
        assert two.calls() == calls, criteria
        two.adapter.count(ask(*criteria))
        assert two.calls() == calls, criteria


def test_a_source_without_the_system_of_an_identifier_is_not_called(two: Two) -> None:
    north, south = (
        Part(p, STAY, one, p, p) for p, one in zip(PREFIXES, two.each, strict=True)
    )
    systems = {"identifier": frozenset({"urn:oid:1", ""})}
    adapter = FederatedAdapter([north, replace(south, systems=systems)], "two")
    for value in ("V1", "urn:oid:1|V1", "|V1", "urn:oid:2|V1"):
        adapter.search(ask(token("identifier", value)))
        assert two.calls() == (1, value != "urn:oid:2|V1"), value
    adapter.close()


def test_lists_in_memory_are_walked_as_one(two: Two) -> None:
    everyone = [
        row for one in two.each for row in rows_of(MemoryAdapter.search(one, ask()))
    ]
    for key, descending in product((SortKey.DATE, SortKey.LAST_UPDATED), (False, True)):
        query = ask(sort=Sort(key, descending), count=7)
        forwards = list(walk(two.adapter, query))
        rows = [row for page in forwards for row in rows_of(page)]
        assert sorted(rows, key=repr) == sorted(everyone, key=repr)
        ahead = replace(query, before=forwards[-1].first)
        backwards = list(walk(two.adapter, ahead, back=True))
        assert [rows_of(page) for page in backwards] == [
            rows_of(page) for page in forwards[-2::-1]
        ]


def test_one_source_is_read_or_walked_on(two: Two) -> None:
    assert two.adapter.read(STAY, "s-1").id == "s-1"
    assert two.calls() == (0, 1)
    with pytest.raises(NotFoundError):
        two.adapter.read(STAY, "1")
    assert two.calls() == (0, 0)
    by_id = Sort(SortKey.ID)
    last = two.adapter.search(ask(token("_id", "n-1", "s-1"), of=PATIENT, sort=by_id))
    two.calls()
    two.adapter.search(ask(of=PATIENT, sort=by_id, after=last.last))
    assert two.calls() == (0, 1)


FAILURES = (
    SourceUnavailableError("away"),
    SourceBusyError("busy"),
    SourceDataError("nonsense", RowFault("id", "id", "none"), refused=True, code=7),
)


def test_a_source_that_fails_is_never_a_shorter_list(two: Two) -> None:
    for failure, call in product(FAILURES, (two.adapter.search, two.adapter.count)):
        two.each[1].enter = partial(_raise, copy(failure))
        with pytest.raises(type(failure), match=f"source s-: {failure}") as caught:
            call(ask())
        assert type(caught.value) is type(failure)
        assert vars(caught.value) == {**vars(failure), "source": "s-"}
    assert ids_of(two.adapter.search(ask(token("_id", "n-1")))) == ["n-1"]
    assert two.adapter.read(STAY, "n-1").id == "n-1"


def _raise(error: Exception) -> None:
    raise error


def test_sources_answer_at_the_same_time(two: Two) -> None:
    """Each waits for the other; what is bound to the request is known in both."""
    request, requests = ContextVar("request", default=""), []
    together = Barrier(2, action=lambda: requests.append(request.get()))
    for one in two.each:
        one.enter = lambda: together.wait(PATIENCE)
    request.set("this")
    for call in (two.adapter.search, two.adapter.count):
        assert call(ask())
    assert requests == ["this", "this"]


class OneAtATime(MemoryAdapter):
    """A hospital that has one connection."""

    def __init__(self) -> None:
        super().__init__(EDGES.records(), time_zone=PARIS)
        self.connection = Lock()

    def count(self, query: SearchQuery) -> int:
        assert self.connection.acquire(blocking=False)
        with ExitStack() as stack:
            stack.callback(self.connection.release)
            return super().count(query)


def test_tables_of_one_source_answer_one_after_the_other() -> None:
    """A search never waits for a connection that it holds itself."""
    source = OneAtATime()
    tables = [Part("pas", STAY, source, prefix) for prefix in "abc"]
    adapter = FederatedAdapter(tables, "tables")
    assert adapter.count(ask()) == 3 * source.count(ask())
    adapter.close()
