"""Names of hosts, looked up in bounded time.

Where a name server says nothing the system asks it again and again, for ten seconds and more,
whatever time-out a connection has.
"""

import socket
from contextlib import suppress
from threading import Event, Lock, Thread

_under_way: dict[str, Event] = {}
_lock = Lock()


def look_up(host: str, seconds: float) -> None:
    """Wait until the name of a host has been looked up; raises TimeoutError.

    To be called before what connects, which looks it up itself and tells what is wrong.
    """
    if not _is_address(host) and not _begun(host).wait(seconds):
        raise TimeoutError("the name was not looked up in time")


def _begun(host: str) -> Event:
    """Return what is set when a name has been looked up: by one thread for all who ask."""
    with _lock:
        if host not in _under_way:
            done = Event()
            asking = Thread(target=_look_up, args=(host, done), name=host)
            asking.daemon = True
            try:
                asking.start()
            except RuntimeError:
                # No thread can be had at present: who connects asks without one.
                done.set()
                return done
            _under_way[host] = done
        return _under_way[host]


def _look_up(host: str, done: Event) -> None:
    with suppress(OSError, UnicodeError):
        socket.getaddrinfo(host, None)
    with _lock:
        del _under_way[host]
    done.set()


def _is_address(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return False
    return True
