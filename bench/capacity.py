"""How many workers, threads and connections a load needs: the table of docs/operators.md.

Run as `python -m bench.capacity RATE SOURCE_MS [CPU_MS]` for a load of your own.
"""

import argparse
import math
import re
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from adapters.mapping.model import Mark, SourceConfig
from adapters.sql.engine import COUNTS

REPORT = Path(__file__).with_name("report.md")
SMALL, LARGE = "A patient's stays, 10 rows", "Page of 100 of a unit, with its total"
"""The sections of the report that say what small and large answers cost."""

BUSY = 0.6
"""How much of a worker, or of a connection, is in use; beyond, waiting grows steeply."""

FEWEST_WORKERS = 2
MOST_CONNECTIONS = 64
"""Half of the threads that a worker can have."""

_COST = """\
CPU is {small} ms for a page of 10 stays and {large} ms for a page of 100 with its total, through
gunicorn, with signed tokens ([the bench's report](../bench/report.md) names the machine). So
one core answers about {rate:.0f} small requests a second at six tenths of its time. As workers ×
threads, `source.connections`, connections at the database:

"""

RATES = (10, 50, 100, 200, 500)
SOURCE_MS = (5, 50, 200, 1000)


@dataclass(frozen=True, slots=True)
class Plan:
    """What serves a load, all instances together; `connections` and `threads` of each worker."""

    workers: int
    connections: int
    threads: int

    @property
    def at_the_database(self) -> int:
        """How many connections the database must allow."""
        return self.workers * (self.connections + COUNTS)


def cpu_ms_of(section: str) -> float:
    """Return the CPU of a request of ours, gunicorn included, as the bench's report has it."""
    part = REPORT.read_text("utf-8").partition(f"\n## {section}\n")[2]
    found = re.search(r"^\| ours \| ([0-9,]+) \|", part, re.MULTILINE)
    if found is None:
        raise LookupError(f"{REPORT.name} says nothing of ours under '{section}'")
    return round(int(found[1].replace(",", "")) / 1000, 1)


def plan(rate: float, source_ms: float, cpu_ms: float) -> Plan:
    """Return what so many requests a second need, by Little's law."""
    asked = rate * source_ms / 1000 / BUSY
    workers = max(
        FEWEST_WORKERS,
        math.ceil(rate * cpu_ms / 1000 / BUSY),
        math.ceil(asked / MOST_CONNECTIONS),
    )
    usual = SourceConfig("sql", Mark("", 1, 1), ZoneInfo("UTC")).connections
    connections = max(usual, math.ceil(asked / workers))
    return Plan(workers, connections, 2 * connections)


def table() -> str:
    """Return what a request costs and the plans of usual loads, as a part of a page."""
    small, large = cpu_ms_of(SMALL), cpu_ms_of(LARGE)
    told = _COST.format(small=small, large=large, rate=round(BUSY / small * 1000, -1))
    heads = [f"source takes {ms} ms" for ms in SOURCE_MS]
    lines = [["requests a second", *heads], ["---"] * (1 + len(heads))]
    for rate in RATES:
        plans = (plan(rate, ms, small) for ms in SOURCE_MS)
        lines.append([f"{rate}", *map(_told, plans)])
    return told + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _told(made: Plan) -> str:
    each = f"{made.workers} × {made.threads}, {made.connections}"
    return f"{each}, {made.at_the_database}"


def main() -> None:
    """Print the plan of one load."""
    parser = argparse.ArgumentParser(prog="python -m bench.capacity")
    parser.add_argument("rate", type=float, help="requests a second")
    parser.add_argument("source_ms", type=float, help="how long the source takes")
    parser.add_argument("cpu_ms", type=float, nargs="?", default=cpu_ms_of(SMALL))
    told = parser.parse_args()
    made = plan(told.rate, told.source_ms, told.cpu_ms)
    print(f"ENCOUNTERS_WORKERS={made.workers}")
    print(f"ENCOUNTERS_THREADS={made.threads}")
    print(f"source.connections: {made.connections}")
    print(f"connections at the database: {made.at_the_database}")


if __name__ == "__main__":
    main()
