"""The report: what was measured, on what, and where each target stands."""

import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from bench import slow as slow_source
from bench.contenders import THREADS, WORKERS
from bench.depth import AROUND
from bench.load import CONNECTIONS, generator
from bench.plots import lines
from bench.remarks import DROPPED, WHY
from bench.results import FLOOR, HAND, OURS, Results, Walk
from bench.run import Plan
from bench.slow import CLIENTS, LATENCY
from bench.targets import targets

TITLES = {
    "read": "Read by id",
    "patient": "A patient's stays, 10 rows",
    "page": "Page of 100 of a unit, with its total",
    "next": "Next page of 100",
    "window": "Two-sided date window, page of 100, with its total",
}
_PACKAGES = (
    *("flask", "gunicorn", "marshmallow", "orjson", "psycopg", "sqlalchemy"),
    *("redis", "authlib", "joserfc"),
)


def write(place: Path, results: Results, plan: Plan, stays: int, database: str) -> None:
    """Write the report, and the plot of the walk beside it."""
    parts = [
        "# How fast it is\n",
        _INTRODUCTION.format(
            stays=stays,
            rounds=plan.rounds,
            seconds=plan.seconds,
            connections=CONNECTIONS,
            workers=WORKERS,
            threads=THREADS,
        ),
        "\n".join(_machine(database)),
        "## Targets\n",
        "\n".join(targets(results)),
        "\n".join(_contenders(results)),
    ]
    for scenario in results.rounds:
        parts += [f"## {TITLES[scenario]}\n", "\n".join(_table(results, scenario))]
    parts += ["\n".join(_counts(results)), "\n".join(_depth(results.walk))]
    parts += ["\n".join(_mapping(results)), "\n".join(_slow(results))]
    parts += ["\n".join(_starts(results)), WHY, DROPPED]
    place.write_text("\n".join(part for part in parts if part), "utf-8")
    if results.walk:
        place.with_name("depth.svg").write_text(_plot(results.walk), "utf-8")


_INTRODUCTION = """\
Written by `make bench`. Everybody answers the same requests on the same PostgreSQL with
{stays:,} stays, with the same token; what they answer was compared first (ids, totals, states,
times, units) and held against the STU3 schema. {rounds} rounds after a warm-up, in turn,
{seconds} s each, {connections} connections; a run with one failed request is no run. CPU is
what the operating system counts for all processes of a contender, the database's apart. Flask
contenders and ours have {workers} processes with {threads} threads under gunicorn. Ratios are
medians of the ratios within a round; figures of one machine say little about another, ratios
travel better. Requests a second swing widely where load and server share the processors.
"""


def _machine(database: str) -> Iterator[str]:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    yield "## Machine and versions\n"
    yield f"- {os.cpu_count()} × {model}, Linux {platform.release()}"
    yield f"- load average before and during the run: {os.getloadavg()[2]:.1f} (15 minutes)"
    yield f"- Python {platform.python_version()}, PostgreSQL {database}"
    yield "- " + ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    tools = [generator(), *map(_told, (["node", "--version"], ["java", "-version"]))]
    yield "- " + ", ".join(filter(None, tools))
    yield ""


