"""The demo hospital on MariaDB and MySQL: a page reads about as many rows as it shows."""

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import Adapter, SearchQuery, Sort, SortKey
from adapters.mapping.load import load_mapping
from adapters.testing.harness import NEWEST_FIRST, ask, dates, patient, token
from demo.hospital import fill
from tests.demo.conftest import MAPPING
from tests.mariadb_server import MariaServer
from tests.sets import SERVERS

STAYS = 5000
UPDATED = Sort(SortKey.LAST_UPDATED, descending=True)

RowsRead = Callable[[SearchQuery], int]


pytestmark = pytest.mark.parametrize("server", SERVERS, indirect=True)


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


SEARCHES = [
    *(
        pytest.param((), sort, id=f"all by {sort.key}")
        for sort in (NEWEST_FIRST, UPDATED)
    ),
    pytest.param((), Sort(SortKey.DATE, descending=False), id="oldest first"),
    pytest.param((), Sort(SortKey.ID), id="all by id"),
    pytest.param((patient("7"),), NEWEST_FIRST, id="patient"),
    pytest.param((patient("7", "8", "9"),), UPDATED, id="three patients"),
    pytest.param((token("_id", "77", "78"),), NEWEST_FIRST, id="ids"),
    pytest.param((token("status", "in-progress"),), NEWEST_FIRST, id="status"),
    pytest.param(
        (dates("ge2024-03-14"), dates("lt2024-03-21")), NEWEST_FIRST, id="a week"
    ),
    pytest.param(
        (token("service-provider._extension", "0123"),), NEWEST_FIRST, id="unit"
    ),
    pytest.param((token("identifier", "000000042"),), NEWEST_FIRST, id="visit number"),
]


@pytest.mark.parametrize(("criteria", "sort"), SEARCHES)
def test_first_page_reads_few_rows(
    rows_read: RowsRead, criteria: tuple[object, ...], sort: Sort
) -> None:
    assert rows_read(ask(*criteria, sort=sort, count=10)) < STAYS / 10  # type: ignore[arg-type]


@pytest.mark.parametrize("sort", [NEWEST_FIRST, UPDATED, Sort(SortKey.ID)], ids=str)
def test_a_page_in_the_middle_reads_few_rows(
    adapter: Adapter, rows_read: RowsRead, sort: Sort
) -> None:
    middle = adapter.search(ask(sort=sort, count=STAYS // 2)).last
    for way in ({"after": middle}, {"before": middle}):
        assert rows_read(ask(sort=sort, count=10, **way)) < STAYS / 10


def test_a_scan_would_be_noticed(rows_read: RowsRead) -> None:
    assert rows_read(ask(sort=NEWEST_FIRST, count=STAYS)) >= STAYS / 2
