"""Decisions 20 and 23: errors as OperationOutcomes, and hospital systems that fail."""

import json
import re
from io import BytesIO
from pathlib import Path

import pytest
from werkzeug.exceptions import HTTPException, default_exceptions

from adapters import contract
from app import errors
from app.error_responses import CONTENT_TYPE
from app.errors import OUTCOMES, IssueCode, ServiceError
from app.logging import RedactingFormatter
from app.service import EXTENSION
from tests.app.answers import body, refused
from tests.serving import FORM, HOST, ids, link

STU3 = Path(__file__).parents[1] / "stu3"
STATUS_CODES = json.loads((STU3 / "http-status-to-issue-type.json").read_text())["map"]
CODES = {row["status"]: row["code"] for row in STATUS_CODES}
SECRET = "SELECT nom FROM patient WHERE nom = 'Canari'"


ERRORS = (
    (400, "GET", "Encounter?access_token=x", {}),
    (401, "GET", "Encounter/1", {"headers": {"Authorization": ""}}),
    (403, "GET", "Encounter/1", {"base_url": "http://encounters.example.org"}),
    (404, "OPTIONS", "Nonsense/1", {}),
    (404, "POST", "Nonsense/_search", {"data": "a=b", "content_type": FORM}),
    (404, "GET", "Encounter/987654", {}),
    (404, "GET", "Canarivel?a=b", {}),
    (404, "GET", "Encounter/1/_history", {}),
    (404, "GET", "../../etc/passwd", {}),
    (405, "DELETE", "Encounter/1", {}),
    (406, "GET", "Encounter/1", {"headers": {"Accept": "application/fhir+xml"}}),
    (410, "GET", "Encounter/51", {}),
    (412, "GET", "Encounter?date=x", {}),
    (413, "POST", "Encounter/_search", {"data": b"a" * 65537, "content_type": FORM}),
    (415, "POST", "Encounter/_search", {"data": "{}", "content_type": "text/json"}),
    (422, "GET", "Patient", {}),
    (500, "GET", "Encounter/37", {}),
)


def test_every_error_is_an_outcome_with_the_code_of_its_status(served):
    """Decision 20: and the client finds that no canary is quoted.

    READ-04 READ-06 READ-08 READ-09 OO-01 OO-02 OO-03 OO-04 OO-06.
    """
    for status, method, path, sent in ERRORS:
        answer = served.send(method, path, **sent)
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        (issue,) = body(answer, status)["issue"]
        # 403 over plain HTTP is a matter of security (decision 24).
        assert issue["code"] == ("security" if status == 403 else CODES[status]), path
        assert issue["diagnostics"]


def test_an_address_that_is_not_fhir_names_where_to_begin(served):
    for path in ("/", "/fhir", "/fhir/v3/nothing"):
        text = refused(served.http.get(path, base_url=HOST), 404, "not-found")
        (address,) = re.findall(r"/fhir/v3/(\w+)", text)
        assert served.get(address).status_code == 200


def test_nothing_is_created_updated_or_deleted(served):
    """Decision 20: other methods are 405 and `Allow` lists those offered (decision 21).

    HTTP-06.
    """
    for methods, path, allowed in (
        ("PUT PATCH DELETE POST TRACE", "Encounter/1", "GET, HEAD, OPTIONS"),
        ("POST PUT DELETE PATCH", "Patient", "GET, HEAD, OPTIONS"),
        ("POST DELETE", "Bundle", "GET, HEAD, OPTIONS"),
        ("GET PUT DELETE", "Organization/_search", "OPTIONS, POST"),
    ):
        for method in methods.split():
            answer = served.send(method, path)
            refused(answer, 405, "not-supported")
            assert answer.headers["Allow"] == allowed
        options = served.send("OPTIONS", path)
        assert (options.status_code, options.get_data()) == (200, b"")
        assert set(options.allow) == set(allowed.split(", "))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_may_be_64_kib_long(served, chunked):
    """Decision 20: a body without a length is never cut, since the rest may be a filter.

    HTTP-07.
    """
    for size, status in ((65536, 200), (65537, 413), (65541, 413)):
        data = b"_format=json;".ljust(size - 6, b"a") + b"&_id=1"
        sent = {"data": data}
        if chunked:
            chunks = {
                "HTTP_TRANSFER_ENCODING": "chunked",
                "wsgi.input_terminated": True,
            }
            sent = {"input_stream": BytesIO(data), "environ_overrides": chunks}
        answer = served.send("POST", "Encounter/_search", content_type=FORM, **sent)
        assert answer.status_code == status


def logged(caplog):
    """Return the log lines of failed requests."""
    return [
        json.loads(RedactingFormatter().format(record))
        for record in caplog.records
        if record.name == "app.error_responses"
    ]


@pytest.fixture
def answer_to(make_service):
    """Return a function that requests a view which raises an error."""
    served = make_service()
    raised = []

    def view():
        raise raised.pop()

    served.app.add_url_rule("/fhir/v3/x", view_func=view)

    def answer(error):
        raised.append(error)
        return served.get("x")

    return answer


