"""Which searches PostgreSQL can answer by an index: as installed, and as the README advises.

The samples are small, so that it is told to avoid what needs no index; what it then
does is what it can do.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import psycopg
from sqlalchemy.engine import make_url

from adapters.contract import Adapter, SearchQuery, Sort, SortKey
from tests.databases import NewDatabase
from tests.docs.pages import blocks, section
from tests.gnuhealth.samples import README, Sample, postgresql_sample
from toolkit.contract.harness import ask, dates, patient, token

(ADVISED,) = blocks(section(README.read_text("utf-8"), "Indexes"), "sql")
TABLES = {
    "inp-": "gnuhealth_inpatient_registration r",
    "app-": "gnuhealth_appointment a",
    "eva-": "gnuhealth_patient_evaluation e",
}
AS_INSTALLED = {"patient": ["app-"], "identifier": list(TABLES), "_id": list(TABLES)}
"""The parts that an index answers, by search; the others have none."""
_PREFER = "".join(
    f"SET enable_{way} = off;"
    for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin")
)


@dataclass(frozen=True)
class Planned:
    """A database that is asked how it would answer."""

    adapter: Adapter
    connection: psycopg.Connection[tuple[str]]

    def plans(self, query: SearchQuery) -> dict[str, str]:
        """Return for each part the plan of the first statement of a page."""
        parts = re.split(r"(?m)^-- (\S+)\n", self.adapter.explain(query))[1:]
        return {
            name: self._plan(_of_stays(statements))
            for name, statements in zip(parts[::2], parts[1::2], strict=True)
        }

    def _plan(self, statement: str) -> str:
        numbers = count(1)
        text = re.sub("%s", lambda _: f"${next(numbers)}", statement)
        rows = self.connection.execute(f"EXPLAIN (GENERIC_PLAN) {text}".encode())
        return "\n".join(row[0] for row in rows)


def _of_stays(statements: str) -> str:
    """Return the first statement of a page, without those that follow merges."""
    each = re.split(r"\n\n(?=-- |SELECT )", statements)
    return next(one for one in each if not one.startswith("-- merged patients"))


@contextmanager
def planning(sample: Sample) -> Iterator[Planned]:
    """Ask one database how it would answer."""
    sample.run("ANALYZE")
    adapter = sample.open()
    address = make_url(sample.url).set(drivername="postgresql")
    text = address.render_as_string(hide_password=False)
    with psycopg.connect(text, autocommit=True) as connection:
        connection.execute(_PREFER.encode())
        yield Planned(adapter, connection)
    adapter.close()


def searches(adapter: Adapter) -> dict[str, SearchQuery]:
    """Return the searches by their name."""
    first = adapter.search(ask(count=20))
    updated = Sort(SortKey.LAST_UPDATED, descending=True)
    return {
        "newest first": ask(count=20),
        "the next page": ask(count=20, after=first.last),
        "oldest first": ask(sort=Sort(SortKey.DATE), count=20),
        "date of one day": ask(dates("2025-11-01"), count=20),
        "last changed first": ask(sort=updated, count=20),
        "patient": ask(patient("17"), count=100),
        "identifier": ask(token("identifier", "INPAC001")),
        "_id": ask(token("_id", "inp-5", "app-5", "eva-5"), sort=Sort(SortKey.ID)),
        "status": ask(token("status", "in-progress"), sort=Sort(SortKey.ID), count=20),
    }


def seeks(plan: str, of: str) -> bool:
    """Whether the rows of a table come by an index, in order or by what is asked."""
    lines = plan.splitlines()
    (at,) = [n for n, line in enumerate(lines) if re.search(rf" on {of}\b  ", line)]
    by_index = re.search(r"Index (Only )?Scan", lines[at])
    cond = at + 1 < len(lines) and "Index Cond" in lines[at + 1]
    ordered = "_pkey" not in lines[at] and "Sort Key" not in plan
    return bool(by_index and (cond or ordered))


def test_indexes_are_used_as_the_page_says(new_postgresql: NewDatabase) -> None:
    sample = postgresql_sample(new_postgresql)
    for is_advised in (False, True):
        with planning(sample) as planned:
            for name, query in searches(planned.adapter).items():
                plans = planned.plans(query)
                by_index = [part for part, p in plans.items() if seeks(p, TABLES[part])]
                expected = AS_INSTALLED.get(name, [])
                if is_advised and name != "status":
                    expected = list(TABLES)
                assert by_index == [part for part in expected if part in plans], name
        sample.run(ADVISED.text)
