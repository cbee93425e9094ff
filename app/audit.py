"""The audit trail: one AuditEvent for each response, written before the response leaves.

What was requested and what is returned comes from the `Call` of the request (`app.call`); the
rest is read from the request and its response. Values that a client sent are written as keyed
digests, and the names of unknown parameters not at all. Events go to stdout, to syslog or to
a file that several processes append to; logrotate may rename the file, without a signal to
anybody.
"""

import base64
import errno
import fcntl
import logging
import os
import re
import select
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from http import HTTPStatus
from itertools import count
from pathlib import Path

import orjson

from adapters.contract import (
    EncounterRecord,
    PatientRecord,
    Record,
    ResourceType,
    RowFault,
)
from adapters.parameters import DERIVED, SEARCH_PARAMETERS, profile_parameters
from app.call import Call, Stage
from app.config import (
    AUDIT_OFF,
    AUDIT_STDOUT,
    AUDIT_SYSLOG,
    PREFIX,
    Settings,
    SettingsError,
    is_null_device,
)
from app.fhir.audit_event import AuditedResponse, Deployment, audit_event
from app.in_process import REASON
from app.middleware import requesting_address
from app.observability import AUDIT_EVENTS, AUDIT_FAILURES
from app.search.parser import PRESENTATION, Parameters
from app.search.types import MATCHES

TURN_SECONDS = 1.0
"""How long a line waits for other writers, or for a reader of stdout that has stalled."""

MOST_VALUES = 100
"""How many values of a request get a digest each; the rest of a list shares one."""

STDOUT = 1

OTHER = "(other)"
"""Written in place of the name of an unknown parameter."""

_SAME = {
    name: row.parameter
    for name, row in DERIVED[ResourceType.ENCOUNTER].items()
    if row.kind is ResourceType.ENCOUNTER
}
"""Parameters of stays that are another one by another name."""

_COMMA = re.compile(r"(?<!\\),")
_MODIFIERS = frozenset({*MATCHES, *ResourceType})
_NAMES = frozenset(
    {
        *(name for kind in ResourceType for name in profile_parameters(kind)),
        *("_index", "_searchAfter", "_searchBefore"),
        *PRESENTATION,
    }
)
_VIEWS: Mapping[str, tuple[str | None, str | None]] = {
    "search_encounters": ("search-type", "Encounter"),
    "search_patients": ("search-type", "Patient"),
    "search_organizations": ("search-type", "Organization"),
    "read_encounter": ("read", "Encounter"),
    "read_patient": ("read", "Patient"),
    "read_organization": ("read", "Organization"),
    "page": ("search-type", "Bundle"),
    "metadata": ("capabilities", None),
    "discovery": ("capabilities", None),
    "history": ("history-instance", None),
}
"""Interaction (STU3, restful-interaction) and resource type of each view that has one."""

_log = logging.getLogger(__name__)


def open_trail(settings: Settings, *, mapping: str, site: str) -> "AuditTrail | None":
    """Return the trail of a deployment, None if it has none.

    Raises SettingsError where events go to a stdout that drops them without an error.
    """
    if settings.audit == AUDIT_OFF:
        return None
    if settings.audit == AUDIT_STDOUT:
        check_stdout()
    return AuditTrail(settings, mapping=mapping, site=site)


def check_stdout() -> None:
    """Raise SettingsError if stdout accepts lines that nobody gets."""
    status = os.fstat(STDOUT)
    is_silent = is_null_device(status)
    if stat.S_ISSOCK(status.st_mode):
        with socket.socket(fileno=os.dup(STDOUT)) as connection:
            is_silent = connection.type == socket.SOCK_DGRAM
    if is_silent:
        text = f"{PREFIX}AUDIT is stdout, which is /dev/null or a datagram socket here:"
        fault = f"{text} events would be lost. Connect stdout, or name a file."
        raise SettingsError((fault,))


def open_sink(settings: Settings) -> "FileSink | StreamSink | SyslogSink":
    """Return what a deployment's events are written to."""
    if file := settings.audit_file:
        return FileSink(file)
    if settings.audit == AUDIT_STDOUT:
        return StreamSink()
    return SyslogSink(settings.audit.removeprefix(AUDIT_SYSLOG))


