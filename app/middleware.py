"""What applies to every request: HTTPS, error responses, headers.

- Transport: only HTTPS is served, directly or as a trusted proxy reports it (decision 24).
- Errors: every status from 400 up is an OperationOutcome, by the tables in `app.errors`
  (spec 7, decision 20).
- Headers: no response is stored, framed or sniffed.
"""

import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

import orjson
from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from adapters.contract import AdapterError, RowFault
from app.config import Network, Settings
from app.errors import (
    UNEXPECTED,
    Answer,
    Headers,
    SecurityError,
    ServiceError,
    answer_for_error,
    answer_for_status,
)
from app.fhir.outcome import OUTCOME, Issue
from app.observability import Stage, enter, facts

CONTENT_TYPE = "application/fhir+json;charset=UTF-8"

SECURITY_HEADERS: Headers = (
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

_SITE_BITS = 64
"""The part of an IPv6 address that one site shares."""

_WITH_PORT = re.compile(r"\[([^]]*)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
"""An address as some proxies write it, with the port of the client."""


_Address: TypeAlias = IPv4Address | IPv6Address

_log = logging.getLogger(__name__)


def register_transport(
    app: Flask, settings: Settings, headers: Headers = SECURITY_HEADERS
) -> None:
    """Refuse plain HTTP before anything else is read; add the security headers."""
    secure_headers = (*headers, STRICT_TRANSPORT)

    @app.before_request
    def refuse_plain_http() -> None:
        connected = _peer()
        peer = _address(connected)
        trusted = connected == UNIX_SOCKET or _is_in(peer, settings.trusted_proxies)
        local = peer is not None and peer.is_loopback
        g.https = request.scheme == "https" or (trusted and _is_forwarded_https())
        if not g.https and not (local and settings.plain_http == "loopback"):
            raise SecurityError("This service is reached over HTTPS only.")

    @app.after_request
    def add_headers(response: Response) -> Response:
        added = secure_headers if g.get("https") else headers
        if "Cache-Control" in response.headers:
            # A file of the explorer: a browser may keep it.
            added = tuple(each for each in added if each[0] != "Cache-Control")
        response.headers.extend(added)
        if request.method == "OPTIONS" and not response.calculate_content_length():
            del response.headers["Content-Type"]
        return response


def requester(proxies: Sequence[Network]) -> str:
    """Return the client's address for counting requests; of IPv6 its network."""
    address = requesting_address(proxies)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _SITE_BITS), strict=False))
    return str(address)


def requesting_address(proxies: Sequence[Network]) -> _Address | None:
    """Return the client's address, None where nothing names it.

    Each trusted proxy names whom it speaks for, the nearest one last: the chain ends at
    the first address that is not a trusted proxy.
    """
    forwarded = request.headers.get("X-Forwarded-For", "").split(",")
    nearest = () if _peer() == UNIX_SOCKET else (_peer(),)
    client = None
    for text in (*nearest, *map(_without_port, reversed(forwarded))):
        address = _address(text)
        if address is None:
            break
        client = address
        if not _is_in(address, proxies):
            break
    return client


def _peer() -> str:
    """Return who is connected to us; who is not named at all is nobody that we trust."""
    return "unknown" if request.remote_addr is None else request.remote_addr


def _is_forwarded_https() -> bool:
    # The nearest proxy writes last.
    protocols = request.headers.get("X-Forwarded-Proto", "")
    return protocols.rpartition(",")[2].strip().lower() == "https"


def _is_in(address: _Address | None, networks: Sequence[Network]) -> bool:
    return address is not None and any(address in network for network in networks)


def _without_port(text: str) -> str:
    match = _WITH_PORT.fullmatch(text.strip())
    return (match[1] or match[2] or "") if match else text.strip()


@lru_cache
def _address(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both protocols writes IPv4 peers as ::ffff:a.b.c.d.
    return getattr(address, "ipv4_mapped", None) or address


def register_errors(app: Flask) -> None:
    """Answer every error of `app` with an OperationOutcome; log those from 500 up."""

    @app.errorhandler(Exception)
    def handle(error: Exception) -> Response | HTTPException:
        status = error.code if isinstance(error, HTTPException) else None
        if isinstance(error, HTTPException) and (status or 0) < HTTPStatus.BAD_REQUEST:
            # A redirect or a ready response is no error.
            return error
        response = error_response(error)
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log_failure(error, response.status_code)
        return response


def error_response(error: Exception) -> Response:
    """Return the response to any error."""
    enter(Stage.WRITE)
    answer = outcome_for(error)
    issue = Issue("error", answer.code, answer.text, answer.location)
    # A request that is refused before its parameters are read has none.
    is_pretty = ("_pretty", "true") in facts().parameters
    option = orjson.OPT_INDENT_2 if is_pretty else 0
    body = orjson.dumps(OUTCOME.dump((issue,)), option=option)
    return Response(body, answer.status, answer.headers, content_type=CONTENT_TYPE)


def outcome_for(error: Exception) -> Answer:
    """Return how any error is answered, by the tables of `app.errors`."""
    if isinstance(error, HTTPException):
        return _http_answer(error)
    return answer_for_error(error)


def _http_answer(error: HTTPException) -> Answer:
    # The framework's own description may quote the request: it is never passed on.
    answer = answer_for_status(error.code or UNEXPECTED.status)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        allowed = ", ".join(sorted(error.valid_methods))
        text = f"This method is not offered here; {allowed} are."
        answer = answer._replace(text=text, headers=(("Allow", allowed),))
    retry_after = getattr(error, "retry_after", None)
    if isinstance(retry_after, int):
        answer = answer._replace(headers=(("Retry-After", str(retry_after)),))
    return answer


def log_failure(error: Exception, status: int) -> None:
    """Log an error that is the service's own, without its message."""
    fault = getattr(error, "fault", None)
    details = {
        "text": error.text if isinstance(error, ServiceError) else None,
        "source": error.source if isinstance(error, AdapterError) else None,
        "reason": error.reason if isinstance(error, AdapterError) else None,
        "fault": fault.described() if isinstance(fault, RowFault) else None,
    }
    data = {"status": status, **{name: text for name, text in details.items() if text}}
    # The log formatter writes the type and places of `exc_info`, never the message: a
    # database driver quotes values of the row that it could not read.
    _log.error("request failed", exc_info=error, extra={"data": data})
