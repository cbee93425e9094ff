"""One whole body of each kind, as this service writes it: what tests break."""

import json
from copy import deepcopy
from typing import Any, TypeAlias

from tests.app.fhir.test_schemas import WHOLE
from tests.validity.schema import STU3

Body: TypeAlias = dict[str, Any]

SYSTEM = "https://example.org/fhir"


def encounter() -> Body:
    """A whole stay, as this service writes it."""
    return deepcopy(WHOLE["Encounter"])


def patient() -> Body:
    """A merged patient."""
    return {
        "resourceType": "Patient",
        "id": "p-1",
        "active": False,
        "name": [{"use": "official", "family": "Noël"}],
        "telecom": [{"system": "phone", "value": "0102030405"}],
        "deceasedBoolean": False,
        "link": [{"other": {"reference": "Patient/p-2"}, "type": "replaced-by"}],
    }


def organization() -> Body:
    """A hospital."""
    return {"resourceType": "Organization", "id": "o-1", "name": "CHU"}


def outcome(severity: str = "error") -> Body:
    """An error with its parameter."""
    issue = {"severity": severity, "code": "value", "location": ["http.date"]}
    return {"resourceType": "OperationOutcome", "issue": [issue]}


def bundle() -> Body:
    """A page with a stay and a warning."""
    return {
        "resourceType": "Bundle",
        "id": "abc2",
        "type": "searchset",
        "total": 3,
        "link": [{"relation": "self", "url": f"{SYSTEM}/fhir/v3/Bundle?_id=abc2"}],
        "entry": [
            {
                "fullUrl": f"{SYSTEM}/fhir/v3/Encounter/e-1",
                "resource": encounter(),
                "search": {"mode": "match"},
            },
            {
                "fullUrl": "urn:uuid:6f1d0a52-2f7b-4c36-9a1f-5d9b6c1e8f10",
                "resource": outcome("warning"),
                "search": {"mode": "outcome"},
            },
        ],
    }


def capability() -> Body:
    """The sample statement."""
    text = (STU3 / "sample-capabilitystatement.json").read_text()
    body: Body = json.loads(text)
    return body


def put(body: Body, path: str, value: Any) -> Body:
    """Set what a path leads to; None takes it away, `...` is null, no path is all."""
    if not path:
        return dict(value)
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    node: Any = body
    for step in way:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = _nulled(value)
    return body


def _nulled(value: Any) -> Any:
    """Return the value with `...` as null, within a list too."""
    if isinstance(value, list):
        return [_nulled(each) for each in value]
    return None if value is ... else value
