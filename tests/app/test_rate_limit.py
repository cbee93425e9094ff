"""The rate limit: who is counted under what, what is said, and what Redis has to do with it."""

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
import redis
from prometheus_client import REGISTRY
from redis.backoff import NoBackoff
from redis.retry import Retry
from werkzeug.exceptions import TooManyRequests

from app.rate_limit import AWAY_SECONDS, Throttle
from app.service import EXTENSION
from tests.app import provider
from tests.app.answers import read_from, refused
from tests.serving import Served

MINUTE = 28_000_000 * 60
KEY = b"key"


@pytest.fixture
def make(own_redis, clock):
    """Return what makes a throttle on a Redis of the test's own."""
    clients = []
    clock.now = MINUTE

    def make_throttle(clients_limit=3, addresses=2, key=KEY):
        # Patient: on a busy machine that of the service may count in the process.
        once = Retry(NoBackoff(), 0)
        patient = redis.Redis.from_url(own_redis.url, socket_timeout=60, retry=once)
        clients.append(patient)
        return Throttle(
            patient,
            clients=clients_limit,
            addresses=addresses,
            key=key,
            clock=clock,
            monotonic=clock,
        )

    yield make_throttle
    for client in clients:
        client.close()


def let_in(count, name, tries):
    """Return how many of so many requests are let in."""
    accepted = 0
    for _ in range(tries):
        with suppress(TooManyRequests):
            count(name)
            accepted += 1
    return accepted


def round_trips(server):
    with server.client() as client:
        scripts = client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})
    return int(scripts["calls"])


def test_processes_and_threads_share_one_count(make, own_redis):
    throttles = [make() for _ in range(3)]
    assert sum(let_in(each.count_client, "one", 3) for each in throttles) == 3
    throttle = make(clients_limit=100)
    with ThreadPoolExecutor(8) as pool:
        counts = pool.map(lambda _: let_in(throttle.count_client, "two", 25), range(8))
    assert sum(counts) == 100
    # A process tells Redis of a hundredth of a limit at a time.
    before = round_trips(own_redis)
    for throttle in (make(clients_limit=500), make(clients_limit=500)):
        assert let_in(throttle.count_client, "three", 250) == 250
    assert round_trips(own_redis) <= before + 100


def test_redis_holds_digests_that_go_by_themselves(make, own_redis):
    throttle = make()
    throttle.count_client("hopital-nord")
    throttle.count_address("192.0.2.7")
    with own_redis.client() as client:
        keys = list(client.scan_iter())
        assert len(keys) == 2
        assert all(0 < client.ttl(key) <= 60 for key in keys)
        assert b"nord" not in b"".join(keys)
        assert b"192" not in b"".join(keys)
        # Who has no key cannot tell whose count it is.
        make(key=b"another").count_address("192.0.2.7")
        assert len(list(client.scan_iter())) == 3


def test_without_redis_each_process_counts_for_itself(make, own_redis, clock, caplog):
    throttles = [make() for _ in range(2)]
    own_redis.stop()
    for each in throttles:
        assert let_in(each.count_client, "one", 9) == 3
        assert let_in(each.count_address, "two", 9) == 2
    own_redis.start()
    # Redis is left alone for a while, and then used again.
    clock.now += AWAY_SECONDS - 1
    throttles[0].count_client("two")
    assert round_trips(own_redis) == 0
    clock.now += 1
    for each in throttles:
        each.count_client("three")
    assert round_trips(own_redis) > 0
    events = [record.getMessage() for record in caplog.records]
    assert sorted(events) == [
        *["limits are counted in Redis again"] * 2,
        *["limits are counted in the process"] * 2,
    ]


@pytest.fixture
def limited(served, make, monkeypatch):
    """Return the service with other limits than its own."""

    def limited(**limits):
        service = served.app.extensions[EXTENSION]
        other = replace(service, throttle=make(**limits))
        monkeypatch.setitem(served.app.extensions, EXTENSION, other)
        return served

    return limited


