"""Login to the explorer: OpenID Connect, authorization code with PKCE (S256), by Authlib.

`state` binds the answer of the provider to the browser that began the login, `nonce` the ID
token to it (OpenID Connect Core 3.1, RFC 7636, RFC 9700 4.7). The access token is the
person's own: the service checks it on each call.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.flask_client import FlaskOAuth2App
from joserfc.errors import JoseError

from app.config import Settings
from explorer.failures import TEXTS, PageError
from explorer.language import mark as _

MOST_NAME = 80

_SIZES = (256, 384, 512)
_ALGORITHMS = [f"{family}{size}" for family in ("RS", "PS", "ES") for size in _SIZES]
_ALGORITHMS += ["EdDSA", "Ed25519"]
"""Asymmetric algorithms only: nobody but the provider signs an ID token."""

_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")

_log = logging.getLogger(__name__)


class LoginProvider(FlaskOAuth2App):  # type: ignore[misc] # Authlib has no types
    """The identity provider for one login, which is rare: metadata are read each time."""

    def __init__(self, settings: Settings, redirect_uri: str) -> None:
        secret = settings.explorer_client_secret
        super().__init__(
            framework=None,
            client_id=settings.explorer_client_id,
            client_secret=secret,
            server_metadata_url=(
                f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            ),
            client_kwargs={
                "scope": settings.explorer_scope,
                "redirect_uri": redirect_uri,
                "code_challenge_method": "S256",
                "token_endpoint_auth_method": (
                    "client_secret_basic" if secret else "none"
                ),
                "default_timeout": settings.identity_timeout_seconds,
                "verify": os.environ.get("SSL_CERT_FILE") or True,
                # Neither a proxy nor .netrc.
                "trust_env": False,
                "max_redirects": 0,
            },
        )
        self._settings = settings
        self._redirect_uri = redirect_uri

    def load_server_metadata(self) -> Any:
        """Return the issuer's metadata (OpenID Connect Discovery 1.0, 4). Raises ValueError."""
        metadata = super().load_server_metadata()
        if metadata.get("issuer") != self._settings.issuer:
            raise ValueError("metadata of another issuer")
        metadata["jwks_uri"] = self._settings.key_set_url or metadata.get("jwks_uri")
        for name in _ENDPOINTS:
            if not self._settings.allows_provider(str(metadata.get(name))):
                raise ValueError("no address with TLS")
        metadata["id_token_signing_alg_values_supported"] = _ALGORITHMS
        return metadata

    def start(self) -> dict[str, str]:
        """Begin a login; return its `url` and what the session stores. Raises PageError."""
        with _calling():
            started: dict[str, str] = self.create_authorization_url(
                audience=self._settings.audience
            )
        return started

    def finish(self, code: str, login: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of a session for the code of a login. Raises PageError."""
        issuer = {"iss": {"value": self._settings.issuer}}
        client = {"aud": {"value": self.client_id}}
        with _calling():
            token = self.fetch_access_token(
                self._redirect_uri, code=code, code_verifier=login["code_verifier"]
            )
            claims = self.parse_id_token(
                token,
                login["nonce"],
                claims_options=issuer | client,
                leeway=self._settings.leeway_seconds,
            )
            person = claims["sub"]
            if not (person and isinstance(person, str)):
                raise ValueError("an ID token that names nobody")
            name = claims.get("name") or claims.get("preferred_username") or person
            return {
                "person": person,
                "name": str(name)[:MOST_NAME],
                "token": str(token["access_token"]),
                "scope": token.get("scope") or self._settings.explorer_scope,
                "expires": time.time() + int(token.get("expires_in", 3600)),
            }


def refused(text: str) -> PageError:
    """Return the error of a login, or of a form, that is not accepted."""
    return PageError(403, text, TEXTS[401][1])


@contextmanager
def _calling() -> Iterator[None]:
    """Raise PageError where the provider refuses, or does not answer as it should."""
    # The errors' texts may quote what the provider sends about the person.
    try:
        yield
    except (
        AuthlibBaseError,
        JoseError,
        requests.RequestException,
        # Metadata, keys or tokens that are not what they should be.
        LookupError,
        ValueError,
        TypeError,
        RecursionError,
    ) as error:
        reason = type(error).__name__
        _log.warning("login failed", extra={"data": {"reason": reason}})
        if isinstance(error, AuthlibBaseError | JoseError):
            raise refused(_("The identity provider refused the login.")) from error
        text = _("The identity provider does not answer at the moment.")
        raise PageError(503, text) from error
