"""`mapping confirm`: mistakes that no row shows, found by what the hospital's screens show."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from app.cli import main
from tests.toolkit.live_hospital import MAPPING, Findings, run, written
from toolkit.confirm import UNCONFIRMED, beside, confirm

Looked = Callable[..., Findings]

SHOWN = """
clock: {winter: "+01:00", summer: "+02:00"}
stays:
  - id: 1
    visit_number: V1
    status: finished
    class: IMP
    start: 2020-05-01 15:10
    end: 2020-05-02 21:10
    functional_unit: U1
    last_updated: 2020-05-03 00:10
    patient:
      {gender: female, birth_date: 1911-02-03, names.family: LJUNGQVIST1, names.given: Ljungqvist1,
       identifiers.value: 1, last_updated: 2020-05-01 12:01, deceased_at: none,
       telecoms.value: none, addresses.lines: none}
  - {id: 2, end: 2020-05-03 04:10, patient: {gender: male}}
  - {id: 9, status: in-progress}
counts: [{date: 2020-05, stays: 104}]
absent: [80]
"""
"""What the screens of the hospital of these tests show (`live_hospital.fill`)."""

MISTAKES = {
    "another zone": (
        [("Europe/Paris", "Europe/Lisbon")],
        {"time_zone": "from UTC", "Encounter.meta.lastUpdated": "1 h later"},
    ),
    "a last change by the wrong clock": (
        [("changed, time_zone: UTC", "changed")],
        {"Encounter.meta.lastUpdated": "2 h later"},
    ),
    "another time": (
        [("{from: began}", "{from: ended}")],
        {"Encounter.period.start": "30 h earlier"},
    ),
    "another column": (
        [("{from: unit}", "{from: visit}")],
        {"Encounter.serviceProvider.extension": ""},
    ),
    "two columns": (
        [("{from: unit}", "{from: visit}"), ("{from: visit}", "{from: unit}")],
        {"Encounter.serviceProvider.extension": "has it"},
    ),
    "a field that is lost": (
        [("    end: {from: ended}\n", "")],
        {"Encounter": "no field"},
    ),
    "more numbers": (
        [
            (
                "value: {from: patient_id}}]",
                "value: {from: patient_id}}, {system: urn:oid:1.2.5, value: {from: family}}]",
            )
        ],
        {"Patient.identifier.value": "more than"},
    ),
    "a class": ([("HC: IMP", "HC: AMB")], {"Encounter.class": ""}),
    "a deleted stay": ([("A: hidden", "A: finished")], {"Encounter": "must not"}),
    "genders": (
        [("F: female, M: male", "F: male, M: female")],
        {"Patient.gender": ""},
    ),
    "the patient of another column": (
        [("patient_id: {from: patient_id}", "patient_id: {from: unit}")],
        {"Encounter.patient": ""},
    ),
    "a condition": (
        [("SELECT * FROM stays", "SELECT * FROM stays WHERE unit <> 'U2'")],
        {"Encounter": "finds 83"},
    ),
}


@pytest.fixture
def looked(sqlite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Looked:
    """Return what compares the rows with a file of answers."""

    def look(shown: str, *changes: tuple[str, str], text: str = MAPPING) -> Findings:
        file = written(tmp_path, *changes, text=text)
        beside(file).write_text(shown, "utf-8")
        main(["mapping", "check", "--live", "--json", str(file)])
        out = capsys.readouterr().out.partition("{")[2]
        assert "jungqvist" not in out.lower(), "no finding quotes a value"
        found: Findings = json.loads(f"{{{out}")["findings"]
        return [one for one in found if one["severity"] != "note"]

    return look


def test_a_right_mapping_is_confirmed_in_full(looked: Looked, tmp_path: Path) -> None:
    assert looked(SHOWN) == []
    assert main(["mapping", "check", "--live", str(tmp_path / "hospital.yaml")]) == 0


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_that_no_row_shows_is_an_error(name: str, looked: Looked) -> None:
    changes, expected = MISTAKES[name]
    found = looked(SHOWN, *changes)
    for element, words in expected.items():
        said = [one["text"] for one in found if one["element"] == element]
        assert any(words in text for text in said), (name, found)
    # First what is wrong is corrected.
    assert UNCONFIRMED not in {one["topic"] for one in found}


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("    status: finished\n", "", "status 'S'"),
        ("    status: finished\n", '    status: "?"\n', "status 'S'"),
        (", summer: ", ", summer_: ", ""),
        ('summer: "+02:00"', 'summer: "?"', "the clock in summer"),
        ("{date: 2020-05, stays: 104}", '{date: 2020-05, stays: "?"}', "how many"),
        ("gender: male", "active: none", "gender 'M'"),
    ],
)
def test_what_no_screen_confirms_is_a_warning(
    old: str, new: str, left: str, looked: Looked
) -> None:
    assert old in SHOWN
    (one,) = looked(SHOWN.replace(old, new))
    is_open = bool(left)
    assert (one["topic"] == UNCONFIRMED) is is_open
    assert not is_open or left in one["remedy"]


def test_a_field_that_no_screen_has_needs_no_answer(looked: Looked) -> None:
    unseen = SHOWN.replace("2020-05-03 00:10", "unseen")
    assert looked(unseen) == []


def test_values_of_a_list_are_compared_in_the_order_of_the_file(looked: Looked) -> None:
    item = "{{type: PI, system: urn:oid:1.2.4, value: {{from: {}}}}}"
    both = SHOWN.replace("identifiers.value: 1", "identifiers.value: [1, Ljungqvist1]")
    for columns, hints in (
        (("patient_id", "family"), []),
        (("family", "patient_id"), ["another one of these has it"] * 2),
    ):
        items = ", ".join(map(item.format, columns))
        change = (item.format("patient_id"), items)
        found = [one for one in looked(both, change) if one["severity"] == "error"]
        assert [one["text"].rpartition(": ")[2] for one in found] == hints


def test_an_empty_field_is_compared(looked: Looked) -> None:
    shown = SHOWN.replace("end: 2020-05-03 04:10", "end: none")
    assert [one["element"] for one in looked(shown)] == ["Encounter.period.end"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("counts: [{date: 2020-05", "counts: [{day: 2020-05"),
        ("  - {id: 9, ", "  - {id: 9999, "),
        ("  - {id: 9, ", "  - {"),
        ("start: 2020-05-01 15:10", "start: 1 May, in the afternoon"),
        ("functional_unit: U1", "ward: U1"),
    ],
)
def test_an_answer_that_cannot_be_compared_is_an_error_at_its_line(
    old: str, new: str, looked: Looked
) -> None:
    shown = SHOWN.replace(old, new)
    (one,) = looked(shown)
    assert one["file"].endswith("hospital.confirmed.yaml")
    assert (
        new.split(":")[0].strip(" -{")[:3] in shown.splitlines()[int(one["line"]) - 1]
    )
    assert one["severity"] == "error"


def test_the_questions_together_ask_for_everything(
    looked: Looked, tmp_path: Path
) -> None:
    file = written(tmp_path)
    assert main(["mapping", "confirm", str(file)]) == 0
    questions = yaml.safe_load(beside(file).read_text("utf-8"))
    asked = {slot for stay in questions["stays"] for slot in stay}
    of_patients = {
        slot for stay in questions["stays"] for slot in stay.get("patient", ())
    }
    answers = yaml.safe_load(SHOWN)
    assert asked == {slot for stay in answers["stays"] for slot in stay}
    assert of_patients == {*answers["stays"][0]["patient"]}
    assert "jungqvist" not in beside(file).read_text("utf-8").lower()
    # It is never overwritten: somebody looked the answers up.
    assert main(["mapping", "confirm", str(file)]) == 2
    # Unanswered, all of it is open.
    found = looked(beside(file).read_text("utf-8"))
    assert {one["topic"] for one in found} == {UNCONFIRMED}
    assert {one["element"] for one in found} == {"Encounter", "Patient"}


def test_codes_that_the_file_does_not_name_are_not_quoted(
    looked: Looked,
) -> None:
    # A column of numbers of visits in place of one of codes: the remedy lists codes.
    found = looked("counts: []\n", ("class: {from: kind", "class: {from: visit"))
    (open_,) = [one for one in found if one["element"] == "Encounter"]
    assert "class otherwise" in open_["remedy"]
    assert "V1" not in open_["remedy"]


CANARY = "Ljungqvist-0042"


@pytest.mark.parametrize(
    "shown",
    [
        f"{CANARY}: x",
        f"clock: {{winter: {CANARY}, summer: '?'}}",
        f"clock: {{{CANARY}: x}}",
        f"stays: [{CANARY}]",
        f"stays: [{{id: {CANARY}}}]",
        f"stays: [{{id: 1, {CANARY}: x}}]",
        f"stays: [{{id: 1, status: {CANARY}}}]",
        f"stays: [{{id: 1, start: {CANARY}, end: [{CANARY}, none]}}]",
        f"stays: [{{id: 1, patient: {{names.family: {CANARY}, birth_date: {CANARY}}}}}]",
        f"stays: [{{id: 1, patient: {{names.given: Siri, {CANARY}}}}}]",
        f"stays: [{{id: 1, patient: {{names.given: *{CANARY}}}}}]",
        f"stays: [{{id: 1, patient: {{names.given: &{CANARY} x}}}}]",
        f"stays: [{{id: 1, patient: {{{CANARY}: 1, {CANARY}: 2}}}}]",
        f"stays: [{{id: 1, patient: {CANARY}, organization: [{CANARY}]}}]",
        f"stays: [{{id: 1, patient: {{names.family: [{{{CANARY}: x}}]}}}}]",
        f"counts: [{{date: {CANARY}, stays: 1}}]",
        f"counts: [{{{CANARY}: 2024, stays: 1}}]",
        f"counts: [{{stays: {CANARY}}}]",
        f"counts: [{{stays: {'9' * 5000}}}]",
        f"absent: {CANARY}",
        f'absent: ["1", "\\0{CANARY}"]',
        f"'{CANARY}",
    ],
)
@pytest.mark.parametrize("option", ["--json", "--verbose"])
def test_no_finding_quotes_an_answer(
    shown: str,
    option: str,
    sqlite: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = written(tmp_path)
    beside(file).write_text(shown, "utf-8")
    assert main(["mapping", "check", "--live", option, str(file)]) == 1
    printed = capsys.readouterr()
    assert beside(file).name in printed.out
    assert printed.err == ""
    assert CANARY not in printed.out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("start: 2020-05-01 15:10", "start: 2020-05-01", "time of day"),
        ("start: 2020-05-01 15:10", "start: 2020-05-01T15:10+02:00", "08:15"),
        ("start: 2020-05-01 15:10", "start: 2020-05-01 15:1", "08:15"),
        ("status: finished", "status: terminated", "in-progress"),
        ("birth_date: 1911-02-03", "birth_date: 03/02/1911", "2024-03-30"),
        ("stays: 104", "stays: many", "digits"),
        ("stays: 104", "stays: 103", "more than"),
        ("{date: 2020-05, stays", "{date: May, stays", "offered"),
        ("  - {id: 9,", "  - {id: 1, end: none}\n  - {id: 9,", "nothing here"),
    ],
)
def test_a_finding_says_what_is_wrong_with_an_answer(
    old: str, new: str, words: str, looked: Looked
) -> None:
    assert old in SHOWN
    (one,) = looked(SHOWN.replace(old, new))
    assert words in one["text"]


def test_a_number_of_stays_that_nobody_has_needs_no_answer(looked: Looked) -> None:
    assert looked(SHOWN.replace("stays: 104", "stays: unseen")) == []
    assert looked(SHOWN.replace("stays: 104", "stays: '1 04'")) == []


def test_the_number_is_asked_for_by_a_search_that_clients_have(
    sqlite: str, tmp_path: Path
) -> None:
    file = written(tmp_path, ("patient, date, identifier", "patient, identifier"))
    assert main(["mapping", "confirm", str(file)]) == 0
    questions = yaml.safe_load(beside(file).read_text("utf-8"))
    assert questions["counts"] == [{"stays": "?"}]


TWO = """\
mapping: 1
name: Two hospitals
profile: full
time_zone: Australia/Sydney
sources:
  north: {kind: sql, url: {env: PAS_URL}, may_write: true}
  south: {kind: sql, url: {env: PAS_URL}, may_write: true}
