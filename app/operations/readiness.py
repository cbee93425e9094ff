"""Whether the service can do its work: looked at from time to time, told from memory.

Each thing that it stands on is probed by itself. A source that no longer fits the
mapping (a column has gone) makes the service unready before a client meets it; so does
one that is away. Without Redis reads go on (decision 25), so it is told but not counted.
"""

import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import redis

from adapters.contract import Adapter
from app.keys import KeySource
from app.operations.audit_sinks import FileSink
from app.operations.metrics import PART_READY
from app.operations.scrape import Scraper
from app.operations.shared import Shared

_log = logging.getLogger(__name__)

Probe = Callable[[], tuple[str, ...]]
"""Looks at one thing and returns what is wrong with it, in words for an operator."""

OPTIONAL = frozenset({"redis", "mapping", "guard", "counts"})
"""What the service is ready without: the source itself is looked at by another part."""

LEAST_ROOM = 1024 * 1024
"""With fewer bytes, what a process begins to count may find none (`app.operations.counts`)."""

_LITTLE_ROOM = (
    f"less than {LEAST_ROOM // 1024} KiB left for counts: some may be missing"
)


@dataclass(frozen=True, slots=True)
class Readiness:
    """What the last look found: the problems of each thing, none where it is fine."""

    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether all that counts has been looked at and is fine."""
        counted = self.problems.keys() - OPTIONAL
        return bool(counted) and not any(self.problems[name] for name in counted)

    def body(self) -> dict[str, object]:
        """Return the answer of `/ready`."""
        parts = {
            name: {"ready": not found, "problems": list(found)}
            for name, found in self.problems.items()
        }
        return {"ready": self.ready, "parts": parts}


class Watch:
    """Looks every `seconds` and keeps what it saw. Safe to share between threads."""

    def __init__(self, probes: Mapping[str, Probe], seconds: float) -> None:
        self._probes = probes
        self._seconds = seconds
        self._stopped = False
        self._woken = threading.Event()
        self._seen = Readiness()

    @property
    def seen(self) -> Readiness:
        """What the last look found."""
        return self._seen

    def look(self) -> Readiness:
        """Look now; what has changed since the last look is logged."""
        found = {name: probe() for name, probe in self._probes.items()}
        for name, problems in found.items():
            _log_change(name, self._seen.problems.get(name, ()), problems)
            PART_READY.labels(name).set(not problems)
        self._seen = Readiness(MappingProxyType(found))
        return self._seen

    def run(self) -> None:
        """Look until `stop` is called."""
        while not self._stopped:
            self._woken.clear()
            self.look()
            self._woken.wait(self._seconds)

    def wake(self) -> None:
        """Let `run` look now."""
        self._woken.set()

    def stop(self) -> None:
        """Let `run` return."""
        self._stopped = True
        self._woken.set()


def _log_change(name: str, before: tuple[str, ...], now: tuple[str, ...]) -> None:
    for problem in sorted(set(now) - set(before)):
        data = {"part": name, "problem": problem}
        _log.error("not ready", extra={"data": data})
    if before and not now:
        _log.warning("ready again", extra={"data": {"part": name}})


def source_probe(adapter: Adapter) -> Probe:
    """Look whether the source answers and still has what the mapping names."""

    def look() -> tuple[str, ...]:
        texts = (problem.text for problem in adapter.check() if problem.serious)
        # Where nobody answers, each section says so.
        return tuple(dict.fromkeys(texts))

    return look


def mapping_probe(shared: Shared) -> Probe:
    """Look whether the last mapping that was to be served has been refused."""

    def look() -> tuple[str, ...]:
        try:
            problems = shared.refused.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return ()
        return ("refused; the one before is served", *problems)

    return look


def guard_probe(scraper: Scraper) -> Probe:
    """Look whether requests leave a source alone because it did not answer them."""

    def look() -> tuple[str, ...]:
        return tuple(
            f"source {name} did not answer: it is left alone for a while"
            for name in scraper.sources_held_back()
        )

    return look


def counts_probe(directory: Path) -> Probe:
    """Look whether there is room for counts: those that find none are not in `/metrics`."""

    def look() -> tuple[str, ...]:
        try:
            left = shutil.disk_usage(directory).free
        except OSError as error:
            return (f"counts cannot be kept ({error.strerror})",)
        if left < LEAST_ROOM:
            # Not how much: whenever that changed, the log would tell it anew.
            return (_LITTLE_ROOM,)
        return ()

    return look


def redis_probe(client: redis.Redis) -> Probe:
    """Look whether Redis answers."""

    def look() -> tuple[str, ...]:
        try:
            client.ping()
        except redis.RedisError as error:
            return (f"does not answer ({type(error).__name__})",)
        return ()

    return look


def audit_probe(file: FileSink) -> Probe:
    """Look whether audit events can be written; where they cannot, nothing is answered."""

    def look() -> tuple[str, ...]:
        try:
            file.check()
        except OSError as error:
            return (f"the audit file cannot be written ({error.strerror})",)
        return ()

    return look


def identity_probe(keys: KeySource) -> Probe:
    """Look whether there are keys to check tokens with: once had, they go on being used."""

    def look() -> tuple[str, ...]:
        if keys.freshen():
            return ()
        return ("no key set has been fetched: no token can be checked",)

    return look
