"""`mapping confirm`: mistakes that no row shows, found by what the hospital's screens show."""

import pytest
import yaml

from tests.toolkit.live_hospital import run, written
from toolkit.confirm import UNASKED, UNCONFIRMED, beside, confirm

SHOWN = """
clock: Europe/Paris
stays:
  - id: 1
    visit_number: V1
    status: finished
    class: IMP
    start: 2020-05-01 15:10
    end: 2020-05-02 21:10
    functional_unit: U1
    family: LJUNGQVIST1
    given: Ljungqvist1
    birth_date: 1911-02-03
    gender: female
  - {id: 2, end: 2020-05-03 04:10, gender: male}
  - {id: 9, status: in-progress, start: 2020-05-03 23:10, end: 2020-05-05 05:10}
counts: [{date: 2020-05, stays: 104}]
absent: [80]
"""
"""What the screens of the hospital of these tests show (`live_hospital.fill`)."""

MISTAKES = (
    ([("Europe/Paris", "Europe/Lisbon")], "Encounter.period.start", "1 h earlier"),
    ([("{from: began}", "{from: ended}")], "Encounter.period.start", "30 h earlier"),
    (
        [("{from: unit}", "{from: visit}"), ("{from: visit}", "{from: unit}")],
        *("Encounter.serviceProvider.extension", "contains it"),
    ),
    ([("    end: {from: ended}\n", "")], "Encounter", "no field"),
    ([("HC: IMP", "HC: AMB")], "Encounter.class", ""),
    ([("A: hidden", "A: finished")], "Encounter", "must not"),
    ([("id: {from: patient_id}", "id: {from: unit}")], "Encounter.patient", ""),
    ([("FROM stays", "FROM stays WHERE unit <> 'U2'")], "Encounter", "finds 83"),
)
"""Changes of the mapping file, and the element and words of the error."""


@pytest.fixture
def compared(sqlite, tmp_path, mapping):
    """Return what compares the rows with a file of answers."""

    def compare(shown, *changes):
        file = written(tmp_path, *changes)
        beside(file).write_text(shown, "utf-8")
        printed = mapping("check", "--live", "--json", file)
        assert "jungqvist" not in printed.out.lower(), "no finding quotes a value"
        findings = printed.document["findings"]
        return [one for one in findings if one["severity"] != "note"]

    return compare


def test_a_right_mapping_is_confirmed_in_full(compared, tmp_path, mapping):
    assert compared(SHOWN) == []
    assert mapping("check", "--live", tmp_path / "hospital.yaml").status == 0


@pytest.mark.parametrize(("changes", "element", "words"), MISTAKES)
def test_a_mistake_that_no_row_shows_is_an_error(changes, element, words, compared):
    findings = compared(SHOWN, *changes)
    texts = [one["text"] for one in findings if one["element"] == element]
    assert any(words in text for text in texts), findings
    # First what is wrong is corrected.
    assert UNCONFIRMED not in {one["topic"] for one in findings}


START = "start: 2020-05-01 15:10"
ANSWERS = (
    # What no screen has confirmed.
    ("    status: finished\n", '    status: "?"\n', "status 'S'"),
    ("clock: Europe/Paris", 'clock: "?"', "clock"),
    (", start: 2020-05-03 23:10", "", "start in another state"),
    ("{date: 2020-05, stays: 104}", '{date: 2020-05, stays: "?"}', "how many"),
    ("gender: male", "birth_date: unseen", "gender 'M'"),
    # What no screen has, and a number with a blank in it.
    ("visit_number: V1", "visit_number: unseen", ""),
    ("stays: 104", "stays: '1 04'", ""),
    # What cannot be compared.
    ("clock: Europe/Paris", "clock: Europe/Pariss", "no such time zone"),
    ("counts: [{date: 2020-05", "counts: [{day: 2020-05", "cannot search"),
    ("  - {id: 9, ", "  - {", "'id' is missing"),
    ("functional_unit: U1", "ward: U1", "use visit_number"),
    (START, "start: 1 May, in the afternoon", "08:15"),
    (START, "start: 2020-05-01", "time of day"),
    (START, "start: 2020-02-30 15:10", "does not exist"),
    ("birth_date: 1911-02-03", "birth_date: 03/02/1911", "2024-03-30"),
    # What clients get differently.
    ("birth_date: 1911-02-03", "birth_date: 1911-02", "something else"),
    ("  - {id: 9, ", "  - {id: 9999, ", "do not get this stay"),
    ("end: 2020-05-03 04:10", "end: none", "nothing here"),
    ("stays: 104", "stays: 103", "more than"),
)
"""What is written in place of an answer, and words of the one finding, "" for none."""


