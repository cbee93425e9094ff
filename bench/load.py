"""Load on one contender: wrk where it is installed, what its processes used of the CPU."""

import http.client
import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import Running, cpu_of, tree
from bench.scenarios import Call

CONNECTIONS = 8
FORM = "application/x-www-form-urlencoded"


class LoadError(Exception):
    """A request failed: such a figure is not one."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What a load cost: CPU in microseconds a request, of the contender and the database."""

    requests: int
    per_second: float
    cpu: float
    database_cpu: float


class Load:
    """Asks contenders; `database` is the process of the database's server, where known."""

    def __init__(self, token: str, scratch: Path, database: int | None) -> None:
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/fhir+json",
        }
        self._scratch = scratch
        self._database = database

    def ask(self, running: Running, call: Call) -> tuple[int, bytes]:
        """Return status and body of one answer."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", running.contender.port, timeout=60
        )
        try:
            if call.form:
                form = {**self._headers, "Content-Type": FORM}
                connection.request("POST", call.path, call.body, form)
            else:
                connection.request("GET", call.path, headers=self._headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def run(self, running: Running, calls: Sequence[Call], seconds: int) -> Figure:
        """Ask as fast as there are answers, and return what it cost. Raises LoadError.

        In no time, each call is asked once.
        """
        used, database = running.cpu(), self._database_cpu()
        if seconds:
            requests, took = self._wrk(running, self._script(calls), seconds)
        else:
            requests, took = self._loop(running, calls)
        used, database = running.cpu() - used, self._database_cpu() - database
        return Figure(
            requests,
            requests / took,
            used / requests * 1e6,
            # A backend that ended meanwhile takes its share along.
            max(0.0, database) / requests * 1e6,
        )

    def _database_cpu(self) -> float:
        return cpu_of(tree(self._database)) if self._database else 0.0

    def _script(self, calls: Sequence[Call]) -> Path:
        told = {**self._headers, "Content-Type": FORM}
        lines = [
            f"wrk.headers[{json.dumps(n)}] = {json.dumps(t)}" for n, t in told.items()
        ]
        lines.append("local calls = {")
        for call in calls:
            method = "POST" if call.form else "GET"
            parts = ", ".join(
                json.dumps(text) for text in (method, call.path, call.body)
            )
            lines.append(f"{{{parts}}},")
        lines.append(_DRIVER)
        script = self._scratch / "load.lua"
        script.write_text("\n".join(lines))
        return script

    def _wrk(self, running: Running, script: Path, seconds: int) -> tuple[int, float]:
        address = f"http://127.0.0.1:{running.contender.port}"
        command = [
            "wrk",
            "-t1",
            f"-c{CONNECTIONS}",
            f"-d{seconds}s",
            "--timeout",
            "30s",
        ]
        done = subprocess.run(
            [*command, "-s", str(script), address], capture_output=True, text=True
        )
        told = [line for line in done.stdout.splitlines() if line.startswith("told ")]
        if not told:
            raise LoadError(done.stdout + done.stderr)
        requests, microseconds, failed, refused = map(int, told[0].split()[1:])
        if failed or refused or not requests:
            name = running.contender.name
            raise LoadError(
                f"{name}: {failed} failed, {refused} unanswered, of {requests}"
            )
        return requests, microseconds / 1e6

    def _loop(self, running: Running, calls: Sequence[Call]) -> tuple[int, float]:
        """Ask each call once, one after the other: no load."""
        began = time.monotonic()
        for call in calls:
            status, _ = self.ask(running, call)
            if status != 200:
                raise LoadError(f"{running.contender.name}: {status}")
        return len(calls), time.monotonic() - began


_DRIVER = """}
local at = 0
request = function()
  at = at % #calls + 1
  local call = calls[at]
  return wrk.format(call[1], call[2], nil, call[1] == "POST" and call[3] or nil)
end
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("told %d %d %d %d\\n", summary.requests, summary.duration,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
"""


def generator() -> str:
    """Return the load generator's name and version, nothing where there is none."""
    found = shutil.which("wrk")
    if found is None:
        return ""
    told = subprocess.run([found, "-v"], capture_output=True, text=True)
    return (told.stdout + told.stderr).split(" [")[0].strip()
