"""How the service authenticates to an HTTP source: basic, OAuth 2.0 or a login of its own."""

import base64
import json
import math
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TypeAlias
from urllib.parse import urlsplit

from adapters.contract import (
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
)
from adapters.http.client import Answer, Call, Client, Deadline
from adapters.mapping.model import Basic, HttpSource, Login, OAuth2
from adapters.mapping.paths import at, unreadable

Headers: TypeAlias = Mapping[str, str]
Send: TypeAlias = Callable[[Call, Headers, Deadline], Answer]
Fetch: TypeAlias = Callable[[Deadline], tuple[Headers, float]]
"""Returns headers and the moment at which they expire, by time.monotonic()."""

_EARLY_SECONDS = 30
"""A token is renewed this long before it expires, so that none expires on its way."""

_DEFAULT_LIFE = 300.0
"""The assumed life of a token, in seconds, if the token server does not say."""

_LONGEST_LIFE = 1e18

_REFUSALS = (
    "invalid_client",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
)
"""Errors of a token server that no retry resolves (RFC 6749, 5.2)."""


class Credentials:
    """The headers that authenticate requests; safe to share between threads.

    They are `fixed`, or fetched, cached, and fetched again when they expire or are refused.
    """

    def __init__(
        self, fixed: Headers | None = None, fetch: Fetch | None = None
    ) -> None:
        self._headers = fixed
        self._fetch = fetch
        self._expires = math.inf
        self._lock = Lock()

    def headers(self, deadline: Deadline) -> Headers:
        """Return the headers, fetched by one thread for all; raises as the source does."""
        if not self._lock.acquire(timeout=deadline.left()):
            raise SourceUnavailableError("the login took too long")
        try:
            headers, expired = self._headers, time.monotonic() >= self._expires
            if self._fetch and (headers is None or expired):
                headers, self._expires = self._fetch(deadline)
                self._headers = headers
            return headers or {}
        finally:
            self._lock.release()

    def renew(self, refused: Headers) -> bool:
        """Drop headers that the source refused; return whether others can be fetched."""
        # Without the lock, since the thread that fetches may hold it for longer than this
        # request has. Another thread may have fetched new headers already.
        if self._fetch and self._headers is refused:
            self._headers = None
        return self._fetch is not None


def credentials_of(source: HttpSource, send: Send) -> Credentials:
    """Return the credentials of a source; `send` reaches it without them."""
    match source.auth:
        case Basic(user, password):
            return Credentials(_basic(user, password))
        case OAuth2() as oauth2:
            return Credentials(fetch=_token_fetch(oauth2))
        case Login() as login:
            return Credentials(
                fetch=lambda deadline: _log_in(login, source.headers, send, deadline)
            )
        case _:
            return Credentials({})


def _basic(user: str, password: str) -> Headers:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def _token_fetch(oauth2: OAuth2) -> Fetch:
    """Return what fetches a token by client credentials (RFC 6749, 4.4)."""
    url = urlsplit(oauth2.token_url)
    path = url._replace(scheme="", netloc="", fragment="").geturl()
    parameters = (
        ("grant_type", "client_credentials"),
        ("scope", oauth2.scope or ""),
        ("audience", oauth2.audience or ""),
    )
    call = Call("POST", path, tuple(pair for pair in parameters if pair[1]))
    client = Client(f"{url.scheme}://{url.netloc}", name="token server")
    headers = _basic(oauth2.client_id, oauth2.client_secret)

    def fetch(deadline: Deadline) -> tuple[Headers, float]:
        try:
            answer = client.send(call, headers, deadline)
        except SourceTimedOutError as error:
            raise SourceUnavailableError("the token server took too long") from error
        except (SourceUnavailableError, SourceDataError) as error:
            text = f"the token server gave no token: {error}"
            raise SourceUnavailableError(text) from error
        finally:
            # Requests are so rare that the server would have cut an idle connection.
            client.close()
        return _token(answer)

    return fetch


def _token(answer: Answer) -> tuple[Headers, float]:
    try:
        # orjson refuses a life of more digits than a float has; constants are not JSON.
        body = json.loads(answer.body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SourceUnavailableError("the token server's answer is not JSON") from error
    fields = body if isinstance(body, dict) else {}
    if fields.get("error") in _REFUSALS:
        raise unreadable("the token server refuses who asks", refused=True)
    token = fields.get("access_token")
    is_success = answer.status // 100 == 2 and "error" not in fields
    if not is_success or not isinstance(token, str) or not _fits_header(token):
        raise SourceUnavailableError("the token server gave no token")
    life = _life(fields.get("expires_in"))
    expires = time.monotonic() + max(life - _EARLY_SECONDS, life / 2)
    return {"Authorization": f"Bearer {token}"}, expires


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _life(value: object) -> float:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = float(value)
    if isinstance(value, (int, float)):
        return min(value, _LONGEST_LIFE)
    return _DEFAULT_LIFE


def _log_in(
    login: Login, headers: Headers, send: Send, deadline: Deadline
) -> tuple[Headers, float]:
    if login.as_json:
        call = Call("POST", login.path, json=login.values)
    else:
        call = Call("POST", login.path, tuple(login.values.items()))
    answer = send(call, headers, deadline)
    if answer.status // 100 == 4 and answer.status != 429:
        text = f"the login was refused ({answer.status})"
        raise unreadable(text, refused=answer.status in (401, 403))
    if answer.status // 100 != 2:
        raise SourceUnavailableError(f"the login failed ({answer.status})")
    token = at(answer.json(), login.token)
    if not isinstance(token, (str, int)) or not _fits_header(str(token)):
        raise unreadable("the answer of the login holds no token")
    return {login.header: login.format.replace("{token}", str(token))}, math.inf


def _fits_header(text: str) -> bool:
    return text != "" and text.isascii() and text.isprintable()
