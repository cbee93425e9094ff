"""The audit trail: one AuditEvent for each answer, written before the answer leaves.

Views leave what they were asked and what they show (`note_…`); everything else is taken
from the request and its answer. What a client sent stands there as keyed digests; a name
that is no parameter of ours is not written.
"""

import logging
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import orjson
from flask import Flask, Response, g, request

from adapters.contract import EncounterRecord, PatientRecord, Record, RowFault
from app.current import current_notes
from app.errors import UnavailableError
from app.forms import Pairs
from app.operations.audit_sinks import FileSink, Sink, StreamSink
from app.operations.digests import Digests
from app.operations.logs import request_id
from app.operations.metrics import AUDIT_EVENTS, AUDIT_FAILURES
from app.operations.phases import Phase, phase
from app.outcomes import error_response
from app.parameters import SEARCH_PARAMETERS
from app.presentation import PRESENTATION
from app.schemas.audit_event import Reported, audit_event
from app.setting_readers import AUDIT_OFF, AUDIT_STDOUT
from app.settings import AuditFailure, AuditPatients, Settings
from app.transport import requesting_address

MOST_VALUES = 100
"""How many values of one request have a digest each; longer lists have one together."""

OTHER = "(other)"
"""What stands in place of a name that is no parameter of ours."""

_COMMA = re.compile(r"(?<!\\),")
_MODIFIERS = frozenset({"", "exact", "contains"})
_NAMES = frozenset(
    {
        *(name for table in SEARCH_PARAMETERS.values() for name in table),
        *("_id", "_count", "_sort", "_index", "_searchAfter", "_searchBefore"),
        *PRESENTATION,
    }
)
_INTERACTIONS = {
    "search": "search-type",
    "page": "search-type",
    "read": "read",
    "metadata": "capabilities",
    "history": "history-instance",
}
"""By the name of the view."""

_log = logging.getLogger(__name__)


class Trail:
    """Writes the audit events of a deployment. Thread-safe."""

    def __init__(
        self, settings: Settings, sink: Sink, *, mapping: str, site: str
    ) -> None:
        self._sink = sink
        self._digests = Digests(settings.audit_key or "")
        self._clear = settings.audit_patients is AuditPatients.CLEAR
        self._refuse = settings.audit_failure is AuditFailure.REFUSE
        self._about = (mapping, settings.base_url, site)
        self._addresses = settings.audit_addresses
        self._proxies = settings.trusted_proxies
        self._lock = threading.Lock()
        self.failures = 0

    def follow(self, response: Response) -> Response:
        """Write the event of an answer and return it, or the refusal to answer."""
        with phase(Phase.WRITE):
            event = audit_event(self._reported(response.status_code), *self._about)
            try:
                self._sink.write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))
                AUDIT_EVENTS.inc()
            except OSError as error:
                self._count(error)
                if self._refuse:
                    return error_response(
                        UnavailableError("No answer is given that cannot be audited.")
                    )
        return response

    def _count(self, error: OSError) -> None:
        with self._lock:
            self.failures += 1
            data = {"failures": self.failures, "refused": self._refuse}
        AUDIT_FAILURES.inc()
        _log.error("audit event not written", exc_info=error, extra={"data": data})

    def _reported(self, status: int) -> Reported:
        kind, view = _endpoint()
        noted: _Noted = g.get("shown", _Noted(()))
        shown = _shown(noted) if status < HTTPStatus.BAD_REQUEST else _Shown()
        patients = shown.patients
        if not self._clear:
            patients = [self._digests.remembered(each) for each in patients]
        client = g.get("client")
        return Reported(
            recorded=datetime.now(UTC),
            status=status,
            request_id=request_id() or "",
            interaction=_INTERACTIONS.get(view),
            resource_type=kind,
            client=None if client is None else client.id,
            address=self._address(),
            asked=tuple(self._asked(kind or "")),
            shown=shown.references,
            patients=patients,
            clear=self._clear,
            bundle=shown.bundle,
        )

    def _address(self) -> str | None:
        found = requesting_address(self._proxies) if self._addresses else None
        return None if found is None else str(found)

    def _asked(self, kind: str) -> Iterator[tuple[str, str]]:
        parts = [_Asked(kind, g.get("pairs", ()))]
        if id := (request.view_args or {}).get("id"):
            parts.append(_Asked(kind, (("_id", id),)))
        parts += [walked] if (walked := g.get("walked")) else []
        left = MOST_VALUES
        for part in parts:
            for name, text in part.pairs:
                values = _COMMA.split(text, maxsplit=left) if left else [text]
                left = max(0, left - len(values))
                known = _known(name)
                yield from (
                    (known, self._digests.of(part.meaning(known, value)))
                    for value in values
                )


