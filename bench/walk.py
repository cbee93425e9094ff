"""The cost of a page by its depth: a walk by the links, then pages of each depth again."""

import statistics
import time
from collections.abc import Mapping, Sequence

import orjson

from bench.contenders import BASE_URL, Running
from bench.load import Load, LoadError
from bench.scenarios import Call

AROUND = 51
"""How many pages around a depth are requested again."""


def timed(load: Load, running: Running, address: str) -> tuple[float, bytes]:
    """Return the milliseconds of a page, and its body. Raises LoadError."""
    began = time.perf_counter()
    status, body = load.ask(running, Call(f"/fhir/v3/{address}"))
    took = time.perf_counter() - began
    if status != 200:
        raise LoadError(f"{status} on the way: {body[:200]!r}")
    return took * 1000, body


def walk(load: Load, running: Running, first: str, pages: int) -> Sequence[str]:
    """Follow `next` for so many pages and return the address of each."""
    addresses = [first]
    while len(addresses) < pages:
        bundle = orjson.loads(timed(load, running, addresses[-1])[1])
        links = {link["relation"]: link["url"] for link in bundle["link"]}
        if "next" not in links:
            break
        addresses.append(links["next"].removeprefix(f"{BASE_URL}/"))
    return addresses


def in_turn(
    load: Load, running: Running, walked: Sequence[str], depths: Sequence[int]
) -> Mapping[int, float]:
    """Request pages of a walk again, one of each depth in turn; return medians by depth.

    A machine that is faster for a while is so for all of them. The first page is left out: it
    counts.
    """
    around = min(AROUND, len(walked) - 1)
    costs: dict[int, list[float]] = {d: [] for d in depths if d <= len(walked)}
    for number in range(around):
        for depth, of_depth in costs.items():
            begins = max(1, min(depth - around // 2, len(walked) - around))
            of_depth.append(timed(load, running, walked[begins + number])[0])
    return {depth: statistics.median(of_depth) for depth, of_depth in costs.items()}
