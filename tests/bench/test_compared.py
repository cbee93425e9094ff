"""The bench in its smallest form: everybody of ours starts, answers the same, is reported."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bench.__main__ import valid
from bench.cluster import Database
from bench.depth import redis_url
from bench.report import write
from bench.run import Bench, Plan
from bench.tokens import Identity, identity
from demo.hospital import fill

STAYS = 6_000
PLAN = Plan(
    rounds=1, seconds=0, warm=0, pages=20, starts=0, restarts=1, peers=False, slow=False
)


@pytest.fixture(scope="module")
def hospital(postgresql_url: str) -> Database:
    fill(postgresql_url, stays=STAYS)
    owner = Database(postgresql_url.replace("+psycopg", ""))
    with psycopg.connect(owner.libpq, autocommit=True) as connection:
        connection.execute("CREATE ROLE bench_reader LOGIN")
        connection.execute("GRANT pg_read_all_data TO bench_reader")
    _, _, place = owner.libpq.partition("@")
    return Database(f"postgresql://bench_reader@{place}")


@pytest.fixture
def known(tmp_path: Path) -> Iterator[Identity]:
    with identity(tmp_path) as found:
        yield found


def test_the_report_has_every_figure(
    hospital: Database,
    known: Identity,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAS_URL", "")  # the walk sets it for its own service
    with redis_url() as redis:
        found = Bench(hospital, redis, known, tmp_path, PLAN, valid).results()
    assert set(found.rounds) == {"read", "patient", "page", "next", "window"}
    assert set(found.rounds["read"]) == {"floor", "handwritten", "dutiful", "ours"}
    assert set(found.rounds["next"]) == {"floor", "dutiful", "ours"}
    assert [each.total for each in found.counts][::2] == [10, _served(hospital)]
    report = tmp_path / "report.md"
    write(report, found, PLAN, STAYS, "")
    text = report.read_text("utf-8")
    assert text.count("| ours |") == len(found.rounds) + 3
    assert "a new worker to its first answer ÷ floor | ≤ 1.6 | not measured" not in text
    assert "<svg" in (tmp_path / "depth.svg").read_text("utf-8")


def _served(hospital: Database) -> int:
    with psycopg.connect(hospital.libpq) as connection:
        row = connection.execute(
            "SELECT count(*) FROM sejour WHERE date_entree IS NOT NULL"
            " AND (etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL)"
        ).fetchone()
    assert row is not None
    return int(row[0])
