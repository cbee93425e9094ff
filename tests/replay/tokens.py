"""Access tokens of the replay, signed with a key of its own."""

import json
import time
from functools import cache
from typing import Any

from joserfc import jws
from joserfc.jwk import RSAKey

ISSUER = "https://auth.example.org/"
AUDIENCE = "https://encounters.example.org/"
SCOPE = "PATIENT_GAM_SEARCH"


@cache
def key() -> RSAKey:
    """Return the signing key, made once."""
    return RSAKey.generate_key(2048, {"kid": "rsa-1"})


def key_set() -> dict[str, Any]:
    """Return what the identity provider publishes."""
    return {"keys": [key().as_dict(private=False)]}


@cache
def token(client: str) -> str:
    """Return a token of a client, with every scope."""
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "client_id": client,
        "scope": SCOPE,
        "iat": now,
        "exp": now + 7200,
    }
    header = {"alg": "RS256", "kid": "rsa-1"}
    return jws.serialize_compact(header, json.dumps(claims), key())
