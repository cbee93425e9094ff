"""A Redis that answers what is no answer is away: never a fault of ours."""

import re
import socketserver
import time
from collections.abc import Iterator
from threading import Thread

import pytest
from cryptography.fernet import Fernet

from adapters.contract import Group, Position, ResourceType
from app.errors import GonePageError, UnavailableError
from app.paging import KeptPage, PageStore
from app.stored import Start, StoredSearch
from app.throttle import Throttle
from app.timed_redis import connect
from tests.live import HOST

NONSENSE = {
    "no type": b"hello\r\n",
    "a number that is none": b":abc\r\n",
    "a length that is none": b"$abc\r\n",
    "a text longer than memory": b"$99999999999999\r\n",
    "a list longer than memory": b"*99999999999999\r\n",
    "a negative list": b"*-7\r\n",
    "a list cut short": b"*2\r\n$1\r\na\r\n",
    "a list of lists": b"*2\r\n*0\r\n*0\r\n",
    "an odd list": b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
    "a map where there is none": b"%1\r\n$1\r\na\r\n$1\r\nb\r\n",
    "a number": b":7\r\n",
    "a word": b"+OK\r\n",
    "a word that is no text": b"+\xff\xfe\r\n",
    "nothing": b"$-1\r\n",
    "no list": b"*-1\r\n",
    "its own error": b"-ERR wrong\r\n",
    "an error that is no text": b"-\xff\xfe\r\n",
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


class _Answers(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            asked = any(each in data for each in (b"HGETALL", b"HSET", b"EVAL"))
            nonsense = self.server.nonsense  # type: ignore[attr-defined]
            # What a client says of itself first is taken in.
            commands = len(re.findall(rb"^\*\d+\r$", data, re.M))
            self.request.sendall((nonsense if asked else b"+OK\r\n") * commands)


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    with _Server((HOST, 0), _Answers) as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_a_redis_that_makes_no_sense_is_away(server: _Server, nonsense: bytes) -> None:
    server.nonsense = nonsense
    with connect(f"redis://{HOST}:{server.server_address[1]}/0") as client:
        key = Fernet.generate_key().decode()
        store = PageStore(client, [key], idle=60, life=86400)
        page = store.new_id("client")
        # What says that it holds nothing is believed: search again.
        with pytest.raises((UnavailableError, GonePageError)):
            store.load(page, "client")
        with pytest.raises(UnavailableError):
            store.keep(KeptPage(page, SEARCH, Start()), [LATER])


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_a_redis_that_makes_no_sense_counts_nothing(
    server: _Server, nonsense: bytes
) -> None:
    server.nonsense = nonsense
    with connect(f"redis://{HOST}:{server.server_address[1]}/0") as client:
        throttle = Throttle(client, clients=60, addresses=None, key=b"k" * 32)
        throttle.count_client("client")
        throttle.count_client("client")
