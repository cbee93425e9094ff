"""Who asks, and may they: from the Authorization header to a client with scopes.

Authlib reads the header and compares scopes; a signed token is checked against the
provider's key set (`app.tokens`), an opaque one by asking the provider
(`app.introspection`). Everything that is refused here is refused in our own words, with
the challenge of RFC 6750 section 3.
"""

import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from authlib.oauth2.rfc6749 import (
    MissingAuthorizationError,
    ResourceProtector,
    TokenValidator,
    UnsupportedTokenTypeError,
)

from app.errors import (
    REALM,
    Headers,
    InsufficientScopeError,
    IssueCode,
    UnauthenticatedError,
)
from app.identity import Provider
from app.kept_keys import KeptKeys
from app.keys import KeySource
from app.operations.shared import Shared
from app.settings import Settings
from app.token_cache import TokenCache
from app.tokens import BadTokenError, ClaimsReader, Client, SignedTokens, Verified

if TYPE_CHECKING:
    from app.introspection import IntrospectedTokens

__all__ = ["Authenticator", "Client", "require"]

MAX_TOKEN_LENGTH = 8192

_LOCATION = "http.Authorization"
# RFC 6750 section 2.1; also keeps out a second header, which servers join by a comma.
_B64_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")

_log = logging.getLogger(__name__)


class Authenticator:
    """Turns the Authorization header of a request into a client. Thread-safe."""

    def __init__(
        self,
        signed: SignedTokens | None,
        opaque: "IntrospectedTokens | None",
        keys: KeySource | None,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._tokens = _Tokens(signed, opaque, keys, TokenCache(clock))
        self._protector = ResourceProtector()
        self._protector.register_token_validator(_Validator(self._tokens))

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Return the authenticator of a deployment; nothing is asked of the provider yet."""
        claims = ClaimsReader(
            issuer=settings.issuer,
            audience=settings.audience,
            leeway=settings.leeway_seconds,
            scopes=settings.scopes,
            clock=clock,
        )
        keys = key_source(settings, monotonic)
        signed = SignedTokens(keys, claims) if keys else None
        return cls(signed, _introspection(settings, claims, clock), keys, clock=clock)

    def recall(self, authorization: str | None) -> Client | None:
        """Return the client of a token that was verified before, None of any other."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self._tokens.recall(token.strip())

    def authenticate(self, authorization: str | None) -> Client:
        """Return the client that an Authorization header stands for.

        Raises UnauthenticatedError (401), or UnavailableError (503) when the identity
        provider could not be asked: a good token is never called bad for that.
        """
        headers = {"Authorization": authorization} if authorization else {}
        try:
            client = self._protector.validate_request(None, _Request(headers))
        except (MissingAuthorizationError, UnsupportedTokenTypeError) as error:
            # Without an error attribute: the client showed no token (RFC 6750 3.1).
            raise UnauthenticatedError(
                "An access token is needed: Authorization: Bearer <token>.", _LOCATION
            ) from error
        except BadTokenError as error:
            _log.info("token refused", extra={"data": {"reason": error.reason}})
            raise _refusal(error) from error
        assert isinstance(client, Client)  # Authlib has no types
        return client


def require(client: Client, scope: str) -> None:
    """Raise InsufficientScopeError unless the client has the scope, or all of several.

    Several are parted by blanks. The text is that of spec 5.3.
    """
    if _has(client.scopes, scope):
        return
    raise InsufficientScopeError(
        f"Operation forbidden: insufficient scope. It needs {scope}.",
        _LOCATION,
        headers=_challenge("insufficient_scope", scope=scope),
    )


@lru_cache(1024)
def _has(scopes: frozenset[str], scope: str) -> bool:
    return not TokenValidator.scope_insufficient(sorted(scopes), [scope])


class _Request(NamedTuple):
    headers: dict[str, str]


class _Verifier(Protocol):
    def verify(self, token: str) -> Verified: ...


class _Validator(TokenValidator):  # type: ignore[misc]  # Authlib has no types
    """Authlib's hook: what a bearer token is, once Authlib has found it."""

    def __init__(self, tokens: "_Tokens") -> None:
        super().__init__(realm=REALM)
        self._tokens = tokens

    def authenticate_token(self, token_string: str) -> Client:
        return self._tokens.client_of(token_string)

    def validate_token(
        self, token: Client, scopes: list[str] | None, request: _Request
    ) -> None:
        """Leave scopes to `require`: a Bundle's is known only once it is found."""


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Chooses who checks a token, and remembers what was found good; never what was bad."""

    signed: SignedTokens | None
    opaque: "IntrospectedTokens | None"
    keys: KeySource | None
    cache: TokenCache

    def recall(self, token: str) -> Client | None:
        # What is no token was never found good.
        return self.cache.get(token, self._version(self._verifier(token)))

    def client_of(self, token: str) -> Client:
        if not _is_token(token):
            raise BadTokenError("malformed")
        verifier = self._verifier(token)
        version = self._version(verifier)
        client = self.cache.get(token, version)
        if client is None:
            verified = verifier.verify(token)
            self.cache.put(token, verified, version)
            client = verified.client
        return client

    def _version(self, verifier: _Verifier) -> int:
        return self.keys.freshen() if self.keys and verifier is self.signed else 0

    def _verifier(self, token: str) -> _Verifier:
        # Three parts are a signed token's, wherever signed tokens are taken at all.
        if self.signed and (token.count(".") == 2 or self.opaque is None):
            return self.signed
        if self.opaque:
            return self.opaque
        raise BadTokenError("no way to check it")


def _is_token(text: str) -> bool:
    return len(text) <= MAX_TOKEN_LENGTH and _B64_TOKEN.fullmatch(text) is not None


def _refusal(error: BadTokenError) -> UnauthenticatedError:
    if error.expired:
        text, code = "The access token has expired.", IssueCode.EXPIRED
    else:
        text, code = "The access token is not valid here.", IssueCode.UNKNOWN
    return UnauthenticatedError(
        text, _LOCATION, code=code, headers=_challenge("invalid_token")
    )


def _challenge(error: str, **attributes: str) -> Headers:
    parts = {"realm": REALM, "error": error, **attributes}
    listed = ", ".join(f'{name}="{value}"' for name, value in parts.items())
    return (("WWW-Authenticate", f"Bearer {listed}"),)


def key_source(settings: Settings, monotonic: Callable[[], float]) -> KeySource | None:
    """Return the provider's keys; None where all tokens are introspected."""
    if settings.key_set_url is None:
        return None
    shared = Shared.of(os.environ)
    return KeySource(
        Provider(settings.key_set_url, settings.identity_timeout_seconds),
        fresh=settings.key_set_seconds,
        retry=settings.key_set_retry_seconds,
        clock=monotonic,
        kept=KeptKeys(shared.keys) if shared else None,
    )


def _introspection(
    settings: Settings, claims: ClaimsReader, clock: Callable[[], float]
) -> "IntrospectedTokens | None":
    if settings.introspection_url is None:
        return None
    # Here: a client of OAuth takes as long to read as Flask.
    from app.introspection import IntrospectedTokens

    return IntrospectedTokens(
        Provider(settings.introspection_url, settings.identity_timeout_seconds),
        claims,
        client_id=settings.introspection_client_id or "",
        client_secret=settings.introspection_client_secret or "",
        # The others are left to who needs no answer of the provider.
        at_once=max(1, settings.threads // 2),
        clock=clock,
    )
