"""The report: what was measured, on what, and where each target stands."""

import os
import platform
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from bench.contenders import THREADS, WORKERS
from bench.depth import AROUND
from bench.load import CONNECTIONS, generator
from bench.run import OURS, PLAIN, Plan, Results

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "read": "Read by id",
        "patient": "A patient's stays, 10 rows",
        "page": "Page of 100 of a unit, with its total",
        "next": "Next page of 100",
    }
)
_LIMITS = {PLAIN: 1.5, "node ×2": 1.1, "hapi": 1.0}
_PACKAGES = (
    *("flask", "gunicorn", "marshmallow", "orjson", "psycopg", "sqlalchemy"),
    *("redis", "authlib", "joserfc"),
)
_DEPTH_LIMIT, _MEMORY_LIMIT = 1.1, 60

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
- `handwritten`: the plain view, written for this one hospital: psycopg, a dict literal, orjson;
  no token, no cursor.
- `dutiful`: the same with token, pages in Redis, access line and metrics, in the shortest way.
- `before`: the build before the rebuild, on its own worker.
- `node`, `node ×2`: node-fhir-server-core in one and two processes.
- `hapi`: HAPI FHIR's plain server.
"""


def write(place: Path, results: Results, plan: Plan, stays: int, database: str) -> None:
    """Write the report."""
    introduction = _INTRODUCTION.format(
        stays=stays,
        rounds=plan.rounds,
        seconds=plan.seconds,
        connections=CONNECTIONS,
        workers=WORKERS,
        threads=THREADS,
    )
    parts = ["# How fast it is\n", introduction, *_machine(database)]
    parts += ["## Targets\n", *_targets(results)]
    if results.missing:
        parts += ["Not compared:\n"]
        parts += [f"- {name}: {why}" for name, why in results.missing.items()]
        parts += [""]
    for scenario in results.rounds:
        parts += [f"## {TITLES[scenario]}\n", *_table(results, scenario)]
    parts += [*_depth(results), *_memory(results)]
    place.write_text("\n".join(parts), "utf-8")


def _machine(database: str) -> Iterator[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (
        line.partition(":")[2].strip()
        for line in lines
        if line.startswith("model name")
    )
    model = next(models, platform.machine())
    yield "## Machine and versions\n"
    yield f"- {os.cpu_count()} × {model}, Linux {platform.release()}"
    yield f"- load average before and during the run: {os.getloadavg()[2]:.1f} (15 minutes)"
    yield f"- Python {platform.python_version()}, PostgreSQL {database}"
    yield "- " + ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    tools = [
        generator(),
        _first_line("node", "--version"),
        _first_line("java", "-version"),
    ]
    yield "- " + ", ".join(filter(None, tools))
    yield ""


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return f"{command[0]} {(done.stdout or done.stderr).splitlines()[0]}"


def _targets(results: Results) -> Iterator[str]:
    yield "| what | target | measured | |"
    yield "|---|---:|---:|---|"
    for scenario in TITLES:
        for to, most in _LIMITS.items():
            limit = 1.3 if (scenario, to) == ("read", "hapi") else most
            if (ratio := results.ratio(scenario, to)) is not None:
                yield _target(f"{scenario}: CPU ÷ {to}", ratio, limit)
    if results.walk:
        deepest = max(results.walk)
        ratio = results.walk[deepest].time / results.walk[1].time
        yield _target(f"page {deepest:,} ÷ first: time", ratio, _DEPTH_LIMIT)
    if memory := results.memory.get(OURS):
        yield _target("memory of a worker, MB", max(memory), _MEMORY_LIMIT)
    yield ""


def _target(what: str, value: float, most: float) -> str:
    shown = f"{value:.2f}" if value < 10 else f"{value:.0f}"
    return f"| {what} | ≤ {most:g} | {shown} | {'met' if value <= most else 'missed'} |"


def _table(results: Results, scenario: str) -> Iterator[str]:
    yield "| | CPU a request, µs | least – most | ours ÷ | requests/s | database, µs |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, figures in results.rounds[scenario].items():
        cpu = [each.cpu for each in figures]
        ratio = results.ratio(scenario, name)
        median = statistics.median
        yield (
            f"| {name} | {median(cpu):,.0f} | {min(cpu):,.0f} – {max(cpu):,.0f}"
            f" | {'' if ratio is None else f'{ratio:.2f}'}"
            f" | {median(each.per_second for each in figures):,.0f}"
            f" | {median(each.database_cpu for each in figures):,.0f} |"
        )
    yield ""


def _depth(results: Results) -> Iterator[str]:
    if not results.walk:
        return
    first = results.walk[1]
    yield "## Cost of a page by its depth\n"
    yield (
        "One walk by the links `next`, in one process (the WSGI call, with PostgreSQL and"
        f" Redis). Then pages of each depth were got again, in turn; medians of {AROUND}.\n"
    )
    yield "| page | ms | ÷ first pages | ms of CPU | ÷ first pages |"
    yield "|---:|---:|---:|---:|---:|"
    for depth, cost in results.walk.items():
        yield (
            f"| {depth:,} | {cost.time:.2f} | {cost.time / first.time:.2f}"
            f" | {cost.cpu:.2f} | {cost.cpu / first.cpu:.2f} |"
        )
    yield ""


def _memory(results: Results) -> Iterator[str]:
    yield "## Memory\n"
    yield "| | PSS of each process that answers, after the load, MB |"
    yield "|---|---:|"
    for name, memory in results.memory.items():
        yield f"| {name} | {_joined(memory)} |"
    yield ""


def _joined(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in values)
