"""The mapping of GNU Health 5.0 over a real installation's tables (SQLite, made-up people).

Each test is a trap of that system. Two have no test: `discharge_date` is the expected one
until the patient has left and GNU Health keeps no other in these tables, so that the end
of a discharged stay is as good as its clerks; nothing here tells of deleted rows, whose
only trace is a log that is not a table of stays.
"""

import lzma
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    EncounterRecord,
    NotFoundError,
    PatientRecord,
    ResourceType,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from adapters.testing.asking import (
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    text,
    token,
)

MAPPING = Path(__file__).parents[2] / "mappings" / "gnuhealth" / "gnuhealth-5.0.yaml"
SAMPLE = Path(__file__).parent / "sample.sqlite.xz"
EVERY = 2000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample as a database file."""
    path = tmp_path_factory.mktemp("gnuhealth") / "gh.sqlite"
    path.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    return path


@pytest.fixture(scope="module")
def health(file: Path) -> Iterator[Adapter]:
    """Return the adapter of the sample."""
    adapter = open_adapter(load_mapping(MAPPING, {"PAS_URL": f"sqlite:///{file}"}))
    yield adapter
    adapter.close()


@pytest.fixture(scope="module")
def database(file: Path) -> Iterator[sqlite3.Connection]:
    """Return the tables themselves."""
    connection = sqlite3.connect(file)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def stays(health: Adapter) -> dict[str, EncounterRecord]:
    """Return every stay that is served, by id."""
    rows = health.search(ask(count=EVERY)).rows
    return {row.id: row for row in rows if isinstance(row, EncounterRecord)}


def rows(database: sqlite3.Connection, query: str) -> set[str]:
    """Return the first column of a query, as texts."""
    return {str(row[0]) for row in database.execute(query)}


def of(stays: dict[str, EncounterRecord], prefix: str) -> set[str]:
    """Return the own ids of what one table serves."""
    return {id.removeprefix(prefix) for id in stays if id.startswith(prefix)}


def test_the_mapping_fits(health: Adapter) -> None:
    assert list(health.check()) == []


def test_every_row_is_served_or_explained(
    health: Adapter, database: sqlite3.Connection, stays: dict[str, EncounterRecord]
) -> None:
    assert len(stays) == health.count(ask()) == 885
    held = "SELECT id FROM gnuhealth_"
    assert of(stays, "inp-") == rows(
        database, f"{held}inpatient_registration WHERE state <> 'cancelled'"
    )
    assert of(stays, "eva-") == rows(
        database, f"{held}patient_evaluation WHERE inpatient_registration_code IS NULL"
    )
    evaluated = rows(database, "SELECT appointment FROM gnuhealth_patient_evaluation")
    kept = rows(
        database,
        f"{held}appointment WHERE patient IS NOT NULL AND state NOT IN "
        "('user_cancelled', 'center_cancelled', 'no_show')",
    )
    assert of(stays, "app-") == kept - evaluated


def test_same_number_in_three_tables_is_three_stays(
    health: Adapter, stays: dict[str, EncounterRecord]
) -> None:
    shared = of(stays, "inp-") & of(stays, "app-") & of(stays, "eva-")
    assert shared
    number = min(shared, key=int)
    wanted = [f"{prefix}{number}" for prefix in ("inp-", "app-", "eva-")]
    found = health.search(ask(token("_id", *wanted)))
    assert sorted(ids_of(found)) == sorted(wanted)
    assert {health.read(STAY, id).id for id in wanted} == set(wanted)
    with pytest.raises(NotFoundError):
        health.read(STAY, number)


def test_one_visit_is_served_once(
    database: sqlite3.Connection, stays: dict[str, EncounterRecord]
) -> None:
    pairs = database.execute(
        "SELECT id, appointment FROM gnuhealth_patient_evaluation"
        " WHERE appointment IS NOT NULL"
    ).fetchall()
    assert pairs
    for evaluation, appointment in pairs:
        assert f"eva-{evaluation}" in stays
        assert f"app-{appointment}" not in stays


def test_free_slot_is_no_stay(health: Adapter, database: sqlite3.Connection) -> None:
    for number in rows(
        database, "SELECT id FROM gnuhealth_appointment WHERE patient IS NULL"
    ):
        with pytest.raises(NotFoundError):
            health.read(STAY, f"app-{number}")


def test_open_stay_has_no_end(stays: dict[str, EncounterRecord]) -> None:
    ended = Counter(
        (stay.status, stay.end is not None)
        for id, stay in stays.items()
        if id.startswith("inp-")
    )
    assert ended == {
        ("finished", True): 380,
        ("planned", False): 49,
        ("in-progress", False): 27,
    }


def test_bed_to_be_cleaned_is_a_finished_stay(
    health: Adapter, database: sqlite3.Connection, stays: dict[str, EncounterRecord]
) -> None:
    query = "SELECT id FROM gnuhealth_inpatient_registration WHERE state = 'done'"
    done = {f"inp-{id}" for id in rows(database, query)}
    found = health.search(ask(token("status", "finished"), count=EVERY))
    assert len(done) == 13
    assert done <= set(ids_of(found))
    assert len(found.rows) == sum(s.status == "finished" for s in stays.values())


def test_row_never_changed_is_as_old_as_itself(
    health: Adapter, stays: dict[str, EncounterRecord]
) -> None:
    assert all(stay.last_updated for stay in stays.values())
    newest = Sort(SortKey.LAST_UPDATED, descending=True)
    page = health.search(ask(sort=newest, count=EVERY))
    times = [row.last_updated for row in page.rows if isinstance(row, EncounterRecord)]
    assert times == sorted(times, key=lambda t: t.timestamp() if t else 0)[::-1]


def test_times_are_utc(health: Adapter, stays: dict[str, EncounterRecord]) -> None:
    # 00:30 and 01:30 in UTC: half past two in Paris, twice.
    for id, start in (
        ("inp-1", "2025-10-26T02:30:00+02:00"),
        ("inp-2", "2025-10-26T02:30:00+01:00"),
    ):
        began = stays[id].start
        assert began is not None
        assert began.isoformat() == start
    first = dates("2025-10-26T02:30:00+02:00")
    assert "inp-1" in ids_of(health.search(ask(first)))
    assert "inp-2" not in ids_of(health.search(ask(first)))


@pytest.fixture(scope="module")
def odd(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapter]:
    """Return the adapter of the sample with rows that it happens not to have."""
    path = tmp_path_factory.mktemp("odd") / "gh.sqlite"
    path.write_bytes(file.read_bytes())
    connection = sqlite3.connect(path)
    connection.executescript(ODD)
    connection.close()
    adapter = open_adapter(load_mapping(MAPPING, {"PAS_URL": f"sqlite:///{path}"}))
    yield adapter
    adapter.close()


ODD = """
INSERT INTO gnuhealth_appointment (id, patient, state) VALUES (9001, 2, 'confirmed');
INSERT INTO gnuhealth_inpatient_registration (id, patient, state, admission_type,
  hospitalization_date, discharge_date) VALUES
  (9001, 2, NULL, 'routine', '2026-01-01 10:00:00', '2026-01-02 10:00:00'),
  (9002, 2, 'archived', 'routine', '2026-01-01 10:00:00', '2026-01-02 10:00:00');
