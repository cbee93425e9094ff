"""`explain --values`: what is printed, pasted into a client, finds what the search finds.

`test_parsed.py` parses what is printed for Oracle and SQL Server.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg
import pymysql
import pytest
import sqlalchemy as sa
from pymysql.constants import CLIENT
from sqlalchemy.engine import make_url

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.folding import fold
from adapters.mapping.load import load_mapping
from tests.adapters.emptied import Opened as Emptied
from tests.adapters.sql.test_clock import MAPPING as CLOCK
from tests.adapters.sql.test_clock import PARIS, filled
from tests.databases import writing
from tests.hospital_sql import Tables, mapping_text
from tests.sets import SERVERS
from toolkit.checks.engine import with_values
from toolkit.contract.harness import FOUND, Opened, ask, token, with_ids
from toolkit.contract.hospital import EDGES, Ids

IDS = {"stay_id", "patient_id", "code"}
"""The column of the id: the first of these."""


def _ids(cursor: Any) -> list[str]:
    names = [column[0] for column in cursor.description or ()]
    if names[1:] == ["replaced_by"]:
        return []  # a step of merges
    at = next((n for n, name in enumerate(names) if name in {*IDS, "id"}), 0)
    return [str(row[at]) for row in cursor.fetchall()] if names else []


def _sqlite(url: str, script: str) -> list[str]:
    """Run a script as sqlite3 does: a statement ends where it is complete."""
    ids, statement = [], ""
    with closing(sqlite3.connect(str(make_url(url).database))) as connection:
        # The one function that the client lacks.
        connection.create_function("encounters_fold", 1, lambda t: t and fold(t))
        for line in script.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                ids += _ids(connection.execute(statement))
                statement = ""
    assert not statement.strip()
    return ids


def _postgresql(url: str, script: str) -> list[str]:
    """Run a script by the simple query protocol, as psql does."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(False)
    with psycopg.connect(plain, autocommit=True) as connection:
        cursor = connection.execute(script.encode())
        ids = _ids(cursor)
        while cursor.nextset():
            ids += _ids(cursor)
    return ids


def _mysql(url: str, script: str) -> list[str]:
    """Run a script as mysql and mariadb do, in a session with the server's own settings."""
    address = make_url(url)
    connection = pymysql.connect(
        unix_socket=str(address.query["unix_socket"]),
        user=address.username,
        database=address.database,
        charset="utf8mb4",
        ssl_disabled=True,
        client_flag=CLIENT.MULTI_STATEMENTS,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(script)
        ids = _ids(cursor)
        while cursor.nextset():
            ids += _ids(cursor)
    return ids


CLIENTS = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql}


def pasted(url: str, adapter: Adapter, query: SearchQuery) -> list[str]:
    """Return the ids that the client of a database finds."""
    script = with_values(adapter)(query)
    return CLIENTS[make_url(url).get_backend_name()](url, script)


def searched(adapter: Adapter, query: SearchQuery) -> list[str]:
    """Return the ids that the service finds, rows that cannot be shown as well."""
    page = adapter.search(replace(query, placed=True))
    return [str(at.id) for at in page.positions]


@pytest.fixture(
    scope="module",
    params=[(kind, ids) for kind in ("sqlite", "postgresql", *SERVERS) for ids in Ids],
    ids=lambda param: "-".join(param),
)
def hospital(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Adapter, Opened]]:
    """Return the address of the hospital of the contract suite, its adapter, and both."""
    kind, ids = request.param
    folder = tmp_path_factory.mktemp("pasted")
    url = f"sqlite:///{folder / 'pas.db'}"
    if kind == "postgresql":
        url = request.getfixturevalue("new_postgresql")("unicode")
    if kind in SERVERS:
        url = request.getfixturevalue(f"{kind}_server").new_database()
    edges = EDGES.with_ids(ids)
    Tables(url, edges).close()
    file = folder / "hospital.yaml"
    file.write_text(mapping_text(edges), encoding="utf-8")
    with closing(open_adapter(load_mapping(file, {"PAS_URL": url}))) as adapter:
        yield url, adapter, Opened(edges, adapter)


def test_a_pasted_search_finds_the_same_rows(
    hospital: tuple[str, Adapter, Opened],
) -> None:
    url, adapter, opened = hospital
    for kind, cases in FOUND.items():
        for _, criteria, _ in (("all", (), ()), *cases):
            query = ask(*(with_ids(opened, each) for each in criteria), of=kind)
            assert pasted(url, adapter, query) == searched(adapter, query), criteria
        for sort in (Sort(SortKey.LAST_UPDATED), Sort(SortKey.ID, descending=True)):
            first = ask(of=kind, sort=sort)
            middle = adapter.search(replace(first, placed=True)).positions[3]
            for query in (replace(first, after=middle), replace(first, before=middle)):
                ids = searched(adapter, query)
                assert sorted(pasted(url, adapter, query)) == sorted(ids)


def test_the_present_time_is_written(opened: Emptied, url: str) -> None:
    local = "DATETIME" if url.startswith("mysql") else "TIMESTAMP"
    adapter = opened(CLOCK, filled(local, PARIS))
    for criterion in (token("status", "planned"), token("identifier", "after")):
        query = ask(criterion)
        assert pasted(url, adapter, query) == searched(adapter, query) == ["3", "2"]


TEXTS = (
    *("o'neil", "a\\b", "100%", "%(a)s", ":now", "?", "&x", "é€", 'a"b', "-- x", "/*"),
)


SIGNS = """\
encounter:
  rows: |
    SELECT id, visit, '%' || 'a\\b' AS unit FROM stays -- 5 % of all

    WHERE id >= 0
  fields:
    id: {from: id}
    patient_id: {from: id}
    status: finished
    visit_number: {from: visit}
    functional_unit: {from: unit}
  search: [_id, identifier, service-provider._extension]
"""


def test_every_sign_of_a_value_is_written(opened: Emptied, url: str) -> None:
    adapter = opened(SIGNS, ("CREATE TABLE stays (id INTEGER, visit VARCHAR(20))",))
    engine = writing(url)
    with engine.begin() as connection:
        rows = [{"id": n, "visit": visit} for n, visit in enumerate(TEXTS)]
        insert = sa.text("INSERT INTO stays VALUES (:id, :visit)")
        connection.execute(insert, rows)
    engine.dispose()
    for id, visit in enumerate(TEXTS):
        query = ask(token("identifier", visit))
        assert pasted(url, adapter, query) == searched(adapter, query) == [str(id)]
    unit = ask(token("service-provider._extension", "%a\\b"))
    assert pasted(url, adapter, unit) == searched(adapter, unit)
    assert len(searched(adapter, unit)) == len(TEXTS)