class AuditTrail:
    """Writes the audit events of a deployment. Thread-safe."""

    def __init__(self, settings: Settings, *, mapping: str, site: str) -> None:
        self._settings = settings
        self._sink = open_sink(settings)
        self._digests = Digests(settings.audit_key or "")
        self._deployment = Deployment(mapping, settings.base_url, site)
        self._failures = count(1)

    def record(self, call: Call, status: int) -> bool:
        """Write the event of a response; return whether the response may be sent."""
        call.enter(Stage.WRITE)
        event = audit_event(self._described(call, status), self._deployment)
        line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
        try:
            self._sink.write(line)
        except OSError as error:
            is_refused = self._settings.audit_failure == "refuse"
            AUDIT_FAILURES.inc()
            data = {"failures": next(self._failures), "refused": is_refused}
            _log.error("audit event not written", exc_info=error, extra={"data": data})
            return not is_refused
        AUDIT_EVENTS.inc()
        return True

    def _described(self, call: Call, status: int) -> AuditedResponse:
        """Return what the event of a response contains."""
        settings = self._settings
        interaction, kind = _VIEWS.get(call.view, (None, None))
        is_returned = status < HTTPStatus.BAD_REQUEST
        patients, patient_rows, others = _references(call.rows if is_returned else ())
        # Stays name their patients; patients alone have been searched or read themselves.
        returned: str | None = None
        included: list[str] = []
        if any(patients.values()):
            returned, included = "Encounter", patient_rows
        elif patients:
            returned = "Patient"
        if settings.audit_patients == "digest":
            digest = self._digests.remembered
            patients = {digest(name): ids for name, ids in patients.items()}
            included = [digest(name) for name in included]
        address = None
        if settings.audit_addresses:
            address = requesting_address(call.environ, settings.trusted_proxies)
        return AuditedResponse(
            recorded=datetime.now(UTC).isoformat(timespec="milliseconds"),
            status=status,
            request_id=call.id,
            interaction=interaction,
            resource_type=kind,
            client=call.client_id,
            address=None if address is None else str(address),
            key=self._digests.fingerprint,
            parameters=tuple(self._parameters(kind or "", call)),
            reason=call.environ.get(REASON),
            returned=returned,
            patients={name: ",".join(ids) for name, ids in patients.items()},
            included=included,
            others=others,
            bundle=call.bundle if is_returned else None,
        )

    def _parameters(self, kind: str, call: Call) -> Iterator[tuple[str, str]]:
        """Yield the names of parameters with digests of their values.

        `kind` is the requested type, "" for none. The id of a read, the search of a page and
        the patients whom identifiers name are parameters, too.
        """
        parts: list[tuple[str, Parameters]] = [(kind, call.parameters)]
        if call.resource_id:
            parts.append((kind, (("_id", call.resource_id),)))
        if call.page_of:
            parts.append(call.page_of)
        if call.patients:
            # Whom the identifiers of a search mean.
            meant = (("patient", ",".join(call.patients)),)
            parts.append((ResourceType.ENCOUNTER, meant))
        left = MOST_VALUES
        for searched, pairs in parts:
            for name, text in pairs:
                base, _, modifier = name.partition(":")
                is_known = base in _NAMES and modifier in _MODIFIERS
                written_name = name if is_known else OTHER
                values = _COMMA.split(text, maxsplit=left) if left else [text]
                left = max(0, left - len(values))
                for value in values:
                    meaning = _meaning(searched, written_name, value)
                    yield written_name, self._digests.of(meaning)


def _meaning(kind: str, name: str, value: str) -> str:
    """Return the text to digest: "Patient/42" for an id or a reference, else the value.

    So a patient has one digest, whichever parameter names them.
    """
    if name == "_id" and kind:
        return f"{kind}/{value}"
    base = name.partition(":")[0]
    row = SEARCH_PARAMETERS[ResourceType.ENCOUNTER].get(_SAME.get(base, base))
    if row is None or row.target is None:
        return value
    return f"{row.target}/{value.rpartition('/')[2]}"


def _references(
    rows: Iterable[Record | RowFault],
) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Return the ids of the encounters of each patient, and two lists of references.

    These are of the patients that are rows themselves, and of organizations.
    """
    patients: dict[str, list[str]] = {}
    patient_rows: list[str] = []
    others: list[str] = []
    for record in rows:
        if isinstance(record, PatientRecord):
            patient_rows.append(f"Patient/{record.id}")
            patients.setdefault(patient_rows[-1], [])
        elif isinstance(record, EncounterRecord):
            ids = patients.setdefault(f"Patient/{record.patient_id}", [])
            ids.append(record.id)
        elif not isinstance(record, RowFault):
            others.append(f"Organization/{record.id}")
    return patients, patient_rows, others


class Digests:
    """Keyed digests: BLAKE2b of 18 bytes as base64, equal for equal texts."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()
        self.fingerprint = self.of("key")[:8]
        """Identifies the key of an event."""
        # Page after page names the same patients.
        self.remembered = lru_cache(8192)(self.of)

    def of(self, text: str) -> str:
        """Return the digest of a text."""
        encoded = text.encode("utf-8", "backslashreplace")
        digest = blake2b(encoded, key=self._key, digest_size=18).digest()
        return base64.b64encode(digest).decode()