def statuses(served, path, tries):
    return [served.get(path).status_code for _ in range(tries)]


def throttled(by):
    counted = REGISTRY.get_sample_value("encounters_throttled_total", {"by": by})
    return counted or 0.0


def test_too_many_requests_of_a_client_are_429(limited, clock):
    before = throttled("client")
    served = limited(addresses=None).as_client("hasty")
    # The first use of a token is counted under the address: its client is not known yet.
    assert statuses(served, "Encounter/1", 4) == [200] * 4
    answer = served.get("Encounter/1")
    assert refused(answer, 429, "throttled") == "Requests arrive too quickly."
    assert throttled("client") == before + 1
    assert answer.headers["Retry-After"] == "60"
    assert served.post("Encounter/_search", {"_id": "1"}).status_code == 429
    # A renewed token is the same client.
    assert statuses(served.as_client("hasty"), "Patient/1", 3)[-1] == 429
    assert statuses(served.as_client("patient"), "Encounter/1", 4) == [200] * 4
    # Until the minute ends.
    clock.now = MINUTE + 59.9
    assert served.get("Encounter/1").headers["Retry-After"] == "1"
    clock.now = MINUTE + 60
    assert served.get("Encounter/1").status_code == 200


@pytest.mark.parametrize("token", [None, "opaque", "forged"])
def test_bad_tokens_are_429_before_they_are_looked_at(limited, caplog, token):
    good = limited(clients_limit=None).as_client(f"good-{token}")
    assert statuses(good, "Encounter/1", 1) == [200]
    if token == "forged":
        token = provider.sign(provider.okp("thief"), "EdDSA")
    headers = {"Authorization": provider.bearer(token)} if token else {}
    bad = Served(good.app, headers)
    with caplog.at_level(logging.INFO, logger="app.auth"):
        assert statuses(bad, "Encounter/1", 4) == [401, 429, 429, 429]
    refusals = [r for r in caplog.records if r.getMessage() == "token refused"]
    assert len(refusals) == (0 if token is None else 1)
    # Who was let in before goes on from the same address.
    assert statuses(good, "Encounter/1", 20) == [200] * 20


def test_what_asks_for_no_token_is_not_counted(limited, own_redis):
    served = limited(clients_limit=1, addresses=1)
    for path, status in (("metadata", 200), ("Nonsense", 404)):
        assert statuses(Served(served.app), path, 5) == [status] * 5
    assert round_trips(own_redis) == 0


def test_limits_are_settings(make_service):
    served = make_service(
        CLIENT_REQUESTS_PER_MINUTE="2", ADDRESS_REQUESTS_PER_MINUTE="off"
    )
    # Twice the limit and one more, in case the minute ends among them.
    answers = statuses(served.as_client("settings"), "Encounter/1", 1 + 5)
    assert 429 in answers
    assert answers[:3] == [200, 200, 200]


PROXY, INNER = "10.1.2.3", "10.1.9.9"
# Which address a chain of proxies names: tests/app/test_audit.py.
ADDRESSES = [
    ((PROXY, "198.51.100.1, 192.0.2.7"), (INNER, "192.0.2.7"), 429),
    (("2001:db8::1", None), ("2001:db8::ffff:1", None), 429),
    (("2001:db8::1", None), ("2001:db8:0:1::1", None), 401),
    ((PROXY, "198.51.100.1"), (PROXY, "198.51.100.2"), 401),
]


def test_an_address_is_the_one_that_trusted_proxies_name(make_service, make):
    served = make_service(TRUSTED_PROXIES="10.1.0.0/16")
    service = served.app.extensions[EXTENSION]
    anonymous = Served(served.app)
    for number, (first, second, status) in enumerate(ADDRESSES):
        throttle = make(addresses=1, key=b"key of %d" % number)
        served.app.extensions[EXTENSION] = replace(service, throttle=throttle)
        assert read_from(anonymous, *first).status_code == 401
        assert read_from(anonymous, *second).status_code == status, (first, second)
