"""`encounters mapping explain`: what is offered and why, and what a search would send."""

import lzma
import re
from pathlib import Path

import pytest

from app.cli import main
from tests.hospital_http import SECRETS, Api, http_mapping_text, serving
from tests.hospital_sql import Tables, mapping_text
from tests.toolkit.live_hospital import run, written
from tests.toolkit.places import DEMO, MAPPINGS
from toolkit.contract.hospital import EDGES

GNU_HEALTH = MAPPINGS / "gnuhealth" / "gnuhealth-5.0.yaml"
SAMPLE = Path(__file__).parents[1] / "gnuhealth" / "sample.sqlite.xz"
GROUP_A = MAPPINGS / "group-a" / "group-a.yaml"
SEARCH = "Encounter?patient=42&date=ge2024-03-30"

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAS_URL", "https://pas.example.org/api")
    monkeypatch.setenv("PAS_KEY", "a key")


def explained(capsys: Capture, *arguments: object) -> tuple[int, str]:
    status = main(["mapping", "explain", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_a_parameter_has_an_answer_and_a_reason_and_a_search_its_statement(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    monkeypatch.setenv("PAS_URL", url)
    hospital = tmp_path / "hospital.yaml"
    hospital.write_text(mapping_text(EDGES).replace("identifier, status,", "status,"))

    status, text = explained(capsys, hospital)
    assert status == 0
    lines = {tuple(line.split()[:2]): line for line in text.splitlines()}
    assert "offered" in lines["Encounter", "date"]
    assert "Prefixes eq, " in lines["Encounter", "date"]
    assert "the file does not list it" in lines["Encounter", "identifier"]
    assert "Modifiers :" in lines["Patient", "given"]

    # Values may be a patient's.
    status, hidden = explained(capsys, hospital, SEARCH)
    assert status == 0
    merges, pages = hidden.split("\n\n", 1)
    assert merges.startswith("-- merged patients")
    assert "ORDER BY" in pages
    assert "42" not in hidden
    assert "2024" not in hidden

    status, text = explained(capsys, hospital, "Encounter?status=finished")
    heads = [line[:9] for line in text.splitlines() if line.startswith("--")]
    assert (status, heads) == (0, ["-- 1 of 2", "-- 2 of 2"])


def test_a_profile_leaves_parameters_out_and_a_search_is_a_request(
    capsys: Capture,
) -> None:
    status, text = explained(capsys, GROUP_A)
    assert status == 0
    assert re.search(r"Encounter +date +offered", text)
    assert re.search(r"Encounter +class +refused +profile group-a leaves it out", text)
    search = f"GET https://us/fhir/v3/{SEARCH}"
    request = "GET /sejours sansEtats=A,AN,X,SUP ipp=? entreeDu=? nb=?\n"
    assert explained(capsys, GROUP_A, search) == (0, request)


@pytest.mark.parametrize(
    ("search", "status", "reason"),
    [
        ("Encounter?class=IMP", 1, "refused: Parameter 'class' is not supported here."),
        ("Encounter?date=ge2024-03-30T10:11:12Z", 1, "'date' compares whole"),
        ("Encounter?date=soon", 1, "date"),
        ("Encounter?date=ge2024&date=le2025", 1, "date"),
        ("Organization?_id=1", 1, "refused: Organization is not searched here."),
        ("Encounters?a=b", 2, "is not a resource type"),
        ("", 2, "is not a resource type"),
    ],
)
def test_why_a_search_is_refused(
    search: str, status: int, reason: str, capsys: Capture
) -> None:
    found, text = explained(capsys, GROUP_A, search)
    assert found == status
    assert reason in text
    assert text.startswith("refused: ") is (status == 1)


def test_a_source_that_cannot_be_reached_cannot_run(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("PAS_URL")
    assert explained(capsys, GROUP_A, "Encounter?patient=1")[0] == 2
    monkeypatch.setenv("PAS_URL", "postgresql://nobody@127.0.0.1:1/none")
    status, text = explained(capsys, DEMO, "Encounter?patient=1")
    assert (status, "nobody" in text) == (2, False)


# One resource

LEFT_OUT = """SELECT s.stay_id, s.patient_id, state, kind, began, ended, visit, unit, s.changed
    FROM stays s JOIN patients p ON p.patient_id = s.patient_id
    WHERE s.unit <> 'U0'"""


def whereabouts(capsys: Capture, file: Path, name: str, *options: str) -> list[str]:
    """Return the state and the text of a resource, which its status goes with."""
    status, text = explained(capsys, file, name, "--live", *options)
    _, state, reason = text.partition("\n")[0].split(": ", 2)
    assert status == (0 if state == "served" else 1)
    assert options or "jungqvist" not in text
    return [state, reason]


def test_a_stay_is_followed_from_its_table_to_clients(
    url: str, tmp_path: Path, capsys: Capture
) -> None:
    run(
        url,
        "UPDATE stays SET state = 'Q' WHERE stay_id = 11",
        "DELETE FROM patients WHERE patient_id = 8",
    )
    file = written(tmp_path, ("SELECT * FROM stays", f"|\n    {LEFT_OUT}"))
    states = {
        12: ("served", "clients get it"),
        80: ("filtered", "stays has the row"),
        8: ("filtered", "stays has the row"),
        11: ("invalid", "rule"),
        9999: ("absent", "stays has no row with this id"),
        "x": ("absent", "stays has no row with this id"),
        "x_y": ("absent", "no client can request it"),
    }
    for id, (state, words) in states.items():
        found, text = whereabouts(capsys, file, f"Encounter/{id}")
        assert (found, words in text) == (state, True), (id, found, text)
    assert whereabouts(capsys, file, "https://us/fhir/v3/Patient/9")[0] == "served"
    assert whereabouts(capsys, file, "Organization/1")[0] == "absent"


def test_an_explained_stay_shows_its_faults_and_masks_who_it_is_of(
    sqlite: str, tmp_path: Path, capsys: Capture
) -> None:
    run(sqlite, "UPDATE stays SET state = 'Q', visit = 'V-4711' WHERE stay_id = 11")
    file = written(tmp_path)
    hidden = ["hidden", f"by codes.states: A → hidden ({file}:10:49)"]
    assert whereabouts(capsys, file, "Encounter/80") == hidden
    status, text = explained(capsys, file, "Encounter/11", "--live")
    assert (status, text.startswith("Encounter/***: invalid")) == (1, True)
    assert "Encounter.status ← state" in text
    assert "4711" not in text
    status, text = explained(capsys, file, "Encounter/11", "--live", "--no-redact")
    assert text.startswith("Encounter/11: invalid")
    assert "visit = 'V-4711'" in text
    for search in ("Encounter?patient=1", "Practitioner/1", "Encounter"):
        assert explained(capsys, file, search, "--live")[0] == 2
    assert explained(capsys, file, "Encounter/11")[0] == 2


def test_what_a_select_does_not_show_is_not_guessed(
    sqlite: str, tmp_path: Path, capsys: Capture
) -> None:
    rows = "SELECT * FROM (SELECT * FROM stays WHERE unit = 'U9') x"
    file = written(tmp_path, ("rows: SELECT * FROM stays", f'rows: "{rows}"'))
    assert whereabouts(capsys, file, "Encounter/9999")[0] == "unknown"


def test_a_resource_of_an_api_and_of_several_sources_is_explained(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mapping.yaml"
    file.write_text(http_mapping_text(EDGES, source=", timeout_seconds: 60"), "utf-8")
    with serving(Api(EDGES)) as url:
        for name, value in {"PAS_URL": url, **SECRETS}.items():
            monkeypatch.setenv(name, value)
        stay = next(stay for stay in EDGES.stays if stay.state == "S")
        assert whereabouts(capsys, file, f"Encounter/{stay.id}")[0] == "served"
        found = whereabouts(capsys, file, "Encounter/999999")
        assert found[0] == "absent"
    database = tmp_path / "gh.sqlite"
    database.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    monkeypatch.setenv("PAS_URL", f"sqlite:///{database}")
    assert whereabouts(capsys, GNU_HEALTH, "Encounter/inp-1")[0] == "served"
    assert "inp-" in whereabouts(capsys, GNU_HEALTH, "Encounter/1")[1]
    state = whereabouts(capsys, GNU_HEALTH, "Encounter/app-999999")[0]
    assert state in ("absent", "unknown")
