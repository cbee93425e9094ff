"""The nginx of docs/operators.md runs, and tells the service what it saw itself."""

import http.client
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

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
    """Run the nginx of the page, its files and ports moved."""
    directory, port = tmp_path_factory.mktemp("nginx"), free_ports()
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
    logged = (directory / "encounters.log").read_text()
    assert "200" in logged
    assert "4711" not in logged


def ask(proxy: Proxy, client: str | None) -> tuple[int, str]:
    """Search through the proxy; return the status and the body."""
    port, directory = proxy
    trusted = ssl.create_default_context(cafile=directory / "encounters.pem")
    if client is not None:
        trusted.load_cert_chain(
            directory / f"{client}.pem", directory / f"{client}.key"
        )
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
