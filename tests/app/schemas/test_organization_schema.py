"""OrganizationSchema: a healthcare structure."""

from datetime import UTC, datetime

import orjson

from adapters.contract import (
    AddressRecord,
    IdentifierRecord,
    OrganizationRecord,
    TelecomRecord,
)
from adapters.mapping.constants import Constants
from app.schemas.organization import OrganizationSchema
from tests.app.schemas.same import dumped
from tests.validity import validate

TYPES = "https://example.org/fhir/identifier-types"
SCHEMA = OrganizationSchema(Constants(organization_identifier_type_system=TYPES))


def written(record: OrganizationRecord) -> dict[str, object]:
    """The record as a client reads it, held to STU3 and the spec."""
    body: dict[str, object] = orjson.loads(orjson.dumps(dumped(SCHEMA, record)))
    validate(body)
    return body


def test_a_whole_record_is_the_whole_document() -> None:
    record = OrganizationRecord(
        id="uf-0123",
        active=True,
        identifiers=(IdentifierRecord("690000001", "urn:oid:1.2.250.1", "FINEG"),),
        name="Cardiologie",
        telecoms=(TelecomRecord("0102030405", "phone", "work"),),
        addresses=(AddressRecord(lines=("1 rue Haute",), city="Lyon"),),
        part_of="o-1",
        last_updated=datetime(2024, 4, 1, tzinfo=UTC),
    )
    assert written(record) == {
        "resourceType": "Organization",
        "id": "uf-0123",
        "meta": {"lastUpdated": "2024-04-01T00:00:00+00:00"},
        "identifier": [
            {
                "type": {"coding": [{"system": TYPES, "code": "FINEG"}]},
                "system": "urn:oid:1.2.250.1",
                "value": "690000001",
            }
        ],
        "active": True,
        "name": "Cardiologie",
        "telecom": [{"system": "phone", "value": "0102030405", "use": "work"}],
        "address": [{"line": ["1 rue Haute"], "city": "Lyon"}],
        "partOf": {"reference": "Organization/o-1"},
    }


def test_what_the_record_lacks_is_left_out() -> None:
    assert written(OrganizationRecord("o-1", active=False, name="CHU")) == {
        "resourceType": "Organization",
        "id": "o-1",
        "active": False,
        "name": "CHU",
    }
