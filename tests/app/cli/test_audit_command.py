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

from adapters.testing.hospital import EDGES
from app.audit import FileSink
from app.audit_chain import Chain
from app.cli import main
from app.fhir.audit_event import (
    AuditedResponse,
    Deployment,
    audit_event,
    compact_event,
)
from tests.app.cli.conftest import Said
from tests.live import ROOT
from tests.redis_server import RedisServer
from tests.server.running import edges, running
from tests.serving import serve
from tests.validity import fhir_faults

KEY, CHAIN_KEY = "k" * 44, "c" * 44
DEPLOYMENT = Deployment("0f3c", "https://encounters.example.org/fhir/v3", "Test")
FORMS = {"fhir": audit_event, "compact": compact_event}

Audit = Callable[..., Said]


@pytest.fixture
def audit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Audit:
    """Return what runs `encounters audit` as the account of the service would."""
    monkeypatch.setenv("ENCOUNTERS_AUDIT", str(tmp_path / "audit.jsonl"))
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


# verify


class Writer:
    """Writes events as a process of the service does."""

    def __init__(self, file: Path, form: str = "fhir", key: str = CHAIN_KEY) -> None:
        self._file = file
        self._event = FORMS[form]
        self._chain = Chain(key)
        self._written = 0

    def write(self, count: int) -> None:
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
            self._chain.write(event, FileSink(self._file).write)


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    """Return each form of events."""
    return str(request.param)


@pytest.fixture
def lines(file: Path, form: str) -> list[bytes]:
    """Return the lines of a file with ten events of one writer."""
    Writer(file, form).write(10)
    return file.read_bytes().splitlines(keepends=True)


def faults(said: Said) -> list[tuple[str, int, int, str]]:
    """Return kind, first and last line, and the numbers of events, of each fault."""
    return [
        (each["kind"], each["line"], each["last"], each["text"].partition(": ")[2])
        for each in said.told["faults"]
    ]


def test_what_nobody_changed(audit: Audit, lines: list[bytes]) -> None:
    said = audit("verify", "--json")
    assert said.status == 0
    assert faults(said) == []
    (head,) = said.told["writers"]
    assert (said.told["events"], head["first"], head["last"]) == (10, 1, 10)
    assert audit("verify").status == 0
    assert len(lines) == 10


def test_chained_events_are_valid(file: Path) -> None:
    Writer(file).write(2)
    for line in file.read_text().splitlines():
        assert list(fhir_faults(json.loads(line))) == []


def test_each_changed_byte_is_reported(
    audit: Audit, lines: list[bytes], file: Path
) -> None:
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


def test_a_value_in_place_of_another_is_reported(
    audit: Audit, lines: list[bytes], file: Path
) -> None:
    text = b"".join(lines)
    file.write_bytes(text.replace(b"request-5", b"request-6"))
    assert faults(audit("verify", "--json")) == [("changed", 5, 5, "")]
    assert audit("verify").out.count("\n") == 2


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


@pytest.mark.parametrize(
    ("order", "expected"), [row[1:] for row in TAMPERED], ids=[r[0] for r in TAMPERED]
)
def test_lines_that_are_elsewhere(
    audit: Audit,
    lines: list[bytes],
    file: Path,
    order: list[int],
    expected: list[tuple[str, int, int, str]],
) -> None:
    file.write_bytes(b"".join(lines[number - 1] for number in order))
    said = audit("verify", "--json")
    assert said.status == 1
    assert faults(said) == expected
    assert audit("verify").status == 1


def test_the_beginning_may_have_been_removed_with_old_files(
    audit: Audit, lines: list[bytes], file: Path
) -> None:
    file.write_bytes(b"".join(lines[3:]))
    said = audit("verify", "--json")
    assert (said.status, faults(said)) == (0, [])
    assert said.told["writers"][0]["first"] == 4
    assert "4" in audit("verify").out.splitlines()[0]


