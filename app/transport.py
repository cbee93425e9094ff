"""HTTPS only (decision 24), and what a request's way here tells.

A request counts as HTTPS when it came so, or when a trusted proxy says that it did.
One switch lets plain HTTP in from this machine itself, for a demo. Forwarded headers are
believed of trusted proxies alone.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple, TypeAlias

from flask import Flask, Response, request

from app.current import current_request, sent
from app.errors import Headers, SecurityError
from app.setting_readers import Network
from app.settings import PlainHttp, Settings

SECURITY_HEADERS: Headers = (
    # Answers are about patients: no cache keeps one. An ETag still tells the client, who
    # may keep what it got, that nothing has changed (decision 19). Without this, caches
    # may keep a 404 or 410 of their own accord (RFC 9111, 4.2.2).
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    # Shown in a browser, an answer loads nothing, runs nothing and tells nobody.
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
)
"""What every answer carries."""

STRICT_TRANSPORT = ("Strict-Transport-Security", "max-age=31536000")
"""A year of HTTPS for this host; only said over HTTPS (RFC 6797, 7.2)."""

_SITE_BITS = 64
"""The part of an IPv6 address that one site shares."""

_WITH_PORT = re.compile(r"\[([^]]*)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
"""An address as some proxies write it, with the port of the client."""

_HTTPS = "encounters.https"
"""Where the environment of a request says that it came over HTTPS."""

_Environ: TypeAlias = dict[str, Any]
_Body: TypeAlias = Iterable[bytes]
_Address: TypeAlias = IPv4Address | IPv6Address


class _Peer(NamedTuple):
    """Who is next to us: a trusted proxy, a process of this machine, or anybody."""

    is_trusted: bool
    is_local: bool


def register_transport(app: Flask, settings: Settings) -> None:
    """Refuse what came over plain HTTP, before anything else is looked at."""

    @lru_cache
    def peer_at(text: str) -> _Peer:
        """Return who has an address: there are few."""
        address = _address(text)
        if address is None:
            return _Peer(is_trusted=False, is_local=False)
        trusted = _is_one_of(address, settings.trusted_proxies)
        return _Peer(trusted, address.is_loopback)

    @app.before_request
    def refuse_plain_http() -> None:
        asked = current_request()
        peer = peer_at(asked.remote_addr or "")
        if asked.scheme == "https" or (peer.is_trusted and _is_forwarded_https()):
            asked.environ.update({_HTTPS: True})
        elif not (peer.is_local and settings.plain_http is PlainHttp.LOOPBACK):
            raise SecurityError("This service is reached over HTTPS only.")

    @app.after_request
    def leave_out_type(response: Response) -> Response:
        method = current_request().method
        if method == "OPTIONS" and response.calculate_content_length() == 0:
            del response.headers["Content-Type"]
        return response

    app.wsgi_app = _secured(app.wsgi_app)  # type: ignore[method-assign]  # Flask's way


def _secured(application: Callable[[_Environ, Any], _Body]) -> Any:
    """Add the headers of every answer, as it leaves."""

    def secured(environ: _Environ, start_response: Any) -> _Body:
        def start(status: str, headers: list[Any], *error: Any) -> Any:
            headers += SECURITY_HEADERS
            if _HTTPS in environ:
                headers.append(STRICT_TRANSPORT)
            return start_response(status, headers, *error)

        return application(environ, start)

    return secured


def requester(proxies: Sequence[Network]) -> str:
    """Return the address that this request comes from; of IPv6 its network."""
    found = requesting_address(proxies)
    if isinstance(found, IPv6Address):
        return str(ip_network((found, _SITE_BITS), strict=False))
    return str(found)


def requesting_address(proxies: Sequence[Network]) -> _Address | None:
    """Return the address that this request comes from, None where nothing tells it.

    Trusted proxies say whom they speak for, the one next to us last: who they name is
    asked for in turn as long as it is one of them.
    """
    told = request.headers.get("X-Forwarded-For", "").split(",")
    found = None
    for text in (request.remote_addr or "", *map(_portless, reversed(told))):
        address = _address(text)
        if address is None:
            break
        found = address
        if not _is_one_of(address, proxies):
            break
    return found


def _is_forwarded_https() -> bool:
    # The proxy next to us writes last.
    told = sent("HTTP_X_FORWARDED_PROTO") or ""
    return told.rpartition(",")[2].strip().lower() == "https"


def _is_one_of(address: _Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _portless(told: str) -> str:
    text = told.strip()
    found = _WITH_PORT.fullmatch(text)
    return (found[1] or found[2] or "") if found else text


def _address(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both protocols writes IPv4 peers as ::ffff:a.b.c.d.
    return getattr(address, "ipv4_mapped", None) or address
