"""A hospital that changes, as a client sees it: stays and patients, and times of change.

Time is the hospital's own and moves by `tick`, so that many changes can have one time.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

BEGIN = datetime(2024, 3, 30, 8, 0, tzinfo=UTC)


class State(StrEnum):
    """How a record is served."""

    CURRENT = "current"
    INVALID = "invalid"
    """A row that breaks a rule: an outcome in a search, 500 on read."""

    CANCELLED = "cancelled"
    """Hidden: 404 on read."""

    REMOVED = "removed"
    """410 on read."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the hospital; `content` is whatever of it may change."""

    id: str
    resource_type: str
    content: str
    changed: datetime | None
    state: State = State.CURRENT
    patient: str = ""
    replaced_by: str = ""

    def resource(self) -> dict[str, Any]:
        """Return the record as a resource."""
        resource: dict[str, Any] = {"resourceType": self.resource_type, "id": self.id}
        if self.changed:
            resource["meta"] = {"lastUpdated": self.changed.isoformat()}
        if self.resource_type == "Encounter":
            resource["status"] = "finished"
            resource["subject"] = {"reference": f"Patient/{self.patient}"}
        if self.replaced_by:
            other = {"reference": f"Patient/{self.replaced_by}"}
            resource["active"] = False
            resource["link"] = [{"other": other, "type": "replaced-by"}]
        return {**resource, "text": {"status": "generated", "div": self.content}}

    def sort_key(self, sort: str) -> tuple[bool, str, str]:
        """Return the place in an order: by id, or by change with those without a time last."""
        if sort != "_lastUpdated":
            return (False, "", self.id.zfill(9))
        changed = self.changed.isoformat() if self.changed else ""
        return (not changed, changed, self.id.zfill(9))


def digest(resource: Mapping[str, Any]) -> str:
    """Return the ETag of a resource."""
    body = json.dumps(resource).encode()
    return f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'


@dataclass
class Hospital:
    """The records by type and id, and the time."""

    now: datetime = BEGIN
    records: dict[tuple[str, str], Record] = field(default_factory=dict)

    def tick(self, seconds: float = 1) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def put(self, record: Record) -> None:
        """Add a record, or replace it."""
        self.records[record.resource_type, record.id] = record

    def admit(
        self,
        id: str,
        patient: str,
        *,
        late: timedelta | None = None,
        dated: bool = True,
    ) -> None:
        """Add a stay, and its patient; `late` ones say that they are older."""
        if ("Patient", patient) not in self.records:
            self.put(Record(patient, "Patient", "new", self.now))
        changed = self.now - (late or timedelta()) if dated else None
        self.put(Record(id, "Encounter", "new", changed, patient=patient))

    def change(self, resource_type: str, id: str, **changes: Any) -> None:
        """Change a record now; one without a time of change gets none."""
        record = self.records[resource_type, id]
        changed = self.now if record.changed else None
        self.put(replace(record, changed=changed, **changes))

    def merge(self, old: str, survivor: str) -> None:
        """Merge a patient into another; its stays follow, without a new time of change."""
        self.change("Patient", old, replaced_by=survivor)
        for record in self.of("Encounter"):
            if record.patient == old:
                self.put(replace(record, patient=survivor))

    def of(self, resource_type: str) -> list[Record]:
        """Return the records of a type."""
        return [r for r in self.records.values() if r.resource_type == resource_type]

    def matches(self, resource_type: str, since: datetime | None) -> Iterator[Record]:
        """Yield what a search finds."""
        for record in self.of(resource_type):
            is_served = record.state in (State.CURRENT, State.INVALID)
            is_since = since is None or (record.changed and record.changed >= since)
            if is_served and is_since:
                yield record

    def fill(self, stays: int) -> None:
        """Add stays with the ids from 1 on, up to three of each patient, from 100 on."""
        for number in range(1, stays + 1):
            self.admit(str(number), str(100 + number // 3))
            self.tick()


def filled(stays: int) -> Hospital:
    """Return a hospital with so many stays."""
    hospital = Hospital()
    hospital.fill(stays)
    return hospital
