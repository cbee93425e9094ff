"""`encounters mapping check`: every problem at once, its place, and the exit status."""

import json
import os
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


def test_a_pipe_is_read_once_and_fine(capsys: pytest.CaptureFixture[str]) -> None:
    reads, writes = os.pipe()
    os.write(writes, DEMO.read_bytes())
    os.close(writes)
    try:
        assert main(["mapping", "check", f"/dev/fd/{reads}"]) == 0
    finally:
        os.close(reads)
    assert capsys.readouterr().out == f"/dev/fd/{reads}: nothing to mend\n"


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


def test_what_is_open_is_counted_once_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "open.yaml"
    text = DEMO.read_text().replace("profile: full", "profile: full  # ? or group-a")
    lines = ["# ? a question about the whole", "", *text.splitlines()]
    system = next(n for n, t in enumerate(lines, 1) if "IPP-CHU: urn" in t)
    lines[system - 1] = "      IPP-CHU: https://example.org/identifiers/patient"
    lines.append("# not https://example.org/identifiers/other")
    file.write_text("\n".join(lines))
    assert main(["mapping", "check", str(file)]) == 0
    profile = next(n for n, t in enumerate(lines, 1) if t.startswith("profile"))
    assert capsys.readouterr().out.splitlines() == [
        f"{file}:1:1: note: 2 guesses and questions are marked '# ?': lines 1, {profile}",
        f"{file}:{system}:1: note: a system under https://example.org/identifiers/ is nobody's"
        f" (RFC 2606): put the hospital's: line {system}",
        f"{file}: nothing to mend",
    ]


def test_no_more_than_ten_lines_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "open.yaml"
    file.write_text("# ? a question\n" * 25 + DEMO.read_text())
    assert main(["mapping", "check", str(file)]) == 0
    assert "25 guesses" in (told := capsys.readouterr().out)
    assert "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …\n" in told


@pytest.mark.parametrize(
    ("zone", "step", "told"),
    [("UTC", "day", 1), ("Europe/Berlin", "day", 0), ("UTC", "minute", 0)],
)
def test_days_of_an_api_that_are_not_those_of_clients_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], zone: str, step: str, told: int
) -> None:
    form = "%d/%m/%Y" + " %H:%M" * (step == "minute")
    file = tmp_path / "mapping.yaml"
    text = (MAPPINGS / "group-a" / "group-a.yaml").read_text("utf-8")
    before = 'step: day, format: "%d/%m/%Y"'
    assert before in text
    now = f'step: {step}, format: "{form}", time_zone: {zone}'
    file.write_text(text.replace(before, now), "utf-8")
    assert main(["mapping", "check", str(file)]) == 0
    said = (
        f"'date' compares days of {zone}, and the days of clients are of Europe/Paris: "
        "a search by day is refused (412)"
    )
    assert capsys.readouterr().out.count(said) == told
