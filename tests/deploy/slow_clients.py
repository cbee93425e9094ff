"""200 slow clients of five kinds, which hold on to a proxy."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from tests.deploy.proxies import Proxy
from tests.live import HOST

CLIENTS = 200
DRIP_SECONDS = 0.5
RECEIVED, PAGES = 1024, 4
"""The room of a slow reader, and how many pages of 100 it asks for."""

KINDS = ("headers", "half a request", "silence", "body", "reading")


class SlowClient:
    """A slow client: when the proxy has closed its connection, it opens the next one."""

    def __init__(self, number: int, proxy: Proxy, path: str, bearer: str) -> None:
        self.kind = KINDS[number % len(KINDS)]
        self._address = f"127.0.1.{number % 4 + 1}", 0
        self._proxy, self._trusted = proxy, proxy.trust()
        headers = f"HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        self._begin = {
            "headers": f"GET {path} {headers}X-Slow: ",
            "half a request": f"GET {path} {headers}",
            "silence": "",
            "body": f"POST {path} {headers}{form}Content-Length: 60000\r\n\r\n_id=",
            # More than the buffers between us hold: the proxy waits for the reader.
            "reading": f"GET /fhir/v3/Encounter?_count=100 {headers}\r\n" * PAGES,
        }[self.kind]
        self._connection: ssl.SSLSocket | None = None

    def connect(self) -> None:
        """Open a connection, and send what comes before it is slow."""
        plain = socket.socket()
        # Before it connects: the other side never sees a wider window.
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        plain.bind(self._address)
        plain.connect((HOST, self._proxy.port))
        self._connection = self._trusted.wrap_socket(plain, server_hostname=HOST)
        self._connection.sendall(self._begin.encode())
        self._connection.setblocking(False)

    def go_on(self) -> None:
        """Send or read a little more."""
        try:
            if self._connection is None:
                self.connect()
            elif self.kind in ("headers", "body"):
                self._connection.send(b"a")
            elif not self._connection.recv(RECEIVED if self.kind == "reading" else 1):
                self.close()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


@contextmanager
def slow_clients(proxy: Proxy, path: str, bearer: str) -> Iterator[None]:
    """Hold on to the proxy with slow clients, from when all are connected."""
    clients = [SlowClient(number, proxy, path, bearer) for number in range(CLIENTS)]
    ending = Event()

    def go_on() -> None:
        while not ending.wait(DRIP_SECONDS):
            for client in clients:
                client.go_on()

    with ExitStack() as stack:
        for client in clients:
            stack.callback(client.close)
            client.connect()
        thread = Thread(target=go_on)
        thread.start()
        stack.callback(thread.join)
        stack.callback(ending.set)
        yield
