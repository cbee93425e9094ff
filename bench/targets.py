"""Where each target stands."""

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.results import DUTY, FLOOR, HAND, OURS, Results

NODE, HAPI = "node ×2", "hapi"
COMPARED = (OURS, HAND, DUTY)
_STARTS = {
    "seconds": "start to first answer",
    "again": "a new worker to its first answer",
}


class Ratio(NamedTuple):
    """A target: ours to another's CPU in one scenario, at most so much."""

    scenario: str
    to: str
    most: float


RATIOS = (
    Ratio("read", FLOOR, 1.7),
    Ratio("read", HAND, 1.3),
    Ratio("read", NODE, 0.6),
    Ratio("read", HAPI, 1.0),
    Ratio("patient", FLOOR, 2.5),
    Ratio("patient", HAND, 1.5),
    Ratio("patient", NODE, 0.7),
    Ratio("patient", HAPI, 1.0),
    Ratio("page", FLOOR, 5.0),
    Ratio("page", HAND, 1.5),
    Ratio("page", NODE, 0.8),
    Ratio("page", "node ×2, own classes", 0.12),
    Ratio("page", HAPI, 1.0),
    Ratio("next", FLOOR, 5.0),
)


def targets(results: Results) -> Iterator[str]:
    """Yield the lines of the table, with where the views written by hand stand."""
    yield "| what | target | measured | | handwritten | dutiful |"
    yield "|---|---:|---:|---|---:|---:|"
    for ratio in RATIOS:
        what = f"{ratio.scenario}: CPU ÷ {ratio.to}"
        found, *hand = (
            results.ratio(ratio.scenario, name, ratio.to) for name in COMPARED
        )
        yield _line(what, found, most=ratio.most, hand=hand)
    yield _line(
        "mapping 100 rows ÷ hand-written",
        results.mapped and results.mapped.ratio,
        most=1.5,
    )
    if results.walk:
        by_depth = results.walk.by_depth
        deepest = max(by_depth)
        first, last = by_depth[1], by_depth[deepest]
        yield _line(f"page {deepest:,} ÷ first: time", last.time / first.time, most=1.1)
        yield _line(f"page {deepest:,} ÷ first: CPU", last.cpu / first.cpu, most=1.1)
    slow = results.slow
    yield _line(
        "64 clients on a 200 ms source, ÷ possible",
        slow and slow.per_second / slow.limit,
        least=0.8,
    )
    yield _line("reads kept while another source hangs", slow and slow.kept, least=0.6)
    memory, *hand = (
        max(results.starts[name].memory, default=None) for name in COMPARED
    )
    yield _line("memory of a worker, MB", memory, most=55, hand=hand)
    for field, what in _STARTS.items():
        found, *hand = (_start(results, name, field) for name in COMPARED)
        yield _line(f"{what} ÷ floor", found, most=1.6, hand=hand)
    yield ""


def _start(results: Results, name: str, what: str) -> float | None:
    seconds: Sequence[float] = getattr(results.starts[name], what)
    floor: Sequence[float] = getattr(results.starts[FLOOR], what)
    if not seconds or not floor:
        return None
    return statistics.median(seconds) / statistics.median(floor)


def _line(
    what: str,
    found: float | None,
    most: float | None = None,
    least: float | None = None,
    hand: Sequence[float | None] = (None, None),
) -> str:
    beside = " | ".join("" if each is None else _written(each) for each in hand)
    target = f"≤ {most:g}" if most is not None else f"≥ {least:g}"
    if found is None:
        return f"| {what} | {target} | | not measured | {beside} |"
    kept = found <= most if most is not None else found >= (least or 0)
    stands = "kept" if kept else "missed"
    return f"| {what} | {target} | {_written(found)} | {stands} | {beside} |"


def _written(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
