"""A source that takes its time: how many answers a second, and what others keep of theirs."""

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench.cluster import Database
from bench.contenders import WORKERS, Running, ours, started
from bench.load import Load, LoadError
from bench.scenarios import Call, Scenario
from bench.tokens import Identity

LATENCY = 0.2
CLIENTS = 64
CONNECTIONS = 54
"""What bench/slow.yaml gives the far source in each process.

As docs/operators.md has it: 64 calls under way ÷ 0.6 ÷ 2 processes. Clients that keep their
connections are not shared out evenly: one process often has forty of the 64.
"""

THREADS = 2 * CONNECTIONS
_HANGS = 3600.0


@dataclass(frozen=True, slots=True)
class Slow:
    """Figures of a slow source; `kept` is what reads of another keep while it hangs."""

    per_second: float
    cpu_share: float
    before: float
    during: float

    @property
    def limit(self) -> float:
        """Return what connections and latency allow, in requests a second."""
        return min(CLIENTS, WORKERS * CONNECTIONS) / LATENCY

    @property
    def kept(self) -> float:
        """Return the share of reads that are kept."""
        return self.during / self.before


class _Far:
    """An HTTP API with one stay, which answers after a while; `delay` in seconds."""

    def __init__(self) -> None:
        self.delay = LATENCY
        self._stay = _answer(
            {"id": 1, "ipp": 1, "etat": "S", "dateEntree": "2024-03-30T08:15:00"}
        )
        self._nothing = _answer({"nombre": 0, "resultats": []})

    async def talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(self.delay)
                is_read = head.startswith(b"GET /sejours/")
                writer.write(self._stay if is_read else self._nothing)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


def _answer(told: object) -> bytes:
    body = orjson.dumps(told)
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    return f"{head}{len(body)}\r\n\r\n".encode() + body


@contextmanager
def _far() -> Iterator[tuple[_Far, str]]:
    far, loop = _Far(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    starting = asyncio.start_server(far.talk, "127.0.0.1", 0, backlog=256)
    server = asyncio.run_coroutine_threadsafe(starting, loop).result()
    try:
        yield far, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(_end_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def measure(
    database: Database,
    redis: str,
    identity: Identity,
    load: Load,
    reads: Scenario,
    scratch: Path,
    seconds: int,
) -> Slow:
    """Ask the far source from 64 clients, then the near one while the far one hangs."""
    with _far() as (far, url):
        source = {"PAS_URL": database.sqlalchemy, "FAR_URL": url}
        mapping = Path(__file__).parent / "slow.yaml"
        asked = ours(source, mapping, redis, identity, threads=THREADS)
        with started(asked, scratch / "slow.log") as running:
            near = [Call(f"/fhir/v3/Encounter/n-{item[0]}") for item in reads.items]
            slow = [Call("/fhir/v3/Encounter/f-1")]
            load.run(running, near, 1)
            load.run(running, slow, 1, CLIENTS)
            # In two seconds a client has nine answers or ten: each is a tenth of them.
            figure = load.run(running, slow, 10 * seconds, CLIENTS)
            before = statistics.median(
                load.run(running, near, seconds, 8).per_second for _ in range(3)
            )
            far.delay = _HANGS
            with ThreadPoolExecutor(2) as pool:
                hanging = pool.submit(
                    _insist, load, running, slow[0], 4.0 * seconds + 1
                )
                time.sleep(1)
                during = statistics.median(
                    load.run(running, near, seconds, 8).per_second for _ in range(3)
                )
                hanging.result()
            far.delay = 0.0
    share = figure.per_second * figure.cpu / 1e6 / 2
    return Slow(figure.per_second, share, before, during)


def _insist(load: Load, running: Running, call: Call, seconds: float) -> None:
    """Ask the hanging source from as many clients as ever, whatever they are told."""
    until = time.monotonic() + seconds

    def client() -> None:
        while time.monotonic() < until:
            try:
                status, _ = load.ask(running, call)
            except OSError as error:
                raise LoadError("the service gave no answer") from error
            if status != 503:
                raise LoadError(f"a hanging source was answered {status}")
            # A client that is told to come back later does.
            time.sleep(0.2)

    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(client) for _ in range(CLIENTS)]:
            done.result()
