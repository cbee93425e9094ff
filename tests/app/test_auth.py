"""Who is let in, and which keys of the provider count: spec 5, decisions 21, 22 and 37."""

import base64
import hmac
import json
import logging
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest
import requests
import responses
from joserfc import jwe
from urllib3.exceptions import IncompleteRead

from app.auth import CACHE_SECONDS, Authenticator, Client
from app.errors import IssueCode, UnauthenticatedError, UnavailableError
from app.jwks import MAX_RESPONSE_BYTES, USABLE_SECONDS
from tests.app import provider
from tests.app.provider import INTROSPECTION_URL, Clock, bearer, ec, okp, rsa, sign
from tests.live import ROOT

TECHNICAL = frozenset(
    {
        *("ORGANIZATION_READ", "PATIENT_READ", "PATIENT_SEARCH"),
        *("ENCOUNTER_READ", "ENCOUNTER_SEARCH"),
    }
)
INVALID = (("WWW-Authenticate", 'Bearer realm="encounters", error="invalid_token"'),)
OPAQUE = "opaque-token-1"


def calls(mock, url=provider.KEY_SET_URL):
    return sum(call.request.url == url for call in mock.calls)


def refused(auth, authorization):
    with pytest.raises(UnauthenticatedError) as caught:
        auth.authenticate(authorization)
    return caught.value


def answered(auth, token):
    """Return the status that a request with this token gets as far as identity goes."""
    try:
        auth.authenticate(bearer(token))
    except UnauthenticatedError:
        return 401
    except UnavailableError:
        return 503
    return 200


@pytest.fixture
def key_set(keys):
    """The provider's answers; it publishes one key of each kind."""
    provider.publish(keys, rsa(), ec(), okp())
    return keys


@pytest.fixture
def monotonic():
    return Clock()


