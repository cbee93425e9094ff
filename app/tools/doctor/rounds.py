"""Checks run side by side, each in its own time: one that hangs holds up no other."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from app.tools.report import Severity


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing that a check saw, and what to do; without a severity it is as it should be."""

    text: str
    severity: Severity | None = None
    remedy: str = ""


def fine(text: str) -> Seen:
    """Return what is as it should be."""
    return Seen(text)


def note(text: str, remedy: str = "") -> Seen:
    """Return what is good to know."""
    return Seen(text, Severity.NOTE, remedy)


def warning(text: str, remedy: str) -> Seen:
    """Return what will do harm."""
    return Seen(text, Severity.WARNING, remedy)


def error(text: str, remedy: str) -> Seen:
    """Return what keeps requests from being answered."""
    return Seen(text, Severity.ERROR, remedy)


@dataclass(frozen=True, slots=True)
class Check:
    """Something to look at: `ask` says what it sees as it goes."""

    subject: str
    ask: Callable[[], Iterable[Seen]]


@dataclass(frozen=True, slots=True)
class Looked:
    """What a check has seen."""

    subject: str
    seen: tuple[Seen, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether there is something to mend; a note alone is not."""
        return any(seen.severity not in {None, Severity.NOTE} for seen in self.seen)

    def as_json(self) -> dict[str, object]:
        """Return it for machines."""
        seen = [
            {**asdict(each), "severity": each.severity or "ok"} for each in self.seen
        ]
        return {"check": self.subject, "seen": seen}


def look(checks: Sequence[Check], seconds: float) -> list[Looked]:
    """Run all checks at once and wait so long; who is not done is left behind."""
    asked = [_Asked(check) for check in checks]
    ends = time.monotonic() + seconds
    return [each.done(ends, seconds) for each in asked]


class _Asked:
    """A check under way, in a thread that keeps nobody from leaving."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._seen: list[Seen] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def done(self, ends: float, seconds: float) -> Looked:
        """Return what it has seen when it ends, or when the time has come."""
        self._thread.join(max(0.0, ends - time.monotonic()))
        seen = tuple(self._seen)
        if self._thread.is_alive():
            late = f"did not end within {seconds:g} seconds"
            seen += (error(late, "look at what it asks, or give it --seconds"),)
        return Looked(self._check.subject, seen)

    def _run(self) -> None:
        try:
            for seen in self._check.ask():
                self._seen.append(seen)
        except Exception as fault:  # noqa: BLE001 - told as a finding; the others go on
            text = f"this check itself failed ({type(fault).__name__})"
            self._seen.append(error(text, "a fault of this tool: please report it"))
