"""The rows of a tiny hospital as the API of the demo shows them."""

from collections.abc import Iterable
from datetime import date, datetime

from demo.http import FRACTION, Json, Pas
from toolkit.contract import hospital as tiny
from toolkit.contract.hospital import (
    Hospital,
    Ids,
    OrganizationRow,
    PatientRow,
    StayRow,
)

COLUMNS = {
    "id": "stay_id",
    "patient.ipp": "patient_id",
    "etat": "state",
    "dateEntree": "began",
    "dateSortie": "ended",
    "etablissement.id": "hospital",
    "nom": "title",
}
"""The suite's name of each column that a fault may name."""


def rows_of(hospital: Hospital, stays: Iterable[StayRow]) -> Pas:
    """Return the rows of a hospital with these stays, as the API shows them."""
    rows = {
        "sejours": [stay(hospital, row) for row in stays],
        "patients": [_patient(hospital, row) for row in hospital.patients],
        "etablissements": [_house(row) for row in hospital.organizations],
    }
    return {kind: {str(row["id"]): row for row in made} for kind, made in rows.items()}


def stay(hospital: Hospital, row: StayRow) -> Json:
    """Return a stay, moved to the file that its patient's was merged into."""
    return {
        "id": hospital.ids.stored(row.id),
        "numVenue": row.visit,
        "patient": {"ipp": row.patient and _survivor(hospital, row.patient)},
        "etat": row.state,
        "typeSejour": row.kind,
        "dateEntree": _moment(row.began),
        "dateSortie": _moment(row.ended),
        "uf": None if row.unit is None else {"code": row.unit},
        "etablissement": {"id": row.hospital},
        "maj": _moment(row.changed),
    }


def _survivor(hospital: Hospital, patient: int) -> int | str:
    merged = {row.id: row.replaced_by for row in hospital.patients}
    return hospital.ids.stored(merged.get(patient) or patient)


def _patient(hospital: Hospital, row: PatientRow) -> Json:
    """Return a patient; several given names are told from one that has a blank."""
    stored, several = hospital.ids.stored, hospital.ids is Ids.TEXTS
    return {
        "id": stored(row.id),
        "dossier": "A" if row.replaced_by is None else "F",
        "fusionVers": row.replaced_by and stored(row.replaced_by),
        "noms": {
            "naissance": row.birth_name,
            "utilise": row.used_name,
            "prenoms" if several else "prenomUtilise": row.given,
        },
        "sexe": row.sex,
        "dateNaissance": row.born and f"{date.fromisoformat(row.born):%d/%m/%Y}",
        "numeros": [
            {"domaine": system, "valeur": value} for value, system in row.numbers
        ],
        "maj": _moment(row.changed),
    }


def _house(row: OrganizationRow) -> Json:
    """Return an organization."""
    return {
        "id": row.code,
        "nom": row.title,
        "finess": row.finess,
        "maj": _moment(row.changed),
    }


def _moment(text: str | None) -> str | None:
    return _written(text) if text else text


def _written(text: str) -> str:
    """Return a time as the API writes it."""
    return datetime.fromisoformat(text).strftime(FRACTION)


NO_START, NO_END = _written(tiny.NO_START), _written(tiny.NO_END)
