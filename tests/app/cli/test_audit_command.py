"""`encounters audit`: who saw the data of a patient; tampering that is reported."""

import csv
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import responses

from app.audit import FileSink
from app.audit_chain import Chain
from app.cli import main
from app.fhir.audit_event import (
    AuditedResponse,
    Deployment,
    audit_event,
    compact_event,
)
from tests.live import ROOT
from tests.redis_server import RedisServer
from tests.server.running import edges, running
from tests.serving import serve
from tests.toolkit.conftest import Said
from tests.validity import fhir_faults
from toolkit.contract.hospital import EDGES

KEY, CHAIN_KEY, OLD_KEY = "k" * 44, "c" * 44, "o" * 44
DEPLOYMENT = Deployment("0f3c", "https://encounters.example.org/fhir/v3", "Test")
FORMS = {"fhir": audit_event, "compact": compact_event}

Audit = Callable[..., Said]


@pytest.fixture
def audit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, file: Path
) -> Audit:
    """Return what runs `encounters audit` as the account of the service would."""
    monkeypatch.setenv("ENCOUNTERS_AUDIT", str(file))
    monkeypatch.setenv("ENCOUNTERS_AUDIT_KEY", KEY)
    monkeypatch.setenv("ENCOUNTERS_AUDIT_CHAIN_KEY", CHAIN_KEY)

    def run(*arguments: object) -> Said:
        status = main(["audit", *map(str, arguments)])
        return Said(status, *capsys.readouterr())

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of the settings."""
    return tmp_path / "audit.jsonl"


@pytest.fixture
def old_key(tmp_path: Path) -> Path:
    (file := tmp_path / "old_key").write_text(f"{OLD_KEY}\n")
    return file


# verify


class Writer:
    """Writes events as a process of the service does."""

    def __init__(self, file: Path, form: str = "fhir", key: str = CHAIN_KEY) -> None:
        self._file = file
        self._event = FORMS[form]
        self._chain = Chain(key)
        self._written = 0

    def write(self, count: int, to: Callable[[bytes], None] | None = None) -> None:
        for _ in range(count):
            self._written += 1
            response = AuditedResponse(
                recorded=f"2025-06-01T10:00:00.{self._written:03}+00:00",
                status=200,
                request_id=f"request-{self._written}",
                key="abcdefgh",
                # What a client chooses must not confuse the chain.
                client='x"","mac":"',
                interaction="read",
            )
            event = self._event(response, DEPLOYMENT)
            self._chain.write(event, to or FileSink(self._file).write)


@pytest.fixture(params=FORMS)
def lines(file: Path, request: pytest.FixtureRequest) -> list[bytes]:
    """Return the lines of a file with ten events of one writer, in each form."""
    Writer(file, request.param).write(10)
    return file.read_bytes().splitlines(keepends=True)


def faults(said: Said) -> list[tuple[str, int, int, str]]:
    """Return kind, first and last line, and the numbers of events, of each fault."""
    return [
        (each["kind"], each["line"], each["last"], each["text"].partition(": ")[2])
        for each in said.told["faults"]
    ]


def test_what_nobody_changed(audit: Audit, lines: list[bytes], file: Path) -> None:
    said = audit("verify", "--json")
    assert (said.status, faults(said), said.told["events"]) == (0, [], 10)
    (head,) = said.told["writers"]
    assert (head["first"], head["last"]) == (1, 10)
    assert audit("verify").status == 0
    if lines[0].startswith(b'{"resourceType"'):
        assert [list(fhir_faults(json.loads(line))) for line in lines] == [[]] * 10
    # The beginning may have been removed with old files.
    file.write_bytes(b"".join(lines[3:]))
    said = audit("verify", "--json")
    assert (said.status, faults(said)) == (0, [])
    assert said.told["writers"][0]["first"] == 4
    assert "4" in audit("verify").out.splitlines()[0]


def test_each_changed_byte_is_reported(
    audit: Audit, lines: list[bytes], file: Path
) -> None:
    file.write_bytes(b"".join(lines).replace(b"request-5", b"request-6"))
    assert faults(audit("verify", "--json")) == [("changed", 5, 5, "")]
    assert audit("verify").out.count("\n") == 2
    line = lines[4]
    for at in range(0, len(line) - 1, 7):
        changed = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
        file.write_bytes(b"".join([*lines[:4], changed, *lines[5:]]))
        said = audit("verify", "--json")
        assert said.status == 1
        kind, *lines_at, _ = faults(said)[0]
        # What is no JSON, or has no id any more, is none of the chain.
        assert kind in {"changed", "unreadable", "unchained"}, at
        assert lines_at == [5, 5]


TAMPERED: list[tuple[str, list[int], list[tuple[str, int, int, str]]]] = [
    ("a line deleted", [1, 2, 3, 5, 6], [("missing", 4, 4, "4")]),
    ("several deleted", [1, 5, 6, 10], [("missing", 2, 2, "2 to 4"), ("missing", 4, 4, "7 to 9")]),
    ("two swapped", [1, 2, 4, 3, 5], [("reordered", 4, 4, "3")]),
    ("one moved to the end", [1, 3, 4, 2], [("reordered", 4, 4, "2")]),
    ("one twice", [1, 2, 2, 3], [("duplicate", 3, 3, "2")]),
    ("one again later", [1, 2, 3, 2, 4], [("duplicate", 4, 4, "2")]),
    ("the first twice", [1, 1, 2, 3], [("duplicate", 2, 2, "1")]),
    ("several twice", [1, 2, 3, 2, 3, 4], [("duplicate", 4, 4, "2 to 3")]),
    ("one twice, one deleted", [1, 2, 2, 4], [("duplicate", 3, 3, "2"), ("missing", 4, 4, "3")]),
]  # fmt: skip


def test_lines_that_are_elsewhere(audit: Audit, lines: list[bytes], file: Path) -> None:
    for what, order, expected in TAMPERED:
        file.write_bytes(b"".join(lines[number - 1] for number in order))
        said = audit("verify", "--json")
        assert (said.status, faults(said)) == (1, expected), what
        assert audit("verify").status == 1


def test_what_was_cut_off_shows_by_an_earlier_run(
    audit: Audit, lines: list[bytes], file: Path, tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier.json"
    earlier.write_text(audit("verify", "--json").out)
    file.write_bytes(b"".join(lines[:7]))
    assert audit("verify").status == 0
    said = audit("verify", "--json", "--earlier", earlier)
    assert (said.status, faults(said)) == (1, [("cut off", 0, 0, "8 to 10")])
    Writer(file).write(1)
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[-1])
    said = audit("verify", "--json", "--earlier", earlier)
    # The new writer's event is older than the last one of the writer that is gone.
    assert faults(said) == [("cut off", 0, 0, "1 to 10")]


def test_writers_that_went_with_their_old_files_are_not_cut_off(
    audit: Audit, file: Path, tmp_path: Path
) -> None:
    Writer(file).write(1)
    earlier = tmp_path / "earlier.json"
    earlier.write_text(audit("verify", "--json").out)
    file.unlink()
    Writer(file).write(2)
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[1])
    assert audit("verify", "--earlier", earlier).status == 0


@pytest.fixture
def rotated(file: Path) -> list[Path]:
    """Return three files, oldest first, of two processes that take turns."""
    writers = Writer(file), Writer(file)
    for number in (2, 1):
        for _ in range(3):
            for writer in writers:
                writer.write(2)
        file.rename(file.with_name(f"{file.name}.{number}"))
    for writer in reversed(writers):
        writer.write(1)
    return sorted(file.parent.glob(f"{file.name}*"), reverse=True)


def test_renamed_and_compressed_files_are_one_chain_of_each_writer(
    audit: Audit, rotated: list[Path]
) -> None:
    said = audit("verify", "--json")
    assert (said.status, faults(said), said.told["events"]) == (0, [], 26)
    assert [(w["first"], w["last"]) for w in said.told["writers"]] == [(1, 13)] * 2
    assert audit("verify", *rotated).status == 0
    oldest = rotated[0]
    whole = oldest.with_name(f"{oldest.name}.gz")
    whole.write_bytes(gzip.compress(oldest.read_bytes()))
    oldest.unlink()
    assert audit("verify", "--json").told["events"] == 26
    whole.write_bytes(whole.read_bytes()[:-20])
    assert audit("verify").status == 2


def test_files_that_are_missing_cut_or_there_twice(
    audit: Audit, rotated: list[Path]
) -> None:
    oldest, middle, newest = rotated
    (twice := oldest.with_name("audit.jsonl.9")).write_bytes(oldest.read_bytes())
    said = audit("verify", "--json")
    assert [each[::3] for each in faults(said)] == [("duplicate", "1 to 6")] * 2
    twice.unlink()
    text = middle.read_bytes().splitlines(keepends=True)
    middle.write_bytes(b"".join(text[:-1]))
    (fault,) = audit("verify", "--json").told["faults"]
    assert (fault["kind"], fault["file"]) == ("missing", newest.name)
    assert fault["text"].endswith(": 12")
    middle.unlink()
    said = audit("verify", "--json")
    assert said.status == 1
    assert {each["file"] for each in said.told["faults"]} == {newest.name}
    assert [each[::3] for each in faults(said)] == [("missing", "7 to 12")] * 2


def test_an_event_of_another_writer_does_not_fill_a_gap(
    audit: Audit, file: Path
) -> None:
    for writer in (Writer(file), Writer(file)):
        writer.write(3)
    text = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([text[0], text[4], *text[2:4], text[5]]))
    found = faults(audit("verify", "--json"))
    assert {each[0] for each in found} == {"missing", "reordered"}


def test_lines_outside_of_a_chain(audit: Audit, lines: list[bytes], file: Path) -> None:
    plain = json.loads(lines[0])
    plain.pop("id")
    unchained = json.dumps(plain).encode() + b"\n"
    strange = [b"[]\n", b'"x"\n', b'{"id": 7}\n', b'{"id": "x-y"}\n', b"{to", b"rn\n"]
    file.write_bytes(b"".join([unchained, unchained, *lines, *strange]))
    assert faults(audit("verify", "--json")) == [
        ("unchained", 1, 2, ""),
        ("unreadable", 13, 17, ""),
    ]


def test_a_line_that_could_not_be_written_leaves_no_gap(
    audit: Audit, file: Path
) -> None:
    def refuse(_line: bytes) -> None:
        raise OSError

    writer = Writer(file)
    writer.write(1)
    with pytest.raises(OSError):  # noqa: PT011 - it has no text
        writer.write(1, refuse)
    writer.write(1)
    said = audit("verify", "--json")
    assert (said.status, said.told["events"]) == (0, 2)


FORKING = """
import os, sys
from pathlib import Path
from tests.app.cli.test_audit_command import Writer
writer = Writer(Path(sys.argv[1]))
writer.write(2)
if (child := os.fork()) == 0:
    writer.write(2)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
