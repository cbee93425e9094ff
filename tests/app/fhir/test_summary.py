"""Decision 19: the elements that `_summary` and `_elements` select, and the tag SUBSETTED."""

import json
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from adapters.contract import (
    NameRecord,
    OrganizationRecord,
    PatientRecord,
    ResourceType,
)
from app.fhir.resources import SCHEMAS, Element
from app.fhir.summary import TABLES, Presentation, Summary, cut
from tests.app.fhir.test_schemas import CONSTANTS, ENCOUNTER
from tests.validity import validate

FILE = Path(__file__).parents[2] / "stu3/summary-mandatory-modifier-elements.json"
TAG = {"system": "http://hl7.org/fhir/v3/ObservationValue", "code": "SUBSETTED"}
WRITERS = {kind: schema(CONSTANTS) for kind, schema in SCHEMAS.items()}
STAY: Element = WRITERS[ResourceType.ENCOUNTER].dump(ENCOUNTER)
MERGED: Element = WRITERS[ResourceType.PATIENT].dump(
    PatientRecord(
        "p-1",
        names=(NameRecord(family="Noël"),),
        gender="male",
        deceased_at=datetime(2024, 1, 1, tzinfo=UTC),
        replaced_by="p-2",
    )
)


def cut_and_checked(
    resource: Element, summary: Summary = Summary.FALSE, elements: tuple[str, ...] = ()
) -> set[str]:
    """The elements that are left; all else about the part is checked here."""
    before = orjson.dumps(resource)
    part = orjson.loads(orjson.dumps(cut(resource, Presentation(summary, elements))))
    validate(part)
    assert orjson.dumps(resource) == before
    assert part["id"] == resource["id"]
    lost = set(resource) - set(part)
    assert part.get("meta", {}).get("tag", []) == ([TAG] if lost else [])
    assert list(part)[:2] == ["resourceType", "id"]
    return set(part) - {"resourceType", "id", "meta"}


@pytest.mark.parametrize(
    ("summary", "kept"),
    [
        (Summary.TRUE, {"identifier", "status", "class", "subject"}),
        (Summary.TEXT, {"status"}),
        (Summary.COUNT, {"status"}),
        (Summary.DATA, set(STAY) - {"resourceType", "id", "meta"}),
        (Summary.FALSE, set(STAY) - {"resourceType", "id", "meta"}),
    ],
)
def test_each_summary_of_a_stay(summary: Summary, kept: set[str]) -> None:
    assert cut_and_checked(STAY, summary) == kept


def test_a_summary_that_loses_nothing_is_whole() -> None:
    schema = WRITERS[ResourceType.ORGANIZATION]
    hospital = schema.dump(OrganizationRecord("1", name="CHU"))
    assert cut(hospital, Presentation(Summary.TRUE)) == hospital


def test_elements_come_with_what_is_mandatory() -> None:
    assert cut_and_checked(STAY, elements=("period",)) == {"period", "status"}


def test_elements_never_hide_that_a_patient_is_merged_or_dead() -> None:
    kept = cut_and_checked(MERGED, elements=("gender",))
    assert kept == {"gender", "active", "link", "deceasedDateTime"}


def test_a_choice_is_named_without_its_type() -> None:
    assert "deceasedDateTime" in cut(MERGED, Presentation(elements=("deceased",)))
    assert "deceasedDateTime" in cut(MERGED, Presentation(Summary.TRUE))


def test_a_narrative_is_what_text_keeps_and_data_drops() -> None:
    narrated = {**STAY, "text": {"status": "generated", "div": "<div>Séjour</div>"}}
    assert cut_and_checked(narrated, Summary.TEXT) == {"text", "status"}
    assert "text" not in cut_and_checked(narrated, Summary.DATA)


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
