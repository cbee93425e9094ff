"""`encounters mapping test`: what passes, what fails and where, what no test touches."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.tools.sections import MappingFile
from app.tools.testing.coverage import targets
from app.tools.testing.shapes import TestShape
from app.tools.testing.suggesting import next_test
from tests.app.tools.places import DEMO, MAPPINGS, located

GROUP_A = MAPPINGS / "group-a" / "group-a.yaml"
GNU_HEALTH = MAPPINGS / "gnuhealth" / "gnuhealth-5.0.yaml"
SHIPPED = sorted(
    file
    for file in MAPPINGS.glob("*/*.yaml")
    if file.parent.name != "profiles" and not file.name.endswith(".test.yaml")
)

PAGE = (MAPPINGS / "README.md").read_text("utf-8")

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_mappings_pass_tests_that_touch_everything(
    file: Path, capsys: Capture
) -> None:
    status = main(["mapping", "test", "--complete", str(file)])
    assert status == 0, capsys.readouterr().out


class Beside:
    """A copy of a mapping file with tests of its own."""

    def __init__(self, folder: Path, mapping: Path) -> None:
        self.file = folder / mapping.name
        self.file.write_text(mapping.read_text("utf-8"), "utf-8")
        self.tests = self.file.with_suffix(".test.yaml")

    def told(self, capsys: Capture, tests: str, *options: str) -> tuple[int, list[str]]:
        """Return the exit status and what is said of tests, without their place."""
        self.tests.write_text("tests:\n" + tests, "utf-8")
        status = main(["mapping", "test", *options, str(self.file)])
        lines = capsys.readouterr().out.replace(f"{self.file.parent}/", "").splitlines()
        return status, [line for line in lines if ": note: " not in line]

    def replace(self, old: str, new: str) -> None:
        """Change the mapping."""
        text = self.file.read_text("utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new, 1), "utf-8")


@pytest.fixture
def demo(tmp_path: Path) -> Beside:
    return Beside(tmp_path, DEMO)


@pytest.fixture
def group_a(tmp_path: Path) -> Beside:
    return Beside(tmp_path, GROUP_A)


@pytest.fixture
def health(tmp_path: Path) -> Beside:
    return Beside(tmp_path, GNU_HEALTH)


# ------------------------------------------------------------------------- rows

ROW = "  - name: a stay\n    given: {sejour_id: 1, patient_id: 42, etat: S, "


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param(
            "type_sejour: SEA}\n    expect: {class: {code: IMP}}",
            "demo.test.yaml:4:28: Encounter.class.code ← type_sejour: expected 'IMP', "
            "and it is 'REC' (codes.class: SEA → REC, demo.yaml:@SEA: REC@)",
            id="code",
        ),
        pytest.param(
            'maj_utc: 2024-07-01 10:00:00}\n    expect: {meta: {lastUpdated: "x"}}',
            "demo.test.yaml:4:34: Encounter.meta.lastUpdated ← maj_utc: expected 'x', "
            "and it is '2024-07-01T12:00:00+02:00' "
            "(in UTC, written in Europe/Paris, demo.yaml:@maj_utc, time_zone: UTC, covers@)",
            id="time",
        ),
        pytest.param(
            "uf_courante: 0123}\n    expect: {period: {start: 2024-01-01}}",
            "demo.test.yaml:4:30: Encounter.period.start ← date_entree: expected "
            "'2024-01-01', and there is none (in Europe/Paris, demo.yaml:@date_entree}@)",
            id="nothing there",
        ),
        pytest.param(
            "uf_courante: 0123}\n    expect: {clas: {code: IMP}}",
            "demo.test.yaml:4:14: Encounter.clas: there is no 'clas'; did you mean "
            "'class'?",
            id="misspelt",
        ),
        pytest.param(
            "uf_courante: 0123}\n    expect_absent: [serviceProvider.extension]",
            "demo.test.yaml:4:21: Encounter.serviceProvider.extension ← uf_courante: "
            "expected nothing here, and there is something (demo.yaml:@uf_courante}@)",
            id="something there",
        ),
        pytest.param(
            "num_venue: 1, etab_id: 2}\n    expect: {identifier: {value: 1}}",
            "demo.test.yaml:4:26: Encounter.identifier ← num_venue: expected keys and "
            "values, and it is a list of 1: write [ … ] (demo.yaml:@num_venue}@)",
            id="list",
        ),
        pytest.param(
            "num_venue: 1, etab_id: 2}\n    expect: {identifier: []}",
            "demo.test.yaml:4:26: Encounter.identifier ← num_venue: expected 0 items, "
            "and there are 1 (demo.yaml:@num_venue}@)",
            id="number of items",
        ),
        pytest.param(
            "etab_id: 9, num_venue: 1}\n    expect: {id: 1}",
            "demo.test.yaml:4:13: Encounter.identifier.system ← etab_id: the row is a "
            "fault (demo.yaml:@etab_id, codes@): no entry for '9' in codes.visit_number_system",
            id="fault",
        ),
        pytest.param(
            "etab_id: 2}\n    expect_error: no entry",
            "demo.test.yaml:4:19: Encounter: expected the fault 'no entry', and the row "
            "is a resource",
            id="no fault",
        ),
        pytest.param(
            "etab_id: 9, num_venue: 1}\n    expect_error: required",
            "demo.test.yaml:4:19: Encounter ← etab_id: expected the fault 'required', "
            "and it is 'Encounter.identifier.system ← etab_id: no entry for '9' in "
            "codes.visit_number_system'",
            id="another fault",
        ),
        pytest.param(
            "uf_courante: 1}\n    expect: hidden",
            "demo.test.yaml:4:13: Encounter: expected hidden, and the row is a resource",
            id="not hidden",
        ),
    ],
)
def test_differences_of_rows_are_told_path_by_path(
    demo: Beside, capsys: Capture, row: str, said: str
) -> None:
    status, lines = demo.told(capsys, ROW + row)
    assert status == 1
    assert lines[:2] == ["FAILED a stay (demo.test.yaml:2:5)", f"  {located(said)}"]
    assert len(lines) == 3
    assert "1 of 1 test failed" in lines[2]


def test_leading_zeros_and_words_of_yaml_stay_texts(
    demo: Beside, capsys: Capture
) -> None:
    text = "uf_courante: 0123, num_venue: NO, etab_id: 2}\n    expect:\n"
    expected = (
        "      identifier: [{value: NO}]\n"
        "      serviceProvider: {extension: [{valueString: 0123}]}\n"
    )
    assert demo.told(capsys, ROW + text + expected)[0] == 0


def test_a_case_is_laid_over_its_test(demo: Beside, capsys: Capture) -> None:
    status, lines = demo.told(
        capsys,
        "  - name: state\n    given: {sejour_id: 1, patient_id: 42, etat: S}\n"
        "    cases:\n"
        "      - {expect: {status: finished}}\n"
        "      - {name: planned, given: {etat: P}, expect: {status: finished}}\n",
    )
    assert status == 1
    assert lines[0] == "FAILED state: planned (demo.test.yaml:6:9)"
    assert "1 of 2 tests failed" in lines[-1]


# --------------------------------------------------------------------- searches

SEARCH = (
    "  - name: a search\n    given: [{sejour_id: 1, patient_id: 42, etat: S,"
    " date_entree: 2024-01-01 00:00:00}, {sejour_id: 2, patient_id: 42, etat: P}]\n"
)


@pytest.mark.parametrize(
    ("search", "said"),
    [
        pytest.param(
            "{patient: 42}\n    expect_found: [1, 3]",
            "demo.test.yaml:5:23: '3' is not found|"
            "demo.test.yaml:5:5: '2' is found, and is not expected",
            id="found",
        ),
        pytest.param(
            "{date: gt2024-01-01}\n    expect_found: [1]",
            "demo.test.yaml:5:20: '1' is not found; found are none",
            id="bound",
        ),
        pytest.param(
            "{_sort: -date}\n    expect_found: [2, 1]",
            "demo.test.yaml:5:5: the order is 1, 2",
            id="order",
        ),
        pytest.param(
            "{status: done}\n    expect_found: []",
            "demo.test.yaml:4:5: it is refused: Parameter 'status' has no value 'done': "
            "it is one of planned, in-progress, finished.",
            id="refused",
        ),
        pytest.param(
            "{status: done}\n    expect_refused: sorry",
            "demo.test.yaml:5:5: expected the refusal 'sorry', and it is 'Parameter "
            "'status' has no value 'done': it is one of planned, in-progress, finished.'",
            id="refused otherwise",
        ),
        pytest.param(
            "{status: planned}\n    expect_refused: sorry",
            "demo.test.yaml:5:5: expected a refusal, and the search is answered",
            id="not refused",
        ),
        pytest.param(
            "{}\n    expect_request: {path: /x}",
            "demo.test.yaml:5:5: a database is sent no request: say expect_found",
            id="no request",
        ),
    ],
)
def test_differences_of_searches_are_told(
    demo: Beside, capsys: Capture, search: str, said: str
) -> None:
    status, lines = demo.told(capsys, f"{SEARCH}    search: {search}")
    assert status == 1
    assert lines[1:-1] == [f"  {line}" for line in said.split("|")]


def test_the_mapping_decides_what_a_search_finds(demo: Beside, capsys: Capture) -> None:
    tests = SEARCH + "    search: {status: planned}\n    expect_found: [2]"
    assert demo.told(capsys, tests)[0] == 0
    demo.replace("P: planned", "P: finished")
    assert demo.told(capsys, tests)[0] == 1


def test_a_row_that_is_found_and_cannot_be_mapped_is_told(
    demo: Beside, capsys: Capture
) -> None:
    rows = "[{sejour_id: 1, patient_id: 4 2, etat: S}]"
    tests = f"  - name: t\n    given: {rows}\n    search: {{}}\n    expect_found: []"
    status, lines = demo.told(capsys, tests)
    assert status == 1
    assert lines[1].endswith(
        "a row that is found is a fault: Encounter.subject ← patient_id: "
        "not a FHIR id: up to 64 letters, digits, '-' and '.'"
    )


def test_a_time_with_an_offset_is_not_searched_wrongly(
    demo: Beside, capsys: Capture
) -> None:
    rows = (
        "[{sejour_id: 1, patient_id: 42, etat: S, date_entree: 2024-01-01T00:00:00Z}]"
    )
    tests = f"  - name: t\n    given: {rows}\n    search: {{}}\n    expect_found: [1]"
    status, lines = demo.told(capsys, tests)
    assert status == 1
    assert "a time with an offset cannot be searched here" in lines[1]


def test_one_search_goes_through_several_sources(
    health: Beside, capsys: Capture
) -> None:
    status, lines = health.told(
        capsys,
        "  - name: t\n    given:\n"
        "      inp-: [{id: 1, patient: 42, state: finished}]\n"
        "      eva-: [{id: 1, patient: 42, state: done}]\n"
        "    cases:\n"
        "      - {search: {patient: 42}, expect_found: [inp-1, eva-1]}\n"
        "      - {search: {_id: eva-1}, expect_found: [eva-1]}\n"
        "      - {search: {patient: 42}, expect_found: [inp-1]}\n",
    )
    assert status == 1
    assert lines[0].startswith("FAILED t: 3 ")
    assert "1 of 3 tests failed" in lines[-1]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        pytest.param(
            "{path: /stays, parameters: {ipp: 43, entreeDu: 30/03/2024}}",
            "6:28: expected '/stays', and it is '/sejours'|"
            "6:54: 'ipp': expected '43', and it is '42'|"
            "6:48: the request has 'entreeAvant' too: '31/03/2024'",
            id="values",
        ),
        pytest.param(
            "{parameters: {ip: 42, entreeDu: 30/03/2024, entreeAvant: 31/03/2024}}",
            "6:35: the parameter 'ip' is not sent; did you mean 'ipp'?|"
            "6:34: the request has 'ipp' too: '42'",
            id="name",
        ),
        pytest.param(
            "none",
            "6:21: expected no request, and it is: GET /sejours sansEtats=A,AN,X,SUP"
            " ipp=42 entreeDu=30/03/2024 entreeAvant=31/03/2024 nb=10",
            id="none",
        ),
    ],
)
def test_differences_of_requests_are_told(
    group_a: Beside, capsys: Capture, expected: str, said: str
) -> None:
    status, lines = group_a.told(
        capsys,
        "  - name: t\n    of: encounter\n"
        "    search:\n      {patient: 42, date: 2024-03-30}\n"
        f"    expect_request: {expected}",
    )
    assert status == 1
    told = said.split("|")
    assert lines[1:-1] == [f"  group-a.test.yaml:{line}" for line in told]


def test_an_http_system_finds_no_rows_here(group_a: Beside, capsys: Capture) -> None:
    status, lines = group_a.told(
        capsys,
        "  - name: t\n    given: [{id: 1}]\n    search: {_id: 1}\n"
        "    expect_found: [1]",
    )
    assert status == 1
    assert lines == [
        "group-a.test.yaml:3:12: an HTTP system looks for the rows itself: leave them "
        "out, and say expect_request"
    ]


# ---------------------------------------------------------- what is wrong with tests


def test_every_fault_of_a_file_is_told_at_once(demo: Beside, capsys: Capture) -> None:
    status, lines = demo.told(
        capsys,
        "  - name: a\n    givn: {}\n    expect: {id: 1}\n"
        "  - name: b\n    given: {sejour: 1, patient_id: [42]}\n    expect: {id: 1}\n"
        "  - name: c\n    given: {sejour_id: 1}\n"
        "  - name: d\n    given: {sejour_id: 1}\n    expect_found: [1]\n"
        "  - name: e\n    source: north\n    given: {sejour_id: 1}\n"
        "    expect: {id: 1}\n"
        "  - name: f\n    of: patient\n    given: {patient_id: 1}\n"
        "    given_items: {telecom: [{valeur: 1}], addresses: [{villle: Lyon}]}\n"
        "    expect: {id: 1}\n"
        "  - name: g\n    search: {}\n    expect_found: [1]\n",
    )
    assert status == 1
    assert lines == [
        "demo.test.yaml:3:5: tests.givn: 'givn' is not a key here; did you mean 'given'?",
        "demo.test.yaml:6:13: the mapping names no column 'sejour'; did you mean "
        "'sejour_id'?",
        "demo.test.yaml:6:36: expected one text for the column 'patient_id'",
        "demo.test.yaml:8:5: expects nothing: say one of expect, expect_absent, "
        "expect_error, expect_found, expect_request, expect_refused",
        "demo.test.yaml:12:5: 'expect_found' is not for a row",
        "demo.test.yaml:14:5: 'encounter' has one source: leave 'source' out",
        "demo.test.yaml:20:19: no items of their own SELECT are called 'telecom'; "
        "did you mean 'telecoms'?",
        "demo.test.yaml:20:56: the mapping names no column 'villle'",
        "demo.test.yaml:24:5: needs 'given': the rows to search in",
    ]


def test_a_column_that_only_the_select_has_is_told_so(
    demo: Beside, capsys: Capture
) -> None:
    demo.replace("valeur FROM moyen_contact", "valeur, contact_id FROM moyen_contact")
    _, lines = demo.told(
        capsys,
        "  - name: a\n    of: patient\n    given: {patient_id: 1}\n"
        "    given_items: {telecoms: [{contact_id: 1, villle: 2}]}\n    expect: {id: 1}\n",
    )
    assert lines == [
        "demo.test.yaml:5:31: no field reads 'contact_id', though the SELECT has it: leave"
        " it out",
        "demo.test.yaml:5:46: the mapping names no column 'villle'",
    ]


def test_the_right_numbers_are_named_where_several_items_have_rows(
    demo: Beside, capsys: Capture
) -> None:
    first = (
        "      - {rows: 'SELECT patient_id, ipp FROM ipps', key: patient_id, type: PI,"
        " system: 'urn:oid:1.2', value: {from: ipp}}\n"
    )
    demo.replace("    identifiers:\n", f"    identifiers:\n{first}")
    _, lines = demo.told(
        capsys,
        "  - name: a\n    of: patient\n    given: {patient_id: 1}\n"
        "    given_items: {identifiers: [{ipp: 1}]}\n    expect: {id: 1}\n",
    )
    assert lines == [
        "demo.test.yaml:5:19: no items of their own SELECT are called 'identifiers': "
        "several have one, use identifiers.1, identifiers.2"
    ]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ("expect: {}", "4:5: expects nothing of the resource"),
        (
            "expect_absent: [perod.end, period.end]",
            "4:21: Encounter has no element 'perod.end' here; did you mean 'period.end'?",
        ),
    ],
)
def test_what_could_never_fail_is_refused(
    demo: Beside, capsys: Capture, expected: str, said: str
) -> None:
    status, lines = demo.told(capsys, f"{ROW}}}\n    {expected}")
    assert (status, lines) == (1, [f"demo.test.yaml:{said}"])


def test_a_source_that_is_not_there_is_told(health: Beside, capsys: Capture) -> None:
    tests = "  - name: t\n    source: {}\n    given: {{id: 1}}\n    expect: {{id: 1}}\n"
    status, lines = health.told(capsys, tests.format("ipn-"))
    assert (status, lines) == (
        1,
        ["gnuhealth-5.0.test.yaml:3:5: 'encounter' has no source 'ipn-'; did you mean "
         "'inp-'?"],
    )  # fmt: skip
    _, lines = health.told(capsys, tests.replace("    source: {}\n", "").format())
    assert lines[0].endswith(
        "'encounter' has several sources: say source: inp- or app- or eva-"
    )


def test_values_of_http_rows_are_known_by_their_path(
    group_a: Beside, capsys: Capture
) -> None:
    status, lines = group_a.told(
        capsys,
        "  - name: t\n    given: {id: 1, patient: {ip: 42}, uf: 0123}\n"
        "    expect: {id: 1}\n",
    )
    assert status == 1
    assert lines == [
        "group-a.test.yaml:3:30: the mapping names no value 'patient.ip'; "
        "did you mean 'patient.ipp'?",
        "group-a.test.yaml:3:43: expected keys and values at 'uf'",
    ]


def test_what_an_answer_has_as_null_is_to_be_left_out(
    group_a: Beside, capsys: Capture
) -> None:
    status, lines = group_a.told(
        capsys, "  - name: t\n    given: {id: 1, uf: null}\n    expect: {id: 1}\n"
    )
    assert status == 1
    assert lines == [
        "group-a.test.yaml:3:24: expected keys and values at 'uf': leave out what the "
        "answer has as null"
    ]


def test_lists_of_http_rows_are_lists(group_a: Beside, capsys: Capture) -> None:
    status, lines = group_a.told(
        capsys,
        "  - name: t\n    given: {id: 1, patient: [{ipp: 42}]}\n    expect: {id: 1}\n",
    )
    assert (status, lines) == (
        1,
        ["group-a.test.yaml:3:12: no keys and values around 'ipp'"],
    )


def test_a_class_of_ones_own_has_nothing_to_try_here(
    tmp_path: Path, capsys: Capture
) -> None:
    own = Beside(tmp_path, DEMO)
    own.file.write_text(
        "mapping: 1\nname: Own\nprofile: full\ntime_zone: Europe/Paris\n"
        "source: {kind: 'own.package:Adapter'}\nencounter: {search: [_id]}\n",
        "utf-8",
    )
    status, lines = own.told(capsys, ROW + "}\n    expect: {id: 1}")
    assert status == 1
    assert lines[0].startswith("demo.yaml:5:16: source: a class of your own makes the")


def test_a_mapping_without_tests_is_told(tmp_path: Path, capsys: Capture) -> None:
    file = Beside(tmp_path, DEMO).file
    assert main(["mapping", "test", str(file)]) == 1
    assert capsys.readouterr().out == (
        f"{file}:1:1: there are no tests: write them into demo.test.yaml, beside it\n"
    )
    assert main(["mapping", "test", str(tmp_path / "none.yaml")]) == 1
    assert "cannot be read" in capsys.readouterr().out


# ------------------------------------------------------------------------ coverage

NEXT = "next, when it is what the hospital says:"
NARROW = ROW + "type_sejour: HC}\n    expect: {id: 1, class: {code: IMP}}\n"


def test_what_no_test_touches_is_told_and_fails_where_all_is_wanted(
    demo: Beside, capsys: Capture
) -> None:
    demo.tests.write_text("tests:\n" + NARROW, "utf-8")
    assert main(["mapping", "test", str(demo.file)]) == 0
    notes = capsys.readouterr().out.replace(f"{demo.file.parent}/", "").splitlines()
    for there in (
        "demo.yaml:@num_venue}@: Encounter: note: no test touches the fields "
        "identifier.value, identifier.system, subject, status, period.start, ",
        "demo.yaml:@URG: EMER@: codes.class: note: no test touches the codes URG, HP, ",
        "demo.yaml:@_id, patient, date@: Encounter: note: no test touches the search "
        "parameters _id, patient, date, ",
        "demo.yaml:@date, _lastUpdated]@: Encounter: note: no test touches the sort keys "
        "date, _lastUpdated",
    ):
        assert any(note.startswith(located(there)) for note in notes), there
    assert main(["mapping", "test", "--complete", str(demo.file)]) == 1


@pytest.mark.parametrize(
    "name", ["demo/demo", "gnuhealth/gnuhealth-5.0", "group-a/group-a"]
)
def test_each_test_that_is_suggested_passes_as_it_stands(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    shipped = MAPPINGS / f"{name}.yaml"
    file = tmp_path / shipped.name
    file.write_bytes(shipped.read_bytes())
    opened = MappingFile.open(file)
    codes = [target for target in targets(opened) if target.kind == "code"]
    found = dict.fromkeys(next_test(opened, [target]) for target in codes)
    tests = [line for lines in found for line in lines]
    file.with_suffix(".test.yaml").write_text("\n".join(["tests:", *tests]), "utf-8")
    assert main(["mapping", "test", str(file)]) == 0, capsys.readouterr().out
    left = [line for line in capsys.readouterr().out.splitlines() if ": codes." in line]
    for table in ("status", "class", "gender"):
        assert not [line for line in left if f"codes.{table}:" in line]


def test_the_code_of_a_unit_is_touched_by_a_search(
    demo: Beside, capsys: Capture
) -> None:
    demo.replace("codes:\n", "codes:\n  unit: {table: {A1: U1, A2: U2}}\n")
    demo.replace("{from: uf_courante}", "{from: uf_courante, codes: unit}")
    unit = "https://example.org/fhir/StructureDefinition/functional-unit|U1"
    demo.tests.write_text(
        "tests:\n  - name: by unit\n    given: [{sejour_id: 1, patient_id: 42, etat: S,"
        f" uf_courante: A1}}]\n    search: {{service-provider._extension: '{unit}'}}\n"
        "    expect_found: [1]\n"
    )
    assert main(["mapping", "test", str(demo.file)]) == 0
    text = capsys.readouterr().out
    assert "codes.unit: note: no test touches the code A2" in text


@pytest.mark.parametrize(
    ("identifier", "found", "left"),
    [
        ("urn:oid:1.2.250.1.999.1.2|0001", "[1]", "3"),
        ("0001", "[1]", "2, 3"),
        ("|0001", "[]", "2, 3"),
    ],
)
def test_the_code_of_a_system_is_touched_by_a_search_that_names_one(
    demo: Beside, capsys: Capture, identifier: str, found: str, left: str
) -> None:
    demo.tests.write_text(
        "tests:\n  - name: by number\n    given: [{sejour_id: 1, patient_id: 42, etat: S,"
        f" etab_id: 2, num_venue: 0001}}]\n    search: {{identifier: '{identifier}'}}\n"
        f"    expect_found: {found}\n"
    )
    assert main(["mapping", "test", str(demo.file)]) == 0
    (said,) = re.findall(
        r"codes.visit_number_system: note: no test touches the codes? (.*)",
        capsys.readouterr().out,
    )
    assert said == left


def test_json_says_the_same(demo: Beside, capsys: Capture) -> None:
    demo.tests.write_text("tests:\n" + NARROW, "utf-8")
    assert main(["mapping", "test", "--json", str(demo.file)]) == 0
    (told,) = json.loads(capsys.readouterr().out)["mappings"]
    assert told["tests"] == [
        {"name": "a stay", "line": 2, "passed": True, "findings": []}
    ]
    coverage: dict[str, Any] = told["coverage"]
    assert coverage["field"]["touched"] == 2
    assert coverage["code"]["touched"] == 1
    untouched = sum(count["of"] - count["touched"] for count in coverage.values())
    assert len(told["untouched"]) == untouched
    assert {gap["severity"] for gap in told["untouched"]} == {"note"}


def test_what_a_base_says_is_for_the_tests_of_the_base(
    demo: Beside, capsys: Capture
) -> None:
    own = demo.file.with_name("own.yaml")
    own.write_text(
        "mapping: 1\nextend: demo.yaml\nname: Own\n"
        "codes: {class: {table: {NEW: AMB}}}\n"
    )
    own.with_suffix(".test.yaml").write_text("tests:\n" + NARROW, "utf-8")
    assert main(["mapping", "test", str(own)]) == 0
    lines = capsys.readouterr().out.replace(f"{own.parent}/", "").splitlines()
    assert lines == [
        "own.yaml:4:25: codes.class: note: no test touches the code NEW",
        f"own.test.yaml: {NEXT}",
        "  - name: class NEW",
        "    given: {sejour_id: 1, patient_id: 1, etat: P, type_sejour: NEW}",
        "    expect: {class: {code: AMB}}",
        "own.yaml: 1 test passed; touched 0 of 1 codes",
    ]


# ------------------------------------------------------------------------- the page


def test_the_examples_of_the_page_pass(demo: Beside, capsys: Capture) -> None:
    (block,) = re.findall(r"```yaml\n(tests:\n.*?)```", PAGE, re.DOTALL)
    status, lines = demo.told(capsys, block.removeprefix("tests:\n"))
    assert (status, lines[0]) == (0, f"demo.test.yaml: {NEXT}")
    assert "5 tests passed" in lines[-1]


def test_the_page_has_every_key_of_a_test() -> None:
    start = PAGE.index("| key of a test | holds |")
    table = PAGE[start:].partition("\n\n")[0]
    told = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    assert sorted(told) == sorted(TestShape.known())
