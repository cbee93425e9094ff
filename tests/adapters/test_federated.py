"""Two hospitals as one: their ids, their order, their totals, and one of them away."""

from collections.abc import Callable
from contextlib import closing
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import product
from threading import Barrier, get_ident
from types import SimpleNamespace

import pytest

from adapters import open_adapter
from adapters.contract import (
    Limit,
    NotFoundError,
    ParameterCapability,
    Prefix,
    ResourceCapabilities,
    RowFault,
    Sort,
    SortKey,
    SourceBusyError,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.federated import FederatedAdapter, Part, common
from adapters.mapping.load import load_mapping
from adapters.memory import MemoryAdapter
from tests.adapters.group import HOSPITAL, PREFIXES, both_text, served
from tests.adapters.http_cases import rows_of
from tests.hospital_http import Api, answer, serving
from tests.hospital_sql import Tables
from toolkit.contract.harness import (
    NEWEST_FIRST,
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    ids_of,
    patient,
    token,
    walk,
)
from toolkit.contract.hospital import EDGES, PARIS, Hospital

PATIENCE = 60.0


Can = ParameterCapability
EQUAL, AFTER, BEFORE = Prefix.EQ, Prefix.GT, Prefix.LT
BOTH = (
    (Can({EQUAL, AFTER}), Can({EQUAL, BEFORE}), Can({EQUAL})),
    (Can(finest=Limit.DAY), Can(finest=Limit.SECOND), Can(finest=Limit.DAY)),
    (Can(period=True), Can(), Can(period=True)),
)
"""What each of two can do, and both."""


def test_what_the_least_of_them_can_do_is_offered():
    for one, other, both in BOTH:
        for pair in ((one, other), (other, one)):
            able = [ResourceCapabilities({"date": can}, keyset=True) for can in pair]
            parts = [
                Part("", STAY, SimpleNamespace(capabilities={STAY: each}))
                for each in able
            ]
            assert common(parts).parameters == {"date": both}


class Counted(MemoryAdapter):
    """A hospital that counts its calls, and fails or waits if a test says so."""

    def __init__(self, prefix):
        hospital = Hospital(EDGES.stays, EDGES.patients)
        rows = [served(prefix, row) for row in hospital.records()]
        super().__init__(rows, time_zone=PARIS)
        self.calls = 0
        self.enter: Callable[[], object] = lambda: None

    def _enter(self):
        self.calls += 1
        self.enter()

    def search(self, query):
        self._enter()
        return super().search(query)

    def count(self, query):
        self._enter()
        return super().count(query)

    def read(self, resource_type, id):
        self._enter()
        return super().read(resource_type, id)


class Two:
    """Two counted hospitals behind one adapter."""

    def __init__(self):
        self.each = tuple(Counted(prefix) for prefix in PREFIXES)
        parts = [
            Part(prefix, kind, one, prefix, prefix)
            for kind in (STAY, PATIENT)
            for prefix, one in zip(PREFIXES, self.each, strict=True)
        ]
        self.adapter = FederatedAdapter(parts, "two")

    def calls(self):
        """Return how many calls each had since this was last called."""
        calls = tuple(one.calls for one in self.each)
        for one in self.each:
            one.calls = 0
        return calls


@pytest.fixture
def two():
    opened = Two()
    yield opened
    opened.adapter.close()


CONCERNED = (
    ((), (1, 1)),
    ((token("_id", "n-1", "n-2"),), (1, 0)),
    ((token("_id", "n-1", "s-1"),), (1, 1)),
    ((token("_id", "1"),), (0, 0)),
    ((patient("s-3"),), (0, 1)),
    ((patient("3"),), (0, 0)),
    ((patient("s-3"), token("_id", "n-1")), (0, 0)),
    ((token("status", "finished"), patient("n-3")), (1, 0)),
)


def test_who_is_not_concerned_is_not_called(two):
    for criteria, calls in CONCERNED:
        two.adapter.search(ask(*criteria))
        assert two.calls() == calls, criteria
        two.adapter.count(ask(*criteria))
        assert two.calls() == calls, criteria
    assert two.adapter.read(STAY, "s-1").id == "s-1"
    assert two.calls() == (0, 1)
    with pytest.raises(NotFoundError):
        two.adapter.read(STAY, "1")
    assert two.calls() == (0, 0)


def test_a_source_without_the_system_of_an_identifier_is_not_called(two):
    north, south = (
        Part(p, STAY, one, p, p) for p, one in zip(PREFIXES, two.each, strict=True)
    )
    systems = {"identifier": frozenset({"urn:oid:1", ""})}
    adapter = FederatedAdapter([north, replace(south, systems=systems)], "two")
    for value in ("V1", "urn:oid:1|V1", "|V1", "urn:oid:2|V1"):
        adapter.search(ask(token("identifier", value)))
        assert two.calls() == (1, value != "urn:oid:2|V1"), value
    adapter.close()


FAILURES = (
    SourceUnavailableError("away"),
    SourceBusyError("busy"),
    SourceDataError("nonsense", RowFault("id", "id", "none"), refused=True, code=7),
)


def test_a_source_that_fails_is_never_a_shorter_list(two):
    for failure, call in product(FAILURES, (two.adapter.search, two.adapter.count)):
        two.each[1].enter = partial(_raise, copy(failure))
        with pytest.raises(type(failure), match=f"source s-: {failure}") as caught:
            call(ask())
        assert type(caught.value) is type(failure)
        assert vars(caught.value) == {**vars(failure), "source": "s-"}
    assert ids_of(two.adapter.search(ask(token("_id", "n-1")))) == ["n-1"]
    assert two.adapter.read(STAY, "n-1").id == "n-1"


def _raise(error):
    raise error


def test_sources_answer_at_the_same_time(two):
    """Each waits for the other; what is bound to the request is known in both."""
    request, requests = ContextVar("request", default=""), []
    together = Barrier(2, action=lambda: requests.append(request.get()))
    for one in two.each:
        one.enter = lambda: together.wait(PATIENCE)
    request.set("this")
    for call in (two.adapter.search, two.adapter.count):
        assert call(ask())
    assert requests == ["this", "this"]


def test_tables_of_one_source_answer_one_after_the_other(two):
    """A search never waits for a connection that it holds itself."""
    source, threads = two.each[0], []
    source.enter = lambda: threads.append(get_ident())
    adapter = FederatedAdapter([Part("pas", STAY, source, p) for p in "abc"], "tables")
    adapter.count(ask())
    assert len(threads) == 3
    assert len({*threads}) == 1
    adapter.close()


def test_a_database_beside_an_api(tmp_path):
    """Each type pages as its source does, and an API that is away is needed for its own alone."""
    database, api, model = (
        f"sqlite:///{tmp_path}/pas.db",
        Api(HOSPITAL),
        HOSPITAL.model(),
    )
    file, by_id = tmp_path / "both.yaml", Sort(SortKey.ID)
    file.write_text(both_text(), encoding="utf-8")
    with closing(Tables(database, HOSPITAL)), serving(api) as url:
        mapping = load_mapping(file, {"PAS_URL": database, "API_URL": url})
        with closing(open_adapter(mapping)) as adapter:
            for kind, sort in ((STAY, NEWEST_FIRST), (ORGANIZATION, by_id)):
                query = ask(of=kind, sort=sort)
                expected = rows_of(model.search(query))
                assert adapter.count(query) == len(expected) > 1
                pages = list(walk(adapter, replace(query, count=2)))
                assert [row for page in pages for row in rows_of(page)] == expected
                assert adapter.capabilities[kind].keyset is (kind is STAY)
            api.requests.clear()
            api.strange = lambda _: answer({}, 500)
            assert adapter.search(ask()).rows
            assert api.requests == []
            with pytest.raises(SourceUnavailableError, match="source api: ") as caught:
                adapter.search(ask(of=ORGANIZATION, sort=by_id))
            assert caught.value.source == "api"
            problems = {(p.source, p.outage) for p in adapter.check()}
            assert problems == {("api", True)}