def test_what_was_cut_off_shows_by_an_earlier_run(
    audit: Audit, lines: list[bytes], file: Path, tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier.json"
    earlier.write_text(audit("verify", "--json").out)
    file.write_bytes(b"".join(lines[:7]))
    assert audit("verify").status == 0
    said = audit("verify", "--json", "--earlier", earlier)
    assert said.status == 1
    assert faults(said) == [("cut off", 0, 0, "8 to 10")]
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
    writer = Writer(file)
    writer.write(2)
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[1])
    assert audit("verify", "--earlier", earlier).status == 0


@pytest.fixture
def rotated(file: Path, form: str) -> Callable[[], list[Path]]:
    """Return what writes three files, of two processes that take turns."""

    def write() -> list[Path]:
        writers = Writer(file, form), Writer(file, form)
        for number in (2, 1):
            for _ in range(3):
                for writer in writers:
                    writer.write(2)
            file.rename(file.with_name(f"{file.name}.{number}"))
        for writer in reversed(writers):
            writer.write(1)
        return sorted(file.parent.glob(f"{file.name}*"), reverse=True)

    return write


def test_two_writers_and_files_that_were_renamed(
    audit: Audit, rotated: Callable[[], list[Path]]
) -> None:
    files = rotated()
    assert len(files) == 3
    said = audit("verify", "--json")
    assert (said.status, faults(said)) == (0, [])
    assert [(w["first"], w["last"]) for w in said.told["writers"]] == [(1, 13)] * 2
    assert said.told["events"] == 26
    assert audit("verify", *files).status == 0


def test_files_that_are_compressed(
    audit: Audit, rotated: Callable[[], list[Path]]
) -> None:
    oldest, *_ = rotated()
    oldest.with_name(f"{oldest.name}.gz").write_bytes(
        gzip.compress(oldest.read_bytes())
    )
    oldest.unlink()
    assert audit("verify", "--json").told["events"] == 26
    whole = oldest.with_name(f"{oldest.name}.gz")
    whole.write_bytes(whole.read_bytes()[:-20])
    assert audit("verify").status == 2


def test_a_file_that_is_missing(
    audit: Audit, rotated: Callable[[], list[Path]]
) -> None:
    _, middle, newest = rotated()
    middle.unlink()
    said = audit("verify", "--json")
    assert said.status == 1
    assert {each["file"] for each in said.told["faults"]} == {newest.name}
    assert [each[::3] for each in faults(said)] == [("missing", "7 to 12")] * 2


def test_the_end_of_a_renamed_file_is_missing(
    audit: Audit, rotated: Callable[[], list[Path]]
) -> None:
    _, middle, newest = rotated()
    text = middle.read_bytes().splitlines(keepends=True)
    middle.write_bytes(b"".join(text[:-1]))
    (fault,) = audit("verify", "--json").told["faults"]
    assert (fault["kind"], fault["file"]) == ("missing", newest.name)
    assert fault["text"].endswith(": 12")


def test_a_file_twice(audit: Audit, rotated: Callable[[], list[Path]]) -> None:
    oldest, *_ = rotated()
    (oldest.with_name("audit.jsonl.9")).write_bytes(oldest.read_bytes())
    said = audit("verify", "--json")
    assert [each[::3] for each in faults(said)] == [("duplicate", "1 to 6")] * 2


def test_an_event_of_another_writer_does_not_fill_a_gap(
    audit: Audit, file: Path
) -> None:
    one, other = Writer(file), Writer(file)
    one.write(3)
    other.write(3)
    text = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([text[0], text[4], *text[2:4], text[5]]))
    said = audit("verify", "--json")
    assert {each[0] for each in faults(said)} == {"missing", "reordered"}


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


def test_a_line_that_was_cut_off_and_written_anew(
    audit: Audit, lines: list[bytes], file: Path
) -> None:
    file.write_bytes(b"".join([*lines[:9], lines[9][:40]]))
    assert faults(audit("verify", "--json")) == [("unreadable", 10, 10, "")]


