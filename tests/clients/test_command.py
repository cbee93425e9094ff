"""The command `encounters-client`: its files, exit codes and what it prints."""

import csv
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from encounters_client.cli import main
from encounters_client.store import INVALID

from tests.clients.cases import COMPLETE, INCOMPLETE, REFUSED, USAGE
from tests.clients.running import SETTINGS, copied, environ
from tests.clients.service import FAULTS, end, page, slow, status
from tests.live import wait_until

COMMAND = (sys.executable, "-m", "encounters_client")
IDS = [str(id) for id in range(1, 26) if id != 7]
PAGES = ("_count=10", "_sort=date")


@pytest.fixture
def served(served, monkeypatch):
    """Return the service with an invalid stay; the environment has the settings."""
    served.hospital.change("Encounter", 7, INVALID)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in served.environ().items():
        monkeypatch.setenv(name, value)
    return served


def rows(file):
    """Return the ids in a copy."""
    if file.suffix == ".ndjson":
        return [json.loads(line)["id"] for line in file.read_text().splitlines()]
    if file.suffix == ".csv":
        with file.open(newline="") as opened:
            return [row["id"] for row in csv.DictReader(opened)]
    with closing(sqlite3.connect(file)) as db:
        return [id for (id,) in db.execute("SELECT id FROM encounter ORDER BY rowid")]


@pytest.mark.parametrize("suffix", ["csv", "ndjson", "sqlite"])
def test_copy_writes_a_row_for_each_id(suffix, served, tmp_path, capsys):
    file = tmp_path / f"stays.{suffix}"
    assert main(["copy", "--to", str(file), "class=IMP", *PAGES]) == COMPLETE
    assert rows(file) == IDS
    assert [*tmp_path.iterdir()] == [file]
    *outcomes, last = capsys.readouterr().err.splitlines()
    assert last == "24 rows, 1 invalid, total 25"
    assert ["Encounter/7" in line for line in outcomes] == [True]
    if suffix == "sqlite":
        with closing(sqlite3.connect(file)) as db:
            query = (
                "SELECT patient_id, last_updated, body FROM encounter WHERE id = '1'"
            )
            patient, changed, body = db.execute(query).fetchone()
        assert (patient, changed) == ("100", "2024-03-30T08:00:00+00:00")
        assert json.loads(body)["subject"] == {"reference": "Patient/100"}
    # A copy replaces the earlier one.
    served.open(3)
    assert main(["copy", "--to", str(file), *PAGES]) == COMPLETE
    assert rows(file) == ["1", "2", "3"]


def test_copy_sends_type_since_and_parameters(served, tmp_path):
    file = tmp_path / "patients.ndjson"
    since = ["--since", "2024-03-30T08:00:10+00:00"]
    parameters = ["name:exact=Noël & é=1", "_count=5"]
    command = ["copy", "--to", str(file), "--type", "Patient"]
    assert main([*command, *since, *parameters]) == COMPLETE
    assert "POST /fhir/v3/Patient/_search?" in served.requests
    (search,) = served.forms
    assert search == {
        "name:exact": "Noël & é=1",
        "_count": "5",
        "_lastUpdated": "ge2024-03-30T08:00:10+00:00",
    }


def test_an_interrupted_copy_continues(served, tmp_path, capsys):
    file = tmp_path / "stays.ndjson"
    command = ["copy", "--to", str(file), *PAGES]
    for continues in (True, False):
        served.forget()
        served.faults = {3: status(503, "3600")}
        assert main(command) == 4
        assert f"{served.host}" in capsys.readouterr().err
        assert not file.exists()
        served.faults = {}
        if not continues:
            served.lose_pages()
        served.forget()
        assert main(command) == COMPLETE
        assert len(served.requests) == (1 if continues else 4)
        assert rows(file) == IDS
        file.unlink()
    # Another search never continues.
    served.forget()
    served.faults = {3: status(503, "3600")}
    assert main(command) == 4
    assert main([*command, "class=IMP"]) == COMPLETE
    assert len(served.requests) == 6


def test_exit_codes(served, tmp_path, capsys):
    file = tmp_path / "stays.csv"
    served.faults = {1: status(403)}
    assert main(["copy", "--to", str(file)]) == REFUSED
    served.faults = {2: page(end)}
    assert main(["copy", "--to", str(file), *PAGES]) == INCOMPLETE
    assert len(rows(file)) == 9
    assert main(["copy", "--to", str(tmp_path / "no" / "stays.csv")]) == USAGE
    assert main(["copy", "--to", "stays.xlsx"]) == USAGE
    assert "stays.xlsx" in capsys.readouterr().err
    assert main(["patient"]) == USAGE
    for arguments in (["copy"], ["copy", "--to", "a.csv", "nothing"], []):
        with pytest.raises(SystemExit) as raised:
            main(arguments)
        assert raised.value.code == USAGE


def test_sync_and_patient(served, tmp_path, capsys):
    file = tmp_path / "copy.sqlite"
    served.faults = {2: FAULTS["drops-a-row"]}
    assert main(["sync", str(file), "--type", "Encounter"]) == INCOMPLETE
    served.faults = {}
    assert main(["sync", str(file), "--full"]) == COMPLETE
    assert len([key for key in copied(file) if key[0] == "Encounter"]) == 24
    capsys.readouterr()
    assert main(["patient", "--id", "100"]) == COMPLETE
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["resourceType"] == "Patient"
    assert main(["patient", "--stays", "_id=100"]) == COMPLETE
    stays = capsys.readouterr().out.splitlines()
    assert {json.loads(stay)["id"] for stay in stays} == {"1", "2"}
    assert main(["patient", "--id", "99"]) == REFUSED


# ---- as a process


@pytest.mark.system
def test_ctrl_c_leaves_what_the_next_run_continues(served, tmp_path):
    file = tmp_path / "stays.ndjson"
    served.faults = {3: slow}
    log = tmp_path / "log"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [*COMMAND, "copy", "--to", str(file), *PAGES],
            env=environ(served.environ()),
            stderr=stderr,
        ) as process,
    ):
        wait_until(lambda: len(served.requests) == 3, log)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    printed = log.read_text()
    assert "Traceback" not in printed
    served.faults = {}
    served.forget()
    assert main(["copy", "--to", str(file), *PAGES]) == COMPLETE
    assert len(served.requests) == 1
    assert len(rows(file)) == 24


@pytest.mark.system
def test_a_terminal_shows_progress_and_problems(served, tmp_path):
    served.faults = {2: status(503, "0")}
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "copy", "--to", str(tmp_path / "stays.csv"), *PAGES],
        env={**environ(served.environ()), "TERM": "xterm", "COLUMNS": "120"},
        stderr=terminal,
    )
    assert process.wait(30) == COMPLETE
    printed = os.read(controller, 65536).decode()
    os.close(controller)
    os.close(terminal)
    assert f"{served.host}: status 503" in printed
    assert "24/25" in printed
