"""The service itself, over HTTP, on a hospital in SQLite that changes while clients page.

`SqlHospital` is a `Hospital` that also writes each record to the tables. Faults belong to
the number of a request, as those of `FaultServer`; all answers between them are real.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tests.app import provider
from tests.clients.cases import STAYS, Case
from tests.clients.fault_server import PATH, Answer, Expiry, Fault, Gone
from tests.clients.hospital import Hospital, Record, State
from tests.hospital_sql import Tables, covering_changes, mapping_text
from tests.live import HOST, free_ports
from tests.redis_server import RedisServer
from tests.serving import serve
from toolkit.contract.hospital import Hospital as Rows
from toolkit.contract.hospital import OrganizationRow, PatientRow, StayRow

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ORGANIZATIONS = ("H1", "H2", "H3")
_EMPTY = Rows(organizations=tuple(OrganizationRow(id, id) for id in ORGANIZATIONS))
_STATES: Mapping[State, str] = {
    State.CURRENT: "S",
    State.INVALID: "?",
    State.CANCELLED: "A",
    State.REMOVED: "X",
}


@dataclass
class SqlHospital(Hospital):
    """A hospital whose records are rows: its ids are numbers."""

    tables: Tables | None = None

    def put(self, record: Record) -> None:
        super().put(record)
        assert self.tables is not None
        if record.resource_type == "Encounter":
            self.tables.put_stay(_stay(record))
        elif record.state in (State.CANCELLED, State.REMOVED):
            # Of a patient that is deleted nothing remains.
            self.tables.delete_patient(int(record.id))
        else:
            self.tables.put_patient(_patient(record))


def _stay(record: Record) -> StayRow:
    return StayRow(
        int(record.id),
        int(record.patient),
        _STATES[record.state],
        unit=record.content,
        changed=_clock_time(record.changed),
    )


def _patient(record: Record) -> PatientRow:
    return PatientRow(
        int(record.id),
        record.content,
        born=None if record.state is State.CURRENT else "not a day",
        replaced_by=int(record.replaced_by) if record.replaced_by else None,
        changed=_clock_time(record.changed),
    )


def _clock_time(time: datetime | None) -> str | None:
    return time and f"{time:%Y-%m-%d %H:%M:%S}"


@dataclass
class SqlService:
    """The service: its hospital, faults by number of the request, and the requests so far.

    `after` runs after each answer. The clock of the answers is the hospital's.
    """

    app: Flask
    tables: Tables
    redis: RedisServer
    port: int
    hospital: Hospital
    faults: Mapping[int, Fault] = field(default_factory=dict)
    after: Callable[[], object] = lambda: None
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def environ(self) -> dict[str, str]:
        """Return the settings of a client."""
        return {
            "BASE": f"http://{HOST}:{self.port}{PATH}",
            "TOKEN_URL": f"http://{HOST}:{self.port}/token",
            "CLIENT_ID": "client-1",
            "CLIENT_SECRET": "a secret",
        }

    def open(self, stays: int) -> None:
        """Begin anew, with so many stays and no faults."""
        self.tables.create()
        self.tables.fill(_EMPTY)
        self.hospital = SqlHospital(tables=self.tables)
        self.hospital.fill(stays)
        self.faults, self.after = {}, lambda: None
        self.requests.clear()

    def open_case(self, case: Case) -> None:
        """Begin anew, with the stays and the faults of a case."""
        self.open(STAYS)
        for id in case.invalid:
            self.hospital.change("Encounter", id, state=State.INVALID)
        self.faults = case.faults

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
            return _json({"access_token": provider.sign(), "expires_in": 3600})
        with self._lock:
            return self._fhir(request)

    def _fhir(self, request: Request) -> Response:
        self.requests.append(f"{request.method} {request.full_path}")
        response = self._with_fault(request, self.faults.get(len(self.requests)))
        self.after()
        return response

    def _with_fault(self, request: Request, fault: Fault | None) -> Response:
        if isinstance(fault, Answer):
            return Response(
                status=fault.status, headers={"Retry-After": fault.retry_after or "0"}
            )
        if isinstance(fault, Gone):
            with self.redis.client() as client:
                client.flushdb()
        if isinstance(fault, Expiry):
            old = provider.bearer(provider.sign(exp=1))
            request.environ["HTTP_AUTHORIZATION"] = old
        return Response.from_app(self.app, request.environ, buffered=True)


def _json(value: object) -> Response:
    return Response(json.dumps(value), content_type="application/json")


@contextmanager
def sql_service(directory: Path, redis: RedisServer) -> Iterator[SqlService]:
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
    service = SqlService(served.app, tables, redis, port, SqlHospital(tables=tables))

    class Handler(WSGIRequestHandler):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return format_datetime(service.hospital.now, usegmt=True)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            pass

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
