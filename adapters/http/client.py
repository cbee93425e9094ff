"""Requests to one HTTP source, limited in time and size, and the values in its answers.

Each thread has one session of `requests`: no proxy and no password file of the machine is
used, no cookie is stored, no redirect is followed. Only GET is retried. No error quotes a
text of the source.
"""

import os
import re
import time
from collections.abc import Mapping, Sequence
from http.cookiejar import DefaultCookiePolicy
from threading import local
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit
from weakref import WeakSet

import orjson
import requests
import urllib3
from requests.utils import parse_header_links

from adapters.contract import (
    SourceTimedOutError,
    SourceUnavailableError,
)
from adapters.instrumentation import Kind, observe
from adapters.mapping.paths import Header, Path, Place, at, unreadable
from adapters.mapping.values import as_text

Pairs: TypeAlias = Sequence[tuple[str, str]]

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


class Answer(NamedTuple):
    """An answer; `retry_after` is in seconds, None without a readable one."""

    status: int
    body: bytes
    retry_after: float | None = None
    headers: Mapping[str, str] = MappingProxyType({})

    def json(self) -> Any:
        """Return the body as JSON; raises SourceDataError."""
        try:
            return orjson.loads(self.body.removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError as error:
            raise unreadable("the answer is not JSON") from error


class Content(NamedTuple):
    """What an answer holds: its body as JSON, and its headers."""

    body: Any
    headers: Mapping[str, str] = MappingProxyType({})

    def at(self, place: Place) -> Any:
        """Return the value at a place, None if it is absent; raises SourceDataError."""
        if not isinstance(place, Header):
            return at(self.body, place)
        value = self.headers.get(place.name)
        if value is None or place.name.lower() != "link":
            return value
        links = parse_header_links(value)
        following = (one for one in links if "next" in one.get("rel", "").split())
        return next((link["url"] for link in following), None)


class Call(NamedTuple):
    """One request: `values` go into the address of a GET, into the form of a POST."""

    method: str
    path: str
    values: Pairs = ()
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


class Client:
    """One HTTP server; safe to share between threads. `name` is its name in metrics."""

    def __init__(self, url: str, name: str = "source") -> None:
        self._name = name
        self._url = url.rstrip("/")
        self._local = local()
        self._sessions: WeakSet[requests.Session] = WeakSet()

    def send(
        self, call: Call, headers: Mapping[str, str], deadline: Deadline
    ) -> Answer:
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
        own = urlsplit(self._url)
        try:
            target = urlsplit(urljoin(self.address(base), link))
            is_own = _origin(target) == _origin(own)
        except ValueError as error:
            raise unreadable("a link is not an address") from error
        if not is_own:
            raise unreadable("a link leads to another server")
        return target._replace(netloc=own.netloc).geturl()

    def close(self) -> None:
        """Close the connections."""
        for session in tuple(self._sessions):
            session.close()

    def _once(
        self, call: Call, headers: Mapping[str, str], deadline: Deadline
    ) -> Answer:
        left = deadline.left()
        is_get = call.method == "GET"
        try:
            with (
                observe(Kind.HTTP, self._name, call.method) as observed,
                self._session().request(
                    call.method,
                    self.address(call.path),
                    params=list(call.values) if is_get else None,
                    data=None if is_get else list(call.values),
                    json=None if call.json is None else dict(call.json),
                    headers=dict(headers),
                    timeout=(min(_CONNECT_SECONDS, left), left),
                    allow_redirects=False,
                    stream=True,
                ) as response,
            ):
                observed.set_attribute(
                    "http.response.status_code", response.status_code
                )
                body = _body(response, deadline)
                wait, headers = _retry_after(response), response.headers
                return Answer(response.status_code, body, wait, headers)
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise SourceTimedOutError("the source took too long") from error
        except urllib3.exceptions.DecodeError as error:
            raise unreadable("the answer's encoding is not what it says") from error
        except (requests.exceptions.InvalidHeader, UnicodeEncodeError) as error:
            raise unreadable("a header cannot be sent or read") from error
        # A missing file of authorities is an OSError as it is.
        except (urllib3.exceptions.HTTPError, OSError) as error:
            kind = type(error).__name__
            raise SourceUnavailableError(f"no complete answer came ({kind})") from error

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.trust_env = False
            session.verify = os.environ.get("SSL_CERT_FILE") or True
            session.headers["Accept"] = "application/json"
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
            self._sessions.add(session)
        return session


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
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


def plain_text(value: Any) -> str:
    """Return a text or number of an answer as text, "" for anything else."""
    try:
        return as_text(value) if isinstance(value, (str, int, float)) else ""
    except ValueError:
        return ""


def rows_at(content: Content, path: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of a list."""
    rows = content.at(path)
    if not isinstance(rows, list):
        raise unreadable("there is no list where the rows should be")
    if not all(isinstance(row, dict) for row in rows):
        raise unreadable("a row is not an object")
    return tuple(rows)


def total_at(content: Content, place: Place) -> int:
    """Return the number of matches, which may be written as text."""
    total = content.at(place)
    if isinstance(total, str) and _DIGITS.fullmatch(total):
        total = int(total)
    is_number = isinstance(total, int) and not isinstance(total, bool)
    if not is_number or not 0 <= total <= _MAX_TOTAL:
        raise unreadable("the total is not a number of rows")
    return int(total)


def text_at(content: Content, place: Place) -> str:
    """Return the link or token of the next page, "" for null, false or the number 0."""
    value = content.at(place)
    if value in (None, False):
        return ""
    if not isinstance(value, (str, int)):
        raise unreadable("the link or token of the next page is not a text")
    return str(value)
