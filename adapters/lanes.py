"""Calls to one source: so many at once, and no long wait for one's turn.

A source that hangs fills its own lane. Who comes then is told so after a short while,
and holds up nobody who asks other sources only.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import BoundedSemaphore
from typing import Any, TypeVar

from adapters.contract import SourceUnavailableError

Answer = TypeVar("Answer")


class Lane:
    """Up to `width` calls at once; `wait` is how long a question waits, in seconds."""

    def __init__(self, width: int, wait: float) -> None:
        self._free = BoundedSemaphore(width)
        self._threads = ThreadPoolExecutor(width)
        self._wait = wait

    def run(self, call: Callable[[], Answer]) -> Answer:
        """Return what a call returns, made in the thread that asks."""
        self._enter()
        try:
            return call()
        finally:
            self._free.release()

    def begin(self, calls: Sequence[Callable[[], Answer]]) -> list[Future[Answer]]:
        """Begin the calls of one question, in turn where there is no room for all.

        Raises SourceUnavailableError when there is room for none of them in time.
        """
        self._enter()
        waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque(
            (Future(), partial(copy_context().run, call)) for call in calls
        )
        futures = [future for future, _ in waiting]
        entered = 1
        while entered < len(calls) and self._free.acquire(blocking=False):
            entered += 1
        turns = deque(range(entered))
        for _ in range(entered):
            try:
                self._threads.submit(self._work, waiting, turns)
            except RuntimeError:
                # No thread can be had at present: this one does what it would have done.
                self._work(waiting, turns)
        return futures

    def close(self) -> None:
        """Begin nothing any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _enter(self) -> None:
        if not self._free.acquire(timeout=self._wait):
            raise SourceUnavailableError("no connection was free in time")

    def _work(
        self, waiting: deque[tuple[Future[Any], Callable[[], Any]]], turns: deque[int]
    ) -> None:
        try:
            while True:
                future, call = waiting.popleft()
                if future.set_running_or_notify_cancel():
                    _settle(future, call)
        except IndexError:
            return  # another thread of this question has taken the last one
        finally:
            # What found no thread stays in the pool's queue, and may come once more.
            with suppress(IndexError):
                turns.pop()
                self._free.release()


def _settle(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        answer = call()
    except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
        future.set_exception(error)
    else:
        future.set_result(answer)
