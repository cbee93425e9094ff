"""`encounters mapping preview`: what a row becomes, from what, and what a ticket may hold."""

import json
import lzma
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters.testing.hospital import EDGES
from app.cli import main
from demo.hospital import fill
from tests.app.cli.places import DEMO, MAPPINGS, located
from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import http_mapping_text

GROUP_A = MAPPINGS / "group-a" / "group-a.yaml"
GNU_HEALTH = MAPPINGS / "gnuhealth" / "gnuhealth-5.0.yaml"
SAMPLE = Path(__file__).parents[2] / "gnuhealth" / "sample.sqlite.xz"

Capture = pytest.CaptureFixture[str]

STAY = """\
sejour_id: 900001
etab_id: 2
num_venue: 000123456
patient_id: 42
etat: S
type_sejour: NEW
date_entree: 2024-03-30 08:15:00
date_sortie: 2999-12-31 00:00:00
"""
PATIENT = """\
patient_id: 42
sexe: F
date_naissance: 1950-01-02
date_deces: 2024-02-03
heure_deces: "04:05"
nom_naissance: SAINT-EXUPÉRY
prenoms: ANNE Αλέξης
given_items:
  identifiers:
    - {domaine: IPP-CHU, valeur: 0000042, etab_id: 2, statut: QUAL}
    - {domaine: INS-NIR, valeur: 250017500000042, statut: PROV}
  telecoms: [{type_contact: ML, valeur: anne.dupont@example.org}]
  addresses: [{type_adresse: DOM, ligne1: 1 rue de la Paix, code_postal: "75002",
               commune: PARIS, pays: France}]
"""
IDENTIFYING = (
    "'42'", '"42"', "Patient/42", "1950-01-02", "2024-02-03", "SAINT", "EXUP", "ANNE",
    "Αλέξης", "0000042", "250017500000042", "dupont", "rue de la Paix", "75002", "PARIS",
)  # fmt: skip


def preview(folder: Path, row: str, *options: str, mapping: Path = DEMO) -> int:
    file = folder / "row.yaml"
    file.write_text(row, "utf-8")
    return main(["mapping", "preview", str(mapping), "--row", str(file), *options])


def shown(folder: Path, capsys: Capture, row: str, *options: str) -> dict[str, Any]:
    assert preview(folder, row, "--json", *options) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


# ------------------------------------------------------------- where elements are from


def test_each_element_has_the_cell_and_the_rule_it_came_from(
    tmp_path: Path, capsys: Capture
) -> None:
    assert preview(tmp_path, STAY) == 0
    out = capsys.readouterr().out
    resource, _, rest = out.partition("\nWhere each element is from:\n")
    assert json.loads(resource)["period"] == {"start": "2024-03-30T08:15:00+01:00"}
    lines = rest.replace(f"{DEMO}:", "").splitlines()
    pairs = dict(zip(lines[::2], lines[1::2], strict=False))
    expected = {
        "  Encounter.id = 900001": "      ← sejour_id = '900001'   @sejour_id}@",
        "  Encounter.status = finished": (
            "      ← etat = 'S'; codes.status: S → finished   @S: finished@"
        ),
        "  Encounter.class.code = UNK": (
            "      ← type_sejour = 'NEW'; codes.class: otherwise → UNK   @otherwise: UNK@"
        ),
        "  Encounter.period.start = 2024-03-30T08:15:00+01:00": (
            "      ← date_entree = '2024-03-30 08:15:00'; in Europe/Paris   @date_entree}@"
        ),
        "  Encounter.identifier[0].assigner.reference = Organization/2": (
            "      ← etab_id = '2'   @etab_id}@"
        ),
        "  Encounter.class.display = unknown": "      ← the label of the code",
    }
    assert {k: located(v) for k, v in expected.items()}.items() <= pairs.items()
    _, _, empty = rest.partition("\nFields that give nothing:\n")
    assert (
        "Encounter.period.end\n      ← date_sortie = '2999-12-31 00:00:00'; " in empty
    )
    assert "Encounter.meta.lastUpdated\n      ← maj_utc = NULL" in empty


@pytest.mark.parametrize(
    ("begun", "changed", "rules"),
    [
        (
            "2024-03-30 08:15:00",
            "2024-03-30 08:15:00",
            ("in Europe/Paris", "in UTC, written in Europe/Paris"),
        ),
        (
            "2024-03-30T12:15:00+05:00",
            "2024-03-30T08:15:00Z",
            ("by its own offset, written in Europe/Paris",) * 2,
        ),
    ],
)
def test_the_zone_of_a_time_is_shown(
    tmp_path: Path, capsys: Capture, begun: str, changed: str, rules: tuple[str, str]
) -> None:
    row = STAY.replace("2024-03-30 08:15:00", begun) + f"maj_utc: {changed}\n"
    lines = {e["element"]: e for e in shown(tmp_path, capsys, row)["elements"]}
    start = lines["Encounter.period.start"]
    updated = lines["Encounter.meta.lastUpdated"]
    assert (start["rule"], updated["rule"]) == rules
    assert start["value"] == "2024-03-30T08:15:00+01:00"
    assert updated["value"] == "2024-03-30T09:15:00+01:00"


