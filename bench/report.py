"""The report: what was measured, on what, and where each target stands."""

import os
import platform
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from bench.contenders import THREADS, WORKERS
from bench.load import CONNECTIONS, Figure, generator
from bench.run import OURS, Plan, Results
from bench.scenarios import NAMES, SHAPES
from bench.walk import AROUND

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "read": "Read by id",
        "patient": "A patient's stays, 10 rows",
        "page": "Page of 100 of a unit, with its total",
        "next": "Next page of 100",
        "blend": "Blend, warm",
        "blend, cold": "Blend, each search once",
        "names": "Patients by name",
    }
)
OTHERS = ("dutiful", "node ×2", "hapi", "before")
LIMITS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "read": (1.35, 0.9, 1.0),
        "patient": (1.45, 1.0, 0.6),
        "page": (1.25, 0.85, 0.17),
        "next": (1.25,),
        "blend": (1.3, 0.95, 0.6),
    }
)
"""The largest ratio to each of the others."""

_PACKAGES = (
    *("flask", "gunicorn", "marshmallow", "orjson", "psycopg", "sqlalchemy"),
    *("redis", "authlib", "joserfc"),
)
_DEEP, _DEPTH_LIMIT, _MEMORY_LIMIT = 1_000, 1.1, 58

_INTRODUCTION = """\
Written by `make bench`. Every contender answers the same requests on the same PostgreSQL with
{stays:,} stays, with the same token. Their answers were compared first (ids, totals, states, times,
units) and validated against the STU3 schema. {rounds} rounds after a warm-up, in turn, {seconds} s
each, {connections} connections; one failed request makes a run invalid. CPU is what the operating
system counts for all processes of a contender; that of the database is separate. All Flask
contenders run on stock gunicorn (`gthread`) with {workers} processes of {threads} threads.
Ratios are medians of the ratios within a round. Absolute figures depend on the machine,
ratios less so.
[stages.md](stages.md) shows where the CPU of a request goes.

- `floor`: bare Flask with constant bodies.
- `dutiful`: written for this one hospital: psycopg, a dict literal, orjson; with token, pages in
  Redis, access line and metrics, in the shortest way.
- `before`: an earlier build of the service (`--before REV`).
- `node ×2`: node-fhir-server-core in two processes.
- `hapi`: HAPI FHIR's plain server.
"""

_BLEND = """\
The blend has the searches below, each about a stay drawn from the data, with `_count=10` if they
name no other. All contenders answer all of them. Cold is each search once, one after the other,
before anything else, with new values; warm is the load of the other scenarios, with {count} searches
that are repeated. Peers have no patients: only the service answers `{names}`.

"""


def write(place: Path, results: Results, plan: Plan, stays: int, machine: str) -> None:
    """Write the report."""
    introduction = _INTRODUCTION.format(
        stays=stays,
        rounds=plan.rounds,
        seconds=plan.seconds,
        connections=CONNECTIONS,
        workers=WORKERS,
        threads=THREADS,
    )
    parts = ["# How fast it is\n", introduction, machine]
    parts += ["## Our CPU of a request, divided by that of others\n", *_ratios(results)]
    if results.missing:
        parts += ["Not compared:\n"]
        parts += [f"- {name}: {why}" for name, why in results.missing.items()]
        parts += [""]
    for scenario, title in TITLES.items():
        if scenario in results.rounds:
            parts += [f"## {title}\n", *_table(results, scenario)]
    parts += ["## The searches of the blend\n"]
    parts += [_BLEND.format(count=500, names=NAMES)]
    parts += [f"- {name}: `{form}`" for name, form in SHAPES.items()]
    parts += ["", *_depth(results), *_memory(results), *_workers(results)]
    place.write_text("\n".join(parts), "utf-8")


def machine(database: str) -> str:
    """Return what the report says of the machine; call it before the run."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    model = names[0] if names else platform.machine()
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    tools = [
        generator(),
        _first_line("node", "--version"),
        _first_line("java", "-version"),
    ]
    return f"""\
