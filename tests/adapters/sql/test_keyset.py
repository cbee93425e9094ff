"""Walking pages while stays come, change and go: the promise of decision 12.

A stay that exists and does not change during a walk is returned exactly once, forwards
and backwards. Hypothesis looks for a story in which that is not so.
"""

from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from adapters.contract import Page, ResourceType, Sort, SortKey
from tests.adapters.group import Group
from toolkit.contract.harness import (
    EVERY_ROW,
    ask,
    dates,
    ids_of,
    patient,
    rows_of,
    token,
)
from toolkit.contract.hospital import Hospital, Ids, PatientRow, StayRow

TIMES = (
    None,
    "2024-03-14 10:00:00",
    "2024-03-14 10:00:00.000001",
    "2024-03-14 10:00:01",
    "2024-03-31 02:30:00",  # no such hour: a row that cannot be mapped
    "2024-10-27 02:30:00",  # two such hours
)
"""Few, so that many stays tie; with none for the rows that have no key."""

IDS = st.integers(1, 24)
ROWS = st.builds(
    StayRow,
    IDS,
    patient=st.sampled_from((1, 1, 2)),
    state=st.sampled_from("SSSEEPAX"),
    kind=st.just("HC"),
    began=st.sampled_from(TIMES),
    ended=st.none(),
    visit=st.none(),
    hospital=st.just("H1"),
    unit=st.none(),
    changed=st.sampled_from((None, "2024-05-01 10:00:00", "2024-05-01 10:00:00.5")),
)
SORTS = st.builds(
    Sort, st.sampled_from((SortKey.DATE, SortKey.LAST_UPDATED)), st.booleans()
)
PLACE = (PatientRow(1), PatientRow(2))


def _criteria(opened):
    return (
        (),
        (token("status", "finished", "planned"),),
        (dates("ge2024-03-14T10:00:00+01:00"),),
        (dates("ne2024-03-14T10:00:01+01:00"), patient(opened.id(1))),
    )


class Walk:
    """A walk on an adapter and on its model at once, and what has to come of it.

    `steady` are the stays that have not changed since it began, in the order of the walk.
    """

    def __init__(self, opened, question, sort, size, *, back):
        self._adapters = (opened.adapter, opened.model)
        self._query = ask(*question, sort=sort, count=size)
        self._back = back
        ids = _ids(opened.model.search(replace(self._query, count=EVERY_ROW)))
        self.steady = ids[::-1] if back else ids
        self._passed: list[str] = []
        self.pages: tuple[Page, ...] = ()
        self.step()

    def step(self):
        """Go to the next page of the walk; return whether there was one."""
        pages = self._next_to(self.pages, back=self._back)
        ids = _ids(pages[0])
        self._passed += ids[::-1] if self._back else ids
        steady = [id for id in self._passed if id in self.steady]
        assert steady == self.steady[: len(steady)]
        assert pages[0].more or steady == self.steady, "stays are missing at the end"
        if pages[0].rows:
            self.pages, self.is_still = pages, True
        return bool(pages[0].rows)

    def turn(self):
        """Look at the next page, from which the way back leads to this one."""
        onward = self._next_to(self.pages, back=self._back)
        if onward[0].rows:
            returned = self._next_to(onward, back=not self._back)
            assert rows_of(returned[0]) == rows_of(self.pages[0])

    def touch(self, id):
        """Take note that a stay has come, changed or gone."""
        self.is_still = False
        if id in self.steady:
            self.steady.remove(id)

    def _next_to(self, pages, *, back):
        """Return the page beside one, the first of its direction where there is none."""
        queries = [replace(self._query, from_end=back)] * 2
        if pages and back:
            queries = [replace(self._query, before=page.first) for page in pages]
        elif pages:
            queries = [replace(self._query, after=page.last) for page in pages]
        real, model = (
            adapter.search(query)
            for adapter, query in zip(self._adapters, queries, strict=True)
        )
        assert rows_of(real) == rows_of(model)
        assert real.more is model.more
        assert len(real.rows) == self._query.count or not real.more
        return real, model


def _ids(page):
    return [id for id in ids_of(page) if not id.startswith("!")]


class Walks(RuleBasedStateMachine):
    """People walk through the stays of a hospital that goes on working."""

    def __init__(self, opened):
        super().__init__()
        self.opened = opened
        self.walks: list[Walk] = []
        self.there: set[int] = set()

    @initialize(rows=st.lists(ROWS, min_size=6, max_size=24))
    def admit_many(self, rows):
        for row in rows:
            self.put(row)

    @rule(row=ROWS)
    def put(self, row):
        self.opened.put(row)
        self.there.add(row.id)
        self._touched(row.id)

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def delete(self, data):
        number = data.draw(st.sampled_from(sorted(self.there)))
        self.opened.delete(number)
        self.there.remove(number)
        self._touched(number)

    def _touched(self, number):
        for walk in self.walks:
            walk.touch(self.opened.id(number))

    @rule(
        sort=SORTS, size=st.integers(1, 4), which=st.integers(0, 3), back=st.booleans()
    )
    def begin(self, sort, size, which, back):
        question = _criteria(self.opened)[which]
        walk = Walk(self.opened, question, sort, size, back=back)
        if walk.pages:
            self.walks = [*self.walks[-2:], walk]

    @precondition(lambda self: self.walks)
    @rule(which=st.integers(0, 2), steps=st.integers(1, 3))
    def walk_on(self, which, steps):
        for _ in range(steps):
            self._walk(which).step()

    @precondition(lambda self: self.walks)
    @rule(which=st.integers(0, 2))
    def walk_to_the_end(self, which):
        steps = 0
        while self._walk(which).step():
            steps += 1
            assert steps <= len(self.there), "the walk goes in circles"

    @precondition(lambda self: any(walk.is_still for walk in self.walks))
    @rule()
    def go_and_return(self):
        next(walk for walk in self.walks if walk.is_still).turn()

    def _walk(self, which):
        return self.walks[which % len(self.walks)]

    def teardown(self):
        for number in self.there:
            self.opened.delete(number)


def walk(opened):
    """Walk as the machine does, the same way at each run."""
    run_state_machine_as_test(
        lambda: Walks(opened),
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.extended
@pytest.mark.parametrize("ids", Ids)
def test_steady_stays_are_returned_exactly_once(open_hospital, ids):
    opened = open_hospital(Hospital(patients=PLACE, ids=ids))
    if not opened.adapter.capabilities[ResourceType.ENCOUNTER].keyset:
        pytest.skip("the source makes no promise while stays come and go")
    walk(opened)


def test_steady_stays_of_two_sources_are_returned_exactly_once(
    tmp_path, new_postgresql
):
    """SQLite with texts, PostgreSQL with instants."""
    urls = (f"sqlite:///{tmp_path / 'north.db'}", new_postgresql("plain"))
    hospital = Hospital(patients=PLACE, ids=Ids.TEXTS)
    with closing(Group(hospital, tmp_path, urls)) as group:
        walk(group)
        explained = group.adapter.explain(ask(token("identifier", "SECRET-1")))
        # Of a source with two statements each has its label.
        assert explained.startswith(
            "-- north\n-- 1 of 2: rows with a time to sort by\nSELECT"
        )
        assert "\n-- south\nSELECT" in explained
        assert "SECRET-1" not in explained
        assert list(group.adapter.check()) == []
