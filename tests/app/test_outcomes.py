"""Errors as answers: each one an OperationOutcome (spec 7, decisions 20 and 21)."""

import json
from pathlib import Path

import pytest
from flask import Flask, abort, redirect, request
from werkzeug.exceptions import HTTPException, default_exceptions

from adapters import contract
from app import errors
from app.errors import OUTCOMES, IssueCode, ServiceError
from app.operations.logs import JsonFormatter, register_request_log
from app.outcomes import outcome_for, register_errors
from app.schemas.outcome import Issue

STU3 = Path(__file__).parents[1] / "stu3"
PROPOSED = json.loads((STU3 / "http-status-to-issue-type.json").read_text())["map"]
SECRET = "SELECT nom FROM patient WHERE nom = 'Canari'"
FAULT = contract.RowFault("status", "sejour.etat", "no entry for 'Z' in codes.status")


def service_errors(kind=ServiceError):
    for each in kind.__subclasses__():
        yield each
        yield from service_errors(each)


def adapter_errors():
    return contract.AdapterError.__subclasses__()


def make(kind):
    return kind("No such thing.")


@pytest.fixture
def app():
    app = Flask("tests.app.outcomes")
    app.config["MAX_CONTENT_LENGTH"] = 10
    register_request_log(app)
    register_errors(app)
    return app


@pytest.fixture
def answer(app):
    """Return the answer to a request whose view raises this error."""

    def answer(error):
        def view():
            raise error

        app.add_url_rule("/fhir/v3/x", view_func=view)
        return app.test_client().get("/fhir/v3/x")

    return answer


def issue_of(response):
    assert response.headers["Content-Type"] == "application/fhir+json;charset=UTF-8"
    body = json.loads(response.data)
    assert body["resourceType"] == "OperationOutcome"
    (issue,) = body["issue"]
    assert issue["severity"] == "error"
    return issue


# ----------------------------------------------------------------- the tables


def test_every_error_of_ours_has_a_row():
    ours = {*service_errors(), *adapter_errors()}
    assert set(OUTCOMES) == ours


def test_every_issue_code_is_an_stu3_one():
    codes = json.loads((STU3 / "codes.json").read_text())["issue-type"]["codes"]
    assert {code.value for code in IssueCode} <= set(codes)


@pytest.mark.parametrize("row", PROPOSED, ids=lambda row: str(row["status"]))
def test_a_bare_status_has_the_issue_code_of_the_list(row):
    # 412 without a search value is a failed precondition, as the list's note says.
    expected = "conflict" if row["status"] == 412 else row["code"]
    assert errors.answer_for_status(row["status"]).code == expected


TABLE = [
    (errors.BadRequestError, 400, "invalid"),
    (errors.UnauthenticatedError, 401, "login"),
    (errors.ForbiddenError, 403, "forbidden"),
    (errors.InsufficientScopeError, 403, "processing"),
    (errors.SecurityError, 403, "security"),
    (errors.UnknownResourceError, 404, "not-found"),
    (errors.NotAcceptableError, 406, "not-supported"),
    (errors.GonePageError, 410, "not-found"),
    (errors.BadValueError, 412, "value"),
    (errors.UnsupportedMediaTypeError, 415, "not-supported"),
    (errors.BusinessRuleError, 422, "business-rule"),
    (errors.UnavailableError, 503, "transient"),
    (contract.NotFoundError, 404, "not-found"),
    (contract.GoneError, 410, "not-found"),
    (contract.TooCostlyError, 422, "too-costly"),
    (contract.NotAskableError, 412, "value"),
    (contract.SourceDataError, 502, "transient"),
    (contract.SourceUnavailableError, 503, "transient"),
]


@pytest.mark.parametrize(("kind", "status", "code"), TABLE)
def test_an_error_has_its_status_and_code(answer, kind, status, code):
    response = answer(make(kind))
    assert (response.status_code, issue_of(response)["code"]) == (status, code)


def test_the_table_of_this_test_is_whole():
    assert {kind for kind, _, _ in TABLE} == set(OUTCOMES)


@pytest.mark.parametrize("kind", sorted(service_errors(), key=lambda k: k.__name__))
def test_the_client_reads_the_words_of_our_own_errors(answer, kind):
    assert issue_of(answer(make(kind)))["diagnostics"] == "No such thing."


@pytest.mark.parametrize("kind", sorted(adapter_errors(), key=lambda k: k.__name__))
def test_the_client_never_reads_what_an_adapter_says(answer, kind):
    response = answer(kind(SECRET))
    assert b"Canari" not in response.data
    assert issue_of(response)["diagnostics"]


def test_code_location_and_headers_of_an_error_win():
    error = errors.BadValueError(
        "date: no such day.",
        "http.date",
        code=IssueCode.TOO_COSTLY,
        headers=(("X-A", "b"),),
    )
    outcome = outcome_for(error)
    issue = Issue("error", "too-costly", "date: no such day.", ("http.date",))
    assert (outcome.status, outcome.issues) == (412, (issue,))
    assert outcome.headers == (("X-A", "b"),)


def test_without_a_location_there_is_none(answer):
    assert "location" not in issue_of(answer(errors.BadRequestError("No.")))


def test_the_headers_that_a_status_asks_for(answer):
    challenge = answer(errors.SecurityError("HTTPS only."))
    assert challenge.headers["WWW-Authenticate"] == 'Bearer realm="encounters"'


