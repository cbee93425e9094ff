"""`encounters mapping check`: findings, their places, and those that a file accepts."""

import json
import os
from pathlib import Path

import pytest

from adapters.mapping.model import KnownFinding, Mark
from app.cli import main
from app.cli.check import Finding, Severity, settle
from tests.app.cli.live_hospital import FIRST, checked, fill, written

MAPPINGS = Path(__file__).parents[3] / "mappings"
DEMO = MAPPINGS / "demo" / "demo.yaml"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    file = tmp_path / "faulty.yaml"
    text = DEMO.read_text().replace("profile: full", "profile: ful")
    file.write_text(text.replace("codes: status", "codes: statu", 1))
    return file


def real(text: str) -> str:
    """Return the text of a mapping with identifiers that are no examples."""
    text = text.replace("1.2.250.1.999", "1.2.250.1.71")
    return text.replace("//example.org", "//hospital.test")


def test_a_file_is_fine_without_its_environment_and_in_a_pipe(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAS_URL", raising=False)
    (file := tmp_path / "fine.yaml").write_text(real(DEMO.read_text()))
    assert main(["mapping", "check", str(file)]) == 0
    assert capsys.readouterr().out.startswith(f"{file}: ")
    reads, writes = os.pipe()
    os.write(writes, file.read_bytes())
    os.close(writes)
    assert main(["mapping", "check", f"/dev/fd/{reads}"]) == 0
    os.close(reads)


def test_every_problem_is_reported_at_its_place(faulty: Path, capsys: Capture) -> None:
    assert main(["mapping", "check", str(DEMO), str(faulty)]) == 1
    lines = capsys.readouterr().out.splitlines()
    named = [line for line in lines if not line.startswith("    ")]
    assert [line.startswith(f"{faulty}:") for line in named] == [False, True, True]
    first, *_, second = " ".join(lines).split(str(faulty))[1:]
    assert "'full'" in first
    assert "Encounter.status" in second
    assert "'statu'" in second


def test_json_has_the_same_findings(faulty: Path, capsys: Capture) -> None:
    assert main(["mapping", "check", "--json", str(faulty)]) == 1
    first, *_ = json.loads(capsys.readouterr().out)["findings"]
    keys = "file line column text element source severity remedy part topic"
    assert list(first) == keys.split()
    found = first["element"], first["column"], first["severity"]
    assert found == ("profile", 10, "error")
    assert faulty.read_text().splitlines()[first["line"] - 1] == "profile: ful"


def test_open_questions_and_identifiers_of_examples_have_their_lines(
    tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "open.yaml"
    lines = ["# ? a question", *real(DEMO.read_text()).splitlines()]
    at = next(n for n, text in enumerate(lines) if "IPP-CHU: urn" in text)
    lines[at] = "      IPP-CHU: https://example.org/identifiers/patient"
    lines += ["# not https://example.org/identifiers/other", *["# ? more"] * 20]
    file.write_text("\n".join(lines))
    assert main(["mapping", "check", "--verbose", str(file)]) == 1
    system, marks = capsys.readouterr().out.splitlines()
    assert marks.startswith(f"{file}:1:1: note: 21 ")
    assert marks.count(", ") == 10
    assert marks.endswith("…")
    assert system.startswith(f"{file}:{at + 1}:1: warning: ")


@pytest.mark.parametrize(
    ("value", "is_example"),
    [
        ("urn:oid:1.2.250.1.999.7.1", True),
        ('"urn:oid:1.2.250.1.999"', True),
        ("https://fhir.example.org/unit", True),
        ("http://example.com/unit", True),
        ("urn:oid:1.2.250.1.9990.1", False),
        ("https://anexample.org/unit", False),
        ("https://hospital.test/unit   # not https://example.org/unit", False),
    ],
)
def test_identifiers_of_examples(
    tmp_path: Path, capsys: Capture, value: str, is_example: bool
) -> None:
    file = written(tmp_path, ("urn:oid:1.2.3", value))
    assert main(["mapping", "check", "--json", str(file)]) is int(is_example)
    found = json.loads(capsys.readouterr().out)["findings"]
    (at,) = [
        n for n, line in enumerate(file.read_text().splitlines(), 1) if value in line
    ]
    assert [(f["line"], f["severity"]) for f in found] == [(at, "warning")] * is_example


CLOCKS = {
    "NOW()": ":now",
    "now ( )": ":now",
    "CURRENT_TIMESTAMP": ":now",
    "SYSDATE": ":now",
    "GETDATE()": ":now",
    "datetime('now', 'localtime')": ":now",
    "SYSTIMESTAMP": ":now",
    "SYSDATETIME()": ":now",
    "LOCALTIMESTAMP": ":now",
    "UTC_TIMESTAMP()": ":now",
    "clock_timestamp()": ":now",
    "CURRENT_DATE": ":today",
    "UTC_DATE()": ":today",
    "curdate()": ":today",
    "date('now')": ":today",
    "date(began)": "",
    "s.now": "",
    "renow()": "",
    "'NOW()'": "",
    '"current_date"': "",
    "1 /* NOW() */": "",
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_clock_of_the_database_in_a_select(
    tmp_path: Path, capsys: Capture, clock: str
) -> None:
    rows = f"rows: |\n    SELECT *\n    FROM stays s WHERE began < {clock}"
    file = written(tmp_path, ("rows: SELECT * FROM stays", rows))
    bound = CLOCKS[clock]
    assert main(["mapping", "check", "--json", str(file)]) is int(bool(bound))
    found = json.loads(capsys.readouterr().out)["findings"]
    at = next(n for n, t in enumerate(file.read_text().splitlines(), 1) if clock in t)
    expected = [(at, "warning", "Encounter.rows")] * bool(bound)
    assert [(f["line"], f["severity"], f["element"]) for f in found] == expected
    assert all(bound in one["text"] for one in found)


CONTRADICTIONS = {
    "visit_number: {from: visit}": ("visit_number: {from: patient_id}", 1),
    "start: {from: began}": ("start: {from: ended}", 1),
    "end: {from: ended}": ("end: {from: changed}", 1),
    "changed, time_zone: UTC}": ("changed, time_zone: UTC, covers: all}", 0),
}


@pytest.mark.parametrize("line", CONTRADICTIONS)
@pytest.mark.parametrize("clock", ["", " WHERE began < :now"])
def test_fields_that_cannot_be_as_they_stand(
    tmp_path: Path, capsys: Capture, line: str, clock: str
) -> None:
    changed, warnings = CONTRADICTIONS[line]
    rows = ("rows: SELECT * FROM stays", f"rows: SELECT * FROM stays{clock}")
    file = written(tmp_path, (line, changed), rows)
    # A last change covers nothing that follows from the clock.
    warnings += bool(clock) and "covers" in changed
    assert main(["mapping", "check", "--json", str(file)]) is warnings
    found = json.loads(capsys.readouterr().out)["findings"]
    lines = file.read_text().splitlines()
    at = [n for n, text in enumerate(lines, 1) if changed in text][:1] * warnings
    assert [(f["line"], f["severity"]) for f in found] == [(n, "warning") for n in at]


# ------------------------------------------------------------------ accepted findings


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/pas.sqlite"
    monkeypatch.setenv("PAS_URL", url)
    return url


def accepting(folder: Path, at: str, says: str, *changes: tuple[str, str]) -> Path:
    """Write the mapping of the sound hospital with one accepted finding."""
    entry = f"known:\n  - at: {at}\n    says: {json.dumps(says)}\n    because: so\n"
    return written(folder, (FIRST, FIRST + entry), *changes)


def test_an_accepted_finding_is_a_note_with_its_reason(
    url: str, tmp_path: Path, capsys: Capture
) -> None:
    fill(url, "sqlite", ("UPDATE stays SET state = 'Q7' WHERE stay_id < 3",))
    (error,) = [
        f for f in checked(written(tmp_path), capsys) if f["severity"] == "error"
    ]
    says = error["text"].replace("(2 rows)", "(17 rows)")
    file = accepting(tmp_path, error["source"], says)
    assert main(["mapping", "check", "--live", "--verbose", str(file)]) == 0
    assert "(known: so)" in capsys.readouterr().out


def test_an_entry_without_its_finding_is_a_note_of_live_checks(
    url: str, tmp_path: Path, capsys: Capture
) -> None:
    fill(url, "sqlite")
    file = accepting(tmp_path, "stays.state", "'Q7' (1 row)")
    (one,) = [f for f in checked(file, capsys) if f["element"] == "known"]
    assert one["severity"] == "note"
    assert "at: stays.state" in file.read_text().splitlines()[int(one["line"]) - 1]
    # Without the source nobody can say.
    assert main(["mapping", "check", str(file)]) == 0
    assert "known" not in capsys.readouterr().out


def test_an_error_of_the_file_itself_cannot_be_accepted(
    tmp_path: Path, capsys: Capture
) -> None:
    file = accepting(
        tmp_path, "E…", "…e…", ("codes: kinds", "codes: kind"), ("M: male", "M: man")
    )
    for options in ([], ["--live"]):
        assert main(["mapping", "check", *options, str(file)]) == 1
        printed = capsys.readouterr().out
        assert "'kind'" in printed
        assert "'man'" in printed
        assert "(known: " not in printed


def test_what_a_file_leaves_open_is_a_warning_for_its_source(
    url: str, tmp_path: Path, capsys: Capture
) -> None:
    fill(url, "sqlite")
    old = "gender: {from: sex, codes: sexes}"
    system = ("urn:oid:1.2.4", "https://example.org/identifiers/patient")
    file = written(tmp_path, (old, f"{old} # ?"), system)
    severities = [f["severity"] for f in checked(file, capsys) if not f["element"]]
    assert severities == ["warning", "warning"]
    # It cannot be accepted either.
    file = accepting(tmp_path, '"E…"', "identifiers of examples … nobody's …", system)
    assert [f["severity"] for f in checked(file, capsys) if not f["element"]] == [
        "warning"
    ]


def test_an_index_of_somebody_elses_database_can_be_accepted(
    url: str, tmp_path: Path, capsys: Capture
) -> None:
    fill(url, "sqlite", ("DROP INDEX stays_visit",))
    found = checked(written(tmp_path), capsys)
    (one,) = [f for f in found if f["severity"] == "warning"]
    file = accepting(tmp_path, f"{one['element']} ← {one['source']}", one["text"])
    assert main(["mapping", "check", "--live", str(file)]) == 0
    assert "CREATE INDEX" not in capsys.readouterr().out


def finding(text: str) -> Finding:
    return Finding("f", 1, 1, text, "Encounter.status", "t.c")


@pytest.mark.parametrize(
    ("at", "says", "fits"),
    [
        ("t.c", "12 of 1,000 rows are odd", True),
        ("Encounter.status", "7 of 20 rows are odd", True),
        ("Encounter.status ← t.c", "7 of 20 rows  are odd", True),
        ("t.d", "12 of 1,000 rows are odd", False),
        ("t.c", "rows are odd", False),
        ("t.c", "… are odd", True),
        ("…", "… rows …", True),
        ("u.…", "… rows …", False),
        ("t.c", "12 of 1,000 rows are odd: 'X1'", False),
        # A code is no count.
        ("t.c", "3 of 5 rows are odd, not '8'", False),
    ],
)
def test_what_an_entry_means(at: str, says: str, fits: bool) -> None:
    entry = KnownFinding(at, says, "so", Mark("f", 9, 3))
    text = "3 of 5 rows are odd" + ", not '7'" * ("not" in says)
    (one,) = settle([finding(text)], [entry], is_complete=False)
    assert (one.severity is Severity.NOTE) is fits


@pytest.mark.parametrize(
    ("before", "is_back"),
    [("2 of 5", True), ("2 of 9,000", True), ("3 of 5", False), ("…", False)],
)
def test_a_finding_that_counts_ten_times_as_many_is_back(
    before: str, is_back: bool
) -> None:
    entry = KnownFinding("t.c", f"{before} rows are odd", "so", Mark("f", 9, 3))
    odd = finding("20 of 50,000 rows are odd")
    (one,) = settle([odd], [entry], is_complete=True)
    assert (one.severity is odd.severity) is is_back
    assert (entry.says in one.text) is is_back
