"""A real gunicorn as the service runs it, around an application of a few lines."""

import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from adapters.testing.stays import EDGES
from tests.app import provider
from tests.app.operations.family import is_complete, workers_of
from tests.certificates import certify
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, answers, free_ports, listens, wait_until

THREADS = 4

# It stands in for the service: reads the body, and can fail as an application fails.
APPLICATION = """
from flask import Flask, Response, request
from app.operations.logs import register_request_log
from app.outcomes import register_errors

application = Flask(__name__)
register_request_log(application)
register_errors(application)

@application.post("/body")
@application.post("/fhir/v3/body")
def body():
    return {"read": len(request.get_data())}

@application.get("/long")
@application.get("/fhir/v3/long")
def long():
    return Response(bytes(16_000_000))

@application.get("/page")
def page():
    return Response(bytes(100_000))

@application.get("/scheme")
def scheme():
    return request.scheme

@application.get("/bad-header")
def bad_header():
    answer = Response("x")
    answer.headers._list.append(("X-Bad\\x01", "y"))
    return answer
"""


class Gunicorn(NamedTuple):
    """A running gunicorn and where its log goes."""

    port: int
    log: Path
    process: "subprocess.Popen[bytes]"

    def worker(self) -> psutil.Process:
        """Return the one process that answers."""
        (found,) = workers_of(self.process.pid)
        return found


class Answer(NamedTuple):
    """One answer, read until the server closed the connection."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def standing_in(
    folder: Path, *options: str, status: int = 0, **settings: str
) -> Iterator[Gunicorn]:
    """Run it, with options of gunicorn; it ends with this status and leaves nothing."""
    (folder / "standin.py").write_text(APPLICATION)
    # The process beside the worker reads it, and would end without.
    mapping, url = folder / "mapping.yaml", f"sqlite:///{folder / 'pas.db'}"
    mapping.write_text(mapping_text(EDGES, url), "utf-8")
    Tables(url, EDGES).close()
    log, port = folder / "log", free_ports()
    home = folder / "home"
    home.mkdir()
    chosen = {"BIND": f"{HOST}:{port}", "WORKERS": "1", "THREADS": str(THREADS)}
    environ = os.environ | provider.environ(mapping, **{**chosen, **settings})
    environ |= {"PYTHONPATH": f"{ROOT}:{folder}", "HOME": str(home)}
    environ.pop("XDG_RUNTIME_DIR", None)
    command = [sys.executable, "-m", "gunicorn", "-c", "python:app.operations.server"]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, *options, "standin:application"],
            cwd=folder,
            env=environ,
            stdout=file,
            stderr=file,
        )
    try:
        wait_until(lambda: "--certfile" in options or answers(port), log)
        wait_until(lambda: is_complete(process.pid), log)
        yield Gunicorn(port, log, process)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == status, log.read_text()
    assert list(home.iterdir()) == [], "gunicorn wrote into the home directory"


@contextmanager
def encrypting(
    folder: Path, **settings: str
) -> Iterator[tuple[Gunicorn, ssl.SSLContext]]:
    """Run it where gunicorn ends TLS; yield what a client trusts it by, too."""
    certify(folder, "encounters")
    pair = [folder / f"encounters.{kind}" for kind in ("pem", "key")]
    options = ("--certfile", str(pair[0]), "--keyfile", str(pair[1]))
    with standing_in(folder, *options, **settings) as service:
        wait_until(lambda: listens(service.port), service.log)
        yield service, ssl.create_default_context(cafile=pair[0])


def exchange(port: int, request: bytes, seconds: float = 60) -> Answer:
    """Send a request over a connection of its own; return the answer."""
    with socket.create_connection((HOST, port), seconds) as connection:
        connection.sendall(request)
        return read_answer(connection)


def read_answer(connection: socket.socket) -> Answer:
    """Read one answer, until the server closes."""
    data = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Answer(int(first.split()[1]), headers, body)