def test_a_challenge_of_its_own_takes_the_place_of_the_tables(answer):
    own = (("WWW-Authenticate", 'Bearer realm="encounters", error="invalid_token"'),)
    response = answer(errors.UnauthenticatedError("Bad.", headers=own))
    assert response.headers.getlist("WWW-Authenticate") == [own[0][1]]


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (errors.UnavailableError("Away."), "5"),
        (errors.UnavailableError("Away.", retry_after=9), "9"),
        (contract.SourceUnavailableError(SECRET), "5"),
    ],
)
def test_503_says_when_to_try_again(answer, error, seconds):
    assert answer(error).headers["Retry-After"] == seconds


def test_a_row_that_cannot_be_mapped_is_500_and_its_fault_is_for_the_log(
    answer, caplog
):
    response = answer(contract.SourceDataError(SECRET, FAULT))
    assert (response.status_code, issue_of(response)["code"]) == (500, "exception")
    assert b"etat" not in response.data
    (record,) = failures(caplog)
    assert record.data == {"status": 500, "fault": FAULT._asdict()}


# ------------------------------------------------------ the framework's refusals


@pytest.mark.parametrize("status", sorted(default_exceptions))
def test_every_status_of_the_framework_is_an_outcome(app, status):
    app.add_url_rule("/x", view_func=lambda: abort(status, description=SECRET))
    response = app.test_client().get("/x")
    assert response.status_code == status
    assert issue_of(response)["code"] in set(IssueCode)
    assert b"Canari" not in response.data
    assert ("WWW-Authenticate" in response.headers) == (status in {401, 403})
    assert ("Retry-After" in response.headers) == (status in {429, 503})


def test_an_unknown_address_is_404_and_is_not_quoted(app):
    response = app.test_client().get("/fhir/v3/Canari")
    assert (response.status_code, issue_of(response)["code"]) == (404, "not-found")
    assert b"Canari" not in response.data


def test_405_keeps_allow(app):
    app.add_url_rule("/x", view_func=lambda: "", methods=["GET", "POST"])
    response = app.test_client().delete("/x")
    assert (response.status_code, issue_of(response)["code"]) == (405, "not-supported")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS, POST"


def test_a_body_that_is_too_long_is_413(app):
    app.add_url_rule("/x", view_func=lambda: request.form["a"], methods=["POST"])
    response = app.test_client().post("/x", data={"a": "b" * 20})
    assert (response.status_code, issue_of(response)["code"]) == (413, "too-long")


def test_a_form_field_that_is_not_there_is_400(app):
    app.add_url_rule("/x", view_func=lambda: request.form["Canari"], methods=["POST"])
    response = app.test_client().post("/x")
    assert (response.status_code, issue_of(response)["code"]) == (400, "invalid")
    assert b"Canari" not in response.data


@pytest.mark.parametrize("status", [418, 451, 499, 507, 599])
def test_a_status_that_no_table_names_is_an_outcome(status):
    error = HTTPException()
    error.code = status
    outcome = outcome_for(error)
    assert outcome.status == status
    assert outcome.issues[0].code == ("invalid" if status < 500 else "exception")


def test_what_is_no_error_is_let_through(app):
    app.add_url_rule("/x", view_func=lambda: abort(redirect("/y")))
    assert app.test_client().get("/x").headers["Location"] == "/y"


# ------------------------------------------------------------- the unexpected


def failures(caplog):
    return [record for record in caplog.records if record.name == "app.outcomes"]


def logged(caplog):
    return [json.loads(JsonFormatter().format(record)) for record in failures(caplog)]


def test_anything_else_is_500_and_says_nothing(answer, caplog):
    response = answer(RuntimeError(SECRET))
    assert (response.status_code, issue_of(response)["code"]) == (500, "exception")
    assert b"Canari" not in response.data
    (line,) = logged(caplog)
    assert line["error"]["type"] == "builtins.RuntimeError"
    assert line["error"]["places"][-1].startswith("test_outcomes:view:")
    assert "Canari" not in json.dumps(line)


def test_a_failure_of_the_answer_itself_is_500_too(app, caplog):
    app.add_url_rule("/x", view_func=lambda: "fine")

    @app.after_request
    def fail(response):
        raise RuntimeError(SECRET)

    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.after_request_funcs[None].reverse()
    response = app.test_client().get("/x")
    assert response.status_code == 500
    assert issue_of(response)["code"] == "exception"
    assert all("Canari" not in json.dumps(line) for line in logged(caplog))


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (errors.BadValueError("No."), 0),
        (errors.UnauthenticatedError("No."), 0),
        (contract.NotFoundError(SECRET), 0),
        (errors.UnavailableError("Away."), 1),
        (contract.SourceUnavailableError(SECRET), 1),
        (contract.SourceDataError(SECRET), 1),
    ],
)
def test_what_we_failed_at_is_logged_and_what_was_refused_is_not(
    answer, caplog, error, lines
):
    answer(error)
    assert len(failures(caplog)) == lines
    assert all("Canari" not in json.dumps(line) for line in logged(caplog))


@pytest.mark.parametrize("limit", contract.Limit)
def test_what_a_source_cannot_compare_is_said_by_parameter(answer, limit):
    response = answer(contract.NotAskableError(SECRET, "date", limit))
    issue = issue_of(response)
    assert response.status_code == 412
    assert issue["location"] == ["http.date"]
    assert issue["diagnostics"] == f"Parameter 'date' {errors.LIMITS[limit]}."
