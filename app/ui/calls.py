"""Calls of the explorer to the service: as its clients make them, without a network.

A call goes through all of the service: token, scopes, rate limit, audit. What comes back is
what a client would get, to the byte.
"""

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from http import HTTPStatus
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

import orjson
from flask import Flask, request
from werkzeug.test import EnvironBuilder, run_wsgi_app

from app import PATH
from app.stages import PERSON, REASON, REQUEST_ID_HEADER, TIMES, request_id
from app.ui.sessions import Session

Pairs = Sequence[tuple[str, str]]

_PASSED_ON = (
    "REMOTE_ADDR",
    "wsgi.url_scheme",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
)
"""What tells the service where the person is, and that they came over HTTPS."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answered; `times` has the milliseconds of each of its stages."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    milliseconds: float
    times: Mapping[str, float] = field(default_factory=dict)

    @property
    def resource(self) -> dict[str, Any]:
        """The resource of the body."""
        content: dict[str, Any] = orjson.loads(self.body)
        return content

    @property
    def is_ok(self) -> bool:
        """Whether it is what was requested."""
        return self.status == HTTPStatus.OK


def get(app: Flask, session: Session, path: str, query: Pairs = ()) -> Reply:
    """Read what is at a path below the base of the service."""
    return _call(app, session, path, method="GET", query_string=urlencode(query))


def search(app: Flask, session: Session, kind: str, form: Pairs) -> Reply:
    """Search a resource type."""
    path, content_type = f"{kind}/_search", "application/x-www-form-urlencoded"
    data = urlencode(form)
    return _call(
        app, session, path, method="POST", data=data, content_type=content_type
    )


def _call(app: Flask, session: Session, path: str, **request_of: str) -> Reply:
    times: dict[str, float] = {}
    overrides: dict[str, Any] = {
        name: request.environ[name] for name in _PASSED_ON if name in request.environ
    }
    overrides |= {PERSON: session.person, REASON: session.reason or None, TIMES: times}
    builder = EnvironBuilder(
        f"{PATH}/{path}",
        headers=[
            ("Authorization", f"Bearer {session.token}"),
            (REQUEST_ID_HEADER, request_id() or ""),
        ],
        environ_overrides=overrides,
        **request_of,  # type: ignore[arg-type]
    )
    started = perf_counter()
    # In a context of its own: the service has its own request id and times.
    body, status, headers = copy_context().run(
        run_wsgi_app, app, builder.get_environ(), buffered=True
    )
    took = (perf_counter() - started) * 1000
    code = int(status.split()[0])
    return Reply(code, dict(headers), b"".join(body), took, times)
