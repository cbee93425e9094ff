"""The service over HTTP, on a hospital in SQLite that changes, with faults where a test wants them.

A fault belongs to the number of a request (from 1; those for tokens do not count).
"""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tests.app import provider
from tests.hospital_sql import Tables, covering_changes, mapping_text
from tests.live import HOST, free_ports
from tests.redis_server import RedisServer
from tests.serving import serve
from toolkit.contract.hospital import Hospital as Rows
from toolkit.contract.hospital import OrganizationRow, PatientRow, StayRow

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PATH = "/fhir/v3"
BEGIN = datetime(2024, 3, 30, 8, 0, tzinfo=UTC)
ORGANIZATIONS = ("H1", "H2", "H3")
_EMPTY = Rows(organizations=tuple(OrganizationRow(id, id) for id in ORGANIZATIONS))


# ---- the hospital


class State(StrEnum):
    """How a record is served."""

    CURRENT = "current"
    INVALID = "invalid"
    """A row that breaks a rule: an outcome in a search, 500 on read."""

    CANCELLED = "cancelled"
    """Hidden: 404 on read. A patient is deleted."""

    REMOVED = "removed"
    """410 on read. A patient is deleted."""


_CODES: Mapping[State, str] = {
    State.CURRENT: "S",
    State.INVALID: "?",
    State.CANCELLED: "A",
    State.REMOVED: "X",
}


@dataclass
class Hospital:
    """The rows by type and id of what they become; time passes by `tick` alone."""

    tables: Tables
    now: datetime = BEGIN
    records: dict[tuple[str, str], StayRow | PatientRow] = field(default_factory=dict)

    def tick(self, seconds: float = 1) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def admit(
        self,
        id: str,
        patient: str,
        *,
        late: timedelta = timedelta(),
        dated: bool = True,
    ) -> None:
        """Add a stay, and its patient; `late` ones say that they are older."""
        if ("Patient", patient) not in self.records:
            self._put(PatientRow(int(patient), "new", changed=_written(self.now)))
        changed = _written(self.now - late) if dated else None
        self._put(StayRow(int(id), int(patient), unit="new", changed=changed))

    def change(
        self,
        resource_type: str,
        id: str,
        *,
        state: State = State.CURRENT,
        content: str = "changed",
    ) -> None:
        """Change a row now; one without a time of change gets none."""
        row = self.records[resource_type, id]
        changed = row.changed and _written(self.now)
        if isinstance(row, StayRow):
            code = _CODES[state]
            self._put(row._replace(state=code, unit=content, changed=changed))
        else:
            born = "not a day" if state is State.INVALID else None
            self._put(row._replace(used_name=content, born=born, changed=changed))
            if state in (State.CANCELLED, State.REMOVED):
                self.tables.delete_patient(row.id)

    def merge(self, old: str, survivor: str) -> None:
        """Merge a patient into another; its stays follow, without a new time of change."""
        changed = _written(self.now)
        for row in [*self.records.values()]:
            if isinstance(row, StayRow) and row.patient == int(old):
                self._put(row._replace(patient=int(survivor)))
            elif isinstance(row, PatientRow) and row.id == int(old):
                self._put(row._replace(replaced_by=int(survivor), changed=changed))

    def _put(self, row: StayRow | PatientRow) -> None:
        if isinstance(row, StayRow):
            self.records["Encounter", str(row.id)] = row
            self.tables.put_stay(row)
        else:
            self.records["Patient", str(row.id)] = row
            self.tables.put_patient(row)


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


# ---- faults


@dataclass(frozen=True)
class Answer:
    """An error in place of the answer."""

    status: int
    retry_after: str | None = None


@dataclass(frozen=True)
class Lost:
    """A connection that ends: `before` the answer, `within` it, or when the client gives up."""

    how: str


@dataclass(frozen=True)
class Page:
    """A page that is not what it should be."""

    change: Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Expiry:
    """The token expires before this request."""


@dataclass(frozen=True)
class Gone:
    """The pages of every search are lost before this request."""


Fault = Answer | Lost | Page | Expiry | Gone


# ---- the service


