"""Tokens that are refused, whatever is wrong with them (spec 5, decisions 21 and 22)."""

import base64
import contextlib
import hmac
import json
import logging
import time

import pytest
import responses
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe

from app.auth import Authenticator
from app.errors import IssueCode, UnauthenticatedError
from tests.app import provider
from tests.app.provider import bearer, ec, okp, rsa, sign

INVALID = (("WWW-Authenticate", 'Bearer realm="encounters", error="invalid_token"'),)


def refused(auth, authorization):
    with pytest.raises(UnauthenticatedError) as caught:
        auth.authenticate(authorization)
    return caught.value


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic dXM6aHVzaA==", "Negotiate x y", "token"],
)
def test_without_a_bearer_token_there_is_no_error_attribute(auth, header):
    error = refused(auth, header)
    assert (error.code, error.headers) == (None, ())
    assert error.location == "http.Authorization"


def _part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _unsigned(alg="none"):
    return f"{_part({'alg': alg, 'kid': 'rsa-1'})}.{_part(provider.claims())}."


def _public_key_as_secret(secret):
    # By hand: the library refuses to sign so.
    signed = f"{_part({'alg': 'HS256', 'kid': 'rsa-1'})}.{_part(provider.claims())}"
    digest = hmac.digest(secret, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _nested():
    recipient = rsa()
    header = {"alg": "RSA-OAEP", "enc": "A256GCM", "cty": "JWT", "kid": "rsa-1"}
    return jwe.encrypt_compact(header, sign().encode(), recipient)


def _payload(raw):
    header, _, signature = sign().split(".")
    part = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return f"{header}.{part}.{signature}"


def _header(value):
    _, payload, signature = sign().split(".")
    return f"{_part(value)}.{payload}.{signature}"


def _now(seconds):
    return int(time.time()) + seconds


BAD_TOKENS = {
    "alg none": _unsigned,
    "alg none, with a signature": lambda: _header({"alg": "none", "kid": "rsa-1"}),
    "alg nOnE": lambda: _unsigned("nOnE"),
    "HS256 with the public key": lambda: _public_key_as_secret(
        rsa().as_pem(private=False)
    ),
    "HS256 with the public number": lambda: _public_key_as_secret(
        rsa().as_dict(private=False)["n"].encode()
    ),
    "HS256 with a list for alg": lambda: _header({"alg": ["HS256"], "kid": "rsa-1"}),
    "ES256K": lambda: sign(ec("k1", "secp256k1"), "ES256K"),
    "Ed448": lambda: sign(okp("ed-448", "Ed448"), "EdDSA"),
    "signed by another key of that name": lambda: sign(
        rsa("thief"), header={"kid": "rsa-1"}
    ),
    "a key that nobody has": lambda: sign(rsa("thief")),
    "the algorithm of another key": lambda: sign(ec(), "ES256", {"kid": "rsa-1"}),
    "a header that lies about the algorithm": lambda: _header(
        {"alg": "PS256", "kid": "rsa-1"}
    ),
    "a changed payload": lambda: _payload(b"{}"),
    "kid is a number": lambda: sign(header={"kid": 7}),
    "kid is an object": lambda: _header({"alg": "RS256", "kid": {"a": 1}}),
    "critical extension": lambda: sign(header={"crit": ["exp"], "exp": 1}),
    "critical extension that is known": lambda: sign(
        header={"crit": ["b64"], "b64": True}
    ),
    "an extension that is not called critical": lambda: sign(header={"b64": True}),
    "crit is a number": lambda: sign(header={"crit": 7}),
    "crit is empty": lambda: sign(header={"crit": []}),
    "header is a list": lambda: _header(["alg", "b64"]),
    "header is a text": lambda: _header("alg"),
    "header is nested too deep": lambda: (
        base64.urlsafe_b64encode(b"[" * 3000).decode() + ".e30.AAAA"
    ),
    "payload is a list": lambda: _payload(b"[]"),
    "payload is not UTF-8": lambda: _payload(b"\xff"),
    "payload is nested too deep": lambda: _payload(b"[" * 3000),
    "another issuer": lambda: sign(iss="https://other.example.org/"),
    "issuer without its slash": lambda: sign(iss=provider.ISSUER.rstrip("/")),
    "issuers in a list": lambda: sign(iss=[provider.ISSUER]),
    "no issuer": lambda: sign(iss=None),
    "another audience": lambda: sign(aud="https://other.example.org/"),
    "other audiences": lambda: sign(aud=["a", "b"]),
    "an audience that only begins alike": lambda: sign(aud=provider.AUDIENCE + "x"),
    "no audience": lambda: sign(aud=None),
    "an empty list of audiences": lambda: sign(aud=[]),
    "not valid yet": lambda: sign(nbf=_now(60)),
    "issued in the future": lambda: sign(iat=_now(60)),
    "no expiry": lambda: sign(exp=None),
    "an expiry in words": lambda: sign(exp="2099-01-01"),
    "an expiry that is true": lambda: sign(exp=True),
    "an endless expiry": lambda: sign(exp=float("inf")),
    "no client": lambda: sign(client_id=None, sub=None),
    "client is a number": lambda: sign(client_id=7),
    "client is empty": lambda: sign(client_id=""),
    "client is too long": lambda: sign(client_id="c" * 256),
    "client is half a character": lambda: sign(client_id="\ud800"),
    "encrypted": _nested,
    "over 8 KiB": lambda: sign(padding="x" * 6200),
    "garbage": lambda: "garbage",
    "three dots": lambda: "a.b.c.d",
    "only dots": lambda: "..",
    "two tokens": lambda: f"{sign()},Bearer {sign()}",
    "a blank inside": lambda: sign().replace(".", ". ", 1),
    "accents": lambda: "é.é.é",
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_a_bad_token_is_401_invalid_token(auth, name):
    error = refused(auth, bearer(BAD_TOKENS[name]()))
    assert error.text == "The access token is not valid here."
    assert (error.code, error.headers) == (IssueCode.UNKNOWN, INVALID)
    assert auth.authenticate(bearer(sign())).id == "client-1"


def test_the_table_tests_what_it_says():
    assert len(BAD_TOKENS["over 8 KiB"]()) > 8192
    assert BAD_TOKENS["encrypted"]().count(".") == 4


def test_an_expired_token_is_told_apart(auth, clock):
    error = refused(auth, bearer(sign(exp=int(clock.now) - 31)))
    assert error.text == "The access token has expired."
    assert (error.code, error.headers) == (IssueCode.EXPIRED, INVALID)


@given(st.text(max_size=300))
def test_no_header_at_all_makes_anything_but_a_refusal(text):
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        provider.publish(mock, rsa())
        refused(AUTH, text)
        refused(AUTH, bearer(text))


@given(header=st.binary(max_size=80), payload=st.binary(max_size=80))
def test_no_signed_looking_token_makes_anything_but_a_refusal(header, payload):
    parts = [base64.urlsafe_b64encode(each).decode() for each in (header, payload)]
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        provider.publish(mock, rsa())
        refused(AUTH, bearer(f"{parts[0].rstrip('=')}.{parts[1].rstrip('=')}.AAAA"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    header=st.dictionaries(st.sampled_from(["alg", "kid", "crit", "b64", "typ"]), JSON),
    said=st.dictionaries(st.sampled_from(["iss", "aud", "exp", "sub", "scope"]), JSON),
)
def test_no_header_or_claim_makes_anything_but_an_answer(header, said):
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        provider.publish(mock, rsa())
        refused(AUTH, bearer(_header({"alg": "RS256", **header})))
        with contextlib.suppress(UnauthenticatedError):
            assert AUTH.authenticate(bearer(sign(**said))).id


@pytest.fixture(scope="module", autouse=True)
def _fuzzed(tmp_path_factory):
    # Hypothesis runs many examples in one call of a test: they share one authenticator.
    global AUTH
    path = tmp_path_factory.mktemp("fuzzed") / "mapping.yaml"
    path.write_text("mapping: 1\n")
    AUTH = Authenticator.from_settings(provider.settings(path))


AUTH: Authenticator


def test_the_log_says_why_and_never_what(auth, caplog):
    token = sign(aud="https://other.example.org/", sub="Marie Canari")
    with caplog.at_level(logging.INFO, logger="app.auth"):
        refused(auth, bearer(token))
    (record,) = caplog.records
    assert record.data == {"reason": "InvalidClaimError"}
    assert token not in caplog.text
    assert "Canari" not in caplog.text
