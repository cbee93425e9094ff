"""`encounters mapping explain`: what is offered and why, and what a search would send."""

import json
from pathlib import Path

import pytest

from app.cli import main
from tests.hospital_sql import Tables, mapping_text
from tests.toolkit.places import DEMO, MAPPINGS
from toolkit.contract.hospital import EDGES

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
    assert lines["Encounter", "date"].endswith("prefixes eq ne gt lt ge le")
    assert "the file does not list it" in lines["Encounter", "identifier"]
    assert "compares contains, exact, starts-with" in lines["Patient", "given"]

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
    status, text = explained(capsys, "--json", GROUP_A)
    found = {
        (each["resource_type"], each["parameter"]): each
        for each in json.loads(text)["parameters"]
    }
    assert status == 0
    assert found["Encounter", "date"]["offered"]
    assert found["Encounter", "class"]["reason"] == "profile group-a leaves it out"
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
