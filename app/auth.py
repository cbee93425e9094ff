"""Authentication and scopes: from the Authorization header to a client with scopes.

Authlib reads the header. A signed token (JWT) is verified against the provider's key set,
an opaque one by introspection (RFC 7662). Issuer, audience, expiry and algorithm are
checked explicitly. A verified token is remembered until it expires. Refusals carry the
challenge of RFC 6750 section 3 and never quote the token.
"""

import hashlib
import logging
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import jmespath
from authlib.integrations.requests_client.oauth2_session import OAuth2ClientAuth
from authlib.oauth2.rfc6749 import (
    MissingAuthorizationError,
    ResourceProtector,
    TokenValidator,
    UnsupportedTokenTypeError,
)
from jmespath.exceptions import JMESPathError
from joserfc import jwt
from joserfc.errors import (
    ClaimError,
    ExpiredTokenError,
    JoseError,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from joserfc.registry import HeaderParameter

from adapters.contract import SourceBusyError
from adapters.resilience import Bulkhead
from app.config import Settings
from app.errors import (
    REALM,
    InsufficientScopeError,
    IssueCode,
    ResponseHeaders,
    UnauthenticatedError,
    UnavailableError,
)
from app.jwks import Address, IdentityError, KeySource, provider_addresses, provider_at

ALGORITHMS = frozenset(
    {
        *("RS256", "RS384", "RS512"),
        *("PS256", "PS384", "PS512"),
        *("ES256", "ES384", "ES512"),
        *("EdDSA", "Ed25519"),
    }
)
"""Asymmetric ones only; Ed25519 is the name that RFC 9864 gives to EdDSA."""

MAX_CLIENT_LENGTH = 255
MAX_TOKEN_LENGTH = 8192
MAX_CACHED_TOKENS = 4096

CACHE_SECONDS = 30
"""How long a token that the provider has withdrawn may still be accepted here."""

WAIT_SECONDS = 1.0
"""How long an introspection waits for one in progress to end."""

_LOCATION = "http.Authorization"
# RFC 6750 section 2.1; also excludes a second header, which servers join by a comma.
_B64_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")

# What joserfc raises for a header or payload that is JSON and not an object, or nested
# deeper than Python reads.
_UNREADABLE = (ValueError, TypeError, RecursionError)

_PROTECTOR = ResourceProtector()
_PROTECTOR.register_token_validator(TokenValidator(realm=REALM))

_log = logging.getLogger(__name__)


class Scope(StrEnum):
    """The technical scopes of spec 5.2."""

    ENCOUNTER_READ = "ENCOUNTER_READ"
    ENCOUNTER_SEARCH = "ENCOUNTER_SEARCH"
    PATIENT_READ = "PATIENT_READ"
    PATIENT_SEARCH = "PATIENT_SEARCH"
    ORGANIZATION_READ = "ORGANIZATION_READ"


def scopes_of(table: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    """Return the technical scopes that each scope grants, by its name.

    `table` has the functional scopes of the deployment. Any other name grants nothing.
    """
    technical = {str(scope): frozenset({str(scope)}) for scope in Scope}
    return {**technical, **table}


@dataclass(frozen=True, slots=True)
class Client:
    """A client's id and the technical scopes that it was granted.

    The id is `<client>/<subject>` where a token is about somebody else (decision 37).
    """

    id: str
    scopes: frozenset[str]


class BadTokenError(Exception):
    """A token that is not valid here; the reason is for the log alone.

    For an error of joserfc it is the error's type and claim, because some of joserfc's
    texts quote values of the header.
    """

    def __init__(self, reason: str, *, expired: bool = False) -> None:
        super().__init__(reason)
        self.expired = expired


class Authenticator:
    """Turns the Authorization header of a request into a client. Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare for the tokens of a deployment; the provider is not called yet.

        `clock` gives seconds since 1970.
        """
        key_set, introspection = provider_addresses(settings, monotonic)
        self._settings = settings
        self._clock = clock
        self._cache = TokenCache(clock)
        self._scopes = scopes_of(settings.scopes)
        self.keys: KeySource | None = None
        self._introspection: Introspection | None = None
        if key_set:
            self.keys = KeySource(settings, key_set, monotonic)
        if introspection:
            self._introspection = Introspection(introspection, settings)

    def recall(self, authorization: str | None) -> Client | None:
        """Return the client of a token that was verified before, None for any other."""
        token = _bearer_token(authorization)
        if not token:
            return None
        return self._cache.get(token, self._keys_for(token))

    def authenticate(self, authorization: str | None) -> Client:
        """Return the client of an Authorization header.

        Raises UnauthenticatedError (401), or UnavailableError (503) if the identity
        provider is away: a good token is never called bad for that.
        """
        token = _bearer_token(authorization)
        if token is None:
            # Without an error attribute: the client sent no token (RFC 6750 3.1).
            raise UnauthenticatedError(
                "An access token is required: Authorization: Bearer <token>.", _LOCATION
            )
        try:
            return self._verify(token)
        except BadTokenError as error:
            _log.info("token refused", extra={"data": {"reason": str(error)}})
            text = "The access token is not valid here."
            code = IssueCode.UNKNOWN
            if error.expired:
                text = "The access token has expired."
                code = IssueCode.EXPIRED
            challenge = _challenge("invalid_token")
            raise UnauthenticatedError(
                text, _LOCATION, code=code, headers=challenge
            ) from error

    def _verify(self, token: str) -> Client:
        keys = self._keys_for(token)
        if client := self._cache.get(token, keys):
            return client
        claims = self.claims(token)
        client = self.client(token, claims)
        until = claims.get("exp", math.inf)
        if not self._has_signature(token):
            until = min(self._clock() + CACHE_SECONDS, until)
        self._cache.put(token, client, until, keys=keys)
        return client

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that its signature or the provider vouches for.

        They are not checked. Raises BadTokenError, UnavailableError.
        """
        if len(token) > MAX_TOKEN_LENGTH or not _B64_TOKEN.fullmatch(token):
            raise BadTokenError("malformed")
        if self.keys and self._has_signature(token):
            return signed_claims(token, self.keys)
        assert self._introspection is not None  # the settings require one of both
        return self._introspection.claims(token)

    def client(self, token: str, claims: dict[str, Any]) -> Client:
        """Return the client of a token's claims, which are valid now, or raise BadTokenError."""
        settings = self._settings
        check_claims(
            claims,
            {"iss": settings.issuer, "aud": settings.audience},
            required=self._has_signature(token),
            leeway=settings.leeway_seconds,
            now=self._clock(),
        )
        id = client_id(claims, settings.client_claims)
        names = scope_names(claims, settings.scope_claims)
        granted = (self._scopes.get(name, frozenset()) for name in names)
        return Client(id, frozenset[str]().union(*granted))

    def _has_signature(self, token: str) -> bool:
        # Three parts are a signed token's, wherever signed tokens are accepted at all.
        return self.keys is not None and (
            token.count(".") == 2 or self._introspection is None
        )

    def _keys_for(self, token: str) -> KeySet | None:
        """Return the keys that verify a signed token now, None for an opaque one."""
        if self.keys is None or not self._has_signature(token):
            return None
        return self.keys.current()


def _bearer_token(authorization: str | None) -> str | None:
    """Return the token of an Authorization header, None where it holds none."""
    request = SimpleNamespace(headers={"Authorization": authorization})
    try:
        _, token = _PROTECTOR.parse_request_authorization(request)
    except (MissingAuthorizationError, UnsupportedTokenTypeError):
        return None
    return str(token).strip()


def require(client: Client, *scopes: Scope) -> None:
    """Raise InsufficientScopeError unless the client has one of the scopes (spec 5.3)."""
    if client.scopes.isdisjoint(scopes):
        raise InsufficientScopeError(
            f"Operation forbidden: insufficient scope. It needs {' or '.join(scopes)}.",
            _LOCATION,
            headers=_challenge("insufficient_scope", scope=scopes[0]),
        )


def _challenge(error: str, **attributes: str) -> ResponseHeaders:
    parts = {"realm": REALM, "error": error, **attributes}
    listed = ", ".join(f'{name}="{value}"' for name, value in parts.items())
    return (("WWW-Authenticate", f"Bearer {listed}"),)


class TokenCache:
    """Verified tokens, by digest; the least recently used goes first. Thread-safe.

    A token is stored with the keys that verified it: when the provider publishes others,
    it is forgotten.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: OrderedDict[bytes, tuple[Client, float, KeySet | None]]
        self._entries = OrderedDict()
        self._lock = threading.Lock()

    def get(self, token: str, keys: KeySet | None) -> Client | None:
        """Return the client of a stored token that is still valid."""
        digest = _digest(token)
        with self._lock:
            if (entry := self._entries.pop(digest, None)) is None:
                return None
            client, until, verified_with = entry
            if verified_with is not keys or until <= self._clock():
                return None
            self._entries[digest] = entry
            return client

    def put(
        self, token: str, client: Client, until: float, *, keys: KeySet | None
    ) -> None:
        """Store a verified token; it is valid until then (seconds since 1970)."""
        with self._lock:
            self._entries[_digest(token)] = (client, until, keys)
            while len(self._entries) > MAX_CACHED_TOKENS:
                self._entries.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def check_claims(
    claims: dict[str, Any],
    expected: Mapping[str, str],
    *,
    required: bool,
    leeway: int,
    now: float,
) -> None:
    """Raise BadTokenError unless claims are valid now, with the values expected.

    These and the expiry must be present if `required`, and correct if present.
    """
    registry = jwt.JWTClaimsRegistry(
        now=lambda: int(now),
        leeway=leeway,
        exp=jwt.ClaimsOption(essential=required),
        **{
            name: jwt.ClaimsOption(essential=required, value=value)
            for name, value in expected.items()
        },
    )
    try:
        registry.validate(claims)
    except ExpiredTokenError as error:
        raise BadTokenError("expired", expired=True) from error
    except ClaimError as error:
        raise BadTokenError(f"{type(error).__name__} {error.claim}") from error
    except JoseError as error:
        raise BadTokenError(type(error).__name__) from error


def claim_of(claims: Mapping[str, object], expression: str) -> object:
    """Return what a JMESPath expression finds in claims, None for nothing.

    A condition that does not hold finds nothing, and so does one that does not fit.
    """
    try:
        value: object = jmespath.search(expression, claims)
    except JMESPathError:
        return None
    return None if value is False else value


def client_id(claims: Mapping[str, object], expressions: Iterable[str]) -> str:
    """Return the id of a token's client, or raise BadTokenError (decision 37).

    It is `<client>/<subject>` where the subject is another than the client. A renewed
    token has the same id.
    """
    values = (claim_of(claims, expression) for expression in expressions)
    client = next((value for value in values if value is not None), None)
    subject = claims.get("sub")
    if subject is None or subject == client:
        return _printable(client)
    return f"{_printable(client)}/{_printable(subject)}"


def _printable(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_CLIENT_LENGTH:
        raise BadTokenError("no client")
    if not name.isprintable():
        raise BadTokenError("no client")
    return name


def scope_names(
    claims: Mapping[str, object], expressions: Iterable[str]
) -> frozenset[str]:
    """Return the scopes that claims list, in a text with blanks or in a list."""
    values = (claim_of(claims, expression) for expression in expressions)
    return frozenset(name for value in values for name in _names(value))


def _names(listed: object) -> Iterable[str]:
    if isinstance(listed, str):
        return listed.split()
    if isinstance(listed, list):
        return (name for name in listed if isinstance(name, str))
    return ()


def signed_claims(token: str, keys: KeySource) -> dict[str, Any]:
    """Return the claims of a token that one of the keys signed; they are not checked.

    Raises BadTokenError, UnavailableError if there is no key to check it with.
    """
    try:
        return jwt.decode(token, keys.for_token, registry=_SIGNATURES).claims
    except JoseError as error:
        raise BadTokenError(type(error).__name__) from error
    except _UNREADABLE as error:
        raise BadTokenError("unreadable") from error


class _SignatureRegistry(JWSRegistry):
    """Accepts a closed list of algorithms."""

    # Enough for a certificate chain in the header; the token as a whole is limited.
    max_header_length = 8192

    def get_alg(self, name: str) -> Any:
        """Return an algorithm of the list, without joserfc's warning about EdDSA."""
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError("algorithm not allowed")
        return self.algorithms[name]


_UNSUPPORTED = HeaderParameter("a critical extension, and none is supported", "none")
_SIGNATURES = _SignatureRegistry(
    {"crit": _UNSUPPORTED, "b64": _UNSUPPORTED},
    # RFC 7515 section 4: unknown header members are ignored.
    strict_check_header=False,
)


class Introspection:
    """Introspects tokens at the provider. Thread-safe.

    A provider that hangs holds half of the threads, never all.
    """

    def __init__(self, address: Address, settings: Settings) -> None:
        self._provider = provider_at(address, settings)
        self._auth = OAuth2ClientAuth(
            settings.introspection_client_id,
            settings.introspection_client_secret,
            "client_secret_basic",
        )
        # The other threads serve requests that need no introspection.
        self._bulkhead = Bulkhead(max(1, settings.threads // 2), WAIT_SECONDS)

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that the provider calls active.

        Raises BadTokenError, UnavailableError if the provider is away.
        """
        form = {"token": token, "token_type_hint": "access_token"}
        try:
            response = self._bulkhead.run(
                lambda: self._provider.fetch(form, self._auth)
            )
        except (IdentityError, SourceBusyError) as error:
            reason = "busy" if isinstance(error, SourceBusyError) else str(error)
            _log.warning("token not introspected", extra={"data": {"reason": reason}})
            raise UnavailableError(
                "The token cannot be checked at the moment. Try again later."
            ) from error
        if response.get("active") is not True:
            raise BadTokenError("not active")
        # Some providers write null for an absent claim.
        return {name: value for name, value in response.items() if value is not None}
