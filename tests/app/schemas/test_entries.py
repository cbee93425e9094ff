"""Entries of stays as text: what marshmallow dumps, to the byte."""

from datetime import UTC, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import EncounterRecord, ResourceType
from adapters.mapping.constants import Constants
from app.schemas.encounter import CLASS_LABELS, EncounterSchema
from app.schemas.entries import EncounterEntries, Entries
from app.schemas.summary import ELEMENTS, Summary
from tests.app.schemas.test_encounter_schema import (
    BARE,
    CONSTANTS,
    PARIS,
    RECORDS,
    SCHEMA,
    WHOLE,
)


class Status(StrEnum):
    """Codes as an adapter of one's own may have them."""

    PLANNED = "planned"
    FINISHED = "finished"


BASE = "https://example.org/fhir/v3"
DUMPED = Entries(SCHEMA, BASE)
WRITTEN = EncounterEntries(SCHEMA, BASE)
PARTS = st.lists(
    st.sampled_from(sorted(ELEMENTS[ResourceType.ENCOUNTER])), unique=True, max_size=4
)


def assert_the_same(
    records: list[EncounterRecord],
    summary: Summary = Summary.FALSE,
    elements: tuple[str, ...] = (),
) -> None:
    dumped = DUMPED.written(records, summary, elements)
    written = WRITTEN.written(records, summary, elements)
    assert b",".join(written) == b",".join(dumped)


@given(st.lists(RECORDS, max_size=20))
def test_stays_are_written_as_they_are_dumped(records: list[EncounterRecord]) -> None:
    assert_the_same(records)


@given(
    st.lists(RECORDS, min_size=7, max_size=12),
    st.sampled_from(Summary),
    PARTS.map(tuple),
)
def test_parts_of_stays_too(
    records: list[EncounterRecord], summary: Summary, elements: tuple[str, ...]
) -> None:
    assert_the_same(records, summary, elements)


@given(
    st.lists(
        st.text(st.sampled_from('a",\\/%{}\u00e9\u2028\U0001f600'), max_size=5),
        min_size=7,
        max_size=12,
    )
)
def test_whatever_stands_in_their_texts(texts: list[str]) -> None:
    assert_the_same(
        [
            WHOLE._replace(visit_number=text, functional_unit=text[::-1])
            for text in texts
        ]
    )


def test_a_percent_sign_of_the_deployment_stands_as_it_is() -> None:
    schema = EncounterSchema(Constants(functional_unit_extension="urn:%b:%%:%(a)s"))
    dumped, written = (
        kind(schema, "https://example.org/%20/fhir/v3").written(
            [WHOLE] * 7, Summary.FALSE, ()
        )
        for kind in (Entries, EncounterEntries)
    )
    assert b",".join(written) == b",".join(dumped)


ODD_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
ODD_TIMES = st.datetimes(
    timezones=st.sampled_from(
        [UTC, PARIS, timezone(timedelta(hours=14)), timezone(timedelta(seconds=-561))]
    )
)


@given(
    st.lists(
        st.builds(
            EncounterRecord,
            id=ODD_TEXTS.filter(bool),
            status=st.sampled_from([*Status]) | ODD_TEXTS,
            patient_id=ODD_TEXTS,
            visit_number=ODD_TEXTS,
            visit_number_system=ODD_TEXTS,
            class_code=st.none() | st.sampled_from([*CLASS_LABELS]),
            start=ODD_TIMES,
            end=st.none() | ODD_TIMES,
            functional_unit=ODD_TEXTS,
            organization_id=ODD_TEXTS,
            last_updated=ODD_TIMES,
        ),
        min_size=7,
        max_size=9,
    )
)
def test_whatever_an_adapter_may_hand_over(records: list[EncounterRecord]) -> None:
    """Control characters, the first and the last year, odd offsets, codes of an enum."""
    assert_the_same(records)


@pytest.mark.parametrize("beside", ["1", "\\"])
def test_a_number_where_a_text_belongs_is_never_written_wrong(beside: str) -> None:
    numbers: list[Any] = [12345, *[beside] * 6]
    records = [WHOLE._replace(visit_number=number) for number in numbers]
    with pytest.raises(ValueError, match="shorter"):
        WRITTEN.written(records, Summary.FALSE, ())


@pytest.mark.parametrize("size", [0, 1, 6, 7, 100])
def test_however_many_they_are(size: int) -> None:
    assert_the_same(([BARE, WHOLE] * 50)[:size])


class Counted(EncounterSchema):
    """A schema that counts how often it is asked."""

    dumps = 0

    def dump(self, obj: object, *, many: bool | None = None) -> object:
        self.dumps += 1
        return super().dump(obj, many=many)


def test_a_stay_costs_no_dump_once_its_like_was_written() -> None:
    schema = Counted(CONSTANTS)
    entries = EncounterEntries(schema, BASE)
    for _ in range(3):
        entries.written([BARE, WHOLE] * 10, Summary.FALSE, ())
    assert schema.dumps == 2


def test_nor_does_one_of_another_hospital() -> None:
    schema = Counted(CONSTANTS)
    entries = EncounterEntries(schema, BASE)
    stays = [
        WHOLE._replace(organization_id=f"o-{n}", visit_number_system=f"urn:oid:1.{n}")
        for n in range(3000)
    ]
    entries.written(stays, Summary.FALSE, ())
    assert schema.dumps == 1


def test_nor_one_whose_elements_come_in_another_order() -> None:
    schema = Counted(CONSTANTS)
    entries = EncounterEntries(schema, BASE)
    for elements in (("period", "class"), ("class", "period", "class")):
        entries.written([WHOLE] * 10, Summary.FALSE, elements)
    assert schema.dumps == 1
