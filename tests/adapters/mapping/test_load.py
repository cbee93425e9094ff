"""Mapping files as a whole: a good one says what it should, a bad one says all of it."""

from datetime import time
from pathlib import Path

import pytest

from adapters.contract import ResourceType, SortKey
from adapters.mapping.checks import zone
from adapters.mapping.load import load_mapping
from adapters.mapping.model import (
    Condition,
    DateReading,
    SourceMapping,
)
from adapters.mapping.problems import MappingError
from adapters.mapping.time_rule import Never, TimeRule, Twice
from tests.adapters.mapping.good import ENVIRON, MINIMAL, WHOLE, changed, load, problems


@pytest.fixture
def whole(tmp_path: Path) -> SourceMapping:
    return load(WHOLE, tmp_path)


def test_the_small_file_has_no_problems(tmp_path: Path) -> None:
    mapping = load(MINIMAL, tmp_path)
    assert mapping.resources[ResourceType.ENCOUNTER].sorts == (SortKey.DATE,)
    assert mapping.date_reading is DateReading.START
    assert mapping.source.connections == 8


def test_source(whole: SourceMapping) -> None:
    source = whole.source
    assert source.url == ENVIRON["PAS_URL"]
    assert (source.timeout_seconds, source.count_timeout_seconds) == (2.5, 1.0)
    assert source.connections == 4
    assert str(source.mark).endswith("m.yaml:19:1")


def test_top_of_the_file(whole: SourceMapping) -> None:
    assert (whole.name, whole.profile) == ("Whole", "group-a")
    assert whole.date_reading is DateReading.PERIOD
    assert whole.time_zone.key == "Europe/Paris"
    assert whole.constants.class_systems == {"REC": "https://example.org/classes"}
    assert whole.constants.identifier_type_display == "Numéro de venue"


def test_every_scalar_is_text(whole: SourceMapping) -> None:
    assert whole.codes["class"].table == {"URG": "EMER", "01": "IMP"}
    assert whole.codes["sex"].table == {"NO": "male", "1": "female"}
    assert whole.codes["yes"].table == {"O": "true", "N": "false"}
    assert whole.codes["class"].otherwise == "UNK"


def test_encounter_fields(whole: SourceMapping) -> None:
    section = whole.resources[ResourceType.ENCOUNTER]
    fields = section.fields
    assert set(fields) == {
        *("id", "visit_number", "visit_number_system", "patient_id", "status"),
        *("class_code", "start", "end", "functional_unit", "organization_id"),
        "last_updated",
    }
    assert fields["class_code"].slot == "class_code"
    assert fields["class_code"].codes is whole.codes["class"]
    assert fields["organization_id"].constant == "hospital-1"
    assert fields["visit_number"].filter_column == "visit_upper"
    assert fields["visit_number_system"].constant == "urn:oid:1.2.250.1.999.1.1"
    assert fields["end"].absent == {"999912312359"}
    assert fields["last_updated"].covers_all
    assert not fields["start"].covers_all
    assert section.required == {"id", "status", "patient_id", "class_code", "start"}
    assert section.rows.startswith("SELECT a, b, c FROM stays -- one row a stay")


def test_time_rules(whole: SourceMapping) -> None:
    fields = whole.resources[ResourceType.ENCOUNTER].fields
    paris, utc, london = (zone(n) for n in ("Europe/Paris", "UTC", "Europe/London"))
    assert paris
    assert utc
    assert london
    shift, second = Never.SHIFT, Twice.SECOND
    assert fields["start"].time == TimeRule(utc, paris, None, time(8), second, shift)
    assert fields["start"].columns == ("day", "hour")
    assert fields["end"].time == TimeRule(
        london, paris, "%Y%m%d%H%M", None, second, shift
    )
    assert fields["last_updated"].time == TimeRule(utc, paris)
    assert fields["status"].time is None


def test_a_visit_number_system_from_a_column_wins_over_the_constant(
    tmp_path: Path,
) -> None:
    text = changed(
        WHOLE,
        "    patient_id: {from: patient}\n",
        "    patient_id: {from: patient}\n    visit_number_system: {from: site}\n",
    )
    fields = load(text, tmp_path).resources[ResourceType.ENCOUNTER].fields
    assert fields["visit_number_system"].columns == ("site",)


def test_list_items(whole: SourceMapping) -> None:
    items = whole.resources[ResourceType.PATIENT].items
    ipp, ins, other = items["identifiers"]
    assert ipp.fields["assigner_id"].constant == "hospital-1"
    assert ins.only_if == Condition("ins_state", frozenset({"VALI", "0"}))
    assert (other.rows, other.key) == (
        "SELECT patient_id, number FROM other_numbers",
        "patient_id",
    )
    assert items["names"][0].fields["given"].split == " "
    (home,) = items["addresses"]
    assert [line.columns for line in home.lines] == [("street",), ("street2",)]
    assert home.fields["country"].constant == "FR"
    assert whole.resources[ResourceType.ORGANIZATION].items == {}