@dataclass
class Service:
    """The service: its hospital, faults by number of the request, and the requests so far.

    `after` runs after each answer. The clock of the answers is the hospital's.
    """

    app: Flask
    redis: RedisServer
    port: int
    hospital: Hospital
    faults: Mapping[int, Fault] = field(default_factory=dict)
    after: Callable[[], object] = lambda: None
    expires_in: int = 3600
    requests: list[str] = field(default_factory=list)
    forms: list[Mapping[str, str]] = field(default_factory=list)
    tokens: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    @property
    def base(self) -> str:
        """The base URL."""
        return f"http://{HOST}:{self.port}{PATH}"

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the settings of a client."""
        return {
            "BASE": self.base,
            "TOKEN_URL": f"http://{HOST}:{self.port}/token",
            "AUDIENCE": "somebody",
            "CLIENT_ID": "client-1",
            "CLIENT_SECRET": "a secret, with & and =",
            **changes,
        }

    def open(self, stays: int) -> None:
        """Begin anew, with stays from 1 on, up to three of each patient, from 100 on."""
        self.hospital.tables.create()
        self.hospital.tables.fill(_EMPTY)
        self.hospital = Hospital(self.hospital.tables)
        for number in range(1, stays + 1):
            self.hospital.admit(str(number), str(100 + number // 3))
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
        answer = self.app.test_client().get(
            f"{PATH}/{kind}/{id}",
            headers={"Authorization": provider.bearer(provider.sign())},
            base_url=f"http://{HOST}:{self.port}",
        )
        return answer.status_code, answer.get_json(force=True)

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        return self._answer(Request(environ))(environ, start_response)

    def _answer(self, request: Request) -> Response:
        if request.path == "/keys":
            # While a request that the service verifies waits for it.
            return _json(provider.key_set(provider.rsa()))
        if request.path == "/token":
            self.tokens += 1
            token = provider.sign()
            return _json({"access_token": token, "expires_in": self.expires_in})
        with self._lock:
            self.requests.append(f"{request.method} {request.full_path}")
            if request.method == "POST":
                self.forms.append(dict(parse_qsl(request.get_data(as_text=True))))
                request.environ["wsgi.input"] = BytesIO(request.get_data())
            response = self._fhir(request, self.faults.get(len(self.requests)))
            self.after()
            return response

    def _fhir(self, request: Request, fault: Fault | None) -> Response:
        if isinstance(fault, Answer):
            issue = {"severity": "error", "code": "processing", "diagnostics": "No."}
            outcome = _json({"resourceType": "OperationOutcome", "issue": [issue]})
            outcome.status_code = fault.status
            if fault.retry_after:
                outcome.headers["Retry-After"] = fault.retry_after
            return outcome
        if isinstance(fault, Gone):
            self.lose_pages()
        if isinstance(fault, Expiry):
            old = provider.bearer(provider.sign(exp=1))
            request.environ["HTTP_AUTHORIZATION"] = old
        if isinstance(fault, Lost) and fault.how != "within":
            connection: socket.socket = request.environ["werkzeug.socket"]
            if fault.how == "slow":
                # Until the client has given up, which ends its side of the connection.
                connection.settimeout(30)
                connection.recv(1)
            connection.shutdown(socket.SHUT_RDWR)
            return Response()
        response = Response.from_app(self.app, request.environ, buffered=True)
        if isinstance(fault, Page):
            page = response.get_json(force=True)
            fault.change(page)
            response.set_data(json.dumps(page))
        if isinstance(fault, Lost):
            # Its length stays that of the whole.
            response.response = [response.data[: len(response.data) // 2]]
        return response


def _json(value: object) -> Response:
    return Response(json.dumps(value), content_type="application/json")


@contextmanager
def running_service(directory: Path, redis: RedisServer) -> Iterator[Service]:
    """Serve until the block ends."""
    port = free_ports()
    url = f"sqlite:///{directory / 'pas.db'}"
    served = serve(
        _EMPTY,
        directory,
        redis.url,
        mapping=covering_changes(mapping_text(_EMPTY, url)),
        BASE_URL=f"http://{HOST}:{port}{PATH}",
        KEY_SET_URL=f"http://{HOST}:{port}/keys",
        PLAIN_HTTP="loopback",
    )
    tables = Tables(url, _EMPTY)
    service = Service(served.app, redis, port, Hospital(tables))

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def date_time_string(self, timestamp: float | None = None) -> str:
            return format_datetime(service.hospital.now, usegmt=True)

        def log(self, *_: object) -> None:
            """Write nothing."""

    server = make_server(HOST, port, service, threaded=True, request_handler=Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        tables.close()
