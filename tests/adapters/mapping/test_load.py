"""Mapping files as a whole: a good one says what it should, a bad one says all of it."""

from datetime import time
from pathlib import Path

import pytest

from adapters.contract import ResourceType, SortKey
from adapters.mapping.load import SUFFIX, keep_mapping, load_mapping
from adapters.mapping.model import (
    Condition,
    DateReading,
    Never,
    SourceMapping,
    TimeRule,
    Twice,
)
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.mapping.times import zone
from adapters.testing.hospital import EDGES
from tests.adapters.mapping.good import (
    ENVIRON,
    MINIMAL,
    WHOLE,
    assert_problems,
    changed,
    load,
    problems,
)
from tests.hospital_sql import mapping_text


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
    assert_problems(text, tmp_path, ("3 profile group-a",))
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
    expected = (
        *("4 time_zone Europe/Paris", "7 codes.status finished"),
        *("12 Encounter.subject from", "16 encounter.sort date", "17 encounter.zzz"),
    )
    assert_problems(text, tmp_path, expected)


def test_another_version_is_one_sentence(tmp_path: Path) -> None:
    text = changed(MINIMAL, "mapping: 1", "mapping: 2", "time_zone", "zone")
    assert_problems(text, tmp_path, ("1 mapping 2",))


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r"gone\.yaml:1:1: cannot be read: No such"):
        load_mapping(tmp_path / "gone.yaml", {})


def test_problems_never_hold_the_url(tmp_path: Path) -> None:
    text = changed(MINIMAL, "{env: PAS_URL}", "postgresql://reader:hunter2@pas/pas")
    (found,) = problems(text, tmp_path)
    assert "hunter2" not in found


def test_faults_of_yaml_of_shape_and_of_meaning_are_told_at_once(
    tmp_path: Path,
) -> None:
    text = changed(MINIMAL, "profile: full", "profile: full\nprofile: group-a")
    text = changed(text, "Europe/Paris", "Europe/Pari", "sort:", "sorts:")
    told = [problem.split(": ", 1)[1] for problem in problems(text, tmp_path)]
    assert ["profile" in told[0], "time_zone" in told[1], "sorts" in told[2]] == [
        True
    ] * 3


def test_what_is_no_part_of_the_format_is_told_once(tmp_path: Path) -> None:
    text = changed(MINIMAL, "{from: c, codes: status}", "*others")
    told = problems(text, tmp_path)
    assert sum("others" in problem for problem in told) == 1


# --------------------------------------------------- a mapping kept as it was read

KEPT_ENVIRON = {"PAS_URL": "sqlite:///hunter2.db"}
PROFILE = "profile: ours\npaging: true\nencounter: {patient: {}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a mapping over a base that is named by its whole path, with a profile."""
    folder = tmp_path / "vendor"
    folder.mkdir()
    base = mapping_text(EDGES).replace("profile: full", "profile: ours.yaml")
    (folder / "base.yaml").write_text(base, "utf-8")
    (folder / "ours.yaml").write_text(PROFILE, "utf-8")
    file = tmp_path / "hospital.yaml"
    file.write_text(
        f"mapping: 1\nextend: {folder / 'base.yaml'}\nname: Ours\n", "utf-8"
    )
    return file


def test_it_is_read_as_it_was(file: Path, tmp_path: Path) -> None:
    place = tmp_path / f"mapping{SUFFIX}"
    kept = keep_mapping(file, KEPT_ENVIRON, place)
    profile = profile_of(kept)
    for gone in (file, *(tmp_path / "vendor").iterdir()):
        gone.write_text("nonsense: 1", "utf-8")
    loaded = load_mapping(place, KEPT_ENVIRON)
    # Equal to the last line and column, so problems are told where they are mended.
    assert "hunter2" in repr(kept)
    assert repr(loaded) == repr(kept)
    assert loaded.fingerprint == kept.fingerprint
    assert profile_of(loaded) == profile
    for gone in (file, *(tmp_path / "vendor").iterdir()):
        gone.unlink()
    assert repr(load_mapping(place, KEPT_ENVIRON)) == repr(kept)


def test_no_secret_is_kept(file: Path, tmp_path: Path) -> None:
    place = tmp_path / f"mapping{SUFFIX}"
    keep_mapping(file, KEPT_ENVIRON, place)
    assert b"hunter2" not in place.read_bytes()


def test_a_mapping_at_fault_is_not_kept(file: Path, tmp_path: Path) -> None:
    place = tmp_path / f"mapping{SUFFIX}"
    kept = keep_mapping(file, KEPT_ENVIRON, place)
    (tmp_path / "vendor" / "ours.yaml").write_text(PROFILE + "pages: 1\n", "utf-8")
    with pytest.raises(MappingError, match="pages"):
        keep_mapping(file, KEPT_ENVIRON, place)
    assert repr(load_mapping(place, KEPT_ENVIRON)) == repr(kept)
    assert list(tmp_path.glob("*.new")) == []
