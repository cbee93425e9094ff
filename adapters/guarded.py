"""A source behind a guard: one that does not answer is left alone for a while.

After so many calls in a row without an answer nobody asks any more; those who would are
told so at once. When the pause is over one call tries, alone, and its answer decides. Only
a source that is away counts: whatever else it says, it has answered.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import pybreaker

from adapters.breaker import State
from adapters.contract import (
    Adapter,
    Capabilities,
    Page,
    Problem,
    Record,
    ResourceType,
    SearchQuery,
    SourceUnavailableError,
)
from adapters.inspection import Inspectable, Look, with_values
from adapters.lanes import Lane
from adapters.listener import Listener
from adapters.outward import Kind, outward

FAILURES = 5
"""After how many calls in a row without an answer a source is left alone."""

PAUSE_SECONDS = 5
"""How long it is left alone, before one call tries."""

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


class Guard:
    """Lets calls to one source through, or not. Safe to share between threads.

    `room` is for sources that do not count their connections themselves.
    """

    def __init__(
        self,
        source: str,
        listener: Listener,
        pause: float = PAUSE_SECONDS,
        room: Lane | None = None,
    ) -> None:
        self._room = room
        self._source = source
        self._listener = listener
        self._trial = Lock()
        self._state = State(pybreaker.STATE_CLOSED)
        self._breaker = pybreaker.CircuitBreaker(
            fail_max=FAILURES,
            reset_timeout=pause,
            state_storage=self._state,
            exclude=[_has_answered],
            listeners=[_Changes(source, listener)],
            throw_new_error_on_trip=False,
        )

    def run(self, call: str, question: Callable[[], Answer]) -> Answer:
        """Return the answer of a question; `call` is what it is counted as.

        Raises SourceUnavailableError at once while the source is left alone, else what the
        question raises.
        """
        try:
            if self._state.state != pybreaker.STATE_CLOSED:
                return self._tried(call, question)
            if self._state.counter:
                return self._asked(call, question)
            return self._asked_as_ever(call, question)
        except pybreaker.CircuitBreakerError as error:
            raise _left_alone() from error

    def _tried(self, call: str, question: Callable[[], Answer]) -> Answer:
        """Ask while not all is well: one at a time."""
        if not self._trial.acquire(blocking=False):
            raise _left_alone()
        try:
            return self._asked(call, question)
        finally:
            self._trial.release()

    def _asked(self, call: str, question: Callable[[], Answer]) -> Answer:
        # As a context: the library's `call` would let one question in at a time.
        with self._breaker.calling():
            return self._heard(call, question)

    def _asked_as_ever(self, call: str, question: Callable[[], Answer]) -> Answer:
        """Ask while all is well: the breaker hears of a failure alone."""
        try:
            return self._heard(call, question)
        except SourceUnavailableError:
            with self._breaker.calling():
                raise

    def _heard(self, call: str, question: Callable[[], Answer]) -> Answer:
        began, answered = time.perf_counter(), True
        self._listener.under_way(self._source, 1)
        try:
            with outward(Kind.SOURCE, self._source, call):
                return self._room.run(question) if self._room else question()
        except SourceUnavailableError:
            answered = False
            raise
        finally:
            if answered and self._state.counter:
                # Others failed meanwhile: not in a row.
                self._state.reset_counter()
            seconds = time.perf_counter() - began
            self._listener.under_way(self._source, -1)
            self._listener.asked(self._source, call, seconds, answered=answered)


class GuardedAdapter:
    """An adapter whose source is asked through a guard; `check` goes past it."""

    def __init__(self, adapter: Adapter, guard: Guard) -> None:
        self._adapter = adapter
        self._guard = guard

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked of each resource type that the source holds."""
        return self._adapter.capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order."""
        return self._adapter.fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        return self._guard.run("search", partial(self._adapter.search, query))

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        return self._guard.run("count", partial(self._adapter.count, query))

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        return self._guard.run("read", partial(self._adapter.read, resource_type, id))

    def explain(self, query: SearchQuery) -> str:
        """Return what would be sent to the source, values as placeholders."""
        return self._adapter.explain(query)

    def explain_values(self, query: SearchQuery) -> str:
        """Return the same with its values, as far as the adapter tells them."""
        return with_values(self._adapter)(query)

    def check(self) -> Iterable[Problem]:
        """Tell whether the source answers and still fits the mapping."""
        return self._adapter.check()

    def close(self) -> None:
        """Give connections back."""
        self._adapter.close()


class _GuardedInspectable(GuardedAdapter):
    """One that can be looked into; looks go past the guard, as checks do."""

    def __init__(self, adapter: Adapter, guard: Guard, inspected: Inspectable) -> None:
        super().__init__(adapter, guard)
        self._inspected = inspected

    def looks(self, kinds: Collection[ResourceType]) -> Iterator[Look]:
        """Yield what there is to look at in the source."""
        return self._inspected.looks(kinds)


def guarded(adapter: Adapter, guard: Guard) -> Adapter:
    """Return an adapter whose source is asked through a guard."""
    if isinstance(adapter, Inspectable):
        return _GuardedInspectable(adapter, guard, inspected=adapter)
    return GuardedAdapter(adapter, guard)


class _Changes(pybreaker.CircuitBreakerListener):
    """Logs and tells when a source is left alone, and when it is asked again."""

    def __init__(self, source: str, listener: Listener) -> None:
        self._source = source
        self._listener = listener
        self._held = False

    def state_change(self, _breaker: Any, _before: Any, now: Any) -> None:
        """Take in the state of the breaker; a trial in between changes nothing."""
        held = now.name != pybreaker.STATE_CLOSED
        if held is self._held:
            return
        self._held = held
        said = "source is left alone" if held else "source is asked again"
        level = logging.ERROR if held else logging.WARNING
        _log.log(level, said, extra={"data": {"source": self._source}})
        self._listener.held_back(self._source, held=held)


def _has_answered(error: BaseException) -> bool:
    return not isinstance(error, SourceUnavailableError)


def _left_alone() -> SourceUnavailableError:
    return SourceUnavailableError("it did not answer: it is left alone for a while")