codes:
  status: {table: {E: in-progress, S: finished}, otherwise: hidden}
  alive: {table: {F: "true", M: "false"}}
encounter:
  search: [_id, patient, date]
  sort: [date]
  sources:
    - source: north
      prefix: n-
      rows: SELECT s.*, DATE(began) AS day, TIME(ended) AS clock FROM stays s
      fields:
        id: {from: stay_id}
        patient_id: {from: patient_id, source: north}
        status: {from: state, codes: status}
        class: IMP
        start: {from: day, at: "00:00"}
        end: {from: [day, clock], at: "00:00"}
    - source: south
      prefix: s-
      rows: SELECT * FROM stays
      fields:
        id: {from: stay_id}
        patient_id: {from: patient_id, source: south}
        status: finished
        class: AMB
        start: {from: began}
patient:
  search: [_id]
  sources:
    - source: north
      prefix: n-
      rows: SELECT p.*, sex = 'F' AS alive FROM patients p
      fields:
        id: {from: patient_id}
        active: {from: alive}
        telecoms:
          - rows: SELECT patient_id, family, sex FROM patients
            key: patient_id
            only_if: {from: sex, in: [F]}
            system: phone
            value: {from: family}
    - source: south
      prefix: s-
      rows: SELECT patient_id FROM patients
      fields: {id: {from: patient_id}}
