"""Answers of Redis end in time, and one that came in time counts however late it is read."""

import socket
import time
from contextlib import closing

import pytest

from app.timed_redis import _TimedSocket

SECONDS = 0.05


def test_what_came_in_time_counts_on_a_busy_machine() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        timed = _TimedSocket(ours, SECONDS)
        timed.sendall(b"GET")
        theirs.sendall(b"first")
        # Nobody gave this process a turn meanwhile.
        time.sleep(2 * SECONDS)
        assert timed.recv(100) == b"first"
        # It goes on by drips: that is time enough.
        theirs.sendall(b"s" * 100)
        with pytest.raises(TimeoutError):
            list(iter(lambda: timed.recv(1), b""))
        assert len(ours.recv(100)) > 90
        timed.sendall(b"GET")
        theirs.sendall(b"second")
        assert timed.recv(100) == b"second"


def test_what_does_not_come_is_not_waited_for_again() -> None:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        timed = _TimedSocket(ours, SECONDS)
        timed.sendall(b"GET")
        time.sleep(2 * SECONDS)
        with pytest.raises(TimeoutError):
            timed.recv(100)
