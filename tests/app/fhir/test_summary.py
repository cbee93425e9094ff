"""Decision 19: the elements that `_summary` and `_elements` select, and the tag SUBSETTED."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.contract import (
    NameRecord,
    PatientRecord,
    ResourceType,
)
from app.fhir.resources import SCHEMAS
from app.fhir.summary import TABLES, Presentation, Summary, cut
from tests.app.fhir.test_schemas import CONSTANTS

FILE = Path(__file__).parents[2] / "stu3/summary-mandatory-modifier-elements.json"
MERGED = PatientRecord(
    "p-1",
    names=(NameRecord(family="Noël"),),
    gender="male",
    deceased_at=datetime(2024, 1, 1, tzinfo=UTC),
    replaced_by="p-2",
)


def test_elements_never_hide_that_a_patient_is_merged_or_dead() -> None:
    patient = SCHEMAS[ResourceType.PATIENT](CONSTANTS).dump(MERGED)
    part = cut(patient, Presentation(elements=("gender",)))
    assert part.keys() == {
        *("resourceType", "id", "meta", "gender"),
        *("active", "link", "deceasedDateTime"),
    }
    # A choice is named without its type.
    assert "deceasedDateTime" in cut(patient, Presentation(elements=("deceased",)))
    assert "deceasedDateTime" in cut(patient, Presentation(Summary.TRUE))


@pytest.mark.parametrize("resource_type", TABLES)
def test_the_tables_are_those_of_stu3(resource_type: str) -> None:
    expected = json.loads(FILE.read_text())[resource_type]

    def top(column: str) -> list[str]:
        names = [name.removeprefix(f"{resource_type}.") for name in expected[column]]
        return [name.removesuffix("[x]") for name in names if "." not in name]

    table = TABLES[resource_type]
    assert list(table.all) == top("all_top_level")
    assert list(table.summary) == top("summary")
    assert list(table.mandatory) == top("mandatory_top_level")
    assert list(table.modifier) == top("modifier")
