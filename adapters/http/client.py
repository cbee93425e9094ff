"""Requests to one HTTP source: credentials, limits of time and size, values in its answers.

Each thread has one session of `requests`: no proxy and no password file of the machine is
used, no cookie is stored, no redirect is followed. Only GET is retried. No error quotes a
text of the source.
"""

import base64
import math
import re
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, quote, urlencode, urljoin, urlsplit

import orjson
import requests
import urllib3
from requests.utils import parse_header_links

from adapters.contract import (
    GoneError,
    NotAskableError,
    NotFoundError,
    SourceDataError,
    SourceTimedOutError,
    SourceUnavailableError,
)
from adapters.http.session import ThreadSessions
from adapters.lifetime import LIFETIME_SECONDS
from adapters.mapping.model import (
    Basic,
    ErrorRule,
    HttpSource,
    Login,
    OAuth2,
    SourceConfig,
)
from adapters.mapping.paths import Header, Path, ValuePlace, at, unreadable
from adapters.mapping.template import QueryPairs
from adapters.mapping.values import text_or_none

RequestHeaders: TypeAlias = Mapping[str, str]

MAX_BYTES = 16 * 1024 * 1024
"""The size limit of an answer: far above a page of a hundred rows."""

_CONNECT_SECONDS = 2.0
_PAUSES = (0.1, 0.4)
"""How long the second and the third attempt wait, in seconds."""

_AGAIN = frozenset({429, 502, 503, 504})
_CHUNK = 65536
_MAX_TOTAL = 2**31 - 1
"""The largest unsignedInt of FHIR."""

_DIGITS = re.compile("[0-9]{1,20}", re.ASCII)


# ---------------------------------------------------------------------------- requests


class SourceAnswer(NamedTuple):
    """An answer; `retry_after` is in seconds, None without a readable one."""

    status: int
    body: bytes
    retry_after: float | None = None
    headers: RequestHeaders = MappingProxyType({})

    def json(self, encoding: str = "") -> Any:
        """Return the body as JSON; raises SourceDataError.

        If it is not UTF-8, its encoding is `encoding`, or else the one that it names.
        """
        body: bytes | str = self.body.removeprefix(b"\xef\xbb\xbf")
        try:
            try:
                self.body.decode()
            except UnicodeDecodeError:
                # `requests` would take Latin-1 for a type of text that names none.
                named = Message()
                named["Content-Type"] = self.headers.get("Content-Type", "")
                body = self.body.decode(encoding or named.get_content_charset(""))
            return orjson.loads(body)
        except (ValueError, LookupError) as error:
            text = "the answer is not JSON in UTF-8 or in its declared encoding"
            raise unreadable(f"{text}: source.encoding can name another") from error


class HttpCall(NamedTuple):
    """One request: `values` go into the address of a GET, into the form of a POST."""

    method: str
    path: str
    values: QueryPairs = ()
    json: Mapping[str, str] | None = None


class Deadline:
    """The moment by which an answer has to be complete."""

    def __init__(self, seconds: float) -> None:
        self._moment = time.monotonic() + seconds

    def left(self) -> float:
        """Return the remaining seconds; raises SourceTimedOutError when there are none."""
        left = self._moment - time.monotonic()
        if left <= 0:
            raise SourceTimedOutError("the source took too long")
        return left


