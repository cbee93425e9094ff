"""How the cost of searches grows with the hospital: `make bench-scale`.

It fills the tables of the demo with `generate_series`, creates the indexes that `mapping check
--live` suggests, sends searches to the service, and reads in the server's log which statements
these took. EXPLAIN ANALYZE says what the database takes for them.
"""

import argparse
import json
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from urllib.parse import parse_qsl

import psycopg
import sqlalchemy as sa

from bench.before import Build
from bench.cluster import Database
from bench.contenders import BASE_URL, Around, Running, service, started, surroundings
from bench.load import Load
from bench.report import machine
from bench.scenarios import UNIT, Call
from demo.hospital import houses
from demo.tables import INDEXES, TABLES
from tests.live import ROOT

TIMES = 7
"""How often each search is sent, and each statement explained; medians count."""

PATIENT = "patient_id:          {from: patient_id}"
FOLLOWED = "patient_id:          {from: patient_id, merges: follow}"
UNIT_FORM = f"service-provider._extension={UNIT}|00007"
SEARCHES: Mapping[str, str] = {
    "first page": "_count=100",
    "unit": f"{UNIT_FORM}&_count=100",
    "day": "date=2021-06-15&_count=100",
    "patient, never merged": "patient=Patient/1003",
    "patient, chain of four, last survivor": "patient=Patient/1006",
    "patient, chain of four, first number": "patient=Patient/1009",
    "count of all": "_summary=count",
}
_FILLED = (
    """INSERT INTO unite_fonctionnelle SELECT n, 2 + mod(n, 2), lpad(n::text, 5, '0'), 'Unit'
    FROM generate_series(0, {units} - 1) n""",
    """INSERT INTO patient SELECT n, 2 + mod(n, 2), 'A',
    CASE WHEN mod(n, 10) IN (7, 8, 9) THEN n - 1 END, 'N', NULL, NULL, '2025-01-01'
    FROM generate_series(1, {patients}) n""",
    """INSERT INTO identite SELECT n, 'QUAL', 'M', 'NOM' || mod(n, 5000), 'NOM' || mod(n, 5000),
    'Anne', 'ANNE', NULL, NULL, NULL, NULL, 'F', DATE '1930-01-01' + mod(n, 30000)
    FROM generate_series(1, {patients}) n""",
    """INSERT INTO sejour SELECT n, 2 + mod(n, 2), lpad((n / 2)::text, 9, '0'),
    1 + mod(n * 7919::bigint, {patients}),
    (ARRAY['S','S','S','S','S','S','S','S','S','S','S','S','S','S','T','F','E','P','A','X'])
      [1 + floor(20 * random())],
    (ARRAY['HC','HC','HP','URG','URG','EXT','EXT','EXT','CS','HDJ'])
      [1 + floor(10 * random())],
    NULL, began, began + INTERVAL '1 hour' * ceil(200 * random()),
    lpad(floor({units} * random())::text, 5, '0'), 'Unit', began + INTERVAL '3 days' * random()
    FROM (SELECT n, TIMESTAMP '2015-06-01' + date_trunc('minute',
      n * (INTERVAL '3650 days' / {stays})) AS began
      FROM generate_series(1, {stays}) n) stays""",
)


_INTRODUCTION = f"""\
Written by `make bench-scale`. Milliseconds, medians of {TIMES}. One client calls one worker through
HTTP. The database's figures are planning and execution, by EXPLAIN ANALYZE, of all statements that
the service sends for the first such search, and in brackets their number. The units have about
4,000 stays, the patients five; of each ten patients four are one chain of merges, and the stays
keep their old numbers (`merges: follow`).
"""