## Machine and versions

- {os.cpu_count()} × {model}, Linux {platform.release()}
- load average before the run: {loads} (1, 5 and 15 minutes)
- Python {platform.python_version()}, PostgreSQL {database}
- {", ".join(f"{name} {version(name)}" for name in _PACKAGES)}
- {", ".join(filter(None, tools))}
"""


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return f"{command[0]} {(done.stdout or done.stderr).splitlines()[0]}"


def _ratios(results: Results) -> Iterator[str]:
    yield "In brackets the target.\n"
    yield f"| CPU a request | {' | '.join(f'÷ {other}' for other in OTHERS)} |"
    yield f"|---|{'---:|' * len(OTHERS)}"
    for scenario, title in TITLES.items():
        limits = dict(zip(OTHERS, LIMITS.get(scenario, ()), strict=False))
        cells = [_ratio(results.ratio(scenario, to), limits.get(to)) for to in OTHERS]
        yield f"| {title} | {' | '.join(cells)} |"
    yield ""
    if _DEEP in results.depths:
        ratio = _ratio(results.depths[_DEEP] / results.depths[1], _DEPTH_LIMIT)
        yield f"- page {_DEEP:,} ÷ first pages, time: {ratio}"
    if memory := results.memory.get(OURS):
        yield f"- memory of a worker: {max(memory):.0f} MB (≤ {_MEMORY_LIMIT})"
    yield ""


def _ratio(value: float | None, most: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2f} (≤ {most:g})" if most else f"{value:.2f}"


def _table(results: Results, scenario: str) -> Iterator[str]:
    yield "| | CPU a request, µs | least – most | ours ÷ | requests/s | database, µs |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, figures in results.rounds[scenario].items():
        cpu = [each.cpu for each in figures]
        yield (
            f"| {name} | {statistics.median(cpu):,.0f} | {min(cpu):,.0f} – {max(cpu):,.0f}"
            f" | {_ratio(results.ratio(scenario, name), None)}"
            f" | {statistics.median(each.per_second for each in figures):,.0f}"
            f" | {statistics.median(each.database_cpu for each in figures):,.0f} |"
        )
    yield ""


def _depth(results: Results) -> Iterator[str]:
    if not results.depths:
        return
    yield "## Cost of a page by its depth\n"
    yield (
        "One walk by the links `next`, without other load. Then pages of each depth were"
        f" requested again, in turn; medians of {AROUND}.\n"
    )
    yield "| page | ms | ÷ first pages |"
    yield "|---:|---:|---:|"
    for depth, cost in results.depths.items():
        yield f"| {depth:,} | {cost:.2f} | {cost / results.depths[1]:.2f} |"
    yield ""


def _memory(results: Results) -> Iterator[str]:
    yield "## Memory\n"
    yield "| | PSS of each process that answers, after the load, MB |"
    yield "|---|---:|"
    for name, memory in results.memory.items():
        yield f"| {name} | {', '.join(f'{value:.0f}' for value in memory)} |"
    yield ""


def _workers(results: Results) -> Iterator[str]:
    yield "## Workers\n"
    yield "Requests a second, and the database's share of the CPU of both. Load generator,"
    yield "Redis and database run on the same cores.\n"
    heads = [f"{TITLES[name]} | database" for name in results.workers]
    yield f"| workers | {' | '.join(heads)} |"
    yield f"|---:|{'---:|---:|' * len(heads)}"
    for count in next(iter(results.workers.values()), ()):
        cells = [_throughput(by[count]) for by in results.workers.values()]
        yield f"| {count} | {' | '.join(cells)} |"
    yield ""


def _throughput(figures: list[Figure]) -> str:
    rate = statistics.median(each.per_second for each in figures)
    shares = [
        each.database_cpu / (each.cpu + each.database_cpu)
        for each in figures
        if each.cpu + each.database_cpu
    ]
    share = statistics.median(shares) if shares else 0
    return f"{rate:,.0f} | {share:.0%}"