class _Noted(NamedTuple):
    """What a view leaves of its answer: the rows, and the id of their Bundle."""

    rows: Iterable[Record | RowFault]
    bundle: str | None = None


class _Shown(NamedTuple):
    """What an answer holds: references, and those of the patients in it."""

    references: Sequence[str] = ()
    patients: Sequence[str] = ()
    bundle: str | None = None


class _Asked(NamedTuple):
    """Parameters, and the resource type that they are about."""

    kind: str
    pairs: Pairs

    def meaning(self, name: str, value: str) -> str:
        """Return what is digested: an id as the reference that it stands for."""
        if name == "_id" and self.kind:
            return f"{self.kind}/{value}"
        if name == "patient":
            return f"Patient/{value.rpartition('/')[2]}"
        return value


def register_audit(app: Flask, trail: Trail) -> None:
    """Audit each answer of `app`.

    To be registered after all that adds headers to every answer: Flask goes through
    them backwards, so that a refusal has those headers too.
    """
    app.after_request(trail.follow)


def open_trail(settings: Settings, *, mapping: str, site: str) -> Trail | None:
    """Return the trail of a deployment, None where it has none."""
    if settings.audit == AUDIT_OFF:
        return None
    sink = audit_file(settings) or StreamSink()
    return Trail(settings, sink, mapping=mapping, site=site)


def audit_file(settings: Settings) -> FileSink | None:
    """Return the file of a deployment's events, None where they go elsewhere or nowhere."""
    if settings.audit in {AUDIT_OFF, AUDIT_STDOUT}:
        return None
    return FileSink(Path(settings.audit))


def note_pairs(pairs: Pairs) -> None:
    """Leave what a request asks, as it came."""
    current_notes().pairs = pairs


def note_walk(kind: str, pairs: Pairs) -> None:
    """Leave the question of the search that a page belongs to."""
    g.walked = _Asked(kind, pairs)


def note_page(rows: Iterable[Record | RowFault], bundle: str) -> None:
    """Leave what a Bundle holds."""
    current_notes().shown = _Noted(rows, bundle)


def note_record(record: Record) -> None:
    """Leave the one resource that is read."""
    current_notes().shown = _Noted((record,))


def _shown(noted: _Noted) -> _Shown:
    references: list[str] = []
    patients: dict[str, None] = {}
    for record in noted.rows:
        if isinstance(record, RowFault):
            continue
        if isinstance(record, PatientRecord):
            patients[f"Patient/{record.id}"] = None
        elif isinstance(record, EncounterRecord):
            references.append(f"Encounter/{record.id}")
            patients[f"Patient/{record.patient_id}"] = None
        else:
            references.append(f"Organization/{record.id}")
    return _Shown(references, list(patients), noted.bundle)


def _endpoint() -> tuple[str | None, str]:
    """Return the resource type and the name of the view that answered, "" for none."""
    blueprint, _, view = (request.endpoint or "").partition(".")
    if request.method == "OPTIONS":
        # Flask's own answer: nothing was read.
        view = ""
    kinds = {"encounter", "patient", "organization", "bundle"}
    return (blueprint.title() if blueprint in kinds else None), view


def _known(name: str) -> str:
    base, _, modifier = name.partition(":")
    return name if base in _NAMES and modifier in _MODIFIERS else OTHER
