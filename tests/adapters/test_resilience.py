"""Bulkheads and circuit breakers: a source that hangs or fails holds up nobody else."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event

import pytest
from prometheus_client import REGISTRY

from adapters.contract import (
    AdapterError,
    GoneError,
    NotAskableError,
    NotFoundError,
    SourceBusyError,
    SourceDataError,
    SourceUnavailableError,
    TooCostlyError,
)
from adapters.instrumentation import (
    SOURCE_CALLS,
    SOURCE_HELD_BACK,
    SOURCE_SECONDS,
    source_calls,
    source_seconds,
)
from adapters.resilience import FAILURES, Breaker, Bulkhead

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def no_metrics() -> None:
    """Forget what was counted of sources before."""
    for metric in (SOURCE_CALLS, SOURCE_SECONDS, SOURCE_HELD_BACK):
        metric.clear()
    source_calls.cache_clear()
    source_seconds.cache_clear()


def counted(name: str, **labels: str) -> float | None:
    """Return what a metric counts of the source `pas`, None for nothing."""
    named = {"source": "pas", **labels}
    return REGISTRY.get_sample_value(f"encounters_source_{name}", named)


def failing(error: AdapterError) -> Callable[[], str]:
    def call() -> str:
        raise error

    return call


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        with pytest.raises(SourceUnavailableError, match=r"^away$"):
            breaker.run("read", failing(SourceUnavailableError("away")))


def never() -> str:
    pytest.fail("the source was called")


def assert_open(breaker: Breaker) -> None:
    with pytest.raises(SourceUnavailableError, match="breaker open"):
        breaker.run("read", never)


@contextmanager
def under_way(run: Callable[[Callable[[], str]], str]) -> Iterator[None]:
    """Have a call of another thread under way, which is answered at the end."""
    began, ends = Event(), Event()

    def slow() -> str:
        began.set()
        assert ends.wait(PATIENCE)
        return "42"

    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(run, slow)
        assert began.wait(PATIENCE)
        try:
            yield
        finally:
            ends.set()
        assert call.result(PATIENCE) == "42"


def test_after_failures_in_a_row_the_breaker_opens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaker = Breaker("pas", pause=3600)
    fail(breaker, FAILURES)
    for _ in range(3):
        assert_open(breaker)
    assert counted("calls") == 0
    assert counted("seconds_count", call="read", answered="no") == FAILURES
    assert counted("seconds_count", call="read", answered="yes") is None
    assert counted("held_back") == 1
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.data == {"source": "pas"}  # type: ignore[attr-defined]


def test_a_success_in_between_starts_the_row_again() -> None:
    breaker = Breaker("pas", pause=3600)
    for _ in range(3):
        fail(breaker, FAILURES - 1)
        assert breaker.run("read", lambda: "42") == "42"


@pytest.mark.parametrize(
    "kind",
    [
        *(NotFoundError, GoneError, SourceDataError, TooCostlyError, NotAskableError),
        SourceBusyError,
    ],
)
def test_whatever_a_source_answers_and_our_own_queue_are_no_failures(
    kind: type[AdapterError],
) -> None:
    breaker = Breaker("pas", pause=3600)
    for _ in range(3 * FAILURES):
        with pytest.raises(kind):
            breaker.run("read", failing(kind("x")))
    assert counted("held_back") is None


def test_a_full_queue_hides_no_failures() -> None:
    breaker = Breaker("pas", pause=3600)
    for _ in range(FAILURES):
        fail(breaker, 1)
        with pytest.raises(SourceUnavailableError):
            breaker.run("read", failing(SourceBusyError("x")))
    assert_open(breaker)


def test_a_full_queue_closes_no_open_breaker() -> None:
    breaker = Breaker("pas", pause=0)
    fail(breaker, FAILURES)
    with pytest.raises(SourceBusyError):
        breaker.run("read", failing(SourceBusyError("x")))
    assert counted("held_back") == 1


def test_after_the_pause_one_call_tries_alone_and_closes_the_breaker() -> None:
    breaker = Breaker("pas", pause=0)
    fail(breaker, FAILURES)
    with under_way(lambda call: breaker.run("read", call)):
        assert_open(breaker)
    assert breaker.run("read", lambda: "43") == "43"
    assert counted("held_back") == 0


def test_a_trial_that_fails_keeps_the_breaker_open() -> None:
    breaker = Breaker("pas", pause=0)
    fail(breaker, FAILURES + 3)
    assert counted("held_back") == 1
    assert breaker.run("read", lambda: "42") == "42"
    fail(breaker, FAILURES - 1)
    assert breaker.run("read", lambda: "42") == "42"
    assert counted("held_back") == 0


def test_calls_of_a_closed_breaker_run_at_the_same_time() -> None:
    breaker, together = Breaker("pas"), Barrier(4)

    def call() -> int:
        return together.wait(PATIENCE)

    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(breaker.run, "read", call) for _ in range(4)]
        assert sorted(each.result(PATIENCE) for each in calls) == [0, 1, 2, 3]


def test_a_full_bulkhead_is_busy_and_frees_its_slots() -> None:
    bulkhead = Bulkhead(1, wait=0)
    with under_way(bulkhead.run), pytest.raises(SourceBusyError):
        bulkhead.run(never)
    with pytest.raises(NotFoundError):
        bulkhead.run(failing(NotFoundError("x")))
    assert bulkhead.run(lambda: "43") == "43"
