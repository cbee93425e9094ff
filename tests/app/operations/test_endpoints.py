"""A probe that fails by itself is told in the log, as all faults are."""

import logging
import socket
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread

import pytest

from app.operations.endpoints import operations_server
from app.operations.readiness import Watch
from app.operations.scrape import Scraper
from tests.live import HOST


def test_a_probe_that_fails_by_itself_is_logged_and_the_next_is_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "counter_none.db").write_bytes(b"not ours")
    server = operations_server(f"{HOST}:0", Watch({}, 60), Scraper(tmp_path))
    serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    with caplog.at_level(logging.ERROR):
        assert _told(server.server_port, b"/metrics") == b""
        assert _told(server.server_port, b"/live").startswith(b"HTTP/1.0 200 ")
        server.shutdown()
        serving.join()
        server.server_close()
    (line,) = caplog.records
    assert (line.name, line.message) == (
        "app.operations.endpoints",
        "probe not answered",
    )
    assert line.exc_info
    assert capfd.readouterr().err == ""


def test_probes_that_come_at_once_find_a_place() -> None:
    server = operations_server(f"{HOST}:0", Watch({}, 60))
    with closing(server.socket), ExitStack() as stack:
        for _ in range(50):
            # Nobody has been answered yet, and nobody is sent away to come again.
            place = (HOST, server.server_port)
            stack.enter_context(socket.create_connection(place, 10))


def _told(port: int, path: bytes) -> bytes:
    with socket.create_connection((HOST, port), 60) as connection:
        connection.sendall(b"GET " + path + b" HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(65536), b""))
