"""Log lines: one JSON object each, with the request's id and no patient data."""

import io
import json
import logging
import subprocess
import sys

import pytest

from app.call import Stage
from app.logging import RedactingFormatter

CANARY = "Canarivel"


@pytest.fixture
def lines(capfd, caplog):
    """Return what returns the access lines since the last time."""
    caplog.set_level("INFO", "app.access")

    def read():
        stderr = capfd.readouterr().err
        assert CANARY not in stderr
        return [json.loads(line) for line in stderr.splitlines()]

    return read


def test_one_line_a_request_and_no_path(served, lines):
    read, search = "/fhir/v3/Patient/<id>", "/fhir/v3/Patient"
    for method, path, status, route, client in (
        ("GET", "Patient/1?_pretty=true", 200, read, "client-1"),
        ("GET", f"Patient?name={CANARY}", 200, search, "client-1"),
        ("GET", f"Patient/{CANARY}", 404, read, "client-1"),
        ("GET", f"{CANARY}?name={CANARY}", 404, None, None),
        ("GET", "Patient", 422, search, "client-1"),
        (CANARY.upper(), "Patient/1", 405, None, None),
    ):
        served.send(method, path)
        (line,) = lines()
        assert (line["event"], line["status"]) == ("request", status)
        assert line["method"] == (method if method == "GET" else "other")
        assert (line["route"], line["client"]) == (route, client)
        times = [line[f"{name}_ms"] for name in Stage]
        assert sum(times) == pytest.approx(line["duration_ms"], abs=0.5)


def test_a_log_that_nobody_reads_fails_no_request(served, monkeypatch):
    # So Python starts where standard error is closed.
    monkeypatch.setattr(sys, "stderr", None)
    assert served.get("Encounter/1").status_code == 200


def test_a_well_formed_request_id_is_taken_over(served, lines):
    for sent in ("A.b_c-9", "x" * 64):
        response = served.get("Encounter/1", X_Request_Id=sent)
        assert response.headers["X-Request-Id"] == sent
        assert lines()[-1]["request_id"] == sent
    for sent in ("", "x" * 65, 'a"b', "é"):
        response = served.get("Encounter/1", X_Request_Id=sent)
        assert len(response.headers["X-Request-Id"]) == 32


def test_each_line_of_a_request_has_its_id(served):
    handler = logging.StreamHandler(stream := io.StringIO())
    handler.setFormatter(RedactingFormatter())
    logging.getLogger().addHandler(handler)
    served.get("Encounter/37", X_Request_Id="abc")
    logging.getLogger().removeHandler(handler)
    logged = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["request_id"] for line in logged} == {"abc"}


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
