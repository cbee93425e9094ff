"""`encounters mapping test`: what passes, and what fails where."""

import re
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from adapters.mapping.schema import all_definitions
from tests.toolkit.places import DEMO, MAPPINGS, SHIPPED, located


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_mappings_pass_their_tests(file, mapping):
    printed = mapping("test", file)
    assert printed.status == 0, printed.out


@pytest.fixture
def reported(tmp_path, mapping):
    """Return what runs tests beside a copy of a file: the status, and the text printed."""

    def run(file, tests, *changes):
        text = file.read_text("utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        copy = tmp_path / file.name
        copy.write_text(text, "utf-8")
        copy.with_suffix(".test.yaml").write_text(
            f"tests:\n{indent(tests, '  ')}\n", "utf-8"
        )
        status, out, _ = mapping("test", copy)
        return status, out.replace(f"{tmp_path}/", "")

    return run


REPORTS = yaml.safe_load(Path(__file__).with_name("reports.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", REPORTS)
def test_each_difference_is_reported_at_its_line(name, reported):
    report = REPORTS[name]
    places = report.get("places", [])
    status, text = reported(MAPPINGS / report["file"], report["tests"])
    lines = re.findall(r"^ *\S+\.test\.yaml:(\d+:\d+): ", text, re.M)
    assert (status, lines) == (bool(places), places)
    says = map(located, report.get("says", []))
    assert [words for words in says if words not in text] == []


def test_items_are_numbered_where_several_have_rows(reported):
    first = (
        "      - {rows: 'SELECT patient_id, ipp FROM ipps', key: patient_id, type: PI,"
        " system: 'urn:oid:1.2', value: {from: ipp}}\n"
    )
    change = "    identifiers:\n", f"    identifiers:\n{first}"
    tests = (
        "- name: a\n  of: patient\n  given: {patient_id: 1}\n"
        "  given_items: {NAME: [{ipp: 1}]}\n  expect: {id: 1}\n"
    )
    status, text = reported(DEMO, tests.replace("NAME", "identifiers"), change)
    assert (status, "identifiers.1, identifiers.2" in text) == (1, True)
    assert reported(DEMO, tests.replace("NAME", "identifiers.1"), change)[0] == 0


def test_what_has_no_tests_fails(tmp_path, mapping, reported):
    file = tmp_path / "alone.yaml"
    file.write_text(DEMO.read_text("utf-8"), "utf-8")
    printed = mapping("test", file)
    assert (printed.status, "alone.test.yaml" in printed.out) == (1, True)
    assert mapping("test", tmp_path / "none.yaml").status == 1
    # A custom adapter has no rows to try.
    file.write_text(
        "mapping: 1\nname: Own\nprofile: full\ntime_zone: Europe/Paris\n"
        "source: {kind: 'own.package:Adapter'}\nencounter: {search: [_id]}\n",
        "utf-8",
    )
    status, text = reported(file, "- {name: t, given: {id: 1}, expect: {id: 1}}")
    assert status == 1
    assert re.search(r"(?m)^alone.yaml:5:16: source: ", text)


def test_the_page_has_every_key_of_a_test():
    page = (MAPPINGS.parent / "docs/bring/test.md").read_text("utf-8")
    table = page[page.index("| key of a test | holds |") :].partition("\n\n")[0]
    keys = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    assert set(keys) == {*all_definitions()["Test"]["properties"]}
