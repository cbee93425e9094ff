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


@pytest.mark.parametrize(
    "answer",
    [
        answering(bundle()),
        answering(encounter(), content_type="application/json;charset=UTF-8"),
        answering(outcome(), 412),
        answering(outcome(), 401, WWW_Authenticate="Bearer"),
        answering(outcome(), 405, Allow="GET"),
        answering(outcome(), 503, Retry_After="5"),
        answering("", 304, ETag='W/"1"'),
    ],
    ids=lambda answer: answer.status,
)
def test_a_good_answer_reaches_the_test(app: Flask, answer: Response) -> None:
    app.config["answer"] = answer
    assert app.test_client().get("/fhir/v3/Encounter/1").status == answer.status


def test_what_is_not_fhir_is_left_alone(app: Flask) -> None:
    app.config["answer"] = answering("requests_total 1", content_type="text/plain")
    assert app.test_client().get("/metrics").status_code == 200


def test_the_head_of_an_error_has_no_body(app: Flask) -> None:
    app.config["answer"] = answering(outcome(), 404)
    assert app.test_client().head("/fhir/v3/Encounter/1").status_code == 404


BAD_ANSWERS: tuple[tuple[str, Response, str], ...] = (
    ("no request id", Response("{}"), "X-Request-Id"),
    ("no body", answering(""), "without a body"),
    ("not JSON", answering("<html>", content_type="text/html"), "text/html"),
    ("bad resource", answering({"resourceType": "Encounter"}), "status"),
    ("outcome in 200", answering(outcome("warning")), "with an OperationOutcome"),
    ("error, no body", answering("", 404), "without a body"),
    ("error in HTML", answering("<p>", 404, "text/html"), "text/html"),
    ("error as JSON", answering(outcome(), 404, "application/json"), "json"),
    ("a blank more", answering(outcome(), 404, FHIR_JSON.replace(";", "; ")), "json"),
    ("error is a stay", answering(encounter(), 404), "404 with a Encounter"),
    ("only a warning", answering(outcome("warning"), 404), "without an issue"),
    ("401 bare", answering(outcome(), 401), "WWW-Authenticate"),
    ("403 bare", answering(outcome(), 403), "WWW-Authenticate"),
    ("405 bare", answering(outcome(), 405), "Allow"),
    ("429 bare", answering(outcome(), 429), "Retry-After"),
    ("503 bare", answering(outcome(), 503), "Retry-After"),
    ("304 bare", answering("", 304), "ETag"),
)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(answer, fault) for _, answer, fault in BAD_ANSWERS],
    ids=[name for name, _, _ in BAD_ANSWERS],
)
def test_a_bad_answer_fails_the_test(app: Flask, answer: Response, fault: str) -> None:
    app.config["answer"] = answer
    with pytest.raises(InvalidBodyError, match=fault):
        app.test_client().get("/fhir/v3/Encounter/1")


def test_an_error_outside_the_base_is_checked_too(app: Flask) -> None:
    app.config["answer"] = answering("<p>", 404, "text/html")
    with pytest.raises(InvalidBodyError):
        app.test_client().get("/favicon.ico")


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
