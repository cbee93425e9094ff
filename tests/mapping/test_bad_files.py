"""What people do wrong in mapping files: the exact text of `encounters mapping check`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from app.cli import main
from app.tools.schema import schema_of_mappings
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
    "http-sort-one-way": _ELSEWHERE,
    "otherwise-among-the-codes": _JUDGED,
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

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


@pytest.fixture(autouse=True)
def beside_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD)


@pytest.fixture(scope="session")
def editor() -> Any:
    return jsonschema.Draft7Validator(schema_of_mappings())


def test_there_are_many() -> None:
    assert len(FILES) >= 60
    expected = {file.stem for file in BAD.glob("*.expected")}
    assert expected == {file.stem for file in FILES}


@every_file
def test_what_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mapping", "check", file.name]) == 1
    expected = file.with_suffix(".expected").read_text(encoding="utf-8")
    assert capsys.readouterr().out == expected


@every_file
def test_each_line_to_mend_is_named_and_no_other(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["mapping", "check", "--json", file.name])
    found = json.loads(capsys.readouterr().out)["findings"]
    errors = [finding for finding in found if finding["severity"] == "error"]
    assert {f"{e['file']}:{e['line']}" for e in errors} == to_mend(file)


@every_file
def test_an_editor_sees_it_or_cannot(file: Path, editor: Any) -> None:
    try:
        fine = editor.is_valid(as_an_editor_reads(file))
    except (yaml.YAMLError, UnicodeDecodeError):
        fine = False
    assert fine is (file.stem in BEYOND_JSON_SCHEMA)


def test_the_list_names_files() -> None:
    assert set(BEYOND_JSON_SCHEMA) <= {file.stem for file in FILES}


# ------------------------------------------------------- what no repository can hold


def _said(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["mapping", "check", str(file)]) == 1
    return capsys.readouterr().out.removeprefix(str(file))


def test_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(tmp_path, capsys) == ":1:1: is a directory: name a file in it\n"


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _said(tmp_path / "none.yaml", capsys)
    assert said == ":1:1: cannot be read: No such file or directory\n"


def test_an_unreadable_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "circle.yaml"
    file.symlink_to(file)
    said = _said(file, capsys)
    assert said == ":1:1: cannot be read: Too many levels of symbolic links\n"


def test_a_huge_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "huge.yaml"
    file.write_text("mapping: 1\n" + "# and so on\n" * 100_000)
    assert _said(file, capsys) == ":1:1: larger than 512 KiB\n"


def test_depth_without_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text("name: " + "{a: " * 50_000)
    assert _said(file, capsys) == ":1:84: nested more than 20 levels deep\n"


def test_a_profile_is_checked_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    full = Path(__file__).parents[2] / "mappings" / "profiles" / "full.yaml"
    assert main(["mapping", "check", str(full)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "note: this is a profile, not a mapping file" in said[0]
    assert said[1:] == [f"{full}: nothing to mend"]
