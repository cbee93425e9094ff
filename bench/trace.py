"""The path of a request through the code: `make trace`.

Sends searches, a next page and a read in this process, on the hospital of the contract suite and
more stays, and prints which file calls which. Then it counts for each request: files of `app/` and
`adapters/` that it enters, calls from one of these files to another ("jumps"), lines of these
files, and calls of functions, Python's and C's, by the stage that makes them. These numbers do not
depend on the load of the machine; `bench/stages.md` has those of the last change. The last line
names modules that import each other in a circle, imports in functions included.
"""

import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
from werkzeug.test import Client

from tests.app import provider
from tests.hospital_http import answer, serving
from tests.live import ROOT
from tests.redis_server import started_redis
from tests.serving import BASE_URL, serve
from toolkit.contract.hospital import EDGES, StayRow

PACKAGES = ("app/", "adapters/")
OURS = ("app", "adapters", "toolkit", "explorer", "demo")
OUTLINE_DEPTH = 5
"""How many calls from file to file, one within the other, the outline shows."""

STAGES: Mapping[str, tuple[str, ...]] = {
    "middleware": ("app/middleware", "app/call"),
    "metrics and spans": ("app/observability", "adapters/instrumentation"),
    "token": ("app/auth", "app/jwks"),
    "rate limit": ("app/rate_limit",),
    "search": ("app/search/", "app/offer", "adapters/parameters"),
    "page store": ("app/paging", "app/crypto", "app/redis_client"),
    "records to FHIR and JSON": ("app/fhir/",),
    "breaker": ("adapters/resilience",),
    "statements and driver": ("adapters/sql/",),
    "rows to records": ("adapters/mapping/",),
    "views and others": PACKAGES,
    "Flask, werkzeug, test client": ("",),
}
"""What the calls of a file count for: the first stage that has what it begins with."""

STAYS, PAGE = {"patient": "Patient/4"}, {"_count": "100"}
MORE = (
    StayRow(
        1000 + n, 4 if n < 4 else 1, began=f"2023-05-01 {n // 60:02}:{n % 60:02}:00"
    )
    for n in range(200)
)
HOSPITAL = replace(EDGES, stays=(*EDGES.stays, *MORE))
"""So many stays that there is a page after one of 100."""


@dataclass
class Trace:
    """The calls of one request: those that enter another of our files, all by stage."""

    title: str
    jumps: list[tuple[int, str, str]] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def files(self) -> set[str]:
        """The files that the request enters."""
        return {place.partition(":")[0] for _, place, _ in self.jumps}

    def outline(self) -> Iterator[str]:
        """Yield the upper levels of the calls."""
        for depth, place, function in self.jumps:
            if depth < OUTLINE_DEPTH:
                yield f"{'  ' * depth}{place:<38} {function}"


@contextmanager
def traced(title: str) -> Iterator[Trace]:
    """Record the calls that are made meanwhile."""
    trace, stack = Trace(title), [(0, "")]

    def follow(frame: FrameType, event: str, _arg: object) -> None:
        depth, above = stack[-1]
        if event == "call":
            file = _own(frame.f_code.co_filename) or above
            if file != above:
                place = f"{file}:{frame.f_code.co_firstlineno}"
                trace.jumps.append((depth, place, frame.f_code.co_qualname))
                depth += 1
            stack.append((depth, file))
            trace.calls[stage_of(file)] += 1
        elif event == "c_call":
            trace.calls[stage_of(above)] += 1
        elif event == "return" and len(stack) > 1:
            stack.pop()

    sys.setprofile(follow)
    try:
        yield trace
    finally:
        sys.setprofile(None)


def stage_of(file: str) -> str:
    """Return the stage for which the calls of a file of ours count."""
    return next(name for name, begins in STAGES.items() if file.startswith(begins))


def _own(file: str) -> str | None:
    """Return the path of a file of ours below the root."""
    path = file.removeprefix(f"{ROOT}/")
    return path if path != file and path.startswith(PACKAGES) else None


def traces(client: Client) -> Iterator[Trace]:
    """Yield the first search, then requests that were sent before."""
    yield sent(client, "cold", "Encounter/_search", STAYS)[0]
    trace, stays = sent(client, "ten stays", "Encounter/_search", STAYS)
    yield trace
    read = f"Encounter/{stays['entry'][0]['resource']['id']}"
    sent(client, "", "Encounter/_search", PAGE)
    trace, page = sent(client, "page of 100", "Encounter/_search", PAGE)
    yield trace
    links = {link["relation"]: link["url"] for link in page["link"]}
    following = links["next"].removeprefix(f"{BASE_URL}/")
    for title, path in (("next page", following), ("read", read)):
        sent(client, title, path)
        yield sent(client, title, path)[0]


def sent(
    client: Client, title: str, path: str, form: Mapping[str, str] | None = None
) -> tuple[Trace, Any]:
    """Send a request and return its trace and the body of the response."""
    headers = {"Authorization": provider.bearer(provider.sign())}
    how: dict[str, Any] = {"method": "POST" if form else "GET", "data": form}
    url = BASE_URL.removesuffix("/fhir/v3")
    with traced(title) as trace:
        response = client.open(f"/fhir/v3/{path}", base_url=url, headers=headers, **how)
    assert response.status_code == 200, response.get_data(as_text=True)
    return trace, json.loads(response.data)


def report(requests: Sequence[Trace]) -> Iterator[str]:
    """Yield the lines that are printed."""
    yield "The first search: which file calls which"
    yield from (line for line, _ in groupby(requests[0].outline()))
    yield f"\n| | {' | '.join(trace.title for trace in requests)} |"
    yield f"|---|{'---:|' * len(requests)}"
    yield _row("files", [len(trace.files) for trace in requests])
    yield _row("jumps", [len(trace.jumps) for trace in requests])
    texts = [[(ROOT / file).read_text("utf-8") for file in t.files] for t in requests]
    yield _row("lines of these files", ["".join(own).count("\n") for own in texts])
    for stage in STAGES:
        yield _row(f"calls: {stage}", [trace.calls[stage] for trace in requests])
    yield _row("**calls**", [trace.calls.total() for trace in requests])


def _row(name: str, numbers: Sequence[int]) -> str:
    return f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |"


def circle_of_imports() -> Sequence[str]:
    """Return modules that import each other in a circle; imports for types do not count."""
    graph = grimp.build_graph(*OURS, exclude_type_checking_imports=True)
    imported = {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
    }
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        circle: Sequence[str] = error.args[1]
        return circle
    return ()


def main() -> None:
    """Print the report."""
    logging.disable()
    with (
        tempfile.TemporaryDirectory() as directory,
        started_redis() as redis,
        serving(answer(provider.key_set(provider.rsa()))) as keys,
    ):
        served = serve(HOSPITAL, Path(directory), redis.url, KEY_SET_URL=keys)
        print("\n".join(report([*traces(Client(served.app))])))
    print("\nCircle of imports:", " → ".join(circle_of_imports()) or "none")


if __name__ == "__main__":
    main()
