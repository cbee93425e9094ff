"""Bundle and OperationOutcome: spec 2.5 and 2.6."""

from uuid import UUID

import orjson

from app.schemas.bundle import Link, match_entries, outcome_entry, searchset
from app.schemas.outcome import Issue, outcome_body
from tests.validity import validate

BASE = "https://example.org/fhir/v3"
SELF = Link("self", f"{BASE}/Bundle?_id=abc2")
STAY: dict[str, object] = {
    "resourceType": "Encounter",
    "id": "e-1",
    "status": "finished",
    "subject": {"reference": "Patient/p-1"},
}
UUID_1 = UUID("6f1d0a52-2f7b-4c36-9a1f-5d9b6c1e8f10")
WARNING = Issue("warning", "not-supported", "foo was ignored", ("http.foo",))


def test_a_page_in_the_order_of_the_spec() -> None:
    links = (SELF, Link("next", f"{BASE}/Bundle?_id=abc2&_index=2&_searchAfter=x"))
    entries = [*match_entries(BASE, [STAY]), outcome_entry(UUID_1, [WARNING])]

    body = orjson.loads(searchset("abc2", 11, links, list(map(orjson.dumps, entries))))

    validate(body)
    assert list(body) == ["resourceType", "id", "type", "total", "link", "entry"]
    assert body == {
        "resourceType": "Bundle",
        "id": "abc2",
        "type": "searchset",
        "total": 11,
        "link": [
            {"relation": "self", "url": f"{BASE}/Bundle?_id=abc2"},
            {
                "relation": "next",
                "url": f"{BASE}/Bundle?_id=abc2&_index=2&_searchAfter=x",
            },
        ],
        "entry": [
            {
                "fullUrl": f"{BASE}/Encounter/e-1",
                "resource": STAY,
                "search": {"mode": "match"},
            },
            {
                "fullUrl": "urn:uuid:6f1d0a52-2f7b-4c36-9a1f-5d9b6c1e8f10",
                "resource": outcome_body([WARNING]),
                "search": {"mode": "outcome"},
            },
        ],
    }


def test_an_empty_page_has_a_total_of_zero_and_no_entry() -> None:
    body = orjson.loads(searchset("abc2", 0, [SELF], []))
    validate(body)
    assert body["total"] == 0
    assert "entry" not in body


def test_an_outcome_in_the_order_of_the_spec() -> None:
    body = outcome_body(
        [Issue("error", "value", "bad date", ("http.date",)), Issue("fatal", "invalid")]
    )
    validate(body)
    assert body == {
        "resourceType": "OperationOutcome",
        "issue": [
            {
                "severity": "error",
                "code": "value",
                "diagnostics": "bad date",
                "location": ["http.date"],
            },
            {"severity": "fatal", "code": "invalid"},
        ],
    }
