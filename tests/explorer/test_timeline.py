"""The timeline: no bars overlap, ticks are whole, open stays end at the edge."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from flask import Flask, g

from explorer.records import Stay
from explorer.timeline import DRAWINGS, GAP, Band, Timeline, timelines, wall

NOW = datetime(2026, 11, 28, 14, 5, tzinfo=UTC)


def stay(
    id: int, start: datetime, took: timedelta | None, status: str = "finished"
) -> Stay:
    """Return a stay; without a duration it has no end."""
    period = {"start": start.isoformat()}
    if took is not None:
        period["end"] = (start + took).isoformat()
    return Stay({"id": str(id), "status": status, "period": period})


def of_few() -> list[Band]:
    """Return stays of one year: finished, in progress and planned."""
    begin = datetime(2026, 1, 20, 9, tzinfo=UTC)
    visits = [stay(n, begin + timedelta(n * 23), timedelta(hours=1)) for n in range(11)]
    here = stay(20, datetime(2026, 11, 24, 16, tzinfo=UTC), None, "in-progress")
    later = [stay(30 + n, NOW + timedelta(9 + n), None, "planned") for n in (0, 5)]
    return [Band("Inpatient", [here]), Band("Outpatient", [*visits, *later])]


def of_many() -> list[Band]:
    """Return 287 stays of nine years."""
    chance, begin = Random(7), datetime(2018, 2, 1, 9, tzinfo=UTC)
    bands = []
    for title, count, step, days in (
        ("a", 236, 12, 0.2),
        ("b", 14, 230, 20),
        ("c", 37, 86, 0.04),
    ):
        starts = [
            begin + timedelta(n * step + chance.randint(0, 6)) for n in range(count)
        ]
        stays = [stay(n, start, timedelta(days)) for n, start in enumerate(starts)]
        bands.append(Band(title, stays))
    return bands


def of_ever() -> list[Band]:
    """Return a stay of no time, and one at the end of time."""
    last = datetime(9999, 12, 30, tzinfo=UTC)
    return [Band("a", [stay(1, NOW, timedelta(0)), stay(2, last, None)])]


CASES = {
    "few": (of_few, {}, 370),
    "many": (of_many, {}, 370),
    "a month": (of_few, {"since": wall(NOW) - timedelta(28)}, 370),
    "the end of time": (of_ever, {}, 200),
}


@pytest.fixture(params=["en", "fr"], autouse=True)
def language(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw in each language."""
    with Flask("drawing").app_context():
        g.language = request.param
        yield


def drawn(case: str) -> list[Timeline]:
    """Return the drawings of a case."""
    bands, span, _ = CASES[case]
    return timelines(bands(), NOW, **span)


@pytest.mark.parametrize("case", CASES)
def test_no_bars_and_no_ticks_overlap(case: str) -> None:
    drawings = drawn(case)
    assert [axis.drawing for axis in drawings] == [*DRAWINGS]
    for axis in drawings:
        assert axis.height <= CASES[case][2] * (1 if axis.drawing.width > 700 else 1.6)
        for _, _, bars in axis.rows:
            for lane in {bar.lane for bar in bars}:
                in_lane = sorted((b for b in bars if b.lane == lane), key=lambda b: b.x)
                for one, other in pairwise(in_lane):
                    assert one.end + GAP <= other.x + 0.2
            for bar in bars:
                assert bar.width >= axis.drawing.least
                assert 0 <= bar.x <= bar.end <= axis.drawing.width
                assert len(bar.label(NOW)) * 6.7 <= bar.width
        shown = [(x, text) for x, text in axis.ticks if text]
        assert shown
        for (x, text), (other, _) in pairwise(shown):
            assert x + len(text) * 6.6 <= other


def test_every_stay_is_in_one_bar() -> None:
    for axis in drawn("many"):
        for band, _, bars in axis.rows:
            ids = [stay.id for bar in bars for stay in bar.stays]
            assert sorted(ids) == sorted(stay.id for stay in band.stays)
    assert any(len(bar.stays) > 1 for bar in drawn("many")[2].rows[0][2])


def test_open_stays_end_at_the_edge_and_today_is_a_line() -> None:
    for case in ("few", "a month"):
        for axis in drawn(case):
            (bar,) = axis.rows[0][2]
            assert axis.today is not None
            assert bar.x + bar.width >= axis.today - 0.2
            assert bar.end == pytest.approx(axis.drawing.width - 8, abs=0.2)


def test_a_span_without_stays_is_not_drawn() -> None:
    early = wall(NOW) - timedelta(3650)
    assert timelines(of_few(), NOW, until=early) == []
    without_start = Stay({"id": "1", "status": "planned"})
    assert timelines([Band("a", [without_start])], NOW) == []
