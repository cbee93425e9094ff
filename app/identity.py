"""Asking the identity provider: one JSON object, in bounded time and size."""

import time
from collections.abc import Callable
from http.cookiejar import DefaultCookiePolicy
from typing import NamedTuple

import orjson
import requests
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from adapters.outward import Kind, outward
from adapters.timed import NOW, TimedAdapter

MAX_ANSWER_BYTES = 262144

_CHUNK_BYTES = 16384
_KEPT_CONNECTIONS = 10


class IdentityError(Exception):
    """The provider did not answer, or not as it should; the text names no host."""


class Answered(NamedTuple):
    """An answer; `date` is the time that it says it was given, "" where it says none."""

    object: dict[str, object]
    date: str


class Provider:
    """One address of the identity provider. Safe to share between threads."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._timeout = timeout
        self._session = requests.Session()
        # Neither a proxy nor a .netrc from the environment of the process counts.
        self._session.trust_env = False
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, TimedAdapter(_KEPT_CONNECTIONS))
        self._session.headers["Accept"] = "application/json"
        # A packed answer could unpack to more than the bound.
        self._session.headers["Accept-Encoding"] = "identity"

    def get(self) -> dict[str, object]:
        """Return the object that stands at the address. Raises IdentityError."""
        return self.told().object

    def told(self) -> Answered:
        """Return that object, and when it was told. Raises IdentityError."""
        return self._ask("GET", None, None)

    def post(self, form: dict[str, str], auth: AuthBase) -> dict[str, object]:
        """Return the answer to a form. Raises IdentityError."""
        return self._ask("POST", form, auth).object

    def close(self) -> None:
        """Give connections back."""
        self._session.close()

    def _ask(
        self, method: str, form: dict[str, str] | None, auth: AuthBase | None
    ) -> Answered:
        # The time-out of a request is for each single read: a provider that drips would
        # hold the thread for ever.
        NOW.left = left = _until(time.monotonic() + self._timeout)
        try:
            with (
                outward(Kind.HTTP, "identity provider", method) as told,
                self._session.request(
                    method,
                    self._url,
                    data=form,
                    auth=auth,
                    timeout=self._timeout,
                    allow_redirects=False,
                    stream=True,
                ) as response,
            ):
                told.answered(response.status_code)
                if response.status_code != requests.codes.ok:
                    raise IdentityError(f"status {response.status_code}")
                date = response.headers.get("Date", "")
                return Answered(_object(_body(response, left)), date)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise IdentityError(type(error).__name__) from error


def _until(deadline: float) -> Callable[[], float]:
    def left() -> float:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    return left


def _body(response: requests.Response, left: Callable[[], float]) -> bytes:
    body = bytearray()
    while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=False):
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise IdentityError("answer too long")
        left()
    return bytes(body)


def _object(body: bytes) -> dict[str, object]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise IdentityError("answer is not JSON") from error
    if not isinstance(answer, dict):
        raise IdentityError("answer is not an object")
    return answer
