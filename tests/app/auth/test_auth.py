"""Tokens: who is let in, who is not, and in which words (spec 5, decisions 21 and 22)."""

import contextlib
import threading

import pytest
import requests
import responses

from app.auth import require
from app.errors import (
    InsufficientScopeError,
    IssueCode,
    UnauthenticatedError,
    UnavailableError,
)
from app.token_cache import MAX_CACHED_TOKENS
from app.tokens import Client
from tests.app import provider
from tests.app.provider import bearer, ec, okp, rsa, sign

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


# ---------------------------------------------------------------- who is let in


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


def test_a_renewed_token_is_the_same_client(auth):
    first = auth.authenticate(bearer(sign(jti="1", sub="session-1")))
    assert auth.authenticate(bearer(sign(jti="2", sub="session-2"))) == first


@pytest.mark.parametrize(
    ("said", "client"),
    [
        ({"client_id": "a", "azp": "b", "sub": "c"}, "a"),
        ({"client_id": None, "azp": "b", "sub": "c"}, "b"),
        ({"client_id": None, "azp": None, "sub": "c"}, "c"),
    ],
)
def test_the_client_is_client_id_else_azp_else_sub(auth, said, client):
    assert auth.authenticate(bearer(sign(**said))).id == client


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


# --------------------------------------------------------------------- scopes


def test_a_client_with_the_scope_may(auth):
    client = auth.authenticate(bearer(sign()))
    require(client, "ENCOUNTER_SEARCH")
    require(client, "ENCOUNTER_SEARCH PATIENT_READ")


@pytest.mark.parametrize(
    ("scopes", "needed"),
    [
        ((), "ENCOUNTER_READ"),
        (("ENCOUNTER_SEARCH",), "ENCOUNTER_READ"),
        (("encounter_read",), "ENCOUNTER_READ"),
        (("ENCOUNTER_READ",), "ENCOUNTER_READ PATIENT_READ"),
        (("ENCOUNTER_READ PATIENT_READ",), "ENCOUNTER_READ PATIENT_READ"),
    ],
)
def test_a_client_without_the_scope_may_not(scopes, needed):
    with pytest.raises(InsufficientScopeError) as caught:
        require(Client("client-1", frozenset(scopes)), needed)
    assert caught.value.text.startswith("Operation forbidden: insufficient scope")
    assert caught.value.headers == (
        (
            "WWW-Authenticate",
            f'Bearer realm="encounters", error="insufficient_scope", scope="{needed}"',
        ),
    )


# ------------------------------------------------------- what is remembered


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
    # This one asks for the refresh and does not wait: it may find the old keys still.
    with contextlib.suppress(UnauthenticatedError):
        auth.authenticate(bearer(token))
    provider.settle()
    assert refused(auth, bearer(token)).code == IssueCode.UNKNOWN


def test_the_memory_is_bounded(auth, key_set):
    signer = okp()
    for number in range(MAX_CACHED_TOKENS + 10):
        auth.authenticate(bearer(sign(signer, "EdDSA", jti=str(number))))
    cache = auth._tokens.cache
    assert len(cache._entries) == MAX_CACHED_TOKENS


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


# ------------------------------------------------------- the provider is away


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


def test_old_keys_serve_through_an_outage(auth, key_set, monotonic):
    auth.authenticate(bearer(sign(jti="before")))
    key_set.upsert(responses.GET, provider.KEY_SET_URL, status=500)
    for minute in range(10):
        monotonic.now += 60
        assert auth.authenticate(bearer(sign(jti=str(minute)))).id == "client-1"


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
