"""Walking pages while stays come, change and go: the promise of decision 12.

A stay that exists and does not change during a walk is returned exactly once, forwards
and backwards. Hypothesis looks for a story in which that is not so.
"""

from collections.abc import Sequence
from typing import Any

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

from adapters.contract import Criterion, Page, Position, ResourceType, Sort, SortKey
from tests.adapters.changeable import Changeable
from toolkit.contract.harness import Open, ask, dates, ids_of, patient, rows_of, token
from toolkit.contract.hospital import Hospital, Ids, PatientRow, StayRow

pytestmark = pytest.mark.extended

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


def _criteria(opened: Changeable) -> tuple[tuple[Criterion, ...], ...]:
    return (
        (),
        (token("status", "finished", "planned"),),
        (dates("ge2024-03-14T10:00:00+01:00"),),
        (dates("ne2024-03-14T10:00:01+01:00"), patient(opened.id(1))),
    )


class Walk:
    """A walk on an adapter and on its model at once, and what has to come of it.

    `steady` are the stays that have not changed since it began, in the order of the
    walk; those on the page where it stands are steady[low:high].
    """

    def __init__(
        self,
        opened: Changeable,
        question: tuple[Criterion, ...],
        sort: Sort,
        size: int,
        *,
        from_end: bool,
    ) -> None:
        self._question, self._sort, self.size = question, sort, size
        self._adapters = (opened.adapter, opened.model)
        self.steady = _ids(opened.model.search(ask(*question, sort=sort)))
        self.low = self.high = 0
        if from_end:
            self.low = self.high = len(self.steady)
        self._stand_on(self._pages((None, None), back=from_end), back=from_end)

    @property
    def rows(self) -> list[Any]:
        """The rows of the page where the walk stands."""
        return rows_of(self.pages[0])

    def step(self, *, back: bool) -> bool:
        """Go to the next page or the previous one; return whether there was one."""
        marks = [page.first if back else page.last for page in self.pages]
        pages = self._pages(marks, back=back)
        if not pages[0].rows:
            self._steady_rows(pages[0], back=back)
            return False
        self._stand_on(pages, back=back)
        return True

    def _stand_on(self, pages: tuple[Page, ...], *, back: bool) -> None:
        found = self._steady_rows(pages[0], back=back)
        self.pages, self.still = pages, True
        self.low = self.low - found if back else self.high
        self.high = self.low + found

    def touch(self, id: str) -> None:
        """Take note that a stay has come, changed or gone."""
        self.still = False
        if id in self.steady:
            place = self.steady.index(id)
            del self.steady[place]
            self.low -= place < self.low
            self.high -= place < self.high

    def _pages(
        self, marks: Sequence[Position | None], *, back: bool
    ) -> tuple[Page, ...]:
        real, model = (
            adapter.search(
                ask(
                    *self._question,
                    sort=self._sort,
                    count=self.size,
                    after=None if back else mark,
                    before=mark if back else None,
                    from_end=back and mark is None,
                )
            )
            for adapter, mark in zip(self._adapters, marks, strict=True)
        )
        assert rows_of(real) == rows_of(model)
        assert real.more is model.more
        assert len(real.rows) == self.size or not real.more
        return real, model

    def _steady_rows(self, page: Page, *, back: bool) -> int:
        """Count the steady stays of a page; they are the ones that are due, in order."""
        found = [id for id in _ids(page) if id in self.steady]
        due = self.steady[: self.low] if back else self.steady[self.high :]
        assert found == (due[len(due) - len(found) :] if back else due[: len(found)])
        assert page.more or len(found) == len(due), (
            "the walk ends and stays are missing"
        )
        return len(found)


def _ids(page: Page) -> list[str]:
    return [id for id in ids_of(page) if not id.startswith("!")]


class Walks(RuleBasedStateMachine):
    """People walk through the stays of a hospital that goes on working."""

    def __init__(self, opened: Changeable) -> None:
        super().__init__()
        self.opened = opened
        self.walks: list[Walk] = []
        self.there: set[int] = set()

    @initialize(rows=st.lists(ROWS, min_size=6, max_size=24))
    def admit_many(self, rows: list[StayRow]) -> None:
        for row in rows:
            self.put(row)

    @rule(row=ROWS)
    def put(self, row: StayRow) -> None:
        self.opened.put_stay(row)
        self.opened.model.put(self.opened.hospital.stay(row))
        self.there.add(row.id)
        self._touched(row.id)

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self._delete(data.draw(st.sampled_from(sorted(self.there))))

    def _delete(self, number: int) -> None:
        self.opened.delete_stay(number)
        self.opened.model.delete(ResourceType.ENCOUNTER, self.opened.id(number))
        self.there.remove(number)
        self._touched(number)

    def _touched(self, number: int) -> None:
        for walk in self.walks:
            walk.touch(self.opened.id(number))

    @rule(
        sort=SORTS, size=st.integers(1, 4), which=st.integers(0, 3), end=st.booleans()
    )
    def begin(self, sort: Sort, size: int, which: int, end: bool) -> None:
        question = _criteria(self.opened)[which]
        walk = Walk(self.opened, question, sort, size, from_end=end)
        if walk.rows:
            self.walks = [*self.walks[-2:], walk]

    @precondition(lambda self: self.walks)
    @rule(which=st.integers(0, 2), steps=st.integers(1, 3), back=st.booleans())
    def walk_on(self, which: int, steps: int, back: bool) -> None:
        for _ in range(steps):
            self._walk(which).step(back=back)

    @precondition(lambda self: self.walks)
    @rule(which=st.integers(0, 2), back=st.booleans())
    def walk_to_the_end(self, which: int, back: bool) -> None:
        walk = self._walk(which)
        steps = 0
        while walk.step(back=back):
            steps += 1
            assert steps <= len(self.there), "the walk goes in circles"
        assert (walk.low == 0) if back else (walk.high == len(walk.steady))

    @precondition(lambda self: any(walk.still for walk in self.walks))
    @rule()
    def go_and_return(self) -> None:
        walk = next(walk for walk in self.walks if walk.still)
        left = walk.rows
        if walk.step(back=False):
            walk.step(back=True)
            assert walk.rows == left

    def _walk(self, which: int) -> Walk:
        return self.walks[which % len(self.walks)]

    def teardown(self) -> None:
        for number in sorted(self.there):
            self._delete(number)


def walk(opened: Changeable) -> None:
    """Walk as the machine does, the same way at each run."""
    run_state_machine_as_test(
        lambda: Walks(opened),  # type: ignore[arg-type] # any maker of machines will do
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("ids", Ids)
def test_steady_stays_are_returned_exactly_once(open_hospital: Open, ids: Ids) -> None:
    opened = open_hospital(Hospital(patients=PLACE, ids=ids))
    if not opened.adapter.capabilities[ResourceType.ENCOUNTER].keyset:
        pytest.skip("the source makes no promise while stays come and go")
    walk(opened)
