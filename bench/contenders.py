"""Who is compared: each a server of its own on the same database, with the same token."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import requests
from cryptography.fernet import Fernet

from bench.before import Build
from bench.cluster import Database, Fill, database
from demo.hospital import fill
from tests.app.provider import AUDIENCE, ISSUER, key_set, rsa, sign
from tests.hospital_http import answer, serving
from tests.live import HOST, ROOT, free_ports
from tests.redis_server import started_redis

PEERS = Path(__file__).parent / "peers"
BASE_URL = "https://127.0.0.1/fhir/v3"
WORKERS, THREADS = 2, 16
CLIENT = "client-1"


@cache
def token() -> str:
    """Return the token of all requests, good for two hours."""
    return sign(client_id=CLIENT, exp=int(time.time()) + 7200)


@dataclass(frozen=True, slots=True)
class Around:
    """What contenders share; the identity provider's key is at a URL, and in a file."""

    database: Database
    redis: str
    key_set_url: str
    public_key: Path
    scratch: Path


@contextmanager
def surroundings(kept: Path, stays: int, fill: Fill = fill) -> Iterator[Around]:
    """Start all that a run needs, on a kept hospital of so many stays."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        database(kept, stays, fill) as filled,
        started_redis() as redis,
        serving(answer(key_set(rsa()))) as url,
    ):
        file = Path(folder) / "public-key.pem"
        file.write_bytes(rsa().as_pem(private=False))
        yield Around(filled, redis.url, url, file, Path(folder))


@dataclass(frozen=True, slots=True)
class Contender:
    """A server to start."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    port: int


@dataclass(frozen=True, slots=True)
class Running:
    """A contender that is started."""

    contender: Contender
    process: "subprocess.Popen[bytes]"

    def memory(self) -> list[float]:
        """Return the proportional share of memory (PSS) of each process that answers, in MB."""
        answering = [each for each in tree(self.process.pid) if not each.children()]
        return [each.memory_full_info().pss / 2**20 for each in answering]


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all that it started."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU of a process and all that it started."""
    seconds = 0.0
    for process in tree(pid):
        # A process of the database may have ended meanwhile.
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds += times.user + times.system
    return seconds


def answers(port: int) -> bool:
    """Return whether somebody answers requests on a port, whatever the answer."""
    try:
        requests.get(f"http://{HOST}:{port}/", timeout=10)
    except requests.RequestException:
        return False
    return True


@contextmanager
def started(contender: Contender, scratch: Path) -> Iterator[Running]:
    """Start a contender, wait for its first answer, and end it."""
    began = time.monotonic()
    log = scratch / f"{contender.name.replace(' ', '-')}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            contender.command,
            env={**os.environ, **contender.environ},
            # gunicorn reads gunicorn.conf.py where it stands: ours is ours alone.
            cwd=log.parent,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        while not answers(contender.port):
            if process.poll() is not None or time.monotonic() > began + 60:
                raise SystemExit(f"{contender.name}: {log.read_text()[-2000:]}")
            time.sleep(0.01)
        yield Running(contender, process)
    finally:
        process.terminate()
        process.wait(60)


def contenders(around: Around, before: Build | None) -> list[Contender]:
    """Return everybody."""
    dutiful = {
        "BENCH_DATABASE": around.database.libpq,
        "BENCH_BASE_URL": BASE_URL,
        "BENCH_REDIS": around.redis,
        "BENCH_TOKEN": token(),
        "PROMETHEUS_MULTIPROC_DIR": str(around.scratch),
    }
    earlier = [service("before", around, before)] if before else []
    return [
        _flask("floor", {}),
        _flask("dutiful", dutiful),
        *[service("ours", around, Build()), *earlier],
        *[_node(around), _hapi(around)],
    ]


def service(
    name: str,
    around: Around,
    build: Build,
    mapping: str = "mappings/demo/demo.yaml",
    workers: int = WORKERS,
) -> Contender:
    """Return the service as shipped, of this build or another one."""
    port = free_ports()
    settings = {
        "BASE_URL": BASE_URL,
        "ISSUER": ISSUER,
        "AUDIENCE": AUDIENCE,
        "KEY_SET_URL": around.key_set_url,
        "MAPPING": str(build.root / mapping),
        "REDIS_URL": around.redis,
        "SEAL_KEYS": Fernet.generate_key().decode(),
        "BIND": f"127.0.0.1:{port}",
        "OPERATIONS_BIND": f"127.0.0.1:{free_ports()}",
        "PLAIN_HTTP": "loopback",
        "WORKERS": str(workers),
        "THREADS": str(THREADS),
        # Counted as ever; the bench sends more than a client may.
        "CLIENT_REQUESTS_PER_MINUTE": "100000000",
        "ADDRESS_REQUESTS_PER_MINUTE": "100000000",
    }
    environ = {f"ENCOUNTERS_{key}": text for key, text in settings.items()}
    environ |= {"PAS_URL": around.database.sqlalchemy, "PYTHONPATH": str(build.root)}
    return Contender(name, [build.python, "-m", "app.cli", "serve"], environ, port)


def _flask(module: str, environ: Mapping[str, str]) -> Contender:
    port = free_ports()
    options = f"--worker-class gthread --workers {WORKERS} --threads {THREADS}"
    options += " --keep-alive 75 --no-control-socket --log-level warning"
    command = [sys.executable, "-m", "gunicorn", *options.split()]
    command += ["--bind", f"127.0.0.1:{port}", f"bench.{module}:create_app()"]
    return Contender(module, command, {**environ, "PYTHONPATH": str(ROOT)}, port)


def _node(around: Around) -> Contender:
    port, place = free_ports(), PEERS / "node"
    environ = {"NODE_ENV": "production", "PROCESSES": str(WORKERS)}
    environ |= {**_peer(port, around), "DATABASE_URL": around.database.libpq}
    command = ["node", str(place / "server.js")]
    return Contender("node ×2", command, environ, port)


def _hapi(around: Around) -> Contender:
    port, built = free_ports(), PEERS / "hapi" / "target"
    classes = f"{built}/classes:{built}/dependency/*"
    command = ["java", "-Xmx512m", "-cp", classes, "bench.Peer"]
    environ = {**_peer(port, around), "JDBC_URL": around.database.jdbc}
    return Contender("hapi", command, environ, port)


def _peer(port: int, around: Around) -> dict[str, str]:
    return {
        **{"PORT": str(port), "PUBLIC_KEY": str(around.public_key)},
        **{"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "BASE_URL": BASE_URL},
    }
