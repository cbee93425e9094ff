"""`encounters mapping check`: findings, their places, and those that a file accepts."""

import json
import os

import pytest

from adapters.mapping.model import KnownFinding, Mark
from tests.toolkit.live_hospital import run, written
from tests.toolkit.places import DEMO
from toolkit.check import settle
from toolkit.findings import Finding, Severity


def real(text):
    """Return the text of a mapping with identifiers that are no examples."""
    text = text.replace("1.2.250.1.999", "1.2.250.1.71")
    return text.replace("//example.org", "//hospital.test")


def test_a_file_is_fine_without_its_environment_and_in_a_pipe(
    tmp_path, mapping, monkeypatch
):
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


def test_every_problem_is_reported_at_its_place(tmp_path, mapping):
    faulty = tmp_path / "faulty.yaml"
    text = DEMO.read_text().replace("profile: full", "profile: ful")
    faulty.write_text(text.replace("codes: status", "codes: statu", 1))
    printed = mapping("check", DEMO, faulty)
    assert printed.status == 1
    first, *_, second = printed.out.split(str(faulty))[1:]
    assert "'full'" in first
    assert "Encounter.status" in second
    assert "'statu'" in second
    finding, *_ = mapping("check", "--json", faulty).document["findings"]
    keys = "file line column text element source severity remedy part topic"
    assert list(finding) == keys.split()
    assert (finding["element"], finding["column"]) == ("profile", 10)
    assert finding["severity"] == "error"
    assert faulty.read_text().splitlines()[finding["line"] - 1] == "profile: ful"


def test_open_questions_have_their_lines(tmp_path, mapping):
    file = tmp_path / "open.yaml"
    text = f"# ? a question\n{real(DEMO.read_text())}\n" + "# ? more\n" * 20
    file.write_text(text)
    printed = mapping("check", "--verbose", file)
    assert printed.status == 0
    marks, _ = printed.out.splitlines()
    assert marks.startswith(f"{file}:1:1: note: 21 ")
    assert marks.count(", ") == 10
    assert marks.endswith("…")


def rows(select):
    return (("rows: SELECT * FROM stays", f"rows: |\n    {select}"),)


def clock(expression):
    return rows(f"SELECT *\n    FROM stays s WHERE began < {expression}")


COVERED = ("changed, time_zone: UTC}", "changed, time_zone: UTC, covers: all}")
FOUND = [
    # Identifiers of examples.
    *(
        ((("urn:oid:1.2.3", value),), value, severity, "")
        for value, severity in {
            '"urn:oid:1.2.250.1.999"': "warning",
            "https://fhir.example.org/unit": "warning",
            "urn:oid:1.2.250.1.9990.1": "",
            "https://anexample.org/unit   # not https://example.org/unit": "",
        }.items()
    ),
    # A clock of the database in a SELECT, and the bound value in its place.
    (clock("now ( )"), "now ( )", "warning", "Use :now"),
    (clock("CURRENT_DATE"), "CURRENT_DATE", "warning", "Use :today"),
    (clock("date('now')"), "date('now')", "warning", "Use :today"),
    (clock("s.now OR began < 'NOW()' /* NOW() */"), "s.now", "", ""),
    # Rows that the clock leaves out.
    (clock(":now"), ":now", "note", "rows disappear"),
    (rows("SELECT * FROM stays JOIN t ON t.until > :today"), ":today", "note", ""),
    (rows("SELECT CASE WHEN began < :now THEN 'S' END FROM stays"), "SELECT", "", ""),
    (rows("SELECT 1 WHERE a < 1 UNION ALL SELECT :now FROM t"), "SELECT", "", ""),
    # Fields that contradict each other.
    ((("visit_number: {from: visit}", "visit_number: {from: patient_id}"),), "", "warning", ""),
    ((("start: {from: began}", "start: {from: ended}"),), "", "warning", ""),
    ((("end: {from: ended}", "end: {from: changed}"),), "", "warning", ""),
    ((COVERED,), "", "", ""),
    # A last change covers nothing that follows from the clock.
    ((COVERED, *rows("SELECT :now AS x FROM stays")), "", "warning", "covers"),
]  # fmt: skip
"""Changes, the line of the finding, its severity, "" for none, and words of its text."""