@pytest.mark.parametrize(("old", "new", "words"), ANSWERS)
def test_an_answer_is_compared(old, new, words, compared):
    assert old in SHOWN
    shown = SHOWN.replace(old, new)
    findings = compared(shown)
    assert len(findings) == bool(words)
    for one in findings:
        assert words in f"{one['text']}\n{one['remedy']}"
        if one["topic"] != UNCONFIRMED:
            assert one["severity"] == "error"
            assert one["file"].endswith("hospital.confirmed.yaml")
            key = new.split(":")[0].strip(" -{")[:3]
            assert key in shown.splitlines()[int(one["line"]) - 1]


def test_the_questions_together_ask_for_everything(compared, tmp_path, mapping):
    file = written(tmp_path)
    assert mapping("confirm", file).status == 0
    text = beside(file).read_text("utf-8")
    questions, answers = yaml.safe_load(text), yaml.safe_load(SHOWN)
    asked = {slot for stay in questions["stays"] for slot in stay}
    assert asked == {slot for stay in answers["stays"] for slot in stay}
    assert "jungqvist" not in text.lower()
    # Numbers for a month, for all before, and of these for each class and for units.
    month, *earlier = questions["counts"]
    assert all(one["date"] == f"lt{month['date']}" for one in earlier)
    keys = [[*one][1] for one in earlier]
    assert keys == ["stays", "class", *["service-provider._extension"] * 3]
    # It is never overwritten: somebody looked the answers up.
    assert mapping("confirm", file).status == 2
    # Unanswered, all of it is open.
    findings = compared(text)
    assert {one["topic"] for one in findings} == {UNCONFIRMED}
    assert {one["element"] for one in findings} == {"Encounter", "Patient"}


def test_codes_that_the_file_does_not_name_are_not_quoted(compared):
    # A column of numbers of visits in place of one of codes: the remedy lists codes.
    findings = compared("counts: []\n", ("class: {from: kind", "class: {from: visit"))
    (left,) = [one for one in findings if one["element"] == "Encounter"]
    assert "class otherwise" in left["remedy"]
    assert "V1" not in left["remedy"]


CANARY = "Ljungqvist-0042"


@pytest.mark.parametrize(
    "shown",
    [
        f"{CANARY}: x",
        f"clock: {CANARY}",
        f"clock: {{{CANARY}: x}}",
        f"stays: [{CANARY}]",
        f"stays: [{{id: {CANARY}}}]",
        f"stays: [{{id: 1, {CANARY}: x}}]",
        f"stays: [{{id: 1, status: {CANARY}}}]",
        f"stays: [{{id: 1, start: {CANARY}, end: [{CANARY}, none]}}]",
        f"stays: [{{id: 1, family: {CANARY}, birth_date: {CANARY}}}]",
        f"stays: [{{id: 1, given: *{CANARY}}}]",
        f"stays: [{{id: 1, {CANARY}: 1, {CANARY}: 2}}]",
        f"stays: [{{id: 1, family: [{{{CANARY}: x}}], hospital: [{CANARY}]}}]",
        f"counts: [{{date: {CANARY}, stays: 1}}]",
        f"counts: [{{{CANARY}: 2024, stays: 1}}]",
        f"counts: [{{stays: {'9' * 5000}}}]",
        f"absent: {CANARY}",
        f'absent: ["1", "\\0{CANARY}"]',
        f"'{CANARY}",
    ],
)
def test_no_finding_quotes_an_answer(shown, sqlite, tmp_path, mapping):
    file = written(tmp_path)
    beside(file).write_text(shown, "utf-8")
    for option in ("--json", "--verbose"):
        printed = mapping("check", "--live", option, file)
        assert (printed.status, printed.err) == (1, "")
        assert beside(file).name in printed.out
        assert CANARY not in printed.out


