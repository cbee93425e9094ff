"""Walking pages while stays come, change and go: the promise of decision 12.

A stay that exists and does not change during a walk is returned exactly once, forwards
and backwards. Hypothesis looks for a story in which that is not so.
"""

from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.contract import ResourceType, Sort, SortKey
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


def _ids(page):
    return [id for id in ids_of(page) if not id.startswith("!")]


def walk_while_stays_change(opened):
    """Walk on an adapter and on its model at once; `changes` come between the pages."""
    there = set()

    @settings(max_examples=200, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(ROWS, min_size=6, max_size=24),
        st.lists(st.lists(ROWS | IDS, max_size=3), max_size=12),
        SORTS,
        st.integers(1, 4),
        st.integers(0, 3),
        st.booleans(),
    )
    def story(rows, changes, sort, size, question, back):
        while there:
            opened.delete(there.pop())
        for row in rows:
            opened.put(row)
            there.add(row.id)
        query = ask(*_criteria(opened)[question], sort=sort, count=size)
        ids = _ids(opened.model.search(replace(query, count=EVERY_ROW)))
        steady = ids[::-1] if back else ids
        queries = [replace(query, from_end=back)] * 2
        passed = []
        for step in count():
            real, model = pages = (
                opened.adapter.search(queries[0]),
                opened.model.search(queries[1]),
            )
            assert rows_of(real) == rows_of(model)
            assert real.more is model.more
            assert len(real.rows) == size or not real.more
            passed += _ids(real)[::-1] if back else _ids(real)
            passed = [id for id in passed if id in steady]
            assert passed == steady[: len(passed)]
            assert real.more or passed == steady, "stays are missing at the end"
            if not real.rows:
                return
            for change in changes[step] if step < len(changes) else ():
                number = change if isinstance(change, int) else change.id
                if number is not change:
                    opened.put(change)
                    there.add(number)
                elif number in there:
                    opened.delete(number)
                    there.remove(number)
                steady = [id for id in steady if id != opened.id(number)]
            places = [{"before": p.first} if back else {"after": p.last} for p in pages]
            queries = [replace(query, **place) for place in places]
            assert step < 100, "the walk goes in circles"

    story()


@pytest.mark.extended
@pytest.mark.parametrize("ids", Ids)
def test_steady_stays_are_returned_exactly_once(open_hospital, ids):
    opened = open_hospital(Hospital(patients=PLACE, ids=ids))
    if not opened.adapter.capabilities[ResourceType.ENCOUNTER].keyset:
        pytest.skip("the source makes no promise while stays come and go")
    walk_while_stays_change(opened)


def test_steady_stays_of_two_sources_are_returned_exactly_once(
    tmp_path, new_postgresql
):
    """SQLite with texts, PostgreSQL with instants."""
    urls = (f"sqlite:///{tmp_path / 'north.db'}", new_postgresql("plain"))
    hospital = Hospital(patients=PLACE, ids=Ids.TEXTS)
    with closing(Group(hospital, tmp_path, urls)) as group:
        walk_while_stays_change(group)
        explained = group.adapter.explain(ask(token("identifier", "SECRET-1")))
        # Of a source with two statements each has its label.
        assert explained.startswith(
            "-- north\n-- 1 of 2: rows with a time to sort by\nSELECT"
        )
        assert "\n-- south\nSELECT" in explained
        assert "SECRET-1" not in explained
        assert list(group.adapter.check()) == []
