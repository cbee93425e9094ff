"""`encounters mapping explain`: what is offered and why, and what a search would send."""

import json
import re
from pathlib import Path

import pytest

from adapters.testing.hospital import EDGES
from app.cli import main
from tests.hospital_sql import Tables, mapping_text

MAPPINGS = Path(__file__).parents[3] / "mappings"
DEMO = MAPPINGS / "demo" / "demo.yaml"
GROUP_A = MAPPINGS / "group-a" / "group-a.yaml"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the mapping of a small hospital, of which one parameter is not listed."""
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, EDGES).close()
    monkeypatch.setenv("PAS_URL", url)
    file = tmp_path / "hospital.yaml"
    file.write_text(mapping_text(EDGES).replace("identifier, status,", "status,"))
    return file


@pytest.fixture(autouse=True)
def api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAS_URL", "https://pas.example.org/api")
    monkeypatch.setenv("PAS_KEY", "a key")


def explained(capsys: Capture, *arguments: object) -> tuple[int, str]:
    status = main(["mapping", "explain", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_each_parameter_has_an_answer_and_a_reason(
    hospital: Path, capsys: Capture
) -> None:
    status, told = explained(capsys, hospital)
    assert status == 0
    lines = {tuple(line.split()[:2]): line for line in told.splitlines()}
    assert "offered" in lines["Encounter", "date"]
    assert lines["Encounter", "date"].endswith("prefixes eq ne gt lt ge le")
    assert "the file does not list it" in lines["Encounter", "identifier"]
    assert "compares contains, exact, starts-with" in lines["Patient", "given"]


def test_a_profile_leaves_parameters_out(capsys: Capture) -> None:
    status, told = explained(capsys, "--json", GROUP_A)
    found = {
        (a["resource_type"], a["parameter"]): a for a in json.loads(told)["parameters"]
    }
    assert status == 0
    assert found["Encounter", "date"]["offered"]
    assert found["Encounter", "class"]["reason"] == "profile group-a leaves it out"


def test_a_search_is_shown_as_its_request(capsys: Capture) -> None:
    search = "GET https://us/fhir/v3/Encounter?patient=42&date=ge2024-03-30"
    told = explained(capsys, GROUP_A, search)
    request = "GET /sejours sansEtats=A,AN,X,SUP ipp={} entreeDu={} nb={}\n"
    assert told == (0, request.format(*"???"))
    shown = explained(capsys, GROUP_A, search, "--values")
    assert shown == (0, request.format("42", "30/03/2024", "10"))


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ("Encounter?class=IMP", "Parameter 'class' is not supported here."),
        ("Encounter?date=ge2024-03-30T10:11:12Z", "Parameter 'date' compares whole"),
        ("Encounter?date=soon", "date"),
        ("Encounter?date=ge2024&date=le2025", "date"),
        ("Organization?_id=1", "Organization is not searched here."),
    ],
)
def test_why_a_search_is_refused(search: str, reason: str, capsys: Capture) -> None:
    status, told = explained(capsys, GROUP_A, search)
    assert status == 1
    assert told.startswith("refused: ")
    assert reason in told


@pytest.mark.parametrize("search", ["Encounters?a=b", "patient=42", ""])
def test_no_search_at_all_cannot_run(search: str, capsys: Capture) -> None:
    status, told = explained(capsys, GROUP_A, search)
    assert status == 2
    assert "is not a resource type" in told


@pytest.mark.parametrize(
    ("file", "url"),
    [(GROUP_A, None), (DEMO, "postgresql://nobody@127.0.0.1:1/none")],
    ids=["unset", "away"],
)
def test_a_source_that_cannot_be_reached_cannot_run(
    file: Path,
    url: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.delenv("PAS_URL")
    if url:
        monkeypatch.setenv("PAS_URL", url)
    status, told = explained(capsys, file, "Encounter?patient=1")
    assert status == 2
    assert "nobody" not in told


def test_a_search_is_shown_as_its_statement_with_values_to_who_asks(
    hospital: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAS_URL", f"sqlite:///{hospital.parent / 'pas.db'}")
    search = "Encounter?patient=42&date=ge2024-03-30"
    status, hidden = explained(capsys, hospital, search)
    assert status == 0
    # The patient's merges come first, then the page.
    merges, pages = hidden.split("\n\n", 1)
    assert merges.startswith("-- merged patients")
    assert "ORDER BY" in pages
    assert "42" not in hidden
    assert "2024" not in hidden
    status, told = explained(capsys, hospital, search, "--values")
    assert status == 0
    assert told.startswith(hidden.partition("?")[0])
    assert "?" not in told
    assert re.search(r"\b42\b", told)
    assert "'2024-03-30 00:00:00'" in told
    assert explained(capsys, hospital, "--values", search) == (status, told)
    with pytest.raises(SystemExit, match="2"):
        explained(capsys, hospital, search, "--values", search)


def test_two_statements_say_which_is_which(hospital: Path, capsys: Capture) -> None:
    status, told = explained(capsys, hospital, "Encounter?status=finished")
    assert status == 0
    heads = [line for line in told.splitlines() if line.startswith("--")]
    assert [head[:9] for head in heads] == ["-- 1 of 2", "-- 2 of 2"]
