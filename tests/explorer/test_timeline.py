"""The timeline: no bars overlap, ticks are whole, open stays end at the edge."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from flask import Flask, g

from explorer.records import Stay
from explorer.timeline import DRAWINGS, GAP, Band, timelines, wall

NOW = datetime(2026, 11, 28, 14, 5, tzinfo=UTC)


def stay(id, start, days=None, status="finished"):
    """Return a stay; without a duration it has no end."""
    period = {"start": start.isoformat()}
    if days is not None:
        period["end"] = (start + timedelta(days)).isoformat()
    return Stay({"id": str(id), "status": status, "period": period})


def visits(count, step, days):
    """Return stays of nine years, about `step` days after each other."""
    chance, begin = Random(7), datetime(2018, 2, 1, 9, tzinfo=UTC)
    starts = [begin + timedelta(n * step + chance.randint(0, 6)) for n in range(count)]
    return [stay(n, start, days) for n, start in enumerate(starts)]


def few():
    year = [stay(n, NOW - timedelta(310 - n * 23), 0.04) for n in range(11)]
    here = stay(20, datetime(2026, 11, 24, 16, tzinfo=UTC), status="in-progress")
    later = [stay(n, NOW + timedelta(n), status="planned") for n in (39, 44)]
    return [Band("Inpatient", [here]), Band("Outpatient", [*year, *later])]


def many():
    counts = ((236, 12, 0.2), (14, 230, 20), (37, 86, 0.04))
    return [Band(str(count), visits(count, *rest)) for count, *rest in counts]


def ever():
    last = stay(2, datetime(9999, 12, 30, tzinfo=UTC))
    return [Band("a", [stay(1, NOW, 0), last])]


MONTH = {"since": wall(NOW) - timedelta(28)}


@pytest.fixture(params=["en", "fr"], autouse=True)
def language(request):
    with Flask("drawing").app_context():
        g.language = request.param
        yield


@pytest.mark.parametrize(
    ("bands", "span", "height"),
    [(few, {}, 370), (few, MONTH, 370), (many, {}, 370), (ever, {}, 200)],
)
def test_no_bars_and_no_ticks_overlap(bands, span, height):
    drawings = timelines(bands(), NOW, **span)
    assert [axis.drawing for axis in drawings] == [*DRAWINGS]
    for axis in drawings:
        assert axis.height <= height * (1 if axis.drawing.width > 700 else 1.6)
        for _, _, bars in axis.rows:
            in_order = sorted(bars, key=lambda bar: (bar.lane, bar.x))
            for one, other in pairwise(in_order):
                assert one.lane != other.lane or one.end + GAP <= other.x + 0.2
            for bar in bars:
                assert bar.width >= axis.drawing.least
                assert 0 <= bar.x <= bar.end <= axis.drawing.width
                assert len(bar.label(NOW)) * 6.7 <= bar.width
        shown = [(x, text) for x, text in axis.ticks if text]
        assert shown
        for (x, text), (other, _) in pairwise(shown):
            assert x + len(text) * 6.6 <= other


def test_every_stay_is_in_one_bar():
    drawings = timelines(many(), NOW)
    for axis in drawings:
        for band, _, bars in axis.rows:
            ids = [stay.id for bar in bars for stay in bar.stays]
            assert sorted(ids) == sorted(stay.id for stay in band.stays)
    assert any(len(bar.stays) > 1 for bar in drawings[2].rows[0][2])


def test_open_stays_end_at_the_edge_and_today_is_a_line():
    for axis in (*timelines(few(), NOW), *timelines(few(), NOW, **MONTH)):
        (bar,) = axis.rows[0][2]
        assert axis.today is not None
        assert bar.x + bar.width >= axis.today - 0.2
        assert bar.end == pytest.approx(axis.drawing.width - 8, abs=0.2)


def test_a_span_without_stays_is_not_drawn():
    assert timelines(few(), NOW, until=wall(NOW) - timedelta(3650)) == []
    without_start = Stay({"id": "1", "status": "planned"})
    assert timelines([Band("a", [without_start])], NOW) == []
