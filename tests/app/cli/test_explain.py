"""`encounters mapping explain`: what is offered and why, and what a search would send."""

import json
from pathlib import Path

import pytest

from adapters.testing.hospital import EDGES
from app.cli import main
from tests.hospital_sql import Tables, mapping_text

MAPPINGS = Path(__file__).parents[3] / "mappings"
DEMO = MAPPINGS / "demo" / "demo.yaml"
GROUP_A = MAPPINGS / "group-a" / "group-a.yaml"


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


def explained(
    capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str]:
    status = main(["mapping", "explain", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_each_parameter_has_an_answer_and_a_reason(
    hospital: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = explained(capsys, hospital)
    assert status == 0
    lines = {tuple(line.split()[:2]): line for line in told.splitlines()}
    assert "offered" in lines["Encounter", "date"]
    assert lines["Encounter", "date"].endswith("prefixes eq ne gt lt ge le")
    assert "the file does not list it" in lines["Encounter", "identifier"]
    assert "compares contains, exact, starts-with" in lines["Patient", "given"]


def test_a_profile_leaves_parameters_out(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = explained(capsys, "--json", GROUP_A)
    found = {
        (a["resource_type"], a["parameter"]): a for a in json.loads(told)["parameters"]
    }
    assert status == 0
    assert found["Encounter", "date"]["offered"]
    assert found["Encounter", "class"]["reason"] == "profile group-a leaves it out"


def test_a_search_is_shown_as_its_statement_without_its_values(
    hospital: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = explained(
        capsys, hospital, "Encounter?patient=4711&date=ge2024-03-30"
    )
    assert status == 0
    assert told.startswith("SELECT")
    assert "ORDER BY" in told
    assert "4711" not in told
    assert "2024" not in told


def test_a_search_is_shown_as_its_request(capsys: pytest.CaptureFixture[str]) -> None:
    search = "GET https://us/fhir/v3/Encounter?patient=4711"
    status, told = explained(capsys, GROUP_A, search)
    assert status == 0
    assert told.startswith("GET /sejours ")
    assert "ipp=?" in told
    assert "4711" not in told


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
def test_why_a_search_is_refused(
    search: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = explained(capsys, GROUP_A, search)
    assert status == 1
    assert told.startswith("refused: ")
    assert reason in told


@pytest.mark.parametrize("search", ["Encounters?a=b", "patient=42", ""])
def test_no_search_at_all_cannot_run(
    search: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("PAS_URL")
    if url:
        monkeypatch.setenv("PAS_URL", url)
    status, told = explained(capsys, file, "Encounter?patient=1")
    assert status == 2
    assert "nobody" not in told


def test_openapi_tells_what_this_deployment_offers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = "https://encounters.example.org/fhir/v3"
    status, printed = explained(capsys, GROUP_A, "--openapi", url)
    told = json.loads(printed)
    assert (status, told["servers"]) == (0, [{"url": url}])
    search = told["paths"]["/Encounter"]["get"]["parameters"]
    texts = {each["name"]: each.get("description", "") for each in search}
    assert "Prefixes eq, gt, lt, ge, le." in texts["date"]
    assert "status" not in texts


def test_values_are_shown_to_who_asks_for_them(
    hospital: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAS_URL", f"sqlite:///{hospital.parent / 'pas.db'}")
    search = "Encounter?patient=42&date=ge2024-03-30"
    hidden = explained(capsys, hospital, search)[1]
    status, told = explained(capsys, hospital, search, "--values")
    assert status == 0
    assert told.startswith(hidden.rstrip("\n").partition("\n\n")[0])
    legend = [line for line in told.splitlines() if line.startswith("-- ")]
    assert len(legend) == told.count("?")
    assert "-- 1: '42'" in legend or "-- 1: 42" in legend
    assert any(line.endswith(": '2024-03-30 00:00:00'") for line in legend)
    assert "2024-03-30" not in hidden
    assert explained(capsys, hospital, "--values", search) == (status, told)
    with pytest.raises(SystemExit, match="2"):
        explained(capsys, hospital, search, "--values", search)


def test_two_statements_say_which_is_which(
    hospital: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told = explained(capsys, hospital, "Encounter?status=finished")
    assert status == 0
    heads = [line for line in told.splitlines() if line.startswith("--")]
    assert [head[:9] for head in heads] == ["-- 1 of 2", "-- 2 of 2"]


def test_values_of_a_request_are_shown_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    search = "Encounter?patient=42&date=ge2024-03-30"
    status, told = explained(capsys, GROUP_A, search, "--values")
    assert status == 0
    assert told == (
        "GET /sejours sansEtats=A,AN,X,SUP ipp=42 entreeDu=30/03/2024 nb=10\n"
    )
