"""`encounters mapping check`: findings, their places, and those that a file accepts."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from adapters.mapping.model import KnownFinding, Mark
from app.cli import main
from tests.toolkit.conftest import Mapping
from tests.toolkit.live_hospital import FIRST, checked, fill, written
from tests.toolkit.places import DEMO
from toolkit.check import settle
from toolkit.findings import Finding, Severity

Capture = pytest.CaptureFixture[str]
Changes = tuple[tuple[str, str], ...]


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
    tmp_path: Path, mapping: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAS_URL", raising=False)
    (file := tmp_path / "fine.yaml").write_text(real(DEMO.read_text()))
    printed = mapping("check", file)
    assert printed.status == 0
    assert printed.out.startswith(f"{file}: ")
    reads, writes = os.pipe()
    os.write(writes, file.read_bytes())
    os.close(writes)
    assert mapping("check", f"/dev/fd/{reads}").status == 0
    os.close(reads)


def test_every_problem_is_reported_at_its_place(faulty: Path, mapping: Mapping) -> None:
    printed = mapping("check", DEMO, faulty)
    assert printed.status == 1
    lines = printed.out.splitlines()
    named = [line for line in lines if not line.startswith("    ")]
    assert [line.startswith(f"{faulty}:") for line in named] == [False, True, True]
    first, *_, second = " ".join(lines).split(str(faulty))[1:]
    assert "'full'" in first
    assert "Encounter.status" in second
    assert "'statu'" in second
    finding, *_ = mapping("check", "--json", faulty).document["findings"]
    keys = "file line column text element source severity remedy part topic"
    assert list(finding) == keys.split()
    assert (finding["element"], finding["column"]) == ("profile", 10)
    assert finding["severity"] == "error"
    assert faulty.read_text().splitlines()[finding["line"] - 1] == "profile: ful"


def test_open_questions_and_identifiers_of_examples_have_their_lines(
    tmp_path: Path, mapping: Mapping
) -> None:
    file = tmp_path / "open.yaml"
    lines = ["# ? a question", *real(DEMO.read_text()).splitlines()]
    at = next(n for n, text in enumerate(lines) if "IPP-CHU: urn" in text)
    lines[at] = "      IPP-CHU: https://example.org/identifiers/patient"
    lines += ["# not https://example.org/identifiers/other", *["# ? more"] * 20]
    file.write_text("\n".join(lines))
    printed = mapping("check", "--verbose", file)
    assert printed.status == 1
    system, marks = printed.out.splitlines()
    assert marks.startswith(f"{file}:1:1: note: 21 ")
    assert marks.count(", ") == 10
    assert marks.endswith("…")
    assert system.startswith(f"{file}:{at + 1}:1: warning: ")


def clock(expression: str) -> Changes:
    rows = f"rows: |\n    SELECT *\n    FROM stays s WHERE began < {expression}"
    return (("rows: SELECT * FROM stays", rows),)


COVERED = ("changed, time_zone: UTC}", "changed, time_zone: UTC, covers: all}")
WARNED: list[tuple[Changes, str, str]] = [
    # Identifiers of examples.
    *(
        ((("urn:oid:1.2.3", value),), value, says)
        for value, says in {
            "urn:oid:1.2.250.1.999.7.1": "example",
            '"urn:oid:1.2.250.1.999"': "example",
            "https://fhir.example.org/unit": "example",
            "http://example.com/unit": "example",
            "urn:oid:1.2.250.1.9990.1": "",
            "https://anexample.org/unit": "",
            "https://hospital.test/unit   # not https://example.org/unit": "",
        }.items()
    ),
    # A clock of the database in a SELECT, and the bound value in its place.
    *(
        (clock(expression), expression, says)
        for says, expressions in {
            ":now": (
                *("now ( )", "CURRENT_TIMESTAMP", "SYSDATE", "GETDATE()"),
                *("datetime('now', 'localtime')", "SYSTIMESTAMP", "SYSDATETIME()"),
                *("LOCALTIMESTAMP", "UTC_TIMESTAMP()", "clock_timestamp()"),
            ),
            ":today": ("CURRENT_DATE", "UTC_DATE()", "curdate()", "date('now')"),
            "": (
                *("date(began)", "s.now", "renow()", "'NOW()'", '"current_date"'),
                "1 /* NOW() */",
            ),
        }.items()
        for expression in expressions
    ),
    # Fields that contradict each other.
    ((("visit_number: {from: visit}", "visit_number: {from: patient_id}"),), "", " "),
    ((("start: {from: began}", "start: {from: ended}"),), "start: {from: ended}", " "),
    ((("end: {from: ended}", "end: {from: changed}"),), "end: {from: changed}", " "),
    ((COVERED,), COVERED[1], ""),
    # A last change covers nothing that follows from the clock.
    ((COVERED, *clock(":now")), COVERED[1], " "),
]


def test_what_cannot_be_as_it_stands_is_a_warning_at_its_line(
    tmp_path: Path, mapping: Mapping
) -> None:
    for changes, snippet, says in WARNED:
        file = written(tmp_path, *changes)
        snippet = snippet or changes[0][1]
        lines = file.read_text().splitlines()
        at = next(n for n, line in enumerate(lines, 1) if snippet in line)
        printed = mapping("check", "--json", file)
        results: list[dict[str, Any]] = printed.document["findings"]
        found = [one for one in results if one["severity"] != "note"]
        expected = [(at, "warning")] * bool(says)
        assert [(f["line"], f["severity"]) for f in found] == expected, snippet
        assert printed.status == bool(says)
        assert all(says in finding["text"] for finding in found), snippet


@pytest.mark.parametrize(
    ("rows", "is_found"),
    [
        ("SELECT * FROM stays WHERE began < CAST(:now AS TIMESTAMP)", True),
        ("SELECT s.* FROM stays s JOIN t ON t.id = s.id AND t.until > :today", True),
        ("SELECT CASE WHEN began < :now THEN 'S' END AS state FROM stays", False),
        ("SELECT * FROM stays WHERE a < 1 UNION ALL SELECT :now FROM t", False),
        ("SELECT * FROM stays WHERE a < ':now' -- :now", False),
    ],
)
def test_rows_that_the_clock_leaves_out_are_a_note(
    rows: str, is_found: bool, tmp_path: Path, mapping: Mapping
) -> None:
    file = written(tmp_path, ("SELECT * FROM stays", f"|\n    {rows}"))
    findings = mapping("check", "--json", file).document["findings"]
    notes = [one for one in findings if "a condition compares" in one["text"]]
    assert [one["severity"] for one in notes] == ["note"] * is_found


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
    """An index of somebody else's database can be accepted as well."""
    fill(
        *(url, "sqlite"),
        ("UPDATE stays SET state = 'Q7' WHERE stay_id < 3", "DROP INDEX stays_visit"),
    )
    found = checked(written(tmp_path), capsys)
    error, index = (
        next(f for f in found if f["severity"] == severity)
        for severity in ("error", "warning")
    )
    says = error["text"].replace("(2 rows)", "(17 rows)")
    file = accepting(tmp_path, error["source"], says)
    text = file.read_text()
    entry = f"at: {index['element']} ← {index['source']}\n    says: {json.dumps(index['text'])}"
    file.write_text(text.replace("  - at", f"  - {entry}\n    because: so\n  - at", 1))
    assert main(["mapping", "check", "--live", "--verbose", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("(known: so)") == 2
    assert "CREATE INDEX" not in printed


def test_an_error_of_the_file_itself_cannot_be_accepted(
    tmp_path: Path, mapping: Mapping
) -> None:
    file = accepting(
        tmp_path, "E…", "…e…", ("codes: kinds", "codes: kind"), ("M: male", "M: man")
    )
    for options in ([], ["--live"]):
        printed = mapping("check", *options, file)
        assert printed.status == 1
        assert "'kind'" in printed.out
        assert "'man'" in printed.out
        assert "(known: " not in printed.out


def test_what_a_file_leaves_open_is_a_warning_for_its_source(
    url: str, tmp_path: Path, capsys: Capture
) -> None:
    fill(url, "sqlite")
    old = "gender: {from: sex, codes: sexes}"
    system = ("urn:oid:1.2.4", "https://example.org/identifiers/patient")
    question = written(tmp_path, (old, f"{old} # ?"), system)
    severities = [f["severity"] for f in checked(question, capsys) if not f["element"]]
    assert severities == ["warning", "warning"]
    # It cannot be accepted either.
    (example,) = [
        f for f in checked(written(tmp_path, system), capsys) if not f["element"]
    ]
    file = accepting(tmp_path, '"… ← …"', example["text"], system)
    severities = [f["severity"] for f in checked(file, capsys) if not f["element"]]
    assert severities == ["warning"]


@pytest.mark.parametrize(
    ("at", "says", "fits"),
    [
        ("t.c", "12 of 1,000 rows are odd", True),
        ("Encounter.status", "7 of 20 rows are odd", True),
        ("Encounter.status ← t.c", "7 of 20 rows  are odd", True),
        ("t.d", "12 of 1,000 rows are odd", False),
        ("t.c", "rows are odd", False),
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
    finding = Finding("f", 1, 1, text, "Encounter.status", "t.c")
    (one,) = settle([finding], [entry])
    assert (one.severity is Severity.NOTE) is fits


@pytest.mark.parametrize(
    ("before", "is_back"),
    [("2 of 5", True), ("2 of 9,000", True), ("3 of 5", False), ("…", False)],
)
def test_a_finding_that_counts_ten_times_as_many_is_back(
    before: str, is_back: bool
) -> None:
    entry = KnownFinding("t.c", f"{before} rows are odd", "so", Mark("f", 9, 3))
    text = "20 of 50,000 rows are odd"
    odd = Finding("f", 1, 1, text, "Encounter.status", "t.c")
    (one,) = settle([odd], [entry])
    assert (one.severity is odd.severity) is is_back
    assert (entry.says in one.text) is is_back
