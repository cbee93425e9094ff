"""The mapping files of the demo and of group B read the demo hospital, all of it."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    EncounterRecord,
    NotFoundError,
    PatientRecord,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from demo.people import CANARIES, CANARY_INS, CANARY_PATIENT
from tests.demo.filled import Filled
from tests.live import ROOT
from toolkit.contract.harness import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    patient,
    text,
    token,
)

FHIR_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}")
INS_SYSTEM = "urn:oid:1.2.250.1.213.1.4.10"
SERVED = "etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL"


def _every(adapter: Adapter, kind: ResourceType) -> Iterator[Record | RowFault]:
    """Yield every row of a resource type, page by page."""
    query = ask(of=kind, sort=Sort(SortKey.ID), count=100)
    for _ in range(100):
        page = adapter.search(query)
        yield from page.rows
        if not page.more:
            return
        query = replace(query, after=page.last)
    raise AssertionError("the walk does not end")


def test_every_row_is_served_or_a_fault_and_ids_are_fhir_ids(hospital: Filled) -> None:
    assert list(hospital.adapter.check()) == []
    rows = {kind: list(_every(hospital.adapter, kind)) for kind in ResourceType}
    served = hospital.number(f"SELECT COUNT(*) FROM sejour WHERE {SERVED}")
    assert len(rows[STAY]) == served
    assert len(rows[PATIENT]) == hospital.summary["patient"]
    faults = [row for row in rows[STAY] if isinstance(row, RowFault)]
    assert {fault.column for fault in faults} == {"etat"}
    assert len(faults) == 5
    assert {r.column for r in rows[PATIENT] if isinstance(r, RowFault)} == {"sexe"}
    for each in rows.values():
        records = [row for row in each if not isinstance(row, RowFault)]
        ids = [record.id for record in records]
        for record in records:
            if isinstance(record, EncounterRecord):
                ids += [record.patient_id, str(record.organization_id)]
            if isinstance(record, PatientRecord) and record.replaced_by:
                ids.append(record.replaced_by)
        assert len(records) > 3
        assert all(FHIR_ID.fullmatch(id) for id in ids)
    # Canaries are of one patient, who can be served.
    query = ask(token("identifier", CANARY_INS), of=PATIENT)
    (canary,) = hospital.adapter.search(query).rows
    assert isinstance(canary, PatientRecord)
    assert canary.id == str(CANARY_PATIENT)
    assert all(each in repr(canary) for each in CANARIES)
    others = repr([row for row in rows[PATIENT] if row != canary])
    assert not any(each in others for each in CANARIES)


def test_national_number_finds_qualified_identities_only(hospital: Filled) -> None:
    for state, found in [("QUAL", 1), ("VALI", 0), ("RECU", 0)]:
        number = hospital.first(
            f"""SELECT n.valeur FROM identifiant_patient n JOIN identite i
            ON i.patient_id = n.patient_id AND i.statut = '{state}'
            WHERE n.domaine = 'INS-NIR'"""
        )
        query = ask(token("identifier", f"{INS_SYSTEM}|{number}"), of=PATIENT)
        assert hospital.adapter.count(query) == found


def test_the_views_of_group_b_show_the_same_stays(hospital: Filled) -> None:
    file = ROOT / "mappings" / "group-b" / "group-b.yaml"
    mapping = load_mapping(file, {"PAS_URL": hospital.url})
    # Who made the tables may change them.
    mapping = replace(mapping, source=replace(mapping.source, may_write=True))
    tables = hospital.adapter
    merged, survivor = hospital.row(
        "SELECT patient_id, fusion_vers FROM patient WHERE fusion_vers IS NOT NULL"
    )
    queries: list[SearchQuery] = [
        *(ask(dates(when)) for when in ("ge2024-06-01", "2024-06")),
        *(ask(patient(id)) for id in ("158", merged)),
        ask(text("name", "martin"), of=PATIENT),
    ]
    with closing(open_adapter(mapping)) as views:
        assert list(views.check()) == []
        every = ask(count=10_000)
        rows = views.search(every).rows
        assert len(rows) == views.count(ask()) > 1900
        for row, expected in zip(rows, tables.search(every).rows, strict=True):
            if isinstance(expected, RowFault):
                assert isinstance(row, RowFault)
                assert row.column == "situation"
            else:
                assert row == expected
        for query in queries:
            assert views.count(query) == tables.count(query) > 0
        assert views.read(STAY, "8") == tables.read(STAY, "8")
        record = views.read(PATIENT, merged)
        assert isinstance(record, PatientRecord)
        assert (record.active, record.replaced_by) == (False, survivor)
        assert views.read(ORGANIZATION, "2").id == "2"
        with pytest.raises(NotFoundError):
            views.read(ORGANIZATION, "99")
