"""Who is let in to the hospital's HTTP API: who shows the key, or a session's token.

POST /connexion   {"utilisateur": "lecture", "motDePasse": <the key>}  →  {"jeton": …}
"""

import time
from dataclasses import dataclass, field
from secrets import compare_digest, token_urlsafe
from typing import Any, Protocol

from werkzeug.datastructures import Headers

LOGIN = "/connexion"
KEY_HEADER = "X-Cle-Api"
SESSION_HEADER = "X-Session"
USER = "lecture"


class Door(Protocol):
    """One way to show who asks. Safe to share between threads."""

    def lets_in(self, headers: Headers) -> bool:
        """Return whether a request with these headers is answered."""

    def open(self, body: Any) -> str | None:
        """Return the token of a new session, None when the body of a login is refused."""


@dataclass(frozen=True, slots=True)
class Key:
    """The key stands in each request; there is no login."""

    key: str

    def lets_in(self, headers: Headers) -> bool:
        """Return whether the key is shown."""
        return _same(headers.get(KEY_HEADER, ""), self.key)

    def open(self, body: Any) -> str | None:  # noqa: ARG002
        """Open nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Sessions:
    """A login with the key as its password; `seconds` later its token is worth nothing."""

    key: str
    seconds: float
    _ends: dict[str, float] = field(default_factory=dict)

    def lets_in(self, headers: Headers) -> bool:
        """Return whether the token of a session that goes on is shown."""
        return time.monotonic() < self._ends.get(headers.get(SESSION_HEADER, ""), 0.0)

    def open(self, body: Any) -> str | None:
        """Return a new token for the one user and the password."""
        login = body if isinstance(body, dict) else {}
        known = _same(str(login.get("motDePasse", "")), self.key)
        if login.get("utilisateur") != USER or not known:
            return None
        token = token_urlsafe(24)
        self._ends[token] = time.monotonic() + self.seconds
        return token


def _same(shown: str, key: str) -> bool:
    return compare_digest(shown.encode(), key.encode())
