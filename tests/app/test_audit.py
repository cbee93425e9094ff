"""The audit trail: one AuditEvent a response, what it never holds, and where it goes."""

import base64
import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client import REGISTRY

from app.audit import FileSink, StreamSink, SyslogSink, check_stdout
from app.config import SettingsError
from app.fhir.audit_event import read_event
from app.service import EXTENSION
from tests.app.answers import read_from
from tests.live import HOST
from tests.serving import Served, ids
from tests.validity.stu3 import fhir_faults
from toolkit.contract.hospital import IPP_SYSTEM

KEY = "an audit key of the tests".replace(" ", "-") + "0123456789"


class Audited(NamedTuple):
    """A service and the file of its events."""

    served: Served
    file: Path

    def events(self):
        """Return the events written so far, each a valid AuditEvent."""
        text = self.file.read_text() if self.file.exists() else ""
        assert not text or text.endswith("\n")
        events = [json.loads(line) for line in text.splitlines()]
        for event in events:
            assert event["resourceType"] == "AuditEvent"
            assert not list(fhir_faults(event))
        return events

    def last(self):
        return self.events()[-1]


@pytest.fixture
def audit(make_service, tmp_path):
    """Return a function that serves the edge-case hospital with an audit trail."""

    def serve_audited(**settings):
        file = tmp_path / "audit.jsonl"
        chosen = {"AUDIT": str(file), "AUDIT_KEY": KEY, **settings}
        return Audited(make_service(**chosen), file)

    return serve_audited


@pytest.fixture
def audited(audit):
    """Return one with the settings that a deployment has by itself."""
    return audit()


def digest(text):
    hashed = blake2b(text.encode(), key=KEY.encode(), digest_size=18)
    return base64.b64encode(hashed.digest()).decode()


def parameters(event):
    """Return names of parameters and digests of values."""
    return [
        (each["type"], each["value"])
        for entity in event["entity"]
        for each in entity.get("detail", ())
        if entity["role"]["code"] == "24"
    ]


def shown(event):
    """Return the references of the resources that were returned, but for patients."""
    response = read_event(event)
    lists = response.patients.values()
    ids = [id for text in lists for id in text.split(",") if id]
    return [*(f"{response.returned}/{id}" for id in ids), *response.others]


def patients(event):
    """Return how the event names the patients of the answer."""
    return list(read_event(event).patients)


def brief(event):
    """Return interaction, outcome, status and client."""
    subtype = event.get("subtype", [{}])[0].get("code")
    client = event["agent"][0].get("userId", {}).get("value")
    return subtype, event["outcome"], event["outcomeDesc"], client


def test_a_search(audited):
    bundle = audited.served.search(
        "Encounter", {"patient": "Patient/1,3", "date": "ge2024-03-14", "_count": "100"}
    )
    (event,) = audited.events()
    assert brief(event) == ("search-type", "0", "200 OK", "client-1")
    assert event["action"] == "E"
    assert event["recorded"].endswith("+00:00")
    assert parameters(event) == [
        ("patient", digest("Patient/1")),
        ("patient", digest("Patient/3")),
        ("date", digest("ge2024-03-14")),
        ("_count", digest("100")),
    ]
    assert sorted(shown(event)) == sorted(f"Encounter/{id}" for id in ids(bundle))
    assert len(shown(event)) > 5
    stays = {}
    for stay in (entry["resource"] for entry in bundle["entry"]):
        if stay["resourceType"] == "Encounter":
            named = digest(stay["subject"]["reference"])
            stays[named] = [*stays.get(named, []), stay["id"]]
    assert len(stays) == 2
    named = read_event(event).patients
    assert {name: ids.split(",") for name, ids in named.items()} == stays
    assert {"reference": {"reference": f"Bundle/{bundle['id']}"}} in event["entity"]
    assert event["source"]["identifier"]["value"].startswith("https://")


def test_included_resources_are_named(audited):
    """Decision 36."""
    both = [
        ("_include", f"Encounter:{name}") for name in ("patient", "service-provider")
    ]
    for includes, whole in (([], []), (both, ["Patient/1", "Patient/2"])):
        audited.served.search("Encounter", [("_id", "1,42"), *includes])
        response = read_event(audited.last())
        assert set(response.patients) == {digest("Patient/1"), digest("Patient/2")}
        assert sorted(response.included) == sorted(map(digest, whole))
        assert response.others == (("Organization/H1",) if includes else ())
        assert shown(audited.last())[:2] == ["Encounter/42", "Encounter/1"]


