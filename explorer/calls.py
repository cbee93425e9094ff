"""Calls of the explorer to the service: as its clients make them, without a network.

A call goes through all of the service: token, scopes, rate limit, audit. What comes back is
what a client would get, to the byte.
"""

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from http import HTTPStatus
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

import orjson
from flask import Flask, request
from werkzeug.test import Client

from app import PATH
from app.observability import PERSON, REASON, REQUEST_ID_HEADER, TIMES, request_id
from explorer.sessions import Session

Pairs = Sequence[tuple[str, str]]

_PASSED_ON = (
    "REMOTE_ADDR",
    "wsgi.url_scheme",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
)
"""Headers with the address of the person, and that they came over HTTPS."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answered; `times` has the milliseconds of each of its stages."""

    resource: dict[str, Any]
    body: bytes
    milliseconds: float
    times: Mapping[str, float]


class RefusedError(Exception):
    """The service has refused a call, with the issue of its OperationOutcome."""

    def __init__(self, status: int, issue: Mapping[str, Any], request_id: str) -> None:
        self.status, self.request_id = status, request_id
        self.text = issue.get("diagnostics", "")


def call(
    app: Flask,
    session: Session,
    path: str,
    *,
    query: Pairs = (),
    form: Pairs | None = None,
) -> Reply:
    """Read what is at a path below the base of the service; a form is posted.

    Raises RefusedError.
    """
    times: dict[str, float] = {}
    overrides: dict[str, Any] = {
        name: request.environ[name] for name in _PASSED_ON if name in request.environ
    }
    overrides |= {PERSON: session.person, REASON: session.reason or None, TIMES: times}
    sent: dict[str, Any] = {"query_string": urlencode(query)}
    if form is not None:
        content_type = "application/x-www-form-urlencoded"
        sent = {"method": "POST", "data": urlencode(form), "content_type": content_type}
    started = perf_counter()
    # In a context of its own: the service has its own request id and times.
    response = copy_context().run(
        Client(app).open,
        f"{PATH}/{path}",
        headers=[
            ("Authorization", f"Bearer {session.token}"),
            (REQUEST_ID_HEADER, request_id() or ""),
        ],
        environ_overrides=overrides,
        buffered=True,
        **sent,
    )
    took = (perf_counter() - started) * 1000
    body = response.get_data()
    resource = orjson.loads(body)
    if response.status_code != HTTPStatus.OK:
        id = response.headers.get(REQUEST_ID_HEADER, "")
        raise RefusedError(response.status_code, resource["issue"][0], id)
    return Reply(resource, body, took, times)
