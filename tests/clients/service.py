"""The service over HTTP, on a hospital in SQLite that changes, with faults where a test wants them.

A fault belongs to the number of a request (from 1; those for tokens do not count).
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from encounters_client.store import CANCELLED, CURRENT, INVALID, REMOVED
from flask import Flask
from werkzeug import Request, Response

from tests.app import provider
from tests.hospital_http import Quiet, answer, serving
from tests.hospital_sql import Tables, covering_changes, mapping_text
from tests.redis_server import RedisServer
from tests.serving import serve
from toolkit.contract.hospital import Hospital as Rows
from toolkit.contract.hospital import OrganizationRow, PatientRow, StayRow

PATH = "/fhir/v3"
ORGANIZATIONS = ("H1", "H2", "H3")
EMPTY = Rows(organizations=tuple(OrganizationRow(id, id) for id in ORGANIZATIONS))

STATUS_CODES = {CURRENT: "S", INVALID: "?", CANCELLED: "A", REMOVED: "X"}
"""Of a stay, by what the client makes of it."""


@dataclass
class Hospital:
    """The rows by type and id of what they become; time passes by `tick` alone."""

    tables: Tables
    now: datetime = datetime(2024, 3, 30, 8, tzinfo=UTC)
    records: dict[tuple[str, str], StayRow | PatientRow] = field(default_factory=dict)

    def tick(self, seconds: float = 1) -> None:
        self.now += timedelta(seconds=seconds)

    def admit(self, id: int, patient: int, late: int = 0, dated: bool = True) -> None:
        """Add a stay, and its patient; it says that it changed `late` seconds ago."""
        if ("Patient", str(patient)) not in self.records:
            self._put(PatientRow(patient, "new", changed=self._time()))
        changed = self._time(late) if dated else None
        self._put(StayRow(id, patient, unit="new", changed=changed))

    def change(
        self, kind: str, id: int, state: str = CURRENT, content: str = ""
    ) -> None:
        """Change a row, if there is one; one without a time of change gets none."""
        row = self.records.get((kind, str(id)))
        if row is None:
            return
        content = content or self.now.isoformat()
        changed = row.changed and self._time()
        if isinstance(row, StayRow):
            code = STATUS_CODES[state]
            self._put(row._replace(state=code, unit=content, changed=changed))
        else:
            born = "not a day" if state == INVALID else None
            self._put(row._replace(used_name=content, born=born, changed=changed))
            if state in (CANCELLED, REMOVED):
                self.tables.delete_patient(row.id)

    def merge(self, old: int, survivor: int) -> None:
        """Merge two patients; the stays follow, without a new time of change."""
        patient = self.records.get(("Patient", str(old)))
        if old == survivor or ("Patient", str(survivor)) not in self.records:
            return
        for row in [*self.records.values()]:
            if isinstance(row, StayRow) and row.patient == old:
                self._put(row._replace(patient=survivor))
        if isinstance(patient, PatientRow):
            self._put(patient._replace(replaced_by=survivor, changed=self._time()))

    def _time(self, late: int = 0) -> str:
        return f"{self.now - timedelta(seconds=late):%Y-%m-%d %H:%M:%S}"

    def _put(self, row: StayRow | PatientRow) -> None:
        if isinstance(row, StayRow):
            self.records["Encounter", str(row.id)] = row
            self.tables.put_stay(row)
        else:
            self.records["Patient", str(row.id)] = row
            self.tables.put_patient(row)


@dataclass
class Service:
    """The service: its hospital, faults by number of the request, and the requests so far.

    `after` runs after each answer. The clock of the answers is the hospital's.
    """

    redis: RedisServer
    hospital: Hospital
    app: Flask = field(init=False)
    host: str = field(init=False)
    faults: Mapping[int, "Fault"] = field(default_factory=dict)
    after: Callable[[], object] = lambda: None
    expires_in: int = 3600
    requests: list[str] = field(default_factory=list)
    forms: list[Mapping[str, str]] = field(default_factory=list)
    tokens: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the settings of a client."""
        return {
            "BASE": f"http://{self.host}{PATH}",
            "TOKEN_URL": f"http://{self.host}/token",
            "AUDIENCE": "somebody",
            "CLIENT_ID": "client-1",
            "CLIENT_SECRET": "a secret, with & and =",
            **changes,
        }

    def open(self, stays: int) -> None:
        """Begin anew, with stays from 1 on, up to three of each patient, from 100 on."""
        self.hospital.tables.create()
        self.hospital.tables.fill(EMPTY)
        self.hospital = Hospital(self.hospital.tables)
        for number in range(1, stays + 1):
            self.hospital.admit(number, 100 + number // 3)
            self.hospital.tick()
        self.faults, self.after, self.expires_in = {}, lambda: None, 3600
        self.forget()

    def forget(self) -> None:
        """Forget the requests so far."""
        self.requests.clear()
        self.forms.clear()
        self.tokens = 0

    def lose_pages(self) -> None:
        """Lose the pages of every search."""
        with self.redis.client() as client:
            client.flushdb()

    def read(self, kind: str, id: str) -> tuple[int, Any]:
        """Return status and body of a read."""
        response = self.app.test_client().get(
            f"{PATH}/{kind}/{id}",
            headers={"Authorization": provider.bearer(provider.sign())},
            base_url=f"http://{self.host}",
        )
        return response.status_code, response.get_json(force=True)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self._answer(Request(environ))(environ, start_response)

    def _answer(self, request: Request) -> Response:
        if request.path == "/keys":
            # While a request that the service verifies waits for it.
            return answer(provider.key_set(provider.rsa()))
        if request.path == "/token":
            self.tokens += 1
            token = {"access_token": provider.sign(), "expires_in": self.expires_in}
            return answer(token)
        with self.lock:
            self.requests.append(f"{request.method} {request.full_path}")
            if request.method == "POST":
                form = request.get_data()
                self.forms.append(dict(parse_qsl(form.decode())))
                request.environ["wsgi.input"] = BytesIO(form)
            response = self.faults.get(len(self.requests), Service.serve)(self, request)
            self.after()
            return response

    def serve(self, request: Request) -> Response:
        """Return the answer of the service."""
        return Response.from_app(self.app, request.environ, buffered=True)


class Clock(Quiet):
    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(self.server.app.hospital.now, usegmt=True)


@contextmanager
def running_service(directory: Path, redis: RedisServer) -> Iterator[Service]:
    """Serve until the block ends."""
    url = f"sqlite:///{directory / 'pas.db'}"
    tables = Tables(url, EMPTY)
    service = Service(redis, Hospital(tables))
    with serving(service, handler=Clock) as address:
        service.host = address.removeprefix("http://")
        service.app = serve(
            EMPTY,
            directory,
            redis.url,
            mapping=covering_changes(mapping_text(EMPTY, url)),
            BASE_URL=f"{address}{PATH}",
            KEY_SET_URL=f"{address}/keys",
            PLAIN_HTTP="loopback",
        ).app
        yield service
    tables.close()


# ---- faults

Fault = Callable[[Service, Request], Response]


def status(code: int, retry_after: str = "") -> Fault:
    """Return an error in place of the answer."""
    issue = {"severity": "error", "code": "processing", "diagnostics": "No."}
    outcome = {"resourceType": "OperationOutcome", "issue": [issue]}
    headers = {"Retry-After": retry_after} if retry_after else {}
    return lambda _service, _request: answer(outcome, code, **headers)


def page(change: Callable[[dict[str, Any]], object]) -> Fault:
    """Return a change of a page."""

    def changed(service: Service, request: Request) -> Response:
        response = service.serve(request)
        body = response.get_json(force=True)
        change(body)
        response.set_data(json.dumps(body))
        return response

    return changed


def token_expires(service: Service, request: Request) -> Response:
    old = provider.bearer(provider.sign(exp=1))
    request.environ["HTTP_AUTHORIZATION"] = old
    return service.serve(request)


def pages_expire(service: Service, request: Request) -> Response:
    service.lose_pages()
    return service.serve(request)


def lost(_service: Service, request: Request) -> Response:
    """End the connection without an answer."""
    request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return Response()


def slow(service: Service, request: Request) -> Response:
    """Answer nothing until the client has given up, which ends its side of the connection."""
    request.environ["werkzeug.socket"].settimeout(30)
    request.environ["werkzeug.socket"].recv(1)
    return lost(service, request)


def half_a_page(service: Service, request: Request) -> Response:
    """End the connection within an answer, whose length stays that of the whole."""
    response = service.serve(request)
    response.response = [response.data[: len(response.data) // 2]]
    return response


def lead_away(body: dict[str, Any]) -> None:
    for link in body["link"]:
        link["url"] = link["url"].replace("127.0.0.1", "127.0.0.2")


def repeat(body: dict[str, Any]) -> None:
    """Replace the second row by the first one."""
    body["entry"][1] = body["entry"][0]


def end(body: dict[str, Any]) -> None:
    """Remove the link to the next page."""
    body["link"] = [each for each in body["link"] if each["relation"] != "next"]


FAULTS: Mapping[str, Fault] = {
    "token-expires": token_expires,
    "pages-expire": pages_expire,
    "lost": lost,
    "slow": slow,
    "half-a-page": half_a_page,
    "next-leads-away": page(lead_away),
    "repeats-a-row": page(lambda body: body["entry"].append(body["entry"][0])),
    "replaces-a-row": page(repeat),
    "drops-a-row": page(lambda body: body["entry"].pop(1)),
    "without-a-total": page(lambda body: body.pop("total")),
    "ends": page(end),
    "is-a-patient": page(lambda body: body.update(resourceType="Patient")),
}
"""By the names in behaviour.yaml."""
