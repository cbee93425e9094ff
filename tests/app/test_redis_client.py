"""Redis as operators run it: with TLS, behind Sentinel, and away."""

import shutil
from contextlib import ExitStack

import pytest
import redis

from app.cli.doctor import check_sentinels
from app.redis_client import SentinelAddress, connect
from app.server.checks import check_redis
from demo.processes import redis_server as server_program
from tests.certificates import certify
from tests.live import HOST, begin, free_ports, listens, wait_until
from tests.serving import ids, link
from toolkit.contract.hospital import EDGES

SENTINELS = 3
WITH_TLS = shutil.which("redis-server")


def second_page(served, first):
    """Follow a walk; return the status of the answer."""
    return served.get(link(first, "next")).status_code


def wait_until_replicated(port):
    with redis.Redis(port=port, password="of-redis") as client:
        wait_until(lambda: client.wait(1, 1000))


@pytest.fixture
def watched(tmp_path):
    """Start a master, its replica and three sentinels; yield the master and the addresses.

    The password of Redis is not that of the sentinels.
    """
    program, first = str(server_program()), free_ports(2 + SENTINELS)
    account = ("--requirepass", "of-redis", "--masterauth", "of-redis")
    stored = ("--save", "", "--dir", str(tmp_path), *account)
    replica = ("--replicaof", HOST, str(first), "--repl-diskless-sync-delay", "0")
    watching = range(first + 2, first + 2 + SENTINELS)
    hosts = ",".join(f"{HOST}:{port}" for port in watching)
    url = f"redis+sentinel://:of-redis@{hosts}/pages"

    def know_all():
        for port in watching:
            with redis.Redis(port=port, password="of-sentinels") as sentinel:
                master = sentinel.sentinel_master("pages")
            if (master["num-slaves"], master["num-other-sentinels"]) != (1, 2):
                return False
        return True

    with ExitStack() as stack:
        master = begin(stack, program, "--port", str(first), *stored)
        begin(stack, program, "--port", str(first + 1), *replica, *stored)
        wait_until(lambda: listens(first))
        # Sentinels look for replicas when they start, and again ten seconds later.
        wait_until_replicated(first)
        for port in watching:
            file = tmp_path / f"{port}.conf"
            file.write_text(
                f"port {port}\ndir {tmp_path}\n"
                f"sentinel monitor pages {HOST} {first} 2\n"
                "sentinel down-after-milliseconds pages 1000\n"
                "sentinel failover-timeout pages 5000\n"
                "sentinel auth-pass pages of-redis\nrequirepass of-sentinels\n"
            )
            begin(stack, program, str(file), "--sentinel")
        wait_until(lambda: all(map(listens, range(first, first + 2 + SENTINELS))))
        wait_until(know_all)
        yield master, first, url


@pytest.mark.system
def test_a_walk_goes_on_after_a_failover(watched, make_service):
    master, port, url = watched
    # With the password of Redis, which is not theirs.
    results = check_sentinels(SentinelAddress.read(url))
    assert sum("refuses" in result.text for result in results) == SENTINELS
    assert [result.text for result in check_redis(connect(url)) if result.is_wrong]
    without = SentinelAddress.read(f"{url}?sentinel_password=")
    assert without.sentinel_password is None
    url = f"{url}?sentinel_password=of-sentinels"
    for results in (
        check_sentinels(SentinelAddress.read(url)),
        check_redis(connect(url)),
    ):
        assert [result.text for result in results if result.is_wrong] == []

    served = make_service(REDIS_URL=url)
    first = served.search("Encounter", {"_count": "2"})
    assert second_page(served, first) == 200
    wait_until_replicated(port)
    master.kill()
    master.wait()
    refused = served.get(link(first, "next"))
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    # Decision 25: what needs no second page goes on.
    whole = served.search("Encounter", {"_id": str(EDGES.stays[0].id)})
    assert ids(whole) == [str(EDGES.stays[0].id)]
    statuses = set()

    def followed():
        statuses.add(second_page(served, first))
        return 200 in statuses

    wait_until(followed)
    assert statuses <= {503, 200}
    assert served.search("Encounter", {"_count": "2"})


def test_sentinels_that_are_away_are_not_waited_for_long(make_service):
    first = free_ports(2)
    url = f"redis+sentinel://{HOST}:{first},{HOST}:{first + 1}/pages"
    served = make_service(REDIS_URL=url)
    assert served.post("Encounter/_search", {"_count": "2"}).status_code == 503
    assert served.search("Encounter", {"_id": str(EDGES.stays[0].id)})["total"] == 1


@pytest.mark.system
@pytest.mark.skipif(not WITH_TLS, reason="the server of the wheel has no TLS")
def test_pages_are_kept_over_tls_that_is_verified(tmp_path, make_service):
    certify(tmp_path, "redis")
    port, file = free_ports(), tmp_path / "redis.pem"
    with ExitStack() as stack:
        begin(
            stack,
            *(WITH_TLS, "--port", "0", "--tls-port", str(port)),
            *("--tls-cert-file", str(file), "--tls-auth-clients", "no"),
            *("--tls-key-file", str(tmp_path / "redis.key")),
            *("--save", "", "--dir", str(tmp_path)),
        )
        wait_until(lambda: listens(port))
        url = f"rediss://{HOST}:{port}"
        served = make_service(REDIS_URL=f"{url}?ssl_ca_certs={file}")
        assert second_page(served, served.search("Encounter", {"_count": "2"})) == 200
        # A certificate that nobody vouches for is refused, and that of another host.
        named = url.replace(HOST, "localhost")
        for address in (url, f"{named}?ssl_ca_certs={file}"):
            with connect(address) as client, pytest.raises(redis.ConnectionError):
                client.ping()
