"""How the cost of searches grows with the hospital: `make bench-scale`.

It fills the tables of the demo with `generate_series`: five stays a patient on average, and of
each ten patients three that were merged, in a chain of four. The stays keep the numbers of merged
patients, so the mapping is the demo's with `merges: follow`. Then it creates the indexes that
`encounters mapping check --live` suggests, sends searches to the service, and reads in the
server's log which statements these took. EXPLAIN ANALYZE says what the database takes for them.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

import psycopg
import sqlalchemy as sa

from bench.before import ROOT, Build
from bench.cluster import Database, database, redis_url
from bench.contenders import Running, service, started
from bench.load import Load
from bench.report import machine
from bench.scenarios import UNIT, Call
from bench.tokens import identity
from bench.walk import in_turn, walk
from demo.hospital import houses
from demo.tables import INDEXES, TABLES, VIEWS

TIMES = 7
"""How often each search is sent, and each statement explained; medians count."""

DEEP = 1_000
GB_A_MILLION = 0.6
SETTINGS = {
    **{"logging_collector": "on", "log_destination": "jsonlog"},
    **{"log_min_duration_statement": "0", "log_filename": "statements.log"},
    **{"log_rotation_size": "0", "log_rotation_age": "0"},
}
UNIT_FORM = f"service-provider._extension={UNIT}|00007"
SEARCHES: Mapping[str, str] = {
    "first page": "_count=100",
    "unit": f"{UNIT_FORM}&_count=100",
    "day": "date=2021-06-15&_count=100",
    "patient, never merged": "patient=Patient/1003",
    "patient, chain of four, last survivor": "patient=Patient/1006",
    "patient, chain of four, first number": "patient=Patient/1009",
}
COUNTS: Mapping[str, str] = {
    "count of a unit": f"{UNIT_FORM}&_summary=count",
    "count of a day": "date=2021-06-15&_summary=count",
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
    lpad(floor({units} * random())::text, 5, '0'), began + INTERVAL '3 days' * random()
    FROM (SELECT n, TIMESTAMP '2015-06-01' + date_trunc('minute',
      n * (INTERVAL '3650 days' / {stays})) AS began
      FROM generate_series(1, {stays}) n) stays""",
)


