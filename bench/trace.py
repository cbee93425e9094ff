"""The path of a request through the code: `make trace`.

Runs a first search, its next page and a read in this process, on the demo-sized hospital of
`tests/replay`, and prints each stage with the file and function that does its work. Then it
counts: files of `app/` and `adapters/` that each request enters, calls from one of these files
to another ("jumps"), lines and modules, and cycles of imports.
"""

import ast
import json
import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from werkzeug.test import Client

from tests.replay import tokens
from tests.replay.deployments import BASE_PATH, HOST, running
from tests.replay.servers import own_servers

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "adapters")
SEARCH = {"patient": "Patient/4", "_sort": "date", "_count": "1"}
OUTLINE_DEPTH = 5
"""How many calls from file to file, one within the other, the outline shows."""


@dataclass
class Trace:
    """The calls of one request that enter another of our files, in order."""

    title: str
    calls: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def files(self) -> set[str]:
        """The files that the request enters."""
        return {place.partition(":")[0] for _, place, _ in self.calls}

    @property
    def jumps(self) -> int:
        """How often a call leads from one of our files to another."""
        return len(self.calls)

    def outline(self) -> Iterator[str]:
        """Yield the upper levels of the calls, each one once in a row."""
        last = ""
        for depth, place, function in self.calls:
            line = f"{'  ' * depth}{place:<38} {function}"
            if depth < OUTLINE_DEPTH and line != last:
                yield line
                last = line


@contextmanager
def traced(title: str) -> Iterator[Trace]:
    """Record the calls that are made meanwhile."""
    trace, entered = Trace(title), list[str | None]()

    def follow(frame: FrameType, event: str, _arg: object) -> None:
        file = frame.f_code.co_filename
        own = _own(file)
        if event == "call":
            above = next((name for name in reversed(entered) if name), None)
            if own and own != above:
                depth = sum(name is not None for name in entered)
                place = f"{own}:{frame.f_code.co_firstlineno}"
                trace.calls.append((depth, place, frame.f_code.co_qualname))
                entered.append(own)
            else:
                entered.append(None)
        elif event == "return" and entered:
            entered.pop()

    sys.setprofile(follow)
    try:
        yield trace
    finally:
        sys.setprofile(None)


def _own(file: str) -> str | None:
    """Return the path of a file of ours below the root."""
    for package in PACKAGES:
        if file.startswith(f"{ROOT}/{package}/"):
            return file.removeprefix(f"{ROOT}/")
    return None


def requests(client: Client) -> Iterator[Trace]:
    """Make the three requests; the first is cold: nothing has been asked before."""
    headers = {"Authorization": f"Bearer {tokens.token('client-1')}"}

    def ask(title: str, method: str, path: str, form: Any = None) -> tuple[Trace, Any]:
        with traced(title) as trace:
            answer = client.open(
                path, method=method, base_url=HOST, headers=headers, data=form
            )
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return trace, json.loads(answer.data)

    path = f"{BASE_PATH}/Encounter/_search"
    trace, bundle = ask("a search, cold", "POST", path, SEARCH)
    yield trace
    links = {link["relation"]: link["url"] for link in bundle["link"]}
    yield ask("page 2", "GET", links["next"].removeprefix(HOST))[0]
    id = bundle["entry"][0]["resource"]["id"]
    yield ask("a read", "GET", f"{BASE_PATH}/Encounter/{id}")[0]


def modules() -> dict[str, Path]:
    """Return our modules by their dotted names; empty files are none."""
    found = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if file.stat().st_size:
                found[name] = file
    return found


def cycles(names: dict[str, Path]) -> list[list[str]]:
    """Return the groups of modules that import each other while they are imported."""
    imports = {name: _imports(names, name) for name in names}
    reached = {name: _reached(imports, name) for name in names}
    groups = {
        tuple(sorted(b for b in names if b in reached[a] and a in reached[b]))
        for a in names
    }
    return [list(group) for group in sorted(groups) if group]


def _imports(names: dict[str, Path], name: str) -> set[str]:
    found = set()
    for node in ast.parse(names[name].read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {each if each in names else node.module for each in inside}
    return (found & names.keys()) - {name}


def _reached(imports: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = list(imports[start])
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += imports[name]
    return found


def report(traces: Sequence[Trace]) -> Iterator[str]:
    """Yield the lines that are printed."""
    yield f"{traces[0].title}: which file calls which, {OUTLINE_DEPTH} levels deep"
    yield from traces[0].outline()
    yield ""
    yield f"{'request':<16}{'files':>8}{'jumps':>8}"
    for trace in traces:
        yield f"{trace.title:<16}{len(trace.files):>8}{trace.jumps:>8}"
    names = modules()
    lines = sum(file.read_text("utf-8").count("\n") for file in names.values())
    yield ""
    yield f"{lines} lines in {len(names)} modules of {' and '.join(PACKAGES)}"
    yield f"cycles of imports: {cycles(names) or 'none'}"


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
