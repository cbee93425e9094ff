"""A source that does not answer is left alone, and is asked again when it is back."""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from threading import Barrier, Event

import pybreaker
import pytest

from adapters import breaker
from adapters.contract import (
    AdapterError,
    GoneError,
    NotAskableError,
    NotFoundError,
    SourceDataError,
    SourceUnavailableError,
    TooCostlyError,
)
from adapters.guarded import FAILURES, Guard
from adapters.lanes import Lane
from adapters.listener import Deaf

PATIENCE = 60.0


@dataclass
class Heard:
    """What a guard tells of its source."""

    under: int = 0
    answered: list[bool] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)

    def under_way(self, source: str, change: int) -> None:
        assert source == "pas"
        self.under += change

    def asked(self, source: str, call: str, seconds: float, *, answered: bool) -> None:
        assert (source, call) == ("pas", "read")
        assert seconds >= 0
        self.answered.append(answered)

    def held_back(self, source: str, *, held: bool) -> None:
        assert source == "pas"
        self.held.append(held)


def failing(error: AdapterError) -> Callable[[], str]:
    def question() -> str:
        raise error

    return question


AWAY = failing(SourceUnavailableError("away"))


def fail(guard: Guard, times: int) -> None:
    for _ in range(times):
        with pytest.raises(SourceUnavailableError, match=r"^away$"):
            guard.run("read", AWAY)


@contextmanager
def under_way(guard: Guard) -> Iterator[None]:
    """Have a call of another thread under way, which is answered at the end."""
    asked, answers = Event(), Event()

    def slow() -> str:
        asked.set()
        assert answers.wait(PATIENCE)
        return "42"

    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(guard.run, "read", slow)
        assert asked.wait(PATIENCE)
        yield
        answers.set()
        assert call.result(PATIENCE) == "42"


def test_after_failures_in_a_row_nobody_asks(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    guard = Guard("pas", heard, pause=3600)
    fail(guard, FAILURES)
    for _ in range(3):
        with pytest.raises(SourceUnavailableError, match="left alone"):
            guard.run("read", lambda: pytest.fail("it was asked"))
    assert heard == Heard(0, [False] * FAILURES, [True])
    (line,) = caplog.records
    assert (line.levelno, line.getMessage()) == (logging.ERROR, "source is left alone")
    assert line.data == {"source": "pas"}  # type: ignore[attr-defined]


def test_an_answer_in_between_begins_the_row_anew() -> None:
    guard = Guard("pas", Deaf(), pause=3600)
    for _ in range(3):
        fail(guard, FAILURES - 1)
        assert guard.run("read", lambda: "42") == "42"


def test_an_answer_to_what_was_asked_before_begins_the_row_anew_too() -> None:
    guard = Guard("pas", Deaf(), pause=3600)
    for _ in range(3):
        with under_way(guard):
            fail(guard, FAILURES - 1)


def test_who_fails_after_others_did_is_told_so() -> None:
    guard, together = Guard("pas", Deaf(), pause=3600), Barrier(2 * FAILURES)

    def question() -> str:
        together.wait(PATIENCE)
        raise SourceUnavailableError("away")

    with ThreadPoolExecutor(2 * FAILURES) as threads:
        calls = [
            threads.submit(guard.run, "read", question) for _ in range(2 * FAILURES)
        ]
        for call in calls:
            with pytest.raises(SourceUnavailableError, match=r"away|left alone"):
                call.result(PATIENCE)
    with pytest.raises(SourceUnavailableError, match="left alone"):
        guard.run("read", lambda: pytest.fail("it was asked"))


@pytest.mark.parametrize(
    "answer",
    [
        NotFoundError("read"),
        GoneError("read"),
        SourceDataError("read"),
        TooCostlyError("read"),
        NotAskableError("read"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_source_answers_it_is_asked_again(answer: AdapterError) -> None:
    heard = Heard()
    guard = Guard("pas", heard, pause=3600)
    for _ in range(3 * FAILURES):
        with pytest.raises(type(answer)):
            guard.run("read", failing(answer))
    assert heard == Heard(0, [True] * 3 * FAILURES, [])


def test_one_call_tries_and_the_source_is_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard = Heard()
    guard = Guard("pas", heard, pause=0)
    fail(guard, FAILURES)
    with under_way(guard), pytest.raises(SourceUnavailableError, match="left alone"):
        guard.run("read", lambda: pytest.fail("a second one tried"))
    assert guard.run("read", lambda: "43") == "43"
    assert heard.held == [True, False]
    assert caplog.records[-1].getMessage() == "source is asked again"


def test_a_trial_that_fails_begins_a_new_pause() -> None:
    heard = Heard()
    guard = Guard("pas", heard, pause=0)
    fail(guard, FAILURES)
    fail(guard, 3)
    assert heard.held == [True]
    assert guard.run("read", lambda: "42") == "42"
    fail(guard, FAILURES - 1)
    assert guard.run("read", lambda: "42") == "42"
    assert heard.held == [True, False]


def set_clock(monkeypatch: pytest.MonkeyPatch, later: timedelta) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + later

    for module in (breaker, pybreaker):
        monkeypatch.setattr(module, "datetime", Clock)


def test_a_pause_is_as_long_though_the_clock_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard = Guard("pas", Deaf(), pause=0.2)
    fail(guard, FAILURES)
    set_clock(monkeypatch, -timedelta(hours=1))
    time.sleep(0.2)
    assert guard.run("read", lambda: "42") == "42"
    guard = Guard("pas", Deaf(), pause=3600)
    fail(guard, FAILURES)
    set_clock(monkeypatch, timedelta(hours=1))
    with pytest.raises(SourceUnavailableError, match="left alone"):
        guard.run("read", lambda: pytest.fail("it was asked"))


def test_a_source_that_does_not_count_has_room_for_so_many() -> None:
    guard = Guard("pas", Deaf(), room=Lane(1, 0.05))
    refused = pytest.raises(SourceUnavailableError, match="no connection was free")
    with under_way(guard), refused:
        guard.run("read", lambda: pytest.fail("there was room"))
    assert guard.run("read", lambda: "43") == "43"


def test_calls_are_let_through_at_the_same_time() -> None:
    guard, together = Guard("pas", Deaf()), Barrier(4)

    def question() -> int:
        return together.wait(PATIENCE)

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(guard.run, "read", question) for _ in range(4)]
        assert sorted(each.result(PATIENCE) for each in found) == [0, 1, 2, 3]