"""


def test_each_of_several_sources_is_confirmed_by_its_own_stays(looked: Looked) -> None:
    shown = """
clock: {winter: "+10:00", summer: "+11:00"}
counts: [{stays: unseen}]
stays:
  - {id: n-1, status: finished, class: IMP, start: 2020-05-01, end: 2020-05-01 21:10,
     visit_number: none, functional_unit: none, last_updated: unseen,
     patient: {active: true, telecoms.value: ljungqvist1, gender: none, birth_date: none,
       deceased_at: none, last_updated: none, identifiers.value: none, names.family: none,
       addresses.lines: none}}
  - {id: n-2, patient: {active: false, telecoms.value: none}}
  - {id: n-9, status: in-progress}
"""
    found = [one for one in looked(shown, text=TWO) if one["topic"] == UNCONFIRMED]
    assert {one["element"] for one in found} == {"Encounter", "Patient"}
    assert all(" of s- " in one["text"] for one in found)
    assert any("start in winter" in one["remedy"] for one in found)


def test_a_source_that_is_away_is_a_warning(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path)
    monkeypatch.setenv("PAS_URL", f"sqlite:///{tmp_path}/nothing.sqlite")
    (one,) = confirm(file, is_wrong=False)
    assert one.severity == "warning"
    assert main(["mapping", "confirm", str(file)]) == 2
    # What has to be corrected first is known already.
    assert [*confirm(file, is_wrong=True)] == []


def test_questions_are_written_only_where_they_can_be(
    sqlite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path)
    below = file / "questions.yaml"
    assert main(["mapping", "confirm", str(file), "--out", str(below)]) == 2
    assert "cannot be written" in capsys.readouterr().err
    run(sqlite, "DELETE FROM stays")
    assert main(["mapping", "confirm", str(file)]) == 2
    assert not beside(file).exists()


INSTANT = {"postgresql": "changed AT TIME ZONE 'UTC'"}
"""The last change with an offset, where a database has such times."""


@pytest.mark.usefixtures("url")
def test_times_of_each_database_are_compared(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = "stay_id, patient_id, state, kind, began, ended, visit, unit"
    rows = f"SELECT {columns}, {INSTANT.get(kind, 'changed')} AS changed FROM stays"
    file = written(tmp_path, ("SELECT * FROM stays", rows))
    right = SHOWN.replace("[80]", "[80, 99999999999999999999999, x-1, x y]")
    for shown, words in ((right, []), (SHOWN.replace("00:10", "02:10"), ["2 h later"])):
        beside(file).write_text(shown, "utf-8")
        main(["mapping", "check", "--live", "--json", str(file)])
        findings = json.loads(capsys.readouterr().out)["findings"]
        own = [one for one in findings if one["file"].endswith("confirmed.yaml")]
        assert [one["text"].rpartition(": ")[2] for one in own] == words
        assert words or UNCONFIRMED not in {one["topic"] for one in findings}


def test_the_patient_who_remains_is_compared(looked: Looked, sqlite: str) -> None:
    run(
        sqlite,
        "ALTER TABLE patients ADD COLUMN became BIGINT",
        "UPDATE patients SET became = 1 WHERE patient_id = 2",
    )
    changes = (
        ("{from: patient_id}", "{from: patient_id, merges: follow}"),
        ("changed FROM patients", "changed, became FROM patients"),
        ("gender: {from: sex", "replaced_by: {from: became}\n    gender: {from: sex"),
    )
    shown = "stays: [{id: 2, patient_id: 1, patient: {gender: female}}]"
    errors = [one for one in looked(shown, *changes) if one["severity"] == "error"]
    assert errors == []
