"""Calls of the explorer to the service: as its clients make them, without a network.

A call goes through all of the service: token, scopes, rate limit, audit. What comes back is
what a client would get, to the byte.
"""

from contextvars import copy_context
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode
from wsgiref.types import WSGIApplication

import orjson
from flask import request
from werkzeug.test import Client

from app.call import request_id
from app.config import BASE_PATH
from app.in_process import PERSON, REASON
from app.middleware import REQUEST_ID_HEADER
from explorer.failures import RefusedError
from explorer.sessions import Pairs, Session

_PASSED_ON = (
    "REMOTE_ADDR",
    "wsgi.url_scheme",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
)
"""The address of the person, and that they came over HTTPS."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answered."""

    body: bytes

    @property
    def resource(self) -> dict[str, Any]:
        """The resource that the body is."""
        resource: dict[str, Any] = orjson.loads(self.body)
        return resource


def call(
    service: WSGIApplication,
    session: Session,
    path: str,
    *,
    query: Pairs = (),
    form: Pairs | None = None,
) -> Reply:
    """Read what is at a path below the base of the service; a form is posted.

    Raises RefusedError.
    """
    overrides: dict[str, Any] = {
        name: request.environ[name] for name in _PASSED_ON if name in request.environ
    }
    overrides |= {PERSON: session.person, REASON: session.reason or None}
    sent: dict[str, Any] = {"query_string": urlencode(query)}
    if form is not None:
        content_type = "application/x-www-form-urlencoded"
        sent = {"method": "POST", "data": urlencode(form), "content_type": content_type}
    # In a context of its own: the service has a request of its own.
    response = copy_context().run(
        Client(service).open,
        f"{BASE_PATH}/{path}",
        headers=[
            ("Authorization", f"Bearer {session.token}"),
            (REQUEST_ID_HEADER, request_id() or ""),
        ],
        environ_overrides=overrides,
        buffered=True,
        **sent,
    )
    reply = Reply(response.get_data())
    if response.status_code != HTTPStatus.OK:
        issue = reply.resource["issue"][0]
        id = response.headers.get(REQUEST_ID_HEADER, "")
        place = "".join(issue.get("location", ())[:1])
        raise RefusedError(response.status_code, place.removeprefix("http."), id)
    return reply
