"""Redis as operators run it: with TLS, behind Sentinel, and away."""

import shutil
from contextlib import ExitStack
from urllib.parse import quote

import pytest
import redis

from app.cli.doctor import check_sentinels
from app.redis_client import SentinelAddress, connect
from app.server.checks import check_redis
from tests.certificates import certificate_for
from tests.live import HOST, free_ports, listens
from tests.sentinels import PATIENCE, SENTINELS, Watched, begin, until
from tests.serving import Served, ids, link
from toolkit.contract.hospital import EDGES

WITH_TLS = shutil.which("redis-server")


def second_page(served: Served, first: object) -> int:
    """Follow a walk; return the status of the answer."""
    return served.get(link(first, "next")).status_code


@pytest.fixture
def watched(tmp_path):
    with ExitStack() as stack:
        yield Watched(stack, tmp_path)


@pytest.mark.system
def test_a_walk_goes_on_after_a_failover(watched, make_service):
    served = make_service(REDIS_URL=watched.url)
    first = served.search("Encounter", {"_count": "2"})
    assert second_page(served, first) == 200
    until(watched.replicated)
    watched.master.kill()
    watched.master.wait(PATIENCE)
    refused = served.get(link(first, "next"))
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    # Decision 25: what needs no second page goes on.
    whole = served.search("Encounter", {"_id": str(EDGES.stays[0].id)})
    assert ids(whole) == [str(EDGES.stays[0].id)]
    found = set()

    def followed() -> bool:
        found.add(second_page(served, first))
        return 200 in found

    until(followed)
    assert found <= {503, 200}
    assert served.search("Encounter", {"_count": "2"})


@pytest.mark.system
@pytest.mark.parametrize("theirs", ["", "of-sentinels"])
def test_sentinels_may_have_another_password_or_none(tmp_path, theirs):
    def refusals(url: str) -> list[str]:
        results = check_sentinels(SentinelAddress.read(url))
        return [result.text for result in results if "refuses" in result.text]

    with ExitStack() as stack:
        watched = Watched(stack, tmp_path, "of-redis", theirs)
        url = f"{watched.url}?sentinel_password={quote(theirs)}"
        assert refusals(url) == []
        assert [r.text for r in check_redis(connect(url)) if r.is_wrong] == []
        # With the password of Redis, which those of before needed.
        assert len(refusals(watched.url)) == SENTINELS
        assert [r.text for r in check_redis(connect(watched.url)) if r.is_wrong]


def test_sentinels_that_are_away_are_not_waited_for_long(make_service):
    first = free_ports(2)
    url = f"redis+sentinel://{HOST}:{first},{HOST}:{first + 1}/pages"
    served = make_service(REDIS_URL=url)
    assert served.post("Encounter/_search", {"_count": "2"}).status_code == 503
    assert served.search("Encounter", {"_id": str(EDGES.stays[0].id)})["total"] == 1


@pytest.fixture
def secure(tmp_path):
    """Start a Redis that speaks TLS only; yield its address and its certificate."""
    if WITH_TLS is None:
        pytest.skip("no redis-server is installed: that of the wheel has no TLS")
    port, file = free_ports(), certificate_for(tmp_path)
    with ExitStack() as stack:
        begin(
            stack,
            WITH_TLS,
            *("--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no"),
            *("--tls-cert-file", str(file), "--save", ""),
            *("--tls-key-file", str(tmp_path / "key.pem"), "--dir", str(tmp_path)),
        )
        until(lambda: listens(port))
        yield f"rediss://{HOST}:{port}", file


@pytest.mark.system
def test_pages_are_kept_over_tls(secure, make_service):
    url, file = secure
    served = make_service(REDIS_URL=f"{url}?ssl_ca_certs={file}")
    assert second_page(served, served.search("Encounter", {"_count": "2"})) == 200


@pytest.mark.system
def test_a_certificate_that_nobody_vouches_for_is_refused(secure):
    """Nor that of another host."""
    url, file = secure
    named = url.replace(HOST, "localhost")
    for address in (url, f"{named}?ssl_ca_certs={file}"):
        with connect(address) as client, pytest.raises(redis.ConnectionError):
            client.ping()
