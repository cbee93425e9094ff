"""Two hospitals as one: their ids, their order, their totals, and one of them away."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from threading import Barrier, Lock

import pytest

from adapters.contract import (
    AdapterError,
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
    for size in (1, 2, 3, 7, len(expected) - 1, len(expected), len(expected) + 1):
        forwards = list(walk(group.adapter, ask(of=kind, sort=sort, count=size)))
        assert [row for page in forwards for row in rows_of(page)] == expected
        assert all(len(page.rows) == size for page in forwards[:-1])
        ahead = ask(of=kind, sort=sort, count=size, before=forwards[-1].first)
        backwards = list(walk(group.adapter, ahead, back=True))
        assert [rows_of(page) for page in backwards] == [
            rows_of(page) for page in forwards[-2::-1]
        ]
        last = group.adapter.search(ask(of=kind, sort=sort, count=size, from_end=True))
        assert rows_of(last) == expected[-size:]
        assert last.more is (size < len(expected))


@pytest.mark.parametrize(
    "criteria", [pytest.param(c, id=name) for name, c, _ in STAYS_FOUND]
)
def test_stays_found(group: Group, criteria: tuple[Criterion, ...]) -> None:
    for prefix in PREFIXES:
        same(group, ask(*(_of(group, prefix, c) for c in criteria)))


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


def test_names_are_sought_everywhere(group: Group) -> None:
    same(group, ask(text("name", "martin"), of=PATIENT))
    same(group, ask(text("name", "hopital"), of=ORGANIZATION))


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
Asked = ParameterCapability


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (
            Asked(frozenset({EQUAL, AFTER})),
            Asked(frozenset({EQUAL, BEFORE})),
            Asked(frozenset({EQUAL})),
        ),
        (
            Asked(matches=frozenset({STARTS, EXACT})),
            Asked(matches=frozenset({STARTS})),
            Asked(matches=frozenset({STARTS})),
        ),
        (Asked(finest=Limit.DAY), Asked(finest=Limit.SECOND), Asked(finest=Limit.DAY)),
        (Asked(finest=Limit.MINUTE), Asked(), Asked(finest=Limit.MINUTE)),
        (Asked(period=True), Asked(), Asked(period=True)),
    ],
    ids=["prefixes", "matches", "days", "minutes", "periods"],
)
def test_what_the_least_of_them_can_be_asked_is_offered(
    one: Asked, other: Asked, both: Asked
) -> None:
    assert _dates(one, other) == _dates(other, one) == {"date": both}


@pytest.mark.parametrize("able", [(True, True), (True, False), (False, True)])
def test_pages_and_days_of_change_are_of_all_or_of_none(
    able: tuple[bool, bool],
) -> None:
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


@pytest.mark.parametrize(
    ("criteria", "asked"),
    [
        ((), (1, 1)),
        ((token("_id", "n-1"),), (1, 0)),
        ((token("_id", "n-1", "n-2"),), (1, 0)),
        ((token("_id", "n-1", "s-1"),), (1, 1)),
        ((token("_id", "1"),), (0, 0)),
        ((patient("s-3"),), (0, 1)),
        ((patient("3"),), (0, 0)),
        ((patient("s-3"), token("_id", "n-1")), (0, 0)),
        ((token("status", "finished"), patient("n-3")), (1, 0)),
    ],
    ids=str,
)
def test_who_is_not_concerned_is_not_asked(
    two: Two, criteria: tuple[Criterion, ...], asked: tuple[int, ...]
) -> None:
    two.adapter.search(ask(*criteria))
    assert two.calls() == asked
    two.adapter.count(ask(*criteria))
    assert two.calls() == asked


SYSTEMS = {"identifier": frozenset({"urn:oid:1", ""})}


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        ("V1", (1, 1)),
        ("urn:oid:1|V1", (1, 1)),
        ("urn:oid:2|V1", (1, 0)),
        ("|V1", (1, 1)),
    ],
)
def test_a_source_without_the_system_of_an_identifier_is_not_asked(
    value: str, asked: tuple[int, ...]
) -> None:
    each = tuple(Counted(prefix) for prefix in PREFIXES)
    north, south = (
        Part(prefix, STAY, one, prefix, prefix)
        for prefix, one in zip(PREFIXES, each, strict=True)
    )
    adapter = FederatedAdapter([north, replace(south, systems=SYSTEMS)], "two")
    adapter.search(ask(token("identifier", value)))
    assert tuple(one.calls for one in each) == asked
    adapter.close()


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


@pytest.mark.parametrize("failure", FAILURES, ids=lambda error: type(error).__name__)
def test_a_source_that_fails_is_never_a_shorter_list(
    two: Two, failure: AdapterError
) -> None:
    two.each[1].enter = lambda: _raise(copy(failure))
    for call in (two.adapter.search, two.adapter.count):
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
