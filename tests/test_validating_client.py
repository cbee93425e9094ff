"""The client that holds every answer: good ones pass, bad ones fail the test."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest
import requests
from flask import Flask, Response
from werkzeug.datastructures import Headers

from tests.validity import InvalidBodyError
from tests.validity.client import (
    FHIR_JSON,
    ValidatingClient,
    check_answer,
    check_response,
)
from tests.validity.samples import Body, bundle, encounter, outcome


class Answer(NamedTuple):
    """An answer to GET /fhir/v3/Encounter/1."""

    status: int
    body: Body | str
    content_type: str = FHIR_JSON
    headers: Mapping[str, str] = MappingProxyType({})


def check(answer: Answer, path: str = "/fhir/v3/Encounter/1") -> None:
    headers = {"X-Request-Id": "r-1", "Content-Type": answer.content_type}
    text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    all_headers = Headers({**headers, **answer.headers})
    check_answer("GET", path, answer.status, all_headers, text.encode())


GOOD = (
    Answer(200, bundle()),
    Answer(200, encounter(), "application/json;charset=UTF-8"),
    Answer(412, outcome()),
    Answer(401, outcome(), headers={"WWW-Authenticate": "Bearer"}),
    Answer(405, outcome(), headers={"Allow": "GET"}),
    Answer(503, outcome(), headers={"Retry-After": "5"}),
    Answer(304, "", headers={"ETag": 'W/"1"'}),
)
BAD = (
    (Answer(200, "{}", headers={"X-Request-Id": ""}), "X-Request-Id"),
    (Answer(200, ""), "without a body"),
    (Answer(200, "<html>", "text/html"), "text/html"),
    (Answer(200, {"resourceType": "Encounter"}), "status"),
    (Answer(200, outcome("warning")), "with an OperationOutcome"),
    (Answer(404, ""), "without a body"),
    (Answer(404, "<p>", "text/html"), "text/html"),
    (Answer(404, outcome(), "application/json"), "json"),
    (Answer(404, outcome(), FHIR_JSON.replace(";", "; ")), "json"),
    (Answer(404, encounter()), "404 with a Encounter"),
    (Answer(404, outcome("warning")), "without an issue"),
    (Answer(401, outcome()), "WWW-Authenticate"),
    (Answer(403, outcome()), "WWW-Authenticate"),
    (Answer(405, outcome()), "Allow"),
    (Answer(429, outcome()), "Retry-After"),
    (Answer(503, outcome()), "Retry-After"),
    (Answer(304, ""), "ETag"),
)


def test_good_answers_pass_and_bad_ones_do_not() -> None:
    for answer in GOOD:
        check(answer)
    for answer, fault in BAD:
        with pytest.raises(InvalidBodyError, match=fault):
            check(answer)
    # What is not FHIR is left alone, unless it is an error.
    check(Answer(200, "requests_total 1", "text/plain"), "/metrics")
    with pytest.raises(InvalidBodyError):
        check(Answer(404, "<p>", "text/html"), "/favicon.ico")


def test_the_clients_of_tests_check_what_they_get() -> None:
    app = Flask(__name__)
    app.test_client_class = ValidatingClient
    app.add_url_rule("/fhir/v3/x", view_func=lambda: Response("{}"))
    with pytest.raises(InvalidBodyError):
        app.test_client().get("/fhir/v3/x")
    response = requests.Response()
    response.status_code = 412
    response.headers.update({"x-request-id": "r-1", "content-type": FHIR_JSON})
    response._content = json.dumps(outcome()).encode()
    url = "https://example.org/fhir/v3/Encounter/_search?_count=1"
    response.request = requests.Request("POST", url).prepare()
    assert check_response(response) is response
    response.status_code = 403
    with pytest.raises(InvalidBodyError, match="WWW-Authenticate"):
        check_response(response)
