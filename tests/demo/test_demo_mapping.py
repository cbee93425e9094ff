"""The demo's mapping file reads the demo hospital, all of it, as the decisions say."""

import re
from collections.abc import Iterator

import pytest

from adapters.contract import (
    EncounterRecord,
    GoneError,
    NotFoundError,
    PatientRecord,
    Record,
    ReferenceCriterion,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    StringCriterion,
    Token,
    TokenCriterion,
)
from demo.people import CANARIES, CANARY_INS, CANARY_PATIENT
from tests.demo.filled import Filled

FHIR_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}")
INS_SYSTEM = "urn:oid:1.2.250.1.213.1.4.10"
SERVED = "etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL"


def _query(kind: ResourceType, *criteria: object, count: int = 100) -> SearchQuery:
    return SearchQuery(kind, criteria, Sort(SortKey.ID), count)  # type: ignore[arg-type]


def _walk(hospital: Filled, query: SearchQuery) -> Iterator[Record | RowFault]:
    """Yield every row of a search, page by page."""
    for _ in range(100):
        page = hospital.adapter.search(query)
        yield from page.rows
        if not page.more:
            return
        query = SearchQuery(
            query.resource_type, query.criteria, query.sort, query.count, page.last
        )
    raise AssertionError("the walk does not end")


def _token(parameter: str, code: str, system: str | None = None) -> TokenCriterion:
    return TokenCriterion(parameter, (Token(system, code),))


def test_source_fits_the_mapping(hospital: Filled) -> None:
    assert list(hospital.adapter.check()) == []


def test_every_stay_is_served_or_a_fault(hospital: Filled) -> None:
    rows = list(_walk(hospital, _query(ResourceType.ENCOUNTER)))
    assert len(rows) == hospital.number(f"SELECT COUNT(*) FROM sejour WHERE {SERVED}")
    faults = [row for row in rows if isinstance(row, RowFault)]
    assert {fault.column for fault in faults} == {"etat"}
    assert len(faults) == 5


def test_every_patient_is_served_but_those_with_an_unmapped_sex(
    hospital: Filled,
) -> None:
    rows = list(_walk(hospital, _query(ResourceType.PATIENT)))
    assert len(rows) == hospital.summary["patient"]
    assert {row.column for row in rows if isinstance(row, RowFault)} == {"sexe"}


@pytest.mark.parametrize("kind", ResourceType)
def test_ids_and_references_are_fhir_ids(hospital: Filled, kind: ResourceType) -> None:
    records = [r for r in _walk(hospital, _query(kind)) if not isinstance(r, RowFault)]
    ids = [record.id for record in records]
    for record in records:
        if isinstance(record, EncounterRecord):
            ids += [record.patient_id, str(record.organization_id)]
        if isinstance(record, PatientRecord) and record.replaced_by:
            ids.append(record.replaced_by)
    assert len(records) > 3
    assert all(FHIR_ID.fullmatch(id) for id in ids)


@pytest.mark.parametrize(
    ("code", "states"),
    [
        ("planned", "'P', 'PA'"),
        ("in-progress", "'E', 'EC', 'R'"),
        ("finished", "'S', 'T', 'F'"),
    ],
)
def test_status_finds_each_of_its_codes(
    hospital: Filled, code: str, states: str
) -> None:
    query = _query(ResourceType.ENCOUNTER, _token("status", code))
    there = hospital.number(f"SELECT COUNT(*) FROM sejour WHERE etat IN ({states})")
    assert hospital.adapter.count(query) == there > 0


def test_class_unknown_finds_what_nobody_mapped(hospital: Filled) -> None:
    query = _query(ResourceType.ENCOUNTER, _token("class", "UNK"))
    there = f"""SELECT COUNT(*) FROM sejour WHERE ({SERVED})
      AND (type_sejour IN ('ZZZ', '') OR type_sejour IS NULL)"""
    assert hospital.adapter.count(query) == hospital.number(there) > 0


def test_visit_number_is_one_hospitals(hospital: Filled) -> None:
    shared = hospital.first(
        f"""SELECT num_venue FROM sejour WHERE num_venue <> '' AND ({SERVED})
        GROUP BY num_venue HAVING COUNT(*) = 2 ORDER BY num_venue LIMIT 1"""
    )
    query = _query(ResourceType.ENCOUNTER, _token("identifier", shared))
    stays = [r for r in _walk(hospital, query) if isinstance(r, EncounterRecord)]
    systems = {stay.visit_number_system for stay in stays}
    assert len(stays) == len(systems) == 2
    for system in systems:
        one = _query(ResourceType.ENCOUNTER, _token("identifier", shared, system or ""))
        assert hospital.adapter.count(one) == 1


def test_cancelled_is_not_found_and_deleted_is_gone(hospital: Filled) -> None:
    for state, error in [("A", NotFoundError), ("X", GoneError), ("SUP", GoneError)]:
        stay = hospital.first(f"SELECT sejour_id FROM sejour WHERE etat = '{state}'")
        with pytest.raises(error):
            hospital.adapter.read(ResourceType.ENCOUNTER, stay)


