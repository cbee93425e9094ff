"""The path of a request through the code: `make trace`.

Sends searches, a next page and a read in this process, on the demo-sized hospital of
`tests/replay`, and prints which file calls which. Then it counts for each request: files of
`app/` and `adapters/` that it enters, calls from one of these files to another ("jumps"), lines of
these files, and calls of functions, Python's and C's, by the stage that makes them. These numbers
do not depend on the load of the machine; `bench/stages.md` has those of the last change.
"""

import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

from werkzeug.test import Client

from tests.replay import tokens
from tests.replay.deployments import BASE_PATH, HOST, running
from tests.replay.servers import own_servers

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "adapters")
OUTLINE_DEPTH = 5
"""How many calls from file to file, one within the other, the outline shows."""

FRAMEWORK = "Flask, werkzeug, test client"
STAGES: Mapping[str, str] = MappingProxyType(
    {
        "app/middleware.py": "middleware",
        "app/call.py": "middleware",
        "app/observability.py": "metrics and spans",
        "adapters/instrumentation.py": "metrics and spans",
        "app/auth.py": "token",
        "app/jwks.py": "token",
        "app/rate_limit.py": "rate limit",
        "app/audit.py": "audit",
        "app/search/": "parameters and search",
        "adapters/parameters.py": "parameters and search",
        "app/offer.py": "parameters and search",
        "app/paging.py": "page store",
        "app/crypto.py": "page store",
        "adapters/encryption.py": "page store",
        "app/redis_client.py": "page store",
        "app/fhir/": "records to FHIR and JSON",
        "adapters/resilience.py": "breaker",
        "adapters/sql/": "statements and driver",
        "adapters/mapping/": "rows to records",
        "app/": "views and responses",
        "adapters/": "other adapters",
    }
)
"""What a file's calls count for; the first entry that it begins with."""


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

    @property
    def lines(self) -> int:
        """How many lines these files have."""
        return sum((ROOT / file).read_text("utf-8").count("\n") for file in self.files)

    def outline(self) -> Iterator[str]:
        """Yield the upper levels of the calls, each one once in a row."""
        last = ""
        for depth, place, function in self.jumps:
            line = f"{'  ' * depth}{place:<38} {function}"
            if depth < OUTLINE_DEPTH and line != last:
                yield line
                last = line


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
    stages = (stage for begins, stage in STAGES.items() if file.startswith(begins))
    return next(stages, FRAMEWORK)


def _own(file: str) -> str | None:
    """Return the path of a file of ours below the root."""
    for package in PACKAGES:
        if file.startswith(f"{ROOT}/{package}/"):
            return file.removeprefix(f"{ROOT}/")
    return None


def requests(client: Client) -> Iterator[Trace]:
    """Send the requests; only the first is cold: nothing has been requested before."""
    headers = {"Authorization": f"Bearer {tokens.token('client-1')}"}

    def ask(title: str, path: str, form: Any = None) -> tuple[Trace, Any]:
        with traced(title) as trace:
            answer = client.open(
                f"{BASE_PATH}/{path}",
                method="POST" if form else "GET",
                base_url=HOST,
                headers=headers,
                data=form,
            )
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return trace, json.loads(answer.data)

    stays, page = {"patient": "Patient/4"}, {"_count": "100"}
    yield ask("cold", "Encounter/_search", stays)[0]
    trace, bundle = ask("ten stays", "Encounter/_search", stays)
    yield trace
    read = f"Encounter/{bundle['entry'][0]['resource']['id']}"
    for _ in range(2):
        trace, _ = ask("read", read)
    yield trace
    for _ in range(2):
        trace, bundle = ask("page of 100", "Encounter/_search", page)
    yield trace
    links = {link["relation"]: link["url"] for link in bundle["link"]}
    following = links["next"].removeprefix(f"{HOST}{BASE_PATH}/")
    for _ in range(2):
        trace, _ = ask("next page", following)
    yield trace


def report(traces: Sequence[Trace]) -> Iterator[str]:
    """Yield the lines that are printed."""
    yield "The first search: which file calls which"
    yield from traces[0].outline()
    yield ""
    yield f"| | {' | '.join(trace.title for trace in traces)} |"
    yield f"|---|{'---:|' * len(traces)}"
    for name, counted in (
        ("files", [len(trace.files) for trace in traces]),
        ("jumps", [len(trace.jumps) for trace in traces]),
        ("lines of these files", [trace.lines for trace in traces]),
    ):
        yield _row(name, counted)
    for stage in dict.fromkeys((FRAMEWORK, *STAGES.values())):
        counted = [trace.calls[stage] for trace in traces]
        if any(counted):
            yield _row(f"calls: {stage}", counted)
    yield _row("**calls**", [trace.calls.total() for trace in traces])


def _row(name: str, numbers: Sequence[int]) -> str:
    return f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |"


def main() -> None:
    """Print the report."""
    logging.disable()
    with (
        tempfile.TemporaryDirectory() as directory,
        own_servers() as servers,
        running(servers, Path(directory)) as deployments,
    ):
        application = deployments.application("sqlite")
        for line in report(list(requests(Client(application)))):
            print(line)


if __name__ == "__main__":
    main()
