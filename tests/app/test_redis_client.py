"""Redis as operators run it: with TLS, behind Sentinel, away, and speaking nonsense."""

import re
import shutil
import socketserver
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
import redis
import responses
from cryptography.fernet import Fernet

from adapters.contract import Group, Position, ResourceType
from app.cli.doctor import check_sentinels
from app.errors import GonePageError, UnavailableError
from app.paging import PageStore, Start, StoredPage, StoredSearch
from app.rate_limit import Throttle
from app.redis_client import SentinelAddress, connect
from app.server.checks import check_redis
from tests.live import HOST, free_ports, listens
from tests.sentinels import PATIENCE, SENTINELS, Watched, begin, until
from tests.serving import Served, ids, link, serve
from tests.tls import certificate_for
from toolkit.contract.hospital import EDGES

WITH_TLS = shutil.which("redis-server")


def second_page(served: Served, first: object) -> int:
    """Follow a walk; return the status of the answer."""
    return served.get(link(first, "next")).status_code


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with ExitStack() as stack:
        yield Watched(stack, tmp_path)


@pytest.mark.system
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


@pytest.mark.system
@pytest.mark.parametrize("theirs", ["", "of-sentinels"])
def test_sentinels_may_have_another_password_or_none(
    tmp_path: Path, theirs: str
) -> None:
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
        sentinel_user="me",
        sentinel_password="p@ss",
    )
    for query, user, password in (
        ("sentinel_password=s%40", None, "s@"),
        ("sentinel_username=it&sentinel_password=s", "it", "s"),
        ("sentinel_password=", None, None),
    ):
        read = SentinelAddress.read(f"{url}?{query}")
        assert (read.sentinel_user, read.sentinel_password) == (user, password)
        assert (read.user, read.password) == ("me", "p@ss")
    assert "p@ss" not in repr(SentinelAddress.read(url))


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


@pytest.mark.system
def test_pages_are_kept_over_tls(
    secure: tuple[str, Path], tmp_path: Path, keys: responses.RequestsMock
) -> None:
    url, file = secure
    served = serve(EDGES, tmp_path, f"{url}?ssl_ca_certs={file}")
    assert second_page(served, served.search("Encounter", {"_count": "2"})) == 200


@pytest.mark.system
def test_a_certificate_that_nobody_vouches_for_is_refused(
    secure: tuple[str, Path],
) -> None:
    """Nor that of another host."""
    url, file = secure
    named = url.replace(HOST, "localhost")
    for address in (url, f"{named}?ssl_ca_certs={file}"):
        with connect(address) as client, pytest.raises(redis.ConnectionError):
            client.ping()


NONSENSE = {
    "a number that is none": b":abc\r\n",
    "a length that is none": b"$abc\r\n",
    "a text longer than memory": b"$99999999999999\r\n",
    "a negative list": b"*-7\r\n",
    "a list cut short": b"*2\r\n$1\r\na\r\n",
    "an odd list": b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
    "a map where there is none": b"%1\r\n$1\r\na\r\n$1\r\nb\r\n",
    "a word": b"+OK\r\n",
    "a word that is no text": b"+\xff\xfe\r\n",
    "nothing": b"$-1\r\n",
    "no list": b"*-1\r\n",
    "its own error": b"-ERR wrong\r\n",
    "lists in lists": b"*1\r\n" * 5000,
    "a page of HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


SEARCH = StoredSearch(
    "client", ResourceType.ENCOUNTER, (), False, 9, "f", int(time.time())
)
LATER = Start(2, position=Position(Group.UNKEYED, None, "1"))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    nonsense = b""


class _Responds(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            nonsense = self.server.nonsense  # type: ignore[attr-defined]
            is_greeting = b"CLIENT" in data or b"HELLO" in data
            # What a client says of itself first is accepted.
            commands = len(re.findall(rb"^\*\d+\r$", data, re.M))
            self.request.sendall((b"+OK\r\n" if is_greeting else nonsense) * commands)


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    with _Server((HOST, 0), _Responds) as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.mark.parametrize("name", NONSENSE)
def test_a_redis_that_makes_no_sense_is_away(server: _Server, name: str) -> None:
    server.nonsense = NONSENSE[name]
    with connect(f"redis://{HOST}:{server.server_address[1]}/0") as client:
        key = Fernet.generate_key().decode()
        store = PageStore(client, [key], idle=60, life=86400)
        page = store.new_id("client")
        # What says that it holds nothing is believed: search again.
        with pytest.raises((UnavailableError, GonePageError)):
            store.load(page, "client")
        with pytest.raises(UnavailableError):
            store.save(StoredPage(page, SEARCH, Start()), [LATER])
        throttle = Throttle(client, clients=60, addresses=None, key=b"k" * 32)
        throttle.count_client("client")
        throttle.count_client("client")
        # Whatever it is, the watch goes on.
        assert len([*check_redis(client)]) <= 1
