"""Pages of the demo hospital come out of indexes: PostgreSQL's plans, rows that MariaDB reads."""

import re

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import Bound, Group, Position, SearchQuery, Sort, SortKey
from adapters.mapping.load import load_mapping
from adapters.sql.adapter import open_section
from adapters.sql.engine import Database
from demo.hospital import fill
from tests.live import ROOT
from tests.sets import SERVERS
from toolkit.contract.harness import NEWEST_FIRST, STAY, ask, dates, patient, token

MAPPING = ROOT / "mappings" / "demo" / "demo.yaml"
STAYS = 5000
UPDATED = Sort(SortKey.LAST_UPDATED, descending=True)
OLDEST_FIRST = Sort(SortKey.DATE)
UNIT = token("service-provider._extension", "0123")
MIDDLE = Position(Group.UNKEYED, None, 1000)
UNDATED = (
    {"after": Bound()},
    {"after": MIDDLE},
    {"before": MIDDLE},
    {"from_end": True},
)
"""Where a page of stays without a time to sort by may begin."""


@pytest.fixture(scope="module")
def hospital(new_postgresql):
    url = new_postgresql("unicode")
    fill(url, stays=2000)
    return url


@pytest.mark.parametrize(
    ("criteria", "sort", "columns"),
    [
        ((), OLDEST_FIRST, ("date_entree",)),
        ((), NEWEST_FIRST, ("date_entree",)),
        ((), UPDATED, ("maj_utc",)),
        ((UNIT,), NEWEST_FIRST, ("uf_courante", "date_entree")),
    ],
)
def test_no_page_sorts_the_stays_without_a_time(hospital, criteria, sort, columns):
    database = Database(hospital, 5, 1)
    mapping = load_mapping(MAPPING, {"PAS_URL": hospital})
    section = open_section(database, mapping, STAY)
    for begin in UNDATED:
        query = SearchQuery(STAY, criteria, sort, 100, **begin)
        (statement,) = (
            section.page(segment, condition, query.count + 1)
            for segment, condition in section.segments(query)
            if segment.group is Group.UNKEYED
        )

        def plan(connection, statement=statement):
            # The hospital is so small that a full scan is the better plan.
            for setting in ("enable_seqscan", "enable_sort"):
                connection.exec_driver_sql(f"SET {setting} = off")
            text = f"EXPLAIN {database.text(statement)}"
            rows = connection.exec_driver_sql(text, statement.values)
            return "\n".join(rows.scalars())

        explained = database.run(plan)
        assert "Sort" not in explained
        assert "Seq Scan" not in explained
        condition = re.search(r"Index Cond: (.*)", explained).group(1)
        assert all(column in condition for column in columns)
    database.close()


SEARCHES = [
    *(((), sort) for sort in (NEWEST_FIRST, UPDATED, OLDEST_FIRST, Sort(SortKey.ID))),
    ((patient("7", "8", "9"),), UPDATED),
    ((token("_id", "77", "78"),), NEWEST_FIRST),
    ((token("status", "in-progress"),), NEWEST_FIRST),
    ((dates("ge2024-03-14"), dates("lt2024-03-21")), NEWEST_FIRST),
    ((UNIT,), NEWEST_FIRST),
    ((token("identifier", "000000042"),), NEWEST_FIRST),
]


@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_a_page_reads_few_rows(server):
    url = server.new_database()
    fill(url, stays=STAYS)
    adapter = open_adapter(load_mapping(MAPPING, {"PAS_URL": url}))
    engine = sa.create_engine(server.url("information_schema"))
    statement = sa.text(
        "SHOW GLOBAL STATUS WHERE variable_name LIKE 'Handler_read%'"
        " OR variable_name IN ('Sort_rows', 'Handler_icp_attempts')"
    )

    def rows_read(query):
        """Return how many rows the second run reads: the first also learns the columns."""
        assert adapter.search(query).rows
        with engine.connect() as connection:
            counts = []
            for run in (lambda: None, lambda: None, lambda: adapter.search(query)):
                run()
                rows = connection.execute(statement)
                counts.append(sum(int(row[1]) for row in rows))
        # To ask for the number costs some reads as well.
        before, idle, after = counts
        return (after - idle) - (idle - before)

    for criteria, sort in SEARCHES:
        query = ask(*criteria, sort=sort, count=10)
        assert rows_read(query) < STAYS / 10, (criteria, sort)
    for sort in (NEWEST_FIRST, UPDATED, Sort(SortKey.ID)):
        middle = adapter.search(ask(sort=sort, count=STAYS // 2)).last
        begins = [{"after": middle}, {"before": middle}]
        begins += UNDATED if sort.key is not SortKey.ID else ()
        for begin in begins:
            query = ask(sort=sort, count=10, **begin)
            assert rows_read(query) < STAYS / 10, (sort, begin)
    # A scan would be noticed.
    assert rows_read(ask(sort=NEWEST_FIRST, count=STAYS)) >= STAYS / 2
    adapter.close()
    engine.dispose()
