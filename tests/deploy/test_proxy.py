"""The nginx of deploy/compose runs: it tells what it saw itself, and covers who is away."""

import http.client
import json
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.deploy.proxies import NGINX, nginx_conf
from tests.live import HOST, free_ports, listens, wait_until
from tests.validity import fhir_faults

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")


class Proxy(NamedTuple):
    """The port of a running nginx, and where its files are."""

    port: int
    directory: Path


class _Echo(BaseHTTPRequestHandler):
    """Answers with the headers that it was sent."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps(dict(self.headers.items())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - as the base class wants it

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


def certify(directory: Path, name: str) -> None:
    """Write a certificate that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    clear = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (directory / f"{name}.key").write_bytes(key.private_bytes(*clear))


@pytest.fixture(scope="module")
def upstreams() -> Iterator[list[ThreadingHTTPServer]]:
    """Return two servers that stand for instances of the service."""
    servers = [ThreadingHTTPServer((HOST, 0), _Echo) for _ in range(2)]
    for server in servers:
        Thread(target=server.serve_forever, daemon=True).start()
    yield servers
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def proxy(
    upstreams: list[ThreadingHTTPServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """Run the nginx of the compose file, its files and ports moved."""
    directory, port = tmp_path_factory.mktemp("nginx"), free_ports()
    for name in ("encounters", "clients"):
        certify(directory, name)
    file = directory / "nginx.conf"
    ports = [server.server_port for server in upstreams]
    file.write_text(nginx_conf(directory, port, ports))
    command = [str(NGINX), "-c", str(file), "-e", str(directory / "error.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    process = subprocess.Popen(command)
    wait_until(lambda: listens(port), file)
    yield Proxy(port, directory)
    process.terminate()
    process.wait(60)
    logged = (directory / "access.log").read_text()
    assert "200" in logged
    assert "4711" not in logged


class Answer(NamedTuple):
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: str


def ask(proxy: Proxy, client: str | None, method: str = "GET") -> Answer:
    """Search through the proxy as a client with a certificate of that name, and lie."""
    lies = {"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "gopher"}
    form = b"_count=1" if method == "POST" else None
    return asked(proxy, client, "/fhir/v3/Encounter?patient=4711", lies, method, form)


def asked(
    proxy: Proxy,
    client: str | None,
    path: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    method: str = "GET",
    form: bytes | None = None,
) -> Answer:
    """Ask through the proxy as a client with a certificate of that name."""
    port, directory = proxy
    trusted = ssl.create_default_context(cafile=directory / "encounters.pem")
    if client is not None:
        trusted.load_cert_chain(
            directory / f"{client}.pem", directory / f"{client}.key"
        )
    connection = http.client.HTTPSConnection(HOST, port, context=trusted, timeout=60)
    connection.request(method, path, form, dict(headers))
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return Answer(answer.status, dict(answer.headers), body)


def test_what_the_client_wrote_of_its_way_is_replaced(proxy: Proxy) -> None:
    answer = ask(proxy, "clients")
    assert answer.status == 200
    told = json.loads(answer.body)
    assert (told["X-Forwarded-Proto"], told["X-Forwarded-For"]) == ("https", HOST)


@pytest.mark.parametrize("client", [None, "encounters"])
def test_without_a_certificate_of_ours_nobody_is_let_in(
    proxy: Proxy, client: str | None
) -> None:
    assert ask(proxy, client).status == 400


def test_an_instance_that_goes_is_covered_and_none_at_all_is_503(
    proxy: Proxy, upstreams: list[ThreadingHTTPServer]
) -> None:
    first, second = upstreams
    first.shutdown()
    first.server_close()
    for method in ("GET", "POST") * 4:
        assert ask(proxy, "clients", method).status == 200
    second.shutdown()
    second.server_close()
    answer = ask(proxy, "clients")
    assert answer.status == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["Content-Type"] == "application/fhir+json"
    outcome = json.loads(answer.body)
    assert list(fhir_faults(outcome)) == []
    assert outcome["issue"][0]["code"] == "transient"
