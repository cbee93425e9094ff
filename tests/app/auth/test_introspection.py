"""Opaque tokens: asked for at the provider (RFC 7662, decision 22)."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from urllib.parse import parse_qs

import pytest
import requests
import responses

from app.auth import Authenticator
from app.errors import IssueCode, UnauthenticatedError, UnavailableError
from app.introspection import CACHE_SECONDS
from tests.app import provider
from tests.app.provider import INTROSPECTION_URL, Clock, bearer, rsa, sign

TOKEN = "opaque-token-1"


@pytest.fixture
def mock():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(tmp_path, clock):
    path = tmp_path / "mapping.yaml"
    path.write_text("mapping: 1\n")

    def make(**changed):
        settings = provider.settings(
            path,
            INTROSPECTION_URL=INTROSPECTION_URL,
            INTROSPECTION_CLIENT_ID="encounters",
            INTROSPECTION_CLIENT_SECRET="hush",
            **changed,
        )
        return Authenticator.from_settings(settings, clock=clock)

    return make


@pytest.fixture
def auth(make):
    return make(KEY_SET_URL=None)


def says(mock, **answer):
    mock.upsert(responses.POST, INTROSPECTION_URL, json=answer)


def good(**changed):
    return {"active": True, **provider.claims(**changed)}


def test_the_provider_is_asked_as_rfc_7662_says(auth, mock):
    says(mock, **good())
    client = auth.authenticate(bearer(TOKEN))
    assert client.id == "client-1"
    assert "ENCOUNTER_SEARCH" in client.scopes
    (call,) = mock.calls
    assert parse_qs(call.request.body) == {
        "token": [TOKEN],
        "token_type_hint": ["access_token"],
    }
    assert call.request.headers["Authorization"] == "Basic ZW5jb3VudGVyczpodXNo"
    assert call.request.headers["Accept"] == "application/json"


def test_what_the_provider_does_not_say_is_not_asked_for(auth, mock):
    says(mock, active=True, client_id="client-1", iss=None, aud=None, exp=None)
    client = auth.authenticate(bearer(TOKEN))
    assert (client.id, client.scopes) == ("client-1", frozenset())


@pytest.mark.parametrize("text", ["one,Bearer two", "one two", "é", "x" * 8193])
def test_what_can_be_no_token_is_not_asked_about(auth, mock, text):
    says(mock, **good())
    with pytest.raises(UnauthenticatedError):
        auth.authenticate(bearer(text))
    assert not mock.calls


# Said when it is asked for: a run may take longer than what is said is good.
BAD = {
    "not active": lambda: {"active": False},
    "nothing said": dict,
    "active in words": lambda: good(active="true"),
    "active as a number": lambda: good(active=1),
    "another audience": lambda: good(aud="https://other.example.org/"),
    "another issuer": lambda: good(iss="https://other.example.org/"),
    "not valid yet": lambda: good(nbf=int(time.time()) + 86400),
    "no client": lambda: {"active": True, "scope": "PATIENT_GAM_SEARCH"},
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_401(auth, mock, name):
    says(mock, **BAD[name]())
    with pytest.raises(UnauthenticatedError) as caught:
        auth.authenticate(bearer(TOKEN))
    assert caught.value.code == IssueCode.UNKNOWN


def test_an_expired_one_is_told_apart(auth, mock, clock):
    says(mock, **good(exp=int(clock.now) - 31))
    with pytest.raises(UnauthenticatedError) as caught:
        auth.authenticate(bearer(TOKEN))
    assert caught.value.code == IssueCode.EXPIRED


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"status": 401}, "status 401"),
        ({"status": 500}, "status 500"),
        ({"body": "<html>"}, "answer is not JSON"),
        ({"body": requests.Timeout()}, "Timeout"),
        ({"body": requests.ConnectionError("auth.example.org")}, "ConnectionError"),
    ],
)
def test_a_provider_that_cannot_be_asked_is_503(auth, mock, answer, reason, caplog):
    mock.upsert(responses.POST, INTROSPECTION_URL, **answer)
    with pytest.raises(UnavailableError) as caught:
        auth.authenticate(bearer(TOKEN))
    assert dict(caught.value.headers)["Retry-After"]
    (record,) = caplog.records
    assert (record.getMessage(), record.data) == (
        "token not introspected",
        {"reason": reason},
    )


def test_an_answer_is_kept_for_a_short_while(auth, mock, clock):
    says(mock, **good())
    auth.authenticate(bearer(TOKEN))
    says(mock, active=False)
    clock.now += CACHE_SECONDS - 1
    assert auth.authenticate(bearer(TOKEN)).id == "client-1"
    clock.now += 1
    with pytest.raises(UnauthenticatedError):
        auth.authenticate(bearer(TOKEN))
    assert len(mock.calls) == 2


def test_an_answer_is_not_kept_past_its_expiry(auth, mock, clock):
    says(mock, **good(exp=int(clock.now) + 5))
    auth.authenticate(bearer(TOKEN))
    clock.now += 6
    auth.authenticate(bearer(TOKEN))
    assert len(mock.calls) == 2


def test_a_refusal_is_not_kept(auth, mock):
    says(mock, active=False)
    with pytest.raises(UnauthenticatedError):
        auth.authenticate(bearer(TOKEN))
    says(mock, **good())
    assert auth.authenticate(bearer(TOKEN)).id == "client-1"


def test_with_a_key_set_signed_tokens_are_checked_here_and_others_there(make, mock):
    auth = make()
    provider.publish(mock, rsa())
    says(mock, **good(client_id="opaque-client"))
    assert auth.authenticate(bearer(sign())).id == "client-1"
    assert auth.authenticate(bearer(TOKEN)).id == "opaque-client"
    urls = [call.request.url for call in mock.calls]
    assert urls == [provider.KEY_SET_URL, INTROSPECTION_URL]


def test_an_opaque_token_needs_no_key_set(make, mock):
    auth = make()
    mock.get(provider.KEY_SET_URL, body=requests.ConnectionError())
    says(mock, **good())
    assert auth.authenticate(bearer(TOKEN)).id == "client-1"
    assert auth.recall(bearer(TOKEN)).id == "client-1"
    provider.settle()
    assert [call.request.url for call in mock.calls] == [INTROSPECTION_URL]


def test_without_a_key_set_the_provider_is_asked_about_signed_tokens_too(auth, mock):
    says(mock, **good())
    assert auth.authenticate(bearer(sign(rsa("thief")))).id == "client-1"
    assert [call.request.url for call in mock.calls] == [INTROSPECTION_URL]


def test_an_outage_is_503_once_what_was_kept_has_run_out_and_never_401(
    auth, mock, clock
):
    says(mock, **good(exp=int(clock.now) + 3600))
    auth.authenticate(bearer(TOKEN))
    mock.upsert(responses.POST, INTROSPECTION_URL, status=503)
    for second in range(600):
        if second < CACHE_SECONDS:
            assert auth.authenticate(bearer(TOKEN)).id == "client-1"
        else:
            with pytest.raises(UnavailableError):
                auth.authenticate(bearer(TOKEN))
        clock.now += 1
    says(mock, **good(exp=int(clock.now) + 3600))
    assert auth.authenticate(bearer(TOKEN)).id == "client-1"


def test_the_memory_of_answers_is_bounded(auth, mock, monkeypatch):
    monkeypatch.setattr("app.token_cache.MAX_CACHED_TOKENS", 10)
    says(mock, **good())
    for number in range(11):
        auth.authenticate(bearer(f"opaque-{number}"))
    assert len(auth._tokens.cache._entries) == 10
    assert auth.recall(bearer("opaque-0")) is None
    assert auth.recall(bearer("opaque-10"))


class Hanging:
    """A provider that answers when it is told to, well or not."""

    def __init__(self):
        self.asked, self.goes_on, self.well = threading.Semaphore(0), Event(), False

    def answer(self, request):
        self.asked.release()
        self.goes_on.wait(60)
        return (200, {}, json.dumps(good())) if self.well else (503, {}, "")


@pytest.fixture
def hanging(mock):
    made = Hanging()
    mock.add_callback(responses.POST, INTROSPECTION_URL, callback=made.answer)
    yield made
    made.goes_on.set()


def begun(auth, hanging, number):
    """Ask about so many tokens at once, and wait until all of them are asked about."""
    threads = ThreadPoolExecutor(number)
    asked = [
        threads.submit(auth.authenticate, bearer(f"hung-{n}")) for n in range(number)
    ]
    assert all(hanging.asked.acquire(timeout=60) for _ in range(number))
    threads.shutdown(wait=False)
    return asked


def test_who_finds_no_turn_is_told_so_and_others_are_known(make, mock, clock):
    auth = make(THREADS="4")
    mock.get(provider.KEY_SET_URL, json=provider.key_set(rsa()))
    says(mock, **good())
    auth.authenticate(bearer(TOKEN))
    mock.remove(responses.POST, INTROSPECTION_URL)
    hanging = Hanging()
    mock.add_callback(responses.POST, INTROSPECTION_URL, callback=hanging.answer)
    asked = begun(auth, hanging, 2)
    with pytest.raises(UnavailableError):
        auth.authenticate(bearer("another"))
    assert auth.authenticate(bearer(TOKEN)).id == "client-1"
    assert auth.authenticate(bearer(sign())).id == "client-1"
    hanging.goes_on.set()
    assert {type(each.exception(60)) for each in asked} == {UnavailableError}


def test_one_thread_is_enough_to_ask(make, mock):
    says(mock, **good())
    auth = make(THREADS="1", KEY_SET_URL=None)
    assert auth.authenticate(bearer(TOKEN)).id == "client-1"


def test_a_question_waits_for_its_turn_while_the_provider_answers(make, mock):
    def answer(request):
        time.sleep(0.1)
        return 200, {}, json.dumps(good())

    mock.add_callback(responses.POST, INTROSPECTION_URL, callback=answer)
    auth = make(THREADS="2", KEY_SET_URL=None)
    for turn in ("first", "next"):
        tokens = [bearer(f"{turn}-{number}") for number in range(2)]
        with ThreadPoolExecutor(2) as pool:
            clients = list(pool.map(auth.authenticate, tokens))
        assert [client.id for client in clients] == ["client-1"] * 2


def test_nobody_waits_for_a_turn_while_the_provider_does_not_answer(make, hanging):
    auth = make(THREADS="4", KEY_SET_URL=None)
    hanging.goes_on.set()
    with pytest.raises(UnavailableError):
        auth.authenticate(bearer(TOKEN))
    assert hanging.asked.acquire(timeout=60)
    hanging.goes_on.clear()
    asked = begun(auth, hanging, 2)
    began = time.monotonic()
    for _ in range(50):
        with pytest.raises(UnavailableError):
            auth.authenticate(bearer("another"))
    # One that waited would have waited a second.
    assert time.monotonic() - began < 25
    hanging.well = True
    hanging.goes_on.set()
    assert [each.result(60).id for each in asked] == ["client-1"] * 2
    assert auth.authenticate(bearer("another")).id == "client-1"
