"""`mapping confirm`: mistakes that no row shows, found by what the hospital's screens show."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from app.cli import main
from app.cli.confirm import UNCONFIRMED, beside
from tests.app.cli.live_hospital import Findings, written

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
       identifiers.value: 1, last_updated: 2020-05-01 12:01}
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

    def look(shown: str, *changes: tuple[str, str]) -> Findings:
        file = written(tmp_path, *changes)
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
    is_open = bool(left) and new != "active: none"
    assert (one["topic"] == UNCONFIRMED) is is_open
    assert not is_open or left in one["remedy"]


def test_a_field_that_no_screen_has_needs_no_answer(looked: Looked) -> None:
    unseen = SHOWN.replace("2020-05-03 00:10", "unseen")
    assert looked(unseen) == []


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
