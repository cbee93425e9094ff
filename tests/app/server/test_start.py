"""How the service starts and stops: its command, gunicorn's own, signals, exit statuses."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from cryptography.fernet import Fernet

from tests.app.server.running import (
    PATIENCE,
    SERVE,
    edges,
    fetch,
    refused,
    running,
    service_environ,
)
from tests.app.server.slow_source import READ, slowed
from tests.collector import collecting
from tests.hospital_sql import mapping_text
from tests.live import HOST, ROOT, free_ports, listens, wait_until
from tests.redis_server import RedisServer
from toolkit.contract.hospital import EDGES

pytestmark = pytest.mark.system

GUNICORN = ("-m", "gunicorn")
"""With gunicorn.conf.py of the directory."""


@pytest.mark.parametrize("command", [SERVE, GUNICORN], ids=["serve", "gunicorn"])
def test_it_starts_by_either_command_and_arguments_of_gunicorn_win(
    tmp_path: Path, redis_server: RedisServer, command: Sequence[str]
) -> None:
    key = tmp_path / "seal_keys"
    key.write_text(Fernet.generate_key().decode() + "\n")
    environ = {
        "GUNICORN_CMD_ARGS": "--workers=2",
        # As the unit has them: secrets from files.
        "ENCOUNTERS_SEAL_KEYS_FILE": str(key),
    }
    settings = {"REDIS_URL": redis_server.url, "SEAL_KEYS": ""}
    with running(tmp_path, edges(tmp_path), environ, command, **settings) as service:
        assert service.get(READ).status == 200
        assert service.page("Encounter?_count=1").status == 200
        service.until(lambda: len(service.workers()) == 2)
        assert psutil.Process(service.process.pid).name() == psutil.Process().name()
        for worker in service.workers():
            soft, _ = worker.rlimit(resource.RLIMIT_CORE)
            assert soft == 0


def test_what_it_cannot_start_with_is_reported_whole(tmp_path: Path) -> None:
    mapping = edges(tmp_path)
    wrong = {"THREADS": "many", "ISSUER": ""}
    for command in (SERVE, GUNICORN):
        environ = service_environ(mapping, free_ports(2), **wrong)
        status, text = refused(environ, command)
        assert status == 2
        named = [line.split()[0] for line in text.splitlines()]
        assert named == ["ENCOUNTERS_ISSUER", "ENCOUNTERS_THREADS"]
    text = mapping.read_text("utf-8").replace("\npatient:", "\npatien:")
    mapping.write_text(text.replace("time_zone:", "time_zon:", 1), "utf-8")
    status, text = refused(service_environ(mapping, free_ports(2)), GUNICORN)
    assert status == 2
    lines = text.splitlines()
    assert all(line.startswith(f"{mapping}:") for line in lines)
    assert "'patien'" in text
    assert "'time_zon'" in text


def test_a_connection_without_verified_tls_is_refused(tmp_path: Path) -> None:
    mapping = tmp_path / "hospital.yaml"
    mapping.write_text(mapping_text(EDGES).replace(", may_write: true", ""), "utf-8")
    environ = {"PAS_URL": "postgresql://us:hunter2@pas.invalid/pas"}
    first = free_ports(2)
    status, text = refused(service_environ(mapping, first, environ))
    assert status == 2
    assert "ENCOUNTERS_UNVERIFIED_TLS=database" in text
    assert "sslmode=verify-full" in text
    assert not re.search("hunter2|pas.invalid|Traceback", text)
    with running(tmp_path, mapping, environ, UNVERIFIED_TLS="database") as service:
        assert service.get(READ).status == 503
    status, text = refused(
        service_environ(mapping, first, environ, REDIS_URL="redis://redis.invalid")
    )
    assert status == 2
    assert "ENCOUNTERS_UNVERIFIED_TLS=redis" in text


def test_no_file_takes_the_place_of_a_closed_stream(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    closing = "os.closerange(0, 3); os.execv(python, [python, *sys.argv[1:]])"
    command = ("-c", f"import os, sys; python = sys.executable; {closing}", *SERVE)
    mapping = edges(tmp_path)
    audit = {"AUDIT": "stdout", "AUDIT_KEY": "k" * 44}
    status, _ = refused(service_environ(mapping, free_ports(2), **audit), command)
    assert status == 2, "nobody would get the events"
    with running(tmp_path, mapping, {}, command, REDIS_URL=redis_server.url) as service:
        assert service.get(READ).status == 200
        (worker,) = service.workers()
        for process in (service.process.pid, worker.pid):
            streams = [Path(f"/proc/{process}/fd/{number}") for number in range(3)]
            assert {file.readlink() for file in streams} == {Path(os.devnull)}


def test_a_stop_ends_requests_under_way_and_refuses_new_ones(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    with (
        slowed(tmp_path, redis_server.url, WORKERS="2") as (source, service),
        ThreadPoolExecutor(1) as threads,
    ):
        children = psutil.Process(service.process.pid).children(recursive=True)
        source.goes_on.clear()
        answer = threads.submit(service.get, READ)
        service.until(lambda: source.held == 1)
        service.process.send_signal(signal.SIGTERM)
        # Where nobody listens, the proxy tries the other instance.
        service.until(lambda: not listens(service.port))
        assert source.held == 1
        source.goes_on.set()
        assert answer.result(PATIENCE).status == 200
        assert service.process.wait(PATIENCE) == 0
        _, alive = psutil.wait_procs(children, PATIENCE)
        assert not alive


def test_a_collector_of_spans_that_hangs_hardly_delays_a_stop(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    settings = {"REDIS_URL": redis_server.url, "TRACING": "true"}
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
        service = stack.enter_context(
            running(tmp_path, edges(tmp_path), environ, **settings)
        )
        assert service.get(READ).status == 200
        service.until(lambda: collector.spans)
        collector.goes_on.clear()
        assert service.get(READ).status == 200
        service.process.terminate()
        began = time.monotonic()
        assert service.process.wait(PATIENCE) == 0
        # Its own time-out is ten seconds.
        assert time.monotonic() - began < 8


class Starting:
    """A start under way, in a directory of its own for temporary files."""

    def __init__(self, directory: Path, environ: dict[str, str], first: int) -> None:
        self.first = first
        self.log, self.temporary = directory / "log", directory / "tmp"
        self.temporary.mkdir(exist_ok=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *SERVE],
                cwd=ROOT,
                env={**environ, "TMPDIR": str(self.temporary)},
                stderr=log,
            )
        # Before Python runs our first line, a signal does to it what it does to any program.
        wait_until(self._defines_signals, self.log)

    def _defines_signals(self) -> bool:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        masks = re.findall(r"^Sig(?:Ign|Cgt):\s*(\w+)", status, re.MULTILINE)
        return any(int(mask, 16) >> (signal.SIGHUP - 1) & 1 for mask in masks)

    def lives(self) -> bool:
        """Return whether a worker answers probes."""
        live = f"http://{HOST}:{self.first + 1}/live"
        return fetch(live, {}, PATIENCE).status == 200

    def stop(self) -> None:
        """Stop it; nothing of it remains."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.terminate()
        # By the signal itself before our first line under gunicorn.
        assert self.process.wait(20) in {0, -signal.SIGTERM}, self.log.read_text()
        _, alive = psutil.wait_procs(children, 20)
        assert not alive
        assert not listens(self.first)
        assert os.listdir(self.temporary) == []


