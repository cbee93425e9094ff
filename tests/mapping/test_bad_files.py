"""What people do wrong in mapping files: the exact text of `encounters mapping check`."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import jsonschema
import pytest
import yaml

from app.cli import main
from app.cli.schema import schema_of_mappings
from tests.mapping.broken import BAD, FILES, as_an_editor_reads, to_mend

_OTHER_FILE = "is wrong in another file, or against it"
_ELSEWHERE = "two places of the file speak of each other"
_ALL_TEXTS = "the names are not known to a schema"
_AS_WRITTEN = "an editor reads what is not part of the format"
_JUDGED = "a judgement on names"

BEYOND_JSON_SCHEMA: Mapping[str, str] = {
    "anchor-and-alias": _AS_WRITTEN,
    "base-in-a-circle": _OTHER_FILE,
    "base-not-there": _OTHER_FILE,
    "base-of-itself": _OTHER_FILE,
    "code-in-small-letters": _ELSEWHERE,
    "code-table-not-there": _ELSEWHERE,
    "code-table-not-used": _ELSEWHERE,
    "code-table-the-wrong-way-round": _ELSEWHERE,
    "code-that-fhir-lacks": _ELSEWHERE,
    "faulty-profile-beside": _OTHER_FILE,
    "format-that-does-not-sort": _ELSEWHERE,
    "format-without-time-of-day": _ELSEWHERE,
    "hidden-class": _ELSEWHERE,
    "http-bound-without-a-zone": _ELSEWHERE,
    "http-key-in-clear": _JUDGED,
    "http-list-cannot-page": _OTHER_FILE,
    "http-search-of-a-profile": _OTHER_FILE,
    "patient-always-the-same": _ELSEWHERE,
    "profile-file-not-there": _OTHER_FILE,
    "reference-without-source": _ELSEWHERE,
    "searched-and-not-mapped": _ELSEWHERE,
    "second-select-without-key": _ELSEWHERE,
    "several-with-clashing-prefixes": _ELSEWHERE,
    "source-not-named": _ELSEWHERE,
    "source-not-used": _ELSEWHERE,
    "tag": _AS_WRITTEN,
    "time-searched-by-its-day": _ELSEWHERE,
    "two-columns-searched": _ELSEWHERE,
    "unknown-profile": _OTHER_FILE,
    "unknown-time-zone": _ALL_TEXTS,
    "utf-16": _AS_WRITTEN,
    "visit-number-without-a-system": _ELSEWHERE,
    "without-what-is-not-there": _OTHER_FILE,
    "without-what-is-required": _OTHER_FILE,
    "z-without-a-zone": _ELSEWHERE,
}
"""Files that are right as far as a schema can tell, and why it cannot tell more."""


@pytest.fixture(autouse=True)
def beside_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD)


def test_there_are_many() -> None:
    assert len(FILES) >= 60
    expected = {file.stem for file in BAD.glob("*.expected")}
    assert expected == {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_line_to_mend_is_named_and_no_other(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mapping", "check", file.name]) == 1
    # The golden file shows a reader what an integrator sees; update.py writes it.
    assert capsys.readouterr().out == file.with_suffix(".expected").read_text("utf-8")
    main(["mapping", "check", "--json", file.name])
    findings = json.loads(capsys.readouterr().out)["findings"]
    errors = [finding for finding in findings if finding["severity"] == "error"]
    assert {f"{e['file']}:{e['line']}" for e in errors} == to_mend(file)


def test_an_editor_sees_all_that_a_schema_can_tell() -> None:
    editor = jsonschema.Draft7Validator(schema_of_mappings())

    def is_valid(file: Path) -> bool:
        try:
            return editor.is_valid(as_an_editor_reads(file))
        except (yaml.YAMLError, UnicodeDecodeError):
            return False

    valid = {file.stem for file in FILES if is_valid(file)}
    assert valid == set(BEYOND_JSON_SCHEMA)


# ------------------------------------------------------- what no repository can hold


def _circle(file: Path) -> None:
    file.symlink_to(file)


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (Path.mkdir, "1:1"),
        (lambda file: None, "1:1"),
        (_circle, "1:1"),
        (
            lambda file: file.write_text("mapping: 1\n" + "# and so on\n" * 100_000),
            "1:1",
        ),
        (lambda file: file.write_text("name: " + "{a: " * 50_000), "1:83"),
    ],
    ids=["directory", "no-file", "circle", "huge", "deep"],
)
def test_what_cannot_be_read_is_one_problem(
    make: Callable[[Path], object],
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file.yaml"
    make(file)
    assert main(["mapping", "check", str(file)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{file}:{place}: ")


def test_a_profile_is_checked_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    full = Path(__file__).parents[2] / "mappings" / "profiles" / "full.yaml"
    assert main(["mapping", "check", str(full)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "note: this is a profile, not a mapping file" in said[0]
    assert said[1:] == [f"{full}: nothing to mend"]
