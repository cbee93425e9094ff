"""Where audit events go: a file that several processes append to, or stdout.

A line is written whole or the write has failed: `write` raises OSError then, and what
it wrote of the line is taken back where that can be.
"""

import errno
import fcntl
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

TURN_SECONDS = 1.0
"""How long a line waits for its turn, or for a reader of stdout that has stalled."""

STDOUT = 1
_PAUSE = 0.001
_MODE = 0o640


class Sink(Protocol):
    """Takes lines, from any thread of any process."""

    def write(self, line: bytes) -> None:
        """Write one line, its end included. Raises OSError."""


class FileSink:
    """Appends to a file; another file of that name is found at the next line.

    So logrotate may rename the file, with no signal to anybody.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None

    def write(self, line: bytes) -> None:
        """Append one line, or nothing of it. Raises OSError."""
        with _turn(self._lock):
            file = self._opened()
            _wait_for(lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB))
            try:
                _append(file, line)
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def check(self) -> None:
        """Look whether a line would have room. Raises OSError."""
        with _turn(self._lock):
            if os.fstatvfs(self._opened()).f_bavail == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is not None and not self._is_current(self._file):
            self.close()
        if self._file is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(self._path, flags, _MODE)
        return self._file

    def _is_current(self, file: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(self._path.stat(), os.fstat(file))
        return False


class StreamSink:
    """Writes to a pipe, a socket or a terminal that several processes share."""

    def __init__(self, file: int = STDOUT) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._torn = False

    def write(self, line: bytes) -> None:
        """Write one line. Raises OSError; a reader that stalls may find a torn line."""
        with _turn(self._lock):
            # Not flock: the workers have this file from one parent, whose lock it were.
            _wait_for(lambda: fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB))
            try:
                self._send(b"\n" + line if self._torn else line)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _send(self, line: bytes) -> None:
        sent = 0
        try:
            while sent < len(line):
                _, ready, _ = select.select([], [self._file], [], TURN_SECONDS)
                if not ready:
                    raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
                # So much is taken without waiting once there is room (POSIX).
                sent += os.write(self._file, line[sent : sent + select.PIPE_BUF])
        finally:
            self._torn = sent < len(line) and (sent > 0 or self._torn)


def _append(file: int, line: bytes) -> None:
    end = os.fstat(file).st_size
    if end and os.pread(file, 1, end - 1) != b"\n":
        # Somebody was killed in the middle of a line.
        line = b"\n" + line
    written = os.write(file, line)
    if written < len(line):
        os.ftruncate(file, end)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _turn(lock: threading.Lock) -> Iterator[None]:
    """Wait for the other threads of this process."""
    if not lock.acquire(timeout=TURN_SECONDS):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    try:
        yield
    finally:
        lock.release()


def _wait_for(take: Callable[[], None]) -> None:
    """Wait for the other processes; `take` raises BlockingIOError while one is at it."""
    deadline = time.monotonic() + TURN_SECONDS
    while True:
        try:
            return take()
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                reason = os.strerror(errno.ETIMEDOUT)
                raise TimeoutError(errno.ETIMEDOUT, reason) from error
            time.sleep(_PAUSE)
