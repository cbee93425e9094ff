"""The identity provider of the bench: one key, one token, the same for all contenders."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import RSAKey

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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/keys"
        yield Identity(_token(key), url, public_key)
    finally:
        server.shutdown()
        server.server_close()


def _token(key: RSAKey) -> str:
    now = int(time.time())
    header = {"alg": "RS256", "kid": "bench", "typ": "at+jwt"}
    claims = {
        **{"iss": ISSUER, "aud": AUDIENCE, "sub": "bench", "client_id": "bench"},
        **{"iat": now, "exp": now + _SECONDS, "jti": "bench"},
        "scope": "PATIENT_GAM_SEARCH",
    }
    return jwt.encode(header, claims, key)
