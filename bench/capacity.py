"""How many workers, threads and connections a load needs: the table of docs/operators.md.

Run as `python -m bench.capacity RATE SOURCE_MS [CPU_MS]` for a load of your own.
"""

import argparse
import math
from dataclasses import dataclass

from adapters.mapping.model import Mark, SourceConfig
from adapters.sql.database import COUNTS

SMALL_MS, LARGE_MS = 4.0, 7.0
"""CPU of a read or a page of 10 stays, and of one of 100, gunicorn and audit included."""

BUSY = 0.6
"""How much of a worker, or of a connection, is in use; beyond, waiting grows steeply."""

FEWEST_WORKERS = 2
MOST_CONNECTIONS = 64
"""Half of the threads that a worker can have."""

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


def plan(rate: float, source_ms: float, cpu_ms: float = SMALL_MS) -> Plan:
    """Return what so many requests a second need, by Little's law."""
    asked = rate * source_ms / 1000 / BUSY
    workers = max(
        FEWEST_WORKERS,
        math.ceil(rate * cpu_ms / 1000 / BUSY),
        math.ceil(asked / MOST_CONNECTIONS),
    )
    usual = SourceConfig("sql", Mark("", 1, 1)).connections
    connections = max(usual, math.ceil(asked / workers))
    return Plan(workers, connections, 2 * connections)


def table() -> str:
    """Return the plans of usual loads, as a table of a page."""
    heads = [f"source takes {ms} ms" for ms in SOURCE_MS]
    lines = [["requests a second", *heads], ["---"] * (1 + len(heads))]
    for rate in RATES:
        plans = (plan(rate, ms) for ms in SOURCE_MS)
        lines.append([f"{rate}", *map(_told, plans)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _told(made: Plan) -> str:
    each = f"{made.workers} × {made.threads}, {made.connections}"
    return f"{each}, {made.at_the_database}"


def main() -> None:
    """Print the plan of one load."""
    parser = argparse.ArgumentParser(prog="python -m bench.capacity")
    parser.add_argument("rate", type=float, help="requests a second")
    parser.add_argument("source_ms", type=float, help="how long the source takes")
    parser.add_argument("cpu_ms", type=float, nargs="?", default=SMALL_MS)
    told = parser.parse_args()
    made = plan(told.rate, told.source_ms, told.cpu_ms)
    print(f"ENCOUNTERS_WORKERS={made.workers}")
    print(f"ENCOUNTERS_THREADS={made.threads}")
    print(f"source.connections: {made.connections}")
    print(f"connections at the database: {made.at_the_database}")


if __name__ == "__main__":
    main()
