"""What a search of the demo's HTTP API finds, of a few rows and of the made-up hospital."""

import json
from urllib.parse import parse_qsl

import pytest

from demo.folder import read_hospital
from demo.found import found
from demo.hospital import generate
from demo.pas import Pas, hospital
from demo.rows import IdentifiantPatient, Identite, Row, Sejour

STAYS = [
    {
        "id": 7,
        "patient": {"ipp": 1},
        "etat": "E",
        "dateEntree": "30/03/2024 08:15:00",
    },
    {"id": 8, "etat": "S", "dateEntree": "01/01/1900 00:00:00", "uf": None},
    {
        "id": 9,
        "patient": {"ipp": 2},
        "dateEntree": "31/03/2024 08:15:00.5",
        "uf": {"code": "0123"},
    },
]
PATIENTS = [
    {"id": 1, "noms": {"naissance": "Duprès", "prenoms": "Jean Paul"}, "sexe": "M"},
    {"id": 2, "noms": {"utilise": "Le Jean", "prenomUtilise": "Jean Paul"}},
    {
        "id": 3,
        "dateNaissance": "01/01/1900",
        "numeros": [{"domaine": "B", "valeur": "1"}],
    },
    {"id": 4, "dateNaissance": "28/02/1950", "fusionVers": 1},
]
FEW = read_hospital(json.dumps({"sejours": STAYS, "patients": PATIENTS}).encode())


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(generate(1000, 1))


@pytest.fixture(scope="module")
def pas(rows: list[Row]) -> Pas:
    return hospital(rows)


def _ids(pas: Pas, kind: str, asked: str) -> list[int]:
    return [row["id"] for row in found(pas, kind, dict(parse_qsl(asked)))]


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ("", [9, 7, 8]),
        ("tri=entree", [7, 9, 8]),
        ("tri=-entree", [9, 7, 8]),
        ("tri=id", [7, 8, 9]),
        ("tri=-id", [9, 8, 7]),
        ("sansEtats=E,S", [9]),
        ("entreeDu=30/03/2024", [9, 7]),
        ("entreeDu=31/03/2024 08:15:00", [9]),
        ("entreeDu=31/03/2024 08:15:00.6", []),
        ("entreeAvant=30/03/2024 08:15:00", []),
        ("entreeAvant=30/03/2024 08:15:01", [7]),
        ("entreeAvant=01/01/2000", []),
        ("ufs=0123", [9]),
        ("ufs=123", []),
        ("lits=3", [9, 7, 8]),
    ],
)
def test_stays_are_asked_for(asked: str, ids: list[int]) -> None:
    assert _ids(FEW, "sejours", asked) == ids


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ("nom=dupres", [1]),
        ("nom=jean", [1, 2]),
        ("famille=jean", [2]),
        ("prenom=pau", [1, 2]),
        ("prenomContient=aul", [1, 2]),
        ("prenomExact=Jean", [1]),
        ("prenomExact=Jean Paul", [2]),
        ("nomExact=Paul,Le Jean", [1, 2]),
        ("familleExact=dupres", []),
        ("neAvant=01/01/2000", [4]),
        ("neDu=01/03/1950", []),
        ("numeros=1", [1, 3]),
        ("numeros=1&domaine=IPP", [1]),
        ("numeros=1&domaine=B", [3]),
        ("sexes=M,F", [1]),
    ],
)
def test_patients_are_asked_for(asked: str, ids: list[int]) -> None:
    assert _ids(FEW, "patients", asked) == ids


def test_stays_of_a_merged_file_are_its_survivors() -> None:
    assert _ids(FEW, "sejours", "ipp=4") == [7]
    assert _ids(FEW, "sejours", "ipp=4,2") == [9, 7]


# ----------------------------------------------------- the made-up hospital itself


def test_a_national_number_is_shown_of_a_qualified_identity_only(
    rows: list[Row], pas: Pas
) -> None:
    qualified = {
        row.patient_id
        for row in rows
        if isinstance(row, Identite) and row.statut == "QUAL"
    }
    held = {
        row.patient_id
        for row in rows
        if isinstance(row, IdentifiantPatient) and row.domaine == "INS-NIR"
    }
    shown = {
        patient["id"]
        for patient in pas.patients.values()
        if any(number["domaine"] == "INS-NIR" for number in patient["numeros"])
    }
    assert shown == held & qualified
    assert held - qualified


def test_the_made_up_hospital_is_found_by_more_than_days(
    rows: list[Row], pas: Pas
) -> None:
    stays = [row for row in rows if isinstance(row, Sejour)]
    of_unit = {row.sejour_id for row in stays if row.uf_courante == "0123"}
    assert of_unit
    assert {*_ids(pas, "sejours", "ufs=0123")} == of_unit
    times = [(row.maj_utc, row.sejour_id) for row in stays if row.maj_utc]
    changed = sorted((time.replace(microsecond=0), id) for time, id in times)
    found = _ids(pas, "sejours", "tri=maj")
    assert found[: len(changed)] == [id for _, id in changed]
    number = next(iter(pas.patients.values()))["numeros"][0]["valeur"]
    asked = f"numeros={number}&domaine"
    assert _ids(pas, "patients", f"{asked}=IPP-CHU") == [1]
    assert _ids(pas, "patients", f"{asked}=INS-NIR") == []
    assert _ids(pas, "patients", "numeros=1&domaine=IPP") == [1]