@pytest.fixture
def make(tmp_path, key_set, clock, monotonic):
    """Return a function that makes an authenticator of a deployment's settings."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("mapping: 1\n")

    def make_authenticator(**changed):
        settings = provider.settings(mapping, **changed)
        return Authenticator(settings, clock=clock, monotonic=monotonic)

    return make_authenticator


@pytest.fixture
def auth(make):
    return make()


@pytest.fixture
def introspecting(make):
    """Return a function that makes an authenticator which may introspect."""
    return lambda **changed: make(
        INTROSPECTION_URL=INTROSPECTION_URL,
        INTROSPECTION_CLIENT_ID="encounters",
        INTROSPECTION_CLIENT_SECRET="hush",
        **changed,
    )


@pytest.fixture
def opaque(introspecting):
    return introspecting(KEY_SET_URL=None)


def says(key_set, **answer):
    key_set.upsert(responses.POST, INTROSPECTION_URL, json=answer)


def good(**changed):
    return {"active": True, **provider.claims(**changed)}


def test_a_good_token_is_its_client_with_the_scopes_it_stands_for(auth, clock):
    client = Client("client-1", TECHNICAL)
    now = int(clock.now)
    for claims in (
        {},
        {"aud": ["other", provider.AUDIENCE]},
        # A clock may be 30 seconds off.
        {"exp": now - 29},
        {"nbf": now + 29, "iat": now + 29},
        {"header": {"typ": "at+jwt", "x5t": "abc", "x5c": ["c" * 2000]}},
    ):
        assert auth.authenticate(bearer(sign(**claims))) == client, claims


def test_each_asymmetric_algorithm_is_accepted(auth, key_set):
    signers = (
        *((rsa(), name) for name in ("RS256", "RS512", "PS256", "PS512")),
        *((okp(), name) for name in ("EdDSA", "Ed25519")),
        (ec(), "ES256"),
        (ec("ec-2", "P-384"), "ES384"),
        (ec("ec-3", "P-521"), "ES512"),
    )
    provider.publish(key_set, *(signer for signer, _ in signers))
    for signer, algorithm in signers:
        assert answered(auth, sign(signer, algorithm)) == 200, algorithm


def test_the_scheme_is_bearer_in_any_case(auth):
    token = sign()
    client = auth.authenticate(bearer(token))
    for scheme in ("bearer ", "BEARER ", "Bearer  "):
        assert auth.authenticate(scheme + token) == client
        assert auth.recall(scheme + token) == client
    for scheme in ("Basic ", "Bearers ", " ", ""):
        assert auth.recall(scheme + token) is None
        assert refused(auth, scheme + token).headers == ()


def test_scopes_are_read_from_several_claims(auth):
    read, search = "ENCOUNTER_READ", "ENCOUNTER_SEARCH"
    for claims, scopes in (
        ({"scope": f"{read} {search}"}, {read, search}),
        ({"scope": "openid", "permissions": [read]}, {read}),
        ({"roles": [read]}, {read}),
        ({"roles": [read], "scope": ""}, set()),
        ({"roles": [read], "scp": search}, {search}),
        ({"scope": [f"{read} {search}"]}, set()),
        ({"scope": [1, None, read]}, {read}),
        ({"scope": {read: True}}, set()),
    ):
        token = sign(**{"scope": None, **claims})
        assert auth.authenticate(bearer(token)).scopes == scopes, claims


def test_a_token_about_somebody_else_belongs_to_both(auth, opaque, key_set):
    for claims, id in (
        ({"client_id": "a", "sub": "b"}, "a/b"),
        ({"client_id": "a", "sub": "a"}, "a"),
        ({"client_id": "a", "sub": None}, "a"),
        ({"client_id": None, "azp": "a", "appid": "c", "sub": "b"}, "a/b"),
        ({"client_id": None, "appid": "c", "sub": None}, "c"),
        ({"client_id": None, "sub": "b"}, "b"),
    ):
        assert auth.authenticate(bearer(sign(**claims))).id == id
        says(key_set, **good(**claims))
        assert opaque.authenticate(bearer(f"{OPAQUE}-{claims}".encode().hex())).id == id
    for claims in ({"sub": ""}, {"sub": 7}, {"sub": "a\nb"}, {"client_id": 7}):
        assert refused(auth, bearer(sign(**claims))).headers == INVALID


OBJECT_ID = "5bd0c1e6-3f5e-4a0e-8a57-9b1d1a1c7f10"
ALL, SCOPES = "PATIENT_GAM_SEARCH", ["PATIENT_GAM_SEARCH"]
SERVICE_ACCOUNT = {"client_id": "app", "azp": "app", "sub": OBJECT_ID}
REALM = {"realm_access": {"roles": ["offline_access", ALL]}}
OF_CLIENT = {
    "resource_access": {
        "account": {"roles": ["view-profile"]},
        "encounters": {"roles": SCOPES},
    }
}
ENTRA = {"oid": OBJECT_ID, "sub": OBJECT_ID, "roles": SCOPES}
# Who may do all, in an application that requested nothing of it.
PERSON = {"sub": "camille", "scope": "openid", "roles": SCOPES, **REALM, **OF_CLIENT}
CLIENT_CLAIMS = ("azp", "appid", "cid", "client_id")
"""Which claim names the application in a person's token: the first of its own token."""

PROVIDERS = {
    # What an application's own token claims.
    "Entra, version 2": {"azp": "app", **ENTRA},
    "Entra, version 1": {"appid": "app", **ENTRA},
    "AD FS": {"appid": "app", "scp": ALL},
    "Keycloak, scopes": {**SERVICE_ACCOUNT, "scope": f"profile email {ALL}"},
    "Keycloak, realm roles": {**SERVICE_ACCOUNT, "scope": "profile email", **REALM},
    "Keycloak, client roles": {**SERVICE_ACCOUNT, "scope": "profile", **OF_CLIENT},
    "Okta": {"cid": "app", "sub": "app", "scp": SCOPES},
    "Auth0": {"azp": "app", "sub": "app@clients", "scope": ALL, "permissions": SCOPES},
    "Cognito": {"client_id": "app", "sub": "app", "scope": f"encounters/{ALL}"},
    "PingOne, PingFederate": {"client_id": "app", "scope": SCOPES},
}


