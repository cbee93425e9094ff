"""Login to the explorer: OpenID Connect, authorization code with PKCE (S256), by Authlib.

`state` binds the answer of the provider to the browser that began the login, `nonce` the ID
token to it (OpenID Connect Core 3.1, RFC 7636, RFC 9700 4.7). The access token is the
person's own: the service checks it on each call.
"""

import logging
import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session

from adapters.http.session import isolated
from app.auth import BadTokenError, check_claims, signed_claims
from app.config import Settings
from app.errors import UnavailableError
from app.jwks import IdentityError, KeySource, Metadata
from explorer.sessions import Session

MOST_NAME = 80
_AWAY = "The identity provider does not answer at the moment."

_log = logging.getLogger(__name__)


class LoginError(Exception):
    """A login that failed; the text is for the person."""


class Login:
    """Logs people in at the identity provider of the deployment."""

    def __init__(self, settings: Settings, redirect_uri: str) -> None:
        self._settings = settings
        self._redirect_uri = redirect_uri
        self._metadata = Metadata(settings)
        address = settings.key_set_url or partial(self._metadata.address, "jwks_uri")
        self._keys = KeySource(settings, address)

    def start(self) -> tuple[str, dict[str, str]]:
        """Begin a login: where the browser goes, and what its session keeps of it.

        Raises UnavailableError.
        """
        verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        url, state = self._client().create_authorization_url(
            self._address("authorization_endpoint"),
            code_verifier=verifier,
            nonce=nonce,
            audience=self._settings.audience,
        )
        return url, {"verifier": verifier, "nonce": nonce, "state": state}

    def finish(self, query: Mapping[str, str], session: Session) -> dict[str, Any]:
        """Return the session of who logged in, from what the provider added to the address.

        The caller has compared `state`. Raises LoginError, UnavailableError.
        """
        if "code" not in query:
            raise LoginError("The identity provider did not log you in.")
        try:
            with self._client() as client:
                token = client.fetch_token(
                    self._address("token_endpoint"),
                    grant_type="authorization_code",
                    code=query["code"],
                    code_verifier=session.verifier,
                    timeout=self._settings.identity_timeout_seconds,
                )
        except (AuthlibBaseError, requests.RequestException, ValueError) as error:
            # Its texts may quote what the provider sends about the person.
            data = {"reason": type(error).__name__}
            _log.warning("login failed", extra={"data": data})
            if isinstance(error, AuthlibBaseError):
                raise LoginError("The identity provider refused the login.") from error
            raise UnavailableError(_AWAY) from error
        claims = self._id_claims(token, session.nonce)
        person = claims["sub"]
        name = claims.get("name") or claims.get("preferred_username") or person
        return {
            "person": person,
            "name": str(name)[:MOST_NAME],
            "token": token["access_token"],
            "expires": time.time() + int(token.get("expires_in", 3600)),
        }

    def _id_claims(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        settings = self._settings
        expected = {
            "iss": settings.issuer,
            "aud": settings.explorer_client_id or "",
            "nonce": nonce,
        }
        leeway, now = settings.leeway_seconds, time.time()
        try:
            claims = signed_claims(str(token.get("id_token", "")), self._keys)
            check_claims(claims, expected, required=True, leeway=leeway, now=now)
        except BadTokenError as error:
            raise LoginError("The ID token of the login is not valid.") from error
        if not claims.get("sub"):
            raise LoginError("The ID token of the login names nobody.")
        if not isinstance(token.get("access_token"), str):
            raise LoginError("The identity provider gave no access token.")
        return claims

    def _client(self) -> OAuth2Session:
        settings = self._settings
        secret = settings.explorer_client_secret
        session = OAuth2Session(
            settings.explorer_client_id,
            secret,
            scope=settings.explorer_scope,
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
        return isolated(session)

    def _address(self, name: str) -> str:
        try:
            return self._metadata.address(name)
        except IdentityError as error:
            raise UnavailableError(_AWAY) from error
