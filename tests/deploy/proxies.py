"""nginx on this machine with the files of deploy/: their places and addresses moved."""

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.certificates import certify
from tests.live import HOST, ROOT, free_ports, listens, wait_until

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NEEDS_NGINX = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")
SHIPPED = ROOT / "deploy" / "compose" / "nginx.conf"


class Answer(NamedTuple):
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Proxy(NamedTuple):
    """A port of a running nginx, where its files are, and the name of its certificate."""

    port: int
    directory: Path
    certificate: str = "encounters"

    def trust(self, client: str | None = "clients") -> ssl.SSLContext:
        """Return what a client trusts, and shows where it has a certificate."""
        file = self.directory / f"{self.certificate}.pem"
        trusted = ssl.create_default_context(cafile=file)
        if client is not None:
            files = (self.directory / f"{client}.{kind}" for kind in ("pem", "key"))
            trusted.load_cert_chain(*files)
        return trusted

    def ask(
        self,
        path: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        method: str = "GET",
        form: bytes | None = None,
        *,
        client: str | None = "clients",
    ) -> Answer:
        """Send a request as a client with a certificate of that name."""
        connection = http.client.HTTPSConnection(
            HOST, self.port, context=self.trust(client), timeout=60
        )
        with closing(connection):
            connection.request(method, path, form, dict(headers))
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())


@contextmanager
def nginx(
    directory: Path,
    upstreams: Sequence[int | str],
    *changes: tuple[str, str],
    port: int = 0,
    explorer: tuple[int, int] | None = None,
    connections: int = 512,
) -> Iterator[Proxy]:
    """Run the nginx of the compose file.

    `changes` are texts and what stands in their place; `explorer` is the port of the
    explorer's server, and that of the explorer behind it.
    """
    port = port or free_ports()
    text = SHIPPED.read_text("utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    if explorer:
        more = SHIPPED.with_name("explorer.conf").read_text("utf-8")
        more = more.replace("listen 8443 ssl", f"listen {HOST}:{explorer[0]} ssl")
        text += re.sub(r"172.30.0.\d+:8003", f"{HOST}:{explorer[1]}", more)
    for number, upstream in enumerate(upstreams, 11):
        place = f"{HOST}:{upstream}" if isinstance(upstream, int) else upstream
        text = text.replace(f"172.30.0.{number}:8000", place)
    with running(directory, text, port, connections):
        yield Proxy(port, directory)


@contextmanager
def running(
    directory: Path, text: str, port: int, connections: int = 512
) -> Iterator[None]:
    """Run a file of conf.d with what the package of nginx says around it."""
    text = text.replace("/etc/nginx/tls", str(directory))
    text = text.replace("/var/log/nginx", str(directory))
    text = text.replace("listen 443 ssl", f"listen {HOST}:{port} ssl")
    temporary = "".join(
        f"{name}_temp_path {directory}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Else its workers are those of another user, whom a unix socket does not let in.
    account = "user root;\n" if os.geteuid() == 0 else ""
    # As in the image, which has one for each core: they share what the configuration shares.
    main = f"{account}worker_processes 2;\npid {directory}/pid;\n"
    main += f"error_log {directory}/error.log notice;\n"
    events = f"events {{ worker_connections {connections}; }}\n"
    whole = f"{main}{events}http {{\n{temporary}{text}}}\n"
    with running_whole(directory, whole, port):
        yield


@contextmanager
def running_whole(
    directory: Path, text: str, port: int, **process: Any
) -> Iterator[None]:
    """Run a whole configuration, which nginx takes without a warning."""
    for name in ("encounters", "clients", "explorer"):
        certify(directory, name)
    file, log = directory / "nginx.conf", directory / "error.log"
    file.write_text(text)
    if process:
        for path in (directory, *directory.iterdir()):
            os.chown(path, process["user"], 0)
    command = [str(NGINX), "-c", str(file), "-e", str(log), "-g", "daemon off;"]
    checked = subprocess.run(
        [*command, "-t"], capture_output=True, text=True, **process
    )
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    started = subprocess.Popen(command, **process)
    try:
        wait_until(lambda: listens(port), file)
        yield
    finally:
        started.terminate()
        started.wait(60)


@contextmanager
def echoing(port: int, *, breaks: bool = False) -> Iterator[None]:
    """Run an instance that answers with the headers it was sent, or breaks off."""

    class Echo(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if breaks:
                self.close_connection = True
                return
            body = json.dumps(dict(self.headers.items())).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - as the base class wants it

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing."""

    with ThreadingHTTPServer((HOST, port), Echo) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()
