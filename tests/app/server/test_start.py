"""How the service starts and stops: its command, gunicorn's own, signals, exit statuses."""

import os
import re
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from cryptography.fernet import Fernet

from tests.app.server.running import (
    PATIENCE,
    READ,
    SERVE,
    Running,
    edges,
    running,
    service_environ,
    slowed,
    starting,
)
from tests.hospital_sql import Tables, mapping_text
from tests.live import ROOT, free_ports, listens
from toolkit.contract.hospital import EDGES

pytestmark = pytest.mark.system

GUNICORN = ("-m", "gunicorn")
"""With gunicorn.conf.py of the directory."""


@pytest.mark.parametrize("command", [SERVE, GUNICORN], ids=["serve", "gunicorn"])
def test_it_starts_by_either_command_and_arguments_of_gunicorn_win(
    tmp_path, redis_server, command
):
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


MAPPING = mapping_text(EDGES).replace(", may_write: true", "")


@pytest.fixture
def refusal(tmp_path):
    """Return a function that starts a service which refuses, and returns what it reports."""

    def start(mapping=MAPPING, environ=None, command=SERVE, **settings):
        (file := tmp_path / "hospital.yaml").write_text(mapping, "utf-8")
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=service_environ(file, free_ports(2), environ or {}, **settings),
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        return [line for line in done.stderr.splitlines() if not line.startswith("{")]

    return start


@pytest.mark.parametrize("command", [SERVE, GUNICORN], ids=["serve", "gunicorn"])
def test_what_it_cannot_start_with_is_reported_whole(refusal, tmp_path, command):
    lines = refusal(command=command, THREADS="many", ISSUER="")
    named = [line.split()[0] for line in lines]
    assert named == ["ENCOUNTERS_ISSUER", "ENCOUNTERS_THREADS"]
    wrong = MAPPING.replace("\npatient:", "\npatien:").replace("_zone:", "_zon:", 1)
    lines = refusal(wrong, command=command)
    assert all(line.startswith(f"{tmp_path}/hospital.yaml:") for line in lines)
    for key in ("'patien'", "'time_zon'"):
        assert any(key in line for line in lines)


def test_it_refuses_a_source_without_a_usable_address(refusal):
    for environ, reported in (({}, "PAS_URL"), ({"PAS_URL": "nosuch://x/y"}, "nosuch")):
        (line,) = refusal(environ=environ)
        assert reported in line


def test_it_refuses_a_bad_mapping_with_its_findings(refusal, tmp_path):
    """Decision 44: a column that the source lacks is one."""
    text = edges(tmp_path).read_text("utf-8")
    lines = refusal(text.replace("{from: began", "{from: begun"))
    assert any("begun" in line for line in lines)


def test_it_refuses_an_account_that_may_write(refusal, postgresql_url):
    Tables(postgresql_url, EDGES).close()
    (line,) = refusal(environ={"PAS_URL": postgresql_url})
    assert "source.may_write" in line


def test_it_refuses_identifiers_of_examples_off_loopback(refusal, tmp_path):
    url = f"sqlite:///{edges(tmp_path).with_name('pas.db')}"
    text, base = mapping_text(EDGES, url), "https://encounters.example.org/fhir/v3"
    named = [
        str(number)
        for number, line in enumerate(text.splitlines(), 1)
        if "1.2.250.1.999" in line or "example.org" in line
    ]
    (line,) = refusal(text, BASE_URL=base)
    assert line.startswith(f"{tmp_path}/hospital.yaml:{named[0]}:")
    assert line.endswith(f"lines {', '.join(named)}")


