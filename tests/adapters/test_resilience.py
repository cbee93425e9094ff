"""Bulkheads and circuit breakers: a source that hangs or fails holds up nobody else."""

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event

import pytest
from prometheus_client import REGISTRY

from adapters.contract import (
    AdapterError,
    NotFoundError,
    SourceBusyError,
    SourceUnavailableError,
)
from adapters.instrumentation import (
    SOURCE_CALLS,
    SOURCE_HELD_BACK,
    SOURCE_SECONDS,
    source_calls,
    source_seconds,
)
from adapters.resilience import FAILURES, Breaker

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def no_metrics():
    """Forget what was counted of sources before."""
    for metric in (SOURCE_CALLS, SOURCE_SECONDS, SOURCE_HELD_BACK):
        metric.clear()
    source_calls.cache_clear()
    source_seconds.cache_clear()


def counted(name, **labels):
    """Return what a metric counts of the source `pas`, None for nothing."""
    named = {"source": "pas", **labels}
    return REGISTRY.get_sample_value(f"encounters_source_{name}", named)


CALLS = {
    "x": SourceUnavailableError("away"),
    "b": SourceBusyError("x"),
    "n": NotFoundError("x"),
    ".": "42",
}
"""What a call of the source comes to."""


def call(breaker, outcome):
    """Call the source, which comes to one of CALLS; `o` where the breaker is open."""
    expected = CALLS.get(outcome)

    def run():
        if isinstance(expected, AdapterError):
            raise expected
        return str(expected)

    if outcome == "o":
        with pytest.raises(SourceUnavailableError, match="breaker open"):
            breaker.run("read", never)
    elif isinstance(expected, AdapterError):
        # A full queue hides no failures: where the source is away, that is the error.
        with pytest.raises((type(expected), SourceUnavailableError)):
            breaker.run("read", run)
    else:
        assert breaker.run("read", run) == expected


def never():
    pytest.fail("the source was called")


def test_after_failures_in_a_row_the_breaker_opens(caplog):
    breaker = Breaker("pas", pause=3600)
    for outcome in "x" * FAILURES + "ooo":
        call(breaker, outcome)
    assert counted("calls") == 0
    assert counted("seconds_count", call="read", answered="no") == FAILURES
    assert counted("seconds_count", call="read", answered="yes") is None
    assert counted("held_back") == 1
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.data == {"source": "pas"}  # type: ignore[attr-defined]


ALL_BUT_ONE = "x" * (FAILURES - 1)
SERIES = (
    # A success in between starts the row again.
    (3600, 3 * f"{ALL_BUT_ONE}.", None),
    # Whatever the source answers is no failure, nor is our own queue.
    (3600, 3 * FAILURES * "n" + 3 * FAILURES * "b", None),
    # A full queue hides no failures, and closes no open breaker.
    (3600, FAILURES * "xb" + "o", 1),
    (0, f"{ALL_BUT_ONE}xb", 1),
    # A trial that fails keeps the breaker open; one that succeeds closes it.
    (0, f"{ALL_BUT_ONE}xxxx", 1),
    (0, f"{ALL_BUT_ONE}xxxx.{ALL_BUT_ONE}.", 0),
)
"""A pause, what calls come to, and the count of breakers that are open after them."""


@pytest.mark.parametrize(("pause", "outcomes", "held_back"), SERIES)
def test_series_of_calls(pause, outcomes, held_back):
    breaker = Breaker("pas", pause=pause)
    for outcome in outcomes:
        call(breaker, outcome)
    assert counted("held_back") == held_back


def test_after_the_pause_one_call_tries_alone_and_closes_the_breaker(caplog):
    breaker = Breaker("pas", pause=0)
    for outcome in "x" * FAILURES:
        call(breaker, outcome)
    began, ends = Event(), Event()

    def slow():
        began.set()
        return ends.wait(PATIENCE)

    with ThreadPoolExecutor(1) as threads:
        trial = threads.submit(breaker.run, "read", slow)
        assert began.wait(PATIENCE)
        call(breaker, "o")
        ends.set()
        assert trial.result(PATIENCE)
    call(breaker, ".")
    assert counted("held_back") == 0
    assert [line.levelno for line in caplog.records] == [logging.ERROR, logging.WARNING]


def test_calls_of_a_closed_breaker_run_at_the_same_time():
    breaker, together = Breaker("pas"), Barrier(4)

    with ThreadPoolExecutor(4) as threads:
        wait = partial(together.wait, PATIENCE)
        calls = [threads.submit(breaker.run, "read", wait) for _ in range(4)]
        assert sorted(each.result(PATIENCE) for each in calls) == [0, 1, 2, 3]
