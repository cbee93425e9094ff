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
from tests.replay.application import close_connections

STAYS = 6_000
PLAN = Plan(rounds=1, seconds=0, warm=0, pages=20, peers=False)


@pytest.fixture(scope="module")
def hospital(postgresql_url: str) -> Iterator[Database]:
    fill(postgresql_url, stays=STAYS)
    owner = Database(postgresql_url.replace("+psycopg", ""))
    with psycopg.connect(owner.libpq, autocommit=True) as connection:
        connection.execute("CREATE ROLE bench_reader LOGIN")
        connection.execute("GRANT pg_read_all_data TO bench_reader")
        name = connection.info.dbname
    _, _, place = owner.libpq.partition("@")
    yield Database(f"postgresql://bench_reader@{place}")
    close_connections(name)


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
    assert set(found.rounds) == {"read", "patient", "page", "next"}
    assert set(found.rounds["read"]) == {"floor", "handwritten", "dutiful", "ours"}
    assert set(found.rounds["next"]) == {"floor", "dutiful", "ours"}
    report = tmp_path / "report.md"
    write(report, found, PLAN, STAYS, "")
    text = report.read_text("utf-8")
    assert text.count("| ours |") == len(found.rounds) + 1
    assert "page 10 ÷ first: time" in text
