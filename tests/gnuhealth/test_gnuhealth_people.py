"""Patients and institutions of GNU Health, on both databases."""

from collections import Counter

import pytest

from adapters.contract import (
    Adapter,
    NotFoundError,
    PatientRecord,
    ResourceType,
    StringMatch,
)
from adapters.testing.harness import (
    ORGANIZATION,
    PATIENT,
    ask,
    ids_of,
    patient,
    text,
    token,
)
from tests.gnuhealth.odd import FAULTS
from tests.gnuhealth.samples import EVERY, Sample, people_of, stays_of

People = dict[str, PatientRecord]


def person(adapter: Adapter, id: str) -> PatientRecord:
    """Return a patient."""
    found = adapter.read(PATIENT, id)
    assert isinstance(found, PatientRecord)
    return found


def test_each_patient_is_served_once(sample: Sample, people: People) -> None:
    assert people.keys() == sample.texts("SELECT id FROM gnuhealth_patient")


def test_a_second_language_makes_no_second_patient(odd: Adapter) -> None:
    found = odd.search(ask(of=PATIENT, count=EVERY))
    assert len(found.rows) == 200


def test_names_without_accents(health: Adapter) -> None:
    for plain, written in (
        ("lefevre", "Lefèvre"),
        ("nguyen", "Nguyễn"),
        ("soeur", "Sœur"),
        ("roy", "Roÿ"),
        ("l hopital", "L’Hôpital"),
        ("dubois", "Lacroix-Dubois"),
        ("O'BRIEN", "O’Brien"),
    ):
        found = [
            ids_of(health.search(ask(text("family", name), of=PATIENT, count=EVERY)))
            for name in (plain, written)
        ]
        assert found[0], plain
        assert set(found[1]) <= set(found[0])
        assert found[1], written


def test_exact_name_has_its_accents(health: Adapter) -> None:
    for name, there in (("Lefèvre", True), ("Lefevre", False)):
        asked = text("family", name, match=StringMatch.EXACT)
        assert bool(health.search(ask(asked, of=PATIENT)).rows) is there


def test_family_and_given_are_not_mixed_up(sample: Sample, people: People) -> None:
    rows = sample.rows(
        "SELECT p.id, pa.lastname, pa.name FROM gnuhealth_patient p"
        " JOIN party_party pa ON pa.id = p.party WHERE pa.lastname <> ''"
    )
    assert len(rows) == 195
    for number, lastname, name in rows:
        official = people[str(number)].names[0]
        assert official.family == lastname
        assert " ".join(official.given) == name


def test_name_of_the_screens_counts(own: Sample) -> None:
    own.run(
        "UPDATE gnuhealth_person_name SET family = 'Autrement'"
        " WHERE party = 12 AND use = 'official';"
    )
    adapter = own.open()
    found = people_of(adapter, ask(text("family", "autrement"), of=PATIENT))
    adapter.close()
    assert found.keys() == {"2"}


def test_unidentified_patients_have_no_family_name(odd: Adapter) -> None:
    # Four with '' and one with NULL.
    found = people_of(odd, ask(text("name", "inconnu"), of=PATIENT))
    assert len(found) == 5
    for unknown in found.values():
        assert [name.family for name in unknown.names] == [None]
        assert (unknown.birth_date, unknown.gender) == (None, "unknown")


def test_empty_and_missing_are_the_same(odd: Adapter) -> None:
    # The given name of the screens is '': the one of the party stands in.
    assert person(odd, "2").names[0].given == ("André",)


def test_maiden_name_is_a_name_of_its_own(health: Adapter, people: People) -> None:
    maiden = {i for i, p in people.items() if any(n.use == "maiden" for n in p.names)}
    assert len(maiden) == 18
    asked = ask(text("family", "gerard"), of=PATIENT, count=EVERY)
    assert {"7", "22"} <= set(ids_of(health.search(asked)))


def test_gender_is_the_administrative_one(health: Adapter, people: People) -> None:
    genders = Counter(p.gender for p in people.values())
    assert genders == {"female": 107, "male": 84, "unknown": 5, "other": 4}
    for gender, number in genders.items():
        assert gender
        assert health.count(ask(token("gender", gender), of=PATIENT)) == number


