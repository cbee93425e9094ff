"""A guide followed to the letter: its files written, its commands typed, in a fresh directory.

What a block is, the line above it says: "Save as `x`:", "Add to `x`:" and "Change in `x`:"
(a diff) make a file; "A slip in `x`:" is a diff that holds for the next commands alone. A
console block is commands and what they print, "…" being lines left out. `encounters demo`
and `python -m demo.http` go on, as in a terminal of their own, until the next one starts.
"""

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import Block, every_block
from tests.live import HOST, ROOT, free_ports, listens, wait_until

PORTS = (8000, 8001, 8002, 8003, 8010)
"""What the page names, and those between; each stands for a port that nobody has."""

INCLUDED = "--8<--"
"""What begins a block that shows a file of docs/."""

MAKES = re.compile(r"(Save as|Add to|Change in|A slip in) `([\w./-]+)`:$")

_STAMP = re.compile(r"\b[a-z2-7]{32}\b")
_UP = "Ctrl-C stops all of it."
_DONE = "-- done --"
_SECONDS = 90


class Typed(NamedTuple):
    """A console block as the page has it and as it was; ids that are drawn are the page's."""

    page: Path
    block: Block
    shown: str
    was: str


def follow(pages: Iterable[Path], directory: Path) -> list[Typed]:
    """Follow pages in a directory that looks like the project's; return what was typed."""
    typed, slips = [], list[tuple[Path, str]]()
    (directory / "docs").symlink_to(ROOT / "docs")
    with _Terminal(directory).opened() as terminal:
        page_blocks = [(p, b) for p in pages for b in every_block(p.read_text("utf-8"))]
        for page, block in page_blocks:
            if block.language == "console":
                was = "".join(map(terminal.type, _commands(block.text)))
                shown = block.text
                typed.append(Typed(page, block, shown, _as_shown(was, shown)))
                while slips:
                    file, text = slips.pop()
                    file.write_text(text, "utf-8")
            elif not block.text.startswith(INCLUDED):
                found = MAKES.search(block.above)
                assert found, f"{page.name}:{block.line}: what is this?"
                file = terminal.path(found.group(2))
                if found.group(1) == "A slip in":
                    slips.append((file, file.read_text("utf-8")))
                _make(found.group(1), file, block.text)
    return typed


def _commands(text: str) -> list[str]:
    return re.findall(r"^\$ (.*(?:\\\n.*)*)$", text, re.MULTILINE)


def _make(how: str, file: Path, text: str) -> None:
    if how == "Save as":
        file.write_text(text, "utf-8")
    elif how == "Add to":
        file.write_text(file.read_text("utf-8") + text, "utf-8")
    else:
        old = "".join(line[1:] for line in text.splitlines(True) if line[0] in " -")
        new = "".join(line[1:] for line in text.splitlines(True) if line[0] in " +")
        before = file.read_text("utf-8")
        assert before.count(old) == 1, f"{file.name} does not hold this once:\n{old}"
        file.write_text(before.replace(old, new), "utf-8")


def _as_shown(was: str, shown: str) -> str:
    """Return what was printed, with the ids of the page, and abridged as it is there."""
    was = _with_ids(was, shown)
    abridged = re.escape(shown).replace("…\\\n", "(?:.*\n)+")
    return shown if re.fullmatch(abridged, was) else was


def _with_ids(was: str, shown: str) -> str:
    drawn = dict.fromkeys(_STAMP.findall(was))
    written = dict.fromkeys(_STAMP.findall(shown))
    if len(drawn) == len(written):
        for own, theirs in zip(drawn, written, strict=True):
            was = was.replace(own, theirs)
    return was


class _Terminal:
    """A shell in a directory with `.venv/bin/activate`, and what goes on beside it."""

    def __init__(self, directory: Path) -> None:
        self._root = directory
        first = free_ports(len(PORTS))
        self._ports = dict(zip(PORTS, range(first, first + len(PORTS)), strict=True))
        self._running: list[str] = []
        _make_scripts(directory / ".venv" / "bin", self._ports)

    @contextmanager
    def opened(self) -> "Iterator[_Terminal]":
        """Open the shell; what was started in it ends with the block."""
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=self._root,
            env=_environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield self
        finally:
            for name in [*self._running]:
                self._end(name)
            self._shell.communicate("exit\n", timeout=_SECONDS)

    def path(self, name: str) -> Path:
        """Return the path of a file as seen from where the shell is."""
        return Path(self._say("pwd").strip()) / name

    def type(self, command: str) -> str:
        """Type a command; return it with its prompt and what it printed."""
        sent = self._there(command)
        if "demo.http" in command:
            printed = self._serve(sent, "http", self._ports[8010])
        elif "encounters demo" in command:
            printed = self._serve(sent, "demo", self._ports[8000])
        else:
            printed = self._say(sent)
        return f"$ {command}\n{self._here(printed)}"

    def _serve(self, command: str, name: str, port: int) -> str:
        """Start what goes on; return what it says, nothing of what it logs."""
        if name in self._running:
            self._end(name)
        log = self._root / f"{name}.log"
        log.write_text("", "utf-8")
        self._say(f"{command} >{shlex.quote(str(log))} 2>&1 & {name}=$!")
        self._running.append(name)
        is_demo = name == "demo"

        def settled() -> bool:
            up = _UP in log.read_text() if is_demo else listens(port)
            return up or not self._goes_on(name)

        wait_until(settled, log, _SECONDS)
        if not self._goes_on(name):
            self._end(name)
        return log.read_text() if is_demo else ""

    def _goes_on(self, name: str) -> bool:
        return bool(self._say(f"jobs -rp | grep -x ${name}").strip())

    def _end(self, name: str) -> None:
        self._running.remove(name)
        self._say(f"kill ${name} 2>/dev/null; wait ${name}")

    def _say(self, command: str) -> str:
        """Run a command in the shell and return what it prints."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\necho; echo '{_DONE}'\n")
        self._shell.stdin.flush()
        late = threading.Timer(_SECONDS, self._shell.kill)
        late.start()
        try:
            lines = iter(self._shell.stdout.readline, "")
            printed = "".join(iter(lambda: next(lines, f"{_DONE}\n"), f"{_DONE}\n"))
        finally:
            late.cancel()
        # The line that was broken off before the mark; jobs speak up unasked.
        kept = re.sub(r"\n\Z", "", printed)
        return kept if not kept or kept.endswith("\n") else f"{kept}\n"

    def _there(self, text: str) -> str:
        for port, meant in self._ports.items():
            text = text.replace(f"{HOST}:{port}", f"{HOST}:{meant}")
        return text

    def _here(self, text: str) -> str:
        for port, meant in self._ports.items():
            text = text.replace(f"{HOST}:{meant}", f"{HOST}:{port}")
        return text


def _environ() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ENCOUNTERS_", "PAS_"))
    }
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def _make_scripts(folder: Path, ports: dict[int, int]) -> None:
    folder.mkdir(parents=True)
    python = shlex.quote(sys.executable)
    scripts = {
        "python": f"""\
            [ "$2" != demo.http ] || set -- "$@" --port {ports[8010]}
            exec {python} "$@"
            """,
        "encounters": f"""\
            [ "$1" != demo ] || set -- "$@" --port {ports[8000]}
            exec {python} -m app.cli "$@"
            """,
    }
    for name, text in scripts.items():
        script = folder / name
        script.write_text(f"#!/bin/sh\n{text}")
        script.chmod(0o700)
    (folder / "activate").write_text(f"PATH={shlex.quote(str(folder))}:$PATH\n")
