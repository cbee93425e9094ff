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
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import Block, every_block
from tests.live import HOST, ROOT, free_ports, listens, wait_until

PORTS = (8000, 8001, 8002, 8003, 8010)
"""What the page names, and those between; each stands for a port that nobody has."""

_MAKES = re.compile(r"(Save as|Add to|Change in|A slip in) `([\w./-]+)`:$")
_STAMP = re.compile(r"\b[a-z2-7]{32}\b")
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
    page_blocks = [(p, b) for p in pages for b in every_block(p.read_text("utf-8"))]
    with ExitStack() as stack:
        terminal = _Terminal(directory, stack)
        for page, block in page_blocks:
            if block.language == "console":
                commands = re.findall(r"^\$ (.*(?:\\\n.*)*)$", block.text, re.MULTILINE)
                was = "".join(map(terminal.type, commands))
                typed.append(Typed(page, block, block.text, _as_shown(was, block.text)))
                while slips:
                    file, text = slips.pop()
                    file.write_text(text, "utf-8")
            elif not block.text.startswith("--8<--"):  # a file of docs/ that is shown
                found = _MAKES.search(block.above)
                assert found, f"{page.name}:{block.line}: what is this?"
                file = Path(terminal.environ["PWD"]) / found.group(2)
                if found.group(1) == "A slip in":
                    slips.append((file, file.read_text("utf-8")))
                _make(found.group(1), file, block.text)
    return typed


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
    drawn = dict.fromkeys(_STAMP.findall(was))
    written = dict.fromkeys(_STAMP.findall(shown))
    if len(drawn) == len(written):
        for new, old in zip(drawn, written, strict=True):
            was = was.replace(new, old)
    abridged = re.escape(shown).replace("…\\\n", "(?:.*\n)+")
    return shown if re.fullmatch(abridged, was) else was


class _Terminal:
    """Commands typed one after the other, each in the environment that the last one left."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        first = free_ports(len(PORTS))
        self._ports = dict(zip(PORTS, range(first, first + len(PORTS)), strict=True))
        self._state = directory / "environ"
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        stack.callback(lambda: [self._end(port) for port in PORTS])
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ENCOUNTERS_", "PAS_"))
        }
        self.environ |= {
            "PWD": str(directory),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        scripts = directory / ".venv" / "bin"
        scripts.mkdir(parents=True)
        (scripts / "activate").write_text(f"PATH={shlex.quote(str(scripts))}:$PATH\n")
        for name, arguments in (("python", ""), ("encounters", "-m app.cli")):
            script = scripts / name
            command = f"{shlex.quote(sys.executable)} {arguments}"
            script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            script.chmod(0o700)

    def type(self, command: str) -> str:
        """Type a command; return it with its prompt and what it printed."""
        sent = command
        for port, meant in self._ports.items():
            sent = sent.replace(f"{HOST}:{port}", f"{HOST}:{meant}")
        if "demo.http" in command:
            printed = self._serve(sent, 8010)
        elif "encounters demo" in command:
            printed = self._serve(sent, 8000)
        else:
            # `-a` exports what the command sets, functions too.
            done = subprocess.run(
                ["bash", "-ac", f"{sent}\nenv -0 >{shlex.quote(str(self._state))}"],
                cwd=self.environ["PWD"],
                env=self.environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
            variables = self._state.read_text("utf-8").split("\0")[:-1]
            self.environ = dict(variable.split("=", 1) for variable in variables)
            printed = re.sub(r"[^\n]\Z", r"\g<0>\n", done.stdout)
        for port, meant in self._ports.items():
            printed = printed.replace(f"{HOST}:{meant}", f"{HOST}:{port}")
        return f"$ {command}\n{printed}"

    def _serve(self, command: str, port: int) -> str:
        """Start what goes on, in place of what has the port; return what a demo says."""
        self._end(port)
        own = self._ports[port]
        log = self._state.with_name(f"{port}.log")
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec env {command} --port {own}"],
                cwd=self.environ["PWD"],
                env=self.environ,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self._running[port] = process
        is_demo = port == 8000

        def settled() -> bool:
            is_up = "Ctrl-C stops" in log.read_text() if is_demo else listens(own)
            return is_up or process.poll() is not None

        wait_until(settled, log, _SECONDS)
        return log.read_text() if is_demo else ""

    def _end(self, port: int) -> None:
        if process := self._running.pop(port, None):
            process.terminate()
            process.wait(_SECONDS)