def test_the_lines_of_each_provider_let_its_applications_in(make, key_set):
    lines = provider_lines()
    assert lines.keys() == PROVIDERS.keys()
    for name, own in PROVIDERS.items():
        changed = lines[name]
        address = changed.setdefault("KEY_SET_URL", provider.KEY_SET_URL)
        key_set.upsert(responses.GET, address, json=provider.key_set(rsa()))
        auth = make(**changed)
        base = {
            "iss": changed["ISSUER"],
            "aud": changed["AUDIENCE"],
            **dict.fromkeys(("client_id", "scope", "sub")),
        }
        subject = own.get("sub", "app")
        id = "app" if subject == "app" else f"app/{subject}"
        client = auth.authenticate(bearer(sign(**{**base, **own})))
        assert client == Client(id, TECHNICAL), name
        claim = next(claim for claim in CLIENT_CLAIMS if claim in own)
        person = {**base, **PERSON, claim: "app", "permissions": own.get("permissions")}
        client = auth.authenticate(bearer(sign(**person)))
        assert client == Client("app/camille", frozenset()), name
        assert answered(auth, sign(**{**base, **own, "aud": None})) == 401


def provider_lines():
    """Return the settings that deploy/providers.env has for each identity provider."""
    _, *parts = (ROOT / "deploy/providers.env").read_text("utf-8").strip().split("\n\n")
    settings = {}
    for part in parts:
        name = part.removeprefix("# ").partition(":")[0]
        pairs = re.findall(r"^ENCOUNTERS_(\w+)='?(.*?)'?$", part, re.MULTILINE)
        settings[name] = dict(pairs)
    return settings


def test_a_verified_token_is_not_checked_again_until_it_expires(auth, key_set, clock):
    token = sign(exp=int(clock.now) + 100)
    auth.authenticate(bearer(token))
    forged = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    assert refused(auth, bearer(forged)).code == IssueCode.UNKNOWN
    key_set.remove(responses.GET, provider.KEY_SET_URL)
    clock.now += 99
    assert answered(auth, token) == 200
    clock.now += 32
    assert refused(auth, bearer(token)).code == IssueCode.EXPIRED


def test_a_token_without_a_key_name_needs_a_provider_with_one_key(make, key_set):
    nameless = sign(header={"kid": None})
    assert answered(make(), nameless) == 401
    encryption = {**okp("x", "X25519").as_dict(private=False), "use": "enc"}
    signing = rsa().as_dict(private=False)
    published = {"keys": [signing, encryption]}
    key_set.upsert(responses.GET, provider.KEY_SET_URL, json=published)
    assert answered(make(), nameless) == 200


def test_a_key_for_one_algorithm_serves_no_other_and_costs_no_fetch(make, key_set):
    published = provider.key_set(rsa(), alg="RS512")
    key_set.upsert(responses.GET, provider.KEY_SET_URL, json=published)
    auth = make()
    assert answered(auth, sign(alg="RS512")) == 200
    assert answered(auth, sign(alg="RS256")) == 401
    assert calls(key_set) == 1


def test_a_key_that_is_withdrawn_takes_its_tokens_along(auth, key_set, monotonic):
    token = sign(rsa())
    auth.authenticate(bearer(token))
    provider.publish(key_set, ec())
    monotonic.now += 299
    assert answered(auth, token) == 200
    monotonic.now += 1
    assert refused(auth, bearer(token)).code == IssueCode.UNKNOWN


def test_what_was_never_verified_is_not_recalled(auth, key_set):
    auth.authenticate(bearer(sign()))
    others = (None, "", "Bearer", "Bearer é.é.é", "Bearer a b", "x" * 9000)
    for header in (*others, bearer(sign(jti="other"))):
        assert auth.recall(header) is None
    assert calls(key_set) == 1


def test_without_any_key_set_it_is_503_and_never_401(auth, key_set, monotonic):
    key_set.upsert(responses.GET, provider.KEY_SET_URL, body=requests.ConnectionError())
    for _ in range(3):
        with pytest.raises(UnavailableError) as caught:
            auth.authenticate(bearer(sign()))
        assert caught.value.headers == (("Retry-After", "10"),)
    assert calls(key_set) == 1
    # What is bad whatever the keys is 401 even then.
    assert refused(auth, bearer("garbage")).headers == INVALID
    monotonic.now += 10
    provider.publish(key_set, rsa())
    assert answered(auth, sign()) == 200