def test_every_element_of_a_patient_is_explained(
    tmp_path: Path, capsys: Capture
) -> None:
    told = shown(tmp_path, capsys, PATIENT, "--of", "patient")
    assert all(line["rule"] or line["cells"] for line in told["elements"])
    cells = {line["element"]: line["cells"] for line in told["elements"]}
    assert cells["Patient.name[0].given[1]"] == {"prenoms": "ANNE Αλέξης"}
    assert cells["Patient.identifier[0].value"] == {"valeur": "0000042"}
    assert list(cells["Patient.deceasedDateTime"]) == ["date_deces", "heure_deces"]
    rules = {
        line["rule"]
        for line in told["empty"]
        if line["element"].startswith("Patient.identifier.")
    }
    assert len(rules) == 1
    assert rules.pop().endswith(": only_if statut")


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        ("etat: S", "etat: Z", ["Encounter.status"]),
        ("patient_id: 42", "patient_id: 4 2", ["Encounter.subject"]),
        (
            "patient_id: 42\netat: S",
            "patient_id: 4 2\netat: Z",
            ["Encounter.subject", "Encounter.status"],
        ),
        ("2999-12-31", "2024-01-01", ["Encounter.period.end"]),
    ],
)
def test_a_row_that_is_a_fault_shows_its_faults_at_their_lines(
    tmp_path: Path, capsys: Capture, old: str, new: str, faults: list[str]
) -> None:
    assert preview(tmp_path, STAY.replace(old, new), "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["resource"] is None
    assert [fault["element"] for fault in told["faults"]][: len(faults)] == faults
    lines = DEMO.read_text("utf-8").splitlines()
    fault = told["faults"][0]
    assert fault["source"] in lines[fault["line"] - 1]


def test_an_item_that_is_left_out_has_no_faults(
    tmp_path: Path, capsys: Capture
) -> None:
    row = PATIENT.replace("sexe: F", "sexe: Q\ndecede: O")
    row = row.replace("domaine: INS-NIR", "domaine: QQ")
    assert preview(tmp_path, row, "--of", "patient", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [fault["element"] for fault in told["faults"]] == ["Patient.gender"]
    values = {line["element"]: line["value"] for line in told["elements"]}
    assert values["Patient.deceasedDateTime"] == "2024-02-03T04:05:00+01:00"
    assert values["Patient.deceasedBoolean"] == "true"
    assert values["Patient.name[0].given"] == ["ANNE", "Αλέξης"]


def test_a_row_that_is_not_served_says_so(tmp_path: Path, capsys: Capture) -> None:
    row = STAY.replace("etat: S", "etat: X")
    assert shown(tmp_path, capsys, row)["unserved"] == "removed"


def test_http_rows_are_written_as_the_api_returns_them(
    tmp_path: Path, capsys: Capture
) -> None:
    row = "{id: 1, patient: {ipp: 42}, etat: S, uf: {code: 0123}}"
    assert preview(tmp_path, row, mapping=GROUP_A) == 0
    assert "← uf.code = '0123'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ("sejour: 1", (), "row.yaml:1:1: "),
        ("a: [", (), "row.yaml:"),
        ("id: 1", ("--source", "x"), "'source'"),
        ("id: 1", ("--id", "1"), "--live"),
    ],
)
def test_what_cannot_be_previewed_is_an_error(
    tmp_path: Path, capsys: Capture, row: str, options: tuple[str, ...], says: str
) -> None:
    assert preview(tmp_path, row, *options) == 2
    assert says in capsys.readouterr().err


# -------------------------------------------------------------------------- live rows


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("demo") / "pas.sqlite"
    fill(f"sqlite:///{file}", stays=1000)
    return file


def live(*options: str, mapping: Path = DEMO) -> int:
    return main(["mapping", "preview", str(mapping), "--live", *options])


