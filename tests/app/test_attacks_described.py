"""Requests made from the service's own OpenAPI description, right and wrong ones.

Every answer is one that the description has, valid FHIR, and never a fault of ours. Run
longer with FUZZ_EXAMPLES (`make fuzz`).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from openapi_spec_validator import validate
from schemathesis import Case, GenerationMode

from adapters.mapping.profile import PROFILES, load_profile
from adapters.testing.stays import EDGES
from app.capabilities import compute_offer
from app.openapi import openapi
from tests.serving import BASE_URL, Served

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))
"""How many requests each operation gets in each mode."""


def described(profile: str) -> dict[str, Any]:
    """Return the description of a deployment of the edge-case hospital."""
    offered = EDGES.model().capabilities
    offer = compute_offer(load_profile(profile, Path()), offered)
    return openapi(offer, BASE_URL, "Edge cases")


OPERATIONS = [
    (profile, path, method)
    for profile in PROFILES
    for path, methods in described(profile)["paths"].items()
    for method in methods
]
STRATEGIES = {
    profile: schemathesis.openapi.from_dict(described(profile)) for profile in PROFILES
}


def test_what_is_described_is_what_the_profiles_offer() -> None:
    paths = {profile: set(described(profile)["paths"]) for profile in PROFILES}
    assert "/Organization" in paths["full"]
    assert "/Organization" not in paths["group-a"]
    names = {
        each["name"]
        for each in described("group-a")["paths"]["/Encounter"]["get"]["parameters"]
        if each["in"] == "query"
    }
    assert names == {
        *("patient", "date", "_id", "_count"),
        *("_summary", "_elements", "_format", "_pretty"),
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_the_description_is_openapi(profile: str) -> None:
    validate(described(profile))


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize(("profile", "path", "method"), OPERATIONS)
def test_every_answer_is_one_that_is_described(
    profile: str,
    path: str,
    method: str,
    mode: GenerationMode,
    served: Served,
    groups: Mapping[str, Served],
) -> None:
    service = served if profile == "full" else groups[profile]
    known = described(profile)["paths"][path][method]["responses"]
    operation = STRATEGIES[profile][path][method]
    strange = mode is GenerationMode.NEGATIVE

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        answer = send(service, case, with_its_headers=False)
        # A path or a method that was bent is another operation's.
        assert strange or str(answer.status_code) in known
        assert answer.status_code not in (500, 501, 504)
        assert answer.headers["X-Request-Id"]
        if strange:
            refused = send(service, case, with_its_headers=True)
            assert refused.status_code in (
                200,
                304,
                400,
                401,
                404,
                405,
                406,
                410,
                412,
                413,
                415,
                422,
            )

    ask()


def send(service: Served, case: Case, *, with_its_headers: bool) -> Any:
    """Send a made-up request; the client holds every answer to the schema of STU3."""
    made = dict(case.headers or {}) if with_its_headers else {}
    if not all(_is_sendable(name, text) for name, text in made.items()):
        made = {}
    return service.http.open(
        f"/fhir/v3{case.formatted_path}",
        method=case.method,
        query_string=_texts(case.query),
        data=_texts(case.body) if isinstance(case.body, dict) else None,
        content_type=case.media_type if isinstance(case.body, dict) else None,
        headers={**service.headers, **made},
        base_url="https://encounters.example.org",
    )


def _texts(pairs: Any) -> dict[str, Any]:
    return {
        str(name): [*map(str, value)] if isinstance(value, list) else str(value)
        for name, value in dict(pairs or {}).items()
    }


def _is_sendable(name: str, text: object) -> bool:
    """Whether a header can be sent at all: the client, not the service, refuses others."""
    said = f"{name}{text}"
    return name.isascii() and said.isprintable() and not any(c in name for c in "\r\n:")
