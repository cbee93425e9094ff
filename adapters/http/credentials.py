"""How a source is shown who asks: with every request, by a token, or by a session."""

import base64
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Protocol

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session

from adapters.contract import SourceDataError, SourceUnavailableError
from adapters.http.answers import at
from adapters.http.client import Answer, Call, Deadline
from adapters.mapping.http_model import Basic, HttpSource, Login, OAuth2
from adapters.outward import Kind, outward
from adapters.timed import NOW, TimedAdapter

Send = Callable[[Call, Mapping[str, str], Deadline], Answer]

_EARLY_SECONDS = 30
"""A token is renewed before it ends, so that none ends on its way."""

_ALWAYS = 1e18
"""A life of so many seconds does not end."""

_REFUSED = frozenset(
    ("invalid_client", "invalid_scope", "unauthorized_client", "unsupported_grant_type")
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
            pair = base64.b64encode(f"{user}:{password}".encode()).decode()
            return Fixed({"Authorization": f"Basic {pair}"})
        case OAuth2() as oauth2:
            return Renewed(lambda until: _token(oauth2, until))
        case Login() as login:
            return Renewed(lambda until: (_log_in(login, source, send, until), _ALWAYS))


def _token(oauth2: OAuth2, until: Deadline) -> tuple[Mapping[str, str], float]:
    more = {"audience": oauth2.audience} if oauth2.audience else {}
    try:
        with (
            outward(Kind.HTTP, "token server", "POST"),
            OAuth2Session(
                oauth2.client_id, oauth2.client_secret, scope=oauth2.scope
            ) as session,
        ):
            session.trust_env = False
            session.mount("http://", TimedAdapter())
            session.mount("https://", TimedAdapter())
            NOW.left = until.left
            token: Any = session.fetch_token(
                oauth2.token_url,
                grant_type="client_credentials",
                timeout=until.left(),
                allow_redirects=False,
                **more,
            )
    except requests.Timeout as error:
        raise SourceUnavailableError("the token server took too long") from error
    except (
        requests.RequestException,
        AuthlibBaseError,
        ValueError,
        OverflowError,  # a life that no clock can add
    ) as error:
        if getattr(error, "error", "") in _REFUSED:
            raise SourceDataError("the token server refuses who asks") from error
        kind = type(error).__name__
        raise SourceUnavailableError(f"the token server gave none ({kind})") from error
    shown = token.get("access_token")
    if not isinstance(shown, str) or not _can_be_sent(shown):
        raise SourceUnavailableError("the token server gave none")
    seconds = token.get("expires_in")
    life = min(seconds, _ALWAYS) if isinstance(seconds, int) else 300.0
    ends = time.monotonic() + max(life - _EARLY_SECONDS, life / 2)
    return {"Authorization": f"Bearer {shown}"}, ends


def _log_in(
    login: Login, source: HttpSource, send: Send, until: Deadline
) -> Mapping[str, str]:
    if login.as_json:
        call = Call("POST", login.path, json=login.values)
    else:
        call = Call("POST", login.path, tuple(login.values.items()))
    answer = send(call, source.headers, until)
    if answer.status // 100 == 4 and answer.status != 429:
        raise SourceDataError(f"the login was refused ({answer.status})")
    if answer.status // 100 != 2:
        raise SourceUnavailableError(f"the login was answered {answer.status}")
    token = at(answer.json(), login.token)
    if not isinstance(token, (str, int)) or not _can_be_sent(str(token)):
        raise SourceDataError("the login's answer holds no token")
    return {login.header: login.format.replace("{token}", str(token))}


def _can_be_sent(text: str) -> bool:
    """Whether a token can stand in a header."""
    return text != "" and text.isascii() and text.isprintable()
