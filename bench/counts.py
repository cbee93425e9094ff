"""A first page with its total, by how many match: one client, time to the answer."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson
import psycopg

from bench.cluster import Database
from bench.contenders import Running
from bench.handwritten import SERVED
from bench.load import Load
from bench.results import Counted
from bench.scenarios import Call, Scenario

_TIMES = 5
_ALWAYS = ("1900-01-01T00:00:00", "2999-01-01T00:00:00")


def measure(
    database: Database,
    load: Load,
    running: Sequence[Running],
    asked: Sequence[Scenario],
) -> Iterator[Counted]:
    """Yield figures of ten matches, of a hundredth of all stays, and of all of them."""
    patients = next(each for each in asked if each.name == "patient")
    windows = next(each for each in asked if each.name == "window")
    wide = replace(windows, items=[_hundredth(database)])
    for scenario in (patients, wide, replace(windows, items=[_ALWAYS])):
        taken, total = {}, 0
        for each in running:
            name = each.contender.name
            call = scenario.call(name, scenario.items[0])
            told = [_answer(load, each, call) for _ in range(_TIMES)]
            taken[name] = statistics.median(milliseconds for milliseconds, _ in told)
            total = told[0][1]
        yield Counted(total, taken)


def _answer(load: Load, running: Running, call: Call) -> tuple[float, int]:
    began = time.perf_counter()
    status, body = load.ask(running, call)
    took = (time.perf_counter() - began) * 1000
    if status != 200:
        raise SystemExit(f"{running.contender.name}: {body[:500]!r}")
    return took, orjson.loads(body)["total"]


def _hundredth(database: Database) -> tuple[str, str]:
    """Return a window of about a hundredth of all stays."""
    statement = (
        "SELECT percentile_disc(ARRAY[0.40, 0.41]) WITHIN GROUP (ORDER BY date_entree)"
        f" FROM sejour WHERE {SERVED}"
    )
    with psycopg.connect(database.libpq) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    first, last = row[0]
    return first.isoformat(), last.isoformat()
