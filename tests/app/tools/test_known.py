"""Findings of the check that a mapping says are known and meant to stay."""

from pathlib import Path

import pytest

from adapters.mapping.model import KnownFinding, Mark
from app.cli import main
from app.tools.known import settle
from app.tools.report import Finding, Severity
from tests.app.tools.test_check_live import fill, looked, written

FIRST = "encounter:\n"
KNOWN = """\
known:
  - at: stays.state
    says: "codes.states names no {codes}: such rows cannot be served"
    because: typing errors of 2012
"""
CODE = "UPDATE stays SET state = '{}' WHERE stay_id = {}"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path / 'pas.sqlite'}"
    monkeypatch.setenv("PAS_URL", url)
    return url


def known_file(tmp_path: Path, codes: str) -> Path:
    return written(tmp_path, (FIRST, KNOWN.format(codes=codes) + FIRST))


def test_a_known_code_is_a_note_and_the_check_is_fine(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, "sqlite", (CODE.format("Q7", 1), CODE.format("Q7", 2)))
    file = known_file(tmp_path, "'Q7' (90 rows)")
    assert main(["mapping", "check", "--live", str(file)]) == 0
    told = capsys.readouterr().out
    assert "note: codes.states names no 'Q7' (2 rows)" in told
    assert "cannot be served (known: typing errors of 2012)" in told
    assert "Q7: '?'" not in told


def test_another_code_is_a_finding(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, "sqlite", (CODE.format("Q7", 1), CODE.format("Q8", 2)))
    found = looked(known_file(tmp_path, "'Q7' (1 row)"), capsys)
    assert [one["text"] for one in found if one["severity"] == "error"] == [
        "codes.states names no 'Q7' (1 row), 'Q8' (1 row): such rows cannot be served"
    ]


def test_an_entry_that_nothing_says_any_more_is_told_at_its_line(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, "sqlite")
    file = known_file(tmp_path, "'Q7' (1 row)")
    (one,) = [one for one in looked(file, capsys) if "any more" in one["text"]]
    assert one["severity"] == "note"
    assert "at: stays.state" in file.read_text().splitlines()[int(one["line"]) - 1]
    # Without the source nobody can tell.
    assert main(["mapping", "check", str(file)]) == 0
    assert "any more" not in capsys.readouterr().out


def test_an_error_of_the_file_itself_is_never_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = 'known: [{at: "E…", says: "…e…", because: so}, {at: "c…", says: "t…", because: so}]\n'
    faults = [("codes: kinds", "codes: kind"), ("M: male", "M: man")]
    file = written(tmp_path, (FIRST, entry + FIRST), *faults)
    for options in ([], ["--live"]):
        assert main(["mapping", "check", *options, str(file)]) == 1
        told = capsys.readouterr().out
        assert "there is no code table 'kind'" in told
        assert "'man' is not a code of 'gender'" in told
        assert "(known: " not in told


def test_a_file_with_open_questions_is_not_ready_for_its_source(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, "sqlite")
    marked = (
        "gender: {from: sex, codes: sexes}",
        "gender: {from: sex, codes: sexes} # ?",
    )
    system = ("urn:oid:1.2.4", "https://example.org/identifiers/patient")
    file = written(tmp_path, marked, system)
    assert main(["mapping", "check", str(file)]) == 0
    assert ": note: 1 guess is marked '# ?': line " in capsys.readouterr().out
    assert main(["mapping", "check", "--live", str(file)]) == 1
    told = capsys.readouterr().out
    assert ": warning: 1 guess is marked '# ?': line " in told
    assert (
        ": warning: a system under https://example.org/identifiers/ is nobody's" in told
    )


def test_an_index_of_somebody_elses_database(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, "sqlite", ("DROP INDEX stays_visit",))
    file = written(tmp_path)
    assert main(["mapping", "check", "--live", "--json", str(file)]) == 1
    capsys.readouterr()
    (one,) = [o for o in looked(file, capsys) if o["severity"] == "warning"]
    entry = (
        f'known:\n  - at: {one["element"]} ← {one["source"]}\n    says: "{one["text"]}"\n'
        "    because: the vendor makes no index\n"
    )
    (tmp_path / "of").mkdir()
    file = written(tmp_path / "of", (FIRST, entry + FIRST))
    assert main(["mapping", "check", "--live", str(file)]) == 0
    assert "CREATE INDEX" not in capsys.readouterr().out


def finding(text: str, source: str = "t.c") -> Finding:
    return Finding("f", 1, 1, text, "Encounter.status", source)


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
    ],
    ids=[
        "column",
        "element",
        "both",
        "elsewhere",
        "part",
        "end",
        "all",
        "other-table",
        "more",
    ],
)
def test_what_an_entry_means(at: str, says: str, fits: bool) -> None:
    entry = KnownFinding(at, says, "so", Mark("f", 9, 3))
    (one,) = settle([finding("3 of 5 rows are odd")], [entry], all_told=False)
    assert (one.severity is Severity.NOTE) is fits


@pytest.mark.parametrize("code", ["7", "Q7"])
def test_a_code_is_no_count(code: str) -> None:
    entry = KnownFinding("t.c", "names no '8' (1 row)", "so", Mark("f", 9, 3))
    (one,) = settle([finding(f"names no '{code}' (1 row)")], [entry], all_told=False)
    assert one.severity is Severity.ERROR


def of(says: str, because: str) -> KnownFinding:
    return KnownFinding("t.c", says, because, Mark("f", 9, 3))


def test_the_entry_with_the_same_counts_comes_first_and_none_that_fits_is_stale() -> (
    None
):
    entries = [of("3 of 9 rows are odd", "one"), of("5 of 9 rows  are odd", "two")]
    found = [finding("5 of 9 rows are odd"), finding("3 of 9 rows are odd")]
    told = [one.text for one in settle(found, entries, all_told=True)]
    assert told == [
        f"{f.text} (known: {w})" for f, w in zip(found, ("two", "one"), strict=False)
    ]
    # Other counts: each entry has one. And one finding for two entries leaves none over.
    found = [finding("6 of 9 rows are odd"), finding("5 of 9 rows are odd")]
    told = [one.text for one in settle(found, entries, all_told=True)]
    assert [text[-5:-1] for text in told] == [" one", " two"]
    (one,) = settle(found[:1], entries, all_told=True)
    assert one.text.endswith("(known: one)")


def test_what_is_said_of_the_whole_file_cannot_be_known(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(url, "sqlite")
    text = (
        "a system under https://example.org/identifiers/ is nobody's (RFC 2606): put the"
        " hospital's: line 1"
    )
    entry = f'known:\n  - at: "E…"\n    says: "{text}"\n    because: so\n'
    system = ("urn:oid:1.2.4", "https://example.org/identifiers/patient")
    found = looked(written(tmp_path, (FIRST, entry + FIRST), system), capsys)
    assert [one["text"] for one in found if one["element"] == "known"] == [
        "what is said of the whole file (marks '# ?', systems that are nobody's) cannot be"
        " known: mend the lines that it names, and take the entry away"
    ]
    (nobodys,) = [one for one in found if "is nobody's (" in str(one["text"])]
    assert nobodys["severity"] == "warning"
    # The text of the entry is no such system.
    lines = str(nobodys["text"]).partition(": line ")[2]
    assert (
        "identifiers/patient"
        in (tmp_path / "hospital.yaml").read_text().splitlines()[int(lines) - 1]
    )
