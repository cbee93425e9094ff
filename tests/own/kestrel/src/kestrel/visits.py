"""Visits as records, or the fault that keeps one from being one."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.contract import EncounterRecord, RowFault
from adapters.mapping.model import SourceMapping

COLUMNS = (
    *("visit", "person", "phase", "kind", "arrived", "departed"),
    *("number", "house", "ward", "touched"),
)
PHASES = {"P": "planned", "E": "in-progress", "S": "finished", "C": "finished"}
KINDS = {"URG": "EMER", "HC": "IMP", "HP": "IMP", "EXT": "AMB", "SEA": "REC"}
HOUSES = {"H1": "urn:oid:1.2.250.1.999.1.1", "H2": "urn:oid:1.2.250.1.999.1.2"}


def record(row: tuple[Any, ...], mapping: SourceMapping) -> EncounterRecord | RowFault:
    """Return a visit as a record; a fault names the field, the column and the rule."""
    visit, person, phase, kind, arrived, departed, number, house, ward, touched = row
    if not re.fullmatch(r"[A-Za-z0-9.\-]{1,64}", str(visit)):
        return RowFault("id", "visit", "no id")
    if phase not in PHASES:
        return RowFault("status", "phase", "no entry")
    if person is None:
        return RowFault("patient_id", "person", "missing")
    if house and house not in HOUSES:
        return RowFault("visit_number_system", "house", "no entry")
    if None not in (arrived, departed) and departed < arrived:
        return RowFault("end", "departed", "before the start")
    return EncounterRecord(
        id=str(visit),
        status=PHASES[phase],
        patient_id=str(person),
        visit_number=number or None,
        visit_number_system=HOUSES[house] if house else None,
        class_code=KINDS.get(kind, "UNK"),
        start=_instant(arrived, mapping),
        end=_instant(departed, mapping),
        functional_unit=ward or None,
        organization_id=house or None,
        last_updated=_instant(touched, mapping),
    )


def _instant(micros: int | None, mapping: SourceMapping) -> datetime | None:
    if micros is None:
        return None
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return instant.astimezone(mapping.time_zone)