def test_a_live_row_is_read_by_its_id(
    database: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAS_URL", f"sqlite:///{database}")
    query = (
        "SELECT patient_id, valeur FROM identifiant_patient WHERE domaine = 'IPP-CHU'"
    )
    with closing(sqlite3.connect(database)) as connection:
        patient, number = connection.execute(query).fetchone()
    assert live("--id", str(patient), "--of", "patient", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["resource"]["id"] == str(patient)
    assert {"valeur": number} in [line["cells"] for line in told["elements"]]
    assert live("--id", str(patient), "--of", "patient", "--redact") == 0
    assert number not in capsys.readouterr().out
    assert live() == 2
    assert "--live takes --id" in capsys.readouterr().err
    assert live("--id", "nobody") == 2
    assert "the source has no such encounter" in capsys.readouterr().err


def test_a_source_that_is_away_is_said_without_its_address(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAS_URL", f"sqlite:///{tmp_path}/nowhere.sqlite")
    assert live("--id", "1") == 2
    said = capsys.readouterr().err
    assert said.startswith("the source does not answer: ")
    assert "nowhere" not in said
    monkeypatch.delenv("PAS_URL")
    assert live("--id", "1") == 2
    assert "the environment variable PAS_URL is not set" in capsys.readouterr().err


# -------------------------------------------------------------------------- redaction


def test_nothing_that_identifies_a_person_is_left(
    tmp_path: Path, capsys: Capture
) -> None:
    for options in (("--json",), ()):
        assert preview(tmp_path, PATIENT, "--of", "patient", "--redact", *options) == 0
        out = capsys.readouterr().out
        assert [secret for secret in IDENTIFYING if secret in out] == []
        assert "female" in out
        assert "France" in out


def test_a_stay_keeps_what_a_ticket_is_about(tmp_path: Path, capsys: Capture) -> None:
    told = shown(tmp_path, capsys, STAY, "--redact")
    resource = told["resource"]
    assert resource["period"] == {"start": "2024-03-30T08:15:00+01:00"}
    assert resource["status"] == "finished"
    assert resource["id"] == "***"
    assert resource["subject"] == {"reference": "***"}
    (identifier,) = resource["identifier"]
    assert identifier["value"] == "***"
    assert identifier["assigner"] == {"reference": "Organization/2"}
    by_element = {line["element"]: line for line in told["elements"]}
    assert by_element["Encounter.id"]["cells"] == {"sejour_id": "***"}
    assert by_element["Encounter.status"]["cells"] == {"etat": "S"}


def test_a_fault_stays_a_fault_and_shows_no_cell(
    tmp_path: Path, capsys: Capture
) -> None:
    bad = (
        STAY.replace("id: 42", "id: 4 2")
        .replace("etat: S", "etat: Madame Anne Dupont-Martin")
        .replace("date_entree: 2024-03-30 08:15:00", "date_entree: Anne Dupont")
    )
    assert preview(tmp_path, bad, "--redact") == 1
    out = capsys.readouterr().out
    assert out.count("a fault: ") == 3
    assert "Dupont" not in out
    assert "4 2" not in out
    short = STAY.replace("etat: S", "etat: Q7")
    assert preview(tmp_path, short, "--redact") == 1
    assert "etat = 'Q7'" in capsys.readouterr().out


# --------------------------------------------------------------- sources of other kinds


def test_a_live_row_of_an_http_api(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mapping.yaml"
    file.write_text(http_mapping_text(EDGES), "utf-8")
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    stay = next(stay for stay in EDGES.stays if stay.state == "S")
    with serving(Api(EDGES)) as url:
        monkeypatch.setenv("PAS_URL", url)
        assert live("--id", str(stay.id), "--json", mapping=file) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["resource"]["id"] == str(stay.id)
        by_element = {line["element"]: line for line in told["elements"]}
        assert list(by_element["Encounter.id"]["cells"].values()) == [str(stay.id)]
        assert live("--id", "999999", mapping=file) == 2
        assert live("--id", "..", mapping=file) == 2
    assert live("--id", "1", mapping=file) == 2
    assert "the source does not answer" in capsys.readouterr().err


def test_a_live_row_is_found_in_the_one_source_that_its_id_names(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gh.sqlite"
    file.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    monkeypatch.setenv("PAS_URL", f"sqlite:///{file}")
    assert live("--id", "inp-1", mapping=GNU_HEALTH) == 0
    out = capsys.readouterr().out
    assert "Encounter.id = inp-1\n      ← id = '1'; after the prefix inp-" in out
    assert live("--id", "1", mapping=GNU_HEALTH) == 2
    none = "the source has no such encounter"
    prefixes = "its ids begin with app- or eva- or inp-"
    assert capsys.readouterr().err == f"{none}: {prefixes}\n"
    assert live("--id", "app-999999", mapping=GNU_HEALTH) == 2
    assert (
        capsys.readouterr().err == f"{none}, or the WHERE of its rows leaves it out\n"
    )