def test_a_page_tells_the_question_of_its_search(audited):
    first = audited.served.search("Encounter", {"patient": "Patient/5", "_count": "3"})
    second = audited.served.follow(first, "next")
    event = audited.last()
    assert brief(event) == ("search-type", "0", "200 OK", "client-1")
    names = [name for name, _ in parameters(event)]
    assert names == ["_id", "_index", "_searchAfter", "patient", "_count"]
    assert ("_id", digest(f"Bundle/{first['id']}")) in parameters(event)
    assert ("patient", digest("Patient/5")) in parameters(event)
    assert read_event(event).bundle == second["id"]
    assert shown(event) == [f"Encounter/{id}" for id in ids(second)]


def test_reads_with_patients_as_digests_or_in_clear(audit):
    for form, named in (("digest", digest), ("clear", str)):
        audited = audit(AUDIT_PATIENTS=form)
        for path, resources, patient in (
            ("Encounter/1", ["Encounter/1"], [named("Patient/1")]),
            ("Patient/12", [], [named("Patient/12")]),
            ("Organization/H1", ["Organization/H1"], []),
        ):
            answer = audited.served.get(path)
            event = audited.last()
            assert (shown(event), patients(event)) == (resources, patient)
            assert event["action"] == "R"
            assert parameters(event) == [("_id", digest(path))]
            request = event["entity"][0]
            assert request["identifier"]["value"] == answer.headers["X-Request-Id"]
            adapter = audited.served.app.extensions[EXTENSION].adapter
            assert request["description"] == adapter.fingerprint


def test_one_digest_for_a_patient_wherever_it_stands(audit):
    audited = audit()
    base = audited.served.app.extensions[EXTENSION].settings.base_url
    for name in ("patient", "subject", "patient:Patient", "subject:Patient"):
        for value in ("1", "Patient/1", f"{base}/Patient/1"):
            audited.served.search("Encounter", {name: value})
    number = {"patient.identifier": f"{IPP_SYSTEM}|1"}
    audited.served.search("Encounter", number)
    page = audited.served.search("Encounter", {**number, "_count": "1"})
    audited.served.follow(page, "next")
    audited.served.search("Patient", {"_id": "1"})
    audited.served.get("Patient/1")
    for event in audited.events():
        assert digest("Patient/1") in [value for _, value in parameters(event)]
        assert patients(event) == [digest("Patient/1")]
    audit(AUDIT_KEY="k" * 32).served.get("Patient/1")
    assert patients(audited.last()) != [digest("Patient/1")]


BAD_TOKEN = {"Authorization": "Bearer Canarivel"}
ANSWERS = [
    ("GET Encounter?patient=1&date=never", {}, ("search-type", "4", 412, "client-1")),
    ("GET Encounter/Canarivel", {}, ("read", "4", 404, "client-1")),
    ("GET Encounter/37", {}, ("read", "8", 500, "client-1")),
    ("GET Encounter/%ed%a0%80?x=%ff", {}, ("read", "4", 400, "client-1")),
    ("GET Canarivel?Canarivel=Canarivel", {}, (None, "4", 404, None)),
    ("DELETE Encounter/1", {}, (None, "4", 405, None)),
    ("OPTIONS Encounter/1", {}, (None, "0", 200, None)),
    ("Canarivel Encounter/1", {}, (None, "4", 405, None)),
    ("HEAD Encounter/Canarivel", {}, ("read", "4", 404, "client-1")),
    ("GET Encounter/1", BAD_TOKEN, ("read", "4", 401, None)),
    ("GET metadata", {}, ("capabilities", "0", 200, None)),
]


def test_every_answer_has_one_event(audited):
    for number, (sent, headers, expected) in enumerate(ANSWERS, 1):
        audited.served.send(*sent.split(" "), headers=headers)
        assert len(audited.events()) == number
        event = audited.last()
        interaction, outcome, described, client = brief(event)
        assert (interaction, outcome, int(described[:3]), client) == expected
        assert shown(event) == patients(event) == []
    assert "Canarivel" not in audited.file.read_text()
    plain = "http://encounters.example.org"
    audited.served.send("GET", "Encounter/1", base_url=plain)
    assert brief(audited.last())[2] == "403 Forbidden"


def test_a_name_that_is_no_parameter_is_not_written(audited):
    audited.served.send("GET", "Patient?Canarivel=1&family:Canarivel=2&family:exact=3")
    assert parameters(audited.last()) == [
        ("(other)", digest("1")),
        ("(other)", digest("2")),
        ("family:exact", digest("3")),
    ]


def test_what_was_not_shown_is_not_named(audited):
    audited.served.search("Encounter", {"patient": "1", "_summary": "count"})
    assert shown(audited.last()) == patients(audited.last()) == []
    audited.served.search("Encounter", {"_id": "1,37"})
    assert shown(audited.last()) == ["Encounter/1"]


