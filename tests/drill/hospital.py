"""The hospital of a drill: a known set of stays, and what each search of them must find."""

from datetime import datetime, timedelta

from tests.drill.clients import Search, Work
from toolkit.contract.hospital import (
    KINDS,
    STATES,
    Hospital,
    OrganizationRow,
    PatientRow,
    StayRow,
)

STAYS = 320
ORGANIZATION = "H1"
SHOWN = frozenset({"planned", "in-progress", "finished"})

_STATES = ("S", "S", "E", "S", "P", "C", "S", "A", "E", "X")
_KINDS = ("HC", "URG", "EXT", "SEA", "HP", "URG", "ZZZ")
_FIRST = datetime(2024, 1, 1, 8)  # noqa: DTZ001 - as the rows are


def made_up() -> Hospital:
    """Return stays of which three at a time begin together, hidden and removed ones too."""
    stays = (
        StayRow(
            id=1 + number * 37 % STAYS,
            patient=1 + number % 40,
            state=_STATES[number % len(_STATES)],
            kind=_KINDS[number % len(_KINDS)],
            began=(_FIRST + timedelta(hours=number // 3)).isoformat(" "),
            visit=f"{number:09}",
            changed=(_FIRST + timedelta(days=500, minutes=number // 5)).isoformat(" "),
        )
        for number in range(STAYS)
    )
    patients = (PatientRow(id=1 + number, used_name="X") for number in range(40))
    organization = OrganizationRow(code=ORGANIZATION, title="X")
    return Hospital(tuple(stays), tuple(patients), (organization,))


def searches(hospital: Hospital) -> tuple[Search, ...]:
    """Return the searches of the clients; what they must find is counted off the rows."""
    shown = [row for row in hospital.stays if STATES[row.state or ""] in SHOWN]
    emergencies = [row for row in shown if KINDS.get(row.kind or "") == "EMER"]
    over = [row for row in shown if STATES[row.state or ""] == "finished"]
    return (
        Search({"_sort": "date", "_count": "8"}, _ids(shown)),
        Search({"_sort": "-date", "_count": "10"}, _ids(shown)),
        Search({"_sort": "-_lastUpdated", "_count": "10"}, _ids(shown)),
        Search({"class": "EMER", "_count": "3"}, _ids(emergencies)),
        Search({"status": "finished", "_sort": "date", "_count": "6"}, _ids(over)),
    )


def work(hospital: Hospital) -> Work:
    """Return what clients do without a pause: reads, single pages, walks."""
    shown = [row for row in hospital.stays if STATES[row.state or ""] in SHOWN]
    of_patients: dict[int, list[StayRow]] = {}
    for row in shown:
        of_patients.setdefault(row.patient or 0, []).append(row)
    pages = (
        Search({"patient": str(patient), "_count": "50"}, _ids(rows))
        for patient, rows in of_patients.items()
    )
    return Work(sorted(_ids(shown)), tuple(pages), searches(hospital))


def _ids(rows: list[StayRow]) -> frozenset[str]:
    return frozenset(str(row.id) for row in rows)
