"""Two hospitals as one: their ids, their order, their totals, and one of them away."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import TypeAlias

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
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
    StringMatch,
)
from adapters.federated import FederatedAdapter, Part
from adapters.federated.parts import common
from adapters.lanes import Lane
from adapters.memory import MemoryAdapter
from adapters.testing.asking import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    plain,
    rows_of,
    text,
    token,
    walk,
)
from adapters.testing.found import STAYS_FOUND
from adapters.testing.hospital import NO_END, NO_START, PARIS, Hospital, Ids, StayRow
from adapters.testing.pages import ORDERS
from adapters.testing.stays import EDGES
from tests.adapters.group import PREFIXES, Group, open_group, served
from tests.databases import NewDatabase
from tests.live import in_time

WAIT = 0.3
PATIENCE = 20.0
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


# ---------------------------------------------------------------- ids and references


def test_ids_of_two_hospitals_never_meet(group: Group) -> None:
    own = group.hospitals[0].ids.text(42)
    north, south = (group.adapter.read(STAY, prefix + own) for prefix in PREFIXES)
    assert (north.id, south.id) == (f"n-{own}", f"s-{own}")
    for prefix in PREFIXES:
        found = group.adapter.search(ask(token("_id", prefix + own)))
        assert ids_of(found) == [prefix + own]
    with pytest.raises(NotFoundError):
        group.adapter.read(STAY, own)


def test_patient_of_one_hospital_is_not_that_of_the_other(group: Group) -> None:
    number = group.hospitals[0].ids.text(3)
    for prefix in PREFIXES:
        query = ask(patient(prefix + number))
        same(group, query)
        found = ids_of(group.adapter.search(query))
        assert found
        assert all(id.startswith((prefix, "!")) for id in found)
    assert group.adapter.count(ask(patient(number))) == 0


def test_merged_patient_is_followed_in_its_own_hospital(group: Group) -> None:
    ids = group.hospitals[0].ids
    found = ids_of(group.adapter.search(ask(patient("s-" + ids.text(7)))))
    assert found == ["s-" + ids.text(91), "s-" + ids.text(90)]
    survivor = group.adapter.read(PATIENT, "s-" + ids.text(7))
    assert survivor.replaced_by == "s-" + ids.text(8)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ResourceType)
def test_what_is_searched_can_be_read(group: Group, kind: ResourceType) -> None:
    for row in group.adapter.search(ask(of=kind)).rows:
        if not hasattr(row, "column"):
            assert plain(group.adapter.read(kind, row.id)) == plain(row)


def test_ids_longer_than_fhir_allows_are_faults(group: Group) -> None:
    if group.hospitals[0].ids is Ids.NUMBERS:
        pytest.skip("numbers are never so long")
    tables = group.tables[0]
    code = "x" * 63
    with tables._engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO organizations VALUES ('{code}', 'Long', NULL, NULL)"
        )
    try:
        with pytest.raises(SourceDataError) as caught:
            group.adapter.read(ORGANIZATION, f"n-{code}")
        assert caught.value.fault is not None
        assert caught.value.fault.field == "id"
    finally:
        with tables._engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM organizations WHERE title='Long'")


# ----------------------------------------------------------------- order and pages


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


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_last_rows_of_all(group: Group, kind: ResourceType, sort: Sort) -> None:
    expected = rows_of(group.model.search(ask(of=kind, sort=sort)))
    for size in (1, 5, len(expected)):
        query = replace(ask(of=kind, sort=sort, count=size), from_end=True)
        page = group.adapter.search(query)
        assert rows_of(page) == expected[-size:]
        assert page.more is (size < len(expected))


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


@pytest.mark.parametrize(
    "criterion",
    [
        dates("2024-03-14"),
        dates("ge2024-10-27T02:30:00+02:00"),
        dates("lt2024-10-27T02:30:00+01:00"),
        dates("ne2024-03-14"),
        token("_id", "n-1", "s-1", "s-2"),
        token("status", "planned"),
    ],
    ids=str,
)
@pytest.mark.parametrize("descending", [True, False])
def test_filtered_walk(group: Group, criterion: Criterion, descending: bool) -> None:
    sort = Sort(SortKey.DATE, descending)
    query = ask(criterion, sort=sort)
    same(group, query)
    expected = rows_of(group.model.search(query))
    pages = list(walk(group.adapter, replace(query, count=2)))
    assert [row for page in pages for row in rows_of(page)] == expected


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


def test_sound_sources_have_no_problems(group: Group) -> None:
    assert list(group.adapter.check()) == []


# --------------------------------------------------------------------- what is offered


Told: TypeAlias = tuple[dict[str, ParameterCapability], set[str]]


class Able(MemoryAdapter):
    """A hospital of which some things can be asked."""

    def __init__(self, able: ResourceCapabilities) -> None:
        super().__init__((), time_zone=PARIS)
        self._able = {STAY: able}

    @property
    def capabilities(self) -> Capabilities:
        return self._able


def offered(*parts: Told) -> Mapping[str, ParameterCapability]:
    """Return what is offered of several hospitals: what they can, and what they lack."""
    each = [_part(ResourceCapabilities(able), lacks) for able, lacks in parts]
    return common(each).parameters


def _part(able: ResourceCapabilities, lacks: Collection[str] = ()) -> Part:
    lane = Lane(1, WAIT)
    return Part("", STAY, Able(able), lane, lane, lacks=frozenset(lacks))


EQUAL, AFTER, BEFORE = Prefix.EQ, Prefix.GT, Prefix.LT
EXACT, STARTS = StringMatch.EXACT, StringMatch.STARTS_WITH


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (
            ParameterCapability(frozenset({EQUAL, AFTER})),
            ParameterCapability(frozenset({EQUAL, BEFORE})),
            ParameterCapability(frozenset({EQUAL})),
        ),
        (
            ParameterCapability(matches=frozenset({STARTS, EXACT})),
            ParameterCapability(matches=frozenset({STARTS})),
            ParameterCapability(matches=frozenset({STARTS})),
        ),
        (
            ParameterCapability(finest=Limit.DAY),
            ParameterCapability(finest=Limit.SECOND),
            ParameterCapability(finest=Limit.DAY),
        ),
        (
            ParameterCapability(finest=Limit.MINUTE),
            ParameterCapability(),
            ParameterCapability(finest=Limit.MINUTE),
        ),
        (
            ParameterCapability(period=True),
            ParameterCapability(),
            ParameterCapability(period=True),
        ),
    ],
    ids=["prefixes", "matches", "days", "minutes", "periods"],
)
def test_what_the_least_of_them_can_be_asked_is_offered(
    one: ParameterCapability, other: ParameterCapability, both: ParameterCapability
) -> None:
    first: Told = ({"date": one}, set())
    second: Told = ({"date": other}, set())
    assert offered(first, second) == offered(second, first) == {"date": both}


def test_who_lacks_the_field_narrows_nothing() -> None:
    days = {"date": ParameterCapability(finest=Limit.DAY)}
    whole = {"date": ParameterCapability()}
    assert offered((whole, set()), (days, {"date"}), ({}, {"date"})) == whole
    assert offered((whole, set()), ({}, set())) == {}


@pytest.mark.parametrize("able", [(True, True), (True, False), (False, True)])
def test_pages_and_days_of_change_are_of_all_or_of_none(
    able: tuple[bool, bool],
) -> None:
    parts = [_part(ResourceCapabilities(keyset=each, dated=each)) for each in able]
    found = common(parts)
    every = (found.keyset, found.paging, found.backwards, found.dated)
    assert every == (all(able),) * 4


def test_without_a_key_that_all_sort_by_the_order_is_told_in_words() -> None:
    by_date, by_id = (
        ResourceCapabilities(sorts=(key,)) for key in (SortKey.DATE, SortKey.ID)
    )
    assert common([_part(by_date), _part(by_date)]).order == ""
    mixed = common([_part(by_date), _part(by_id)])
    assert (mixed.sorts, bool(mixed.order)) == ((), True)
    assert common([_part(by_date, {"_id"}), _part(by_id, {"date"})]).order == ""


# ------------------------------------------------------------- who is asked, who is away


class Counted:
    """A hospital that counts how often it is asked, and is away when told so."""

    def __init__(self, prefix: str) -> None:
        hospital = Hospital(EDGES.stays, EDGES.patients)
        self._inner: MemoryAdapter = hospital.model()
        rows = [served(prefix, row) for row in hospital.records()]
        self._inner = MemoryAdapter(
            rows,
            time_zone=self._inner._matcher.time_zone,
        )
        self.asked = 0
        self.away = False
        self.goes_on = Event()
        self.goes_on.set()
        self.capabilities = self._inner.capabilities
        self.fingerprint = prefix

    def _ask(self) -> None:
        self.asked += 1
        self.goes_on.wait(PATIENCE)
        if self.away:
            raise SourceUnavailableError("the database took no connection")

    def search(self, query: SearchQuery) -> Page:
        self._ask()
        return self._inner.search(query)

    def count(self, query: SearchQuery) -> int:
        self._ask()
        return self._inner.count(query)

    def read(self, resource_type: ResourceType, id: str) -> Record:
        self._ask()
        return self._inner.read(resource_type, id)

    def explain(self, query: SearchQuery) -> str:
        return self._inner.explain(query)

    def check(self) -> tuple[()]:
        return ()

    def close(self) -> None:
        """Do nothing."""


class Two:
    """Two counted hospitals behind one adapter."""

    def __init__(self) -> None:
        self.each = tuple(Counted(prefix) for prefix in PREFIXES)
        self.lanes = [[Lane(2, WAIT) for _ in PREFIXES] for _ in range(2)]
        self.adapter = FederatedAdapter(
            [
                Part(prefix, kind, one, lane, counts, prefix, prefix)
                for kind in (STAY, PATIENT)
                for prefix, one, lane, counts in zip(
                    PREFIXES, self.each, *self.lanes, strict=True
                )
            ],
            "two",
        )

    def asked(self) -> tuple[int, ...]:
        """Return how often each was asked since this was last called."""
        found = tuple(one.asked for one in self.each)
        for one in self.each:
            one.asked = 0
        return found


@pytest.fixture
def two() -> Iterator[Two]:
    """Return two counted hospitals."""
    made = Two()
    yield made
    made.adapter.close()


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
    assert two.asked() == asked
    two.adapter.count(ask(*criteria))
    assert two.asked() == asked


def test_one_source_is_read(two: Two) -> None:
    assert two.adapter.read(STAY, "s-1").id == "s-1"
    assert two.asked() == (0, 1)
    with pytest.raises(NotFoundError):
        two.adapter.read(STAY, "1")
    assert two.asked() == (0, 0)


def test_walk_past_a_source_asks_it_no_more(two: Two) -> None:
    by_id = Sort(SortKey.ID)
    last = two.adapter.search(ask(token("_id", "n-1", "s-1"), of=PATIENT, sort=by_id))
    two.asked()
    two.adapter.search(ask(of=PATIENT, sort=by_id, after=last.last))
    assert two.asked() == (0, 1)


def test_one_source_away_is_never_a_shorter_list(two: Two) -> None:
    two.each[1].away = True
    for question in (two.adapter.search, two.adapter.count):
        with pytest.raises(SourceUnavailableError, match="source s-: "):
            question(ask())
    assert ids_of(two.adapter.search(ask(token("_id", "n-1")))) == ["n-1"]
    assert two.adapter.read(STAY, "n-1").id == "n-1"


def test_a_source_that_hangs_holds_nobody_who_asks_others(two: Two) -> None:
    two.each[1].goes_on.clear()
    with ThreadPoolExecutor(8) as callers:
        hung = [callers.submit(two.adapter.search, ask()) for _ in range(2)]
        counting = [callers.submit(two.adapter.count, ask()) for _ in range(2)]
        while two.each[1].asked < 4:
            time.sleep(0.01)
        south = ask(token("_id", "s-1"))
        for question in (
            lambda: two.adapter.search(ask()),
            lambda: two.adapter.count(ask()),
            lambda: two.adapter.search(south),
            lambda: two.adapter.count(south),
            lambda: two.adapter.read(STAY, "s-1"),
        ):
            in_time(partial(_has_no_place, question), WAIT + 0.5)
        in_time(partial(_asks_the_north, two.adapter), WAIT)
        two.each[1].goes_on.set()
        assert all(answer.result(PATIENCE) for answer in (*hung, *counting))
    assert two.adapter.search(ask()).rows


def _has_no_place(question: Callable[[], object]) -> None:
    with pytest.raises(SourceUnavailableError, match="source s-: no connection"):
        question()


def _asks_the_north(adapter: FederatedAdapter) -> None:
    assert ids_of(adapter.search(ask(token("_id", "n-1")))) == ["n-1"]
    assert adapter.count(ask(token("_id", "n-1"))) == 1
    assert adapter.read(STAY, "n-1").id == "n-1"


def test_more_tables_than_connections_are_asked_in_turn(two: Two) -> None:
    """Four slow tables of one source, two at once: none waits for its own siblings in vain."""
    lane = two.lanes[0][0]

    def slow(number: int) -> int:
        time.sleep(WAIT)
        return number

    for _ in range(2):
        futures = lane.begin([partial(slow, number) for number in range(5)])
        assert [future.result(PATIENCE) for future in futures] == [0, 1, 2, 3, 4]


def test_where_no_thread_can_be_had_all_is_asked_and_room_stays_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    lane = Lane(2, WAIT)
    with monkeypatch.context() as full:
        full.setattr(Thread, "start", start)
        for _ in range(3):
            futures = lane.begin([partial(int, text) for text in "123"])
            assert [future.result(PATIENCE) for future in futures] == [1, 2, 3]
    for _ in range(3):
        futures = lane.begin([partial(int, text) for text in "123"])
        assert [future.result(PATIENCE) for future in futures] == [1, 2, 3]
    lane.close()


def test_database_away_is_named(
    group: Group, tmp_path_factory: pytest.TempPathFactory, new_postgresql: NewDatabase
) -> None:
    directory = tmp_path_factory.mktemp("away")
    hospitals = (Hospital(EDGES.stays[:2]), Hospital(EDGES.stays[:2]))
    urls = (f"sqlite:///{directory / 'north.db'}", new_postgresql("unicode"))
    opened = open_group(hospitals, directory, urls)
    opened.tables[0].close()
    (directory / "north.db").unlink()
    try:
        with pytest.raises(SourceUnavailableError, match="source north: "):
            opened.adapter.search(ask())
        told = list(opened.adapter.check())
        assert {(p.source, p.outage) for p in told} == {("north", True)}
        assert all(p.text.startswith("source north: ") for p in told)
        assert opened.adapter.count(ask(token("_id", "s-1"))) == 1
    finally:
        opened.close()
