"""Calls per page of an HTTP API, and how long pages take: `python -m bench.calls`.

An API of plain lists answers after a latency (200 ms unless `--latency` says another). Each
request is sent several times; the median counts. The service itself, Redis and the network
are no part of it: its report says what they cost.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple

from adapters.contract import Adapter, SearchQuery
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from tests.hospital_http import serving
from tests.plain_api import Plain, plain_mapping_text, plain_rows
from toolkit.contract.harness import STAY, ask
from toolkit.contract.hospital import StayRow

TIMES = 5
STAYS = 200
LAST = {"asc": False, "desc": False}
HIGH = {"asc": False, "desc": True}


class Case(NamedTuple):
    """A variant of the API, and what is requested of it."""

    title: str
    api: Plain
    requests: Mapping[str, Callable[[], object]]


def starts() -> list[str | None]:
    """Return the starts of stays; every tenth has none."""
    first = datetime(2024, 1, 1)  # noqa: DTZ001 - as the API writes it
    return [
        (first + timedelta(hours=n)).isoformat() if n % 10 else None
        for n in range(STAYS)
    ]


def first_page(adapter: Adapter, query: SearchQuery) -> None:
    """Search, and count where the page has no total, as the service does."""
    page = adapter.search(query)
    if page.more and page.total is None:
        adapter.count(query)


def requests_of(adapter: Adapter) -> Mapping[str, Callable[[], object]]:
    """Return what is measured."""
    query = ask(count=10)
    following = replace(query, after=adapter.search(query).last)
    return {
        "first page": lambda: first_page(adapter, query),
        "next page": lambda: adapter.search(following),
        "read": lambda: adapter.read(STAY, "1"),
    }


@contextmanager
def opened(directory: Path, nulls: str, first: Mapping[str, bool]) -> Iterator[Case]:
    """Yield the API, which puts rows without a start at their place."""
    rows = [StayRow(n, 1, began=start) for n, start in enumerate(starts(), 1)]
    api, file = Plain(plain_rows(rows), first), directory / "plain.yaml"
    file.write_text(plain_mapping_text(nulls=nulls), encoding="utf-8")
    with serving(api) as url:
        adapter = HttpAdapter(load_mapping(file, {"PAS_URL": url}))
        yield Case(f"rows without a start {nulls}", api, requests_of(adapter))
        adapter.close()


def measure(case: Case, latency: float) -> Iterator[str]:
    """Yield a row of the table for each request."""
    case.api.delay = lambda: time.sleep(latency)
    for name, request in case.requests.items():
        seconds, calls = [], 0
        for _ in range(TIMES):
            case.api.requests.clear()
            began = time.perf_counter()
            request()
            seconds.append(time.perf_counter() - began)
            calls = len(case.api.requests)
        yield f"| {case.title} | {name} | {calls} | {median(seconds) * 1000:.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=200, help="milliseconds")
    latency = parser.parse_args().latency / 1000
    print("| API | request | calls | ms |\n|---|---|---|---|")
    for nulls, first in (("last", LAST), ("high", HIGH)):
        with (
            tempfile.TemporaryDirectory() as directory,
            opened(Path(directory), nulls, first) as case,
        ):
            print("\n".join(measure(case, latency)))


if __name__ == "__main__":
    main()
