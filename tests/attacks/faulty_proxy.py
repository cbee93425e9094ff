"""A TCP proxy that fails as networks and neighbours fail, and recovers when told to."""

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from threading import Condition, Thread
from typing import TypeAlias

from tests.live import HOST

Place: TypeAlias = "tuple[str, int] | str"
"""Where the neighbour listens: host and port, or the path of a socket."""

LATE_SECONDS = 5.0


class Fault(StrEnum):
    """What happens to the neighbour's answers, on old connections and new ones."""

    CUT = "cut"
    """Connections are reset, and no new one is taken."""
    BREAK_OFF = "break off"
    """An answer ends in its middle, with a reset."""
    LATE = "late"
    """Answers come, but after everybody's patience."""
    GARBAGE = "garbage"
    """Answers are bytes without a meaning."""
    SILENT = "silent"
    """Nothing is passed on any more, nothing is closed; what was held comes later."""


class FaultyProxy:
    """Passes bytes between clients and one neighbour, until `failing`."""

    def __init__(self, place: Place, seed: int = 1) -> None:
        self._place = place
        self._random = random.Random(seed)
        self._changed = Condition()
        self._fault: Fault | None = None
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server((HOST, 0))
        self._threads: list[Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Fail for as long as the context lasts."""
        self._become(fault)
        try:
            yield
        finally:
            self._become(None)

    def close(self) -> None:
        """End all connections and threads."""
        self._become(None)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        _hang_up(*self._open)
        for thread in self._threads:
            thread.join(60)

    def _become(self, fault: Fault | None) -> None:
        with self._changed:
            self._fault = fault
            self._changed.notify_all()
        if fault is Fault.CUT:
            _hang_up(*self._open)

    def _start(self, run: object, *args: object) -> None:
        thread = Thread(target=run, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._fault is Fault.CUT:
                _reset(client)
                continue
            try:
                neighbour = _connect(self._place)
            except OSError:
                _reset(client)
                continue
            self._open |= {client, neighbour}
            self._start(self._join, client, neighbour)

    def _join(self, client: socket.socket, neighbour: socket.socket) -> None:
        """Pass bytes both ways; close when nobody reads there any more.

        A socket that is closed under its reader leaves it waiting on a number that may
        be another connection's by then.
        """
        back = Thread(target=self._pass, args=(neighbour, client, True), daemon=True)
        back.start()
        self._pass(client, neighbour, False)
        back.join()
        for each in (client, neighbour):
            self._open.discard(each)
            _reset(each)

    def _pass(self, source: socket.socket, to: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65536):
                self._hold(Fault.SILENT, None)
                if answers:
                    self._answer(data, to)
                else:
                    to.sendall(data)
        except OSError:
            pass
        _hang_up(source, to)

    def _answer(self, data: bytes, to: socket.socket) -> None:
        fault = self._fault
        if fault is Fault.BREAK_OFF:
            to.sendall(data[: len(data) // 2])
            raise ConnectionResetError
        if fault is Fault.GARBAGE:
            data = self._random.randbytes(len(data))
        if fault is Fault.LATE:
            self._hold(Fault.LATE, LATE_SECONDS)
        to.sendall(data)

    def _hold(self, fault: Fault, seconds: float | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._fault is not fault, seconds)


def _connect(place: Place) -> socket.socket:
    if isinstance(place, tuple):
        return socket.create_connection(place, 10)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place)
    return connection


def _hang_up(*connections: socket.socket) -> None:
    """End connections: a thread that waits for bytes of one wakes up."""
    for each in connections:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _reset(connection: socket.socket) -> None:
    # Without lingering a close is a reset: whoever reads there sees it at once.
    with suppress(OSError):
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    _hang_up(connection)
    connection.close()
