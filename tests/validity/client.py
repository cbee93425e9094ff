"""Every answer held to STU3, the spec and the decisions, so that no test can forget it."""

import json
import re
from collections.abc import Mapping
from typing import Any

import requests
from flask.testing import FlaskClient
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

from tests.canaries import canaries_in
from tests.validity.promises import promise_faults
from tests.validity.stu3 import Body, fhir_faults

FHIR_JSON = "application/fhir+json;charset=UTF-8"
NO_RESOURCES = re.compile(r"/fhir/v3(/*|/openapi\.json|/\.well-known/.*)")
"""What is below the base and no FHIR resource: OpenAPI and discovery (decision 39)."""

HEADERS_BY_STATUS: Mapping[int, str] = {
    304: "ETag",
    401: "WWW-Authenticate",
    403: "WWW-Authenticate",
    405: "Allow",
    429: "Retry-After",
    503: "Retry-After",
}
"""Decision 21, and RFC 7232 for 304."""

QUOTING = frozenset({400, 412})
"""Who sent a bad name or value is told which it was (decision 3)."""


class InvalidBodyError(AssertionError):
    """A body that no client should get; the text lists every fault."""


def validate(body: Body) -> None:
    """Raise InvalidBodyError unless the body is valid STU3 and keeps our promises."""
    if faults := fhir_faults(body) or promise_faults(body):
        raise InvalidBodyError("\n".join([f"{len(faults)} faults:", *faults]))


def parse(text: bytes | str) -> Body:
    """Return a JSON object; a property that occurs twice is a fault."""

    def unique(pairs: list[tuple[str, Any]]) -> Body:
        if len(dict(pairs)) < len(pairs):
            raise InvalidBodyError(f"a property occurs twice: {pairs}")
        return dict(pairs)

    body = json.loads(text, object_pairs_hook=unique)
    if not isinstance(body, dict):
        raise InvalidBodyError(f"not a JSON object: {text[:80]!r}")
    return body


def check_answer(
    method: str,
    path: str,
    status: int,
    headers: Mapping[str, str] | Headers,
    body: bytes,
) -> None:
    """Raise InvalidBodyError unless the answer is one that this service may give.

    `headers` must be looked up without regard to case. Of answers outside /fhir/v3 with a
    status below 400 only the headers are looked at.
    """
    for name in ("X-Request-Id", HEADERS_BY_STATUS.get(status, "X-Request-Id")):
        if not headers.get(name):
            raise InvalidBodyError(f"{status} without {name}")
    canaries = canaries_in(body.decode("utf-8", "replace"))
    if canaries and status >= 400 and status not in QUOTING:
        raise InvalidBodyError(f"{status} tells of a canary: {canaries}")
    is_fhir = f"{path}/".startswith("/fhir/v3/") and not NO_RESOURCES.fullmatch(path)
    if status == 304 or method == "HEAD":
        if body:
            raise InvalidBodyError(f"{method} got {status} with a body: {body!r}")
    # OPTIONS is the framework's own: `Allow`, and nothing to say.
    elif (is_fhir or status >= 400) and (body or method != "OPTIONS"):
        _check_fhir(status, headers.get("Content-Type", ""), body)


def _check_fhir(status: int, content_type: str, body: bytes) -> None:
    is_json = re.fullmatch(r"\w+/json;charset=UTF-8", content_type)
    if content_type != FHIR_JSON and (status >= 400 or not is_json):
        raise InvalidBodyError(f"{status} in {content_type!r}")
    resource = parse(body)
    validate(resource)
    is_outcome = resource["resourceType"] == "OperationOutcome"
    if is_outcome != (status >= 400):
        raise InvalidBodyError(f"{status} with a {resource['resourceType']}")
    if is_outcome and not {"error", "fatal"} & {
        i["severity"] for i in resource["issue"]
    }:
        raise InvalidBodyError(f"{status} without an issue of severity error or fatal")


class ValidatingClient(FlaskClient):
    """A test client whose every answer is checked before a test sees it."""

    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        """Send a request and check what came back."""
        response = super().open(*args, **kwargs)
        check_answer(
            response.request.method,
            response.request.path,
            response.status_code,
            response.headers,
            response.get_data(),
        )
        return response


def check_response(response: requests.Response) -> requests.Response:
    """Check what a running service answered, and return it."""
    check_answer(
        str(response.request.method),
        response.request.path_url.partition("?")[0],
        response.status_code,
        response.headers,
        response.content,
    )
    return response