def test_a_connection_without_verified_tls_is_refused(refusal, tmp_path):
    environ = {"PAS_URL": "postgresql://us:hunter2@pas.invalid/pas"}
    text = "\n".join(refusal(environ=environ))
    assert "ENCOUNTERS_UNVERIFIED_TLS=database" in text
    assert "sslmode=verify-full" in text
    assert not re.search("hunter2|pas.invalid", text)
    mapping = tmp_path / "hospital.yaml"
    with running(tmp_path, mapping, environ, UNVERIFIED_TLS="database") as service:
        assert service.get(READ).status == 503
    lines = refusal(environ=environ, REDIS_URL="redis://redis.invalid")
    assert "ENCOUNTERS_UNVERIFIED_TLS=redis" in lines[0]


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path, redis_server):
    closing = "os.closerange(0, 3); os.execv(python, [python, *sys.argv[1:]])"
    command = ("-c", f"import os, sys; python = sys.executable; {closing}", *SERVE)
    mapping = edges(tmp_path)
    with running(tmp_path, mapping, {}, command, REDIS_URL=redis_server.url) as service:
        assert service.get(READ).status == 200
        (worker,) = service.workers()
        for process in (service.process.pid, worker.pid):
            streams = [Path(f"/proc/{process}/fd/{number}") for number in range(3)]
            assert {file.readlink() for file in streams} == {Path(os.devnull)}


def test_a_stop_ends_requests_under_way_and_refuses_new_ones(tmp_path, redis_server):
    with (
        slowed(tmp_path, redis_server.url, WORKERS="2") as (source, service),
        ThreadPoolExecutor(1) as threads,
    ):
        children = psutil.Process(service.process.pid).children(recursive=True)
        source.goes_on.clear()
        answer = threads.submit(service.get, READ)
        service.until(lambda: len(source.held) == 1)
        service.process.send_signal(signal.SIGTERM)
        # Where nobody listens, the proxy tries the other instance.
        service.until(lambda: not listens(service.port))
        assert len(source.held) == 1
        source.goes_on.set()
        assert answer.result(PATIENCE).status == 200
        assert service.process.wait(PATIENCE) == 0
        _, alive = psutil.wait_procs(children, PATIENCE)
        assert not alive


def handles_signals(service):
    """Return whether a process ignores or handles SIGHUP."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    masks = re.findall(r"^Sig(?:Ign|Cgt):\s*(\w+)", status, re.MULTILINE)
    return any(int(mask, 16) >> (signal.SIGHUP - 1) & 1 for mask in masks)


@pytest.fixture
def start(tmp_path, redis_server):
    """Begin a start; when it has been stopped nothing of it remains (decision 44)."""
    (temporary := tmp_path / "tmp").mkdir()
    first = free_ports(2)
    environ = service_environ(edges(tmp_path), first, REDIS_URL=redis_server.url)
    before = {*os.listdir(tmp_path)}
    with starting(tmp_path, {**environ, "TMPDIR": str(temporary)}, first) as service:
        # Before Python runs our first line, a signal does to it what it does to any program.
        service.until(lambda: handles_signals(service))
        yield service
        children = psutil.Process(service.process.pid).children(recursive=True)
    _, alive = psutil.wait_procs(children, PATIENCE)
    assert not alive
    assert not listens(first)
    assert os.listdir(temporary) == []
    assert {*os.listdir(tmp_path)} == before | {"log"}


MOMENTS = {
    "at once": lambda _: True,
    "files": lambda start: os.listdir(start.log.with_name("tmp")),
    "workers": Running.workers,
    "answers": lambda start: start.operations("/live").status == 200,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stop_at_any_moment_of_the_start_leaves_nothing(start, moment):
    start.until(lambda: MOMENTS[moment](start))


def test_no_signal_for_a_running_service_ends_one_that_starts(start):
    for moment in MOMENTS.values():
        start.until(lambda moment=moment: moment(start))
        for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH"):
            start.process.send_signal(signal.Signals[name])
    start.until(lambda: start.events("mapping passed"))
    start.until(lambda: MOMENTS["answers"](start))
    assert "Traceback" not in start.log.read_text("utf-8")


def test_probes_see_that_the_file_of_a_socket_has_gone(tmp_path, redis_server):
    place = tmp_path / "encounters.sock"
    settings = {"BIND": f"unix:{place}", "REDIS_URL": redis_server.url}
    with running(tmp_path, edges(tmp_path), **settings) as service:
        place.unlink()
        assert service.operations("/live").status == 503
        assert service.operations("/ready").status == 503
        place.touch()
