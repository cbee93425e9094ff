"""The chain of audit events: what makes missing and changed ones evident.

Each process is a writer with a random name. Each of its events has the next number, the
beginning of the MAC before, and a MAC (HMAC-SHA256 under the chain key) of the line. Lines
of several writers may be in one file, and the events of one writer in several.
"""

import base64
import errno
import hmac
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

import orjson

from app.fhir.audit_event import UNREADABLE, Link, link_event, read_link, recorded_time
from app.fhir.resources import Element

TURN_SECONDS = 1.0
"""How long a line waits for other writers, or for a reader of stdout that has stalled."""

_MAC_BYTES = 18
_PREVIOUS_CHARACTERS = 8
_NO_MAC = b'""'
"""Replaces the MAC in the line that it is computed from."""


class Chain:
    """Numbers and signs the events of this process. Thread-safe."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self._lock = threading.Lock()
        self._process = 0
        self._last = Link("", 0, "")

    def write(self, event: Element, write: Callable[[bytes], None]) -> None:
        """Write an event as the next line. Raises OSError; then its number is used again."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        try:
            if self._process != os.getpid():
                # A fork begins a chain of its own.
                self._process = os.getpid()
                self._last = Link(secrets.token_hex(6), 0, "")
            last = self._last
            previous = last.mac[:_PREVIOUS_CHARACTERS]
            link = Link(last.writer, last.number + 1, previous)
            link_event(event, link)
            unsigned = orjson.dumps(event)
            mac = _mac(self._key, unsigned)
            head, _, tail = unsigned.rpartition(_NO_MAC)
            write(b'%s"%s"%s\n' % (head, mac.encode(), tail))
            self._last = link._replace(mac=mac)
        finally:
            self._lock.release()


def _mac(key: bytes, unsigned: bytes) -> str:
    digest = hmac.digest(key, unsigned, "sha256")[:_MAC_BYTES]
    return base64.b64encode(digest).decode()


class FaultKind(StrEnum):
    """What is wrong with lines."""

    CHANGED = "changed"
    MISSING = "missing"
    REORDERED = "reordered"
    DUPLICATE = "duplicate"
    UNCHAINED = "unchained"
    UNREADABLE = "unreadable"
    CUT_OFF = "cut off"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the lines `line` to `last` of a file, in `text` with which events.

    CUT_OFF has no file: what it names is in none.
    """

    kind: FaultKind
    file: str
    line: int
    last: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """The events of a writer in all files; `recorded` is the time of event `last`."""

    writer: str
    first: int
    last: int
    recorded: str


@dataclass(slots=True)
class Run:
    """Events of a writer in a file, each the one after the one before.

    `previous` is that of the first event, `mac` that of the last; None where the event is
    changed. `backwards`: the event before in this file has a higher number.
    """

    writer: str
    first: int
    last: int
    previous: str | None
    mac: str | None
    recorded: str
    file: str
    line: int
    backwards: bool


def _fit(mac: str | None, previous: str | None) -> bool:
    if mac is None or previous is None:
        return True
    return hmac.compare_digest(mac[:_PREVIOUS_CHARACTERS].encode(), previous.encode())


class Verification:
    """Checks the lines of files in any order, under one or more keys."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [key.encode() for key in keys]
        self._runs: dict[str, list[Run]] = {}
        self._oldest = ""
        self.events = 0

    def read(self, file: str, lines: Iterable[bytes]) -> Iterator[Fault]:
        """Read a file; yield what is wrong with single lines, consecutive ones together."""
        first = 1
        for kind, group in groupby(self._kinds(file, lines)):
            after = first + sum(1 for _ in group)
            if kind:
                yield Fault(kind, file, first, after - 1)
            first = after

    def _kinds(self, file: str, lines: Iterable[bytes]) -> Iterator[FaultKind | None]:
        current: dict[str, Run] = {}
        for number, line in enumerate(lines, 1):
            text = line.rstrip(b"\n")
            try:
                event = orjson.loads(text)
                link, recorded = read_link(event), recorded_time(event)
            except UNREADABLE:
                yield FaultKind.UNREADABLE
                continue
            self.events += 1
            self._oldest = min(self._oldest or recorded, recorded)
            if link is None:
                yield FaultKind.UNCHAINED
                continue
            genuine = self._is_genuine(text, link.mac)
            self._add(current, link, genuine, (recorded, file, number))
            yield None if genuine else FaultKind.CHANGED

    def _is_genuine(self, line: bytes, mac: str) -> bool:
        head, _, tail = line.rpartition(b'"%s"' % mac.encode())
        unsigned = head + _NO_MAC + tail
        macs = (_mac(key, unsigned) for key in self._keys)
        return any(hmac.compare_digest(mac.encode(), each.encode()) for each in macs)

    def _add(
        self,
        current: dict[str, Run],
        link: Link,
        genuine: bool,
        at: tuple[str, str, int],
    ) -> None:
        """Continue the run of the writer in this file, or begin another."""
        previous, mac = (link.previous, link.mac) if genuine else (None, None)
        run, number = current.get(link.writer), link.number
        if run and number == run.last + 1 and _fit(run.mac, previous):
            run.last, run.mac, run.recorded = number, mac, at[0]
            return
        backwards = run is not None and number < run.last
        begun = Run(link.writer, number, number, previous, mac, *at, backwards)
        current[link.writer] = begun
        self._runs.setdefault(link.writer, []).append(begun)

    def heads(self) -> Iterator[Head]:
        """Yield how far the events of each writer go."""
        for writer, runs in self._runs.items():
            final = max(runs, key=lambda run: run.last)
            first = min(run.first for run in runs)
            yield Head(writer, first, final.last, final.recorded)

    def faults(self) -> Iterator[Fault]:
        """Yield what is wrong between the lines of all files, once they are read."""
        for runs in self._runs.values():
            before: Run | None = None
            for run in sorted(runs, key=lambda run: run.first):
                if fault := _between(before, run):
                    yield fault
                if before is None or run.last > before.last:
                    before = run

    def cut_off(self, earlier: Iterable[Head]) -> Iterator[Fault]:
        """Yield the last events of writers that an earlier verification had.

        A writer that ended before the oldest event here was removed with its files.
        """
        now = {head.writer: head.last for head in self.heads()}
        for head in earlier:
            last = now.get(head.writer, 0)
            if last < head.last and (last or head.recorded >= self._oldest):
                text = f"{head.writer}: {_numbers(last + 1, head.last)}"
                yield Fault(FaultKind.CUT_OFF, "", 0, 0, text)


def _between(before: Run | None, run: Run) -> Fault | None:
    """Return what is wrong where a run follows the one that goes furthest before it."""
    kind = None
    first, last = run.first, run.last
    if before and first > before.last + 1:
        kind, first, last = FaultKind.MISSING, before.last + 1, first - 1
    elif before and first <= before.last:
        kind, last = FaultKind.DUPLICATE, min(last, before.last)
    elif run.backwards:
        kind = FaultKind.REORDERED
    elif before and not _fit(before.mac, run.previous):
        kind = FaultKind.CHANGED
    if kind is None:
        return None
    text = f"{run.writer}: {_numbers(first, last)}"
    return Fault(kind, run.file, run.line, run.line, text)


def _numbers(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"