def test_a_state_nobody_mapped_is_a_fault_on_read(hospital: Filled) -> None:
    stay = hospital.first("SELECT sejour_id FROM sejour WHERE etat = 'Q7'")
    with pytest.raises(SourceDataError) as error:
        hospital.adapter.read(ResourceType.ENCOUNTER, stay)
    assert error.value.fault is not None
    assert error.value.fault.column == "etat"


def _stay(hospital: Filled, condition: str) -> EncounterRecord:
    id = hospital.first(f"SELECT sejour_id FROM sejour WHERE {condition}")
    record = hospital.adapter.read(ResourceType.ENCOUNTER, id)
    assert isinstance(record, EncounterRecord)
    return record


def test_half_past_two_in_autumn_is_the_first(hospital: Filled) -> None:
    start = _stay(hospital, "date_entree = '2023-10-29 02:30:00'").start
    assert start is not None
    assert start.isoformat() == "2023-10-29T02:30:00+02:00"


def test_a_stay_until_2999_has_no_end(hospital: Filled) -> None:
    assert _stay(hospital, "date_sortie > '2999-01-01'").end is None


# --------------------------------------------------------------------------- patients


def _patient(hospital: Filled, id: str) -> PatientRecord:
    record = hospital.adapter.read(ResourceType.PATIENT, id)
    assert isinstance(record, PatientRecord)
    return record


def test_national_number_is_of_qualified_identities_only(hospital: Filled) -> None:
    qualified = hospital.column(
        """SELECT n.patient_id FROM identifiant_patient n JOIN identite i
        ON i.patient_id = n.patient_id AND i.statut = 'QUAL'
        WHERE n.domaine = 'INS-NIR' AND COALESCE(i.sexe, '') <> 'Z'"""
    )
    served = [
        record.id
        for record in _walk(hospital, _query(ResourceType.PATIENT))
        if isinstance(record, PatientRecord)
        if INS_SYSTEM in {identifier.system for identifier in record.identifiers}
    ]
    assert sorted(served) == sorted(qualified)


def test_national_number_finds_qualified_identities_only(hospital: Filled) -> None:
    for state, found in [("QUAL", 1), ("VALI", 0), ("RECU", 0)]:
        number = hospital.first(
            f"""SELECT n.valeur FROM identifiant_patient n JOIN identite i
            ON i.patient_id = n.patient_id AND i.statut = '{state}'
            WHERE n.domaine = 'INS-NIR'"""
        )
        query = _query(ResourceType.PATIENT, _token("identifier", number, INS_SYSTEM))
        assert hospital.adapter.count(query) == found


def test_canaries_are_of_one_patient_and_can_be_served(hospital: Filled) -> None:
    query = _query(ResourceType.PATIENT, _token("identifier", CANARY_INS))
    (patient,) = _walk(hospital, query)
    assert isinstance(patient, PatientRecord)
    assert patient.id == str(CANARY_PATIENT)
    assert all(canary in repr(patient) for canary in CANARIES)
    others = [r for r in _walk(hospital, _query(ResourceType.PATIENT)) if r != patient]
    assert not any(canary in repr(others) for canary in CANARIES)


def test_a_merged_file_is_inactive_and_finds_the_survivors_stays(
    hospital: Filled,
) -> None:
    for old, survivor in [("17", "15"), ("18", "15")]:
        record = _patient(hospital, old)
        assert (record.active, record.replaced_by) == (False, survivor)
        counts = {
            hospital.adapter.count(
                _query(ResourceType.ENCOUNTER, ReferenceCriterion("patient", (id,)))
            )
            for id in (old, survivor)
        }
        assert len(counts) == 1


@pytest.mark.parametrize(
    ("parameter", "text"),
    [("name", "CÀNARI"), ("family", "canarivel"), ("name", "canarivel")],
)
def test_names_are_found_without_accents(
    hospital: Filled, parameter: str, text: str
) -> None:
    query = _query(ResourceType.PATIENT, StringCriterion(parameter, (text,)))
    assert hospital.adapter.count(query) == 1


def test_a_death_has_its_time_and_an_unknown_birth_is_none(hospital: Filled) -> None:
    dead = _patient(hospital, "7")
    assert dead.deceased_at is not None
    assert hospital.column("SELECT heure_deces FROM patient WHERE patient_id = 7") == [
        dead.deceased_at.strftime("%H:%M")
    ]
    assert _patient(hospital, "11").birth_date is None


def test_each_house_has_its_own_number_for_a_patient(hospital: Filled) -> None:
    (both,) = hospital.column(
        "SELECT MIN(patient_id) FROM identifiant_patient WHERE domaine = 'IPP-CHB'"
    )
    numbers = [i for i in _patient(hospital, both).identifiers if i.type == "PI"]
    assert {number.assigner_id for number in numbers} == {"2", "3"}
    assert len({number.system for number in numbers}) == 2
