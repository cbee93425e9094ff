"""The nginx of docs/operators.md runs, and tells the service what it saw itself."""

import http.client
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

from tests.app.operations.standin import THREADS, standing_in
from tests.certificates import certify
from tests.docs.pages import OPERATORS, blocks, section
from tests.live import HOST, free_ports, listens, wait_until

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")


class Proxy(NamedTuple):
    """The port of a running nginx, and where its files are."""

    port: int
    directory: Path


class _Echo(BaseHTTPRequestHandler):
    """Answers with the headers that it was sent."""

    def do_GET(self) -> None:
        body = json.dumps(dict(self.headers.items())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[int]:
    """Return the port of a server that stands for the service."""
    server = ThreadingHTTPServer((HOST, 0), _Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def proxy(upstream: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Run the nginx of the page before the echo; its log tells of no patient."""
    directory = tmp_path_factory.mktemp("nginx")
    with nginx(directory, upstream) as made:
        yield made
    logged = (directory / "encounters.log").read_text()
    assert "200" in logged
    assert "4711" not in logged


@contextmanager
def nginx(directory: Path, upstream: int) -> Iterator[Proxy]:
    """Run the nginx of the page, its files and ports moved."""
    port = free_ports()
    for name in ("encounters", "clients"):
        certify(directory, name)
    (shown,) = blocks(section(OPERATORS.read_text("utf-8"), "HTTPS"), "nginx")
    text = shown.text.replace("/etc/nginx/tls", str(directory))
    text = text.replace("/var/log/nginx", str(directory))
    text = text.replace("127.0.0.1:8000", f"{HOST}:{upstream}")
    text = text.replace("listen 443 ssl", f"listen {HOST}:{port} ssl")
    # What Debian's package says around such a file, in a directory of the test's own.
    temporary = "".join(
        f"{name}_temp_path {directory}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = directory / "nginx.conf"
    file.write_text(
        f"daemon off;\npid {directory}/pid;\nerror_log {directory}/error.log crit;\n"
        f"events {{}}\nhttp {{\n{temporary}{text}}}\n"
    )
    command = [str(NGINX), "-c", str(file), "-e", str(directory / "error.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    process = subprocess.Popen(command)
    wait_until(lambda: listens(port), file)
    yield Proxy(port, directory)
    process.terminate()
    process.wait(60)


def trust(directory: Path, client: str | None) -> ssl.SSLContext:
    """Return what a client trusts, and shows where it has a certificate."""
    trusted = ssl.create_default_context(cafile=directory / "encounters.pem")
    if client is not None:
        trusted.load_cert_chain(
            directory / f"{client}.pem", directory / f"{client}.key"
        )
    return trusted


def ask(proxy: Proxy, client: str | None) -> tuple[int, str]:
    """Search through the proxy; return the status and the body."""
    port, directory = proxy
    trusted = trust(directory, client)
    connection = http.client.HTTPSConnection(HOST, port, context=trusted, timeout=60)
    lies = {"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "gopher"}
    connection.request("GET", "/fhir/v3/Encounter?patient=4711", headers=lies)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_what_the_client_wrote_of_its_way_is_replaced(proxy: Proxy) -> None:
    status, body = ask(proxy, "clients")
    assert status == 200
    told = json.loads(body)
    assert (told["X-Forwarded-Proto"], told["X-Forwarded-For"]) == ("https", HOST)


@pytest.mark.parametrize("client", [None, "encounters"])
def test_without_a_certificate_of_ours_nobody_is_let_in(
    proxy: Proxy, client: str | None
) -> None:
    assert ask(proxy, client)[0] == 400


HEAD = b"POST /fhir/v3/body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
STALLED = (
    HEAD[:20],
    HEAD,
    HEAD + b"half",
    b"GET /fhir/v3/long HTTP/1.1\r\nHost: x\r\n\r\n",
)


def test_through_it_no_client_that_stalls_holds_a_thread(tmp_path: Path) -> None:
    for name in ("service", "nginx"):
        (tmp_path / name).mkdir()
    with (
        standing_in(tmp_path / "service", REQUEST_SECONDS="300") as service,
        nginx(tmp_path / "nginx", service.port) as (port, directory),
        ExitStack() as stack,
    ):
        trusted = trust(directory, "clients")
        for sent in STALLED * THREADS:
            plain = socket.create_connection((HOST, port), 60)
            client = trusted.wrap_socket(plain, server_hostname=HOST)
            # None of them reads what comes.
            stack.enter_context(client).sendall(sent)
        for _ in range(2):
            good = http.client.HTTPSConnection(HOST, port, context=trusted, timeout=60)
            with closing(good):
                good.request("POST", "/fhir/v3/body", b"whole")
                assert good.getresponse().read() == b'{"read":5}\n'
