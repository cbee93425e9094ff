"""Load on one contender by wrk, and what its processes used of the CPU for it."""

import json
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from urllib3 import PoolManager

from bench.contenders import Around, Running, cpu_of, token
from bench.scenarios import Call

MANY = 8
"""How many connections measure what workers can do together.

What a request costs is measured over one: connections fall on the processes of a contender by
chance, and with several on one process its threads wait for one another. Then the same request
costs twice as much, and in the next run it does not.
"""


class LoadError(Exception):
    """A request failed: such a figure is not one."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What a load cost: CPU in microseconds a request, of the contender and the database."""

    per_second: float
    cpu: float
    database_cpu: float


class Load:
    """Sends requests to contenders."""

    def __init__(self, around: Around, connections: int = 1) -> None:
        self._wrk_command = ("wrk", "-t1", f"-c{connections}", "--timeout", "30s")
        self._headers = {
            "Authorization": f"Bearer {token()}",
            "Accept": "application/fhir+json",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._http = PoolManager(retries=False, timeout=60)
        self._script_file = around.scratch / "load.lua"
        self._database = around.database.pid

    def ask(self, running: Running, call: Call) -> tuple[int, bytes]:
        """Return status and body of one answer."""
        response = self._http.request(
            "POST" if call.form else "GET",
            f"http://127.0.0.1:{running.contender.port}{call.path}",
            body=call.body or None,
            headers=self._headers,
        )
        return response.status, response.data

    def body(self, running: Running, call: Call) -> bytes:
        """Return the body of one answer. Raises LoadError for an error."""
        status, body = self.ask(running, call)
        if status != 200:
            raise LoadError(f"{running.contender.name}, {call}: {body[:500]!r}")
        return body

    def run(self, running: Running, calls: Sequence[Call], seconds: int) -> Figure:
        """Ask as fast as there are answers, and return what it cost. Raises LoadError.

        In no time, each call is asked once.
        """
        used, database = cpu_of(running.process.pid), cpu_of(self._database)
        if seconds:
            self._write_script(calls)
            requests, took = self._wrk(running, seconds)
        else:
            requests, took = self._loop(running, calls)
        used, database = (
            cpu_of(running.process.pid) - used,
            cpu_of(self._database) - database,
        )
        # A backend that ended meanwhile takes its share along.
        of_database = max(0.0, database) / requests * 1e6
        return Figure(requests / took, used / requests * 1e6, of_database)

    def _write_script(self, calls: Sequence[Call]) -> None:
        lines = [
            f"wrk.headers[{json.dumps(name)}] = {json.dumps(text)}"
            for name, text in self._headers.items()
        ]
        lines.append("local calls = {")
        for call in calls:
            parts = "POST" if call.form else "GET", call.path, call.body
            lines.append(f"{{{', '.join(map(json.dumps, parts))}}},")
        self._script_file.write_text("\n".join([*lines, _DRIVER]))

    def _wrk(self, running: Running, seconds: int) -> tuple[int, float]:
        address = f"http://127.0.0.1:{running.contender.port}"
        done = subprocess.run(
            [
                *self._wrk_command,
                f"-d{seconds}s",
                "-s",
                str(self._script_file),
                address,
            ],
            capture_output=True,
            text=True,
        )
        counts = re.search(r"^counts (.+)$", done.stdout, re.MULTILINE)
        if counts is None:
            raise LoadError(done.stdout + done.stderr)
        requests, microseconds, failed, refused = map(int, counts[1].split())
        if failed or refused or not requests:
            text = f"{failed} failed, {refused} without a response, of {requests}"
            raise LoadError(f"{running.contender.name}: {text}")
        return requests, microseconds / 1e6

    def _loop(self, running: Running, calls: Sequence[Call]) -> tuple[int, float]:
        """Ask each call once, one after the other: no load."""
        began = time.monotonic()
        for call in calls:
            self.body(running, call)
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
  io.write(string.format("counts %d %d %d %d\\n", summary.requests, summary.duration,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
"""
