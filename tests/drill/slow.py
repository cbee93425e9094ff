"""200 slow clients of five kinds hold on to the proxy, while probes and reads are timed.

Times are reported, and judged by who reads them: a busy machine is slower.
"""

import argparse
import http.client
import socket
import ssl
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from urllib.request import urlopen

from tests.app import provider
from tests.deploy.proxies import Proxy
from tests.drill.clients import running
from tests.drill.deployment import Deployment, Instance, deployed
from tests.live import HOST
from tests.sentinels import until

Probe = Callable[[], int]
"""Asks, and returns the status."""

CLIENTS = 200
AIM = 0.1
EVERY = 0.2
DRIP_SECONDS = 0.5

FAR = "listen 443 ssl", "listen 443 ssl sndbuf=32k"
"""On the loopback interface a connection holds megabytes that nobody reads."""

SETTLED = 20
"""After so many rounds each worker has checked what `/ready` reports."""

RECEIVED, PAGES = 1024, 4
"""The room of a slow reader, and how many pages of 100 it asks for."""

_HEADINGS = ("Probe", "Clients", "Sent", "Median", "99 %", "Slowest", "Over 0.1 s")


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Time probes without slow clients and with them; yield each that failed."""
    with deployed(directory, FAR) as (deployment, _):
        bearer = provider.bearer(deployment.keys.token("probe"))
        stay = f"/fhir/v3/Encounter/{deployment.work().reads[0]}"
        probes = _probes(deployment, stay, bearer)
        for _ in range(SETTLED):
            until(lambda: all(probe() == 200 for probe in probes.values()))
        print("| " + " | ".join(_HEADINGS) + " |\n" + "|---" * len(_HEADINGS) + "|")
        yield from _timed(probes, "none", options.seconds)
        with slow_clients(deployment.proxy, stay, bearer) as slow:
            yield from _timed(probes, f"{CLIENTS} slow ones", 3 * options.seconds)
        connected = Counter[str]()
        for each in slow:
            connected[each.kind] += each.connected
        print(f"\nConnections that slow clients had: {dict(connected)}")


def _probes(deployment: Deployment, stay: str, bearer: str) -> dict[str, Probe]:
    probes: dict[str, Probe] = {
        f"{path} of {each.name}": partial(_status, each, path)
        for each in deployment.instances
        for path in ("/live", "/ready", "/metrics")
    }
    return probes | {
        "a read through the proxy": partial(_read, deployment, stay, bearer),
        # A server that has nothing to do with any of it shows how busy the machine is.
        "a file of another server": partial(_fetched, deployment.keys.url),
    }


def _fetched(url: str) -> int:
    with urlopen(url, timeout=60) as response:
        return int(response.status)


def _status(instance: Instance, path: str) -> int:
    return instance.operations(path).status


def _read(deployment: Deployment, path: str, bearer: str) -> int:
    connection = http.client.HTTPSConnection(
        HOST, deployment.port, timeout=60, context=deployment.trusted
    )
    with closing(connection):
        connection.request("GET", path, headers={"Authorization": bearer})
        return connection.getresponse().status


def _timed(probes: dict[str, Probe], clients: str, seconds: float) -> Iterator[str]:
    with ThreadPoolExecutor(len(probes)) as threads:
        futures = {
            name: threads.submit(_times, probe, seconds)
            for name, probe in probes.items()
        }
        for name, future in futures.items():
            times, failed = future.result()
            cells = (
                name,
                clients,
                str(len(times)),
                f"{statistics.median(times):.3f} s",
                f"{statistics.quantiles(times, n=100)[-1]:.3f} s",
                f"{max(times):.3f} s",
                str(sum(each >= AIM for each in times)),
            )
            print(f"| {' | '.join(cells)} |", flush=True)
            if failed:
                yield f"{name}: {failed} failed with {clients} slow clients"


def _times(probe: Probe, seconds: float) -> tuple[list[float], int]:
    times, failed = [], 0
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        begun = time.monotonic()
        failed += probe() != 200
        times.append(time.monotonic() - begun)
        time.sleep(EVERY)
    return times, failed


KINDS = ("headers", "half a request", "silence", "body", "reading")


class Slow:
    """A slow client: when the proxy has closed its connection, it opens the next one."""

    def __init__(self, number: int, proxy: Proxy, stay: str, bearer: str) -> None:
        self.kind = KINDS[number % len(KINDS)]
        self.connected = 0
        self._place = f"127.0.1.{number % 4 + 1}", 0
        self._proxy, self._trusted = proxy, proxy.trust()
        way = f"HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        self._begin = {
            "headers": f"GET {stay} {way}X-Slow: ",
            "half a request": f"GET {stay} {way}",
            "silence": "",
            "body": f"POST {stay} {way}{form}Content-Length: 60000\r\n\r\n_id=",
            # More than the buffers between us hold: the proxy waits for the reader.
            "reading": f"GET /fhir/v3/Encounter?_count=100 {way}\r\n" * PAGES,
        }[self.kind]
        self._connection: ssl.SSLSocket | None = None

    def connect(self) -> None:
        """Open a connection, and send what comes before it is slow."""
        plain = socket.socket()
        # Before it connects: the other side never sees a wider window.
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        plain.bind(self._place)
        plain.connect((HOST, self._proxy.port))
        self._connection = self._trusted.wrap_socket(plain, server_hostname=HOST)
        self._connection.sendall(self._begin.encode())
        self._connection.setblocking(False)
        self.connected += 1

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
def slow_clients(proxy: Proxy, stay: str, bearer: str) -> Iterator[Sequence[Slow]]:
    """Hold on to the proxy with slow clients, from when all are connected."""
    clients = [Slow(number, proxy, stay, bearer) for number in range(CLIENTS)]

    def go_on(ending: Event) -> None:
        while not ending.wait(DRIP_SECONDS):
            for client in clients:
                client.go_on()

    try:
        for client in clients:
            client.connect()
        with running([go_on]):
            yield clients
    finally:
        for client in clients:
            client.close()
