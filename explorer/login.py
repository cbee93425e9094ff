"""Login to the explorer: OpenID Connect, authorization code with PKCE (S256), by Authlib.

`state` binds the answer of the provider to the browser that began the login, `nonce` the ID
token to it (OpenID Connect Core 3.1, RFC 7636, RFC 9700 4.7). The access token is the
person's own: the service checks it on each call.

Addresses and keys of the provider are read for each login, which is rare: nothing is cached.
"""

import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from app.config import Settings
from explorer.failures import AwayError, LoginError
from explorer.language import mark as _

MOST_NAME = 80

_SIZES = (256, 384, 512)
_SIGNATURES = JWSRegistry(
    algorithms=[f"{family}{size}" for family in ("RS", "PS", "ES") for size in _SIZES]
    + ["EdDSA", "Ed25519"],
    # RFC 7515 section 4: unknown header members are ignored.
    strict_check_header=False,
)
"""Asymmetric algorithms only: nobody but the provider signs an ID token."""

_log = logging.getLogger(__name__)


class ProviderLogin:
    """Logs people in at the identity provider of the deployment."""

    def __init__(self, settings: Settings, redirect_uri: str) -> None:
        self._settings = settings
        self._redirect_uri = redirect_uri

    def start(self) -> tuple[str, dict[str, str]]:
        """Begin a login: where the browser goes, and what its session stores as `login`.

        Raises AwayError.
        """
        verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        with self._calling() as client:
            url, state = client.create_authorization_url(
                self._address(client, "authorization_endpoint"),
                code_verifier=verifier,
                nonce=nonce,
                audience=self._settings.audience,
            )
        return url, {"verifier": verifier, "nonce": nonce, "state": state}

    def finish(
        self, query: Mapping[str, str], login: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the session of who logged in, from what the provider added to the address.

        The caller has compared the state. Raises LoginError, AwayError.
        """
        if "code" not in query:
            raise LoginError(_("The identity provider did not log you in."))
        with self._calling() as client:
            token = client.fetch_token(
                self._address(client, "token_endpoint"),
                grant_type="authorization_code",
                code=query["code"],
                code_verifier=login["verifier"],
            )
            address = self._settings.key_set_url or self._address(client, "jwks_uri")
            keys = KeySet.import_key_set(_read(client, address))
        claims = self._claims(token, keys, login["nonce"])
        name = claims.get("name") or claims.get("preferred_username") or claims["sub"]
        return {
            "person": claims["sub"],
            "name": str(name)[:MOST_NAME],
            "token": token["access_token"],
            "scope": token.get("scope") or self._settings.explorer_scope,
            "expires": time.time() + int(token.get("expires_in", 3600)),
        }

    def _claims(
        self, token: Mapping[str, Any], keys: KeySet, nonce: str
    ) -> CodeIDToken:
        """Return the claims of the ID token, once they are valid (Core 3.1.3.7)."""
        access_token, id_token = token.get("access_token"), token.get("id_token", "")
        if not isinstance(access_token, str):
            raise LoginError(_("The identity provider gave no access token."))
        client_id = self._settings.explorer_client_id
        try:
            signed = jwt.decode(str(id_token), keys, registry=_SIGNATURES)
            claims = CodeIDToken(
                signed.claims,
                signed.header,
                {"iss": {"value": self._settings.issuer}, "aud": {"value": client_id}},
                {"client_id": client_id, "nonce": nonce, "access_token": access_token},
            )
            claims.validate(leeway=self._settings.leeway_seconds)
        # joserfc raises the others for a token that is nested too deep, or no object.
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise LoginError(_("The ID token of the login is not valid.")) from error
        if not claims["sub"] or not isinstance(claims["sub"], str):
            raise LoginError(_("The ID token of the login names nobody."))
        return claims

    def _address(self, client: OAuth2Session, name: str) -> str:
        """Return an address of the issuer's metadata (OpenID Connect Discovery 1.0, 4)."""
        issuer = self._settings.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        metadata = _read(client, url)
        address = metadata.get(name)
        if metadata.get("issuer") != issuer or not isinstance(address, str):
            raise ValueError("metadata of another issuer, or without the address")
        if not self._settings.allows_provider(address):
            raise ValueError("an address without TLS")
        return address

    @contextmanager
    def _calling(self) -> Iterator[OAuth2Session]:
        """Yield a client without proxy, .netrc and cookies.

        Raises LoginError for a refusal of the provider, AwayError for no proper answer.
        """
        settings = self._settings
        secret = settings.explorer_client_secret
        client = OAuth2Session(
            settings.explorer_client_id,
            secret,
            scope=settings.explorer_scope,
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            default_timeout=settings.identity_timeout_seconds,
        )
        client.trust_env = False
        client.verify = os.environ.get("SSL_CERT_FILE") or True
        client.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        # The errors' texts may quote what the provider sends about the person.
        try:
            with client:
                yield client
        except (
            AuthlibBaseError,
            requests.RequestException,
            # Metadata or keys that are not what they should be.
            JoseError,
            LookupError,
            ValueError,
        ) as error:
            reason = type(error).__name__
            _log.warning("login failed", extra={"data": {"reason": reason}})
            if isinstance(error, AuthlibBaseError):
                text = _("The identity provider refused the login.")
                raise LoginError(text) from error
            text = _("The identity provider does not answer at the moment.")
            raise AwayError(text) from error


def _read(client: OAuth2Session, url: str) -> Any:
    """Return the JSON at an address of the provider."""
    response = client.get(url, withhold_token=True, allow_redirects=False)
    response.raise_for_status()
    content = response.json()
    if not isinstance(content, dict):
        raise ValueError("no object")
    return content