def fill(url: str, stays: int) -> None:
    """Fill an empty database with so many stays."""
    sizes = {
        "stays": stays,
        "patients": max(2_000, stays // 5),
        "units": max(20, stays // 4_000),
    }
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for table in TABLES:
            connection.execute(sa.schema.CreateTable(table))
        for table, row in houses():
            connection.execute(table.insert(), row)
        for statement in _FILLED:
            connection.exec_driver_sql(statement.format_map(sizes))
        for index in INDEXES:
            index.create(connection)
        for view in VIEWS:
            connection.exec_driver_sql(view)
        connection.exec_driver_sql("VACUUM (ANALYZE)")
    engine.dispose()


class Statement(NamedTuple):
    """A statement that the server was sent, with its values written in."""

    text: str

    def milliseconds(self, url: str) -> float:
        """Return the median that planning and execution take."""
        with psycopg.connect(url, autocommit=True) as connection:
            times = []
            for _ in range(TIMES):
                explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {self.text}".encode()
                (row,) = connection.execute(explain).fetchall()
                (plan,) = row[0]
                times.append(plan["Planning Time"] + plan["Execution Time"])
        return statistics.median(times)


class StatementLog:
    """What the server logs of statements."""

    _EXECUTED = re.compile(
        r"duration: \S+ ms  (?:execute [^:]*|statement): (.*)", re.DOTALL
    )
    _OF_TABLES = re.compile(r"SELECT\b.*\b(?:sejour|patient)\b", re.DOTALL)
    _VALUE = re.compile(r"(\$\d+) = ('(?:[^']|'')*'|NULL)")

    def __init__(self, data: Path) -> None:
        self._file = data / "log" / "statements.json"
        self._read = 0

    def new(self) -> list[Statement]:
        """Return the queries of tables since the last call."""
        lines = self._file.read_text("utf-8")[self._read :].splitlines()
        self._read = len(self._file.read_text("utf-8"))
        return [found for line in lines for found in self._statements(json.loads(line))]

    def _statements(self, line: Mapping[str, str]) -> Iterator[Statement]:
        executed = self._EXECUTED.match(line["message"])
        if executed and self._OF_TABLES.match(executed[1]):
            values = dict(self._VALUE.findall(line.get("detail", "")))
            yield Statement(
                re.sub(r"\$\d+", lambda found: values[found[0]], executed[1])
            )


class Measured(NamedTuple):
    """A search: its milliseconds at the service, its status, what its statements took."""

    service: float
    status: int
    database: Sequence[float]

    def cells(self) -> str:
        """Return the cells of a table."""
        status = "" if self.status == 200 else f" ({self.status})"
        parts = " + ".join(f"{ms:.1f}" for ms in self.database)
        return f"{self.service:.1f}{status} | {parts}"


class Scale:
    """A service on a hospital of one size."""

    def __init__(self, filled: Database, load: Load, running: Running) -> None:
        self._database = filled
        self._load = load
        self._running = running
        self._log = StatementLog(filled.data)

    def measured(self, form: str) -> Measured:
        """Return what a search costs; its statements are those of its first time."""
        call = Call("/fhir/v3/Encounter/_search", parse_qsl(form))
        self._log.new()
        status, _ = self._load.ask(self._running, call)
        statements = self._log.new()
        times = []
        for _ in range(TIMES):
            began = time.perf_counter()
            self._load.ask(self._running, call)
            times.append((time.perf_counter() - began) * 1000)
        took = [each.milliseconds(self._database.libpq) for each in statements]
        return Measured(statistics.median(times), status, took)

    def report(self) -> Iterator[str]:
        """Yield the lines of the tables."""
        # A worker reads first what its database is.
        self.measured("_id=1")
        yield "| search | service, ms | database, ms | service, `_total=none` | database |"
        yield "|---|---:|---:|---:|---:|"
        for name, form in SEARCHES.items():
            uncounted = self.measured(f"{form}&_total=none")
            yield f"| {name} | {self.measured(form).cells()} | {uncounted.cells()} |"
        for name, form in COUNTS.items():
            yield f"| {name} | {self.measured(form).cells()} | – | – |"
        first = "Encounter?_count=100&_total=none"
        walked = walk(self._load, self._running, first, DEEP + 50)
        depths = in_turn(self._load, self._running, walked, (1, DEEP))
        yield ""
        pages = ", ".join(f"page {at:,}: {ms:.1f} ms" for at, ms in depths.items())
        yield f"By the links `next`, pages of 100 at the service: {pages}"
        yield ""


def suggested(mapping: Path, filled: Database) -> Iterator[str]:
    """Create the indexes that the check suggests and yield their statements."""
    command = [sys.executable, "-m", "app.cli", "mapping", "check", "--live"]
    done = subprocess.run(
        [*command, "--json", str(mapping)],
        env={"PAS_URL": filled.sqlalchemy, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    indexes = sorted(set(re.findall(r"CREATE INDEX [^;]*;", done.stdout)))
    with psycopg.connect(filled.owner, autocommit=True) as connection:
        for index in indexes:
            connection.execute(index.encode())
            yield index
        connection.execute("VACUUM (ANALYZE)")


def of_size(millions: float, kept: Path) -> Iterator[str]:
    """Yield the report of a hospital of so many millions of stays."""
    demo = (ROOT / "mappings/demo/demo.yaml").read_text("utf-8")
    follow = "patient_id:          {from: patient_id, merges: follow}"
    text = demo.replace("patient_id:          {from: patient_id}", follow)
    with ExitStack() as stack:
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="scale-"))
        )
        mapping = scratch / "follow.yaml"
        mapping.write_text(text, "utf-8")
        stays = int(millions * 1_000_000)
        filled = stack.enter_context(database(kept, stays, fill, SETTINGS))
        store = stack.enter_context(redis_url())
        known = stack.enter_context(identity(scratch))
        yield f"## {stays:,} stays\n"
        indexes = list(suggested(mapping, filled))
        yield "Created by the check's advice:\n"
        yield from [f"- `{index}`" for index in indexes] or ["- nothing"]
        yield ""
        ours = service(
            *("ours", Build(ROOT), filled, store, known),
            mapping=str(mapping),
            workers=1,
        )
        running = stack.enter_context(started(ours, scratch / "ours.log"))
        yield from Scale(
            filled, Load(known.token, scratch, filled.pid), running
        ).report()


def main() -> None:
    """Measure each size and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale")
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 10])
    parser.add_argument("--kept", type=Path, default=Path("build/bench"))
    parser.add_argument("--report", type=Path, default=Path("bench/scale.md"))
    options = parser.parse_args()
    options.kept.mkdir(parents=True, exist_ok=True)
    lines = ["# How it grows with the hospital\n", _INTRODUCTION, machine("")]
    for millions in options.millions:
        free = shutil.disk_usage(options.kept).free / 1e9
        if free < 2 * GB_A_MILLION * millions:
            lines.append(
                f"{millions:g} million stays: not enough disk ({free:.0f} GB)\n"
            )
            continue
        for line in of_size(millions, options.kept):
            print(line, flush=True)
            lines.append(line)
    options.report.write_text("\n".join(lines), "utf-8")


_INTRODUCTION = f"""\
Written by `make bench-scale`. Milliseconds, medians of {TIMES}. The service is called through HTTP by one
client. The database's figures are planning and execution by EXPLAIN ANALYZE of the statements that the
service sent for the first such search, one after the other. The units have about 4,000 stays, the patients
five. Of each ten patients four are one chain of merges.
"""


if __name__ == "__main__":
    main()
