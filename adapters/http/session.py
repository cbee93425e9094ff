"""Sessions for outgoing HTTP: to hospital systems, and to the identity provider."""

import os
from http.cookiejar import DefaultCookiePolicy
from typing import TypeVar

import requests

Session = TypeVar("Session", bound=requests.Session)


def isolated(session: Session) -> Session:
    """Return the session without proxy, .netrc and cookies; SSL_CERT_FILE may name CAs."""
    session.trust_env = False
    session.verify = os.environ.get("SSL_CERT_FILE") or True
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    return session
