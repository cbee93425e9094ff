"""Requests with a valid token: waits, repeats and renews, within bounds."""

import json
import logging
import time
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

import requests
from requests.exceptions import ChunkedEncodingError, ContentDecodingError

from encounters_client.errors import Refused, Unavailable, issues_of

Form: TypeAlias = list[tuple[str, str]]

RETRIED = frozenset({408, 429, 503, 504})
MISSING = frozenset({404, 410})

_LOST = (
    requests.ConnectionError,
    requests.Timeout,
    ChunkedEncodingError,
    ContentDecodingError,
)
_SHARE_OF_LIFETIME = 0.9
"""A token is renewed before it expires, because an expired token costs a request."""

_LOG = logging.getLogger("encounters_client")


@dataclass(frozen=True)
class Credentials:
    """Where a token comes from, and for whom."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    audience: str | None = None
    scope: str | None = None

    def form(self) -> Form:
        """Return the token request of the client credentials grant."""
        form = [
            ("grant_type", "client_credentials"),
            ("client_id", self.client_id),
            ("client_secret", self.client_secret),
        ]
        if self.audience:
            form.append(("audience", self.audience))
        if self.scope:
            form.append(("scope", self.scope))
        return form


@dataclass(frozen=True)
class Retry:
    """How often to repeat, and how long to wait: `Retry-After`, else twice as long each time.

    A `Retry-After` over the longest wait ends the attempts at once.
    """

    tries: int = 5
    first_wait_seconds: float = 1
    longest_wait_seconds: float = 60


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    host: str
    status: int
    headers: "requests.structures.CaseInsensitiveDict[str]"
    content: bytes

    def resource(self, resource_type: str) -> Any:
        """Return the body, a resource of this type. Raises Refused if it is anything else."""
        if self.status != 200:
            raise self.refusal()
        body = self.body()
        if body.get("resourceType") != resource_type:
            raise Refused(self.host, f"the answer is not a {resource_type}")
        return body

    def refusal(self, kind: type[Refused] = Refused) -> Refused:
        """Return the error for an answer that is not the expected one."""
        return kind(
            self.host,
            status=self.status,
            request_id=self.headers.get("X-Request-Id", ""),
            issues=issues_of(self.body()),
        )

    def body(self) -> dict[str, Any]:
        """Return the body as an object, an empty one if it is none."""
        try:
            body = json.loads(self.content)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def server_time(self) -> datetime | None:
        """Return the time of the answer by the service's clock, None without a valid one."""
        try:
            time = parsedate_to_datetime(self.headers.get("Date", ""))
        except (TypeError, ValueError):
            return None
        return time if time.tzinfo else None


class Transport:
    """Sends requests to one service."""

    def __init__(
        self, base: str, credentials: Credentials, *, timeout: float, retry: Retry
    ) -> None:
        self.base = base.rstrip("/")
        self.credentials = credentials
        self.host = _host(self.base)
        self._timeout = timeout
        self._retry = retry
        self._http = requests.Session()
        # Or requests would send a password of ~/.netrc in place of the token.
        self._http.auth = _unchanged
        self._token = ""
        self._renew_at = 0.0

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, url: str) -> Answer:
        """Return the answer to a GET. Raises Unavailable, or Refused without a token."""
        return self._authorized("GET", url, None)

    def read(self, resource_type: str, id: str) -> Answer:
        """Return the answer to the read of a resource. Raises as `get`."""
        return self.get(f"{self.base}/{resource_type}/{quote(id, safe='')}")

    def post(self, url: str, form: Form) -> Answer:
        """Return the answer to a form. Raises Unavailable, or Refused without a token."""
        return self._authorized("POST", url, form)

    def follow(self, link: str) -> Answer:
        """Return the answer to a link of a page. Raises Refused if it leads elsewhere."""
        if not link.startswith(f"{self.base}/"):
            raise Refused(self.host, "the next link leads to another host")
        return self.get(link)

    def _authorized(self, method: str, url: str, form: Form | None) -> Answer:
        """Send a request with a token; repeat it once with a new one after 401."""
        answer = self._repeated(method, url, form, token=self._valid_token())
        if answer.status == 401:
            self._token = ""
            answer = self._repeated(method, url, form, token=self._valid_token())
        return answer

    def _valid_token(self) -> str:
        if not self._token or time.monotonic() >= self._renew_at:
            url = self.credentials.token_url
            answer = self._repeated("POST", url, self.credentials.form(), token="")
            body = answer.body()
            if answer.status != 200:
                raise Refused(answer.host, "no token", status=answer.status)
            if not isinstance(body.get("access_token"), str):
                raise Refused(answer.host, "the answer has no access token")
            self._token = body["access_token"]
            lifetime = float(body.get("expires_in", 3600))
            self._renew_at = time.monotonic() + _SHARE_OF_LIFETIME * lifetime
        return self._token

    def _repeated(
        self, method: str, url: str, form: Form | None, *, token: str
    ) -> Answer:
        """Send a request, again while that may help. Raises Unavailable."""
        host = _host(url)
        wait = self._retry.first_wait_seconds
        for attempt in range(1, self._retry.tries + 1):
            pause = wait
            try:
                answer = self._send(method, url, form, token=token)
            except _LOST as error:
                reason = f"no answer ({type(error).__name__})"
            else:
                if answer.status not in RETRIED:
                    return answer
                reason = f"status {answer.status}"
                named = answer.headers.get("Retry-After", "")
                if named.isdecimal():
                    pause = int(named)
                    reason += f", Retry-After {pause}"
            is_last = attempt == self._retry.tries
            if is_last or pause > self._retry.longest_wait_seconds:
                break
            _LOG.warning("%s: %s; repeats in %g s", host, reason, pause)
            time.sleep(pause)
            wait *= 2
        raise Unavailable(f"{host}: {reason}, try {attempt} of {self._retry.tries}")

    def _send(self, method: str, url: str, form: Form | None, *, token: str) -> Answer:
        headers = {"Accept": "application/fhir+json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        else:
            headers["Accept"] = "application/json"
        response = self._http.request(
            method,
            url,
            data=form,
            headers=headers,
            timeout=self._timeout,
            allow_redirects=False,
        )
        return Answer(
            host=_host(url),
            status=response.status_code,
            headers=response.headers,
            content=response.content,
        )


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _host(url: str) -> str:
    """Return host and port of an address, without user name and password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