writer.write(1)
"""


def test_a_fork_begins_a_chain_of_its_own(audit: Audit, file: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(file)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60)
    said = audit("verify", "--json")
    assert said.status == 0
    assert sorted(w["last"] for w in said.told["writers"]) == [2, 3]


def test_keys_of_the_chain(
    audit: Audit, file: Path, old_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(file, key=OLD_KEY).write(2)
    Writer(file).write(2)
    assert faults(audit("verify", "--json")) == [("changed", 1, 2, "")]
    assert audit("verify", "--key", old_key).status == 0
    monkeypatch.delenv("ENCOUNTERS_AUDIT_CHAIN_KEY")
    monkeypatch.setenv("ENCOUNTERS_AUDIT_CHAIN_KEY_FILE", str(old_key))
    assert audit("verify").status == 1
    monkeypatch.delenv("ENCOUNTERS_AUDIT_CHAIN_KEY_FILE")
    said = audit("verify")
    assert (said.status, "ENCOUNTERS_AUDIT_CHAIN_KEY" in said.err) == (2, True)


def test_verify_needs_events(
    audit: Audit, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audit("verify").status == 2
    file.touch()
    assert audit("verify").status == 2
    Writer(file).write(1)
    assert audit("verify", tmp_path / "nothing").status == 2
    assert audit("verify", "--earlier", file).status == 2
    assert audit("verify", "--key", tmp_path / "nothing").status == 2
    monkeypatch.setenv("ENCOUNTERS_AUDIT", "stdout")
    assert audit("verify").status == 2
    assert audit("verify", file).status == 0


# who


@pytest.fixture
def deployment(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock, file: Path
) -> Iterator[Callable[..., Any]]:
    """Return what serves the edge-case hospital with audit events."""

    def started(**settings: str) -> Any:
        settings = {"AUDIT_KEY": KEY, **settings}
        return serve(EDGES, tmp_path, redis_server.url, AUDIT=str(file), **settings)

    yield started
    del keys


def test_what_the_service_writes_is_a_chain_where_it_has_a_key(
    audit: Audit, deployment: Callable[..., Any], file: Path
) -> None:
    deployment().get("Encounter/1")
    assert faults(audit("verify", "--json")) == [("unchained", 1, 1, "")]
    file.unlink()
    for form in FORMS:
        served = deployment(AUDIT_CHAIN_KEY=CHAIN_KEY, AUDIT_FORM=form)
        for path in ("Encounter/1", "Encounter?patient=1", "nothing", "metadata"):
            served.get(path)
    said = audit("verify", "--json")
    assert said.status == 0
    assert [(w["first"], w["last"]) for w in said.told["writers"]] == [(1, 4)] * 2


@pytest.mark.parametrize("arguments", ["", "--preload"])
def test_workers_of_a_service_append_to_one_file(
    audit: Audit, file: Path, tmp_path: Path, redis_server: RedisServer, arguments: str
) -> None:
    settings = {"AUDIT": str(file), "AUDIT_KEY": KEY, "AUDIT_CHAIN_KEY": CHAIN_KEY}
    settings |= {"REDIS_URL": redis_server.url, "WORKERS": "2"}
    environ = {"GUNICORN_CMD_ARGS": arguments}
    with (
        running(tmp_path, edges(tmp_path), environ, **settings) as service,
        ThreadPoolExecutor(8) as threads,
    ):
        service.until(lambda: len(service.workers()) == 2)
        for turn in range(3):
            answers = threads.map(service.get, ["Encounter?_count=5"] * 100)
            assert {answer.status for answer in answers} == {200}
            file.rename(file.with_name(f"{file.name}.{turn}"))
    said = audit("verify", "--json")
    assert (said.status, said.told["faults"]) == (0, [])
    # The probe of whoever started it is a request, too.
    assert said.told["events"] >= 300
    assert len(said.told["writers"]) == 2


@pytest.mark.parametrize("form", FORMS)
def test_who_saw_a_patient(
    audit: Audit, deployment: Callable[..., Any], file: Path, form: str
) -> None:
    served = deployment(AUDIT_FORM=form)
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
    said = audit("who", "Patient/1", "--json")
    assert said.status == 0
    rows = said.told["disclosures"]
    assert [row["request_id"] for row in rows][:4] == ids
    assert [row["action"] for row in rows] == ["read", "read"] + ["search-type"] * 3
    assert {row["client"] for row in rows} == {"client-1"}
    assert {row["address"] for row in rows} == {"127.0.0.1"}
    shown = [row["resources"].split() for row in rows]
    assert shown[:2] == [["Encounter/1"], ["Patient/1"]]
    # Of the search for two patients, the stays of this one only.
    assert set(shown[2]) == stays == set(shown[4])
    assert shown[3] == []
    assert audit("who", "1", "--json").out == said.out

    header, *cells = csv.reader(io.StringIO(audit("who", "Patient/1", "--csv").out))
    assert header == ["time", "client", "address", "action", "resources", "request_id"]
    assert [row[4].split() for row in cells] == shown
    table = audit("who", "Patient/1").out.splitlines()[1:]
    assert [line.split()[0] for line in table] == [row[0] for row in cells]
    assert "Patient/1" in table[1]
    assert f" {len(stays)} Encounter " in table[2]

    def number(*period: str) -> int:
        return len(audit("who", "1", "--json", *period).told["disclosures"])

    day = rows[0]["time"][:10]
    assert number("--from", day, "--to", day) == 5
    assert number("--to", "2024-02-29") == number("--from", "2999-12-31") == 0
    assert number("--from", "2024-02-29") == number("--to", "2999-12-31") == 5

    with file.open("a") as appended:
        appended.write('torn\n{"pat": "x"}\n[]\n{"at": "2025", "pat": 7}\n')
    said = audit("who", "Patient/1", "--json")
    assert (said.status, len(said.told["disclosures"])) == (1, 5)
    assert said.err


@pytest.mark.parametrize("form", FORMS)
def test_who_in_clear(audit: Audit, deployment: Callable[..., Any], form: str) -> None:
    served = deployment(AUDIT_PATIENTS="clear", AUDIT_FORM=form)
    for path in ("Patient/1", "Encounter/1", "Patient/12"):
        served.get(path)
    rows = audit("who", "Patient/1", "--json").told["disclosures"]
    assert [row["resources"] for row in rows] == ["Patient/1", "Encounter/1"]


def test_who_across_keys(
    audit: Audit, deployment: Callable[..., Any], old_key: Path
) -> None:
    deployment(AUDIT_KEY=OLD_KEY).get("Patient/1")
    deployment().get("Patient/1")
    said = audit("who", "Patient/1", "--json")
    # One event may be of this patient: the answer is incomplete, and says so.
    assert (said.status, len(said.told["disclosures"])) == (1, 1)
    assert "--key" in said.err
    said = audit("who", "Patient/1", "--json", "--key", old_key)
    assert (said.status, len(said.told["disclosures"]), said.err) == (0, 2, "")


def test_who_needs_a_key(
    audit: Audit, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.touch()
    assert audit("who", "Patient/1").status == 0
    assert audit("who", "https://encounters.example.org/Patient/1").status == 0
    assert audit("who", "Encounter/1").status == audit("who", "Patient/").status == 2
    monkeypatch.delenv("ENCOUNTERS_AUDIT_KEY")
    assert audit("who", "Patient/1").status == 2
