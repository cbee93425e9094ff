"""What a token says once it is believed: signed tokens are checked here.

Signatures are joserfc's work, Authlib's own JOSE library. What this module adds is the
closed list of algorithms, the choice of key, and how a client is read from claims
(decision 22).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import (
    ExpiredTokenError,
    JoseError,
    UnsupportedAlgorithmError,
    UnsupportedHeaderError,
)
from joserfc.jwk import GuestProtocol, Key
from joserfc.jws import JWSRegistry
from joserfc.registry import Header

from app.keys import KeySource

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

_SCOPE_CLAIMS = ("scope", "scp", "permissions")
_CLIENT_CLAIMS = ("client_id", "azp", "sub")

# What joserfc lets through from a header or payload that is JSON and not an object, or
# nested past what Python reads.
_UNREADABLE = (ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: the client's id and the technical scopes that it was granted."""

    id: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verified:
    """A client, and until when (seconds since 1970) its token need not be looked at."""

    client: Client
    until: float


class BadTokenError(Exception):
    """A token that is not valid here; the text says why, for the log alone."""

    def __init__(self, reason: str, *, expired: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.expired = expired


class ClaimsReader:
    """Checks claims and reads the client from them.

    `scopes` says what functional scopes stand for, `clock` gives seconds since 1970.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        leeway: int,
        scopes: Mapping[str, frozenset[str]],
        clock: Callable[[], float],
    ) -> None:
        self._expected = {"iss": issuer, "aud": audience}
        self._leeway = leeway
        self._scopes = scopes
        self._clock = clock

    def read(self, claims: dict[str, Any], *, required: bool) -> Client:
        """Return the client of claims that hold now, or raise BadTokenError.

        Issuer, audience and expiry must be there if `required`, and be right if there.
        """
        options = {
            name: jwt.ClaimsOption(essential=required, value=value)
            for name, value in self._expected.items()
        }
        registry = jwt.JWTClaimsRegistry(
            now=lambda: int(self._clock()),
            leeway=self._leeway,
            exp=jwt.ClaimsOption(essential=required),
            **options,
        )
        try:
            registry.validate(claims)
        except ExpiredTokenError as error:
            raise BadTokenError("expired", expired=True) from error
        except JoseError as error:
            raise BadTokenError(_reason(error)) from error
        return Client(client_id(claims), self.granted(claims))

    def granted(self, claims: Mapping[str, object]) -> frozenset[str]:
        """Return the scopes that claims list, and those that they stand for."""
        listed = {name for claim in _SCOPE_CLAIMS for name in _names(claims.get(claim))}
        return frozenset(listed).union(*(self._scopes.get(n, ()) for n in listed))


class SignedTokens:
    """Verifies JSON Web Tokens against a key set. Safe to share between threads."""

    def __init__(self, keys: KeySource, claims: ClaimsReader) -> None:
        self._keys = keys
        self._claims = claims
        self._registry = _SignatureRegistry()

    def verify(self, token: str) -> Verified:
        """Return the client of a signed token.

        Raises BadTokenError, UnavailableError when there is nothing to check it with.
        """
        try:
            decoded = jwt.decode(token, self._key, registry=self._registry)
        except JoseError as error:
            raise BadTokenError(_reason(error)) from error
        except _UNREADABLE as error:
            raise BadTokenError("unreadable") from error
        client = self._claims.read(decoded.claims, required=True)
        return Verified(client, decoded.claims["exp"])

    def _key(self, token: GuestProtocol) -> Key:
        header = token.headers()
        return self._keys.find(header.get("kid"), header["alg"])


class _SignatureRegistry(JWSRegistry):
    """The algorithms that are believed, whatever the library recommends or warns of."""

    # Room for a certificate chain in the header; the token as a whole is bounded.
    max_header_length = 8192

    def __init__(self) -> None:
        # RFC 7515 section 4: header members that are not understood are ignored.
        super().__init__(strict_check_header=False)

    def check_header(self, header: Header) -> None:
        """Refuse extensions: a critical one that is not understood must be."""
        super().check_header(header)
        if "crit" in header or "b64" in header:
            raise UnsupportedHeaderError("no extension is understood")

    def get_alg(self, name: str) -> Any:
        """Return an algorithm of the closed list."""
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError("algorithm not allowed")
        return self.algorithms[name]


def client_id(claims: Mapping[str, object]) -> str:
    """Return the client that claims name, or raise BadTokenError (decision 22).

    It is the same for a renewed token: never the token's own id.
    """
    named = (claims[claim] for claim in _CLIENT_CLAIMS if claims.get(claim) is not None)
    client = next(named, None)
    if not isinstance(client, str) or not client.isprintable():
        raise BadTokenError("no client")
    if not 0 < len(client) <= MAX_CLIENT_LENGTH:
        raise BadTokenError("no client")
    return client


def _names(listed: object) -> Iterable[str]:
    if isinstance(listed, str):
        return listed.split()
    if isinstance(listed, list):
        return (name for name in listed if isinstance(name, str))
    return ()


def _reason(error: JoseError) -> str:
    # The type alone: joserfc quotes the header's values in some of its texts.
    return type(error).__name__
