"""`encounters mapping preview`: what a row becomes, from what, and what a ticket may hold."""

import json
import re

import pytest

from tests.toolkit.places import DEMO, GROUP_A, located

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


@pytest.fixture
def preview(tmp_path, mapping):
    """Return what shows a row."""

    def run(row, *options, file=DEMO):
        rows = tmp_path / "row.yaml"
        rows.write_text(row, "utf-8")
        return mapping("preview", file, "--row", rows, *options)

    return run


def explained(out):
    """Return what is printed below each element, with its value."""
    pairs = re.findall(r"(?m)^  (\w+\.\S+)( = .*)?\n      ← (.*)$", out)
    return {element: f"{value} ← {origin}" for element, value, origin in pairs}


def test_each_element_has_the_cell_and_the_rule_it_came_from(preview):
    status, out, _ = preview(STAY)
    assert status == 0
    resource, _, rest = out.partition("\nWhere each element is from:\n")
    assert json.loads(resource)["period"] == {"start": "2024-03-30T08:15:00+01:00"}
    filled, _, empty = rest.partition("\nFields without a value:\n")
    origins = explained(filled.replace(f"{DEMO}:", ""))
    for element, origin in {
        "id": " = 900001 ← sejour_id = '900001'   @sejour_id}@",
        "status": " = finished ← etat = 'S'; codes.status: S → finished   @S: finished@",
        "class.code": (
            " = UNK ← type_sejour = 'NEW'; codes.class: otherwise → UNK   @otherwise: UNK@"
        ),
        "identifier[0].assigner.reference": (
            " = Organization/2 ← etab_id = '2'   @etab_id}@"
        ),
        "class.display": " = unknown ← the label of the code",
    }.items():
        assert origins[f"Encounter.{element}"] == located(origin)
    end = "Encounter.period.end\n      ← date_sortie = '2999-12-31 00:00:00'; "
    assert end in empty
    assert "Encounter.meta.lastUpdated\n      ← maj_utc = NULL" in empty


OFFSET = "by its own offset, written in Europe/Paris"
LOCAL, INSTANT = "2024-03-30 08:15:00", "2024-03-30T12:15:00+05:00"


@pytest.mark.parametrize(
    ("begun", "changed", "begin", "change"),
    [
        (LOCAL, LOCAL, "in Europe/Paris", "in UTC, written in Europe/Paris"),
        (INSTANT, "2024-03-30T08:15:00Z", OFFSET, OFFSET),
    ],
)
def test_the_zone_of_a_time_is_shown(begun, changed, begin, change, preview):
    row = STAY.replace(LOCAL, begun) + f"maj_utc: {changed}\n"
    origins = explained(preview(row).out)
    assert " = 2024-03-30T08:15:00+01:00" in origins["Encounter.period.start"]
    assert f"; {begin}  " in origins["Encounter.period.start"]
    assert " = 2024-03-30T09:15:00+01:00" in origins["Encounter.meta.lastUpdated"]
    assert f"; {change}  " in origins["Encounter.meta.lastUpdated"]


def test_every_element_of_a_patient_is_explained(preview):
    origins = explained(preview(PATIENT, "--of", "patient").out)
    assert "prenoms = 'ANNE Αλέξης'" in origins["Patient.name[0].given[1]"]
    assert "valeur = '0000042'" in origins["Patient.identifier[0].value"]
    deceased = origins["Patient.deceasedDateTime"]
    assert "date_deces = '2024-02-03', heure_deces = '04:05'" in deceased
    assert "only_if statut" in origins["Patient.identifier.value"]


def test_an_invalid_row_shows_its_faults_at_their_lines(preview):
    row = STAY.replace("patient_id: 42", "patient_id: 4 2").replace(
        "etat: S", "etat: Z"
    )
    printed = preview(row)
    shown = re.findall(r"(?m)^\S+\.yaml:(\d+):\d+: (\S+) ← (\w+): ", printed.out)
    faults = ["Encounter.subject", "Encounter.status"]
    assert (printed.status, [element for _, element, _ in shown]) == (1, faults)
    line, _, column = shown[0]
    assert column in DEMO.read_text("utf-8").splitlines()[int(line) - 1]


def test_an_item_that_is_left_out_has_no_faults(preview):
    row = PATIENT.replace("sexe: F", "sexe: Q\ndecede: O")
    row = row.replace("domaine: INS-NIR", "domaine: QQ")
    status, out, _ = preview(row, "--of", "patient")
    assert status == 1
    assert re.findall(r"(?m)^\S+\.yaml:\d+:\d+: (\S+)", out) == ["Patient.gender"]
    assert " = ANNE, Αλέξης" in explained(out)["Patient.name[0].given"]


def test_removed_stays_and_rows_of_an_api(preview):
    printed = preview(STAY.replace("etat: S", "etat: X"))
    assert (printed.status, "the row is removed" in printed.out) == (0, True)
    row = "{id: 1, patient: {ipp: 42}, etat: S, uf: {code: 0123}}"
    printed = preview(row, file=GROUP_A)
    assert (printed.status, "← uf.code = '0123'" in printed.out) == (0, True)


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ("sejour: 1", (), "row.yaml:1:1: "),
        ("a: [", (), "row.yaml:"),
        ("id: 1", ("--source", "x"), "'source'"),
    ],
)
def test_what_cannot_be_previewed_is_an_error(row, options, says, preview):
    printed = preview(row, *options)
    assert (printed.status, says in printed.err) == (2, True)


# -------------------------------------------------------------------------- redaction


def test_redaction_leaves_what_a_ticket_is_about_and_nothing_of_a_person(preview):
    status, out, _ = preview(PATIENT, "--of", "patient", "--redact")
    assert status == 0
    assert [secret for secret in IDENTIFYING if secret in out] == []
    assert "female" in out
    assert "France" in out
    _, out, _ = preview(STAY, "--redact")
    resource = json.loads(out.partition("\nWhere each")[0])
    assert resource["period"] == {"start": "2024-03-30T08:15:00+01:00"}
    assert (resource["status"], resource["id"]) == ("finished", "***")
    assert resource["subject"] == {"reference": "***"}
    (identifier,) = resource["identifier"]
    assert identifier["value"] == "***"
    assert identifier["assigner"] == {"reference": "Organization/2"}
    assert "sejour_id = '***'" in explained(out)["Encounter.id"]
    assert "etat = 'S'" in explained(out)["Encounter.status"]


def test_a_fault_stays_a_fault_and_shows_no_cell(preview):
    bad = (
        STAY.replace("id: 42", "id: 4 2")
        .replace("etat: S", "etat: Madame Anne Dupont-Martin")
        .replace("date_entree: 2024-03-30 08:15:00", "date_entree: Anne Dupont")
    )
    status, out, _ = preview(bad, "--redact")
    assert (status, out.count("invalid: ")) == (1, 3)
    assert "Dupont" not in out
    assert "4 2" not in out
    status, out, _ = preview(STAY.replace("etat: S", "etat: Q7"), "--redact")
    assert (status, "etat = 'Q7'" in out) == (1, True)