class FileSink:
    """Appends to a file, which it opens for each line: logrotate may rename it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, line: bytes) -> None:
        """Append one line, or nothing of it. Raises OSError."""
        # Each opening has a lock of its own: it excludes threads and processes alike.
        with self._open() as file, _file_lock(fcntl.flock, file):
            end = os.fstat(file).st_size
            if end and os.pread(file, 1, end - 1) != b"\n":
                # A process was killed in the middle of a line.
                line = b"\n" + line
            if os.write(file, line) < len(line):
                os.ftruncate(file, end)
                raise _failure(errno.ENOSPC)

    @contextmanager
    def _open(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o640)
        try:
            yield file
        finally:
            os.close(file)


class StreamSink:
    """Writes to a pipe, a socket or a terminal that several processes share."""

    def __init__(self, file: int = STDOUT) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._is_torn = False

    def write(self, line: bytes) -> None:
        """Write one line. Raises OSError; a reader that stalls may get a torn line."""
        # Not flock: the workers inherit this file, and would share the lock. But for
        # lockf all threads of a process are one.
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise _failure(errno.ETIMEDOUT)
        try:
            with _file_lock(fcntl.lockf, self._file):
                self._send(b"\n" + line if self._is_torn else line)
        finally:
            self._lock.release()

    def _send(self, line: bytes) -> None:
        sent = 0
        try:
            while sent < len(line):
                _, ready, _ = select.select([], [self._file], [], TURN_SECONDS)
                if not ready:
                    raise _failure(errno.ETIMEDOUT)
                # When there is room, this much is written without waiting (POSIX).
                sent += os.write(self._file, line[sent : sent + select.PIPE_BUF])
        finally:
            self._is_torn = sent < len(line) and (sent > 0 or self._is_torn)


class SyslogSink:
    """Sends to a syslog daemon of this machine over TCP, each event as one message.

    Sources: RFC 6587 section 3.4.1 (octet counting), RFC 5424. A daemon that has gone is an
    error at the event that it did not get, one that stalls is an error after a second.
    """

    _HEADER = b"<109>1 - - encounters %d - - "
    """Facility 13, log audit; severity 5, notice. The event has its own time."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._rest = b""

    def write(self, line: bytes) -> None:
        """Send one line. Raises OSError."""
        message = self._HEADER % os.getpid() + line.rstrip(b"\n")
        frame = b"%d %b" % (len(message), message)
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise _failure(errno.ETIMEDOUT)
        try:
            if self._connection is not None:
                try:
                    return self._send(self._connection, frame)
                except ConnectionError:
                    # The daemon has been started anew.
                    pass
            self._connection = socket.create_connection(self._address, TURN_SECONDS)
            self._send(self._connection, frame)
        finally:
            self._lock.release()

    def _send(self, connection: socket.socket, frame: bytes) -> None:
        """Send the rest of an interrupted message, and a whole new one."""
        data = self._rest + frame
        sent = 0
        try:
            while sent < len(data):
                sent += connection.send(data[sent:])
            # A daemon that has gone resets the connection at once on this machine.
            if select.select([connection], [], [], 0)[0] and not connection.recv(1):
                raise _failure(errno.ECONNRESET)
        except TimeoutError:
            # A message that was begun must end, or the daemon takes the next one for its rest;
            # one that was not is dropped. A new connection would only fill another buffer that
            # nobody reads.
            self._rest = data[sent:].removesuffix(frame)
            raise
        except OSError:
            connection.close()
            self._connection = None
            self._rest = b""
            raise
        self._rest = b""


@contextmanager
def _file_lock(lock: Callable[[int, int], object], file: int) -> Iterator[None]:
    """Wait for the lock of a file, as long as a line may."""
    deadline = time.monotonic() + TURN_SECONDS
    while True:
        try:
            lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise _failure(errno.ETIMEDOUT) from error
            time.sleep(0.001)
    try:
        yield
    finally:
        lock(file, fcntl.LOCK_UN)


def _failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))
