"""A Kestrel file that holds the rows of a hospital of the suite."""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.memory import FaultyRow
from toolkit.contract import Hospital, Ids, StayRow

COLUMNS = {
    "visit": "stay_id",
    "phase": "state",
    "person": "patient_id",
    "house": "hospital",
    "departed": "ended",
}
"""The names of the suite for those of Kestrel."""

MAPPING = """\
mapping: 1
name: Kestrel
profile: full
time_zone: Europe/Paris
source: {kind: "kestrel:KestrelAdapter", options: {file: {env: KESTREL_FILE}}}
encounter:
  search: [_id, patient, date, status]
  sort: [date, _lastUpdated]
"""


def holdable(hospital: Hospital) -> Hospital:
    """Return the hospital without what Kestrel cannot hold: clock times that never were."""
    stays = tuple(row for row in hospital.stays if not _never(hospital, row))
    return replace(hospital, stays=stays)


def _never(hospital: Hospital, row: StayRow) -> bool:
    stay = hospital.stay(row)
    return isinstance(stay, FaultyRow) and stay.fault.rule == "never"


def fill(hospital: Hospital, file: Path) -> None:
    """Write the file."""
    ids = "INTEGER" if hospital.ids is Ids.NUMBERS else "TEXT"
    with sqlite3.connect(file) as connection:
        connection.executescript(
            f"CREATE TABLE persons (person {ids} PRIMARY KEY, merged {ids});"
            f"CREATE TABLE visits (visit {ids} PRIMARY KEY, person {ids}, phase TEXT,"
            "  kind TEXT, arrived INTEGER, departed INTEGER, number TEXT, house TEXT,"
            "  ward TEXT, touched INTEGER);"
        )
        connection.executemany(
            "INSERT INTO persons VALUES (?, ?)",
            [
                (hospital.ids.stored(row.id), _id(hospital, row.replaced_by))
                for row in hospital.patients
            ],
        )
        connection.executemany(
            f"INSERT INTO visits VALUES ({', '.join('?' * 10)})",
            [_visit(hospital, row) for row in hospital.stays],
        )
    connection.close()


def _visit(hospital: Hospital, row: StayRow) -> tuple[object, ...]:
    stay = hospital.stay(row)
    record = stay.record if isinstance(stay, FaultyRow) else stay
    survivors = {each.id: each.replaced_by for each in hospital.patients}
    person = survivors.get(row.patient) or row.patient
    return (
        hospital.ids.stored(row.id),
        _id(hospital, person),
        row.state,
        row.kind,
        _micros(record.start),
        _micros(record.end),
        row.visit,
        row.hospital,
        row.unit,
        _micros(record.last_updated),
    )


def _id(hospital: Hospital, number: int | None) -> object:
    return None if number is None else hospital.ids.stored(number)


def _micros(instant: datetime | None) -> int | None:
    if instant is None:
        return None
    since = instant - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)
