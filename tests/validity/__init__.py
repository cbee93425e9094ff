"""Whether a body is what FHIR STU3 and the spec allow.

`validate` holds a body to everything; `fhir_faults` to STU3 alone, for instances that
are not ours. `ValidatingClient` and `check_response` (client.py) do it for every answer.
"""

import json
from functools import lru_cache
from typing import Any

from tests.validity.promises import promise_faults
from tests.validity.rules import Body, empty_faults, rule_faults, text_faults
from tests.validity.schema import schema_faults


class InvalidBodyError(AssertionError):
    """A body that no client should get; the text lists every fault."""


def validate(body: Body) -> None:
    """Raise InvalidBodyError unless the body is valid STU3 and keeps our promises."""
    if faults := fhir_faults(body) or _all_promise_faults(body):
        raise InvalidBodyError("\n".join([f"{len(faults)} faults:", *faults]))


def fhir_faults(body: Body) -> list[str]:
    """Return what STU3 has against the body and against the resources within it."""
    faults = [*schema_faults(body), *empty_faults(body), *text_faults(body)]
    faults = faults or [*rule_faults(body)]
    for resource in _resources_within(body):
        faults += _known_faults(json.dumps(resource))
    return faults


def parse(text: bytes | str) -> Body:
    """Return a JSON object; a property that occurs twice is a fault."""
    body = json.loads(text, object_pairs_hook=_unique)
    if not isinstance(body, dict):
        raise InvalidBodyError(f"not a JSON object: {text[:80]!r}")
    return body


def _unique(pairs: list[tuple[str, Any]]) -> Body:
    body = dict(pairs)
    if len(body) < len(pairs):
        raise InvalidBodyError(
            f"a property occurs twice: {[name for name, _ in pairs]}"
        )
    return body


def _all_promise_faults(body: Body) -> list[str]:
    faults = list(promise_faults(body))
    for resource in _resources_within(body):
        faults += _known_promise_faults(json.dumps(resource))
    return faults


# The same stays come back test after test: each is looked at once.


@lru_cache(maxsize=20_000)
def _known_faults(text: str) -> tuple[str, ...]:
    return tuple(fhir_faults(json.loads(text)))


@lru_cache(maxsize=20_000)
def _known_promise_faults(text: str) -> tuple[str, ...]:
    return tuple(_all_promise_faults(json.loads(text)))


def _resources_within(body: Body) -> list[Body]:
    entries = [each["resource"] for each in body.get("entry", ()) if "resource" in each]
    return [*body.get("contained", ()), *entries]