class HttpClient:
    """One HTTP server; safe to share between threads."""

    def __init__(
        self,
        url: str,
        lifetime: float = LIFETIME_SECONDS,
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        """Links may also lead to the servers in `hosts`, as host or host:port."""
        self._url = url.rstrip("/")
        self._hosts = hosts
        self._sessions = ThreadSessions({"Accept": "application/json"}, lifetime)

    def send(
        self, call: HttpCall, headers: RequestHeaders, deadline: Deadline
    ) -> SourceAnswer:
        """Send a request, GET up to three times, and return the last answer.

        Raises SourceUnavailableError when no complete answer comes in time, SourceDataError
        for one that cannot be decoded or is too large.
        """
        for pause in _PAUSES if call.method == "GET" else ():
            try:
                answer = self._once(call, headers, deadline)
            except SourceTimedOutError:
                raise
            except SourceUnavailableError:
                time.sleep(min(pause, deadline.left()))
                continue
            wait = answer.retry_after or pause
            if answer.status not in _AGAIN or wait >= deadline.left():
                return answer
            time.sleep(wait)
        return self._once(call, headers, deadline)

    def address(self, path: str) -> str:
        """Return the absolute address of a path; raises SourceDataError for another server."""
        if path.startswith(("http://", "https://")):
            return self.resolve(path, "/")
        return f"{self._url}/{path.removeprefix('/')}"

    def resolve(self, link: str, base: str) -> str:
        """Return the absolute address of a link in the answer of `base` (RFC 3986, 5).

        Raises SourceDataError for one that leads to another server.
        """
        base_url = urlsplit(self._url)
        try:
            target = urlsplit(urljoin(self.address(base), link))
            is_own = _origin(target) == _origin(base_url)
        except ValueError as error:
            raise unreadable("a link is not an address") from error
        if is_own:
            return target._replace(netloc=base_url.netloc).geturl()
        # Never in clear where the source itself is not.
        target = target._replace(scheme=base_url.scheme)
        for host in self._hosts:
            if _origin(urlsplit(f"{base_url.scheme}://{host}")) == _origin(target):
                return target._replace(netloc=host).geturl()
        raise unreadable("a link leads to another server: allow it with source.hosts")

    def close(self) -> None:
        """Close the connections."""
        self._sessions.close()

    def _once(
        self, call: HttpCall, headers: RequestHeaders, deadline: Deadline
    ) -> SourceAnswer:
        """Send a request once; raises SourceUnavailableError, SourceDataError."""
        left = deadline.left()
        is_get = call.method == "GET"
        try:
            with self._sessions.get().request(
                call.method,
                self.address(call.path),
                # A blank is %20: not every server reads + as one.
                params=urlencode(call.values, quote_via=quote) if is_get else None,
                data=None if is_get else list(call.values),
                json=None if call.json is None else dict(call.json),
                headers=dict(headers),
                timeout=(min(_CONNECT_SECONDS, left), left),
                allow_redirects=False,
                stream=True,
            ) as response:
                return SourceAnswer(
                    response.status_code,
                    _body(response, deadline),
                    retry_after=_retry_after(response),
                    headers=response.headers,
                )
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise SourceTimedOutError("the source took too long") from error
        except urllib3.exceptions.DecodeError as error:
            raise unreadable("the answer's encoding is not the declared one") from error
        except (requests.exceptions.InvalidHeader, UnicodeEncodeError) as error:
            raise unreadable("a header cannot be sent or read") from error
        # A missing file of authorities is an OSError as it is.
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise SourceUnavailableError(failure_text(error)) from error


_UNTRUSTED = (
    "its certificate is not trusted or not for this host: SSL_CERT_FILE must name a file"
    " with the certificate of its authority"
)
_NO_AUTHORITIES = "SSL_CERT_FILE does not name a readable file of certificates"


def failure_text(error: Exception) -> str:
    """Return which part of a connection failed, and what to do; it names no host."""
    # What failed is inside the errors of `requests` and urllib3.
    cause = getattr(next(iter(error.args), None), "reason", error)
    match cause:
        case urllib3.exceptions.NameResolutionError():
            return "its host name cannot be resolved"
        case urllib3.exceptions.NewConnectionError(__cause__=ConnectionRefusedError()):
            return "nothing listens at its port"
        case urllib3.exceptions.SSLError(args=(ssl.SSLCertVerificationError(), *_)):
            return _UNTRUSTED
        case urllib3.exceptions.SSLError(
            args=(ssl.SSLError(library="X509" | "PEM"), *_)
        ):
            return _NO_AUTHORITIES
        case urllib3.exceptions.SSLError():
            return "TLS failed: is the port one for https?"
        case OSError() if "TLS CA certificate" in str(cause):
            return _NO_AUTHORITIES
    return f"no complete answer arrived ({type(error).__name__})"


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address."""
    default_port = {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.hostname, url.port or default_port


def _body(response: requests.Response, deadline: Deadline) -> bytes:
    """Return the body, read as its parts arrive, within the limits of size and time."""
    body = bytearray()
    while part := response.raw.read1(_CHUNK, decode_content=True):
        body += part
        if len(body) > MAX_BYTES:
            raise unreadable("the answer is too large")
        deadline.left()
    return bytes(body)


def _retry_after(response: requests.Response) -> float | None:
    """Return the pause that the source requests, in seconds (RFC 9110, 10.2.3)."""
    text = response.headers.get("Retry-After", "")
    try:
        return urllib3.Retry().parse_retry_after(text)
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return None


# ------------------------------------------------------------------------- credentials

FetchHeaders: TypeAlias = Callable[[Deadline], tuple[RequestHeaders, float]]
"""Returns headers and the moment at which they expire, by time.monotonic()."""

_EARLY_SECONDS = 30
"""A token is renewed this long before it expires, so that none expires on its way."""

_DEFAULT_LIFE = 300.0
"""The assumed life of a token, in seconds, if the token server does not say."""

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
        self, fixed: RequestHeaders | None = None, fetch: FetchHeaders | None = None
    ) -> None:
        self._headers = fixed
        self._fetch = fetch
        self._expires = math.inf
        self._lock = Lock()

    def headers(self, deadline: Deadline) -> RequestHeaders:
        """Return the headers, fetched by one thread for all; raises what the fetch raises.

        A login that times out is SourceUnavailableError, not SourceTimedOutError: no
        narrower search helps.
        """
        if not self._lock.acquire(timeout=deadline.left()):
            raise SourceUnavailableError("the login took too long")
        try:
            headers = self._headers
            has_expired = time.monotonic() >= self._expires
            if self._fetch and (headers is None or has_expired):
                headers, self._expires = self._fetch(deadline)
                self._headers = headers
            return headers or {}
        except SourceTimedOutError as error:
            raise SourceUnavailableError("the login took too long") from error
        finally:
            self._lock.release()

    def renew(self, refused: RequestHeaders) -> bool:
        """Drop headers that the source refused; return whether others can be fetched."""
        # Without the lock, since the thread that fetches may hold it for longer than this
        # request has. Another thread may have fetched new headers already.
        if self._fetch and self._headers is refused:
            self._headers = None
        return self._fetch is not None


def _credentials_of(source: HttpSource, client: HttpClient) -> Credentials:
    """Return the credentials for requests to a source."""
    match source.auth:
        case Basic(user, password):
            return Credentials(_basic(user, password))
        case OAuth2() as oauth2:
            return Credentials(fetch=lambda deadline: _token(oauth2, deadline))
        case Login() as login:
            return Credentials(
                fetch=lambda deadline: _log_in(login, source.headers, client, deadline)
            )
        case _:
            return Credentials({})


def _basic(user: str, password: str) -> RequestHeaders:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def _token(oauth2: OAuth2, deadline: Deadline) -> tuple[RequestHeaders, float]:
    """Fetch a token by client credentials (RFC 6749, 4.4)."""
    values = {
        "grant_type": "client_credentials",
        "scope": oauth2.scope,
        "audience": oauth2.audience,
    }
    headers: RequestHeaders = {}
    if oauth2.credentials == "form":
        values["client_id"] = oauth2.client_id
        values["client_secret"] = oauth2.client_secret
    else:
        headers = _basic(oauth2.client_id, oauth2.client_secret)
    pairs = tuple((name, value) for name, value in values.items() if value)
    client = HttpClient(oauth2.token_url)
    try:
        answer = client.send(
            HttpCall("POST", oauth2.token_url, pairs), headers, deadline
        )
        body = answer.json()
    except SourceTimedOutError:
        raise
    except (SourceUnavailableError, SourceDataError) as error:
        text = f"the token server returned no token: {error}"
        raise SourceUnavailableError(text) from error
    finally:
        # Requests are so rare that the server would have cut an idle connection.
        client.close()
    fields = body if isinstance(body, dict) else {}
    reason = _reason(fields)
    if fields.get("error") in _REFUSALS:
        text = f"the token server refuses the credentials{reason}"
        raise unreadable(text, refused=True)
    token = fields.get("access_token")
    is_success = answer.status // 100 == 2 and "error" not in fields
    if not is_success or not isinstance(token, str) or not _fits_header(token):
        raise SourceUnavailableError(f"the token server returned no token{reason}")
    life = _DEFAULT_LIFE
    with suppress(KeyError, TypeError, ValueError):
        life = float(fields["expires_in"])
    expires = time.monotonic() + max(life - _EARLY_SECONDS, life / 2)
    return {"Authorization": f"Bearer {token}"}, expires


_DESCRIBED = re.compile("[ -!#-\\[\\]-~]{1,200}")
"""The signs of an error_description (RFC 6749, 5.2)."""


def _reason(fields: Mapping[str, Any]) -> str:
    """Return what a token server says about its refusal, "" for nothing or another text."""
    parts = [fields.get("error"), fields.get("error_description")]
    texts = [part for part in parts if isinstance(part, str)]
    shown = [text for text in texts if _DESCRIBED.fullmatch(text)]
    return f" ({': '.join(shown)})" if shown else ""


def _log_in(
    login: Login, headers: RequestHeaders, client: HttpClient, deadline: Deadline
) -> tuple[RequestHeaders, float]:
    """Open a session of the source; return its header, which never expires by itself."""
    call = HttpCall(
        "POST", login.path, values=tuple(login.form.items()), json=login.body
    )
    answer = client.send(call, headers, deadline)
    if answer.status // 100 == 4 and answer.status != 429:
        text = f"the login was refused ({answer.status})"
        raise unreadable(text, refused=answer.status in (401, 403))
    if answer.status // 100 != 2:
        raise SourceUnavailableError(f"the login failed ({answer.status})")
    token = at(answer.json(), login.token)
    if not isinstance(token, (str, int)) or not _fits_header(str(token)):
        raise unreadable("the answer to the login has no token")
    return {login.header: login.format.replace("{token}", str(token))}, math.inf


def _fits_header(text: str) -> bool:
    """Whether a text can be the value of a header."""
    return text != "" and text.isascii() and text.isprintable()


# ----------------------------------------------------------------------------- answers


class Source:
    """The hospital's API: adds the credentials, and names what an answer means."""

    def __init__(self, config: SourceConfig) -> None:
        self._http = config.http or HttpSource()
        self.client = HttpClient(config.url, config.lifetime_seconds, self._http.hosts)
        self._credentials = _credentials_of(self._http, self.client)

    def send(
        self, call: HttpCall, deadline: Deadline, *, is_list: bool = False
    ) -> "Content":
        """Send a request and return its answer; renews refused credentials once.

        A list may be answered by "no content", by a body without any value, by an offset
        that is beyond it, or by a code of `not_found`: it has no rows then.

        Raises NotFoundError and GoneError by the source's answer, NotAskableError if the
        address is too long for it, else SourceUnavailableError and SourceDataError.
        """
        for _ in range(2):
            headers = self._credentials.headers(deadline)
            sent = {**self._http.headers, **headers}
            answer = self.client.send(call, sent, deadline)
            if is_list and answer.status in (_NO_CONTENT, _BEYOND):
                return Content(None, answer.headers, is_empty=True)
            if answer.status != 401:
                content = self._content(answer, is_list=is_list)
                if content is not None:
                    return content
            if not self._credentials.renew(headers):
                break
        raise unreadable("the source refuses the credentials", refused=True)

    def _content(self, answer: SourceAnswer, *, is_list: bool) -> "Content | None":
        """Return what an answer holds, None if it reports expired credentials."""
        if self._says_not_found(answer):
            if not is_list or answer.status in (404, 410):
                raise NotFoundError("the source has no such row")
            return Content(None, answer.headers, is_empty=True)
        _raise_for_status(answer.status)
        body = answer.json(self._http.encoding)
        if is_list and _is_blank(body):
            return Content(None, answer.headers, is_empty=True)
        if _raise_for_rule(body, self._http.error):
            return None
        return Content(body, answer.headers)

    def _says_not_found(self, answer: SourceAnswer) -> bool:
        """Whether an answer has a code of `error.not_found`; never with a status from 500."""
        rule = self._http.error
        if rule is None or not rule.not_found or answer.status >= 500:
            return False
        try:
            body = answer.json(self._http.encoding)
            return plain_text(at(body, rule.path)) in rule.not_found
        except SourceDataError:
            return False


_NO_CONTENT = HTTPStatus.NO_CONTENT
_BEYOND = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
"""How some servers answer a request for rows after the last one."""


def _is_blank(body: Any) -> bool:
    """Whether an answer holds no value: null, 0, [], {}, or keys with such values alone."""
    return not any(body.values()) if isinstance(body, dict) else not body


def _raise_for_status(status: int) -> None:
    """Raise the error that a status means; return for 2xx."""
    match status:
        case 404:
            raise NotFoundError("the source has no such row")
        case 410:
            raise GoneError("the source reports that the row is gone")
        case 414:
            raise NotAskableError("the address is too long for the source")
        case _ if status == 429 or status >= 500:
            raise SourceUnavailableError(f"the source answered {status}")
        case _ if status // 100 != 2:
            raise unreadable(f"the source answered {status}", code=status)


def _raise_for_rule(answer: Any, rule: ErrorRule | None) -> bool:
    """Raise the error that an answer with status 2xx reports by the source's own rule.

    Returns whether it reports expired credentials.
    """
    if rule is None or not isinstance(answer, Mapping):
        return False
    value = at(answer, rule.path)
    code = plain_text(value)
    if value in (None, False, "", [], {}) or code in rule.fine:
        return False
    if code in rule.unavailable:
        raise SourceUnavailableError("the source reports that it is unavailable")
    if code not in rule.expired:
        raise unreadable("the source returned an error")
    return True


class Content(NamedTuple):
    """What an answer holds: its body as JSON, and its headers.

    `is_empty` is whether the source answered that a list has no rows.
    """

    body: Any
    headers: RequestHeaders
    is_empty: bool = False

    def at(self, place: ValuePlace) -> Any:
        """Return the value at a place, None if it is absent; raises SourceDataError.

        Of the header Link it is the address of the next page.
        """
        if not isinstance(place, Header):
            return at(self.body, place)
        value = self.headers.get(place.name)
        if value is None or place.name.lower() != "link":
            return value
        links = parse_header_links(value)
        following = (link for link in links if "next" in link.get("rel", "").split())
        return next((link["url"] for link in following), None)

    def rows_at(self, path: Path) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of a list."""
        rows = self.at(path)
        if not rows:
            # Many APIs leave out an empty list; the total beside it says whether it is one.
            return ()
        if not isinstance(rows, list):
            raise unreadable("the answer has no list at the path of the rows")
        if not all(isinstance(row, dict) for row in rows):
            raise unreadable("a row is not an object")
        return tuple(rows)

    def total_at(self, place: ValuePlace) -> int:
        """Return the number of matches, which may be written as text."""
        total = self.at(place)
        if isinstance(place, Header) and place.name.lower() == "content-range":
            # items 0-24/3573 (RFC 9110, 14.4)
            total = str(total).rpartition("/")[2]
        if self.is_empty and self.at(place) is None:
            total = 0
        if isinstance(total, str) and _DIGITS.fullmatch(total):
            total = int(total)
        is_number = isinstance(total, int) and not isinstance(total, bool)
        if not is_number or not 0 <= total <= _MAX_TOTAL:
            raise unreadable("the total is not a number of rows")
        return int(total)

    def text_at(self, place: ValuePlace) -> str:
        """Return the link or token of the next page, "" for null, false or the number 0."""
        value = self.at(place)
        if value in (None, False):
            return ""
        if not isinstance(value, (str, int)):
            raise unreadable("the link or token of the next page is not a text")
        return str(value)


def plain_text(value: Any) -> str:
    """Return a text or number of an answer as text, "" for anything else."""
    if isinstance(value, (str, int, float)):
        return text_or_none(value) or ""
    return ""
