"""A service in front of a `Hospital` that fails when a test says so.

It pages, renews tokens and answers reads as docs/call describes. A fault belongs to the
number of a request (from 1; those for tokens do not count).
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.clients.hospital import Hospital, Record, State, digest
from tests.live import HOST

PATH = "/fhir/v3"


@dataclass(frozen=True)
class Answer:
    """An error in place of the answer."""

    status: int
    retry_after: str | None = None
    code: str = "processing"


@dataclass(frozen=True)
class Lost:
    """A connection that ends: before the answer, within it, or after the client gave up."""

    how: str


@dataclass(frozen=True)
class Page:
    """A page that is not what it should be."""

    changed: Callable[[dict[str, Any], "FaultServer"], object]


@dataclass(frozen=True)
class Expiry:
    """The token expires before this request."""


@dataclass(frozen=True)
class Gone:
    """The pages of every search are lost before this request."""


Fault = Answer | Lost | Page | Expiry | Gone


@dataclass
class FaultServer:
    """The service: its hospital, faults by number of the request, and the requests so far."""

    hospital: Hospital
    faults: Mapping[int, Fault] = field(default_factory=dict)
    page_size: int = 10
    paging: bool = True
    counting: bool = True
    expires_in: int = 3600
    port: int = 0
    requests: list[str] = field(default_factory=list)
    tokens: int = 0
    searches: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ids = count(1)
        self._expired = False

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

    def token(self) -> dict[str, Any]:
        """Return a new token; older ones are valid no longer."""
        self.tokens += 1
        self._expired = False
        return {"access_token": f"token-{self.tokens}", "expires_in": self.expires_in}

    def is_valid(self, authorization: str | None) -> bool:
        """Return whether a request is authorized."""
        return authorization == f"Bearer token-{self.tokens}" and not self._expired

    def read(self, kind: str, id: str) -> tuple[int, Any]:
        """Return status and body of a read."""
        record = self.hospital.records.get((kind, id))
        match record and record.state:
            case State.CURRENT:
                return 200, record and record.resource()
            case State.REMOVED:
                return 410, _outcome("not-found")
            case State.INVALID:
                return 500, _outcome("exception")
        return 404, _outcome("not-found")

    def fault(self) -> Fault | None:
        """Return the fault of the current request; carry out those of the service's state."""
        fault = self.faults.get(len(self.requests))
        if isinstance(fault, Expiry):
            self._expired = True
        if isinstance(fault, Gone):
            self.searches.clear()
        return fault

    def search(self, resource_type: str, parameters: Mapping[str, str]) -> Any:
        """Return the first page of a search."""
        id = f"s{next(self._ids)}"
        self.searches[id] = {**parameters, "type": resource_type}
        return self.page(id, None)

    def page(self, id: str, after: str | None) -> Any:
        """Return the page behind a cursor, None if the search is no longer stored."""
        search = self.searches.get(id)
        if search is None:
            return None
        cursors = {
            _cursor(record.sort_key(search.get("_sort", ""))): record
            for record in self._matches(search)
        }
        size = min(int(search.get("_count", self.page_size)), self.page_size)
        rest = sorted(each for each in cursors if after is None or each > after)
        page, more = rest[:size], rest[size:]
        bundle: dict[str, Any] = {"resourceType": "Bundle", "type": "searchset"}
        if self.counting and search.get("_total") != "none":
            bundle["total"] = len(cursors)
        bundle["link"] = [{"relation": "self", "url": f"{self.base}/Bundle?_id={id}"}]
        if more and self.paging:
            url = f"{self.base}/Bundle?_id={id}&_searchAfter={page[-1]}"
            bundle["link"].append({"relation": "next", "url": url})
        bundle["entry"] = [_entry(cursors[each]) for each in page]
        return bundle

    def _matches(self, search: Mapping[str, str]) -> Iterator[Record]:
        """Yield the matches by time of change, by id and by patient."""
        since = search.get("_lastUpdated", "").removeprefix("ge")
        ids = search["_id"].split(",") if "_id" in search else None
        patient = search.get("patient", "").removeprefix("Patient/")
        for record in self.hospital.matches(search["type"], _time(since)):
            if ids is not None and record.id not in ids:
                continue
            if patient and record.patient != patient:
                continue
            yield record

    def capabilities(self) -> Any:
        """Return which types have `_lastUpdated` and `_id`."""
        parameters = [
            {"name": "_lastUpdated", "type": "date"},
            {"name": "_id", "type": "token"},
        ]
        kinds = ("Encounter", "Patient", "Organization")
        resources = [{"type": each, "searchParam": parameters} for each in kinds]
        rest = [{"mode": "server", "resource": resources}]
        return {"resourceType": "CapabilityStatement", "rest": rest}


