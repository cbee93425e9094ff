"""Tokens: who is let in, who is not, and in which words (spec 5, decisions 21 and 22)."""

import base64
import hmac
import json
import logging
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

import pytest
import requests
import responses
from joserfc import jwe

from app.auth import CACHE_SECONDS, Authenticator, Client
from app.errors import (
    IssueCode,
    UnauthenticatedError,
    UnavailableError,
)
from app.jwks import metadata_urls
from tests.app import provider
from tests.app.provider import INTROSPECTION_URL, Clock, bearer, ec, okp, rsa, sign

TECHNICAL = frozenset(
    {
        "ORGANIZATION_READ",
        "PATIENT_READ",
        "PATIENT_SEARCH",
        "ENCOUNTER_READ",
        "ENCOUNTER_SEARCH",
    }
)
INVALID = (("WWW-Authenticate", 'Bearer realm="encounters", error="invalid_token"'),)


def fetches(key_set):
    return sum(call.request.url == provider.KEY_SET_URL for call in key_set.calls)


def refused(auth, authorization):
    with pytest.raises(UnauthenticatedError) as caught:
        auth.authenticate(authorization)
    return caught.value


@pytest.fixture
def mapping_file(tmp_path):
    path = tmp_path / "mapping.yaml"
    path.write_text("mapping: 1\n")
    return path


