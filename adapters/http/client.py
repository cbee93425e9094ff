"""Requests to one HTTP source, in bounded time and size.

An adapter a thread keeps its connection. There is no session of `requests` around it: no
proxy or password file of the machine is looked at, no cookie kept, no redirect followed, and
a call costs an eighth less. Only GET is sent again, when the source was away for a moment.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import BoundedSemaphore, local
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit
from weakref import WeakSet

import orjson
import requests
import urllib3

from adapters.contract import SourceDataError, SourceUnavailableError
from adapters.errors import SourceTimedOutError
from adapters.outward import Kind, outward
from adapters.timed import NOW, TimedAdapter

Pairs: TypeAlias = Sequence[tuple[str, str]]

MAX_BYTES = 16 * 1024 * 1024
"""An answer that is larger is no page of a hundred rows."""

_CONNECT_SECONDS = 2.0
_PAUSES = (0.1, 0.4)
"""How long the second and the third attempt wait, in seconds."""

_AGAIN = frozenset({429, 502, 503, 504})
_CHUNK = 65536
_UNSENT = "a header to be sent holds what none can"
_HEADERS = MappingProxyType(
    {**requests.utils.default_headers(), "Accept": "application/json"}
)


class Answer(NamedTuple):
    """What came back; `retry_after` is in seconds, None when nothing usable is said."""

    status: int
    body: bytes
    retry_after: float | None = None

    def json(self) -> Any:
        """Return the body as JSON; raises SourceDataError."""
        try:
            return orjson.loads(self.body.removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError as error:
            raise SourceDataError("the answer is not JSON") from error


class Call(NamedTuple):
    """One request: `values` go into the address of a GET, into the form of a POST."""

    method: str
    path: str
    values: Pairs = ()
    json: Mapping[str, str] | None = None


class Deadline:
    """The moment at which an answer has to be whole."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; raises SourceTimedOutError when none are."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise SourceTimedOutError("the source took too long")
        return left


class Client:
    """One HTTP source; safe to share between threads. `name` is what it is to us.

    Raises SourceUnavailableError when no whole answer comes in time, SourceDataError for
    one that cannot be unpacked or is too large.
    """

    def __init__(
        self, url: str, connections: int, wait: float, name: str = "source"
    ) -> None:
        self._name = name
        self._url = url.rstrip("/")
        self._wait = wait
        self._free = BoundedSemaphore(connections)
        self._own = local()
        self._adapters: WeakSet[TimedAdapter] = WeakSet()

    def send(self, call: Call, headers: Mapping[str, str], until: Deadline) -> Answer:
        """Send a request, GET up to three times, and return the last answer."""
        with self._place(until):
            for pause in _PAUSES if call.method == "GET" else ():
                answer = self._attempt(call, headers, until)
                if answer is not None and answer.status not in _AGAIN:
                    return answer
                wait = pause if answer is None else answer.retry_after or pause
                if wait >= until.left():
                    # A source that asks for a longer pause is left alone.
                    return answer or self._once(call, headers, until)
                time.sleep(wait)
            return self._once(call, headers, until)

    def address(self, path: str) -> str:
        """Return the whole address of a path; raises SourceDataError for another server's."""
        if path.startswith(("http://", "https://")):
            return self.linked(path, "/")
        return f"{self._url}/{path.removeprefix('/')}"

    def linked(self, link: str, asked: str) -> str:
        """Return the whole address of a link in the answer of `asked` (RFC 3986, 5).

        Raises SourceDataError for one that leads to another server.
        """
        try:
            made = urlsplit(urljoin(self.address(asked), link))
            same = _origin(made) == _origin(urlsplit(self._url))
        except ValueError as error:
            raise SourceDataError("a link is no address") from error
        if not same:
            raise SourceDataError("a link leads to another server")
        return made._replace(netloc=urlsplit(self._url).netloc).geturl()

    def close(self) -> None:
        """Close the connections."""
        for adapter in tuple(self._adapters):
            adapter.close()

    @contextmanager
    def _place(self, until: Deadline) -> Iterator[None]:
        if not self._free.acquire(timeout=min(self._wait, until.left())):
            raise SourceUnavailableError("no connection was free in time")
        try:
            yield
        finally:
            self._free.release()

    def _attempt(
        self, call: Call, headers: Mapping[str, str], until: Deadline
    ) -> Answer | None:
        """Return the answer, None when the connection failed and there is time left."""
        try:
            return self._once(call, headers, until)
        except SourceTimedOutError:
            raise
        except SourceUnavailableError:
            until.left()
            return None

    def _once(self, call: Call, headers: Mapping[str, str], until: Deadline) -> Answer:
        left = until.left()
        NOW.left = until.left
        request = self._prepared(call, headers)
        try:
            with (
                outward(Kind.HTTP, self._name, call.method) as told,
                self._adapter().send(
                    request,
                    stream=True,
                    timeout=(min(_CONNECT_SECONDS, left), left),
                ) as response,
            ):
                told.answered(response.status_code)
                body = _body(response, until)
                return Answer(response.status_code, body, _retry_after(response))
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise SourceTimedOutError("the source took too long") from error
        except urllib3.exceptions.DecodeError as error:
            raise SourceDataError("the answer is not packed as it says") from error
        except UnicodeEncodeError as error:
            raise SourceDataError(_UNSENT) from error
        except requests.exceptions.InvalidHeader as error:
            text = "a header of the answer contradicts another"
            raise SourceDataError(text) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            kind = type(error).__name__
            raise SourceUnavailableError(f"no whole answer came ({kind})") from error

    def _prepared(
        self, call: Call, headers: Mapping[str, str]
    ) -> requests.PreparedRequest:
        is_form = call.method != "GET" and call.json is None
        request = requests.Request(
            call.method,
            self.address(call.path),
            headers={**_HEADERS, **headers},
            params=list(call.values) if call.method == "GET" else None,
            data=list(call.values) if is_form else None,
            json=None if call.json is None else dict(call.json),
        )
        try:
            return request.prepare()
        except requests.exceptions.InvalidHeader as error:
            raise SourceDataError(_UNSENT) from error
        except requests.RequestException as error:
            raise SourceUnavailableError("the address is none") from error

    def _adapter(self) -> TimedAdapter:
        adapter: TimedAdapter | None = getattr(self._own, "adapter", None)
        if adapter is None:
            adapter = self._own.adapter = TimedAdapter()
            self._adapters.add(adapter)
        return adapter


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    usual = {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.hostname, url.port or usual


def _body(response: requests.Response, until: Deadline) -> bytes:
    """Read the body piece by piece as it comes: a source that drips is cut off."""
    found = bytearray()
    while piece := response.raw.read1(_CHUNK, decode_content=True):
        found += piece
        if len(found) > MAX_BYTES:
            raise SourceDataError("the answer is too large")
        until.left()
    return bytes(found)


def _retry_after(response: requests.Response) -> float | None:
    """Return the pause that is asked for, in seconds or up to a date (RFC 9110, 10.2.3)."""
    text = response.headers.get("Retry-After", "")
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        ends = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # "-0000" is UTC, of a clock that says no zone.
    ends = ends if ends.tzinfo else ends.replace(tzinfo=UTC)
    return max(0.0, (ends - datetime.now(UTC)).total_seconds())
