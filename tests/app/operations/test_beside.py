"""What serves goes on where there is no room for the operations process."""

import errno
import logging
import os
from typing import NoReturn

import pytest

from app.operations.beside import Beside


class Arbiter:
    """As much of gunicorn's arbiter as is attended."""

    def __init__(self) -> None:
        self.looked = 0

    def manage_workers(self) -> None:
        self.looked += 1


def no_room() -> NoReturn:
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def test_no_room_for_the_process_is_told_and_tried_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(os, "fork", no_room)
    arbiter, beside = Arbiter(), Beside()
    beside.attend(arbiter)
    for _ in range(3):
        arbiter.manage_workers()
    assert arbiter.looked == 3
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.getMessage() == "operations process not started"
    beside.stop()
