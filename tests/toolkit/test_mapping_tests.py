"""`encounters mapping test`: what passes, and what fails where."""

import re

import pytest

from adapters.mapping.schema import all_definitions
from tests.toolkit.places import DEMO, GNU_HEALTH, GROUP_A, MAPPINGS, SHIPPED, located


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
        copy.with_suffix(".test.yaml").write_text(f"tests:\n{tests}\n", "utf-8")
        status, out, _ = mapping("test", copy)
        return status, out.replace(f"{tmp_path}/", "")

    return run


# --------------------------------------------------------------- what tests report

ROW = "  - name: a stay\n    given: {sejour_id: 1, patient_id: 42, etat: S, "
SEARCH = (
    "  - name: a search\n    given: [{sejour_id: 1, patient_id: 42, etat: S,"
    " date_entree: 2024-01-01 00:00:00}, {sejour_id: 2, patient_id: 42, etat: P}]\n"
    "    search: "
)
REQUEST = (
    "  - name: t\n    of: encounter\n    search:\n      {patient: 42, date: 2024-03-30}\n"
    "    expect_request: "
)
AT = "\n    expect"

REPORTS = {
    # Rows: each difference at the line of what was expected, with what made the value.
    "code": (DEMO, f"{ROW}type_sejour: SEA}}{AT}: {{class: {{code: IMP}}}}", "4:28",
             "Encounter.class.code ← type_sejour|'IMP'|'REC'|SEA → REC, demo.yaml:@SEA: REC@"),
    "time": (DEMO, f"{ROW}maj_utc: 2024-07-01 10:00:00}}{AT}: {{meta: {{lastUpdated: x}}}}", "4:34",
             "'2024-07-01T12:00:00+02:00'|in UTC, written in Europe/Paris"),
    "nothing there": (DEMO, f"{ROW}uf_courante: 1}}{AT}: {{period: {{start: 2024-01-01}}}}", "4:30",
                      "← date_entree|none|in Europe/Paris, demo.yaml:@date_entree}@"),
    "misspelt": (DEMO, f"{ROW}uf_courante: 1}}{AT}: {{clas: {{code: IMP}}}}", "4:27",
                 "Encounter.clas.code: |none"),
    "something there": (DEMO, f"{ROW}uf_courante: 0123}}{AT}_absent: [serviceProvider.extension]",
                        "4:21", "← uf_courante|demo.yaml:@uf_courante}@"),
    "list": (DEMO, f"{ROW}num_venue: 1, etab_id: 2}}{AT}: {{identifier: {{value: 1}}}}", "4:26",
             "← num_venue|a list of 1"),
    "number of items": (DEMO, f"{ROW}num_venue: 1, etab_id: 2}}{AT}: {{identifier: []}}", "4:26",
                        "0 items|are 1"),
    "fault": (DEMO, f"{ROW}etab_id: 9, num_venue: 1}}{AT}: {{id: 1}}", "4:13",
              "Encounter.identifier.system ← etab_id|'9'|demo.yaml:@etab_id, codes@"),
    "no fault": (DEMO, f"{ROW}etab_id: 2}}{AT}_error: no entry", "4:19", "'no entry'"),
    "zeros and words of YAML": (
        DEMO, f"{ROW}uf_courante: 0123, num_venue: NO, etab_id: 2}}{AT}:\n"
        "      identifier: [{value: NO}]\n"
        "      serviceProvider: {extension: [{valueString: 0123}]}", "", ""),
    "cases": (DEMO, "  - name: state\n    given: {sejour_id: 1, patient_id: 42, etat: S}\n"
              "    cases:\n      - {expect: {status: finished}}\n"
              "      - {name: planned, given: {etat: P}, expect: {status: finished}}",
              "6:60", "FAILED state: planned (demo.test.yaml:6:9)|1 of 2"),
    # Searches.
    "found": (DEMO, f"{SEARCH}{{patient: 42}}{AT}_found: [1, 3]", "5:23 5:5", "'3'|expected: 2"),
    "bound": (DEMO, f"{SEARCH}{{date: gt2024-01-01}}{AT}_found: [1]", "5:20", "'1'|none"),
    "order": (DEMO, f"{SEARCH}{{_sort: -date}}{AT}_found: [2, 1]", "5:5", "1, 2"),
    "refused": (DEMO, f"{SEARCH}{{status: done}}{AT}_found: []", "4:5", "'done'"),
    "not refused": (DEMO, f"{SEARCH}{{status: planned}}{AT}_refused: sorry", "5:5", "search"),
    "an invalid row": (DEMO, "  - name: t\n    given: [{sejour_id: 1, patient_id: 4 2, etat: S}]\n"
                       f"    search: {{}}{AT}_found: []", "3:5", "Encounter.subject ← patient_id"),
    "several sources": (
        GNU_HEALTH, "  - name: t\n    given:\n"
        "      inp-: [{id: 1, patient: 42, state: finished}]\n"
        "      eva-: [{id: 1, patient: 42, state: done}]\n    cases:\n"
        "      - {search: {patient: 42}, expect_found: [inp-1, eva-1]}\n"
        "      - {search: {_id: eva-1}, expect_found: [eva-1]}\n"
        "      - {search: {patient: 42}, expect_found: [inp-1]}", "9:33",
        "FAILED t: 3|not expected: eva-1|1 of 3"),
    # Requests to an HTTP system.
    "values of a request": (
        GROUP_A, f"{REQUEST}{{path: /stays, parameters: {{ipp: 43, entreeDu: 30/03/2024}}}}",
        "6:28 6:54 6:48", "'/sejours'|'42'|'entreeAvant'"),
    "name in a request": (
        GROUP_A,
        f"{REQUEST}{{parameters: {{ip: 42, entreeDu: 30/03/2024, entreeAvant: 31/03/2024}}}}",
        "6:39 6:34", "parameters.ip: |'ipp'"),
    "no request at all": (GROUP_A, f"{REQUEST}none", "6:21", "GET /sejours|ipp=?|nb=?"),
    # Tests that are wrong themselves.
    "rows of an HTTP system": (
        GROUP_A, f"  - name: t\n    given: [{{id: 1}}]\n    search: {{_id: 1}}{AT}_found: [1]",
        "5:5", "expect_request"),
    "many faults at once": (
        DEMO, "  - name: a\n    givn: {}\n    expect: {id: 1}\n"
        "  - name: b\n    given: {sejour: 1, patient_id: [42]}\n    expect: {id: 1}\n"
        "  - name: c\n    given: {sejour_id: 1}\n"
        "  - name: d\n    given: {sejour_id: 1}\n    expect_found: [1]\n"
        "  - name: e\n    source: north\n    given: {sejour_id: 1}\n    expect: {id: 1}\n"
        "  - name: f\n    of: patient\n    given: {patient_id: 1}\n"
        "    given_items: {telecom: [{valeur: 1}], addresses: [{villle: Lyon}]}\n"
        "    expect: {id: 1}\n  - name: g\n    search: {}\n    expect_found: [1]",
        "3:5 6:13 6:36 8:5 12:5 14:5 20:19 24:20",
        "'given'|'sejour_id'|'patient_id'|telecoms"),
    "nothing expected": (DEMO, f"{ROW}}}{AT}: {{}}", "4:5", ""),
    "an unknown source": (
        GNU_HEALTH, f"  - name: t\n    source: ipn-\n    given: {{id: 1}}{AT}: {{id: 1}}", "3:5",
        "'ipn-'|'inp-'"),
    "refused otherwise": (DEMO, f"{SEARCH}{{status: done}}{AT}_refused: sorry", "5:5",
                          "'done'"),
    "no request": (DEMO, f"{SEARCH}{{}}{AT}_request: {{path: /x}}", "5:5", "expect_found"),
    "one row for a search": (
        DEMO, f"  - name: t\n    given: {{sejour_id: 1}}\n    search: {{}}{AT}_found: []", "3:12",
        "a list of rows"),
    "no source": (GNU_HEALTH, f"  - name: t\n    given: {{id: 1}}{AT}: {{id: 1}}", "2:5",
                  "inp- or app- or eva-"),
    "list in an HTTP row": (
        GROUP_A, f"  - name: t\n    given: {{id: 1, patient: [{{ipp: 42}}]}}{AT}: {{id: 1}}",
        "3:12", "'ipp'"),
}  # fmt: skip


