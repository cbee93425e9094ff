"""Floods and outages in numbers: how often the provider is asked, who is refused."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
import responses

from app.errors import UnauthenticatedError, UnavailableError
from tests.app import provider
from tests.app.provider import bearer, okp, rsa, sign


def answered(auth, token):
    """Return the status that a request with this token gets as far as identity goes."""
    try:
        auth.authenticate(bearer(token))
    except UnauthenticatedError:
        return 401
    except UnavailableError:
        return 503
    return 200


def fetches(key_set):
    return sum(call.request.url == provider.KEY_SET_URL for call in key_set.calls)


def forged(count):
    thief = okp("thief")
    return [sign(thief, "EdDSA", {"kid": f"forged-{n}"}) for n in range(count)]


def test_a_thousand_forged_tokens_at_once_make_one_fetch(auth, key_set):
    assert answered(auth, sign()) == 200
    with ThreadPoolExecutor(8) as pool:
        seen = Counter(pool.map(lambda token: answered(auth, token), forged(1000)))
    assert seen == {401: 1000}
    assert fetches(key_set) == 1 + 1


def test_a_thousand_forged_tokens_in_a_hundred_seconds_make_ten(
    auth, key_set, monotonic
):
    assert answered(auth, sign()) == 200
    for token in forged(1000):
        monotonic.now += 0.1
        assert answered(auth, token) == 401
    assert fetches(key_set) <= 1 + 10


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
    provider.settle()
    assert fetches(key_set) <= 1 + 61
    provider.publish(key_set, rsa(), okp("ed-2"))
    monotonic.now += 10
    assert answered(auth, sign(okp("ed-2"), "EdDSA")) == 200


def test_only_a_digest_of_a_token_is_remembered(auth):
    token = sign()
    auth.authenticate(bearer(token))
    (digest,) = auth._tokens.cache._entries
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
