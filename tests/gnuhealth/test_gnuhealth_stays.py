"""Stays of GNU Health: three tables that each lay traps, on both databases.

Which trap each test is about, and which have none: mappings/gnuhealth/README.md.
"""

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.contract import (
    Adapter,
    EncounterRecord,
    NotFoundError,
    Sort,
    SortKey,
)
from adapters.testing.harness import STAY, ask, ids_of, patient, token, walk
from tests.gnuhealth.odd import FAULTS, SERVED
from tests.gnuhealth.samples import (
    EVERY,
    MAPPING,
    README,
    Sample,
    own_ids,
    stays_of,
)

Stays = dict[str, EncounterRecord]
PREFIXES = {"inp-", "app-", "eva-"}


def test_the_mapping_fits_and_the_account_only_reads(health: Adapter) -> None:
    assert list(health.check()) == []


def test_same_number_in_three_tables_is_three_stays(
    health: Adapter, stays: Stays
) -> None:
    shared = own_ids(stays, "inp-") & own_ids(stays, "app-") & own_ids(stays, "eva-")
    number = min(shared, key=int)
    wanted = [f"{prefix}{number}" for prefix in sorted(PREFIXES)]
    found = health.search(ask(token("_id", *wanted)))
    assert sorted(ids_of(found)) == wanted
    assert {health.read(STAY, id).id for id in wanted} == set(wanted)
    with pytest.raises(NotFoundError):
        health.read(STAY, number)


def test_an_id_is_looked_for_in_its_own_table_alone(health: Adapter) -> None:
    text = health.explain(ask(token("_id", "eva-2")))
    assert "FROM gnuhealth_patient_evaluation e" in text
    assert "FROM gnuhealth_appointment" not in text
    assert "hospitalization_date" not in text


def test_open_stay_has_no_end(sample: Sample, stays: Stays) -> None:
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
    # Though each of them has a discharge date.
    assert not sample.texts(
        "SELECT id FROM gnuhealth_inpatient_registration WHERE discharge_date IS NULL"
    )


def test_some_ends_were_only_expected(
    sample: Sample, stays: Stays, tmp_path: Path
) -> None:
    late = sample.texts(
        "SELECT id FROM gnuhealth_inpatient_registration WHERE state IN"
        " ('done', 'finished') AND discharge_date > COALESCE(write_date, create_date)"
    )
    # Who changed these rows last did so before their end came.
    assert len(late) == 37
    assert all(stays[f"inp-{id}"].end for id in late)
    # What the README tells a hospital that would rather have no end than such a one.
    old, new = re.findall(r"`(r\.state IN [^`]*)`", README.read_text("utf-8"))
    text = MAPPING.read_text("utf-8")
    assert text.count(old) == 1
    file = tmp_path / "mapping.yaml"
    file.write_text(text.replace(old, new), "utf-8")
    adapter = sample.open(file)
    strict = stays_of(adapter, ask(count=EVERY))
    adapter.close()
    assert strict.keys() == stays.keys()
    lost = {id for id in stays if stays[id].end and not strict[id].end}
    assert lost == {f"inp-{id}" for id in late}


def test_running_evaluation_has_no_end(odd: Adapter, stays: Stays) -> None:
    running = [s for id, s in stays.items() if id[:4] == "eva-" and s.end is None]
    assert {stay.status for stay in running} == {"in-progress"}
    found = stays_of(odd, ask(token("_id", "eva-9006", "eva-9007")))
    assert found["eva-9006"].end is not None
    assert (found["eva-9007"].status, found["eva-9007"].end) == ("in-progress", None)


