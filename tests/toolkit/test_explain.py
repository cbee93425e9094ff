"""`encounters mapping explain`: what is offered and why, and what a search would send."""

import lzma
import re
from pathlib import Path

import pytest

from tests.hospital_http import Api, http_mapping_text
from tests.toolkit.live_hospital import run, written
from tests.toolkit.places import GNU_HEALTH, GROUP_A
from toolkit.contract.hospital import EDGES

SAMPLE = Path(__file__).parents[1] / "gnuhealth" / "sample.sqlite.xz"
SEARCH = "Encounter?patient=42&date=ge2024-03-30"


@pytest.fixture
def explain(mapping):
    """Return what runs the command, and returns its status and all that it prints."""

    def run(*arguments):
        printed = mapping("explain", *arguments)
        return printed.status, printed.out + printed.err

    return run


@pytest.fixture
def api(monkeypatch):
    monkeypatch.setenv("PAS_URL", "https://pas.example.org/api")
    monkeypatch.setenv("PAS_KEY", "a key")


def test_a_parameter_has_an_answer_and_a_reason_and_a_search_its_statement(
    sqlite, tmp_path, explain
):
    run(sqlite, "ALTER TABLE patients ADD COLUMN became BIGINT")
    file = written(
        tmp_path,
        ("identifier, status,", "status,"),
        ("{from: patient_id}", "{from: patient_id, merges: follow}"),
        ("changed FROM patients", "changed, became FROM patients"),
        ("gender: {from: sex", "replaced_by: {from: became}\n    gender: {from: sex"),
    )
    status, text = explain(file)
    assert status == 0
    lines = {tuple(line.split()[:2]): line for line in text.splitlines()}
    assert "offered" in lines["Encounter", "date"]
    assert "Prefixes eq, " in lines["Encounter", "date"]
    assert "the file does not list it" in lines["Encounter", "identifier"]
    assert "Modifiers :" in lines["Patient", "given"]

    # Values may be a patient's.
    status, hidden = explain(file, SEARCH)
    assert status == 0
    merges, pages = hidden.split("\n\n", 1)
    assert merges.startswith("-- merged patients")
    assert "ORDER BY" in pages
    assert "42" not in hidden
    assert "2024" not in hidden


@pytest.mark.usefixtures("api")
def test_a_profile_leaves_parameters_out_and_a_search_is_a_request(explain):
    status, text = explain(GROUP_A)
    assert status == 0
    assert re.search(r"Encounter +date +offered", text)
    assert re.search(r"Encounter +class +refused +profile group-a leaves it out", text)
    search = f"GET https://us/fhir/v3/{SEARCH}"
    request = "GET /sejours sansEtats=A,AN,X,SUP ipp=? entreeDu=? nb=?\n"
    assert explain(GROUP_A, search) == (0, request)


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize(
    ("search", "status", "reason"),
    [
        ("Encounter?class=IMP", 1, "refused: Parameter 'class' is not supported here."),
        ("Encounter?date=ge2024-03-30T10:11:12Z", 1, "'date' compares whole"),
        ("Encounter?date=soon", 1, "date"),
        ("Organization?_id=1", 1, "refused: Organization is not searched here."),
        ("Encounters?a=b", 2, "is not a resource type"),
    ],
)
def test_why_a_search_is_refused(search, status, reason, explain):
    exit_status, text = explain(GROUP_A, search)
    assert exit_status == status
    assert reason in text
    assert text.startswith("refused: ") is (status == 1)


def test_a_source_that_cannot_be_reached_cannot_run(tmp_path, explain, monkeypatch):
    monkeypatch.delenv("PAS_URL", raising=False)
    assert explain(GROUP_A, "Encounter?patient=1")[0] == 2
    monkeypatch.setenv("PAS_URL", "postgresql://nobody@127.0.0.1:1/none")
    status, text = explain(written(tmp_path), "Encounter?patient=1")
    assert (status, "nobody" in text) == (2, False)


# One resource

