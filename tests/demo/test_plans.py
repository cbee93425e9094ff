"""Pages of the demo hospital come out of indexes: PostgreSQL's plans, rows that MariaDB reads."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    Bound,
    Criterion,
    Group,
    Position,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from adapters.sql.adapter import open_section
from adapters.sql.engine import Database
from demo.hospital import fill
from tests.databases import NewDatabase
from tests.demo.conftest import MAPPING
from tests.mariadb_server import MariaServer
from tests.sets import SERVERS
from toolkit.contract.harness import NEWEST_FIRST, STAY, ask, dates, patient, token

STAYS = 5000
UPDATED = Sort(SortKey.LAST_UPDATED, descending=True)
OLDEST_FIRST = Sort(SortKey.DATE)
UNIT = token("service-provider._extension", "0123")
MIDDLE = Position(Group.UNKEYED, None, 1000)
UNDATED: tuple[dict[str, Any], ...] = (
    {"after": Bound()},
    {"after": MIDDLE},
    {"before": MIDDLE},
    {"from_end": True},
)
"""Where a page of stays without a time to sort by may begin."""


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def test_no_page_sorts_the_stays_without_a_time(new_postgresql: NewDatabase) -> None:
    url = new_postgresql("unicode")
    fill(url, stays=2000)
    database = Database(url, 5, 1)
    section = open_section(database, load_mapping(MAPPING, {"PAS_URL": url}), STAY)

    def plan(query: SearchQuery) -> list[Any]:
        """Return the nodes of the plan for the stays of a page that have no time."""
        (statement,) = (
            section.page(segment, condition, query.count + 1)
            for segment, condition in section.segments(query)
            if segment.group is Group.UNKEYED
        )

        def read(connection: sa.Connection) -> Any:
            # The hospital is so small that a full scan is the better plan.
            for setting in ("enable_seqscan", "enable_sort"):
                connection.exec_driver_sql(f"SET {setting} = off")
            explained = f"EXPLAIN (FORMAT JSON) {database.text(statement)}"
            return connection.exec_driver_sql(explained, statement.values).scalar_one()

        return list(_nodes(database.run(read)[0]["Plan"]))

    searches: list[tuple[tuple[Criterion, ...], Sort, tuple[str, ...]]] = [
        ((), Sort(SortKey.DATE), ("date_entree",)),
        ((), Sort(SortKey.DATE, descending=True), ("date_entree",)),
        ((), Sort(SortKey.LAST_UPDATED), ("maj_utc",)),
        ((), UPDATED, ("maj_utc",)),
        ((UNIT,), NEWEST_FIRST, ("uf_courante", "date_entree")),
    ]
    for criteria, sort, columns in searches:
        for way in UNDATED:
            nodes = plan(SearchQuery(STAY, criteria, sort, 100, **way))
            assert "Sort" not in {node["Node Type"] for node in nodes}
            scans = [node for node in nodes if "Relation Name" in node]
            assert all("Index Cond" in scan for scan in scans), scans
            assert all(column in scans[0]["Index Cond"] for column in columns)
    database.close()


# MariaDB and MySQL: a page reads about as many rows as it shows.

RowsRead = Callable[[SearchQuery], int]


@pytest.fixture(scope="module")
def adapter(server: MariaServer) -> Iterator[Adapter]:
    url = server.new_database()
    fill(url, stays=STAYS)
    opened = open_adapter(load_mapping(MAPPING, {"PAS_URL": url}))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def rows_read(adapter: Adapter, server: MariaServer) -> Iterator[RowsRead]:
    """Return a function that tells how many rows the server read for a search.

    Its second run: the first one also learns what columns there are.
    """
    engine = sa.create_engine(server.url("information_schema"))
    statement = sa.text(
        "SHOW GLOBAL STATUS WHERE variable_name LIKE 'Handler_read%'"
        " OR variable_name IN ('Sort_rows', 'Handler_icp_attempts')"
    )

    def count(query: SearchQuery) -> int:
        assert adapter.search(query).rows
        with engine.connect() as connection:
            before, idle = (
                sum(int(row[1]) for row in connection.execute(statement)) for _ in "12"
            )
            adapter.search(query)
            after = sum(int(row[1]) for row in connection.execute(statement))
        # To ask for the number costs some reads as well.
        return (after - idle) - (idle - before)

    yield count
    engine.dispose()


SEARCHES: list[tuple[tuple[Criterion, ...], Sort]] = [
    *(((), sort) for sort in (NEWEST_FIRST, UPDATED, OLDEST_FIRST, Sort(SortKey.ID))),
    ((patient("7"),), NEWEST_FIRST),
    ((patient("7", "8", "9"),), UPDATED),
    ((token("_id", "77", "78"),), NEWEST_FIRST),
    ((token("status", "in-progress"),), NEWEST_FIRST),
    ((dates("ge2024-03-14"), dates("lt2024-03-21")), NEWEST_FIRST),
    ((UNIT,), NEWEST_FIRST),
    ((token("identifier", "000000042"),), NEWEST_FIRST),
]


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_page_reads_few_rows(adapter: Adapter, rows_read: RowsRead) -> None:
    for criteria, sort in SEARCHES:
        read = rows_read(ask(*criteria, sort=sort, count=10))
        assert read < STAYS / 10, (criteria, sort)
    for sort in (NEWEST_FIRST, UPDATED, Sort(SortKey.ID)):
        middle = adapter.search(ask(sort=sort, count=STAYS // 2)).last
        ways: list[dict[str, Any]] = [{"after": middle}, {"before": middle}]
        ways += UNDATED if sort.key is not SortKey.ID else ()
        for way in ways:
            assert rows_read(ask(sort=sort, count=10, **way)) < STAYS / 10, (sort, way)
    # A scan would be noticed.
    assert rows_read(ask(sort=NEWEST_FIRST, count=STAYS)) >= STAYS / 2