UPDATE gnuhealth_person_alternative_identification SET party =
  (SELECT party FROM gnuhealth_patient WHERE id = 2) WHERE id = 1;
UPDATE party_party SET lastname = NULL WHERE id = 14;
UPDATE party_party SET replaced_by = (SELECT party FROM gnuhealth_patient WHERE id = 2)
  WHERE id = (SELECT party FROM gnuhealth_patient WHERE id = 5);
"""


def test_appointment_without_a_date_comes_last_and_matches_no_date(
    odd: Adapter,
) -> None:
    for descending in (True, False):
        page = odd.search(ask(sort=Sort(SortKey.DATE, descending), count=EVERY))
        assert ids_of(page)[-1] == "app-9001"
    found = ids_of(odd.search(ask(dates("ne2025-01-01"), patient("2"))))
    assert found
    assert "app-9001" not in found


def test_unknown_state_is_a_fault_and_is_counted(odd: Adapter, health: Adapter) -> None:
    page = odd.search(ask(count=EVERY))
    assert [row for row in ids_of(page) if row.startswith("!")] == ["!state", "!state"]
    assert odd.count(ask()) == health.count(ask()) + 3


def test_merged_patient_is_followed(odd: Adapter) -> None:
    merged = odd.read(PATIENT, "5")
    assert isinstance(merged, PatientRecord)
    assert (merged.active, merged.replaced_by) == (False, "2")
    found = odd.search(ask(patient("5"), count=EVERY))
    assert "app-9001" in ids_of(found)
    assert {s.patient_id for s in found.rows if isinstance(s, EncounterRecord)} == {"2"}
    assert ids_of(odd.search(ask(patient("2"), count=EVERY))) == ids_of(found)


def test_unit_through_bed_and_ward_and_stays_without(
    health: Adapter, database: sqlite3.Connection, stays: dict[str, EncounterRecord]
) -> None:
    (bedless,) = rows(
        database, "SELECT id FROM gnuhealth_inpatient_registration WHERE bed IS NULL"
    )
    assert stays[f"inp-{bedless}"].functional_unit is None
    found = health.search(
        ask(token("service-provider._extension", "CARD"), count=EVERY)
    )
    cardiology = {id for id, s in stays.items() if s.functional_unit == "CARD"}
    assert set(ids_of(found)) == cardiology
    # The same code in both houses: who provides it tells them apart.
    assert {stays[id].organization_id for id in cardiology} == {"1", "2"}


def test_class_comes_from_two_columns_and_the_table(
    health: Adapter, stays: dict[str, EncounterRecord]
) -> None:
    classes = Counter(stay.class_code for stay in stays.values())
    assert set(classes) <= {"EMER", "IMP", "AMB", "UNK"}
    for code, number in classes.items():
        assert code
        assert health.count(ask(token("class", code))) == number
    emergencies = {id[:4] for id, s in stays.items() if s.class_code == "EMER"}
    assert emergencies == {"inp-", "app-", "eva-"}


def test_visit_number_with_blank_and_slash(health: Adapter) -> None:
    (stay,) = health.search(ask(token("identifier", "EVAL 2026/000002"))).rows
    assert isinstance(stay, EncounterRecord)
    assert stay.id == "eva-2"


def test_stays_of_a_patient_are_in_all_tables(
    health: Adapter, stays: dict[str, EncounterRecord]
) -> None:
    number, count = Counter(s.patient_id for s in stays.values()).most_common(1)[0]
    found = ids_of(health.search(ask(patient(number))))
    assert len(found) == count
    assert {id[:4] for id in found} == {"inp-", "app-", "eva-"}


def test_names_without_accents(health: Adapter) -> None:
    plain = health.search(ask(text("family", "lefevre"), of=PATIENT))
    accents = health.search(ask(text("family", "Lefèvre"), of=PATIENT))
    assert ids_of(plain) == ids_of(accents)
    assert plain.rows


def test_unidentified_patients_have_no_family_name(odd: Adapter) -> None:
    found = odd.search(ask(text("name", "inconnu"), of=PATIENT)).rows
    assert len(found) == 5
    for person in found:
        assert isinstance(person, PatientRecord)
        assert [name.family for name in person.names] == [None]
        assert (person.birth_date, person.gender) == (None, "unknown")


def test_two_flags_say_who_is_active(health: Adapter) -> None:
    people = health.search(ask(of=PATIENT, count=EVERY)).rows
    active = Counter(p.active for p in people if isinstance(p, PatientRecord))
    assert active == {True: 198, False: 2}


def test_death_has_its_date_elsewhere(health: Adapter) -> None:
    people = health.search(ask(of=PATIENT, count=EVERY)).rows
    dead = [p for p in people if isinstance(p, PatientRecord) and p.deceased]
    assert len(dead) == 3
    assert all(person.deceased_at for person in dead)


def test_numbers_of_a_patient(odd: Adapter) -> None:
    person = odd.read(PATIENT, "2")
    assert isinstance(person, PatientRecord)
    assert [identifier.system for identifier in person.identifiers] == [
        "urn:oid:1.2.250.1.999.10.2",
        "urn:oid:1.2.250.1.999.10.3",
    ]
    for identifier in person.identifiers:
        asked = ask(token("identifier", identifier.value), of=PATIENT)
        assert ids_of(odd.search(asked)) == ["2"]


def test_institutions(health: Adapter) -> None:
    found = health.search(ask(of=ResourceType.ORGANIZATION))
    assert ids_of(found) == ["1", "2"]
    by_name = ask(text("name", "epine noire"), of=ResourceType.ORGANIZATION)
    assert ids_of(health.search(by_name)) == ["1"]
