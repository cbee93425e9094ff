"""An identity provider for tests: real keys, real signatures, one key set URL."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import responses
from cryptography.fernet import Fernet
from joserfc import jws
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from app.config import Settings

ISSUER = "https://auth.example.org/"
AUDIENCE = "https://encounters.example.org/"
KEY_SET_URL = "https://auth.example.org/.well-known/jwks.json"
INTROSPECTION_URL = "https://auth.example.org/introspect"
SCOPE = "PATIENT_GAM_SEARCH"


_ONE_AT_A_TIME = threading.Lock()


class Signs(JWSRegistry):
    """Signs with anything: what is allowed is for the service to say."""

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name]

    def check_header(self, header: Mapping[str, Any]) -> None:
        """Sign any header."""


def key(kind: str, kid: str, curve_or_size: str | int) -> Key:
    # Two threads that ask at once, for services that start, would get a key each.
    with _ONE_AT_A_TIME:
        return _generated(kind, kid, curve_or_size)


@cache
def _generated(kind: str, kid: str, curve_or_size: str | int) -> Key:
    return JWKRegistry.generate_key(kind, curve_or_size, {"kid": kid})


def rsa(kid: str = "rsa-1") -> RSAKey:
    return key("RSA", kid, 2048)


def ec(kid: str = "ec-1", curve: str = "P-256") -> ECKey:
    return key("EC", kid, curve)


def okp(kid: str = "ed-1", curve: str = "Ed25519") -> OKPKey:
    return key("OKP", kid, curve)


def claims(**changed: Any) -> dict[str, Any]:
    """Claims of a token that is good for an hour, longer than a run; None takes one away."""
    now = int(time.time())
    values = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": changed.get("client_id") or "client-1",
        "client_id": "client-1",
        "scope": SCOPE,
        "iat": now,
        "exp": now + 3600,
        **changed,
    }
    return {name: value for name, value in values.items() if value is not None}


def sign(
    signer: Key | None = None,
    alg: str = "RS256",
    header: Mapping[str, Any] | None = None,
    **changed: Any,
) -> str:
    """A signed token; `header` adds to its header, None takes away."""
    signer = signer or rsa()
    full = {"alg": alg, "kid": signer.kid, **(header or {})}
    full = {name: value for name, value in full.items() if value is not None}
    payload = json.dumps(claims(**changed))
    return jws.serialize_compact(full, payload, signer, registry=Signs())


def bearer(token: str) -> str:
    return f"Bearer {token}"


def key_set(*keys: Key, **parameters: str) -> dict[str, Any]:
    return {"keys": [each.as_dict(private=False, **parameters) for each in keys]}


def publish(mock: responses.RequestsMock, *keys: Key) -> None:
    """From now on the provider publishes these keys."""
    mock.upsert(responses.GET, KEY_SET_URL, json=key_set(*keys))


def environ(mapping: Path, **changed: str | None) -> dict[str, str]:
    """The variables of a deployment that starts; None takes one away."""
    variables = {
        "BASE_URL": "https://encounters.example.org/fhir/v3",
        "ISSUER": ISSUER,
        "AUDIENCE": AUDIENCE,
        "KEY_SET_URL": KEY_SET_URL,
        "MAPPING": str(mapping),
        "REDIS_URL": "redis://localhost:6379/0",
        "SEAL_KEYS": Fernet.generate_key().decode(),
        **changed,
    }
    return {
        f"ENCOUNTERS_{n}": text for n, text in variables.items() if text is not None
    }


def settings(mapping: Path, **changed: str | None) -> Settings:
    return Settings.from_environ(environ(mapping, **changed))


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now
