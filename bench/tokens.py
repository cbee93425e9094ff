"""The identity provider of the bench: one key, one token, the same for all contenders."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import RSAKey
from werkzeug import Request, Response

from tests.hospital_http import serving

ISSUER = "https://auth.example.org"
AUDIENCE = "bench"
_SECONDS = 7200


@dataclass(frozen=True, slots=True)
class Identity:
    """A token, and where its key is: as a key set at a URL, and as a file."""

    token: str
    key_set_url: str
    public_key: Path


@contextmanager
def identity(directory: Path) -> Iterator[Identity]:
    """Serve the key set of a new key as long as the bench runs."""
    key = RSAKey.generate_key(2048, {"kid": "bench", "alg": "RS256", "use": "sig"})
    public_key = directory / "public-key.pem"
    public_key.write_bytes(key.as_pem(private=False))
    body = json.dumps({"keys": [key.as_dict(private=False)]}).encode()

    @Request.application
    def answer(_request: Request) -> Response:
        return Response(body, content_type="application/json")

    with serving(answer) as url:
        yield Identity(_token(key), f"{url}/keys", public_key)


def _token(key: RSAKey) -> str:
    now = int(time.time())
    header = {"alg": "RS256", "kid": "bench", "typ": "at+jwt"}
    claims = {
        **{"iss": ISSUER, "aud": AUDIENCE, "sub": "bench", "client_id": "bench"},
        **{"iat": now, "exp": now + _SECONDS, "jti": "bench"},
        "scope": "PATIENT_GAM_SEARCH",
    }
    return jwt.encode(header, claims, key)
