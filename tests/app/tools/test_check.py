"""`encounters mapping check`: every problem at once, its place, and the exit status."""

import json
from pathlib import Path

import pytest

from app.cli import main

MAPPINGS = Path(__file__).parents[3] / "mappings"
DEMO = MAPPINGS / "demo" / "demo.yaml"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    file = tmp_path / "faulty.yaml"
    text = DEMO.read_text().replace("profile: full", "profile: ful")
    file.write_text(text.replace("codes: status", "codes: statu", 1))
    return file


def test_a_file_is_fine_without_its_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAS_URL", raising=False)
    assert main(["mapping", "check", str(DEMO)]) == 0
    assert capsys.readouterr().out == f"{DEMO}: nothing to mend\n"


def test_every_problem_is_told_with_its_place(
    faulty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mapping", "check", str(DEMO), str(faulty)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert all(line.startswith(f"{faulty}:") for line in told)
    assert "did you mean 'full'?" in told[0]
    assert any("Encounter.status" in line and "'statu'" in line for line in told)


def test_json_says_the_same(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mapping", "check", "--json", str(faulty)]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert found[0] == {
        "file": str(faulty),
        "line": found[0]["line"],
        "column": 10,
        "text": found[0]["text"],
        "element": "profile",
        "source": "",
        "severity": "error",
        "remedy": "",
    }
    assert faulty.read_text().splitlines()[found[0]["line"] - 1] == "profile: ful"


def test_what_the_profile_has_and_the_file_has_not_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "narrow.yaml"
    file.write_text(DEMO.read_text().replace("[_id, patient, date,", "[_id, patient,"))
    assert main(["mapping", "check", str(file)]) == 0
    told = capsys.readouterr().out
    assert "note: profile full has the parameter 'date'" in told
    assert told.endswith("nothing to mend\n")
