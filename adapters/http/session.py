"""Sessions for outgoing HTTP: to hospital systems, and to the identity provider."""

import os
import time
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from threading import local
from typing import TypeVar
from weakref import WeakSet

import requests

from adapters.lifetime import LIFETIME_SECONDS, end_of_life

AnySession = TypeVar("AnySession", bound=requests.Session)


def isolated(session: AnySession) -> AnySession:
    """Return the session without proxy, .netrc and cookies; SSL_CERT_FILE may name CAs."""
    session.trust_env = False
    session.verify = os.environ.get("SSL_CERT_FILE") or True
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    return session


class ThreadSessions:
    """One isolated session for each thread, and another one after its lifetime in seconds."""

    def __init__(
        self, headers: Mapping[str, str], lifetime: float = LIFETIME_SECONDS
    ) -> None:
        self._headers = headers
        self._lifetime = lifetime
        self._threads = local()
        self._sessions: WeakSet[requests.Session] = WeakSet()

    def get(self) -> requests.Session:
        """Return the session of this thread."""
        session: requests.Session | None = getattr(self._threads, "session", None)
        if session is not None and time.monotonic() < self._threads.ends:
            return session
        if session is not None:
            session.close()
        session = self._threads.session = isolated(requests.Session())
        self._threads.ends = end_of_life(self._lifetime)
        session.headers.update(self._headers)
        self._sessions.add(session)
        return session

    def close(self) -> None:
        """Close the connections of all threads."""
        for session in tuple(self._sessions):
            session.close()
