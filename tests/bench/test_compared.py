"""The bench in its smallest form: everybody of ours starts, answers the same, is reported."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bench.__main__ import valid
from bench.cluster import Database, redis_url
from bench.report import TITLES, machine, write
from bench.run import Bench, Plan
from bench.tokens import Identity, identity
from demo.hospital import fill
from tests.replay.application import close_connections

STAYS = 6_000
PLAN = Plan(rounds=1, seconds=0, warm=0, pages=20, peers=False, workers=(1,))


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
    hospital: Database, known: Identity, tmp_path: Path
) -> None:
    with redis_url() as redis:
        found = Bench(hospital, redis, known, tmp_path, PLAN, valid).results()
    assert set(found.rounds) == set(TITLES)
    for name in ("read", "page", "next", "blend", "blend, cold"):
        assert set(found.rounds[name]) == {"floor", "dutiful", "ours"}
    assert set(found.workers["page"]) == {"1"}
    report = tmp_path / "report.md"
    write(report, found, PLAN, STAYS, machine(""))
    text = report.read_text("utf-8")
    assert text.count("| ours |") == len(found.rounds) + 1
    for title in TITLES.values():
        assert f"## {title}\n" in text
