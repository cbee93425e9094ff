"""What people do wrong in mapping files: the exact text of `encounters mapping check`."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from adapters.mapping.schema import editor_schema
from app.cli import main
from tests.mapping.broken import (
    FILES,
    SAID,
    as_an_editor_reads,
    checked,
    write_all,
)

Capture = pytest.CaptureFixture[str]

BEYOND_JSON_SCHEMA = {
    "is wrong in another file, or against it": """
        base-in-a-circle base-not-there faulty-profile-beside
        http-list-cannot-page http-search-of-a-profile profile-file-not-there""",
    "two places of the file speak of each other": """
        code-table-not-there
        code-that-fhir-lacks format-that-does-not-sort
        format-without-time-of-day hidden-class http-among-several-sources-by-rows
        http-bound-without-a-zone
        http-bounds-in-one-parameter
        http-nulls-first-without-a-bound http-parameter-twice
        patient-always-the-same reference-without-source searched-and-not-mapped
        searched-and-not-covered
        second-select-without-key several-with-clashing-prefixes source-not-named
        time-searched-by-its-day two-columns-searched
        visit-number-without-a-system z-without-a-zone""",
    "the names are not known to a schema": """
        http-order-without-its-parameter http-path-that-is-no-expression
        http-places-that-are-none unknown-time-zone""",
    "an editor reads what is not part of the format": "anchor-and-alias tag utf-16",
}
"""Why files are right as far as a schema can tell."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with all the files."""
    folder = tmp_path_factory.mktemp("bad")
    write_all(folder)
    return folder


def test_each_line_to_mend_is_named_and_no_other(folder, monkeypatch):
    monkeypatch.chdir(folder)
    said = checked()
    lines = "".join(said.values()).splitlines()
    assert lines == SAID.read_text("utf-8").splitlines()
    for name, printed in checked("--json").items():
        findings = json.loads(printed)["findings"]
        places = [f"{f['file']}:{f['line']}:{f['column']}" for f in findings]
        assert re.findall(r"(?m)^\S+?:\d+:\d+", said[name]) == places, name


def test_an_editor_sees_all_that_a_schema_can_tell(folder):
    editor = jsonschema.Draft7Validator(editor_schema())

    def is_valid(name):
        try:
            return editor.is_valid(as_an_editor_reads(folder / f"{name}.yaml"))
        except (yaml.YAMLError, UnicodeDecodeError):
            return False

    known = {name for names in BEYOND_JSON_SCHEMA.values() for name in names.split()}
    assert {name for name in FILES if is_valid(name)} == known


# ------------------------------------------------------- what no repository can hold


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (Path.mkdir, "1:1"),
        (lambda file: None, "1:1"),
        (lambda file: file.symlink_to(file), "1:1"),
        (lambda file: file.write_text("name: " + "{a: " * 50_000), "1:83"),
    ],
    ids=["directory", "no-file", "circle", "deep"],
)
def test_what_cannot_be_read_is_one_problem(make, place, tmp_path, capsys):
    file = tmp_path / "file.yaml"
    make(file)
    assert main(["mapping", "check", str(file)]) == 1
    line, *others = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{file}:{place}: ")
    assert not any(other.startswith(str(file)) for other in others)
