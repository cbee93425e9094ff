"""How a source is shown who asks: with every request, by a token, or by a session."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from adapters.contract import SourceDataError, SourceUnavailableError
from adapters.errors import SourceTimedOutError
from adapters.http.answers import at
from adapters.http.client import Answer, Call, Client, Deadline
from adapters.mapping.http_model import Basic, HttpSource, Login, OAuth2

Send = Callable[[Call, Mapping[str, str], Deadline], Answer]

_EARLY_SECONDS = 30
"""A token is renewed before it ends, so that none ends on its way."""

_ALWAYS = 1e18
"""A life of so many seconds does not end."""

_UNTOLD_SECONDS = 300.0
"""What is taken for the life of a token of which none is told."""

_REFUSED = (
    "invalid_client",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
)
"""What a token server says when no second try helps (RFC 6749, 5.2)."""


class Credentials(Protocol):
    """What shows who asks. Safe to share between threads."""

    def headers(self, until: Deadline) -> Mapping[str, str]:
        """Return the headers of a request; raises as the source's own calls do."""

    def refuse(self, headers: Mapping[str, str]) -> bool:
        """Take note that the source refused these; return whether new ones can be had."""


class Fixed:
    """Headers that never change."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    def headers(self, until: Deadline) -> Mapping[str, str]:  # noqa: ARG002
        """Return the headers."""
        return self._headers

    def refuse(self, headers: Mapping[str, str]) -> bool:  # noqa: ARG002
        """There are no others."""
        return False


class Renewed:
    """Headers that are fetched, kept, and fetched anew when they end or are refused.

    `fetch` returns them and the moment (of time.monotonic) at which they end.
    """

    def __init__(
        self, fetch: Callable[[Deadline], tuple[Mapping[str, str], float]]
    ) -> None:
        self._fetch = fetch
        self._kept: Mapping[str, str] | None = None
        self._ends = 0.0
        self._lock = Lock()

    def headers(self, until: Deadline) -> Mapping[str, str]:
        """Return the headers, fetched by one thread for all."""
        if not self._lock.acquire(timeout=until.left()):
            raise SourceUnavailableError("the login took too long")
        try:
            if self._kept is None or time.monotonic() >= self._ends:
                self._kept, self._ends = self._fetch(until)
            return self._kept
        finally:
            self._lock.release()

    def refuse(self, headers: Mapping[str, str]) -> bool:
        """Forget these headers, unless another thread has fetched new ones already."""
        # Without the lock: who fetches has it, and may have more time than this request.
        if self._kept is headers:
            self._kept = None
        return True


def credentials_of(source: HttpSource, send: Send) -> Credentials:
    """Return the credentials of a source; `send` reaches it without them."""
    match source.auth:
        case None:
            return Fixed({})
        case Basic(user, password):
            return Fixed(_basic(user, password))
        case OAuth2() as oauth2:
            return Renewed(TokenServer(oauth2).token)
        case Login() as login:
            return Renewed(lambda until: (_log_in(login, source, send, until), _ALWAYS))


def _basic(user: str, password: str) -> Mapping[str, str]:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


class TokenServer:
    """Tokens for client credentials (RFC 6749, 4.4), asked for as a source is: see Client."""

    def __init__(self, oauth2: OAuth2) -> None:
        whole = urlsplit(oauth2.token_url)
        server = urlunsplit(whole._replace(path="", query="", fragment=""))
        path = urlunsplit(whole._replace(scheme="", netloc="", fragment=""))
        asked = (
            ("grant_type", "client_credentials"),
            ("scope", oauth2.scope or ""),
            ("audience", oauth2.audience or ""),
        )
        self._client = Client(server, 1, _EARLY_SECONDS, name="token server")
        self._call = Call("POST", path, tuple(pair for pair in asked if pair[1]))
        self._shown = _basic(oauth2.client_id, oauth2.client_secret)

    def token(self, until: Deadline) -> tuple[Mapping[str, str], float]:
        """Return the headers that show a new token, and when it ends.

        Raises SourceUnavailableError, and SourceDataError where no second try helps.
        """
        try:
            answer = self._client.send(self._call, self._shown, until)
        except SourceTimedOutError as error:
            raise SourceUnavailableError("the token server took too long") from error
        except (SourceUnavailableError, SourceDataError) as error:
            text = f"the token server gave none: {error}"
            raise SourceUnavailableError(text) from error
        finally:
            # It is asked seldom: who keeps the connection finds it cut.
            self._client.close()
        said = _said(answer)
        if said.get("error") in _REFUSED:
            raise SourceDataError("the token server refuses who asks", refused=True)
        token = said.get("access_token")
        told = answer.status // 100 == 2 and "error" not in said
        if not told or not isinstance(token, str) or not _can_be_sent(token):
            raise SourceUnavailableError("the token server gave none")
        life = _life(said.get("expires_in"))
        ends = time.monotonic() + max(life - _EARLY_SECONDS, life / 2)
        return {"Authorization": f"Bearer {token}"}, ends


def _said(answer: Answer) -> Mapping[str, Any]:
    try:
        # Python's own reader: a life may have more digits than others read.
        said = json.loads(answer.body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise SourceUnavailableError("the token server's answer is no JSON") from error
    return said if isinstance(said, dict) else {}


def _no_number(name: str) -> None:
    raise ValueError(name)


def _life(told: object) -> float:
    if isinstance(told, str) and told.isascii() and told.isdecimal():
        told = float(told)
    return min(told, _ALWAYS) if isinstance(told, (int, float)) else _UNTOLD_SECONDS


def _log_in(
    login: Login, source: HttpSource, send: Send, until: Deadline
) -> Mapping[str, str]:
    if login.as_json:
        call = Call("POST", login.path, json=login.values)
    else:
        call = Call("POST", login.path, tuple(login.values.items()))
    answer = send(call, source.headers, until)
    if answer.status // 100 == 4 and answer.status != 429:
        refused = answer.status in _LETS_NOBODY_IN
        text = f"the login was refused ({answer.status})"
        raise SourceDataError(text, refused=refused)
    if answer.status // 100 != 2:
        raise SourceUnavailableError(f"the login was answered {answer.status}")
    token = at(answer.json(), login.token)
    if not isinstance(token, (str, int)) or not _can_be_sent(str(token)):
        raise SourceDataError("the login's answer holds no token")
    return {login.header: login.format.replace("{token}", str(token))}


_LETS_NOBODY_IN = (401, 403)


def _can_be_sent(text: str) -> bool:
    """Whether a token can stand in a header."""
    return text != "" and text.isascii() and text.isprintable()