def _told(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    text = (done.stdout or done.stderr).splitlines()[0]
    return f"{command[0]} {text.removeprefix('openjdk version ')}"


def _contenders(results: Results) -> Iterator[str]:
    if results.missing:
        yield "Not compared:\n"
        yield from (f"- {name}: {why}" for name, why in results.missing.items())
        yield ""


def _table(results: Results, scenario: str) -> Iterator[str]:
    of_scenario = results.rounds[scenario]
    yield "| | CPU a request, µs | least – most | ÷ floor | ours ÷ | requests/s | database, µs |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, figures in of_scenario.items():
        cpu = [each.cpu for each in figures]
        median = statistics.median
        yield (
            f"| {name} | {median(cpu):,.0f} | {min(cpu):,.0f} – {max(cpu):,.0f}"
            f" | {_ratio(results.ratio(scenario, name, FLOOR))}"
            f" | {_ratio(results.ratio(scenario, OURS, name))}"
            f" | {median(each.per_second for each in figures):,.0f}"
            f" | {median(each.database_cpu for each in figures):,.0f} |"
        )
    yield ""


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _counts(results: Results) -> Iterator[str]:
    if not results.counts:
        return
    names = list(results.counts[0].milliseconds)
    yield "## First page with its total, by how many match\n"
    yield "Milliseconds to the answer, one client, medians of five. The total is exact.\n"
    yield f"| matches | {' | '.join(names)} |"
    yield "|---:|" + "---:|" * len(names)
    for each in results.counts:
        cells = " | ".join(f"{each.milliseconds[name]:,.1f}" for name in names)
        yield f"| {each.total:,} | {cells} |"
    yield ""


def _depth(walk: Walk | None) -> Iterator[str]:
    if walk is None:
        return
    first = walk.by_depth[1]
    yield "## Cost of a page by its depth\n"
    yield (
        f"One walk over {len(walk.pages):,} pages by the links `next`, in one process (the"
        " WSGI call, with PostgreSQL and Redis). Then pages of each depth were asked for"
        f" again, in turn; medians of {AROUND}.\n"
    )
    yield "| page | ms | ÷ first pages | ms of CPU | ÷ first pages |"
    yield "|---:|---:|---:|---:|---:|"
    for depth, cost in walk.by_depth.items():
        yield (
            f"| {depth:,} | {cost.time:.2f} | {cost.time / first.time:.2f}"
            f" | {cost.cpu:.2f} | {cost.cpu / first.cpu:.2f} |"
        )
    yield "\n![Cost by depth](depth.svg)\n"


def _plot(walk: Walk) -> str:
    step = 100

    def smooth(values: Sequence[float]) -> list[tuple[float, float]]:
        starts = range(0, len(values), step)
        return [
            (at + step / 2, statistics.median(values[at : at + step])) for at in starts
        ]

    series = [
        ("time", smooth([cost.time for cost in walk.pages])),
        ("CPU of the service", smooth([cost.cpu for cost in walk.pages])),
    ]
    return lines("A page by its depth", "page", "milliseconds", series)


def _mapping(results: Results) -> Iterator[str]:
    if results.mapped is None:
        return
    yield "## Mapping alone, 100 rows to bytes\n"
    yield "| | CPU a page, µs | ÷ hand-written |"
    yield "|---|---:|---:|"
    yield f"| hand-written dict literal and orjson | {results.mapped.handwritten:,.0f} | 1 |"
    yield f"| ours | {results.mapped.ours:,.0f} | {results.mapped.ratio:.2f} |"
    yield ""


def _slow(results: Results) -> Iterator[str]:
    if results.slow is None:
        return
    slow = results.slow
    yield "## A source that takes its time\n"
    yield (
        f"Two hospitals as one (`bench/slow.yaml`): a database, and an HTTP API that takes"
        f" {LATENCY * 1000:.0f} ms; {WORKERS} processes with"
        f" {slow_source.THREADS} threads, {slow_source.CONNECTIONS} connections each to the"
        f" API. {CLIENTS} clients reading from the API: {slow.per_second:,.0f} requests"
        f" a second of {slow.limit:,.0f} possible, the processors {slow.cpu_share:.0%} busy"
        " with the service.\n"
    )
    yield (
        f"Then the API hangs, and 64 clients go on asking it. Reads from the database:"
        f" {slow.before:,.0f} a second before, {slow.during:,.0f} meanwhile"
        f" ({slow.kept:.2f}).\n"
    )


def _starts(results: Results) -> Iterator[str]:
    yield "## Start and memory\n"
    yield (
        "| | s to the first answer | s to an answer of new workers"
        " | PSS of each process that answers, after the load, MB |"
    )
    yield "|---|---:|---:|---:|"
    order: Callable[[str], int] = [FLOOR, HAND, OURS].index
    known = [name for name in results.starts if name in (FLOOR, HAND, OURS)]
    others = [name for name in results.starts if name not in known]
    for name in [*sorted(known, key=order), *others]:
        start = results.starts[name]
        seconds, again = _median(start.seconds), _median(start.again)
        memory = ", ".join(f"{each:.0f}" for each in start.memory)
        yield f"| {name} | {seconds} | {again} | {memory} |"
    yield (
        "\nThe first is a start of the whole service, from its command on. For the second all"
        " workers were killed, and gunicorn began others: the time to the next answer."
    )
    yield ""


def _median(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f}" if seconds else ""