def _time(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _cursor(key: tuple[bool, str, str]) -> str:
    """Return a position that sorts as the keys do, of letters and digits alone."""
    is_undated, changed, id = key
    return f"{is_undated:d}{changed}\0{id}".encode().hex()


def _entry(record: Record) -> dict[str, Any]:
    if record.state is State.CURRENT:
        return {"resource": record.resource(), "search": {"mode": "match"}}
    text = (
        f"{record.resource_type}/{record.id} cannot be shown: reference r{record.id}."
    )
    outcome = _outcome("exception", "warning", text)
    return {"resource": outcome, "search": {"mode": "outcome"}}


def _outcome(code: str, severity: str = "error", text: str = "No.") -> dict[str, Any]:
    issue = {"severity": severity, "code": code, "diagnostics": text}
    return {"resourceType": "OperationOutcome", "issue": [issue]}


class _Handler(BaseHTTPRequestHandler):
    """Answers requests one at a time, as `FaultServer` says."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    service: FaultServer
    lock: threading.Lock

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        form = self.rfile.read(length).decode()
        self._serve(dict(parse_qsl(form, keep_blank_values=True)))

    def _serve(self, form: Mapping[str, str]) -> None:
        service = self.service
        with self.lock:
            if self.path == "/token":
                self._send(200, service.token())
                return
            service.requests.append(f"{self.command} {self.path}")
            fault = service.fault()
            if isinstance(fault, Lost) and fault.how != "within":
                self._lose(fault.how)
                return
            if isinstance(fault, Answer):
                self._refuse(fault)
            elif not service.is_valid(self.headers.get("Authorization")):
                self._send(401, _outcome("expired"))
            else:
                self._answer(form, fault)

    def _answer(self, form: Mapping[str, str], fault: Fault | None) -> None:
        url = urlsplit(self.path)
        query = {**form, **dict(parse_qsl(url.query))}
        parts = url.path.removeprefix(f"{PATH}/").split("/")
        if parts == ["metadata"]:
            self._send(200, self.service.capabilities())
            return
        if parts == ["Bundle"]:
            body = self.service.page(query["_id"], query.get("_searchAfter"))
        elif parts[-1] == "_search":
            body = self.service.search(parts[0], query)
        else:
            self._read(*parts)
            return
        if body is None:
            self._send(410, _outcome("not-found"))
            return
        if isinstance(fault, Page):
            fault.changed(body, self.service)
        self._send(200, body, cut=isinstance(fault, Lost))

    def _read(self, resource_type: str, id: str) -> None:
        status, body = self.service.read(resource_type, id)
        etag = {"ETag": digest(body)} if status == 200 else {}
        if etag and self.headers.get("If-None-Match") == etag["ETag"]:
            status, body = 304, None
        self._send(status, body, **etag)

    def _refuse(self, fault: Answer) -> None:
        after = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        self._send(fault.status, _outcome(fault.code), **after)

    def _lose(self, how: str) -> None:
        self.close_connection = True
        if how == "slow":
            # Until the client has given up, which ends its side of the connection.
            self.connection.settimeout(30)
            self.connection.recv(1)

    def _send(
        self, status: int, body: Any, *, cut: bool = False, **headers: str
    ) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response_only(status)
        self.send_header(
            "Date", format_datetime(self.service.hospital.now, usegmt=True)
        )
        if status != 304:
            self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(text[: len(text) // 2] if cut else text)
        self.close_connection = self.close_connection or cut

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True


@contextmanager
def serving(service: FaultServer) -> Iterator[FaultServer]:
    """Serve until the block ends."""
    attributes = {"service": service, "lock": threading.Lock()}
    server = _Server((HOST, 0), type("Handler", (_Handler,), attributes))
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