@pytest.fixture
def key_set():
    """The provider's answers; it publishes one key of each kind."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        provider.publish(mock, rsa(), ec(), okp())
        yield mock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def monotonic():
    return Clock()


@pytest.fixture
def auth(mapping_file, key_set, clock, monotonic):
    settings = provider.settings(mapping_file)
    return Authenticator(settings, clock=clock, monotonic=monotonic)


def test_a_good_token_is_its_client_with_the_scopes_it_stands_for(auth):
    client = auth.authenticate(bearer(sign()))
    assert client == Client("client-1", TECHNICAL | {"PATIENT_GAM_SEARCH"})


SIGNERS = [
    *[(rsa, (), alg) for alg in ("RS256", "RS384", "RS512")],
    *[(rsa, (), alg) for alg in ("PS256", "PS384", "PS512")],
    (ec, ("ec-1", "P-256"), "ES256"),
    (ec, ("ec-2", "P-384"), "ES384"),
    (ec, ("ec-3", "P-521"), "ES512"),
    (okp, (), "EdDSA"),
    (okp, (), "Ed25519"),
]


@pytest.mark.parametrize(("make", "arguments", "alg"), SIGNERS)
def test_each_asymmetric_algorithm_is_believed(auth, key_set, make, arguments, alg):
    signer = make(*arguments)
    provider.publish(key_set, signer)
    assert auth.authenticate(bearer(sign(signer, alg))).id == "client-1"


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "Bearer  "])
def test_the_scheme_has_no_case(auth, scheme):
    authorization = scheme + sign()
    client = auth.authenticate(authorization)
    assert client.id == "client-1"
    assert auth.recall(authorization) == client


@pytest.mark.parametrize("scheme", ["Basic ", "Token ", "Bearers ", " ", ""])
def test_a_token_that_is_remembered_is_let_in_as_a_bearer_token_alone(auth, scheme):
    token = sign()
    auth.authenticate(bearer(token))
    assert auth.recall(scheme + token) is None
    assert refused(auth, scheme + token).headers == ()


@pytest.mark.parametrize("aud", [["other", provider.AUDIENCE], [provider.AUDIENCE]])
def test_the_audience_may_be_one_of_a_list(auth, aud):
    assert auth.authenticate(bearer(sign(aud=aud)))


@pytest.mark.parametrize(
    "said",
    [
        {"exp": -29},
        {"nbf": 29},
        {"iat": 29},
        {"nbf": None, "iat": None},
        {"exp": 0.5},
    ],
)
def test_the_leeway_is_given(auth, clock, said):
    now = int(clock.now)
    times = {name: None if d is None else now + d for name, d in said.items()}
    assert auth.authenticate(bearer(sign(**times)))


def test_header_members_that_nobody_knows_are_ignored(auth):
    header = {"typ": "at+jwt", "x5t": "abc", "nonce": "xyz", "x5c": ["c" * 2000]}
    assert auth.authenticate(bearer(sign(header=header)))


@pytest.mark.parametrize(
    ("said", "scopes"),
    [
        ({"scope": "A B"}, {"A", "B"}),
        ({"scope": ["A", "B"]}, {"A", "B"}),
        ({"scp": "A B"}, {"A", "B"}),
        ({"scp": ["A"]}, {"A"}),
        ({"permissions": ["A"]}, {"A"}),
        ({"scope": "openid", "permissions": ["A"]}, {"openid", "A"}),
        ({"permissions": ["PATIENT_GAM_SEARCH"]}, TECHNICAL | {"PATIENT_GAM_SEARCH"}),
        ({"scope": ["A B"]}, {"A B"}),
        ({"scope": {"A": True}}, set()),
        ({"scope": [1, None, "A"]}, {"A"}),
        ({"scope": 7}, set()),
        ({}, set()),
    ],
)
def test_scopes_are_read_from_three_claims(auth, said, scopes):
    token = sign(**{"scope": None, **said})
    assert auth.authenticate(bearer(token)).scopes == scopes


def test_a_verified_token_is_not_checked_again_until_it_expires(auth, key_set, clock):
    token = sign(exp=int(clock.now) + 100)
    auth.authenticate(bearer(token))
    key_set.remove(responses.GET, provider.KEY_SET_URL)
    clock.now += 99
    assert auth.authenticate(bearer(token)).id == "client-1"
    clock.now += 32
    assert refused(auth, bearer(token)).code == IssueCode.EXPIRED


def test_a_token_that_is_remembered_is_not_a_licence_for_another(auth):
    token = sign()
    auth.authenticate(bearer(token))
    forged = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    assert refused(auth, bearer(forged)).code == IssueCode.UNKNOWN


def test_a_refusal_is_not_remembered(auth, clock):
    token = sign(nbf=int(clock.now) + 100)
    refused(auth, bearer(token))
    clock.now += 100
    assert auth.authenticate(bearer(token)).id == "client-1"


def test_a_key_that_is_withdrawn_takes_its_tokens_along(auth, key_set, monotonic):
    token = sign(rsa())
    auth.authenticate(bearer(token))
    provider.publish(key_set, ec())
    monotonic.now += 299
    assert auth.authenticate(bearer(token)).id == "client-1"
    monotonic.now += 1
    assert refused(auth, bearer(token)).code == IssueCode.UNKNOWN


def test_threads_share_one_authenticator(auth, key_set):
    tokens = [sign(jti=str(number)) for number in range(8)]
    found = []

    def ask(token):
        for _ in range(20):
            found.append(auth.authenticate(bearer(token)).id)

    threads = [threading.Thread(target=ask, args=(token,)) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["client-1"] * 160
    assert fetches(key_set) == 1


def answered(auth, token):
    """Return the status that a request with this token gets as far as identity goes."""
    try:
        auth.authenticate(bearer(token))
    except UnauthenticatedError:
        return 401
    except UnavailableError:
        return 503
    return 200


@pytest.mark.parametrize(
    "answer", [{"status": 503}, {"body": requests.ConnectionError()}], ids=str
)
def test_ten_minutes_of_outage_make_no_wrong_401(
    auth, key_set, clock, monotonic, answer
):
    begun = int(clock.now)
    held = sign(exp=begun + 3600)
    assert answered(auth, held) == 200
    key_set.upsert(responses.GET, provider.KEY_SET_URL, **answer)
    seen = {"held": Counter(), "renewed": Counter(), "new key": Counter()}
    for second in range(600):
        clock.now += 1
        monotonic.now += 1
        renewed = {"jti": str(second), "exp": int(clock.now) + 600}
        seen["held"][answered(auth, held)] += 1
        seen["renewed"][answered(auth, sign(okp(), "EdDSA", **renewed))] += 1
        seen["new key"][answered(auth, sign(okp("ed-2"), "EdDSA", **renewed))] += 1
        assert answered(auth, sign(okp("thief"), "EdDSA", {"kid": "ed-1"})) == 401
    assert seen == {"held": {200: 600}, "renewed": {200: 600}, "new key": {503: 600}}
    assert fetches(key_set) <= 1 + 61
    provider.publish(key_set, rsa(), okp("ed-2"))
    monotonic.now += 10
    assert answered(auth, sign(okp("ed-2"), "EdDSA")) == 200


def test_only_a_digest_of_a_token_is_remembered(auth):
    token = sign()
    auth.authenticate(bearer(token))
    (digest,) = auth._cache._entries
    assert len(digest) == 32
    assert token.encode() not in digest
    assert auth.recall(bearer(token)) == auth.authenticate(bearer(token))


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Basic x", "Bearer é.é.é", "Bearer a b", "x" * 9000]
)
def test_what_was_never_verified_is_not_recalled(auth, key_set, header):
    auth.authenticate(bearer(sign()))
    assert auth.recall(header) is None
    assert auth.recall(bearer(sign(jti="other"))) is None
    assert fetches(key_set) == 1


def test_without_any_key_set_it_is_503_and_never_401(auth, key_set, monotonic):
    key_set.upsert(responses.GET, provider.KEY_SET_URL, body=requests.ConnectionError())
    for _ in range(3):
        with pytest.raises(UnavailableError) as caught:
            auth.authenticate(bearer(sign()))
        assert caught.value.headers == (("Retry-After", "10"),)
    assert fetches(key_set) == 1
    monotonic.now += 10
    provider.publish(key_set, rsa())
    assert auth.authenticate(bearer(sign())).id == "client-1"


def test_what_is_bad_whatever_the_keys_is_401_even_then(auth, key_set):
    key_set.upsert(responses.GET, provider.KEY_SET_URL, body=requests.ConnectionError())
    unsigned = "eyJhbGciOiJub25lIn0.e30."
    assert refused(auth, bearer("garbage")).headers == INVALID
    assert refused(auth, bearer(unsigned)).headers == INVALID
    assert refused(auth, None).headers == ()


def test_a_new_key_during_an_outage_is_503_and_afterwards_good(
    auth, key_set, monotonic
):
    auth.authenticate(bearer(sign()))
    key_set.upsert(responses.GET, provider.KEY_SET_URL, status=500)
    monotonic.now += 20
    with pytest.raises(UnavailableError):
        auth.authenticate(bearer(sign(rsa("rsa-2"))))
    provider.publish(key_set, rsa("rsa-2"))
    monotonic.now += 10
    assert auth.authenticate(bearer(sign(rsa("rsa-2")))).id == "client-1"


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


def test_an_expired_token_is_told_apart(auth, clock):
    error = refused(auth, bearer(sign(exp=int(clock.now) - 31)))
    assert error.text == "The access token has expired."
    assert (error.code, error.headers) == (IssueCode.EXPIRED, INVALID)


def test_the_log_says_why_and_never_what(auth, caplog):
    token = sign(aud="https://other.example.org/", sub="Marie Canari")
    with caplog.at_level(logging.INFO, logger="app.auth"):
        refused(auth, bearer(token))
    (record,) = caplog.records
    assert record.data == {"reason": "InvalidClaimError"}
    assert token not in caplog.text
    assert "Canari" not in caplog.text


OPAQUE = "opaque-token-1"


@pytest.fixture
def introspecting(mapping_file, key_set, clock):
    """Return a function that makes an authenticator which may introspect."""

    def make(**changed):
        settings = provider.settings(
            mapping_file,
            INTROSPECTION_URL=INTROSPECTION_URL,
            INTROSPECTION_CLIENT_ID="encounters",
            INTROSPECTION_CLIENT_SECRET="hush",
            **changed,
        )
        return Authenticator(settings, clock=clock)

    return make


@pytest.fixture
def opaque(introspecting):
    return introspecting(KEY_SET_URL=None)


def says(key_set, **answer):
    key_set.upsert(responses.POST, INTROSPECTION_URL, json=answer)


def good(**changed):
    return {"active": True, **provider.claims(**changed)}


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
    client = opaque.authenticate(bearer(OPAQUE))
    assert (client.id, client.scopes) == ("client-1", frozenset())


@pytest.mark.parametrize("text", ["one,Bearer two", "one two", "é", "x" * 8193])
def test_what_can_be_no_token_is_not_asked_about(opaque, key_set, text):
    says(key_set, **good())
    with pytest.raises(UnauthenticatedError):
        opaque.authenticate(bearer(text))
    assert not key_set.calls


# Said when it is asked for: a run may take longer than what is said is good.
BAD_RESPONSES = {
    "not active": lambda: {"active": False},
    "nothing said": dict,
    "active in words": lambda: good(active="true"),
    "active as a number": lambda: good(active=1),
    "another audience": lambda: good(aud="https://other.example.org/"),
    "another issuer": lambda: good(iss="https://other.example.org/"),
    "not valid yet": lambda: good(nbf=int(time.time()) + 86400),
    "no client": lambda: {"active": True, "scope": "PATIENT_GAM_SEARCH"},
}


@pytest.mark.parametrize("name", BAD_RESPONSES)
def test_a_bad_answer_is_401(opaque, key_set, name):
    says(key_set, **BAD_RESPONSES[name]())
    with pytest.raises(UnauthenticatedError) as caught:
        opaque.authenticate(bearer(OPAQUE))
    assert caught.value.code == IssueCode.UNKNOWN


def test_an_expired_one_is_told_apart(opaque, key_set, clock):
    says(key_set, **good(exp=int(clock.now) - 31))
    with pytest.raises(UnauthenticatedError) as caught:
        opaque.authenticate(bearer(OPAQUE))
    assert caught.value.code == IssueCode.EXPIRED


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"status": 401}, "status 401"),
        ({"status": 500}, "status 500"),
        ({"body": "<html>"}, "response is not JSON"),
        ({"body": requests.Timeout()}, "Timeout"),
        ({"body": requests.ConnectionError("auth.example.org")}, "ConnectionError"),
    ],
)
def test_a_provider_that_cannot_be_asked_is_503(
    opaque, key_set, answer, reason, caplog
):
    key_set.upsert(responses.POST, INTROSPECTION_URL, **answer)
    with pytest.raises(UnavailableError) as caught:
        opaque.authenticate(bearer(OPAQUE))
    assert dict(caught.value.headers)["Retry-After"]
    (record,) = caplog.records
    assert (record.getMessage(), record.data) == (
        "token not introspected",
        {"reason": reason},
    )


def test_an_answer_is_kept_for_a_short_while(opaque, key_set, clock):
    says(key_set, **good())
    opaque.authenticate(bearer(OPAQUE))
    says(key_set, active=False)
    clock.now += CACHE_SECONDS - 1
    assert opaque.authenticate(bearer(OPAQUE)).id == "client-1"
    clock.now += 1
    with pytest.raises(UnauthenticatedError):
        opaque.authenticate(bearer(OPAQUE))
    assert len(key_set.calls) == 2


def test_an_answer_is_not_kept_past_its_expiry(opaque, key_set, clock):
    says(key_set, **good(exp=int(clock.now) + 5))
    opaque.authenticate(bearer(OPAQUE))
    clock.now += 6
    opaque.authenticate(bearer(OPAQUE))
    assert len(key_set.calls) == 2


def test_a_refusal_is_not_kept(opaque, key_set):
    says(key_set, active=False)
    with pytest.raises(UnauthenticatedError):
        opaque.authenticate(bearer(OPAQUE))
    says(key_set, **good())
    assert opaque.authenticate(bearer(OPAQUE)).id == "client-1"


def test_with_a_key_set_signed_tokens_are_checked_here_and_others_there(
    introspecting, key_set
):
    opaque = introspecting()
    provider.publish(key_set, rsa())
    says(key_set, **good(client_id="opaque-client"))
    assert opaque.authenticate(bearer(sign())).id == "client-1"
    assert opaque.authenticate(bearer(OPAQUE)).id == "opaque-client"
    urls = [call.request.url for call in key_set.calls]
    assert urls == [provider.KEY_SET_URL, INTROSPECTION_URL]


def test_an_opaque_token_needs_no_key_set(introspecting, key_set):
    opaque = introspecting()
    key_set.upsert(responses.GET, provider.KEY_SET_URL, body=requests.ConnectionError())
    says(key_set, **good())
    assert opaque.authenticate(bearer(OPAQUE)).id == "client-1"
    assert opaque.recall(bearer(OPAQUE)).id == "client-1"
    assert INTROSPECTION_URL in [call.request.url for call in key_set.calls]


def test_without_a_key_set_the_provider_is_asked_about_signed_tokens_too(
    opaque, key_set
):
    says(key_set, **good())
    assert opaque.authenticate(bearer(sign(rsa("thief")))).id == "client-1"
    assert [call.request.url for call in key_set.calls] == [INTROSPECTION_URL]


def test_an_outage_is_503_once_what_was_kept_has_run_out_and_never_401(
    opaque, key_set, clock
):
    says(key_set, **good(exp=int(clock.now) + 3600))
    opaque.authenticate(bearer(OPAQUE))
    key_set.upsert(responses.POST, INTROSPECTION_URL, status=503)
    for second in range(600):
        if second < CACHE_SECONDS:
            assert opaque.authenticate(bearer(OPAQUE)).id == "client-1"
        else:
            with pytest.raises(UnavailableError):
                opaque.authenticate(bearer(OPAQUE))
        clock.now += 1
    says(key_set, **good(exp=int(clock.now) + 3600))
    assert opaque.authenticate(bearer(OPAQUE)).id == "client-1"


def test_the_memory_of_answers_is_bounded(opaque, key_set, monkeypatch):
    monkeypatch.setattr("app.auth.MAX_CACHED_TOKENS", 10)
    says(key_set, **good())
    for number in range(11):
        opaque.authenticate(bearer(f"opaque-{number}"))
    assert len(opaque._cache._entries) == 10
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
        hanging = [
            threads.submit(auth.authenticate, bearer(f"hanging-{n}")) for n in range(2)
        ]
        assert all(started.acquire(timeout=60) for _ in hanging)
        with pytest.raises(UnavailableError):
            auth.authenticate(bearer("another"))
        assert auth.authenticate(bearer(sign())).id == "client-1"
        goes_on.set()
    assert {type(each.exception()) for each in hanging} == {UnavailableError}


def test_one_thread_is_enough_to_introspect(introspecting, key_set):
    says(key_set, **good())
    auth = introspecting(THREADS="1", KEY_SET_URL=None)
    assert auth.authenticate(bearer(OPAQUE)).id == "client-1"


# Addresses from the metadata of the issuer

OPENID = f"{provider.ISSUER}.well-known/openid-configuration"
OAUTH = f"{provider.ISSUER}.well-known/oauth-authorization-server"
METADATA = {
    "issuer": provider.ISSUER,
    "jwks_uri": provider.KEY_SET_URL,
    "introspection_endpoint": INTROSPECTION_URL,
}


@pytest.fixture
def discovering(mapping_file, key_set, clock, monotonic):
    """Return a function that makes an authenticator without the address of a key set."""

    def make(**changed):
        settings = provider.settings(mapping_file, KEY_SET_URL=None, **changed)
        return Authenticator(settings, clock=clock, monotonic=monotonic)

    return make


def calls(mock, url):
    return sum(call.request.url == url for call in mock.calls)


@pytest.mark.parametrize("url", [OPENID, OAUTH])
def test_the_metadata_of_the_issuer_names_the_key_set(discovering, key_set, url):
    key_set.get(OPENID, status=404)
    key_set.upsert(responses.GET, url, json=METADATA)
    auth = discovering()
    assert auth.authenticate(bearer(sign())).id == "client-1"
    assert auth.authenticate(bearer(sign(client_id="client-2"))).id == "client-2"
    assert calls(key_set, url) == 1


def test_the_metadata_names_the_introspection_where_there_is_an_account(
    discovering, key_set
):
    key_set.get(OPENID, json=METADATA)
    key_set.post(INTROSPECTION_URL, json={"active": True, **provider.claims()})
    auth = discovering(INTROSPECTION_CLIENT_ID="us", INTROSPECTION_CLIENT_SECRET="hush")
    assert auth.authenticate(bearer("opaque")).id == "client-1"
    assert auth.authenticate(bearer(sign(client_id="client-2"))).id == "client-2"
    assert calls(key_set, OPENID) == 1


def test_settings_win_and_nothing_is_discovered(auth, key_set):
    auth.authenticate(bearer(sign()))
    assert {call.request.url for call in key_set.calls} == {provider.KEY_SET_URL}


WRONG = {
    "status": {"status": 500},
    "no JSON": {"body": "<html>"},
    "another issuer": {"json": {**METADATA, "issuer": "https://auth.example.org"}},
    "no issuer": {"json": {"jwks_uri": provider.KEY_SET_URL}},
    "no address": {"json": {"issuer": provider.ISSUER}},
    "a number": {"json": {**METADATA, "jwks_uri": 1}},
    "plain HTTP": {"json": {**METADATA, "jwks_uri": "http://auth.example.org/keys"}},
    "a file": {"json": {**METADATA, "jwks_uri": "file:///etc/passwd"}},
    "redirect": {"status": 302, "headers": {"Location": "https://evil.example.org/"}},
}


@pytest.mark.parametrize("name", WRONG)
def test_without_metadata_no_token_is_checked_until_it_is_there(
    discovering, key_set, monotonic, name
):
    key_set.get(OPENID, **WRONG[name])
    key_set.get(OAUTH, status=404)
    auth = discovering(KEY_SET_RETRY_SECONDS="10", KEY_SET_SECONDS="10")
    for _ in range(5):
        with pytest.raises(UnavailableError):
            auth.authenticate(bearer(sign()))
    assert calls(key_set, OPENID) == 1
    key_set.upsert(responses.GET, OPENID, json=METADATA)
    monotonic.now += 10
    assert auth.authenticate(bearer(sign())).id == "client-1"
    # What was read goes on being used.
    key_set.upsert(responses.GET, OPENID, status=500)
    monotonic.now += 10
    provider.publish(key_set, rsa("new"))
    assert auth.authenticate(bearer(sign(rsa("new")))).id == "client-1"


def test_an_issuer_with_a_path_has_its_metadata_at_two_places():
    assert metadata_urls("https://auth.example.org/realms/a") == (
        "https://auth.example.org/realms/a/.well-known/openid-configuration",
        "https://auth.example.org/.well-known/oauth-authorization-server/realms/a",
    )
