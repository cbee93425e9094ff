"""Every answer held to the spec, so that no test can forget it.

Use `ValidatingClient` as `app.test_client_class`, and `check_response` on what
`requests` got from a running service.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import requests
from flask.testing import FlaskClient
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

from tests.canaries import canaries_in
from tests.validity import InvalidBodyError, parse, validate

FHIR_JSON = "application/fhir+json;charset=UTF-8"
BASE_PATH = "/fhir/v3"
NO_RESOURCES = re.compile(
    rf"{BASE_PATH}(/*|/openapi\.json|/\.well-known/smart-configuration)"
)
"""The answers below it that are no FHIR resource: OpenAPI and discovery (decision 39)."""

HEADERS_BY_STATUS: Mapping[int, str] = MappingProxyType(
    {
        304: "ETag",
        401: "WWW-Authenticate",
        403: "WWW-Authenticate",
        405: "Allow",
        429: "Retry-After",
        503: "Retry-After",
    }
)
"""Decision 21, and RFC 7232 for 304."""


QUOTING = frozenset({400, 412})
"""Who sent a bad name or value is told which it was (decision 3)."""


def check_answer(
    method: str,
    path: str,
    status: int,
    headers: Mapping[str, str] | Headers,
    body: bytes,
) -> None:
    """Raise InvalidBodyError unless the answer is one that this service may give.

    `headers` must be looked up without regard to case. Answers outside /fhir/v3 with a
    status below 400 are not FHIR's, and only their headers are looked at.
    """
    for name in ("X-Request-Id", HEADERS_BY_STATUS.get(status, "X-Request-Id")):
        if not headers.get(name):
            raise InvalidBodyError(f"{status} without {name}")
    if status >= 400 and status not in QUOTING:
        _check_canaries(status, body)
    if status == 304:
        _no_body(method, body)
    elif status >= 400 or (
        f"{path}/".startswith(f"{BASE_PATH}/") and not NO_RESOURCES.fullmatch(path)
    ):
        _check_fhir(method, status, headers.get("Content-Type", ""), body)


def _check_fhir(method: str, status: int, content_type: str, body: bytes) -> None:
    if method == "HEAD":
        _no_body(method, body)
        return
    if not body:
        # OPTIONS is the framework's own: `Allow`, and nothing to say.
        if method != "OPTIONS":
            raise InvalidBodyError(f"{method} got {status} without a body")
        return
    if content_type != FHIR_JSON and (
        status >= 400 or not re.fullmatch(r"\w+/json;charset=UTF-8", content_type)
    ):
        raise InvalidBodyError(f"{status} in {content_type!r}")
    resource = parse(body)
    validate(resource)
    if status >= 400:
        _check_error(resource, status)
    elif resource["resourceType"] == "OperationOutcome":
        raise InvalidBodyError(f"{status} with an OperationOutcome")


def _check_canaries(status: int, body: bytes) -> None:
    if found := canaries_in(body.decode("utf-8", "replace")):
        raise InvalidBodyError(f"{status} tells of a canary: {found}")


def _check_error(resource: dict[str, Any], status: int) -> None:
    if resource["resourceType"] != "OperationOutcome":
        raise InvalidBodyError(f"{status} with a {resource['resourceType']}")
    if not {"error", "fatal"} & {each["severity"] for each in resource["issue"]}:
        raise InvalidBodyError(f"{status} without an issue of severity error or fatal")


def _no_body(method: str, body: bytes) -> None:
    if body:
        raise InvalidBodyError(
            f"an answer to {method} that should have no body: {body!r}"
        )


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
