"""The demo's token server: OAuth2 client credentials (RFC 6749, 4.4), tokens as RFC 9068.

It replaces the hospital group's identity provider. Every client name is known, and all
share one secret.

    POST /oauth/token                       grant_type, client_id, client_secret, …
    GET  /.well-known/jwks.json             the public key
    GET  /.well-known/openid-configuration  the addresses of both (RFC 8414)
"""

import argparse
import hmac
import os
import re
from pathlib import Path
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin
from authlib.oauth2.rfc6749.errors import InvalidRequestError
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, Response, jsonify
from joserfc.jwk import KeySet

from demo.state import DemoDirectory, serve

AUDIENCE = "encounters-demo"
DEFAULT_CLIENT = "demo"
DEFAULT_SCOPE = "PATIENT_GAM_SEARCH"
SCOPES = (
    DEFAULT_SCOPE,
    "ORGANIZATION_READ",
    "PATIENT_READ",
    "PATIENT_SEARCH",
    "ENCOUNTER_READ",
    "ENCOUNTER_SEARCH",
)
TOKEN_SECONDS = 3600

GRANT_TYPE = "client_credentials"
_AUTH_METHODS = ("client_secret_basic", "client_secret_post")
_CLIENT_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class _Client(ClientMixin):
    """A machine client; all clients of the demo share one secret."""

    def __init__(self, name: str, secret: str) -> None:
        self.name = name
        self.secret = secret

    def get_client_id(self) -> str:
        return self.name

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or DEFAULT_SCOPE

    def check_client_secret(self, client_secret: str) -> bool:
        return hmac.compare_digest(self.secret.encode(), client_secret.encode())

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return endpoint == "token" and method in _AUTH_METHODS

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == GRANT_TYPE


class _Grant(ClientCredentialsGrant):
    """Client credentials, for the audience of the demo only."""

    TOKEN_ENDPOINT_AUTH_METHODS = _AUTH_METHODS

    def validate_token_request(self) -> None:
        super().validate_token_request()
        if self.request.form.get("audience", AUDIENCE) != AUDIENCE:
            raise InvalidRequestError("This audience is unknown.")


class _Tokens(JWTBearerTokenGenerator):
    """Access tokens that the demo's key signs; a key set makes Authlib name the `kid`."""

    def __init__(self, issuer: str, keys: KeySet) -> None:
        super().__init__(issuer, alg="RS256", expires_generator=TOKEN_SECONDS)
        self.keys = keys

    def get_jwks(self) -> KeySet:
        return self.keys

    def get_audiences(self, *_: object) -> str:
        return AUDIENCE


def issue_token(
    directory: DemoDirectory, scope: str = DEFAULT_SCOPE, client: str = DEFAULT_CLIENT
) -> str:
    """Return a token as the token server would issue it. Raises DemoError."""
    tokens = _Tokens(directory.issuer(), KeySet([directory.signing_key()]))
    token: str = tokens.access_token_generator(
        _Client(client, directory.client_secret().read_text()), GRANT_TYPE, None, scope
    )
    return token


def create_issuer(directory: DemoDirectory) -> Flask:
    """Return the token server as a WSGI application."""
    app = Flask(__name__)
    app.config["OAUTH2_SCOPES_SUPPORTED"] = list(SCOPES)
    issuer, keys = directory.issuer(), KeySet([directory.signing_key()])
    server = _server(app, directory.client_secret().read_text(), _Tokens(issuer, keys))

    @app.post("/oauth/token")
    def token() -> Any:
        return server.create_token_response()

    @app.get("/.well-known/jwks.json")
    def key_set() -> Response:
        return jsonify(keys.as_dict(private=False))

    @app.get("/.well-known/openid-configuration")
    def metadata() -> Response:
        return jsonify(
            {
                "issuer": issuer,
                "token_endpoint": f"{issuer}/oauth/token",
                "jwks_uri": f"{issuer}/.well-known/jwks.json",
                "grant_types_supported": [GRANT_TYPE],
                "response_types_supported": [],
                "scopes_supported": list(SCOPES),
                "token_endpoint_auth_methods_supported": list(_AUTH_METHODS),
            }
        )

    return app


def _server(app: Flask, secret: str, tokens: _Tokens) -> AuthorizationServer:
    def client(name: str) -> _Client | None:
        return _Client(name, secret) if _CLIENT_NAME.fullmatch(name) else None

    def forget(token: dict[str, Any], request: object) -> None:
        """Keep nothing: a signed token is checked by its signature alone."""

    server = AuthorizationServer(app, query_client=client, save_token=forget)
    server.register_token_generator("default", tokens)
    server.register_grant(_Grant)
    return server


def main() -> None:
    """Serve tokens on loopback until the process is told to stop."""
    parser = argparse.ArgumentParser(prog="demo.issuer", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    # Authlib refuses plain HTTP, rightly; here it never leaves the loopback interface.
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    issuer = create_issuer(DemoDirectory(options.directory))
    serve(issuer, options.port, "The token server")


if __name__ == "__main__":
    main()