def test_two_flags_say_who_is_active(people: People) -> None:
    assert {id for id, p in people.items() if not p.active} == {"21", "22"}


def test_inactive_patients_and_their_stays_are_served(
    sample: Sample, health: Adapter
) -> None:
    for number in ("21", "22"):
        held = sample.number(
            "SELECT COUNT(*) FROM gnuhealth_inpatient_registration"
            f" WHERE patient = {number} AND state <> 'cancelled'"
        )
        found = stays_of(health, ask(patient(number), count=EVERY))
        assert held == sum(id.startswith("inp-") for id in found) > 0


def test_flag_that_nobody_set_means_active(own: Sample) -> None:
    own.run("UPDATE gnuhealth_patient SET active = NULL WHERE id = 2;")
    adapter = own.open()
    assert person(adapter, "2").active
    adapter.close()


def test_merged_patient_is_followed(odd_sample: Sample, odd: Adapter) -> None:
    held = "SELECT DISTINCT patient FROM gnuhealth_inpatient_registration"
    assert {"2", "5", "9"} <= odd_sample.texts(held)
    # 9 into 5, and 5 into 2: one chain.
    first = person(odd, "9")
    assert (first.active, first.replaced_by) == (False, "5")
    merged = person(odd, "5")
    assert (merged.active, merged.replaced_by) == (False, "2")
    found = stays_of(odd, ask(patient("5"), count=EVERY))
    assert "app-9001" in found
    assert {stay.patient_id for stay in found.values()} == {"2"}
    for id in ("2", "9"):
        assert stays_of(odd, ask(patient(id), count=EVERY)) == found
        # Two rows of patient 2 are faults, which are counted.
        assert odd.count(ask(patient(id))) == len(found) + len(FAULTS)


def test_death_has_its_date_elsewhere(people: People) -> None:
    dead = [person for person in people.values() if person.deceased]
    assert len(dead) == 3
    assert all(person.deceased_at for person in dead)


def test_numbers_of_a_patient(odd: Adapter) -> None:
    numbers = person(odd, "2").identifiers
    assert [identifier.system for identifier in numbers] == [
        "urn:oid:1.2.250.1.999.10.2",
        "urn:oid:1.2.250.1.999.10.3",
    ]
    for identifier in numbers:
        asked = ask(token("identifier", identifier.value), of=PATIENT)
        assert ids_of(odd.search(asked)) == ["2"]


def test_numbers_of_a_free_kind_are_left_out(odd: Adapter) -> None:
    assert "ANY-9002" not in [each.value for each in person(odd, "2").identifiers]
    asked = ask(token("identifier", "ANY-9002"), of=PATIENT)
    assert ids_of(odd.search(asked)) == []


def test_numbers_of_nobody_are_nobodys(sample: Sample, people: People) -> None:
    table = "gnuhealth_person_alternative_identification"
    assert sample.number(f"SELECT COUNT(*) FROM {table}") == 259
    assert not sample.texts(f"SELECT id FROM {table} WHERE party IS NOT NULL")
    assert {len(person.identifiers) for person in people.values()} == {1}


def test_address_is_that_of_the_household(odd: Adapter) -> None:
    (home,) = person(odd, "2").addresses
    assert home.lines == ("7", "rue des Lilas\nbâtiment B")
    assert (home.postal_code, home.city) == ("25000", "Besançon")


def test_patients_without_a_household_have_no_address(people: People) -> None:
    assert sum(not person.addresses for person in people.values()) == 8


def test_patient_has_no_time_of_change(health: Adapter, people: People) -> None:
    assert {person.last_updated for person in people.values()} == {None}
    assert not health.capabilities[PATIENT].dated


def test_institutions(health: Adapter) -> None:
    found = health.search(ask(of=ResourceType.ORGANIZATION))
    assert ids_of(found) == ["1", "2"]
    by_name = ask(text("name", "epine noire"), of=ORGANIZATION)
    assert ids_of(health.search(by_name)) == ["1"]


def test_units_and_wards_are_no_organizations(sample: Sample, health: Adapter) -> None:
    units = sample.texts("SELECT id FROM gnuhealth_hospital_unit")
    assert {"1", "2", "11"} <= units
    with pytest.raises(NotFoundError):
        health.read(ORGANIZATION, "11")
