"""Names of hosts, looked up in bounded time.

Where a name server says nothing the system asks it again and again, for ten seconds and more,
whatever time-out a connection has.
"""

import socket
from contextlib import suppress
from threading import Event, Lock, Thread


class _Asked:
    """A name that is looked up, by one thread for all who ask."""

    def __init__(self) -> None:
        self.done = Event()
        self.addresses: tuple[str, ...] | None = None


_under_way: dict[str, _Asked] = {}
_lock = Lock()


def look_up(host: str, seconds: float) -> tuple[str, ...] | None:
    """Wait until the name of a host has been looked up; raises TimeoutError.

    Return its addresses in the order in which to try them, None where nobody could ask.
    Who connects may ask itself, and tells what is wrong.
    """
    if _is_address(host):
        return (host,)
    asked = _begun(host)
    if not asked.done.wait(seconds):
        raise TimeoutError("the name was not looked up in time")
    return asked.addresses


def _begun(host: str) -> _Asked:
    with _lock:
        if host not in _under_way:
            asked = _Asked()
            asking = Thread(target=_look_up, args=(host, asked), name=host)
            asking.daemon = True
            try:
                asking.start()
            except RuntimeError:
                # No thread can be had at present: who connects asks without one.
                asked.done.set()
                return asked
            _under_way[host] = asked
        return _under_way[host]


def _look_up(host: str, asked: _Asked) -> None:
    asked.addresses = ()
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        asked.addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
    with _lock:
        del _under_way[host]
    asked.done.set()


def _is_address(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return False
    return True