@pytest.mark.parametrize("name", ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH"])
def test_no_signal_for_a_running_service_ends_one_that_starts(
    tmp_path: Path, redis_server: RedisServer, name: str
) -> None:
    first = free_ports(2)
    environ = service_environ(edges(tmp_path), first, REDIS_URL=redis_server.url)
    start = Starting(tmp_path, environ, first)
    sent = 0
    while not start.lives():
        assert start.process.poll() is None, start.log.read_text()
        start.process.send_signal(signal.Signals[name])
        sent += 1
        time.sleep(0.1)
    start.process.send_signal(signal.Signals[name])
    assert sent > 3
    wait_until(start.lives, start.log)
    text = start.log.read_text("utf-8")
    if name == "SIGHUP":
        wait_until(lambda: "mapping passed" in start.log.read_text(), start.log)
    assert "Traceback" not in text
    assert start.process.poll() is None, text
    start.stop()


def test_a_stop_at_every_moment_of_the_start_leaves_nothing(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    first = free_ports(2)
    environ = service_environ(edges(tmp_path), first, REDIS_URL=redis_server.url)
    moment, is_up = 0.0, False
    while not is_up:
        start = Starting(tmp_path, environ, first)
        time.sleep(moment)
        is_up = start.lives()
        start.stop()
        moment += 0.2
    assert moment > 0.5


def test_probes_see_that_the_file_of_a_socket_has_gone(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    place = tmp_path / "encounters.sock"
    settings = {"BIND": f"unix:{place}", "REDIS_URL": redis_server.url}
    with running(tmp_path, edges(tmp_path), **settings) as service:
        place.unlink()
        assert service.operations("/live").status == 503
        assert service.operations("/ready").status == 503
        place.touch()
