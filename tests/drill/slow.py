"""200 slow clients of five kinds hold on to the proxy, while probes and reads are timed.

Times are reported, and judged by who reads them: a busy machine is slower.
"""

import argparse
import asyncio
import http.client
import json
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from urllib.request import urlopen

from tests.app import provider
from tests.deploy.proxies import Proxy
from tests.drill.deployment import Deployment, Instance
from tests.drill.hospital import made_up, work
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.sentinels import until

Probe = Callable[[], int]
"""Asks, and returns the status."""

CLIENTS = 200
AIM = 0.1
EVERY = 0.2
DRIP_SECONDS = 0.5
BEGIN_SECONDS = 10.0
"""The clients come one after the other, in so long."""

FAR = "listen 443 ssl", "listen 443 ssl sndbuf=32k"
"""On the loopback interface a connection holds megabytes that nobody reads."""

SETTLED = 20
"""After so many rounds each worker has checked what `/ready` reports."""

RECEIVED, PAGES = 1024, 4
"""The room of a slow reader, and how many pages of 100 it asks for."""

_HEADINGS = ("Probe", "Clients", "Sent", "Median", "99 %", "Slowest", "Over 0.1 s")


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Time probes without slow clients and with them; yield each that failed."""
    hospital = made_up()
    with ExitStack() as stack:
        redis = RedisServer()
        stack.callback(redis.remove)
        redis.start()
        deployment = Deployment(stack, directory, hospital, redis.url, FAR)
        bearer = provider.bearer(deployment.keys.token("probe"))
        stay = f"/fhir/v3/Encounter/{work(hospital).reads[0]}"
        probes = _probes(deployment, stay, bearer)
        for _ in range(SETTLED):
            until(lambda: all(probe() == 200 for probe in probes.values()))
        print("| " + " | ".join(_HEADINGS) + " |\n" + "|---" * len(_HEADINGS) + "|")
        yield from _timed(probes, "none", options.seconds)
        slow = subprocess.Popen(
            [sys.executable, "-m", "tests.drill.slow", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert slow.stdin is not None
        assert slow.stdout is not None
        slow.stdin.write(json.dumps([deployment.port, stay, bearer]) + "\n")
        slow.stdin.flush()
        # It says when all are connected, and at its end how often they were.
        assert slow.stdout.readline()
        yield from _timed(probes, f"{CLIENTS} slow ones", 3 * options.seconds)
        slow.send_signal(signal.SIGTERM)
        print(f"\nConnections that slow clients had: {slow.communicate(timeout=60)[0]}")


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
    return instance.status(path, instance.port + 1)[0]


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


# ---- the slow clients, in a process of their own

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Slow:
    """Slow clients: when the proxy has closed a connection, the next one is opened."""

    def __init__(self, proxy: Proxy, stay: str, bearer: str) -> None:
        self._proxy, self._trusted = proxy, proxy.trust()
        self._request = f"GET {stay} HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
        self.connected: Counter[str] = Counter()
        self.kinds: dict[str, Callable[[Pair], Awaitable[None]]] = {
            "slow headers": self._slow_headers,
            "half requests": self._half_requests,
            "silence": self._silence,
            "slow bodies": self._slow_bodies,
            "slow readers": self._slow_readers,
        }

    async def run(self, number: int) -> None:
        """Be one of the clients, for ever."""
        name = list(self.kinds)[number % len(self.kinds)]
        await asyncio.sleep(BEGIN_SECONDS * number / CLIENTS)
        while True:
            with suppress(OSError, ssl.SSLError, EOFError):
                pair = await self._connect(number)
                self.connected[name] += 1
                try:
                    await self.kinds[name](pair)
                finally:
                    pair[1].transport.abort()
            await asyncio.sleep(DRIP_SECONDS)

    async def _connect(self, number: int) -> Pair:
        plain = socket.socket()
        # Before it connects: the other side never sees a wider window.
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        plain.setblocking(False)
        plain.bind((f"127.0.1.{number % 4 + 1}", 0))
        await asyncio.get_running_loop().sock_connect(plain, (HOST, self._proxy.port))
        pair = await asyncio.open_connection(
            sock=plain, ssl=self._trusted, server_hostname=HOST, limit=RECEIVED
        )
        # Else TLS would read half a megabyte ahead.
        pair[1].transport.set_read_buffer_limits(RECEIVED)  # type: ignore[attr-defined]
        return pair

    async def _drip(self, pair: Pair, begin: str) -> None:
        pair[1].write(begin.encode())
        while True:
            await pair[1].drain()
            await asyncio.sleep(DRIP_SECONDS)
            pair[1].write(b"a")

    async def _slow_headers(self, pair: Pair) -> None:
        await self._drip(pair, self._request + "X-Slow: ")

    async def _half_requests(self, pair: Pair) -> None:
        pair[1].write(self._request.encode())
        await pair[0].read()

    async def _silence(self, pair: Pair) -> None:
        await pair[0].read()

    async def _slow_bodies(self, pair: Pair) -> None:
        begin = self._request.replace("GET ", "POST ", 1)
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        await self._drip(pair, f"{begin}{form}Content-Length: 60000\r\n\r\n_id=")

    async def _slow_readers(self, pair: Pair) -> None:
        # More than the buffers between us hold: the proxy waits for the reader.
        _, _, rest = self._request.split(" ", 2)
        search = f"GET /fhir/v3/Encounter?_count=100 {rest}\r\n"
        pair[1].write(search.encode() * PAGES)
        while await pair[0].read(RECEIVED):
            await asyncio.sleep(DRIP_SECONDS)


async def _slow_clients(directory: Path) -> None:
    port, stay, bearer = json.loads(sys.stdin.readline())
    slow = Slow(Proxy(port, directory), stay, bearer)
    tasks = [asyncio.create_task(slow.run(number)) for number in range(CLIENTS)]
    while slow.connected.total() < CLIENTS:
        await asyncio.sleep(EVERY)
    print("all are connected", flush=True)
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    await ending.wait()
    for task in tasks:
        task.cancel()
    print(json.dumps(slow.connected))


if __name__ == "__main__":
    asyncio.run(_slow_clients(Path(sys.argv[1])))
