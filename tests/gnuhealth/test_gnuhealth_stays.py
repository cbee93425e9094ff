"""Stays of GNU Health: three tables that each lay traps, on both databases."""

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from adapters.contract import (
    Adapter,
    EncounterRecord,
    GoneError,
    NotFoundError,
    Sort,
    SortKey,
)
from tests.gnuhealth.conftest import NewSample
from tests.gnuhealth.samples import (
    EVERY,
    MAPPING,
    README,
    Sample,
    own_ids,
    stays_of,
)
from toolkit.contract.harness import STAY, ask, dates, ids_of, patient, token, walk

Stays = dict[str, EncounterRecord]
PREFIXES = ["app-", "eva-", "inp-"]
REGISTRATION = "FROM gnuhealth_inpatient_registration"
APPOINTMENT = "FROM gnuhealth_appointment"
EVALUATION = "FROM gnuhealth_patient_evaluation"


def stay(adapter: Adapter, id: str) -> EncounterRecord:
    found = adapter.read(STAY, id)
    assert isinstance(found, EncounterRecord)
    return found


# Which rows are stays


def test_each_table_has_its_own_ids(health: Adapter, stays: Stays) -> None:
    assert list(health.check()) == []
    inp, app, eva = (own_ids(stays, prefix) for prefix in ("inp-", "app-", "eva-"))
    number = min(inp & app & eva, key=int)
    wanted = [f"{prefix}{number}" for prefix in PREFIXES]
    assert sorted(ids_of(health.search(ask(token("_id", *wanted))))) == wanted
    assert [health.read(STAY, id).id for id in wanted] == wanted
    with pytest.raises(NotFoundError):
        health.read(STAY, number)
    # An id is looked for in its own table alone.
    text = health.explain(ask(token("_id", "eva-2")))
    assert f"{EVALUATION} e" in text
    assert APPOINTMENT not in text
    assert "hospitalization_date" not in text


