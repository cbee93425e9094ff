"""The demo's identity provider: OAuth2 for programs, a login page for people.

It replaces the hospital group's. Programs get tokens by client credentials (RFC 6749, 4.4):
every client name is known, and all share one secret. People log in to the explorer with any
name, by OpenID Connect with PKCE. Access tokens are as in RFC 9068.

    POST /oauth/token                       grant_type, client_id, client_secret, …
    GET  /oauth/authorize                   the login page
    GET  /.well-known/jwks.json             the public key
    GET  /.well-known/openid-configuration  the addresses of all (RFC 8414)
"""

import argparse
import hmac
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin
from authlib.oauth2.rfc6749.errors import InvalidRequestError
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, ClientCredentialsGrant
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from flask import Flask, Response, jsonify, render_template_string, request
from joserfc.jwk import KeySet, RSAKey

from demo.state import HOST, DemoDirectory, serve

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
EXPLORER = "explorer"
"""The client of the explorer; it is public, so PKCE stands for a secret."""

PERSON_SCOPES = f"openid {DEFAULT_SCOPE}"
TOKEN_SECONDS = 3600

GRANT_TYPE, CODE_GRANT = "client_credentials", "authorization_code"
_AUTH_METHODS = ("client_secret_basic", "client_secret_post")
_CLIENT_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOGIN_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in to the demo</title>
<style>
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 26rem; margin: 3rem auto; padding: 0 1rem }
  label { display: block; margin: .7rem 0 }
  input[name=name] { display: block; width: 100%; padding: .5rem; box-sizing: border-box; font: inherit }
  button { padding: .5rem 1.2rem; font: inherit }
</style>
<main>
<h1>Log in to the demo</h1>
<p>This page stands for the hospital group's identity provider. Any name will do.</p>
<form method="post">
  <label>Name <input name="name" required pattern="[A-Za-z0-9._\\-]{1,64}" value="camille" autofocus></label>
  <button>Log in</button>
</form>
</main>
"""  # noqa: E501 - a page


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
        methods = ("none",) if self.name == EXPLORER else _AUTH_METHODS
        return endpoint == "token" and method in methods

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == (CODE_GRANT if self.name == EXPLORER else GRANT_TYPE)

    def check_response_type(self, response_type: str) -> bool:
        return self.name == EXPLORER and response_type == "code"

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Accept this machine only, where the demo's explorer is."""
        return redirect_uri.startswith(f"http://{HOST}:")


@dataclass(frozen=True, slots=True)
class _Person:
    """Who has logged in; the name is the subject, too."""

    name: str

    def get_user_id(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Code(AuthorizationCodeMixin):
    """An authorization code, and what was requested with it."""

    client_id: str
    redirect_uri: str
    scope: str
    person: _Person
    nonce: str | None
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> None:
        return None

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


class _CodeGrant(AuthorizationCodeGrant):
    """Authorization code; each code is used once."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("none",)

    def save_authorization_code(self, code: str, request: Any) -> None:
        data = request.payload.data
        self.server.codes[code] = _Code(
            client_id=request.payload.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            person=request.user,
            nonce=data.get("nonce"),
            code_challenge=data["code_challenge"],
            code_challenge_method=data["code_challenge_method"],
        )

    def query_authorization_code(self, code: str, client: _Client) -> _Code | None:
        stored: _Code | None = self.server.codes.get(code)
        return stored if stored and stored.client_id == client.name else None

    def delete_authorization_code(self, authorization_code: _Code) -> None:
        codes = self.server.codes
        self.server.codes = {c: s for c, s in codes.items() if s != authorization_code}

    def authenticate_user(self, authorization_code: _Code) -> _Person:
        return authorization_code.person


class _IdTokens(OpenIDCode):
    """ID tokens that the demo's key signs."""

    def __init__(self, issuer: str, key: RSAKey) -> None:
        super().__init__(require_nonce=True)
        self.issuer, self.key = issuer, key

    def exists_nonce(self, nonce: str, request: Any) -> bool:  # noqa: ARG002
        return False

    def resolve_client_private_key(self, client: _Client) -> RSAKey:  # noqa: ARG002
        return self.key

    def get_client_claims(self, client: _Client) -> dict[str, Any]:  # noqa: ARG002
        return {"iss": self.issuer}

    def get_client_algorithm(self, client: _Client) -> str:  # noqa: ARG002
        return "RS256"

    def generate_user_info(self, user: _Person, scope: str) -> UserInfo:  # noqa: ARG002
        return UserInfo(sub=user.name, name=user.name)


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
    app.config["OAUTH2_SCOPES_SUPPORTED"] = [*SCOPES, "openid"]
    issuer, key = directory.issuer(), directory.signing_key()
    keys = KeySet([key])
    server = _server(app, directory.client_secret().read_text(), _Tokens(issuer, keys))
    server.codes = {}
    server.register_grant(
        _CodeGrant, [CodeChallenge(required=True), _IdTokens(issuer, key)]
    )

    @app.get("/oauth/authorize")
    def log_in() -> Any:
        try:
            server.get_consent_grant(end_user=None)
        except OAuth2Error as error:
            return server.handle_error_response(None, error)
        return render_template_string(_LOGIN_PAGE)

    @app.post("/oauth/authorize")
    def authorize() -> Any:
        name = request.form.get("name", "")
        if not _CLIENT_NAME.fullmatch(name):
            return render_template_string(_LOGIN_PAGE), 400
        return server.create_authorization_response(grant_user=_Person(name))

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
                "authorization_endpoint": f"{issuer}/oauth/authorize",
                "token_endpoint": f"{issuer}/oauth/token",
                "jwks_uri": f"{issuer}/.well-known/jwks.json",
                "grant_types_supported": [GRANT_TYPE, CODE_GRANT],
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": [*SCOPES, "openid"],
                "token_endpoint_auth_methods_supported": [*_AUTH_METHODS, "none"],
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
