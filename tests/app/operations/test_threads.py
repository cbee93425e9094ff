"""A machine that has no more threads to give takes no worker down."""

from threading import Thread

import pytest

from app.operations.threads import Threads

PATIENCE = 60.0


def test_work_waits_for_a_thread_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with Threads(4) as threads:
        assert threads.submit(int, "1").result(PATIENCE) == 1
        _no_more(monkeypatch)
        each = [threads.submit(int, text) for text in "234"]
        assert [one.result(PATIENCE) for one in each] == [2, 3, 4]


def test_where_there_is_none_work_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    _no_more(monkeypatch)
    with Threads(4) as threads, pytest.raises(RuntimeError, match="start new thread"):
        threads.submit(int, "1")


def _no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", start)
