"""Who is compared: each a server of its own on the same database, with the same token."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from cryptography.fernet import Fernet

from bench.before import ROOT, Build
from bench.cluster import Database
from bench.tokens import AUDIENCE, ISSUER, Identity
from tests.live import answers, free_ports

PEERS = Path(__file__).parent / "peers"
BASE_URL = "https://127.0.0.1/fhir/v3"
WORKERS, THREADS = 2, 16
START_SECONDS = 60
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Contender:
    """A server to start; `missing` says why it cannot be."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    port: int
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """One that is started; `seconds` is what that took, to the first answer."""

    contender: Contender
    process: "subprocess.Popen[bytes]"
    seconds: float

    def processes(self) -> list[psutil.Process]:
        """Return its processes, those of gunicorn's and node's workers too."""
        return tree(self.process.pid)

    def workers(self) -> list[psutil.Process]:
        """Return the processes that answer requests."""
        return [each for each in self.processes() if not each.children()]

    def cpu(self) -> float:
        """Return the seconds of CPU that all its processes have used."""
        return cpu_of(self.processes())


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all that it started."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def cpu_of(processes: Sequence[psutil.Process]) -> float:
    """Return the seconds of CPU of some processes, as the operating system counts them."""
    total = 0
    for process in processes:
        try:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2]
        except OSError:
            continue
        total += sum(map(int, fields.split()[11:13]))
    return total / _TICKS


def memory_of(process: psutil.Process) -> float:
    """Return the proportional share of memory (PSS) of a process, in MB."""
    rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    (line,) = (line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024


@contextmanager
def started(contender: Contender, log: Path) -> Iterator[Running]:
    """Start a contender, wait for its first answer, and end it."""
    began = time.monotonic()
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
            if process.poll() is not None or time.monotonic() > began + START_SECONDS:
                raise SystemExit(f"{contender.name}: {log.read_text()[-2000:]}")
            time.sleep(0.01)
        yield Running(contender, process, time.monotonic() - began)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def contenders(
    database: Database,
    redis: str,
    identity: Identity,
    bodies: Path,
    before: Build | None,
) -> list[Contender]:
    """Return everybody, those that cannot be started here too."""
    dutiful = {
        "BENCH_DATABASE": database.libpq,
        "BENCH_BASE_URL": BASE_URL,
        "BENCH_REDIS": redis,
        "BENCH_TOKEN": identity.token,
        "PROMETHEUS_MULTIPROC_DIR": str(bodies.parent),
    }
    earlier = [service("before", before, database, redis, identity)] if before else []
    return [
        _flask("floor", {"FLOOR_BODIES": str(bodies)}),
        _flask("dutiful", dutiful),
        service("ours", Build(ROOT), database, redis, identity),
        *earlier,
        _node(database, identity),
        _hapi(database, identity),
    ]


def service(
    name: str,
    build: Build,
    database: Database,
    redis: str,
    identity: Identity,
    mapping: str = "mappings/demo/demo.yaml",
    workers: int = WORKERS,
) -> Contender:
    """Return the service as shipped, of this build or another one."""
    port = free_ports()
    environ = settings(
        build.root / mapping,
        redis,
        identity,
        BIND=f"127.0.0.1:{port}",
        OPERATIONS_BIND=f"127.0.0.1:{free_ports()}",
        PLAIN_HTTP="loopback",
        WORKERS=str(workers),
        THREADS=str(THREADS),
    )
    environ |= {"PAS_URL": database.sqlalchemy, "PYTHONPATH": str(build.root)}
    return Contender(name, [build.python, "-m", "app.cli", "serve"], environ, port)


def settings(
    mapping: Path, redis: str, identity: Identity, **more: str
) -> dict[str, str]:
    """Return the service's settings as environment variables."""
    values = {
        "BASE_URL": BASE_URL,
        "ISSUER": ISSUER,
        "AUDIENCE": AUDIENCE,
        "KEY_SET_URL": identity.key_set_url,
        "MAPPING": str(mapping),
        "REDIS_URL": redis,
        "SEAL_KEYS": Fernet.generate_key().decode(),
        # Counted as ever; the bench sends more than a client may.
        "CLIENT_REQUESTS_PER_MINUTE": "100000000",
        "ADDRESS_REQUESTS_PER_MINUTE": "100000000",
    }
    return {f"ENCOUNTERS_{key}": text for key, text in (values | more).items()}


def _flask(module: str, environ: Mapping[str, str]) -> Contender:
    port = free_ports()
    command = [sys.executable, "-m", "gunicorn", "--worker-class", "gthread"]
    command += ["--workers", str(WORKERS)]
    command += ["--threads", str(THREADS), "--keep-alive", "75", "--no-control-socket"]
    command += ["--log-level", "warning", "--bind", f"127.0.0.1:{port}"]
    command += [f"bench.{module}:create_app()"]
    return Contender(module, command, {**environ, "PYTHONPATH": str(ROOT)}, port)


def _peer(port: int, identity: Identity) -> dict[str, str]:
    return {
        "PORT": str(port),
        "PUBLIC_KEY": str(identity.public_key),
        "ISSUER": ISSUER,
        "AUDIENCE": AUDIENCE,
        "BASE_URL": BASE_URL,
        "NODE_ENV": "production",
    }


def _node(database: Database, identity: Identity) -> Contender:
    port, place = free_ports(), PEERS / "node"
    missing = ""
    if shutil.which("node") is None:
        missing = "there is no node on this machine"
    elif not (place / "node_modules").is_dir():
        missing = "not built: `make peers`"
    environ = _peer(port, identity)
    environ |= {"DATABASE_URL": database.libpq, "PROCESSES": str(WORKERS)}
    command = ["node", str(place / "server.js")]
    return Contender("node ×2", command, environ, port, missing)


def _hapi(database: Database, identity: Identity) -> Contender:
    port, built = free_ports(), PEERS / "hapi" / "target"
    missing = ""
    if shutil.which("java") is None:
        missing = "there is no Java on this machine"
    elif not list(built.glob("hapi-*.jar")):
        missing = "not built: `make peers`"
    classes = f"{built}/classes:{built}/dependency/*"
    command = ["java", "-Xmx512m", "-cp", classes, "bench.Peer"]
    environ = {**_peer(port, identity), "JDBC_URL": database.jdbc}
    return Contender("hapi", command, environ, port, missing)