def test_an_unexpected_error_is_500_and_reveals_nothing(answer_to, caplog):
    """Decision 20. OO-05."""
    answer = answer_to(ZeroDivisionError(SECRET))
    refused(answer, 500, "exception")
    assert "Canari" not in answer.text
    assert "Zero" not in answer.text
    (line,) = logged(caplog)
    assert line["error"]["type"] == "builtins.ZeroDivisionError"
    assert "Canari" not in json.dumps(line)


def subclasses(kind):
    """Yield the subclasses of an error, theirs too."""
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def test_an_error_has_its_status_code_and_text(answer_to, caplog):
    """Decision 20: a client reads our own texts, never those of an adapter.

    Failures are logged and refusals are not.

    HTTP-08.
    """
    ours = {*subclasses(ServiceError)}
    assert set(OUTCOMES) >= ours | {*contract.AdapterError.__subclasses__()}
    for kind, row in OUTCOMES.items():
        caplog.clear()
        error = kind(SECRET)
        if isinstance(error, contract.AdapterError):
            error.source = "api"
        answer = answer_to(error)
        assert refused(answer, row.status, row.code)
        assert ("Canari" in answer.text) == (kind in ours)
        challenged = row.status in {401, 403}
        assert ("WWW-Authenticate" in answer.headers) == challenged
        assert answer.headers.get("Retry-After") == ("5" if row.status == 503 else None)
        assert len(logged(caplog)) == (row.status >= 500)
        for line in logged(caplog):
            assert kind in ours or line["source"] == "api"
            assert kind in ours or "Canari" not in json.dumps(line)


def test_a_bare_status_has_the_issue_code_of_the_list(answer_to):
    """Decision 20: whatever the framework or a library answers with."""
    known = json.loads((STU3 / "codes.json").read_text())["issue-type"]["codes"]
    assert {code.value for code in IssueCode} <= set(known)
    others = {451: "invalid", 599: "exception"}
    # 412 without a search value is a failed precondition, as the list's note says.
    for status, code in {**CODES, **others, 412: "conflict"}.items():
        error = default_exceptions.get(status, HTTPException)(SECRET)
        error.code = status
        answer = answer_to(error)
        refused(answer, status, code)
        assert "Canari" not in answer.text


def test_a_limit_of_the_source_names_the_parameter(answer_to):
    """Decision 3."""
    for limit in contract.Limit:
        answer = answer_to(contract.NotAskableError(SECRET, "date", limit))
        assert errors.LIMITS[limit] in refused(answer, 412, "value", "date")


def test_an_outage_is_503_never_404_and_never_empty(
    make_service, tmp_path, monkeypatch
):
    """Decision 23: also for a server that does not answer, which is not named."""
    url = f"postgresql+psycopg://x:hush@/pas?host={tmp_path}&port=1"
    monkeypatch.setenv("PAS_URL", url)
    served = make_service((f"sqlite:///{tmp_path / 'pas.db'}", "{env: PAS_URL}"))
    for path in ("Encounter/1", "Encounter?patient=1"):
        answer = served.get(path)
        refused(answer, 503, "transient")
        assert int(answer.headers["Retry-After"]) > 0
        for secret in ("hush", "postgres", str(tmp_path), "pas"):
            assert secret not in answer.text
    # Between two pages too, and the search goes on after.
    served = make_service()
    first = served.search("Encounter", {"_count": "3"})
    database, aside = tmp_path / "pas.db", tmp_path / "aside.db"
    database.rename(aside)
    served.app.extensions[EXTENSION].adapter.close()
    refused(served.get(link(first, "next")), 503, "transient")
    assert not database.exists()
    aside.rename(database)
    assert len(ids(served.follow(first, "next"))) == 3


COLUMNS = "SELECT code, title, finess, changed FROM organizations"
SLOW = """|
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT code, title, finess, changed FROM organizations, n WHERE n.i < 0"""


def test_an_answer_that_makes_no_sense_is_502(make_service):
    """Decision 23: one section that fails leaves the others. A timeout is 503."""
    for old, new in (
        ("title, finess, changed", "titre AS title, finess, changed"),
        ("title, finess, changed", "title, changed"),
        ("SELECT code, title", "SELECT code title"),
    ):
        served = make_service((COLUMNS, COLUMNS.replace(old, new)))
        for path in ("Organization/H1", "Organization?_id=H1"):
            answer = served.get(path)
            refused(answer, 502, "exception")
            for word in ("titre", "finess", "no such", "near"):
                assert word not in answer.text
        assert ids(served.search("Encounter", {"_id": "1"})) == ["1"]
    served = make_service((COLUMNS, SLOW), ("connections: 2", "timeout_seconds: 0.1"))
    refused(served.get("Organization/H1"), 503, "transient")
