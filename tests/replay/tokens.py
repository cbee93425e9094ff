"""Access tokens of the replay, signed with a key of its own."""

import json
import time
from functools import cache
from typing import Any

from joserfc import jws
from joserfc.jwk import OctKey, RSAKey

ISSUER = "https://auth.example.org/"
AUDIENCE = "https://encounters.example.org/"
SCOPE = "PATIENT_GAM_SEARCH"


@cache
def key(kid: str) -> RSAKey:
    """Return a signing key, made once."""
    return RSAKey.generate_key(2048, {"kid": kid})


def key_set() -> dict[str, Any]:
    """Return what the identity provider publishes."""
    return {"keys": [key("rsa-1").as_dict(private=False)]}


@cache
def token(name: str) -> str:
    """Return the token of a kind: a client's name, or one of `_ODD`; "" for none."""
    signer, changed = _ODD.get(name, ("rsa-1", {"client_id": name}))
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": changed.get("client_id") or "client-1",
        "client_id": "client-1",
        "scope": SCOPE,
        "iat": now,
        "exp": now + 7200,
        **changed,
    }
    payload = json.dumps({n: value for n, value in claims.items() if value is not None})
    if signer == "secret":
        secret = OctKey.import_key("s" * 32)
        return jws.serialize_compact({"alg": "HS256"}, payload, secret, ["HS256"])
    text = jws.serialize_compact({"alg": "RS256", "kid": "rsa-1"}, payload, key(signer))
    return text[:-4] + "AAAA" if signer == "rsa-1" and name == "tampered" else text


def _scoped(**claims: Any) -> tuple[str, dict[str, Any]]:
    return "rsa-1", {"scope": None, **claims}


_ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "expired": ("rsa-1", {"exp": 1_000_000_000}),
    "without-expiry": ("rsa-1", {"exp": None}),
    "not-yet": ("rsa-1", {"nbf": 4_000_000_000}),
    "other-audience": ("rsa-1", {"aud": "https://other.example.org/"}),
    "audience-list": ("rsa-1", {"aud": ["https://other.example.org/", AUDIENCE]}),
    "other-issuer": ("rsa-1", {"iss": "https://other.example.org/"}),
    "without-issuer": ("rsa-1", {"iss": None}),
    "other-signer": ("rsa-2", {}),
    "symmetric": ("secret", {}),
    "tampered": ("rsa-1", {}),
    "nobody": ("rsa-1", {"client_id": None, "sub": None}),
    "azp": ("rsa-1", {"client_id": None, "azp": "client-1"}),
    "sub": ("rsa-1", {"client_id": None, "sub": "client-1"}),
    "renewed": ("rsa-1", {"jti": "another"}),
    "no-scope": _scoped(),
    "empty-scope": ("rsa-1", {"scope": ""}),
    "foreign-scope": ("rsa-1", {"scope": "openid profile"}),
    "scope-list": ("rsa-1", {"scope": ["openid", SCOPE]}),
    "scp-text": _scoped(scp=SCOPE),
    "scp-list": _scoped(scp=["ENCOUNTER_READ", "ENCOUNTER_SEARCH"]),
    "permissions": _scoped(permissions=["PATIENT_READ", "PATIENT_SEARCH"]),
    **{
        name.lower().replace("_", "-"): ("rsa-1", {"scope": name})
        for name in (
            "ENCOUNTER_READ",
            "ENCOUNTER_SEARCH",
            "PATIENT_READ",
            "PATIENT_SEARCH",
            "ORGANIZATION_READ",
        )
    },
}
ODD = tuple(_ODD)
"""The names of tokens that are no client's name."""
