"""Protection of the service from a source that hangs, fails or is busy.

- A bulkhead limits how many calls to one source run at once. A source that hangs fills its
  own bulkhead; further calls wait briefly, then fail as busy, and other sources go on.
- A circuit breaker opens after some failures of the source in a row. While it is open, calls
  fail at once; after a pause one call tries, alone, and its result decides. Only a source that
  is away counts as a failure: our own queue, or any answer of the source, does not. In the
  trial a full queue is no success either: the breaker stays open for another pause.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import Any, TypeVar

import pybreaker

from adapters.contract import (
    Adapter,
    Capabilities,
    Page,
    Record,
    ResourceType,
    SearchQuery,
    SourceBusyError,
    SourceUnavailableError,
)
from adapters.instrumentation import SOURCE_HELD_BACK, CallKind, observe

FAILURES = 5
"""After how many failures in a row the breaker of a source opens."""

PAUSE_SECONDS = 0.5
"""How long it stays open before one call tries.

Short, because a restart of a database needs no longer; a call that tries a source that hangs
waits for as long as the source's own timeout, and nobody else tries meanwhile.
"""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Bulkhead:
    """Limits concurrent calls to `max_concurrency`; others wait up to `wait` seconds."""

    def __init__(self, max_concurrency: int, wait: float) -> None:
        self._slots = BoundedSemaphore(max_concurrency)
        self._wait = wait

    def run(self, call: Callable[[], T]) -> T:
        """Return what a call returns; raises SourceBusyError if no slot becomes free."""
        if not self._slots.acquire(timeout=self._wait):
            raise SourceBusyError("every connection to the source is in use")
        try:
            return call()
        finally:
            self._slots.release()


class Breaker:
    """The circuit breaker of one source, which observes its calls too. Thread-safe."""

    def __init__(self, source: str, pause: float = PAUSE_SECONDS) -> None:
        self._source = source
        self._trial = Lock()
        self._breaker = pybreaker.CircuitBreaker(
            fail_max=FAILURES,
            reset_timeout=pause,
            exclude=[lambda error: not isinstance(error, SourceUnavailableError)],
            listeners=[_StateLog(source)],
            throw_new_error_on_trip=False,
        )

    def run(self, operation: str, call: Callable[[], T]) -> T:
        """Return what a call returns; `operation` names it in metrics and spans.

        Raises SourceUnavailableError at once while the breaker is open.
        """
        if self._breaker.current_state == pybreaker.STATE_CLOSED:
            return self._run_closed(operation, call)
        if not self._trial.acquire(blocking=False):
            raise _is_open()
        try:
            # As a context: the library's `call` would run one call at a time.
            with (
                self._breaker.calling(),
                observe(CallKind.SOURCE, self._source, operation),
            ):
                return call()
        except pybreaker.CircuitBreakerError as error:
            raise _is_open() from error
        finally:
            self._trial.release()

    def _run_closed(self, operation: str, call: Callable[[], T]) -> T:
        """Return what a call returns while the breaker is closed, and count its failure."""
        # pybreaker counts each error as a failure or as a success. A full queue is neither:
        # as a success it would keep the breaker of a source closed that hangs. So the call
        # is made first, and its outcome reported afterwards.
        failure: SourceUnavailableError | None = None
        try:
            with observe(CallKind.SOURCE, self._source, operation):
                return call()
        except SourceUnavailableError as error:
            failure = error
            raise
        finally:
            if not isinstance(failure, SourceBusyError):
                self._report(failure)

    def _report(self, failure: SourceUnavailableError | None) -> None:
        """Count a failure, or a success (None), which ends a row of failures."""
        if failure is None and not self._breaker.fail_counter:
            return
        # Other calls may have opened the breaker meanwhile: then nothing changes.
        ignored = suppress(pybreaker.CircuitBreakerError, SourceUnavailableError)
        with ignored, self._breaker.calling():
            if failure is not None:
                raise failure


class GuardedAdapter:
    """An adapter whose calls go through a breaker and, if given, a bulkhead.

    `explain`, `check` and `close` go past both.
    """

    def __init__(
        self, adapter: Adapter, breaker: Breaker, bulkhead: Bulkhead | None = None
    ) -> None:
        self._adapter = adapter
        self._breaker = breaker
        self._bulkhead = bulkhead
        self.explain = adapter.explain
        self.check = adapter.check
        self.close = adapter.close

    @property
    def capabilities(self) -> Capabilities:
        """What each resource type that the source holds can do."""
        return self._adapter.capabilities

    @property
    def fingerprint(self) -> str:
        """A digest of source, rows and order."""
        return self._adapter.fingerprint

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        return self._run("search", partial(self._adapter.search, query))

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match."""
        return self._run("count", partial(self._adapter.count, query))

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        return self._run("read", partial(self._adapter.read, resource_type, id))

    def _run(self, operation: str, call: Callable[[], T]) -> T:
        guarded = partial(self._bulkhead.run, call) if self._bulkhead else call
        return self._breaker.run(operation, guarded)


class _StateLog(pybreaker.CircuitBreakerListener):
    """Logs and records when the breaker of a source opens and closes."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open = False

    def state_change(self, _breaker: Any, _before: Any, now: Any) -> None:
        """Report a change; a trial in between is none."""
        is_open = now.name != pybreaker.STATE_CLOSED
        if is_open is self._open:
            return
        self._open = is_open
        level = logging.ERROR if is_open else logging.WARNING
        event = "breaker open" if is_open else "breaker closed"
        _log.log(level, event, extra={"data": {"source": self._source}})
        SOURCE_HELD_BACK.labels(self._source).set(is_open)


def _is_open() -> SourceUnavailableError:
    return SourceUnavailableError("the source failed several times: breaker open")
