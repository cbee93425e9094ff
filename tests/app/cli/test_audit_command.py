"""`encounters audit who`: who saw the data of a patient."""

import csv
import gzip
import io
from functools import partial

import pytest

from app.cli import main
from tests.toolkit.conftest import Printed
from toolkit.contract.hospital import IPP_SYSTEM

KEY = "k" * 44


@pytest.fixture
def audit(capsys, monkeypatch, file):
    """Return what runs `encounters audit` as the account of the service would."""
    monkeypatch.setenv("ENCOUNTERS_AUDIT", str(file))
    monkeypatch.setenv("ENCOUNTERS_AUDIT_KEY", KEY)

    def run(*arguments):
        status = main(["audit", *map(str, arguments)])
        return Printed(status, *capsys.readouterr())

    return run


@pytest.fixture
def file(tmp_path):
    """Return the file of the settings."""
    return tmp_path / "audit.jsonl"


@pytest.fixture
def deployment(make_service, file):
    """Return what serves the edge-case hospital with audit events."""
    return partial(make_service, AUDIT=str(file), AUDIT_KEY=KEY)


def test_who_saw_a_patient(audit, deployment, file):
    served = deployment()
    read = served.get("Encounter/1")
    file.rename(file.with_name("audit.jsonl.1"))
    ids = [read.headers["X-Request-Id"]]
    count = "Encounter?patient=1&_summary=count"
    for path in ("Patient/1", "Encounter?patient=1,3&_count=100", count):
        ids.append(served.get(path).headers["X-Request-Id"])
    stays = {
        f"Encounter/{entry['resource']['id']}"
        for entry in served.search("Encounter", {"patient": "1", "_count": "100"})[
            "entry"
        ]
        if entry["resource"]["resourceType"] == "Encounter"
    }
    for path in ("Patient/3", "Encounter/Canarivel", "Encounter?patient=1&date=never"):
        served.get(path)
    printed = audit("who", "Patient/1", "--json")
    assert printed.status == 0
    rows = printed.document["disclosures"]
    assert [row["request_id"] for row in rows][:4] == ids
    assert [row["action"] for row in rows] == ["read", "read"] + ["search-type"] * 3
    assert {row["client"] for row in rows} == {"client-1"}
    assert {row["address"] for row in rows} == {"127.0.0.1"}
    shown = [row["resources"].split() for row in rows]
    assert shown[:2] == [["Encounter/1"], ["Patient/1"]]
    # Of the search for two patients, the stays of this one only.
    assert set(shown[2]) == stays == set(shown[4])
    assert shown[3] == []
    assert audit("who", "1", "--json").out == printed.out

    header, *cells = csv.reader(io.StringIO(audit("who", "Patient/1", "--csv").out))
    assert header == ["time", "client", "address", "action", "resources", "request_id"]
    assert [row[4].split() for row in cells] == shown
    table = audit("who", "Patient/1").out.splitlines()[1:]
    assert [line.split()[0] for line in table] == [row[0] for row in cells]
    assert "Patient/1" in table[1]
    assert f" {len(stays)} Encounter " in table[2]

    def number(*period):
        return len(audit("who", "1", "--json", *period).document["disclosures"])

    day = rows[0]["time"][:10]
    assert number("--from", day, "--to", day) == 5
    assert number("--to", "2024-02-29") == number("--from", "2999-12-31") == 0

    with file.open("a") as appended:
        appended.write('torn\n{"agent": "x"}\n[]\n{"agent": [{}], "entity": []}\n')
    printed = audit("who", "Patient/1", "--json")
    assert (printed.status, len(printed.document["disclosures"])) == (1, 5)
    assert printed.err


def test_who_in_clear(audit, deployment):
    served = deployment(AUDIT_PATIENTS="clear")
    included = "Encounter?_id=1,42&_include=Encounter:patient"
    counted = f"Encounter?_summary=count&patient.identifier={IPP_SYSTEM}|1"
    for path in ("Patient/1", "Encounter/1", "Patient/12", included, counted):
        served.get(path)
    rows = audit("who", "Patient/1", "--json").document["disclosures"]
    shown = [row["resources"] for row in rows]
    assert shown == ["Patient/1", "Encounter/1", "Encounter/1 Patient/1", ""]


def test_who_reads_renamed_and_compressed_files(audit, deployment, file):
    served = deployment()
    for turn in range(3):
        served.get("Patient/1")
        file.rename(file.with_name(f"{file.name}.{turn}"))
    oldest = file.with_name(f"{file.name}.0")
    compressed = oldest.with_name(f"{oldest.name}.gz")
    compressed.write_bytes(gzip.compress(oldest.read_bytes()))
    oldest.unlink()
    assert len(audit("who", "1", "--json").document["disclosures"]) == 3
    named = audit("who", "1", "--json", compressed)
    assert len(named.document["disclosures"]) == 1
    compressed.write_bytes(compressed.read_bytes()[:-20])
    assert audit("who", "1").status == 2


def test_who_needs_files_and_a_key(audit, file, tmp_path, monkeypatch):
    assert audit("who", "1").status == 2
    file.touch()
    for patient, status in (
        ("1", 0),
        ("https://encounters.example.org/Patient/1", 0),
        ("Encounter/1", 2),
        ("Patient/", 2),
    ):
        assert audit("who", patient).status == status
    assert audit("who", "1", tmp_path / "nothing").status == 2
    assert audit("who", "1", "--key", tmp_path / "nothing").status == 2
    monkeypatch.setenv("ENCOUNTERS_AUDIT", "stdout")
    assert audit("who", "1").status == 2
    assert audit("who", "1", file).status == 0
    monkeypatch.delenv("ENCOUNTERS_AUDIT_KEY")
    assert audit("who", "1", file).status == 2