def test_a_source_that_is_away_is_a_warning(sqlite, tmp_path, mapping, monkeypatch):
    file = written(tmp_path)
    monkeypatch.setenv("PAS_URL", f"sqlite:///{tmp_path}/nothing.sqlite")
    (one,) = confirm(file, is_wrong=False)
    assert one.severity == "warning"
    assert mapping("confirm", file).status == 2
    # What has to be corrected first is known already.
    assert [*confirm(file, is_wrong=True)] == []


INSTANT = {"postgresql": "ended AT TIME ZONE 'Europe/Paris'"}
"""The end with an offset, where a database has such times."""


def test_times_of_each_database_are_compared(kind, url, tmp_path, mapping):
    columns = "stay_id, patient_id, state, kind, began, visit, unit, changed"
    rows = f"SELECT {columns}, {INSTANT.get(kind, 'ended')} AS ended FROM stays"
    file = written(tmp_path, ("SELECT * FROM stays", rows))
    right = SHOWN.replace("[80]", "[80, 99999999999999999999999, x-1, x y]")
    for shown, words in ((right, []), (SHOWN.replace("04:10", "06:10"), ["2 h later"])):
        beside(file).write_text(shown, "utf-8")
        findings = mapping("check", "--live", "--json", file).document["findings"]
        own = [one for one in findings if one["file"].endswith("confirmed.yaml")]
        assert [one["text"].rpartition(": ")[2] for one in own] == words
        assert words or UNCONFIRMED not in {one["topic"] for one in findings}


def test_the_hospital_of_a_stay_is_a_part(sqlite, compared):
    run(
        sqlite,
        "CREATE TABLE houses (unit VARCHAR(8), house INTEGER)",
        "INSERT INTO houses SELECT DISTINCT unit, 1 + (unit > 'U1') FROM stays",
        "CREATE TABLE hospitals (house INTEGER PRIMARY KEY, title VARCHAR(20))",
        "INSERT INTO hospitals VALUES (1, 'Harbour'), (2, 'Hill')",
    )
    unit = "    functional_unit: {from: unit}\n"
    section = (
        "organization:\n  rows: SELECT * FROM hospitals\n"
        "  fields: {id: {from: house}, name: {from: title}}\n  search: [_id]\n"
    )
    join = "SELECT s.*, h.house FROM stays s JOIN houses h USING (unit)"
    changes = (
        (unit, f"{unit}    organization_id: {{from: house}}\n"),
        ("SELECT * FROM stays", join),
        ("patient:\n", f"{section}patient:\n"),
    )
    one = SHOWN.replace("{id: 9,", "{id: 9, hospital: HILL,")
    (left,) = compared(one, *changes)
    assert left["topic"] == UNCONFIRMED
    assert left["remedy"].endswith("\norganization_id of another hospital")
    both = one.replace("status: finished", "hospital: Harbour\n    status: finished")
    assert compared(both, *changes) == []
    # Every stay that leads to the other hospital does so wrongly.
    wrong = ("h.house FROM stays", "3 - h.house AS house FROM stays")
    findings = compared(both, *changes, wrong)
    assert [o["element"] for o in findings] == ["Organization.name"] * 2


