"""What the clients of a drill met, counted under the event during which they met it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

LOST = 0
"""The status that stands for an answer that never came, or was cut off."""

BUSY, BUSY_SHARE = 503, 0.02
"""A machine that has more to do than it can may answer so, now and then (docs/run/faults.md)."""


@dataclass
class Met:
    """What clients met during one event."""

    event: str
    promised: frozenset[int]
    busy_share: float
    under_way: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    finished: int = 0
    wrong: int = 0
    twice: int = 0
    missing: int = 0
    slowest: float = 0.0

    @property
    def broken(self) -> list[int]:
        """Statuses that nothing promises for this event, or not so often."""
        promised = self.promised | {200}
        if self.answers[BUSY] <= self.busy_share * self.answers.total():
            promised |= {BUSY}
        return sorted(set(self.answers) - promised)

    @property
    def row(self) -> tuple[str, ...]:
        """Return the line of the table."""
        errors = ", ".join(
            f"{count} × {status or 'lost'}"
            for status, count in sorted(self.answers.items())
            if status != 200
        )
        return (
            self.event,
            str(self.under_way),
            str(self.answers.total()),
            errors or "none",
            str(self.finished),
            *map(str, (self.wrong, self.twice, self.missing)),
            f"{self.slowest:.2f} s",
        )


HEADINGS = (
    "Event",
    "Walks under way",
    "Requests",
    "Errors",
    "Walks finished",
    "Wrong",
    "Twice",
    "Missing",
    "Slowest",
)


class Ledger:
    """Counts for all clients, which are threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way = 0
        self._current = Met("before", frozenset(), BUSY_SHARE)
        self.events: list[Met] = []
        self.stuck: list[str] = []

    def begin(
        self,
        event: str,
        promised: frozenset[int] = frozenset(),
        busy_share: float = BUSY_SHARE,
    ) -> None:
        """From now on, what is met belongs to this event, which may have been before."""
        with self._lock:
            known = [met for met in self.events if met.event == event]
            new = Met(event, promised, busy_share, self._under_way)
            self._current = known[0] if known else new
            if not known:
                self.events.append(new)

    @property
    def requests(self) -> int:
        """How many requests were sent in all."""
        with self._lock:
            return sum(met.answers.total() for met in self.events)

    def answered(self, status: int, seconds: float = 0.0) -> None:
        """Count an answer, or that none came, after so many seconds."""
        with self._lock:
            self._current.answers[status] += 1
            self._current.slowest = max(self._current.slowest, seconds)

    def set_out(self) -> None:
        """Count a walk that begins."""
        with self._lock:
            self._under_way += 1

    def arrived(self, found: Sequence[str], expected: frozenset[str]) -> None:
        """Judge a walk that came to its end."""
        wrong, twice, missing = judged(found, expected)
        with self._lock:
            self._under_way -= 1
            met = self._current
            met.finished += 1
            met.wrong += wrong
            met.twice += twice
            met.missing += missing

    def gave_up(self, why: str) -> None:
        """Take in that a client did all that it was told to, and came to no end."""
        with self._lock:
            self._under_way -= 1
            self.stuck.append(f"{self._current.event}: {why}")

    def faults(self) -> Iterator[str]:
        """Yield what went against a promise."""
        for met in self.events:
            if met.wrong or met.twice or met.missing:
                yield f"{met.event}: stays wrong, twice or missing"
            for status in met.broken:
                yield f"{met.event}: {status or 'a lost answer'} is not promised"
        yield from self.stuck
        if not sum(met.finished for met in self.events):
            yield "no walk came to its end"

    def table(self) -> str:
        """Return all of it as a table in Markdown."""
        rows = [HEADINGS, tuple("---" for _ in HEADINGS)]
        rows += [met.row for met in self.events]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def judged(found: Sequence[str], expected: frozenset[str]) -> tuple[int, int, int]:
    """Return how many stays of a walk are none of its own, there twice, or missing."""
    seen = set(found)
    return len(seen - expected), len(found) - len(seen), len(expected - seen)