def test_values_from_the_hundredth_on_have_one_digest_together(audited):
    many = ",".join(map(str, range(120)))
    audited.served.post("Encounter/_search", [("patient", many), ("_id", "1,2")])
    found = parameters(audited.last())
    assert found[99] == ("patient", digest("Patient/99"))
    assert [name for name, _ in found[100:]] == ["patient", "_id"]
    assert found[101] == ("_id", digest("Encounter/1,2"))


def test_events_go_to_stdout_where_that_is_the_choice(audit, capfd):
    audited = audit(AUDIT="stdout")
    assert audited.served.get("Encounter/1").status_code == 200
    (line,) = capfd.readouterr().out.splitlines()
    assert shown(json.loads(line)) == ["Encounter/1"]
    assert not audited.file.exists()


PROXY, CLIENT, CLIENT_6 = "10.1.0.7", "192.0.2.7", "2001:db8::7:1"
WAYS = [
    # Nobody is believed who is no trusted proxy.
    (CLIENT, "198.51.100.1", CLIENT),
    (PROXY, f"198.51.100.1, {CLIENT}, 10.1.0.8", CLIENT),
    # All of it: only limits count networks.
    (PROXY, CLIENT_6, CLIENT_6),
    # Some proxies write the port of their client, too.
    (PROXY, f"198.51.100.1:443, {CLIENT}:50123", CLIENT),
    (PROXY, f"[{CLIENT_6}]:50123, 10.1.0.8:80", CLIENT_6),
    (PROXY, "[]:80", PROXY),
    (f"::ffff:{CLIENT}", None, CLIENT),
    # A unix socket has no address, and only the proxy opens it.
    ("", CLIENT, CLIENT),
]


def test_the_address_is_the_one_that_trusted_proxies_name(audit):
    audited = audit(TRUSTED_PROXIES="10.1.0.0/16")
    for peer, forwarded, _ in WAYS:
        read_from(audited.served, peer, forwarded)
    networks = [event["agent"][0].get("network") for event in audited.events()]
    assert networks == [known and {"address": known} for _, _, known in WAYS]
    audited = audit(AUDIT_ADDRESSES="false")
    read_from(audited.served, CLIENT)
    assert audited.last()["agent"] == [
        {"userId": {"value": "client-1"}, "requestor": True}
    ]


def unwritten(caplog):
    """Return what the log says of events that were not written."""
    records = [r for r in caplog.records if r.msg == "audit event not written"]
    return [record.data for record in records]


def counted(name):
    return REGISTRY.get_sample_value(f"encounters_audit_{name}_total") or 0.0


def test_a_full_disk_refuses_every_answer(audit, tmp_path, caplog):
    """Decision 43: until there is room."""
    events, failures = counted("events"), counted("failures")
    target = tmp_path / "link.jsonl"
    target.symlink_to("/dev/full")
    served = audit(AUDIT=str(target)).served
    for path in ("Encounter/1", "metadata", "nothing"):
        response = served.get(path)
        assert response.status_code == 503
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert unwritten(caplog) == [{"failures": n, "refused": True} for n in (1, 2, 3)]
    target.unlink()
    assert served.get("Encounter/1").status_code == 200
    assert len(target.read_text().splitlines()) == 1
    assert (counted("events"), counted("failures")) == (events + 1, failures + 3)


def test_a_full_disk_is_counted_where_that_is_the_choice(audit, caplog):
    served = audit(AUDIT="/dev/full", AUDIT_FAILURE="count").served
    assert served.get("Encounter/1").get_json(force=True)["id"] == "1"
    assert unwritten(caplog) == [{"failures": 1, "refused": False}]


@pytest.mark.parametrize("kind", ["pipe", "null"])
def test_a_sink_that_cannot_report_failure_is_refused(audit, tmp_path, kind):
    target = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(os.devnull)
    with pytest.raises(SettingsError, match="ENCOUNTERS_AUDIT"):
        audit(AUDIT=str(target))


def test_a_stdout_that_cannot_report_failure_is_refused(tmp_path, monkeypatch):
    ours, datagrams = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    theirs, stream = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with (
        ours,
        datagrams,
        theirs,
        stream,
        open(os.devnull, "wb") as null,
        open(tmp_path / "file", "wb") as file,
    ):
        for silent in (datagrams, null):
            monkeypatch.setattr("app.audit.STDOUT", silent.fileno())
            with pytest.raises(SettingsError):
                check_stdout()
        for other in (stream, file):
            monkeypatch.setattr("app.audit.STDOUT", other.fileno())
            check_stdout()


def test_a_file_is_opened_for_each_line(tmp_path):
    file = tmp_path / "audit"
    sink = FileSink(file)
    sink.write(b"one\n")
    assert file.stat().st_mode & 0o007 == 0
    file.rename(tmp_path / "audit.1")
    sink.write(b"two\n")
    assert file.read_bytes() == b"two\n"
    # A line after one that was cut off is whole.
    file.write_bytes(b"one\ntw")
    sink.write(b"three\n")
    assert file.read_bytes() == b"one\ntw\nthree\n"