def fill(url: str, stays: int) -> None:
    """Fill an empty database with so many stays."""
    patients, units = max(2_000, stays // 5), max(20, stays // 4_000)
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for table in TABLES:
            connection.execute(sa.schema.CreateTable(table))
        for table, row in houses():
            connection.execute(table.insert(), row)
        for statement in _FILLED:
            text = statement.format(stays=stays, patients=patients, units=units)
            connection.exec_driver_sql(text)
        for index in INDEXES:
            index.create(connection)
        connection.exec_driver_sql("VACUUM (ANALYZE)")
        logged = "ALTER DATABASE postgres SET log_min_duration_statement = 0"
        connection.exec_driver_sql(logged)
    engine.dispose()


class StatementLog:
    """What the server logs of statements."""

    _EXECUTED = re.compile(r"(?s)duration: \S+ ms  (?:execute .*?|statement): (.*)")
    _OF_TABLES = re.compile(r"(?s)SELECT\b.*\b(?:sejour|patient)\b")
    _VALUE = re.compile(r"(\$\d+) = ('(?:[^']|'')*'|NULL)")

    def __init__(self, database: Database) -> None:
        self._file = database.data / "log" / "statements.json"
        self._libpq = database.libpq
        self._read = 0

    def new(self) -> list[str]:
        """Return the queries of tables since the last call, their values written in."""
        # A process of its own writes the log: wait for a statement of ours.
        marker, text = secrets.token_hex(8), ""
        with psycopg.connect(self._libpq) as connection:
            connection.execute(f"SELECT '{marker}'".encode())
        while marker not in text:
            text = self._file.read_text("utf-8")
        lines, self._read = text[self._read :].splitlines(), len(text)
        return [found for line in lines for found in self._queries(json.loads(line))]

    def _queries(self, line: Mapping[str, str]) -> Iterator[str]:
        executed = self._EXECUTED.match(line["message"])
        if executed and self._OF_TABLES.match(executed[1]):
            values = dict(self._VALUE.findall(line.get("detail", "")))
            yield re.sub(r"\$\d+", lambda found: values[found[0]], executed[1])


class Scale:
    """A service on a hospital of one size."""

    def __init__(self, around: Around, running: Running) -> None:
        self._database = around.database
        self._load = Load(around)
        self._running = running
        self._log = StatementLog(around.database)

    def report(self) -> Iterator[str]:
        """Yield the lines of the tables."""
        # A worker reads first what its database is.
        self._cells("_id=1")
        yield "| search | service | database | service, `_total=none` | database |"
        yield "|---|---:|---:|---:|---:|"
        for name, form in SEARCHES.items():
            uncounted = "– | –"
            if "_summary" not in form:
                uncounted = self._cells(f"{form}&_total=none")
            yield f"| {name} | {self._cells(form)} | {uncounted} |"
        pages = self._walked()
        turns = [[self._took(pages[at]) for at in (1, -1)] for _ in range(TIMES)]
        second, last = map(median, zip(*turns, strict=True))
        yield f"\nBy the links `next`, page 2 of 100: {second:.1f} ms,"
        yield f"page {len(pages):,}: {last:.1f} ms.\n"

    def _cells(self, form: str) -> str:
        """Return what a search costs; its statements are those of its first time."""
        call = Call("/fhir/v3/Encounter/_search", parse_qsl(form))
        self._log.new()
        status, _ = self._load.ask(self._running, call)
        took = [self._explained(query) for query in self._log.new()]
        failed = "" if status == 200 else f" ({status})"
        service = median(self._took(call) for _ in range(TIMES))
        return f"{service:.1f}{failed} | {sum(took):.1f} ({len(took)})"

    def _explained(self, query: str) -> float:
        """Return the median milliseconds that planning and execution take."""
        explain, times = f"EXPLAIN (ANALYZE, FORMAT JSON) {query}".encode(), []
        with psycopg.connect(self._database.libpq, autocommit=True) as connection:
            for _ in range(TIMES):
                (((plan,),),) = connection.execute(explain).fetchall()
                times.append(plan["Planning Time"] + plan["Execution Time"])
        return median(times)

    def _took(self, call: Call) -> float:
        """Return the milliseconds of a request."""
        began = time.perf_counter()
        self._load.ask(self._running, call)
        return (time.perf_counter() - began) * 1000

    def _walked(self) -> list[Call]:
        """Return the pages from the first to a deep one."""
        calls = [Call("/fhir/v3/Encounter?_count=100&_total=none")]
        while len(calls) < 1_000:
            _, body = self._load.ask(self._running, calls[-1])
            links = {link["relation"]: link["url"] for link in json.loads(body)["link"]}
            if "next" not in links:
                break
            calls.append(Call(links["next"].replace(BASE_URL, "/fhir/v3", 1)))
        return calls


def suggested(mapping: Path, filled: Database) -> Iterator[str]:
    """Create the indexes that the check suggests and yield their statements."""
    command = [sys.executable, "-m", "app.cli", "mapping", "check", "--live", "--json"]
    done = subprocess.run(
        [*command, str(mapping)],
        env={"PAS_URL": filled.sqlalchemy, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    with psycopg.connect(filled.owner, autocommit=True) as connection:
        for index in sorted(set(re.findall(r"CREATE INDEX [^;]*;", done.stdout))):
            connection.execute(index.encode())
            yield f"- `{index}`"
        connection.execute("VACUUM (ANALYZE)")


def of_size(stays: int, kept: Path) -> Iterator[str]:
    """Yield the report of a hospital of so many stays."""
    yield f"## {stays:,} stays\n"
    demo = (ROOT / "mappings/demo/demo.yaml").read_text("utf-8")
    with surroundings(kept / "scale", stays, fill) as around:
        mapping = around.scratch / "follow.yaml"
        mapping.write_text(demo.replace(PATIENT, FOLLOWED), "utf-8")
        yield "Created by the check's advice, if not before:\n"
        yield from suggested(mapping, around.database)
        yield ""
        ours = service("ours", around, Build(), str(mapping), workers=1)
        with started(ours, around.scratch) as running:
            yield from Scale(around, running).report()


def main() -> None:
    """Measure each size and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale")
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 10])
    parser.add_argument("--kept", type=Path, default=Path("build/bench"))
    parser.add_argument("--report", type=Path, default=Path("bench/scale.md"))
    options = parser.parse_args()
    lines = ["# How it grows with the hospital\n", _INTRODUCTION, machine()]
    for millions in options.millions:
        free = shutil.disk_usage(".").free / 1e9
        if free < 1.2 * millions:
            parser.error(f"{free:.0f} GB are not enough for {millions:g} million stays")
        for line in of_size(int(millions * 1_000_000), options.kept):
            print(line, flush=True)
            lines.append(line)
    options.report.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