def test_french_identifiers_know_their_system_and_use(whole: SourceMapping) -> None:
    ipp, ins, other = whole.resources[ResourceType.PATIENT].items["identifiers"]
    assert ins.fields["system"].constant == "urn:oid:1.2.250.1.213.1.4.8"
    assert ins.fields["use"].constant == "official"
    assert ipp.fields["system"].constant == "urn:oid:1.2.250.1.999.2"
    assert ipp.fields["use"].constant == "usual"
    assert "use" not in other.fields


def test_the_fingerprint_changes_with_what_a_walk_depends_on(
    whole: SourceMapping, tmp_path: Path
) -> None:
    def fingerprint(*changes: str) -> str:
        return load(changed(WHOLE, *changes), tmp_path).fingerprint

    assert (
        fingerprint("mapping: 1\n", "# moved down\nmapping: 1\n") == whole.fingerprint
    )
    assert fingerprint("name: Whole", "name: Renamed") == whole.fingerprint
    assert fingerprint("FROM stays", "FROM visits") != whole.fingerprint
    assert fingerprint("date: period", "date: start") != whole.fingerprint
    assert fingerprint("from: changed,", "from: modified,") != whole.fingerprint
    assert fingerprint("from: ipp}", "from: ipp2}") != whole.fingerprint
    assert fingerprint("X: removed", "X: hidden") != whole.fingerprint


def test_a_profile_may_be_a_file_beside_the_mapping(tmp_path: Path) -> None:
    text = changed(MINIMAL, "profile: full", "profile: ours.yaml")
    assert problems(text, tmp_path) == [
        "m.yaml:3:10: profile: 'ours.yaml' is not a profile, nor a file beside this "
        "one: use full, group-a, group-b"
    ]
    (tmp_path / "ours.yaml").write_text("profile: ours\n")
    assert load(text, tmp_path).profile == "ours.yaml"


def test_all_problems_of_a_file_at_once_in_its_order(tmp_path: Path) -> None:
    text = changed(
        MINIMAL,
        "Europe/Paris",
        "Europe/Pari",
        "finished",
        "finishd",
        "{from: b}",
        "{form: b}",
        "sort: [date]",
        "sort: [dat]\n  zzz: x",
    )
    assert problems(text, tmp_path) == [
        "m.yaml:4:12: time_zone: 'Europe/Pari' is not a time zone; did you mean "
        "'Europe/Paris'?",
        "m.yaml:7:35: codes.status: 'finishd' is not a code of 'status'; did "
        "you mean 'finished'?",
        "m.yaml:12:18: Encounter.subject: 'form' is not a key here; did you mean 'from'?",
        "m.yaml:16:10: encounter.sort: 'dat' is not a sort key of Encounter; did you "
        "mean 'date'?",
        "m.yaml:17:3: encounter.zzz: 'zzz' is not a key here: use rows, "
        "fields, search, sort, requires, source",
    ]


def test_another_version_is_one_sentence(tmp_path: Path) -> None:
    text = changed(MINIMAL, "mapping: 1", "mapping: 2", "time_zone", "zone")
    assert problems(text, tmp_path) == [
        "m.yaml:1:10: mapping: version '2' of the format is not known: this service "
        "reads 1"
    ]


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r"gone\.yaml:1:1: cannot be read: No such"):
        load_mapping(tmp_path / "gone.yaml", {})


def test_problems_never_hold_the_url(tmp_path: Path) -> None:
    text = changed(MINIMAL, "{env: PAS_URL}", "postgresql://reader:hunter2@pas/pas")
    found = problems(text, tmp_path)
    assert found == [
        "m.yaml:5:26: source.url: holds a password: put it into the environment and "
        "write {env: NAME}"
    ]


def test_faults_of_yaml_of_shape_and_of_meaning_are_told_at_once(
    tmp_path: Path,
) -> None:
    text = changed(MINIMAL, "profile: full", "profile: full\nprofile: group-a")
    text = changed(text, "Europe/Paris", "Europe/Pari", "sort:", "sorts:")
    told = [problem.split(": ", 1)[1] for problem in problems(text, tmp_path)]
    assert told == [
        "the key 'profile' is here twice; the first is on line 3",
        "time_zone: 'Europe/Pari' is not a time zone; did you mean 'Europe/Paris'?",
        "encounter.sorts: 'sorts' is not a key here; did you mean 'sort'?",
    ]


def test_what_is_no_part_of_the_format_is_told_once(tmp_path: Path) -> None:
    text = changed(MINIMAL, "{from: c, codes: status}", "*others")
    told = problems(text, tmp_path)
    assert sum("others" in problem for problem in told) == 1