def test_what_cannot_be_as_it_stands_and_what_the_clock_leaves_out(tmp_path, mapping):
    for changes, snippet, severity, words in FOUND:
        file = written(tmp_path, *changes)
        snippet = snippet or changes[0][1]
        lines = file.read_text().splitlines()
        at = next(n for n, line in enumerate(lines, 1) if snippet in line)
        printed = mapping("check", "--json", file)
        findings = printed.document["findings"]
        expected = [(at, severity)] if severity else []
        assert [(f["line"], f["severity"]) for f in findings] == expected, snippet
        assert printed.status == (severity == "warning")
        assert all(words in finding["text"] for finding in findings), snippet


# ------------------------------------------------------------------ accepted findings


def known(*entries):
    """Return the change of a mapping file that accepts findings: their places and texts."""
    known = [{"at": at, "says": says, "because": "so"} for at, says in entries]
    return "mapping: 1\n", f"mapping: 1\nknown: {json.dumps(known)}\n"


def test_an_accepted_finding_is_a_note_with_its_reason(
    sqlite, tmp_path, check, mapping
):
    run(
        sqlite,
        "UPDATE stays SET state = 'Q7' WHERE stay_id < 3",
        "DROP INDEX stays_visit",
    )
    # An index of somebody else's database can be accepted as well.
    error, index = (
        next(f for f in check() if f["severity"] == severity)
        for severity in ("error", "warning")
    )
    says = error["text"].replace("(2 rows)", "(17 rows)")
    place = f"{index['element']} ← {index['source']}"
    file = written(tmp_path, known((error["source"], says), (place, index["text"])))
    printed = mapping("check", "--live", "--verbose", file)
    assert printed.status == 0
    assert printed.out.count("(known: so)") == 2
    assert "CREATE INDEX" not in printed.out


def test_an_error_of_the_file_itself_cannot_be_accepted(tmp_path, mapping):
    file = written(tmp_path, known(("E…", "…e…")), ("codes: kinds", "codes: kind"))
    for options in ([], ["--live"]):
        printed = mapping("check", *options, file)
        assert printed.status == 1
        assert "'kind'" in printed.out
        assert "(known: " not in printed.out


def test_what_a_file_leaves_open_is_a_warning_for_its_source(sqlite, check):
    old = "gender: {from: sex, codes: sexes}"
    system = ("urn:oid:1.2.4", "https://example.org/identifiers/patient")
    left_open = [f for f in check((old, f"{old} # ?"), system) if not f["element"]]
    assert [f["severity"] for f in left_open] == ["warning", "warning"]
    # It cannot be accepted either.
    changes = known(("… ← …", left_open[1]["text"])), system
    left_open = [f for f in check(*changes) if not f["element"]]
    assert [f["severity"] for f in left_open] == ["warning"]


@pytest.mark.parametrize(
    ("at", "says", "fits"),
    [
        ("t.c", "12 of 1,000 rows  are odd, not '7'", True),
        ("Encounter.status", "12 of 1,000 rows are odd, not '7'", True),
        ("Encounter.status ← t.c", "12 of 1,000 rows are odd, not '7'", True),
        ("…", "… rows …", True),
        ("t.d", "12 of 1,000 rows are odd, not '7'", False),
        ("t.c", "rows are odd", False),
        # A code is no count.
        ("t.c", "12 of 1,000 rows are odd, not '8'", False),
        # There are ten times as many by now.
        ("t.c", "2 of 9,000 rows are odd, not '7'", False),
    ],
)
def test_what_an_entry_means(at, says, fits):
    entry = KnownFinding(at, says, "so", Mark("f", 9, 3))
    text = "20 of 50,000 rows are odd, not '7'"
    finding = Finding("f", 1, 1, text, "Encounter.status", "t.c")
    (one,) = settle([finding], [entry])
    assert (one.severity is Severity.NOTE) is fits