def test_bed_to_be_cleaned_is_a_finished_stay(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    done = sample.texts(
        "SELECT id FROM gnuhealth_inpatient_registration WHERE state = 'done'"
    )
    found = ids_of(health.search(ask(token("status", "finished"), count=EVERY)))
    assert len(done) == 13
    assert {f"inp-{id}" for id in done} <= set(found)
    assert len(found) == sum(s.status == "finished" for s in stays.values())


def test_several_states_are_one_status(health: Adapter, stays: Stays) -> None:
    for status, number in Counter(s.status for s in stays.values()).items():
        found = stays_of(health, ask(token("status", status), count=EVERY))
        assert len(found) == health.count(ask(token("status", status))) == number
    planned = stays_of(health, ask(token("status", "planned"), count=EVERY))
    assert {id[:4] for id in planned} == {"inp-", "app-"}


def test_unknown_state_is_a_fault_and_is_counted(odd: Adapter, health: Adapter) -> None:
    found = ids_of(odd.search(ask(count=EVERY)))
    assert [row for row in found if row.startswith("!")] == FAULTS
    assert set(found) >= SERVED
    more = len(SERVED) + len(FAULTS)
    assert odd.count(ask()) == len(found) == health.count(ask()) + more


def test_row_never_changed_is_as_old_as_itself(sample: Sample, health: Adapter) -> None:
    (number, created) = sample.rows(
        "SELECT id, create_date FROM gnuhealth_inpatient_registration"
        " WHERE write_date IS NULL ORDER BY id"
    )[0]
    stay = health.read(STAY, f"inp-{number}")
    assert stay.last_updated == datetime.fromisoformat(str(created)).replace(tzinfo=UTC)


@pytest.mark.parametrize("key", [SortKey.DATE, SortKey.LAST_UPDATED])
@pytest.mark.parametrize("descending", [True, False])
def test_times_of_two_precisions_keep_their_order_over_pages(
    health: Adapter, stays: Stays, key: SortKey, descending: bool
) -> None:
    pages = walk(health, ask(sort=Sort(key, descending), count=50))
    found = [id for page in pages for id in ids_of(page)]
    assert sorted(found) == sorted(stays)
    times = [
        stays[id].start if key is SortKey.DATE else stays[id].last_updated
        for id in found
    ]
    instants = [time.timestamp() for time in times if time]
    assert len(instants) == len(found)
    assert instants == sorted(instants, reverse=descending)


def test_stamp_keeps_its_microseconds(own: Sample) -> None:
    own.run(
        "UPDATE gnuhealth_inpatient_registration"
        " SET write_date = '2026-11-20 23:51:55.996838' WHERE id = 1;"
    )
    adapter = own.open()
    stay = adapter.read(STAY, "inp-1")
    adapter.close()
    assert isinstance(stay, EncounterRecord)
    assert stay.last_updated == datetime(2026, 11, 20, 23, 51, 55, 996838, UTC)


def test_unit_through_bed_and_ward_and_stays_without(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    (bedless,) = sample.texts(
        "SELECT id FROM gnuhealth_inpatient_registration WHERE bed IS NULL"
    )
    own = {id: s for id, s in stays.items() if id.startswith("inp-")}
    assert own[f"inp-{bedless}"].functional_unit is None
    # The others lie in a bed without a ward or in a ward without a unit.
    assert sum(s.functional_unit is None for s in own.values()) == 21
    found = ids_of(
        health.search(ask(token("service-provider._extension", "CARD"), count=EVERY))
    )
    cardiology = {id for id, s in stays.items() if s.functional_unit == "CARD"}
    assert set(found) == cardiology
    # The same code in both houses: who provides it tells them apart.
    assert {stays[id].organization_id for id in cardiology} == {"1", "2"}


def test_transfer_moves_the_whole_stay_to_its_new_unit(own: Sample) -> None:
    bed = own.number(
        "SELECT MIN(b.id) FROM gnuhealth_hospital_bed b"
        " JOIN gnuhealth_hospital_ward w ON w.id = b.ward"
        " JOIN gnuhealth_hospital_unit u ON u.id = w.unit WHERE u.code = 'CARD'"
    )
    own.run(f"UPDATE gnuhealth_inpatient_registration SET bed = {bed} WHERE id = 1;")
    adapter = own.open()
    stay = adapter.read(STAY, "inp-1")
    adapter.close()
    assert isinstance(stay, EncounterRecord)
    assert stay.functional_unit == "CARD"


def test_visit_number_with_blank_and_slash(health: Adapter) -> None:
    found = stays_of(health, ask(token("identifier", "EVAL 2026/000002")))
    assert found.keys() == {"eva-2"}


def test_visit_number_is_compared_and_never_ordered(odd: Adapter) -> None:
    for number, id in (("INPAC100", "inp-100"), ("INPAC1000", "inp-9004")):
        assert stays_of(odd, ask(token("identifier", number))).keys() == {id}
    # Without a number there is none; an empty one is none either.
    (without,) = stays_of(odd, ask(token("_id", "app-9001"))).values()
    assert without.visit_number is None


def test_number_of_two_appointments_finds_both(odd: Adapter) -> None:
    found = stays_of(odd, ask(token("identifier", "APP 2026/3")))
    assert found.keys() == {"app-3", "app-9003"}


def test_stays_of_a_patient_are_in_all_tables(health: Adapter, stays: Stays) -> None:
    number, count = Counter(s.patient_id for s in stays.values()).most_common(1)[0]
    found = stays_of(health, ask(patient(number)))
    assert len(found) == count
    assert {id[:4] for id in found} == PREFIXES


def test_stay_is_of_the_patient_and_not_of_the_party(
    sample: Sample, stays: Stays
) -> None:
    ((who, party),) = sample.rows(
        "SELECT r.patient, p.party FROM gnuhealth_inpatient_registration r"
        " JOIN gnuhealth_patient p ON p.id = r.patient WHERE r.id = 1"
    )
    assert who != party
    assert stays["inp-1"].patient_id == str(who)
