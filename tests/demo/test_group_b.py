"""The mapping of group B reads the views of the demo hospital, in each database."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    NotFoundError,
    Record,
    RowFault,
    SearchQuery,
)
from adapters.mapping.load import load_mapping
from adapters.testing.harness import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    patient,
    text,
)
from tests.demo.filled import Filled
from tests.live import ROOT

MAPPING = ROOT / "mappings" / "group-b" / "group-b.yaml"


@pytest.fixture(scope="module")
def group_b(hospital: Filled) -> Iterator[Adapter]:
    mapping = load_mapping(MAPPING, {"PAS_URL": hospital.url})
    # Who made the tables may change them.
    mapping = replace(mapping, source=replace(mapping.source, may_write=True))
    adapter = open_adapter(mapping)
    yield adapter
    adapter.close()


def _rows(adapter: Adapter, query: SearchQuery) -> list[Record | RowFault]:
    return list(adapter.search(replace(query, count=10_000)).rows)


def test_the_views_fit_the_mapping(group_b: Adapter) -> None:
    assert list(group_b.check()) == []


def test_stays_are_those_of_the_tables_newest_first(
    hospital: Filled, group_b: Adapter
) -> None:
    of_tables, of_views = _rows(hospital.adapter, ask()), _rows(group_b, ask())
    assert len(of_views) == group_b.count(ask()) > 1900
    for table_row, view_row in zip(of_tables, of_views, strict=True):
        if isinstance(table_row, RowFault):
            assert isinstance(view_row, RowFault)
            assert view_row.column == "situation"
        else:
            assert view_row == table_row


def test_stays_of_a_day_of_a_patient_and_by_id(
    hospital: Filled, group_b: Adapter
) -> None:
    merged = hospital.first(
        "SELECT patient_id FROM patient WHERE fusion_vers IS NOT NULL"
    )
    for query in (
        ask(dates("ge2024-06-01")),
        ask(dates("2024-06")),
        ask(patient("158")),
        ask(patient(merged)),
    ):
        assert group_b.count(query) == hospital.adapter.count(query) > 0
    assert group_b.read(STAY, "8") == hospital.adapter.read(STAY, "8")


def test_patients_by_name_and_houses_by_id(hospital: Filled, group_b: Adapter) -> None:
    query = ask(text("name", "martin"), of=PATIENT)
    assert group_b.count(query) == hospital.adapter.count(query) > 0
    merged = hospital.first(
        "SELECT patient_id FROM patient WHERE fusion_vers IS NOT NULL"
    )
    survivor = hospital.first(
        f"SELECT fusion_vers FROM patient WHERE patient_id = {merged}"
    )
    record = group_b.read(PATIENT, merged)
    assert (record.active, record.replaced_by) == (False, survivor)  # type: ignore[union-attr]
    assert group_b.read(ORGANIZATION, "2").id == "2"
    with pytest.raises(NotFoundError):
        group_b.read(ORGANIZATION, "99")
