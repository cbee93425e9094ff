"""Which rows of GNU Health's three tables are stays: each visit once, on both databases."""

from collections import Counter

import pytest

from adapters.contract import Adapter, EncounterRecord, GoneError, NotFoundError
from adapters.testing.harness import STAY, ask, patient, token
from tests.gnuhealth.samples import EVERY, Sample, own_ids, stays_of

Stays = dict[str, EncounterRecord]


def test_an_evaluated_appointment_is_its_evaluation(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    pairs = sample.rows(
        "SELECT id, appointment FROM gnuhealth_patient_evaluation"
        " WHERE appointment IS NOT NULL"
    )
    assert len(pairs) == 80
    assert {f"eva-{evaluation}" for evaluation, _ in pairs} <= stays.keys()
    evaluated = {f"app-{appointment}" for _, appointment in pairs}
    assert not evaluated & stays.keys()
    for id in evaluated:
        with pytest.raises(GoneError):
            health.read(STAY, id)


def test_an_evaluation_made_during_a_stay_is_part_of_it(
    sample: Sample, health: Adapter, stays: Stays
) -> None:
    within = sample.texts(
        "SELECT id FROM gnuhealth_patient_evaluation"
        " WHERE inpatient_registration_code IS NOT NULL"
    )
    assert len(within) == 40
    assert not within & own_ids(stays, "eva-")
    with pytest.raises(NotFoundError):
        health.read(STAY, f"eva-{min(within)}")


def test_one_visit_in_all_three_tables_is_served_once(odd: Adapter) -> None:
    served = stays_of(odd, ask(patient("7"), count=EVERY)).keys()
    others = {
        "app-9004": GoneError,
        "app-9005": GoneError,
        "eva-9004": NotFoundError,
    }
    assert "inp-9004" in served
    assert not others.keys() & served
    for id, error in others.items():
        with pytest.raises(error):
            odd.read(STAY, id)


def test_visits_of_a_cancelled_stay_are_not_lost(odd: Adapter) -> None:
    served = stays_of(odd, ask(patient("7"), count=EVERY)).keys()
    assert {"app-9003", "eva-9003"} <= served
    assert "inp-9003" not in served


def test_two_evaluations_of_one_appointment_are_two(odd: Adapter) -> None:
    served = stays_of(odd, ask(patient("7"), count=EVERY))
    assert {"eva-9006", "eva-9007"} <= served.keys()
    assert "app-9006" not in served


def test_free_slot_is_no_stay(sample: Sample, health: Adapter) -> None:
    free = sample.texts("SELECT id FROM gnuhealth_appointment WHERE patient IS NULL")
    assert len(free) == 13
    for number in free:
        with pytest.raises(NotFoundError):
            health.read(STAY, f"app-{number}")


def test_cancelled_and_missed_are_not_served(sample: Sample, health: Adapter) -> None:
    cancelled = sample.texts(
        "SELECT id FROM gnuhealth_inpatient_registration WHERE state = 'cancelled'"
    )
    with pytest.raises(GoneError):
        health.read(STAY, f"inp-{min(cancelled)}")
    for state in ("user_cancelled", "center_cancelled", "no_show"):
        number = sample.number(
            f"SELECT MIN(id) FROM gnuhealth_appointment WHERE state = '{state}'"
        )
        with pytest.raises(GoneError):
            health.read(STAY, f"app-{number}")


def test_an_appointment_that_became_part_of_a_stay_is_removed(own: Sample) -> None:
    adapter = own.open()
    number = own.number(
        "SELECT MIN(id) FROM gnuhealth_appointment WHERE state = 'confirmed' AND patient IS"
        " NOT NULL AND id NOT IN (SELECT appointment FROM gnuhealth_patient_evaluation"
        " WHERE appointment IS NOT NULL)"
    )
    id = f"app-{number}"
    assert adapter.read(STAY, id).id == id
    own.run(
        "UPDATE gnuhealth_appointment SET inpatient_registration_code = 501"
        f" WHERE id = {number};"
    )
    with pytest.raises(GoneError):
        adapter.read(STAY, id)
    assert id not in stays_of(adapter, ask(count=EVERY))
    adapter.close()


def test_class_comes_from_two_columns_and_the_table(
    health: Adapter, stays: Stays
) -> None:
    classes = Counter(stay.class_code for stay in stays.values())
    assert set(classes) == {"EMER", "IMP", "AMB"}
    for code, number in classes.items():
        assert code
        assert health.count(ask(token("class", code))) == number
    emergencies = {id[:4] for id, s in stays.items() if s.class_code == "EMER"}
    assert emergencies == {"inp-", "app-", "eva-"}


def test_urgency_makes_an_emergency_whatever_the_type(
    sample: Sample, stays: Stays, odd: Adapter
) -> None:
    urgent = sample.texts("SELECT id FROM gnuhealth_appointment WHERE urgency = 'c'")
    served = own_ids(stays, "app-") & urgent
    assert served
    assert {stays[f"app-{id}"].class_code for id in served} == {"EMER"}
    # An appointment that says neither.
    (untyped,) = stays_of(odd, ask(token("_id", "app-9001"))).values()
    assert untyped.class_code == "UNK"


def test_every_type_of_visit_has_a_class(sample: Sample, stays: Stays) -> None:
    found: dict[str, set[str | None]] = {}
    for prefix, table, kind in (
        ("app-", "gnuhealth_appointment", "appointment_type"),
        ("eva-", "gnuhealth_patient_evaluation", "evaluation_type"),
    ):
        query = f"SELECT id, {kind} FROM {table} WHERE urgency <> 'c'"
        for id, type in sample.rows(query):
            if stay := stays.get(f"{prefix}{id}"):
                found.setdefault(type, set()).add(stay.class_code)
    assert found == {
        "outpatient": {"AMB"},
        "homecare": {"AMB"},
        "telemedicine": {"AMB"},
        "inpatient": {"IMP"},
    }


def test_deleted_row_is_gone(own: Sample) -> None:
    adapter = own.open()
    before = adapter.count(ask())
    assert adapter.read(STAY, "inp-501").id == "inp-501"
    own.run("DELETE FROM gnuhealth_inpatient_registration WHERE id = 501;")
    with pytest.raises(NotFoundError):
        adapter.read(STAY, "inp-501")
    assert adapter.count(ask()) == before - 1
    adapter.close()


def test_version_with_other_columns_is_refused_at_the_start(own: Sample) -> None:
    own.run("ALTER TABLE gnuhealth_patient RENAME COLUMN party TO name;")
    adapter = own.open()
    problems = [problem for problem in adapter.check() if problem.serious]
    adapter.close()
    assert len(problems) >= 4
    assert not any(problem.outage for problem in problems)
