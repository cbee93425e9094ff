"""Redis over TLS and behind Sentinel: the same pages, and a failover in mid-walk."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
import responses

from adapters.testing.stays import EDGES
from app.sentinels import SentinelAddress
from app.timed_redis import connect
from tests.live import HOST, free_ports, listens
from tests.sentinels import PATIENCE, Watched, begin, until
from tests.serving import Served, ids, link, serve
from tests.tls import certificate_for

WITH_TLS = shutil.which("redis-server")


def second_page(served: Served, first: object) -> int:
    """Follow a walk; return the status of the answer."""
    return served.get(link(first, "next")).status_code


# ------------------------------------------------------------------------- Sentinel


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with ExitStack() as stack:
        yield Watched(stack, tmp_path)


def test_a_walk_goes_on_after_a_failover(
    watched: Watched, tmp_path: Path, keys: responses.RequestsMock
) -> None:
    served = serve(EDGES, tmp_path, watched.url)
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


def test_sentinels_that_are_away_are_not_waited_for_long(
    tmp_path: Path, keys: responses.RequestsMock
) -> None:
    first = free_ports(2)
    url = f"redis+sentinel://{HOST}:{first},{HOST}:{first + 1}/pages"
    served = serve(EDGES, tmp_path, url)
    assert served.post("Encounter/_search", {"_count": "2"}).status_code == 503
    assert served.search("Encounter", {"_id": str(EDGES.stays[0].id)})["total"] == 1


def test_an_address_of_sentinels_says_all_that_is_needed() -> None:
    url = "rediss+sentinel://me:p%40ss@[::1]:1,b.example.org/pages/2"
    assert SentinelAddress.read(url) == SentinelAddress(
        hosts=(("::1", 1), ("b.example.org", 26379)),
        master="pages",
        number=2,
        secure=True,
        user="me",
        password="p@ss",
    )
    assert "p@ss" not in repr(SentinelAddress.read(url))


# ------------------------------------------------------------------------------ TLS


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[str, Path]]:
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


def test_pages_are_kept_over_tls(
    secure: tuple[str, Path], tmp_path: Path, keys: responses.RequestsMock
) -> None:
    url, file = secure
    served = serve(EDGES, tmp_path, f"{url}?ssl_ca_certs={file}")
    assert second_page(served, served.search("Encounter", {"_count": "2"})) == 200


def test_a_certificate_that_nobody_vouches_for_is_refused(
    secure: tuple[str, Path],
) -> None:
    with connect(secure[0]) as client, pytest.raises(redis.ConnectionError):
        client.ping()


def test_a_certificate_of_another_host_is_refused(secure: tuple[str, Path]) -> None:
    url, file = secure
    named = url.replace(HOST, "localhost")
    with (
        connect(f"{named}?ssl_ca_certs={file}") as client,
        pytest.raises(redis.ConnectionError),
    ):
        client.ping()