def test_workers_write_whole_lines_while_the_file_is_renamed(tmp_path):
    file, padding = tmp_path / "audit", b"x" * 9000

    def write(number):
        FileSink(file).write(b"%d %b\n" % (number, padding))
        if number % 100 == 50:
            file.rename(tmp_path / f"audit.{number}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(400)))
    lines = [
        line.split(b" ")
        for each in tmp_path.iterdir()
        for line in each.read_bytes().splitlines()
    ]
    assert sorted(int(number) for number, _ in lines) == list(range(400))
    assert {rest for _, rest in lines} == {padding}


def test_of_a_line_that_has_no_room_nothing_stays(tmp_path):
    file = tmp_path / "audit"
    sink = FileSink(file)
    sink.write(b"a" * 900 + b"\n")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(OSError, match="No space"):
            sink.write(b"b" * 900 + b"\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert file.read_bytes() == b"a" * 900 + b"\n"


@pytest.fixture
def short_wait(monkeypatch):
    monkeypatch.setattr("app.audit.TURN_SECONDS", 0.05)


@pytest.mark.usefixtures("short_wait")
def test_a_process_that_stands_still_holds_nobody_up(tmp_path):
    file = tmp_path / "audit"
    sink = FileSink(file)
    with file.open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError):
            sink.write(b"one\n")
    sink.write(b"two\n")
    assert file.read_bytes() == b"two\n"


def test_a_reader_that_has_gone_is_an_error():
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        StreamSink(writing).write(b"one\n")
    os.close(writing)


@pytest.mark.usefixtures("short_wait")
def test_a_reader_that_stalls_is_an_error_and_later_lines_are_whole():
    reading, writing = os.pipe()
    sink = StreamSink(writing)
    with pytest.raises(TimeoutError):
        sink.write(b"a" * 200_000 + b"\n")
    assert 0 < len(os.read(reading, 200_000)) < 200_000
    for line in (b"b\n", b"c\n"):
        sink.write(line)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"\nb\nc\n"


def message(connection):
    """Read one message of RFC 6587 (octet counting); return what it says."""
    digits = b""
    while (byte := connection.recv(1)) != b" ":
        digits += byte
    text = connection.recv(int(digits), socket.MSG_WAITALL)
    header, _, event = text.partition(b" - - {")
    assert re.fullmatch(rb"<109>1 - - encounters \d+", header)
    return b"{" + event


@pytest.fixture
def daemon():
    with socket.create_server((HOST, 0)) as listener:
        listener.settimeout(60)
        yield listener


def test_events_go_to_syslog_whole_and_over_a_new_connection_after_its_restart(
    audit, daemon
):
    audited = audit(AUDIT=f"syslog://{HOST}:{daemon.getsockname()[1]}")
    for _ in range(2):
        assert audited.served.get("Encounter/1").status_code == 200
        connection, _ = daemon.accept()
        with connection:
            assert json.loads(message(connection))["resourceType"] == "AuditEvent"
            assert audited.served.get("Encounter/1").status_code == 200
            assert json.loads(message(connection))["outcomeDesc"] == "200 OK"
    daemon.close()
    assert audited.served.get("Encounter/1").status_code == 503


@pytest.mark.usefixtures("short_wait")
def test_a_syslog_that_stalls_gets_whole_messages_later(daemon):
    sink = SyslogSink(f"{HOST}:{daemon.getsockname()[1]}")
    event, written = b'{"x": "%b"}\n' % (b"x" * 65536), 0
    with contextlib.suppress(TimeoutError):
        for _ in range(1000):
            sink.write(event)
            written += 1
    with pytest.raises(TimeoutError):
        sink.write(event)
    connection, _ = daemon.accept()
    with connection:
        daemon.settimeout(0)
        with pytest.raises(BlockingIOError):
            # No second connection took what the first one could not.
            daemon.accept()
        for _ in range(written):
            assert message(connection) + b"\n" == event
        sink.write(b"{}\n")
        # The message that was begun is whole, and the next one too.
        received = message(connection)
        if received != b"{}":
            assert received + b"\n" == event
            assert message(connection) == b"{}"
    daemon.close()
    with pytest.raises(ConnectionError):
        sink.write(b"{}\n")


def test_an_append_only_file_takes_events(tmp_path):
    file = tmp_path / "audit.jsonl"
    file.touch()
    change = shutil.which("chattr")
    if not change or subprocess.run([change, "+a", str(file)], check=False).returncode:
        pytest.skip("no file can be made append-only here")
    try:
        FileSink(file).write(b"{}\n")
        assert file.read_bytes() == b"{}\n"
    finally:
        subprocess.run([change, "-a", str(file)], check=True)