def _part(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _public_key_as_secret():
    # By hand: the library refuses to sign so.
    secret = rsa().as_pem(private=False)
    signed = f"{_part({'alg': 'HS256', 'kid': 'rsa-1'})}.{_part(provider.claims())}"
    return f"{signed}.{_part(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _nested():
    header = {"alg": "RSA-OAEP", "enc": "A256GCM", "cty": "JWT", "kid": "rsa-1"}
    return jwe.encrypt_compact(header, sign().encode(), rsa())


def bad_tokens():
    """Return what is wrong with each token, and the token."""
    header, payload, signature = sign().split(".")
    unsigned = _part({"alg": "none", "kid": "rsa-1"})
    soon = int(time.time()) + 60
    return {
        "alg none": f"{unsigned}.{payload}.",
        "HS256 with the public key": _public_key_as_secret(),
        "ES256K": sign(ec("k1", "secp256k1"), "ES256K"),
        "another key of that name": sign(rsa("thief"), header={"kid": "rsa-1"}),
        "a key that nobody has": sign(rsa("thief")),
        "the algorithm of another key": sign(ec(), "ES256", {"kid": "rsa-1"}),
        "a changed payload": f"{header}.{_part({})}.{signature}",
        "kid is a number": sign(header={"kid": 7}),
        "critical extension": sign(header={"crit": ["exp"], "exp": 1}),
        "an extension that is not called critical": sign(header={"b64": True}),
        "header is a list": f"{_part(['alg', 'b64'])}.{payload}.{signature}",
        "header is nested too deep": f"{_part(b'[' * 3000)}.e30.AAAA",
        "payload is a list": f"{header}.{_part([])}.{signature}",
        "payload is not UTF-8": f"{header}.{_part(bytes([255]))}.{signature}",
        "another issuer": sign(iss="https://other.example.org/"),
        "no issuer": sign(iss=None),
        "an audience that only begins alike": sign(aud=[provider.AUDIENCE + "x"]),
        "no audience": sign(aud=None),
        "not valid yet": sign(nbf=soon),
        "issued in the future": sign(iat=soon),
        "no expiry": sign(exp=None),
        "an endless expiry": sign(exp=float("inf")),
        "no client": sign(client_id=None, sub=None),
        "client is too long": sign(client_id="c" * 256),
        "client is half a character": sign(client_id="\ud800"),
        "encrypted": _nested(),
        "three dots": "a.b.c.d",
    }


def test_a_bad_token_is_401_invalid_token(auth):
    for name, token in bad_tokens().items():
        error = refused(auth, bearer(token))
        assert (error.code, error.headers) == (IssueCode.UNKNOWN, INVALID), name
    assert answered(auth, sign()) == 200


def test_an_expired_token_is_told_apart(auth, opaque, key_set, clock):
    expired = {"exp": int(clock.now) - 31}
    says(key_set, **good(**expired))
    for error in (refused(auth, bearer(sign(**expired))), refused(opaque, bearer("o"))):
        assert (error.code, error.headers) == (IssueCode.EXPIRED, INVALID)


def test_the_log_says_why_and_never_what(auth, caplog):
    token = sign(aud="https://other.example.org/", sub="Marie Canari")
    with caplog.at_level(logging.INFO, logger="app.auth"):
        refused(auth, bearer(token))
    (record,) = caplog.records
    assert record.data == {"reason": "InvalidClaimError aud"}
    assert token not in caplog.text
    assert "Canari" not in caplog.text


# Keys of the provider


def test_a_slow_body_and_silence_end_with_the_timeout(make, key_set, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/keys"
        key_set.add_passthru(url)
        auth = make(KEY_SET_URL=url, IDENTITY_TIMEOUT_SECONDS="0.1")
        assert answered(auth, sign()) == 503
    # Each read is in time, the whole is not: every look at the clock is 100 s later.
    slow = SimpleNamespace(monotonic=count(step=100).__next__)
    monkeypatch.setattr("app.jwks.time", slow)
    assert answered(make(), sign()) == 503


def test_one_request_fetches_and_others_use_the_keys_at_hand(auth, key_set, monotonic):
    through, started = threading.Event(), threading.Event()

    def respond(request):
        started.set()
        assert through.wait(60)
        return 200, {}, json.dumps(provider.key_set(rsa(), rsa("rsa-2")))

    assert answered(auth, sign()) == 200
    key_set.remove(responses.GET, provider.KEY_SET_URL)
    key_set.add_callback(responses.GET, provider.KEY_SET_URL, respond)
    monotonic.now += 300
    with ThreadPoolExecutor(1) as threads:
        fetching = threads.submit(answered, auth, sign(rsa("rsa-2")))
        assert started.wait(60)
        assert answered(auth, sign(jti="other")) == 200
        through.set()
    assert fetching.result() == 200
    assert calls(key_set) == 2


def test_keys_serve_for_a_while_after_the_provider_has_gone(auth, key_set, monotonic):
    assert answered(auth, sign()) == 200
    key_set.upsert(responses.GET, provider.KEY_SET_URL, status=503)
    monotonic.now += 300 + USABLE_SECONDS - 1
    assert answered(auth, sign(jti="in time")) == 200
    assert answered(auth, sign(rsa("thief"), header={"kid": "rsa-1"})) == 401
    monotonic.now += 1
    assert answered(auth, sign(jti="late")) == 503


def test_a_new_key_is_found_at_once_or_after_the_pause(auth, key_set, monotonic):
    assert answered(auth, sign()) == 200
    provider.publish(key_set, rsa(), rsa("rsa-2"))
    assert answered(auth, sign(rsa("rsa-2"))) == 200
    provider.publish(key_set, rsa(), rsa("rsa-3"))
    monotonic.now += 9
    assert answered(auth, sign(rsa("rsa-3"))) == 401
    monotonic.now += 1
    assert answered(auth, sign(rsa("rsa-3"))) == 200
    assert calls(key_set) == 3
    # After a fetch for freshness alone there is no pause.
    monotonic.now += 300
    assert answered(auth, sign(rsa("rsa-3"), jti="other")) == 200
    provider.publish(key_set, rsa("rsa-2"))
    assert answered(auth, sign(rsa("rsa-2"), jti="other")) == 200
    assert calls(key_set) == 5


def test_a_flood_of_forged_names_costs_one_fetch_a_pause(auth, key_set, monotonic):
    assert answered(auth, sign()) == 200
    for number in range(80):
        monotonic.now += 1.25
        assert answered(auth, sign(header={"kid": f"forged-{number}"})) == 401
    assert calls(key_set) == 1 + 10


BAD_ANSWERS = {
    "no connection": {"body": requests.ConnectionError("auth.example.org")},
    "cut": {"body": IncompleteRead(1, 98)},
    "redirect": {"status": 302, "headers": {"Location": "https://evil.example.org/"}},
    "page": {"body": "<html>"},
    "keys is a text": {"json": {"keys": "abc"}},
    "nothing usable": {"json": {"keys": [7, {"kty": "RSA"}, {"kty": "new"}]}},
    "too long": {"json": provider.key_set(rsa()) | {"x": "x" * MAX_RESPONSE_BYTES}},
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_leaves_what_we_have(auth, key_set, monotonic, caplog, name):
    assert answered(auth, sign()) == 200
    key_set.upsert(responses.GET, provider.KEY_SET_URL, **BAD_ANSWERS[name])
    monotonic.now += 301
    assert answered(auth, sign(jti="other")) == 200
    monotonic.now += 10
    with pytest.raises(UnavailableError) as caught:
        auth.authenticate(bearer(sign(rsa("rsa-2"))))
    assert caught.value.headers == (("Retry-After", "10"),)
    assert {call.request.url for call in key_set.calls} == {provider.KEY_SET_URL}
    assert not any("example.org" in str(vars(line)["data"]) for line in caplog.records)


PUBLIC = rsa().as_dict(private=False)
UNUSABLE = {
    "for encryption": {**PUBLIC, "use": "enc"},
    "for other operations": {**PUBLIC, "key_ops": ["encrypt"]},
    "symmetric": {"kty": "oct", "k": "c2VjcmV0", "kid": "rsa-1"},
    "kind is a list": {"kty": ["RSA"]},
    "without its number": {"kty": "RSA", "e": "AQAB"},
    "with a broken number": {"kty": "RSA", "n": "=", "e": "AQAB"},
    "number is not text": {"kty": "RSA", "n": 7, "e": "AQAB"},
    "too short": {"kty": "RSA", "n": _part(b"\xff" * 128), "e": "AQAB"},
    "on a curve not known": {"kty": "EC", "crv": "P-0", "x": "AA", "y": "AA"},
    "off its curve": {**ec().as_dict(private=False), "y": "AA"},
    "for key agreement": okp("x", "X25519").as_dict(private=False),
    "nothing": None,
}


def test_a_key_that_cannot_serve_is_passed_over(make, key_set):
    good = ec().as_dict(private=False)
    token = sign(ec(), "ES256")
    for name, unusable in UNUSABLE.items():
        for published, status in (([unusable, good], 200), ([unusable], 503)):
            keys = {"keys": published}
            key_set.upsert(responses.GET, provider.KEY_SET_URL, json=keys)
            assert answered(make(), token) == status, name


# Introspection


def test_the_provider_is_asked_as_rfc_7662_says(opaque, key_set):
    says(key_set, **good())
    client = opaque.authenticate(bearer(OPAQUE))
    assert client.id == "client-1"
    assert "ENCOUNTER_SEARCH" in client.scopes
    (call,) = key_set.calls
    assert parse_qs(call.request.body) == {
        "token": [OPAQUE],
        "token_type_hint": ["access_token"],
    }
    assert call.request.headers["Authorization"] == "Basic ZW5jb3VudGVyczpodXNo"
    assert call.request.headers["Accept"] == "application/json"


def test_what_the_provider_does_not_say_is_not_asked_for(opaque, key_set):
    says(key_set, active=True, client_id="client-1", iss=None, aud=None, exp=None)
    assert opaque.authenticate(bearer(OPAQUE)) == Client("client-1", frozenset())


def test_what_can_be_no_token_is_not_asked_about(opaque, key_set):
    for text in ("one,Bearer two", "é", "x" * 8193):
        refused(opaque, bearer(text))
    assert not key_set.calls


def test_a_bad_answer_is_401(opaque, key_set):
    for answer in (
        {"active": False},
        good(active="true"),
        good(aud="https://other.example.org/"),
        good(iss="https://other.example.org/"),
        good(nbf=int(time.time()) + 86400),
        {"active": True, "scope": "PATIENT_GAM_SEARCH"},
    ):
        says(key_set, **answer)
        assert refused(opaque, bearer(OPAQUE)).code == IssueCode.UNKNOWN, answer
    # A refusal is not kept.
    says(key_set, **good())
    assert answered(opaque, OPAQUE) == 200


def test_an_answer_is_kept_for_a_short_while_and_not_past_its_expiry(
    opaque, key_set, clock
):
    says(key_set, **good(exp=int(clock.now) + 3600))
    assert answered(opaque, OPAQUE) == 200
    key_set.upsert(responses.POST, INTROSPECTION_URL, status=503)
    clock.now += CACHE_SECONDS - 1
    assert answered(opaque, OPAQUE) == 200
    clock.now += 1
    assert answered(opaque, OPAQUE) == 503, "an outage is never 401"
    says(key_set, active=False)
    assert answered(opaque, OPAQUE) == 401
    says(key_set, **good(exp=int(clock.now) + 5))
    assert answered(opaque, "short-lived") == 200
    calls_before = len(key_set.calls)
    clock.now += 6
    assert answered(opaque, "short-lived") == 200
    assert len(key_set.calls) == calls_before + 1


@pytest.mark.parametrize("reachable", [True, False])
def test_with_a_key_set_signed_tokens_are_checked_here_and_others_there(
    introspecting, key_set, reachable
):
    auth = introspecting()
    if not reachable:
        key_set.upsert(responses.GET, provider.KEY_SET_URL, status=500)
    says(key_set, **good(client_id="opaque-client"))
    assert answered(auth, sign()) == (200 if reachable else 503)
    assert auth.authenticate(bearer(OPAQUE)).id == "opaque-client"
    assert auth.recall(bearer(OPAQUE)).id == "opaque-client"
    assert calls(key_set, INTROSPECTION_URL) == 1


def test_without_a_key_set_the_provider_is_asked_about_signed_tokens_too(
    opaque, key_set
):
    says(key_set, **good())
    assert answered(opaque, sign(rsa("thief"))) == 200
    assert [call.request.url for call in key_set.calls] == [INTROSPECTION_URL]


def test_the_memory_of_answers_is_bounded(opaque, key_set, monkeypatch):
    monkeypatch.setattr("app.auth.MAX_CACHED_TOKENS", 10)
    says(key_set, **good())
    for number in range(11):
        opaque.authenticate(bearer(f"opaque-{number}"))
    assert opaque.recall(bearer("opaque-0")) is None
    assert opaque.recall(bearer("opaque-10"))


def test_introspections_of_a_hanging_provider_leave_threads_for_other_tokens(
    introspecting, key_set, monkeypatch
):
    monkeypatch.setattr("app.auth.WAIT_SECONDS", 0.01)
    started, goes_on = threading.Semaphore(0), threading.Event()

    def respond(request):
        started.release()
        assert goes_on.wait(60)
        return 503, {}, ""

    key_set.add_callback(responses.POST, INTROSPECTION_URL, callback=respond)
    auth = introspecting(THREADS="4")
    with ThreadPoolExecutor(2) as threads:
        hanging = [threads.submit(answered, auth, f"hanging-{n}") for n in range(2)]
        assert all(started.acquire(timeout=60) for _ in hanging)
        assert answered(auth, "another") == 503
        assert answered(auth, sign()) == 200
        goes_on.set()
    assert {each.result() for each in hanging} == {503}


# Addresses from the metadata of the issuer

OPENID = f"{provider.ISSUER}.well-known/openid-configuration"
METADATA = {
    "issuer": provider.ISSUER,
    "jwks_uri": provider.KEY_SET_URL,
    "introspection_endpoint": INTROSPECTION_URL,
}


@pytest.mark.parametrize("path", ["", "realms/a/"])
def test_the_metadata_of_the_issuer_names_both_addresses(make, key_set, path):
    issuer = provider.ISSUER + path
    address = f"{issuer}.well-known/openid-configuration"
    key_set.get(address, json={**METADATA, "issuer": issuer})
    says(key_set, **good(iss=issuer))
    account = {"INTROSPECTION_CLIENT_ID": "us", "INTROSPECTION_CLIENT_SECRET": "hush"}
    auth = make(KEY_SET_URL=None, ISSUER=issuer, **account)
    for token in (sign(iss=issuer), sign(iss=issuer, client_id="client-2"), OPAQUE):
        assert answered(auth, token) == 200
    assert calls(key_set, address) == 1
    assert calls(key_set, INTROSPECTION_URL) == 1


WRONG = {
    "status": {"status": 500},
    "another issuer": {"json": {**METADATA, "issuer": "https://auth.example.org"}},
    "no address": {"json": {"issuer": provider.ISSUER}},
    "plain HTTP": {"json": {**METADATA, "jwks_uri": "http://auth.example.org/keys"}},
}


@pytest.mark.parametrize("name", WRONG)
def test_without_metadata_no_token_is_checked_until_it_is_there(
    make, key_set, monotonic, name
):
    key_set.get(OPENID, **WRONG[name])
    retry = {"KEY_SET_RETRY_SECONDS": "10", "KEY_SET_SECONDS": "10"}
    auth = make(KEY_SET_URL=None, **retry)
    assert [answered(auth, sign()) for _ in range(5)] == [503] * 5
    assert calls(key_set, OPENID) == 1
    key_set.upsert(responses.GET, OPENID, json=METADATA)
    monotonic.now += 10
    assert answered(auth, sign()) == 200
    # What was read goes on being used.
    key_set.upsert(responses.GET, OPENID, status=500)
    monotonic.now += 10
    provider.publish(key_set, rsa("new"))
    assert answered(auth, sign(rsa("new"))) == 200
