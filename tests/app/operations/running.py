"""The whole service in processes of its own, asked by a client with a token."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from werkzeug.wrappers import Request, Response

from tests.app import provider
from tests.app.operations.family import beside, workers_of
from tests.canaries import canaries_in
from tests.hospital_http import answer, serving
from tests.live import HOST, ROOT, free_ports, wait_until

PATIENCE = 60.0


class Answered(NamedTuple):
    """An answer; the status is 0 where nobody answered."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A service that runs: its master process, its two ports, its log."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def get(self, path: str, token: str | None = None) -> Answered:
        """Ask the service as a client, with a signed token unless another is given."""
        path = re.sub("^https://[^/]+/fhir/v3/", "", path)
        return self._get(self.port, f"/fhir/v3/{path}", token)

    def operations(self, path: str) -> Answered:
        """Ask on the operations port."""
        answered = self._get(self.port + 1, path)
        assert canaries_in(answered.body.decode()) == []
        return answered

    def part(self, name: str) -> Any:
        """Return a part of what `/ready` tells, None as long as it tells nothing."""
        answered = self.operations("/ready")
        return answered.json["parts"].get(name) if answered.status else None

    def metric(self, sample: str) -> float:
        """Return a count, 0 for one that is not there."""
        text = self.operations("/metrics").body.decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line)
        return float(values.get(sample, 0))

    def lines(self) -> list[dict[str, Any]]:
        """Return what is logged."""
        told = self.log.read_text("utf-8").splitlines()
        return [json.loads(line) for line in told if line.startswith("{")]

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of one event."""
        return [line for line in self.lines() if line["event"] == event]

    def until(self, holds: Any) -> None:
        """Wait until something holds of a service that has not ended."""

        def runs_and_holds() -> bool:
            assert self.process.poll() is None, self.log.read_text("utf-8")
            return bool(holds())

        wait_until(runs_and_holds, self.log, PATIENCE)

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes."""
        return workers_of(self.process.pid)

    def beside(self) -> list[psutil.Process]:
        """Return the operations process."""
        return beside(self.process.pid)

    def _get(self, port: int, path: str, token: str | None = None) -> Answered:
        headers = {
            "Authorization": provider.bearer(token or provider.sign()),
            "X-Forwarded-Proto": "https",
        }
        request = urllib.request.Request(f"http://{HOST}:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE) as got:
                return Answered(got.status, dict(got.headers), got.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answered(error.code, dict(error.headers), error.read())
        except OSError:
            return Answered(0)


@Request.application
def keys(_request: Request) -> Response:
    """Answer as the identity provider does that publishes its keys."""
    return answer(provider.key_set(provider.rsa()))


@contextmanager
def running(
    directory: Path, mapping: Path, environ: Mapping[str, str], **settings: str
) -> Iterator[Running]:
    """Serve a mapping; `environ` is what it names, `settings` are those of the service."""
    first, log = free_ports(2), directory / "log"
    with serving(keys) as key_set, log.open("wb") as file:
        chosen = {
            "BIND": f"{HOST}:{first}",
            "OPERATIONS_BIND": f"{HOST}:{first + 1}",
            "KEY_SET_URL": f"{key_set}/keys",
            "TRUSTED_PROXIES": HOST,
            "WORKERS": "1",
            **settings,
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve"],
            cwd=ROOT,
            env={**os.environ, **environ, **provider.environ(mapping, **chosen)},
            stderr=file,
        )
        service = Running(process, first, log)
        try:
            service.until(lambda: service.get("metadata").status == 200)
            service.until(lambda: service.operations("/live").status == 200)
            yield service
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0, log.read_text("utf-8")