def test_each_difference_is_reported_at_its_line(reported):
    for name, (file, tests, places, says) in REPORTS.items():
        status, text = reported(file, tests)
        lines = re.findall(r"^ *\S+\.test\.yaml:(\d+:\d+): ", text, re.M)
        assert (status, lines) == (bool(places), places.split()), name
        assert [word for word in says.split("|") if located(word) not in text] == []


def test_items_are_numbered_where_several_have_rows(reported):
    first = (
        "      - {rows: 'SELECT patient_id, ipp FROM ipps', key: patient_id, type: PI,"
        " system: 'urn:oid:1.2', value: {from: ipp}}\n"
    )
    change = "    identifiers:\n", f"    identifiers:\n{first}"
    tests = (
        "  - name: a\n    of: patient\n    given: {patient_id: 1}\n"
        "    given_items: {NAME: [{ipp: 1}]}\n    expect: {id: 1}\n"
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
    status, text = reported(file, ROW + "}\n    expect: {id: 1}")
    assert status == 1
    assert re.search(r"(?m)^alone.yaml:5:16: source: ", text)


def test_the_page_has_every_key_of_a_test():
    page = (MAPPINGS.parent / "docs/bring/test.md").read_text("utf-8")
    table = page[page.index("| key of a test | holds |") :].partition("\n\n")[0]
    keys = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    assert set(keys) == {*all_definitions()["Test"]["properties"]}
