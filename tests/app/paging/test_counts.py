"""Counts that are under way: what else is answered meanwhile, and what is busy."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

import psycopg
import pytest
import responses
import sqlalchemy as sa

from adapters.sql.engine import COUNTS
from adapters.testing.hospital import Hospital
from app.service import EXTENSION
from tests.app.answers import refused
from tests.app.changing import DATED, STAYS
from tests.databases import NewDatabase
from tests.hospital_sql import Tables, mapping_text
from tests.redis_server import RedisServer
from tests.serving import Served, ids, serve

SEARCHES = 6
PATIENCE = 60.0

LOCK = 7
COUNTED = f"""
CREATE FUNCTION counted(id BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql COST 100000 AS $$
BEGIN
  IF id > {DATED} THEN PERFORM pg_advisory_xact_lock_shared({LOCK}); END IF;
  RETURN TRUE;
END $$
"""
"""Rows without a start wait for a lock: a page of other rows never reads them, a count does.

The cost lets PostgreSQL compare the start first.
"""


@pytest.fixture
def database(new_postgresql: NewDatabase) -> str:
    """Return the address of a hospital whose counts can be held up."""
    url = new_postgresql("unicode")
    Tables(url, Hospital(STAYS)).close()
    with _connected(url) as connection:
        connection.execute(COUNTED.encode())
    return url


@pytest.fixture
def service(
    database: str,
    redis_server: RedisServer,
    tmp_path: Path,
    keys: responses.RequestsMock,
) -> Iterator[Served]:
    text = mapping_text(Hospital(STAYS), repr(database))
    joined = "p.patient_id = s.patient_id\n"
    assert text.count(joined) == 1
    text = text.replace(joined, f"{joined}    WHERE counted(s.stay_id)\n")
    text = text.replace("connections: 2", "count_timeout_seconds: 60")
    served = serve(Hospital(STAYS), tmp_path, redis_server.url, mapping=text)
    yield served
    served.app.extensions[EXTENSION].adapter.close()


@pytest.fixture
def held(database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Hold counts up for as long as the connection is open."""
    with _connected(database) as connection:
        connection.execute(b"SELECT pg_advisory_lock(%d)" % LOCK)
        yield connection


def _connected(url: str) -> psycopg.Connection[tuple[object, ...]]:
    address = sa.make_url(url).set(drivername="postgresql")
    text = address.render_as_string(hide_password=False)
    return psycopg.connect(text, autocommit=True)


def test_of_six_wide_searches_at_once_none_is_told_that_the_hospital_is_away(
    service: Served, held: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Decision 13: while counts are under way, what needs none is answered."""
    wide = {"_count": "7"}
    clients = [service.as_client(f"client-{number}") for number in range(SEARCHES)]
    with ThreadPoolExecutor(SEARCHES) as threads, held:
        calls = [
            threads.submit(client.post, "Encounter/_search", wide) for client in clients
        ]
        ended = list(islice(as_completed(calls, PATIENCE), SEARCHES - COUNTS))
        for call in ended:
            answer = call.result()
            text = refused(answer, 503, "transient")
            assert "busy" in text
            assert "does not answer" not in text
            assert int(answer.headers["Retry-After"]) > 0
        counting = [call for call in calls if call not in ended]
        uncounted = service.search("Encounter", {**wide, "_total": "none"})
        assert ("total" in uncounted, len(ids(uncounted))) == (False, 7)
        # A page that is not full is its own count.
        day = service.search("Encounter", {"date": "2024-05-03", "_count": "7"})
        assert (day["total"], len(ids(day))) == (2, 2)
        assert not any(call.done() for call in counting)
        held.close()
        bundles = [call.result(PATIENCE).get_json(force=True) for call in counting]
    assert [(each["total"], ids(each)) for each in bundles] == [
        (len(STAYS), ids(uncounted))
    ] * COUNTS
    assert service.search("Encounter", wide)["total"] == len(STAYS)
