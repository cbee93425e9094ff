"""The nginx of deploy/compose runs: it tells what it saw itself, and covers who is away."""

import http.client
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import NamedTuple

import pytest

from tests.app.operations.standin import THREADS, standing_in
from tests.certificates import certify
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
    """Run the nginx of the compose file before them; its log tells of no patient."""
    directory = tmp_path_factory.mktemp("nginx")
    with nginx(directory, [server.server_port for server in upstreams]) as made:
        yield made
    logged = (directory / "access.log").read_text()
    assert "200" in logged
    assert "4711" not in logged


@contextmanager
def nginx(directory: Path, upstreams: Sequence[int]) -> Iterator[Proxy]:
    """Run the nginx of the compose file, its files and ports moved."""
    port = free_ports()
    for name in ("encounters", "clients"):
        certify(directory, name)
    file = directory / "nginx.conf"
    file.write_text(nginx_conf(directory, port, upstreams))
    command = [str(NGINX), "-c", str(file), "-e", str(directory / "error.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    process = subprocess.Popen(command)
    wait_until(lambda: listens(port), file)
    yield Proxy(port, directory)
    process.terminate()
    process.wait(60)


def test_it_begins_while_no_instance_is_there(tmp_path: Path) -> None:
    for name in ("encounters", "clients"):
        certify(tmp_path, name)
    file = tmp_path / "nginx.conf"
    file.write_text(nginx_conf(tmp_path, free_ports(), []))
    # As compose has it: a name that nobody has yet would end it here.
    command = [str(NGINX), "-c", str(file), "-e", str(tmp_path / "error.log"), "-t"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


class Answer(NamedTuple):
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: str


def trust(directory: Path, client: str | None) -> ssl.SSLContext:
    """Return what a client trusts, and shows where it has a certificate."""
    trusted = ssl.create_default_context(cafile=directory / "encounters.pem")
    if client is not None:
        trusted.load_cert_chain(
            directory / f"{client}.pem", directory / f"{client}.key"
        )
    return trusted


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
    trusted = trust(directory, client)
    connection = http.client.HTTPSConnection(HOST, port, context=trusted, timeout=60)
    connection.request(method, path, form, dict(headers))
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return Answer(answer.status, dict(answer.headers), body)


def test_what_the_client_wrote_of_its_way_is_replaced(proxy: Proxy) -> None:
    answer = ask(proxy, "clients")
    assert answer.status == 200
    seen = json.loads(answer.body)
    assert (seen["X-Forwarded-Proto"], seen["X-Forwarded-For"]) == ("https", HOST)


@pytest.mark.parametrize("client", [None, "encounters"])
def test_without_a_certificate_of_ours_nobody_is_let_in(
    proxy: Proxy, client: str | None
) -> None:
    assert ask(proxy, client).status == 400


def test_a_body_that_is_too_long_is_told_as_the_service_does(proxy: Proxy) -> None:
    path = "/fhir/v3/Encounter/_search"
    assert asked(proxy, "clients", path, {}, "POST", b"a" * 65536).status == 200
    answer = asked(proxy, "clients", path, {}, "POST", b"a" * 65537)
    assert answer.status == 413
    told(answer, "too-long")


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
    told(answer, "transient")


@contextmanager
def echoing(port: int) -> Iterator[None]:
    """Run a server that stands for an instance on a port of its own."""
    with ThreadingHTTPServer((HOST, port), _Echo) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def test_instances_may_be_restarted_one_right_after_the_other(tmp_path: Path) -> None:
    first, second = ports = [free_ports(), free_ports()]
    with nginx(tmp_path, ports) as proxy:
        with echoing(second):
            with echoing(first):
                assert ask(proxy, "clients").status == 200
            # From here on the first is left alone, for longer than this takes.
            asked_meanwhile = [ask(proxy, "clients").status for _ in range(4)]
        with echoing(first):
            asked_afterwards = [ask(proxy, "clients").status for _ in range(8)]
    assert asked_meanwhile + asked_afterwards == [200] * 12


def test_an_instance_whose_machine_says_nothing_is_covered(tmp_path: Path) -> None:
    port = free_ports()
    with socket.socket() as silent, ExitStack() as stack, echoing(port):
        silent.bind((HOST, 0))
        silent.listen(0)
        # Whose queue is full is said nothing more, as where a container has gone.
        for _ in range(4):
            waiting = stack.enter_context(closing(socket.socket()))
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        with nginx(tmp_path, [silent.getsockname()[1], port]) as proxy:
            statuses = [ask(proxy, "clients", m).status for m in ("GET", "POST") * 4]
    assert statuses == [200] * 8


def told(answer: Answer, code: str) -> None:
    """Let an answer be an OperationOutcome with this code."""
    assert answer.headers["Content-Type"] == "application/fhir+json"
    outcome = json.loads(answer.body)
    assert list(fhir_faults(outcome)) == []
    assert outcome["issue"][0]["code"] == code


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
        nginx(tmp_path / "nginx", [service.port] * 2) as (port, directory),
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
