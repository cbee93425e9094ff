"""What every request gets around the framework: one WSGI middleware.

- An id, which its log lines, its response and its audit event share.
- Transport: only HTTPS is served, directly or as a trusted proxy reports it (decision 24).
- A turn: a worker answers a limited number of requests at a time.
- An audit event before the first byte of the response, whatever its status (decision 43).
- Security headers: no response is stored, framed or sniffed.
- One access line, metrics, and a span where requests are traced.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from threading import Semaphore
from typing import Any, NoReturn, Protocol, TypeAlias

from app.call import CALL, Call, begin, end
from app.config import BASE_PATH, Network
from app.error_responses import error_response
from app.errors import ResponseHeaders, SecurityError, ServiceError, UnavailableError
from app.logging import write_access_line
from app.observability import METHODS, RequestSpan, count_request

REQUEST_ID_HEADER = "X-Request-Id"

SECURITY_HEADERS: ResponseHeaders = (
    # Responses are about patients: no cache stores one, nor a 404 or 410 by heuristics
    # (RFC 9111, 4.2.2). A client may still revalidate its copy by ETag (decision 19).
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    # Shown in a browser, a response loads nothing, runs nothing and reveals no address.
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
)
"""Headers of every response."""

STRICT_TRANSPORT = ("Strict-Transport-Security", "max-age=31536000")
"""A year of HTTPS for this host; only sent over HTTPS (RFC 6797, 7.2)."""

UNIX_SOCKET = ""
"""The REMOTE_ADDR of a peer on a unix socket: only the proxy can open its file."""

STUCK_SECONDS = 60.0
"""How long all threads may work without one that finishes: then the limit is stuck."""

_BUSY = "The service is busy. Try again later."

_SITE_BITS = 64
"""The part of an IPv6 address that one site shares."""

_WITH_PORT = re.compile(r"\[([^]]*)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
"""An address as some proxies write it, with the port of the client."""

_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")

_Address: TypeAlias = IPv4Address | IPv6Address
_Environ: TypeAlias = dict[str, Any]
_Application: TypeAlias = Callable[[_Environ, Any], Iterable[bytes]]


class AuditRecorder(Protocol):
    """Where the audit events of a deployment go."""

    def record(self, call: Call, status: int) -> bool:
        """Write the event of a response; return whether the response may be sent."""


class RequestLimit:
    """Limits how many requests a worker works on, and how many wait for their turn.

    Further ones fail at once: threads are left for probes however many clients come.
    """

    def __init__(
        self,
        running: int,
        waiting: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = Semaphore(running + waiting)
        self._turns = Semaphore(running)
        self._seconds = seconds
        self._clock = clock
        self._progress = clock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a turn. Raises UnavailableError (503) if none comes in time."""
        if not self._places.acquire(blocking=False):
            raise UnavailableError(_BUSY)
        if not self._turns.acquire(timeout=self._seconds):
            self._places.release()
            raise UnavailableError(_BUSY)
        self._progress = self._clock()
        try:
            yield
        finally:
            self._progress = self._clock()
            self._turns.release()
            self._places.release()

    @property
    def is_stuck(self) -> bool:
        """Whether every turn is taken, and none has been passed on for a long time."""
        if self._turns.acquire(blocking=False):
            self._turns.release()
            return False
        return self._clock() - self._progress >= STUCK_SECONDS


@dataclass(frozen=True, slots=True)
class Transport:
    """Which connections are HTTPS: direct ones, and those that a trusted proxy reports.

    `on_loopback` allows plain HTTP from this machine.
    """

    proxies: Sequence[Network] = ()
    on_loopback: bool = False

    def is_secure(self, environ: Mapping[str, Any]) -> bool:
        """Return whether a request came over HTTPS."""
        if environ.get("wsgi.url_scheme") == "https":
            return True
        peer = _peer(environ)
        trusted = peer == UNIX_SOCKET or _is_in(_address(peer), self.proxies)
        # The nearest proxy writes last.
        protocols = environ.get("HTTP_X_FORWARDED_PROTO", "")
        return trusted and protocols.rpartition(",")[2].strip().lower() == "https"

    def allows_plain(self, environ: Mapping[str, Any]) -> bool:
        """Return whether plain HTTP is allowed for the connected peer."""
        address = _address(_peer(environ))
        return self.on_loopback and address is not None and address.is_loopback