def test_the_patient_who_remains_of_merged_ones_is_a_part(sqlite, compared):
    run(
        sqlite,
        "ALTER TABLE patients ADD COLUMN became BIGINT",
        "UPDATE patients SET became = 1 WHERE patient_id = 2",
        "CREATE INDEX patients_became ON patients (became)",
    )
    changes = (
        ("{from: patient_id}", "{from: patient_id, merges: follow}"),
        ("changed FROM patients", "changed, became FROM patients"),
        ("gender: {from: sex", "replaced_by: {from: became}\n    gender: {from: sex"),
    )

    def of_second(answer):
        answers = f"{answer}}}\n  - {{id: 4, gender: male}}"
        return compared(SHOWN.replace("gender: male}", answers), *changes)

    (wrong,) = of_second("birth_date: none")
    assert wrong["element"] == "Patient.birthDate"
    (left,) = of_second('family: "?"')
    assert left["remedy"].endswith("\npatient_id of a merged patient")
    assert of_second("family: ljungqvist1") == []


def test_times_that_are_served_in_utc_are_compared_by_the_hospitals_clock(compared):
    columns = ("may_write: true}", "may_write: true, time_zone: Europe/Paris}")
    in_utc = ("\ntime_zone: Europe/Paris", "\ntime_zone: UTC")
    assert compared(SHOWN, columns, in_utc) == []
    # Also where nobody has answered which clock it is: it is that of the columns.
    (left,) = compared(SHOWN.replace("Europe/Paris", "'?'"), columns, in_utc)
    assert left["topic"] == UNCONFIRMED
    # Columns by the hospital's clock that are read as UTC.
    findings = compared(SHOWN, in_utc)
    assert {o["text"].rpartition(": ")[2] for o in findings} == {"2 h earlier"}


def test_a_field_that_nobody_has_to_confirm_is_a_note(compared, tmp_path, mapping):
    # Such as one that a later release adds: a confirmed file stays confirmed.
    old = "    birth_date: {from: born}\n"
    added = "    telecoms: [{system: phone, value: {from: folded}}]\n"
    assert compared(SHOWN, (old, old + added)) == []
    file = tmp_path / "hospital.yaml"
    findings = mapping("check", "--live", "--json", file).document["findings"]
    assert UNCONFIRMED not in {one["topic"] for one in findings}
    notes = [one for one in findings if one["topic"] == UNASKED]
    assert {one["severity"] for one in notes} == {"note"}
    assert any("telecoms.value" in one["text"] for one in notes)


def test_ordinary_stays_are_asked_for_by_the_numbers_that_a_clerk_searches(
    sqlite, tmp_path, mapping
):
    run(
        sqlite,
        # More planned stays of a far year than a page has, of the same class.
        "INSERT INTO stays SELECT 1000 + p.patient_id * 100 + o.patient_id, 1, 'P', 'HC',"
        " '2090-07-01 10:00:00', NULL, 'P' || p.patient_id || '-' || o.patient_id, 'U1',"
        " '2020-05-03 10:00:00' FROM patients p JOIN patients o ON o.patient_id < 20",
        "UPDATE patients SET folded = 'N-' || patient_id",
        # A stay on the other side of a change of the clock.
        "UPDATE stays SET began = '2020-02-01 10:00:00' WHERE stay_id = 7",
    )
    file = written(
        tmp_path,
        ("S: finished,", "S: finished, P: planned,"),
        ("value: {from: patient_id}}]", "value: {from: folded}}]"),
    )
    assert mapping("confirm", file).status == 0
    text = beside(file).read_text("utf-8")
    first, *others = yaml.safe_load(text)["stays"]
    assert {"start", "end", "functional_unit"} < first.keys()
    assert int(first["id"]) <= 120
    assert f"  # visit number V{first['id']}, patient number N-{first['id']}\n" in text
    assert [[*other] for other in others if int(other["id"]) > 1000] == [
        ["id", "status", "start", "end", "gender"]
    ]
    assert "7" in {other["id"] for other in others if "start" in other}