def test_a_line_that_could_not_be_written_leaves_no_gap(
    audit: Audit, file: Path
) -> None:
    def refuse(_line: bytes) -> None:
        raise OSError

    chain = Chain(CHAIN_KEY)
    sink = FileSink(file)
    for write in (sink.write, refuse, sink.write):
        event = compact_event(
            AuditedResponse(recorded="2025", status=200, request_id="r", key="k"),
            DEPLOYMENT,
        )
        try:
            chain.write(event, write)
        except OSError:
            assert write is refuse
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
    audit: Audit, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Writer(file, key="o" * 44).write(2)
    Writer(file).write(2)
    assert faults(audit("verify", "--json")) == [("changed", 1, 2, "")]
    old = tmp_path / "old_key"
    old.write_text("o" * 44 + "\n")
    assert audit("verify", "--key", old).status == 0
    monkeypatch.delenv("ENCOUNTERS_AUDIT_CHAIN_KEY")
    monkeypatch.setenv("ENCOUNTERS_AUDIT_CHAIN_KEY_FILE", str(old))
    assert audit("verify").status == 1
    monkeypatch.delenv("ENCOUNTERS_AUDIT_CHAIN_KEY_FILE")
    said = audit("verify")
    assert said.status == 2
    assert "ENCOUNTERS_AUDIT_CHAIN_KEY" in said.err


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


@pytest.fixture(params=FORMS)
def deployment(
    request: pytest.FixtureRequest,
    redis_server: RedisServer,
    tmp_path: Path,
    keys: responses.RequestsMock,
    file: Path,
) -> Iterator[Callable[..., Any]]:
    """Return what serves the edge-case hospital with audit events of a form."""

    def started(**settings: str) -> Any:
        settings = {"AUDIT_FORM": str(request.param), "AUDIT_KEY": KEY, **settings}
        return serve(EDGES, tmp_path, redis_server.url, AUDIT=str(file), **settings)

    yield started
    del keys


def test_what_the_service_writes_is_a_chain(
    audit: Audit, deployment: Callable[..., Any]
) -> None:
    for _ in range(2):
        served = deployment(AUDIT_CHAIN_KEY=CHAIN_KEY)
        for path in ("Encounter/1", "Encounter?patient=1", "nothing", "metadata"):
            served.get(path)
    said = audit("verify", "--json")
    assert said.status == 0
    assert [(w["first"], w["last"]) for w in said.told["writers"]] == [(1, 4)] * 2


@pytest.mark.parametrize("arguments", ["", "--preload"])
def test_workers_of_a_service_append_to_one_file(
    audit: Audit, file: Path, tmp_path: Path, redis_server: RedisServer, arguments: str
) -> None:
    settings = {
        "REDIS_URL": redis_server.url,
        "WORKERS": "2",
        "AUDIT": str(file),
        "AUDIT_KEY": KEY,
        "AUDIT_CHAIN_KEY": CHAIN_KEY,
    }
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


def test_without_its_key_no_chain_is_written(
    audit: Audit, deployment: Callable[..., Any]
) -> None:
    deployment().get("Encounter/1")
    assert faults(audit("verify", "--json")) == [("unchained", 1, 1, "")]


def test_who_saw_a_patient(
    audit: Audit, deployment: Callable[..., Any], file: Path
) -> None:
    served = deployment()
    read = served.get("Encounter/1")
    file.rename(file.with_name("audit.jsonl.1"))
    ids = [read.headers["X-Request-Id"]]
    count = "Encounter?patient=1&_summary=count"
    for path in ("Patient/1", "Encounter?patient=1,3&_count=100", count):
        ids.append(served.get(path).headers["X-Request-Id"])
    all_stays = {"patient": "1", "_count": "100"}
    stays = {
        f"Encounter/{entry['resource']['id']}"
        for entry in served.search("Encounter", all_stays)["entry"]
        if entry["resource"]["resourceType"] == "Encounter"
    }
    for path in ("Patient/3", "Encounter/Canarivel", "Encounter?patient=1&date=never"):
        served.get(path)
    said = audit("who", "Patient/1", "--json")
    assert said.status == 0
    rows = said.told["disclosures"]
    assert [row["request_id"] for row in rows][:4] == ids
    assert len(rows) == 5
    assert [row["action"] for row in rows] == ["read", "read"] + ["search-type"] * 3
    assert {row["client"] for row in rows} == {"client-1"}
    assert {row["address"] for row in rows} == {"127.0.0.1"}
    shown = [row["resources"].split() for row in rows]
    assert shown[:2] == [["Encounter/1"], ["Patient/1"]]
    # Of the search for two patients, the stays of this one only.
    assert set(shown[2]) == stays == set(shown[4])
    assert shown[3] == []
    assert audit("who", "1", "--json").out == said.out