def test_each_visit_is_served_once(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    # An evaluated appointment is its evaluation.
    pairs = sample.rows(
        f"SELECT id, appointment {EVALUATION} WHERE appointment IS NOT NULL"
    )
    assert len(pairs) == 80
    assert {f"eva-{evaluation}" for evaluation, _ in pairs} <= stays.keys()
    evaluated = {f"app-{appointment}" for _, appointment in pairs}
    assert not evaluated & stays.keys()
    for id in evaluated:
        with pytest.raises(GoneError):
            health.read(STAY, id)
    # An evaluation made during a stay is part of it.
    within = sample.texts(
        f"SELECT id {EVALUATION} WHERE inpatient_registration_code IS NOT NULL"
    )
    assert len(within) == 40
    assert not within & own_ids(stays, "eva-")
    with pytest.raises(NotFoundError):
        health.read(STAY, f"eva-{min(within)}")


def test_no_visit_is_served_twice_and_none_is_lost(odd: Adapter) -> None:
    served = stays_of(odd, ask(patient("7"), count=EVERY)).keys()
    # One visit in all three tables; visits of a cancelled stay; two evaluations of one.
    assert {"inp-9004", "app-9003", "eva-9003", "eva-9006", "eva-9007"} <= served
    assert not {"inp-9003", "app-9006"} & served
    for id, error in {
        "app-9004": GoneError,
        "app-9005": GoneError,
        "eva-9004": NotFoundError,
    }.items():
        assert id not in served
        with pytest.raises(error):
            odd.read(STAY, id)


def test_free_slots_and_cancelled_rows_are_no_stays(
    sample: Sample, health: Adapter
) -> None:
    free = sample.texts(f"SELECT id {APPOINTMENT} WHERE patient IS NULL")
    assert len(free) == 13
    for number in free:
        with pytest.raises(NotFoundError):
            health.read(STAY, f"app-{number}")
    for prefix, table, state in (
        ("inp-", REGISTRATION, "cancelled"),
        ("app-", APPOINTMENT, "user_cancelled"),
        ("app-", APPOINTMENT, "center_cancelled"),
        ("app-", APPOINTMENT, "no_show"),
    ):
        least = sample.number(f"SELECT MIN(id) {table} WHERE state = '{state}'")
        with pytest.raises(GoneError):
            health.read(STAY, f"{prefix}{least}")


def test_a_transfer_and_another_version_of_the_program(new_sample: NewSample) -> None:
    own = new_sample()
    adapter = own.open()
    # A transfer moves the whole stay to its new unit; the stamp keeps its microseconds.
    bed = own.number(
        "SELECT MIN(b.id) FROM gnuhealth_hospital_bed b"
        " JOIN gnuhealth_hospital_ward w ON w.id = b.ward"
        " JOIN gnuhealth_hospital_unit u ON u.id = w.unit WHERE u.code = 'CARD'"
    )
    own.run(
        f"UPDATE gnuhealth_inpatient_registration SET bed = {bed},"
        " write_date = '2026-11-20 23:51:55.996838' WHERE id = 1;"
    )
    moved = stay(adapter, "inp-1")
    assert moved.functional_unit == "CARD"
    assert moved.last_updated == datetime(2026, 11, 20, 23, 51, 55, 996838, UTC)
    # Another version of the program has other columns: it is refused at the start.
    own.run("ALTER TABLE gnuhealth_patient RENAME COLUMN party TO name;")
    problems = [problem for problem in adapter.check() if problem.serious]
    adapter.close()
    assert len(problems) >= 4
    assert not any(problem.outage for problem in problems)


# Status, class, unit, number


def test_several_states_are_one_status(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    found = {
        status: stays_of(health, ask(token("status", status), count=EVERY)).keys()
        for status in ("planned", "in-progress", "finished")
    }
    for status, ids in found.items():
        assert ids == {id for id, each in stays.items() if each.status == status}
        assert health.count(ask(token("status", status))) == len(ids)
    assert {id[:4] for id in found["planned"]} == {"inp-", "app-"}
    # `done` is about the bed, which is to be cleaned.
    done = sample.texts(f"SELECT id {REGISTRATION} WHERE state = 'done'")
    assert len(done) == 13
    assert {f"inp-{id}" for id in done} <= found["finished"]


def test_only_who_has_left_has_an_end(
    sample: Sample, odd: Adapter, stays: Stays
) -> None:
    ended = Counter(
        (each.status, each.end is not None)
        for id, each in stays.items()
        if id.startswith("inp-")
    )
    # Though each of them has a discharge date.
    assert not sample.texts(f"SELECT id {REGISTRATION} WHERE discharge_date IS NULL")
    assert ended == {
        ("finished", True): 380,
        ("planned", False): 49,
        ("in-progress", False): 27,
    }
    running = [s for id, s in stays.items() if id[:4] == "eva-" and s.end is None]
    assert {each.status for each in running} == {"in-progress"}
    found = stays_of(odd, ask(token("_id", "eva-9006", "eva-9007")))
    assert found["eva-9006"].end is not None
    assert (found["eva-9007"].status, found["eva-9007"].end) == ("in-progress", None)


def test_some_ends_were_only_expected(
    sample: Sample, stays: Stays, tmp_path: Path
) -> None:
    late = sample.texts(
        f"SELECT id {REGISTRATION} WHERE state IN ('done', 'finished')"
        " AND discharge_date > COALESCE(write_date, create_date)"
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


def test_class_comes_from_two_columns_and_the_table(
    sample: Sample, health: Adapter, stays: Stays, odd: Adapter
) -> None:
    classes = Counter(str(each.class_code) for each in stays.values())
    assert set(classes) == {"EMER", "IMP", "AMB"}
    for code, number in classes.items():
        assert health.count(ask(token("class", code))) == number
    emergencies = {id[:4] for id, s in stays.items() if s.class_code == "EMER"}
    assert emergencies == {"inp-", "app-", "eva-"}
    # Urgency makes an emergency, whatever the type.
    found: dict[str, set[str | None]] = {}
    for prefix, table, kind in (
        ("app-", APPOINTMENT, "appointment_type"),
        ("eva-", EVALUATION, "evaluation_type"),
    ):
        for id, type, urgency in sample.rows(f"SELECT id, {kind}, urgency {table}"):
            if each := stays.get(f"{prefix}{id}"):
                case = "urgent" if urgency == "c" else type
                found.setdefault(case, set()).add(each.class_code)
    assert found == {
        "urgent": {"EMER"},
        "outpatient": {"AMB"},
        "homecare": {"AMB"},
        "telemedicine": {"AMB"},
        "inpatient": {"IMP"},
    }
    # An appointment that says neither.
    assert stay(odd, "app-9001").class_code == "UNK"


def test_unit_through_bed_and_ward_and_stays_without(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    (bedless,) = sample.texts(f"SELECT id {REGISTRATION} WHERE bed IS NULL")
    own = {id: s for id, s in stays.items() if id.startswith("inp-")}
    assert own[f"inp-{bedless}"].functional_unit is None
    # The others lie in a bed without a ward or in a ward without a unit.
    assert sum(s.functional_unit is None for s in own.values()) == 21
    query = ask(token("service-provider._extension", "CARD"), count=EVERY)
    cardiology = {id for id, s in stays.items() if s.functional_unit == "CARD"}
    assert set(ids_of(health.search(query))) == cardiology
    # The same code in both houses: who provides it tells them apart.
    assert {stays[id].organization_id for id in cardiology} == {"1", "2"}


def test_visit_numbers_are_compared_whole(odd: Adapter) -> None:
    for number, ids in {
        "EVAL 2026/000002": {"eva-2"},
        # They are never ordered, and two appointments may have one.
        "INPAC100": {"inp-100"},
        "INPAC1000": {"inp-9004"},
        "APP 2026/3": {"app-3", "app-9003"},
    }.items():
        assert stays_of(odd, ask(token("identifier", number))).keys() == ids
    # Without a number there is none; an empty one is none either.
    assert stay(odd, "app-9001").visit_number is None


def test_stays_are_of_the_patient_and_not_of_the_party(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    ((who, party),) = sample.rows(
        "SELECT r.patient, p.party FROM gnuhealth_inpatient_registration r"
        " JOIN gnuhealth_patient p ON p.id = r.patient WHERE r.id = 1"
    )
    assert who != party
    assert stays["inp-1"].patient_id == str(who)
    number, count = Counter(s.patient_id for s in stays.values()).most_common(1)[0]
    found = stays_of(health, ask(patient(number)))
    assert len(found) == count
    assert sorted({id[:4] for id in found}) == PREFIXES


# Times


def test_times_are_utc_and_days_those_of_the_company(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    (zone,) = sample.texts("SELECT timezone FROM company_company")
    for each in stays.values():
        assert each.start
        assert (
            each.start.utcoffset() == each.start.astimezone(ZoneInfo(zone)).utcoffset()
        )
    # 00:30 and 01:30 in UTC: half past two in Paris, twice.
    for id, start in (
        ("inp-1", "2025-10-26T02:30:00+02:00"),
        ("inp-2", "2025-10-26T02:30:00+01:00"),
    ):
        began = stays[id].start
        assert began is not None
        assert began.isoformat() == start
    first = ids_of(health.search(ask(dates("2025-10-26T02:30:00+02:00"))))
    assert "inp-1" in first
    assert "inp-2" not in first
    # 23:30 in UTC on the last day of 2025.
    assert stays["inp-3"].start == datetime(2025, 12, 31, 23, 30, tzinfo=UTC)
    assert "inp-3" in ids_of(health.search(ask(dates("2026-01-01"))))
    assert "inp-3" not in ids_of(health.search(ask(dates("2025"), count=EVERY)))


def test_who_was_received_began_then(sample: Sample, stays: Stays) -> None:
    rows = sample.rows(
        f"SELECT id, checked_in_date {APPOINTMENT}"
        " WHERE checked_in_date IS NOT NULL AND state = 'checked_in'"
    )
    served = {f"app-{id}": str(at) for id, at in rows if f"app-{id}" in stays}
    assert served
    for id, at in served.items():
        assert stays[id].start == datetime.fromisoformat(at).replace(tzinfo=UTC)


def test_a_row_never_changed_is_as_old_as_itself(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    never = sample.rows(
        f"SELECT id, create_date {REGISTRATION} WHERE write_date IS NULL ORDER BY id"
    )
    assert len(never) == 26
    number, created = never[0]
    changed = stays[f"inp-{number}"].last_updated
    assert changed == datetime.fromisoformat(str(created)).replace(tzinfo=UTC)
    newest = Sort(SortKey.LAST_UPDATED, descending=True)
    first = ids_of(health.search(ask(sort=newest, count=len(never))))
    assert set(first) != {f"inp-{id}" for id, _ in never}


@pytest.mark.parametrize("key", [SortKey.DATE, SortKey.LAST_UPDATED])
def test_times_of_two_precisions_keep_their_order_over_pages(
    health: Adapter, stays: Stays, key: SortKey
) -> None:
    for descending in (True, False):
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
