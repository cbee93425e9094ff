"""How the time of a request divides into phases, for its access line."""

from collections.abc import Mapping
from contextvars import ContextVar
from enum import StrEnum
from time import perf_counter
from types import TracebackType


class Phase(StrEnum):
    """What a request spends its time on."""

    PARSE = "parse"
    """The token, the parameters, and all that is none of the others."""
    SOURCE = "source"
    """The hospital system: asked, waited for, its rows read as records."""
    REDIS = "redis"
    """Pages kept and found again."""
    MAP = "map"
    """Records made into FHIR resources; those of a page are written, too."""
    WRITE = "write"
    """The rest of the answer as bytes, and its audit event."""


_NOTHING_SPENT = dict.fromkeys(Phase, 0.0)


class Stopwatch:
    """Charges the time that passes to one phase at a time, beginning with `parse`."""

    __slots__ = ("_phase", "_since", "_spent")

    def __init__(self) -> None:
        self._spent = _NOTHING_SPENT.copy()
        self._phase = Phase.PARSE
        self._since = perf_counter()

    def enter(self, phase: Phase) -> Phase:
        """Charge what follows to `phase`, and return the phase that it takes over from."""
        now, before = perf_counter(), self._phase
        self._spent[before] += now - self._since
        self._phase, self._since = phase, now
        return before

    def spent(self) -> Mapping[Phase, float]:
        """Return the seconds of every phase up to now; their sum is the whole time."""
        self.enter(self._phase)
        return self._spent


class phase:  # noqa: N801 - read as a word: `with phase(Phase.MAP):`
    """Charge the time of a block to a phase; outside of a request nothing is charged."""

    __slots__ = ("_before", "_phase", "_watch")

    def __init__(self, phase: Phase) -> None:
        self._phase = phase

    def __enter__(self) -> None:
        """Begin the block."""
        self._watch = _watch.get()
        if self._watch is not None:
            self._before = self._watch.enter(self._phase)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End it; what goes on is charged as before."""
        if self._watch is not None:
            self._watch.enter(self._before)


def start_watch() -> Stopwatch:
    """Return a stopwatch for the request that begins in this context."""
    watch = Stopwatch()
    _watch.set(watch)
    return watch


def current_watch() -> Stopwatch | None:
    """Return the stopwatch of the request under way, None outside of one."""
    return _watch.get()


def stop_watch() -> None:
    """Forget it: the request is over."""
    _watch.set(None)


_watch: ContextVar[Stopwatch | None] = ContextVar("stopwatch", default=None)
