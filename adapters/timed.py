"""HTTP connections outwards: every read ends with the deadline of the request.

A time-out of a socket starts anew with each byte: a source that drips its headers would
hold a thread for hours. A certificate is checked against the authorities of the operator.
"""

import io
import math
import os
import socket
from collections.abc import Callable, Sequence
from http.client import HTTPResponse
from threading import local
from typing import Any

import requests
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError
from urllib3.util.connection import create_connection

from adapters.names import look_up

NOW = local()
"""`NOW.left` tells the seconds that the request of this thread has left, or raises."""


def authorities() -> str:
    """Return the file of authorities that certificates are checked against.

    It is that of `SSL_CERT_FILE`, as for the rest of Python, and of `certifi` without one.
    Raises SSLError, of requests, for one that is not there.
    """
    file = os.environ.get("SSL_CERT_FILE") or requests.utils.DEFAULT_CA_BUNDLE_PATH
    if not os.path.isfile(file):
        raise requests.exceptions.SSLError("the file of authorities is not there")
    return file


class TimedRaw(io.RawIOBase):
    """Reads of a socket, each with no more time than is left."""

    def __init__(self, raw: Any, sock: Any, left: Callable[[], float]) -> None:
        self._raw, self._sock, self._left = raw, sock, left

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has come; raises what `left` raises."""
        self._sock.settimeout(self._left())
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        """Close what is read from."""
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        raw = self.fp.detach()
        self.fp = io.BufferedReader(TimedRaw(raw, sock, NOW.left))


class _InTime(HTTPConnection):
    """What makes a kind of connection a timed one."""

    response_class = _TimedResponse

    def _new_conn(self) -> socket.socket:
        try:
            addresses = look_up(self.host, self._patience())
            if addresses is None:
                return super()._new_conn()
            return self._connected(addresses)
        except TimeoutError as error:
            raise ConnectTimeoutError(self, str(error)) from error
        except OSError as error:
            raise NewConnectionError(self, "no address answers") from error

    def _connected(self, addresses: Sequence[str]) -> socket.socket:
        """Connect to the first address that lets us; all of them share the time."""
        refused = OSError("the name has no address")
        for address in addresses:
            try:
                return create_connection(
                    (address, self.port),
                    self._patience(),
                    self.source_address,
                    self.socket_options,
                )
            except OSError as error:
                refused = error
        raise refused

    def _patience(self) -> float:
        left: float = NOW.left()
        return min(self.timeout or math.inf, left)


class _TimedConnection(_InTime):
    pass


class _TimedSecureConnection(_InTime, HTTPSConnection):
    pass


class _TimedPool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TimedSecurePool(HTTPSConnectionPool):
    ConnectionCls = _TimedSecureConnection


class TimedAdapter(requests.adapters.HTTPAdapter):
    """Connections of a session that end in time; so many are kept."""

    def __init__(self, kept: int = 1) -> None:
        super().__init__(pool_connections=1, pool_maxsize=kept)

    def send(
        self, request: requests.PreparedRequest, *args: Any, **kwargs: Any
    ) -> requests.Response:
        """Send a request; raises RequestException."""
        if (request.url or "").startswith("https:"):
            kwargs["verify"] = authorities()
        return super().send(request, *args, **kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools of connections."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {
            "http": _TimedPool,
            "https": _TimedSecurePool,
        }