class _Started:
    """What an application passes to `start_response`."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []

    def __call__(
        self,
        status: str,
        headers: list[tuple[str, str]],
        _: object = None,
        /,
    ) -> Callable[[bytes], object]:
        self.status, self.headers = status, headers
        return _refuse_write


def _refuse_write(_: bytes) -> NoReturn:
    """Refuse the imperative way to send a body (PEP 3333), which no framework of ours uses."""
    raise RuntimeError("a response is returned, not written")


class Requests:
    """The middleware around an application of this process.

    `headers` are those of every response, `trail` the audit trail, if there is one. Metrics
    count the requests if `is_counted`.
    """

    def __init__(
        self,
        application: _Application,
        transport: Transport,
        *,
        headers: ResponseHeaders = SECURITY_HEADERS,
        limit: RequestLimit | None = None,
        trail: AuditRecorder | None = None,
        is_counted: bool = True,
        is_traced: bool = False,
    ) -> None:
        self._application = application
        self._transport = transport
        self._headers = headers
        self._limit = limit
        self._trail = trail
        self._is_counted = is_counted
        self._is_traced = is_traced

    def __call__(self, environ: _Environ, start_response: Any) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        id = environ.get("HTTP_X_REQUEST_ID", "")
        if not _WELL_FORMED.fullmatch(id):
            id = secrets.token_hex(16)
        call = Call(id, environ)
        environ[CALL] = call
        token = begin(id)
        span = RequestSpan(call) if self._is_traced else None
        try:
            is_secure = self._transport.is_secure(environ)
            started = _Started()
            body = self._answer(call, environ, started, is_secure=is_secure)
            status = int(started.status[:3])
            if self._trail and not self._trail.record(call, status):
                close = getattr(body, "close", None)
                if close is not None:
                    close()
                refusal = UnavailableError(
                    "The response is withheld because its audit event cannot be written."
                )
                body = error_response(refusal, call)(environ, started)
                status = int(started.status[:3])
            call.enter(call.stage)
            self._report(call, status)
            if span is not None:
                span.end(status)
        finally:
            if span is not None:
                span.close()
            end(token)
        headers = self._complete(call, started, is_secure=is_secure)
        start_response(started.status, headers)
        return body

    def _answer(
        self, call: Call, environ: _Environ, started: _Started, *, is_secure: bool
    ) -> Iterable[bytes]:
        try:
            if not is_secure and not self._transport.allows_plain(environ):
                raise SecurityError("This service requires HTTPS.")
            _remove_slashes(environ)
            if self._limit is None:
                return self._application(environ, started)
            with self._limit.turn():
                return self._application(environ, started)
        except ServiceError as error:
            return error_response(error, call)(environ, started)

    def _complete(
        self, call: Call, started: _Started, *, is_secure: bool
    ) -> list[tuple[str, str]]:
        """Return the headers of a response with those that every response has."""
        headers = started.headers
        names = {name for name, _ in headers}
        is_options = call.environ["REQUEST_METHOD"] == "OPTIONS"
        if is_options and ("Content-Length", "0") in headers:
            headers = [pair for pair in headers if pair[0] != "Content-Type"]
        # A file of the explorer names its own: a browser may keep it.
        added = [pair for pair in self._headers if pair[0] not in names]
        if is_secure:
            added.append(STRICT_TRANSPORT)
        return [*headers, *added, (REQUEST_ID_HEADER, call.id)]

    def _report(self, call: Call, status: int) -> None:
        method = call.environ["REQUEST_METHOD"]
        if self._is_counted:
            count_request(call, method, status)
        seconds = call.seconds
        data = {
            "method": method if method in METHODS else "other",
            "route": call.route or None,
            "status": status,
            "duration_ms": round(sum(seconds.values()) * 1000, 1),
            **{f"{name}_ms": round(took * 1000, 1) for name, took in seconds.items()},
            "client": call.client_id,
        }
        write_access_line(data, call.id)


def _remove_slashes(environ: _Environ) -> None:
    """Remove doubled slashes and one at the end below the base of the service (decision 38).

    Libraries join addresses so. An escaped slash (%2F) is part of a name: such a path stays.
    """
    path: str = environ.get("PATH_INFO", "")
    sent: str = environ.get("RAW_URI") or environ.get("REQUEST_URI") or path
    if not path.startswith(f"{BASE_PATH}/") or "%2f" in sent.partition("?")[0].lower():
        return
    plain = re.sub("/{2,}", "/", path)
    environ["PATH_INFO"] = plain.removesuffix("/")


def requester(environ: Mapping[str, Any], proxies: Sequence[Network]) -> str:
    """Return the client's address for counting requests; of IPv6 its network."""
    address = requesting_address(environ, proxies)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _SITE_BITS), strict=False))
    return str(address)


def requesting_address(
    environ: Mapping[str, Any], proxies: Sequence[Network]
) -> _Address | None:
    """Return the client's address, None where nothing names it.

    Each trusted proxy names whom it speaks for, the nearest one last: the chain ends at
    the first address that is not a trusted proxy.
    """
    forwarded = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    peer = _peer(environ)
    nearest = () if peer == UNIX_SOCKET else (peer,)
    client = None
    for text in (*nearest, *map(_without_port, reversed(forwarded))):
        address = _address(text)
        if address is None:
            break
        client = address
        if not _is_in(address, proxies):
            break
    return client


def _peer(environ: Mapping[str, Any]) -> str:
    """Return the address of who is connected. A peer without one is not trusted."""
    peer: str | None = environ.get("REMOTE_ADDR")
    return "unknown" if peer is None else peer


def _is_in(address: _Address | None, networks: Sequence[Network]) -> bool:
    return address is not None and any(address in network for network in networks)


def _without_port(text: str) -> str:
    """Return an address as a proxy wrote it, without the port of the client."""
    match = _WITH_PORT.fullmatch(text.strip())
    if match is None:
        return text.strip()
    return match[1] or match[2] or ""


@lru_cache
def _address(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both protocols writes IPv4 peers as ::ffff:a.b.c.d.
    return getattr(address, "ipv4_mapped", None) or address
