"""Entries of stays as text: what marshmallow dumps, to the byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract import EncounterRecord, ResourceType
from app.schemas.encounter import EncounterSchema
from app.schemas.entries import EncounterEntries, Entries
from app.schemas.summary import ELEMENTS, Summary
from tests.app.schemas.test_encounter_schema import BARE, RECORDS, SCHEMA, WHOLE

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


@pytest.mark.parametrize("size", [0, 1, 6, 7, 100])
def test_however_many_they_are(size: int) -> None:
    assert_the_same(([BARE, WHOLE] * 50)[:size])


def test_a_stay_costs_no_dump_once_its_like_was_written() -> None:
    class Counted(EncounterSchema):
        dumps = 0

        def dump(self, obj: object, *, many: bool | None = None) -> object:
            self.dumps += 1
            return super().dump(obj, many=many)

    schema = Counted(SCHEMA._constants)
    entries = EncounterEntries(schema, BASE)
    for _ in range(3):
        entries.written([BARE, WHOLE] * 10, Summary.FALSE, ())
    assert schema.dumps == 2
