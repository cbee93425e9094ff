"""`encounters audit who`: who saw the data of a patient."""

import csv
import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from datetime import datetime, timedelta
from glob import escape
from http import HTTPStatus
from pathlib import Path

import orjson

from app.audit import Digests
from app.config import AUDIT_OFF, PREFIX, audit_file, read_settings
from app.console import FINDINGS, FINE, CannotRunError, aligned, print_json
from app.fhir.audit_event import UNREADABLE, AuditedResponse, read_event

MOST_IDS = 3
"""More resources than these are counted in the table; CSV and JSON name all."""

_TABLE = ("time", "client", "action", "what", "request")


@dataclass(frozen=True, slots=True)
class Disclosure:
    """A response with data of the patient; `resources` are references, with blanks between.

    They are "" where the request named the patient and the response shows no resource.
    """

    time: str
    client: str
    address: str
    action: str
    resources: str
    request_id: str


class _Search:
    """A search for a patient in events of several keys, and what it could not read.

    `foreign` are the times of events that name patients under an unknown key.
    """

    def __init__(self, patient: str, keys: list[str], start: str, end: str) -> None:
        digests = [Digests(key) for key in keys]
        self.patient, self.start, self.end = patient, start, end
        self.names = {patient, *(digest.of(patient) for digest in digests)}
        self.keys = {digest.fingerprint for digest in digests}
        self.foreign: list[str] = []
        self.unreadable = 0

    def disclosures(self, lines: Iterable[bytes]) -> Iterator[Disclosure]:
        """Yield the responses with data of the patient."""
        names = [name.encode() for name in self.names]
        keys = [key.encode() for key in self.keys]
        for line in lines:
            names_patient = any(name in line for name in names)
            has_known_key = any(key in line for key in keys)
            if has_known_key and not names_patient:
                # Parsing each such line would take twenty times as long.
                continue
            try:
                event = read_event(orjson.loads(line))
            except UNREADABLE:
                self.unreadable += 1
                continue
            if self.start <= event.recorded < self.end:
                yield from self._disclosure(event)

    def _disclosure(self, event: AuditedResponse) -> Iterator[Disclosure]:
        """Yield the disclosure of an event, if it is one; note an unknown key."""
        names = self.names & event.patients.keys()
        # A request that succeeded may name the patient and show nothing, as a count does.
        is_requested = any(value in self.names for _, value in event.parameters)
        if names or (is_requested and event.status < HTTPStatus.BAD_REQUEST):
            ids = ",".join(event.patients[name] for name in names)
            references = [f"{event.returned}/{id}" for id in ids.split(",") if id]
            is_included = not self.names.isdisjoint(event.included)
            if names and (not references or is_included):
                references.append(self.patient)
            yield Disclosure(
                time=event.recorded,
                client=event.client or "",
                address=event.address or "",
                action=event.interaction or "",
                resources=" ".join(references),
                request_id=event.request_id,
            )
        elif event.key not in self.keys and not event.is_clear:
            self.foreign.append(event.recorded)


def who(
    *,
    patient: str,
    files: Sequence[Path],
    start: datetime | None,
    end: datetime | None,
    keys: Sequence[Path],
    as_csv: bool,
    as_json: bool,
) -> int:
    """Print who saw which data of a patient."""
    kind, _, id = patient.rpartition("/")
    if not id or kind.rpartition("/")[2] not in {"", "Patient"}:
        raise CannotRunError("PATIENT is a reference such as Patient/42")
    reference = f"Patient/{id}"
    search = _Search(
        reference,
        _keys(keys),
        start=f"{start:%Y-%m-%d}" if start else "",
        # "~" is after every date.
        end=f"{end + timedelta(days=1):%Y-%m-%d}" if end else "~",
    )
    rows: list[Disclosure] = []
    for path in _paths(files):
        rows += search.disclosures(_lines(path))
    rows.sort(key=lambda row: row.time)
    if as_json:
        print_json({"patient": reference, "disclosures": [asdict(row) for row in rows]})
    elif as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerows([[f.name for f in fields(Disclosure)], *map(astuple, rows)])
    else:
        print(*aligned([_TABLE, *map(_cells, rows)]), sep="\n")
    if search.unreadable:
        print(f"{search.unreadable} lines are not audit events", file=sys.stderr)
    if search.foreign:
        period = f"{min(search.foreign)} to {max(search.foreign)}"
        text = f"events have another key, name it with --key: {period}"
        print(text, file=sys.stderr)
    return FINDINGS if search.unreadable or search.foreign else FINE


def _cells(row: Disclosure) -> tuple[str, ...]:
    references = row.resources.split()
    what = row.resources or "no resource"
    if len(references) > MOST_IDS:
        what = f"{len(references)} {references[0].partition('/')[0]}"
    return row.time, row.client, row.action, what, row.request_id


def _keys(files: Iterable[Path]) -> list[str]:
    """Return the key of the settings and those of files. Raises CannotRunError if none."""
    setting = read_settings(os.environ).values.get("audit_key")
    try:
        others = [path.read_text("utf-8-sig").strip() for path in files]
    except (OSError, ValueError) as error:
        raise CannotRunError("a file of --key cannot be read") from error
    keys = [key for key in (setting, *others) if key]
    if not keys:
        name = f"{PREFIX}AUDIT_KEY"
        raise CannotRunError(f"no key: set {name} or {name}_FILE, or use --key")
    return keys


def _paths(files: Sequence[Path]) -> list[Path]:
    """Return the files to read: by default that of the settings and its rotated ones."""
    target = read_settings(os.environ).values.get("audit", AUDIT_OFF)
    path = audit_file(target)
    if not files and path:
        files = tuple(sorted(path.parent.glob(f"{escape(path.name)}*")))
    if not files:
        raise CannotRunError(f"no audit file: check {PREFIX}AUDIT, or name the files")
    return list(files)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise CannotRunError(f"{path.name} cannot be read") from error