LEFT_OUT = """SELECT s.stay_id, s.patient_id, state, kind, began, ended, visit, unit, s.changed
    FROM stays s JOIN patients p ON p.patient_id = s.patient_id
    WHERE s.unit <> 'U0'"""


@pytest.fixture
def whereabouts(explain):
    """Return what returns the state and the text of a resource."""

    def run(file, name):
        status, text = explain(file, name, "--live")
        _, state, reason = text.partition("\n")[0].split(": ", 2)
        assert status == (0 if state == "served" else 1)
        assert "jungqvist" not in text
        return [state, reason]

    return run


def test_a_stay_is_followed_from_its_table_to_clients(url, tmp_path, whereabouts):
    run(
        url,
        "UPDATE stays SET state = 'Q' WHERE stay_id = 11",
        "DELETE FROM patients WHERE patient_id = 8",
    )
    file = written(tmp_path, ("SELECT * FROM stays", f"|\n    {LEFT_OUT}"))
    for name, state, words in (
        ("Encounter/12", "served", "clients get it"),
        ("Encounter/80", "filtered", "stays has the row"),
        ("Encounter/8", "filtered", "stays has the row"),
        ("Encounter/11", "invalid", "rule"),
        ("Encounter/9999", "absent", "stays has no row with this id"),
        ("Encounter/x", "absent", "stays has no row with this id"),
        ("Encounter/x_y", "absent", "no client can request it"),
        ("https://us/fhir/v3/Patient/9", "served", ""),
        ("Organization/1", "absent", ""),
    ):
        found, text = whereabouts(file, name)
        assert (found, words in text) == (state, True), (name, text)


def test_an_explained_stay_shows_its_faults_and_masks_who_it_is_of(
    sqlite, tmp_path, explain, whereabouts
):
    run(sqlite, "UPDATE stays SET state = 'Q', visit = 'V-4711' WHERE stay_id = 11")
    file = written(tmp_path)
    hidden = ["hidden", f"by codes.states: A → hidden ({file}:10:49)"]
    assert whereabouts(file, "Encounter/80") == hidden
    status, text = explain(file, "Encounter/11", "--live")
    assert (status, text.startswith("Encounter/***: invalid")) == (1, True)
    assert "Encounter.status ← state" in text
    assert "4711" not in text
    status, text = explain(file, "Encounter/11", "--live", "--no-redact")
    assert text.startswith("Encounter/11: invalid")
    assert "visit = 'V-4711'" in text
    for search in ("Encounter?patient=1", "Practitioner/1", "Encounter"):
        assert explain(file, search, "--live")[0] == 2
    assert explain(file, "Encounter/11")[0] == 2
    # What a SELECT does not show is not guessed.
    rows = "SELECT * FROM (SELECT * FROM stays WHERE unit = 'U9') x"
    file = written(tmp_path, ("rows: SELECT * FROM stays", f'rows: "{rows}"'))
    assert whereabouts(file, "Encounter/9999")[0] == "unknown"


def test_a_resource_of_an_api_is_explained(tmp_path, whereabouts, serve):
    serve(Api(EDGES))
    file = written(
        tmp_path, text=http_mapping_text(EDGES, source=", timeout_seconds: 60")
    )
    stay = next(stay for stay in EDGES.stays if stay.state == "S")
    assert whereabouts(file, f"Encounter/{stay.id}")[0] == "served"
    assert whereabouts(file, "Encounter/999999")[0] == "absent"


def test_a_resource_of_several_sources_is_explained(tmp_path, whereabouts, monkeypatch):
    database = tmp_path / "gh.sqlite"
    database.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    monkeypatch.setenv("PAS_URL", f"sqlite:///{database}")
    assert whereabouts(GNU_HEALTH, "Encounter/inp-1")[0] == "served"
    assert "inp-" in whereabouts(GNU_HEALTH, "Encounter/1")[1]
    state = whereabouts(GNU_HEALTH, "Encounter/app-999999")[0]
    assert state in ("absent", "unknown")