def test_who_as_csv_and_as_a_table(
    audit: Audit, deployment: Callable[..., Any]
) -> None:
    served = deployment()
    served.get("Patient/1")
    served.get("Encounter?patient=1&_count=100")
    said = audit("who", "Patient/1", "--csv")
    header, *rows = csv.reader(io.StringIO(said.out))
    assert header == ["time", "client", "address", "action", "resources", "request_id"]
    assert [row[3] for row in rows] == ["read", "search-type"]
    count = len(rows[1][4].split())
    assert count > 3
    table = audit("who", "Patient/1").out.splitlines()
    assert [line.split()[0] for line in table[1:]] == [row[0] for row in rows]
    assert "Patient/1" in table[1]
    assert f" {count} Encounter " in table[2]


def test_who_in_clear(audit: Audit, deployment: Callable[..., Any]) -> None:
    served = deployment(AUDIT_PATIENTS="clear")
    for path in ("Patient/1", "Encounter/1", "Patient/12"):
        served.get(path)
    rows = audit("who", "Patient/1", "--json").told["disclosures"]
    assert [row["resources"] for row in rows] == ["Patient/1", "Encounter/1"]


def test_who_across_keys(
    audit: Audit, deployment: Callable[..., Any], tmp_path: Path
) -> None:
    deployment(AUDIT_KEY="o" * 44).get("Patient/1")
    deployment().get("Patient/1")
    said = audit("who", "Patient/1", "--json")
    # One event may be of this patient: the answer is incomplete, and says so.
    assert (said.status, len(said.told["disclosures"])) == (1, 1)
    assert "--key" in said.err
    old = tmp_path / "old_key"
    old.write_text("o" * 44 + "\n")
    said = audit("who", "Patient/1", "--json", "--key", old)
    assert (said.status, len(said.told["disclosures"]), said.err) == (0, 2, "")


def test_who_in_a_period(audit: Audit, deployment: Callable[..., Any]) -> None:
    deployment().get("Patient/1")
    (row,) = audit("who", "Patient/1", "--json").told["disclosures"]
    day = row["time"][:10]

    def rows(*period: str) -> int:
        return len(audit("who", "1", "--json", *period).told["disclosures"])

    assert rows("--from", day, "--to", day) == 1
    assert rows("--to", "2024-02-29") == rows("--from", "2999-12-31") == 0
    assert rows("--from", "2024-02-29") == rows("--to", "2999-12-31") == 1


def test_lines_that_who_cannot_read(
    audit: Audit, deployment: Callable[..., Any], file: Path
) -> None:
    deployment().get("Patient/1")
    with file.open("a") as appended:
        appended.write('torn\n{"pat": "x"}\n[]\n{"at": "2025", "pat": 7}\n')
    said = audit("who", "Patient/1", "--json")
    assert (said.status, len(said.told["disclosures"])) == (1, 1)
    assert said.err


def test_who_needs_a_key(
    audit: Audit, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.touch()
    assert audit("who", "Patient/1").status == 0
    assert audit("who", "https://encounters.example.org/Patient/1").status == 0
    assert audit("who", "Encounter/1").status == audit("who", "Patient/").status == 2
    monkeypatch.delenv("ENCOUNTERS_AUDIT_KEY")
    assert audit("who", "Patient/1").status == 2
    with pytest.raises(SystemExit):
        audit("who", "Patient/1", "--csv", "--json")
