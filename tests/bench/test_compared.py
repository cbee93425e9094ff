"""The bench in its smallest form: everybody of ours starts, answers the same, is reported."""

import tempfile
from pathlib import Path

import pytest

from bench.contenders import surroundings
from bench.report import TITLES, machine, write
from bench.run import Bench, Plan
from bench.scale import of_size

pytestmark = pytest.mark.extended

STAYS = 6_000
PLAN = Plan(rounds=1, seconds=0, warm=0, peers=False, workers=(1,))


@pytest.fixture
def kept():
    """Return a directory that the database's user can enter."""
    with tempfile.TemporaryDirectory(prefix="bench-kept-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_the_report_has_every_figure(kept, tmp_path):
    with surroundings(kept, STAYS) as around:
        found = Bench(around, PLAN).results()
    assert set(found.rounds) == set(TITLES)
    for name in ("read", "page", "next", "blend", "blend, cold"):
        assert set(found.rounds[name]) == {"floor", "dutiful", "ours"}
    assert set(found.workers["page"]) == {"1"}
    report = tmp_path / "report.md"
    write(report, found, PLAN, STAYS, machine())
    text = report.read_text("utf-8")
    costs = text.partition("## CPU a request")[2].partition("## Workers")[0]
    for title in TITLES.values():
        assert f"| {title} | " in costs


def test_a_hospital_of_any_size_is_filled_and_explained(kept):
    lines = "\n".join(of_size(10_000, kept))
    assert "| patient, chain of four, last survivor | " in lines
    assert "(0)" not in lines
    assert "By the links `next`, page 2" in lines
