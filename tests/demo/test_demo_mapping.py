"""The demo's mapping file reads the demo hospital, all of it, as the decisions say."""

import re
from collections.abc import Iterator

import pytest

from adapters.contract import (
    EncounterRecord,
    PatientRecord,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
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


# --------------------------------------------------------------------------- patients


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
