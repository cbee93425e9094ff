"""The client that holds every answer: good ones pass, bad ones fail the test."""

import json

import pytest
import requests
from flask import Flask, Response

from tests.validity import InvalidBodyError
from tests.validity.client import FHIR_JSON, ValidatingClient, check_response
from tests.validity.samples import Body, bundle, encounter, outcome


@pytest.fixture
def app() -> Flask:
    """A service that answers what a test tells it to."""
    app = Flask(__name__)
    app.test_client_class = ValidatingClient
    app.config["answer"] = Response()

    @app.route("/<path:path>", methods=["GET", "POST"])
    def answer(path: str) -> Response:
        found = app.config["answer"]
        assert isinstance(found, Response)
        return found

    return app


def answering(
    body: Body | str,
    status: int = 200,
    content_type: str = FHIR_JSON,
    **headers: str,
) -> Response:
    """An answer with a request id."""
    text = body if isinstance(body, str) else json.dumps(body)
    answer = Response(text, status, content_type=content_type)
    answer.headers["X-Request-Id"] = "r-1"
    for name, value in headers.items():
        answer.headers[name.replace("_", "-")] = value
    return answer


GOOD_ANSWERS = (
    answering(bundle()),
    answering(encounter(), content_type="application/json;charset=UTF-8"),
    answering(outcome(), 412),
    answering(outcome(), 401, WWW_Authenticate="Bearer"),
    answering(outcome(), 405, Allow="GET"),
    answering(outcome(), 503, Retry_After="5"),
    answering("", 304, ETag='W/"1"'),
)


def test_a_good_answer_reaches_the_test(app: Flask) -> None:
    client = app.test_client()
    for answer in GOOD_ANSWERS:
        app.config["answer"] = answer
        assert client.get("/fhir/v3/Encounter/1").status == answer.status
    # The head of an error has no body; what is not FHIR is left alone.
    app.config["answer"] = answering(outcome(), 404)
    assert client.head("/fhir/v3/Encounter/1").status_code == 404
    app.config["answer"] = answering("requests_total 1", content_type="text/plain")
    assert client.get("/metrics").status_code == 200


BAD_ANSWERS: tuple[tuple[Response, str], ...] = (
    (Response("{}"), "X-Request-Id"),
    (answering(""), "without a body"),
    (answering("<html>", content_type="text/html"), "text/html"),
    (answering({"resourceType": "Encounter"}), "status"),
    (answering(outcome("warning")), "with an OperationOutcome"),
    (answering("", 404), "without a body"),
    (answering("<p>", 404, "text/html"), "text/html"),
    (answering(outcome(), 404, "application/json"), "json"),
    (answering(outcome(), 404, FHIR_JSON.replace(";", "; ")), "json"),
    (answering(encounter(), 404), "404 with a Encounter"),
    (answering(outcome("warning"), 404), "without an issue"),
    (answering(outcome(), 401), "WWW-Authenticate"),
    (answering(outcome(), 403), "WWW-Authenticate"),
    (answering(outcome(), 405), "Allow"),
    (answering(outcome(), 429), "Retry-After"),
    (answering(outcome(), 503), "Retry-After"),
    (answering("", 304), "ETag"),
)


def test_a_bad_answer_fails_the_test(app: Flask) -> None:
    client = app.test_client()
    for answer, fault in BAD_ANSWERS:
        app.config["answer"] = answer
        with pytest.raises(InvalidBodyError, match=fault):
            client.get("/fhir/v3/Encounter/1")
    # An error outside the base is checked too.
    app.config["answer"] = answering("<p>", 404, "text/html")
    with pytest.raises(InvalidBodyError):
        client.get("/favicon.ico")


@pytest.mark.parametrize(("status", "good"), [(412, True), (403, False)])
def test_an_answer_over_the_network_is_held_too(status: int, good: bool) -> None:
    response = requests.Response()
    response.status_code = status
    response.headers.update({"x-request-id": "r-1", "content-type": FHIR_JSON})
    response._content = json.dumps(outcome()).encode()
    response.request = requests.Request(
        "POST", "https://example.org/fhir/v3/Encounter/_search?_count=1"
    ).prepare()
    if good:
        assert check_response(response) is response
    else:
        with pytest.raises(InvalidBodyError, match="WWW-Authenticate"):
            check_response(response)
