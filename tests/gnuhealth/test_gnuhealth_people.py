"""Patients and institutions of GNU Health, on both databases."""

from collections import Counter

import pytest

from adapters.contract import Adapter, NotFoundError, PatientRecord, StringMatch
from tests.gnuhealth.conftest import NewSample
from tests.gnuhealth.odd import FAULTS
from tests.gnuhealth.samples import EVERY, Sample, people_of, stays_of
from toolkit.contract.harness import (
    ORGANIZATION,
    PATIENT,
    ask,
    ids_of,
    patient,
    text,
    token,
)

People = dict[str, PatientRecord]


def person(adapter: Adapter, id: str) -> PatientRecord:
    found = adapter.read(PATIENT, id)
    assert isinstance(found, PatientRecord)
    return found


def by_family(adapter: Adapter, name: str, **match: StringMatch) -> set[str]:
    query = ask(text("family", name, **match), of=PATIENT, count=EVERY)
    return set(ids_of(adapter.search(query)))


def test_each_patient_is_served_once(
    sample: Sample, people: People, odd: Adapter
) -> None:
    assert people.keys() == sample.texts("SELECT id FROM gnuhealth_patient")
    # A second language makes no second patient.
    assert len(odd.search(ask(of=PATIENT, count=EVERY)).rows) == 200


def test_names_are_those_of_the_screens(
    sample: Sample, people: People, health: Adapter, odd: Adapter
) -> None:
    rows = sample.rows(
        "SELECT p.id, pa.lastname, pa.name FROM gnuhealth_patient p"
        " JOIN party_party pa ON pa.id = p.party WHERE pa.lastname <> ''"
    )
    assert len(rows) == 195
    for number, lastname, name in rows:
        official = people[str(number)].names[0]
        assert official.family == lastname
        assert " ".join(official.given) == name
    # The given name of the screens is '': the one of the party stands in.
    assert person(odd, "2").names[0].given == ("André",)
    # Unidentified patients have no family name: four with '' and one with NULL.
    found = people_of(odd, ask(text("name", "inconnu"), of=PATIENT))
    assert len(found) == 5
    for unknown in found.values():
        assert [name.family for name in unknown.names] == [None]
        assert (unknown.birth_date, unknown.gender) == (None, "unknown")
    # A maiden name is a name of its own.
    maiden = {i for i, p in people.items() if any(n.use == "maiden" for n in p.names)}
    assert len(maiden) == 18
    assert {"7", "22"} <= by_family(health, "gerard")


def test_gender_is_the_administrative_one(health: Adapter, people: People) -> None:
    genders = Counter(str(p.gender) for p in people.values())
    assert genders == {"female": 107, "male": 84, "unknown": 5, "other": 4}
    for gender, number in genders.items():
        assert health.count(ask(token("gender", gender), of=PATIENT)) == number


def test_inactive_patients_and_their_stays_are_served(
    sample: Sample, health: Adapter, people: People
) -> None:
    # Two flags say who is active.
    assert {id for id, p in people.items() if not p.active} == {"21", "22"}
    for number in ("21", "22"):
        held = sample.number(
            "SELECT COUNT(*) FROM gnuhealth_inpatient_registration"
            f" WHERE patient = {number} AND state <> 'cancelled'"
        )
        found = stays_of(health, ask(patient(number), count=EVERY))
        assert held == sum(id.startswith("inp-") for id in found) > 0


def test_changed_names_and_flags_that_nobody_set(new_sample: NewSample) -> None:
    own = new_sample()
    own.run(
        "UPDATE gnuhealth_person_name SET family = 'Autrement'"
        " WHERE party = 12 AND use = 'official';"
        "\nUPDATE gnuhealth_patient SET active = NULL WHERE id = 2;"
    )
    adapter = own.open()
    assert by_family(adapter, "autrement") == {"2"}
    assert person(adapter, "2").active
    adapter.close()


def test_merged_patient_is_followed(odd_sample: Sample, odd: Adapter) -> None:
    held = "SELECT DISTINCT patient FROM gnuhealth_inpatient_registration"
    assert {"2", "5", "9"} <= odd_sample.texts(held)
    # 9 into 5, and 5 into 2: one chain.
    for id, survivor in (("9", "5"), ("5", "2")):
        merged = person(odd, id)
        assert (merged.active, merged.replaced_by) == (False, survivor)
    found = stays_of(odd, ask(patient("5"), count=EVERY))
    assert "app-9001" in found
    assert {stay.patient_id for stay in found.values()} == {"2"}
    for id in ("2", "9"):
        assert stays_of(odd, ask(patient(id), count=EVERY)) == found
        # Two rows of patient 2 are faults, which are counted.
        assert odd.count(ask(patient(id))) == len(found) + len(FAULTS)


def test_death_address_and_time_of_change(
    people: People, odd: Adapter, health: Adapter
) -> None:
    dead = [person for person in people.values() if person.deceased]
    assert len(dead) == 3
    assert all(person.deceased_at for person in dead)
    (home,) = person(odd, "2").addresses
    assert home.lines == ("7", "rue des Lilas\nbâtiment B")
    assert (home.postal_code, home.city) == ("25000", "Besançon")
    assert sum(not person.addresses for person in people.values()) == 8
    assert {person.last_updated for person in people.values()} == {None}
    assert not health.capabilities[PATIENT].dated


def test_numbers_of_a_patient(sample: Sample, people: People, odd: Adapter) -> None:
    numbers = person(odd, "2").identifiers
    assert [identifier.system for identifier in numbers] == [
        "urn:oid:1.2.250.1.999.10.2",
        "urn:oid:1.2.250.1.999.10.3",
    ]
    # Those of a free kind are left out.
    for value, ids in (*((each.value, ["2"]) for each in numbers), ("ANY-9002", [])):
        assert ids_of(odd.search(ask(token("identifier", value), of=PATIENT))) == ids
    # Those of nobody are nobody's.
    table = "gnuhealth_person_alternative_identification"
    assert sample.number(f"SELECT COUNT(*) FROM {table}") == 259
    assert not sample.texts(f"SELECT id FROM {table} WHERE party IS NOT NULL")
    assert {len(person.identifiers) for person in people.values()} == {1}


def test_institutions_alone_are_organizations(sample: Sample, health: Adapter) -> None:
    assert ids_of(health.search(ask(of=ORGANIZATION))) == ["1", "2"]
    by_name = ask(text("name", "epine noire"), of=ORGANIZATION)
    assert ids_of(health.search(by_name)) == ["1"]
    units = sample.texts("SELECT id FROM gnuhealth_hospital_unit")
    assert {"1", "2", "11"} <= units
    with pytest.raises(NotFoundError):
        health.read(ORGANIZATION, "11")
