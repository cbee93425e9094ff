"""The nginx of deploy/compose/nginx.conf on this machine: its files and addresses moved."""

import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.certificates import certify
from tests.live import HOST, ROOT, free_ports, listens, wait_until

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

FRONT = "172.30.0"
"""The network in which the compose file puts the instances, from .11 on."""

SHIPPED = ROOT / "deploy" / "compose" / "nginx.conf"
SHIPPED_EXPLORER = SHIPPED.with_name("explorer.conf")


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

    def reload(self) -> None:
        """Have it read its configuration and certificates again."""
        os.kill(int((self.directory / "pid").read_text()), signal.SIGHUP)

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


def nginx_conf(
    directory: Path,
    port: int,
    upstreams: Sequence[int | str],
    *changes: tuple[str, str],
    explorer: tuple[int, int] | None = None,
    user: str = "root",
    connections: int = 512,
) -> str:
    """Return the shipped configuration, on loopback ports and with files in a directory.

    `changes` are texts and what stands in their place; `explorer` is the port of the
    explorer's server, and that of the explorer behind it.
    """
    text = SHIPPED.read_text("utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    if explorer:
        more, (before, behind) = SHIPPED_EXPLORER.read_text("utf-8"), explorer
        more = more.replace("listen 8443 ssl", f"listen {HOST}:{before} ssl")
        text += re.sub(rf"{re.escape(FRONT)}.\d+:8003", f"{HOST}:{behind}", more)
    text = text.replace("/etc/nginx/tls", str(directory))
    text = text.replace("/var/log/nginx", str(directory))
    text = text.replace("listen 443 ssl", f"listen {HOST}:{port} ssl")
    for number, upstream in enumerate(upstreams, 1):
        place = f"{HOST}:{upstream}" if isinstance(upstream, int) else upstream
        text = text.replace(f"{FRONT}.{10 + number}:8000", place)
    return around(directory, text, user, connections)


def around(
    directory: Path, text: str, user: str = "root", connections: int = 512
) -> str:
    """Return a file of conf.d with what the package of nginx says around it."""
    temporary = "".join(
        f"{name}_temp_path {directory}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Else its workers are those of another user, whom a unix socket does not let in.
    account = f"user {user};\n" if os.geteuid() == 0 else ""
    # As in the image, which has one for each core: they share what the configuration shares.
    main = f"worker_processes 2;\ndaemon off;\npid {directory}/pid;\n"
    main += f"error_log {directory}/error.log notice;\n"
    events = f"events {{ worker_connections {connections}; }}\n"
    return f"{account}{main}{events}http {{\n{temporary}{text}}}\n"


@contextmanager
def nginx(
    directory: Path,
    upstreams: Sequence[int | str],
    *changes: tuple[str, str],
    port: int = 0,
    **options: Any,
) -> Iterator[Proxy]:
    """Run the nginx of the compose file; `options` are those of `nginx_conf`."""
    port = port or free_ports()
    for name in ("encounters", "clients", "explorer"):
        certify(directory, name)
    file = directory / "nginx.conf"
    file.write_text(nginx_conf(directory, port, upstreams, *changes, **options))
    command = [str(NGINX), "-c", str(file), "-e", str(directory / "error.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    process = subprocess.Popen(command)
    try:
        wait_until(lambda: listens(port), file)
        yield Proxy(port, directory)
    finally:
        process.terminate()
        process.wait(60)


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

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


class _Break(_Echo):
    """Reads a request, and closes without an answer."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.close_connection = True

    do_POST = do_GET  # noqa: N815 - as the base class wants it


@contextmanager
def echoing(port: int, *, breaks: bool = False) -> Iterator[None]:
    """Run a server that stands for an instance, or for one that breaks."""
    handler = _Break if breaks else _Echo
    with ThreadingHTTPServer((HOST, port), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()
