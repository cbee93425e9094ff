"""Log lines: one JSON object each, with the request's id and no patient data."""

import io
import json
import logging
import subprocess
import sys

import pytest
from flask import Flask, request

from app.call import CALL, request_id
from app.error_responses import handle_error
from app.errors import BadValueError
from app.logging import (
    RedactingFormatter,
    logging_config,
)
from app.middleware import Requests, Transport

CANARY = "Canari"


@pytest.fixture
def app():
    app = Flask("tests.app.logs")
    app.wsgi_app = Requests(app.wsgi_app, Transport(on_loopback=True))
    app.register_error_handler(Exception, handle_error)

    @app.get("/fhir/v3/Patient/<id>")
    def patient(id: str) -> str:
        call = request.environ[CALL]
        call.client_id, call.route = "client-1", str(request.url_rule)
        logging.getLogger("app.views").warning("seen")
        return str(request_id())

    @app.get("/bad")
    def bad() -> str:
        request.environ[CALL].route = "/bad"
        raise BadValueError("No.")

    @app.get("/broken")
    def broken() -> str:
        request.environ[CALL].route = "/broken"
        raise RuntimeError(CANARY)

    return app


@pytest.fixture
def lines(capfd, caplog):
    """Return what the loggers of the project write, after the access lines."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(RedactingFormatter())
    root = logging.getLogger()
    ours = logging.getLogger("app")
    root.addHandler(handler)
    ours.setLevel("INFO")
    caplog.set_level("INFO", "app.access")
    access_lines = []

    def read():
        stderr = capfd.readouterr().err.splitlines()
        access_lines.extend(line for line in stderr if "app.access" in line)
        return [
            json.loads(line) for line in access_lines + stream.getvalue().splitlines()
        ]

    yield read
    root.removeHandler(handler)
    ours.setLevel(logging.NOTSET)


def access(lines):
    return [line for line in lines() if line["logger"] == "app.access"]


def test_one_line_a_request_and_no_path(app, lines):
    app.test_client().get(f"/fhir/v3/Patient/{CANARY}?name={CANARY}")
    (line,) = access(lines)
    assert line["event"] == "request"
    assert line["method"] == "GET"
    assert line["route"] == "/fhir/v3/Patient/<id>"
    assert line["status"] == 200
    assert line["client"] == "client-1"
    assert line["duration_ms"] >= 0
    assert CANARY not in json.dumps(lines())


def test_a_log_that_nobody_reads_fails_no_request(app, lines, monkeypatch):
    # So Python starts where standard error is closed.
    monkeypatch.setattr(sys, "stderr", None)
    assert app.test_client().get("/fhir/v3/Patient/1").status_code == 200


def test_refusals_and_failures_have_their_line(app, lines):
    for path, status, route in (
        (f"/{CANARY}", 404, None),
        ("/bad", 412, "/bad"),
        ("/broken", 500, "/broken"),
    ):
        app.test_client().get(path)
        line = access(lines)[-1]
        assert (line["status"], line["route"]) == (status, route)
        assert line["client"] is None
    assert CANARY not in json.dumps(lines())


def test_a_method_that_nobody_knows_is_not_quoted(app, lines):
    app.test_client().open("/bad", method="CANARI")
    assert access(lines)[0]["method"] == "other"


def test_a_well_formed_request_id_is_taken_over(app, lines):
    ask = app.test_client().get
    for given in ("abc", "A.b_c-9", "x" * 64):
        response = ask("/fhir/v3/Patient/1", headers={"X-Request-Id": given})
        assert response.headers["X-Request-Id"] == given == response.text
        assert lines()[-1]["request_id"] == given
    made = {
        ask("/bad", headers={"X-Request-Id": given}).headers["X-Request-Id"]
        for given in ("", "x" * 65, "a b", 'a"b', "é", "a;b", "a/b")
    }
    made.add(ask("/bad").headers["X-Request-Id"])
    assert len(made) == 8
    assert {len(each) for each in made} == {32}


def test_every_answer_carries_the_id(app):
    for path in ("/fhir/v3/Patient/1", "/none", "/bad", "/broken"):
        assert app.test_client().get(path).headers["X-Request-Id"]


def test_outside_of_a_request_there_is_no_id(app, lines):
    app.test_client().get("/bad")
    logging.getLogger("app.x").info("idle")
    assert request_id() is None
    assert "request_id" not in lines()[-1]


# ------------------------------------------------------------------ the format


def format_record(name, message, *args, error=None, data=None, level=logging.ERROR):
    record = logging.LogRecord(name, level, "place.py", 7, message, args, None)
    if error is not None:
        record.exc_info = (type(error), error, error.__traceback__)
    if data is not None:
        record.data = data
    text = RedactingFormatter().format(record)
    assert "\n" not in text
    return json.loads(text)


def test_a_line_of_another_library_is_its_template_alone():
    for name in ("sqlalchemy.engine", "urllib3", "app", "apple.x"):
        assert format_record(name, "asked %s", CANARY)["event"] == "asked %s"
        line = format_record(name, f"asked {CANARY}")
        assert line["event"] == "(withheld) place:7"


def broken():
    try:
        raise KeyError(CANARY)
    except KeyError as error:
        raise RuntimeError(CANARY) from error


def test_an_exception_is_its_type_and_places():
    try:
        broken()
    except RuntimeError as caught:
        error = caught
    line = format_record("app.x", "failed", error=error)
    assert line["error"]["type"] == "builtins.RuntimeError"
    assert line["error"]["cause"] == "builtins.KeyError"
    names = [place.split(":")[1] for place in line["error"]["places"]]
    assert names == ["test_an_exception_is_its_type_and_places", "broken"]
    assert CANARY not in json.dumps(line)


def test_what_is_not_json_is_its_type(lines):
    line = format_record("app.x", "odd", data={"it": object(), "half": "\ud800"})
    assert line["it"] == "builtins.object"
    assert line["half"] == "\ud800"


def test_the_time_of_a_line_is_in_milliseconds_of_utc():
    record = logging.LogRecord("app.x", logging.INFO, "place.py", 7, "idle", (), None)
    record.created = 1748772000.0625
    time = json.loads(RedactingFormatter().format(record))["time"]
    assert time == "2025-06-01T10:00:00.062+00:00"


SCRIPT = """
import logging
from app.logging import configure_logs
configure_logs("info")
logging.getLogger("app.x").info("ours %s", "told")
logging.getLogger("app.x").debug("hidden")
logging.getLogger("urllib3").info("hidden")
logging.getLogger("urllib3").warning("warned of %s", "Canari")
logging.getLogger("gunicorn.error").info("Booting worker with pid: %s", 7)
killed = "Worker (pid:%s) was sent %s! Perhaps out of memory?"
logging.getLogger("gunicorn.error").error(killed, 7, "SIGKILL")
logging.getLogger("gunicorn.error").error("Invalid address: %s", ("192.0.2.1", 80))
logging.getLogger("gunicorn.error").error("connection to ('no.such', 80) failed: why")
logging.getLogger("driver").error("connection to server at Canari failed")
try:
    raise RuntimeError("Canari")
except RuntimeError:
    logging.getLogger("app").exception("Exception on /Patient/Canari [GET]")
"""


@pytest.mark.system
def test_a_whole_process_writes_json_to_stderr():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "Canari" not in done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == [
        "ours told",
        "warned of %s",
        "Booting worker with pid: 7",
        "Worker (pid:7) was sent SIGKILL! Perhaps out of memory?",
        "Invalid address: ('192.0.2.1', 80)",
        "connection to ('no.such', 80) failed: why",
        "(withheld) <string>:14",
        "(withheld) <string>:18",
    ]


def test_the_level_is_for_our_own_lines():
    config = logging_config("debug")
    assert (
        config["loggers"]["app"] == config["loggers"]["adapters"] == {"level": "DEBUG"}
    )
    assert config["root"]["level"] == "WARNING"
