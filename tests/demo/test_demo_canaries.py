"""No patient, number or token leaves by a side door, whatever happens to a request.

A real demo is led through searches, refusals, faulty rows and outages, all about its
canary patient; then everything that it wrote is looked through.
"""

import os
import re
import signal
import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from demo.people import (
    CANARIES,
    CANARY_FAMILY,
    CANARY_INS,
    CANARY_PATIENT,
    CANARY_PHONE,
)
from tests.collector import Collector, collecting
from tests.demo.running import PORTS, STAYS, Demo, offline_token, started
from tests.live import HOST, free_ports, listens, wait_until
from tests.validity.client import QUOTING, check_response

pytestmark = pytest.mark.system

VISIT = "CANARI-V-7731"
OPERATIONS = PORTS
"""The port after those of the demo."""
ID = "encounters.request_id"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NOT_WRITTEN = re.compile(r"hospital-\d+\.sqlite.*|redis\.sock|lock")
SECRETS = re.compile(r".*\.(key|secret|pem)")


@dataclass
class Journey:
    """A client of a running demo that remembers every error it was told."""

    demo: Demo
    token: str
    collector: Collector
    errors: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    def ask(
        self, path: str, method: str = "GET", form: str | None = None, **headers: str
    ) -> requests.Response:
        """Send a request with the token, and keep what an error says."""
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        if form is not None:
            sent |= FORM
        with requests.Session() as session:
            session.trust_env = False
            response = check_response(
                session.request(
                    method, self.address(path), headers=sent, data=form, timeout=60
                )
            )
        self.statuses.add(response.status_code)
        if response.status_code >= 400 and response.status_code not in QUOTING:
            self.errors.append(f"{response.headers} {response.text}")
        return response

    def address(self, path: str) -> str:
        if path.startswith("http"):
            return path
        return f"http://{HOST}:{self.demo.port}/{path.removeprefix('/')}"

    def fhir(self, path: str, **more: str) -> requests.Response:
        return self.ask(f"fhir/v3/{path}", **more)

    def send(self, raw: bytes) -> None:
        """Send bytes, and keep what is answered."""
        with socket.create_connection((HOST, self.demo.port), timeout=60) as connection:
            connection.sendall(raw)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        self.statuses.add(int(answer.split()[1]))
        self.errors.append(answer.decode())

    def look(self) -> int:
        """Ask on the operations port, keep what is told, and return whether it is ready."""
        found = {}
        with requests.Session() as session:
            session.trust_env = False
            for path in ("live", "metrics", "ready"):
                address = f"http://{HOST}:{self.demo.port + OPERATIONS}/{path}"
                found[path] = session.get(address, timeout=60)
                self.operations.append(f"{found[path].headers} {found[path].text}")
        return found["ready"].status_code

    def look_until(self, status: int) -> None:
        """Wait until new workers report this, and keep what the endpoints tell."""
        self.demo.child("gunicorn").send_signal(signal.SIGHUP)
        wait_until(lambda: self.look() == status, self.demo.log, 60)

    @contextmanager
    def frozen(self, word: str) -> Iterator[None]:
        """Let a part of the demo stand still."""
        part = self.demo.child(word)
        part.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            part.send_signal(signal.SIGCONT)

    @contextmanager
    def without_table(self, table: str) -> Iterator[None]:
        """Take a table of the hospital away."""
        self.hospital(f"ALTER TABLE {table} RENAME TO gone")
        try:
            yield
        finally:
            self.hospital(f"ALTER TABLE gone RENAME TO {table}")

    def hospital(self, *statements: str) -> list[tuple[Any, ...]]:
        """Change or ask the hospital behind the service; return what the last one finds."""
        path = self.demo.directory / f"hospital-{STAYS}.sqlite"
        with closing(sqlite3.connect(path, timeout=60)) as database:
            for statement in statements:
                found = database.execute(statement).fetchall()
            database.commit()
        return found


def find_the_canary(journey: Journey) -> None:
    found = journey.fhir(f"Patient?family={CANARY_FAMILY}")
    assert CANARY_FAMILY in found.text
    assert CANARY_PHONE in found.text
    for path in (f"Patient?identifier={CANARY_INS}", f"Patient/{CANARY_PATIENT}"):
        assert CANARY_INS in journey.fhir(path).text
    form = f"name:contains={CANARY_FAMILY[2:]}&_count=1"
    assert (
        journey.fhir("Patient/_search", method="POST", form=form).json()["total"] == 1
    )
    assert journey.fhir(f"Encounter?identifier={VISIT}").json()["total"] == 1
    assert journey.fhir(f"Patient?name=x{CANARY_FAMILY}").json()["total"] == 0
    # A walk through the canary's stays.
    page = journey.fhir(f"Encounter?patient={CANARY_PATIENT}&_count=3").json()
    while following := [x["url"] for x in page["link"] if x["relation"] == "next"]:
        page = journey.ask(following[0]).json()


def ask_for_what_is_not_there(journey: Journey) -> None:
    for path in (
        f"{CANARY_FAMILY}",
        f"fhir/v3/{CANARY_FAMILY}?family={CANARY_FAMILY}",
        f"fhir/v3/Patient/{CANARY_FAMILY}?_format=json",
        f"fhir/v3/Patient/{CANARY_INS}",
        f"fhir/v3/Encounter/{VISIT}",
        f"fhir/v3/Patient/{CANARY_PATIENT}/_history/{CANARY_PHONE}",
        f"fhir/v3/Bundle?_id={'a' * 32}&_format=json",
    ):
        assert journey.ask(path).status_code == 404


def ask_badly(journey: Journey) -> None:
    journey.fhir(f"Patient?birthdate={CANARY_FAMILY}")
    journey.fhir(f"Encounter?{CANARY_FAMILY}={CANARY_INS}")
    journey.fhir(f"Encounter?patient=1&date={CANARY_PHONE}-{CANARY_PHONE}")
    journey.fhir(f"Bundle?_id={CANARY_FAMILY}")
    journey.fhir(f"Patient?name={CANARY_FAMILY}&access_token={journey.token}")
    journey.fhir(f"Patient/{CANARY_PATIENT}", method="DELETE")
    journey.fhir(f"Patient/{CANARY_PATIENT}", method=CANARY_FAMILY.upper())
    journey.fhir(f"Patient/{CANARY_PATIENT}", Accept=f"application/{CANARY_FAMILY}")
    journey.fhir(f"Patient?name=%ff{CANARY_FAMILY}")
    long = f"name={CANARY_FAMILY}" * 10_000
    journey.fhir("Patient/_search", method="POST", form=long)
    lenient = f"Patient?name={CANARY_FAMILY}&x{CANARY_FAMILY}=1"
    assert journey.fhir(lenient, Prefer="handling=lenient").status_code == 200


def send_what_is_no_request(journey: Journey) -> None:
    canary = CANARY_FAMILY.encode()
    host = b"Host: a\r\n"
    for raw in (
        b"GET /" + canary * 1000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"G@T /" + canary + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"X Y: " + canary + b"\r\n\r\n",
        b"GET /" + canary + b" HTTP/9.9\r\n" + host + b"\r\n",
    ):
        journey.send(raw)


def come_with_bad_tokens(journey: Journey) -> None:
    head, body, signature = journey.token.split(".")
    for header in (
        f"Bearer {CANARY_FAMILY}",
        f"Bearer {CANARY_FAMILY}.{CANARY_INS}.{CANARY_PHONE}",
        f"Bearer {head}.{body}.{signature[::-1]}",
        f"Basic {CANARY_INS}",
        f"Bearer {journey.token}, Bearer {CANARY_FAMILY}",
    ):
        refused = journey.fhir(f"Patient/{CANARY_PATIENT}", Authorization=header)
        assert refused.status_code == 401
    small = offline_token(journey.demo.directory, "--scope", "ORGANIZATION_READ")
    bearer = f"Bearer {small}"
    refused = journey.fhir(f"Patient?name={CANARY_FAMILY}", Authorization=bearer)
    assert refused.status_code == 403


def meet_faulty_rows(journey: Journey) -> None:
    mine = f"patient_id = {CANARY_PATIENT}"
    first, last = journey.hospital(
        f"SELECT min(sejour_id), max(sejour_id) FROM sejour WHERE {mine}"
    )[0]
    journey.hospital(
        f"UPDATE sejour SET etat = 'Q7' WHERE sejour_id = {first}",
        f"UPDATE sejour SET etat = 'S', date_entree = '{CANARY_PHONE}' "
        f"WHERE sejour_id = {last}",
    )
    page = journey.fhir(f"Encounter?patient={CANARY_PATIENT}")
    assert page.text.count(" cannot be shown") >= 2
    for id in (first, last):
        assert journey.fhir(f"Encounter/{id}").status_code == 500


def meet_outages(journey: Journey) -> None:
    page = journey.fhir(f"Encounter?patient={CANARY_PATIENT}&_count=2").json()
    (following,) = [x["url"] for x in page["link"] if x["relation"] == "next"]
    searches = (
        f"Patient?family={CANARY_FAMILY}",
        f"Patient?identifier={CANARY_INS}",
        f"Patient/{CANARY_PATIENT}",
    )
    with journey.without_table("identite"):
        for path in searches:
            assert journey.fhir(path).status_code in {502, 503}
        journey.look_until(503)
    journey.look_until(200)
    with journey.frozen("valkey-server"):
        assert journey.ask(following).status_code == 503
        assert (
            journey.fhir(f"Encounter?patient={CANARY_PATIENT}&_count=2").status_code
            == 503
        )
    file = journey.demo.directory / f"hospital-{STAYS}.sqlite"
    file.rename(f"{file}-away")
    file.write_text(CANARY_FAMILY * 99)
    statuses = {journey.fhir(path).status_code for path in searches for _ in range(10)}
    assert statuses <= {200, 502, 503}


JOURNEYS: tuple[Callable[[Journey], None], ...] = (
    find_the_canary,
    ask_for_what_is_not_there,
    ask_badly,
    send_what_is_no_request,
    come_with_bad_tokens,
    meet_faulty_rows,
    meet_outages,
)


@pytest.fixture(scope="module")
def travelled(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """Return a journey through everything, its demo stopped."""
    folder = tmp_path_factory.mktemp("canaries")
    directory = folder / "demo"
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        port = free_ports(OPERATIONS + 1)
        patch.setenv("ENCOUNTERS_OPERATIONS_BIND", f"{HOST}:{port + OPERATIONS}")
        patch.setenv("ENCOUNTERS_TRACING", "true")
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        # No batch is given up: each span is looked for.
        patch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        demo = stack.enter_context(started(directory, folder / "said.log", port))
        # A process of its own: it may begin to listen after the service answers.
        wait_until(lambda: listens(port + OPERATIONS), demo.log)
        journey = Journey(demo, offline_token(directory), collector)
        journey.hospital(
            f"UPDATE sejour SET num_venue = '{VISIT}' WHERE sejour_id = (SELECT "
            f"sejour_id FROM sejour WHERE patient_id = {CANARY_PATIENT} "
            "AND etat IN ('S', 'T', 'F') ORDER BY date_entree LIMIT 1)"
        )
        for travel in JOURNEYS:
            travel(journey)
            journey.look()
        assert demo.stop() == 0
    return journey


def leaks(text: str, journey: Journey) -> list[str]:
    """Return the canaries and secrets that a text holds."""
    _, body, signature = journey.token.split(".")
    kept = [
        file.read_text().strip()
        for file in journey.demo.directory.iterdir()
        if SECRETS.fullmatch(file.name)
    ]
    assert len(kept) >= 4
    wanted = [*CANARIES, VISIT, body, signature, *kept]
    return [each for each in wanted if each.lower() in text.lower()]


def written(journey: Journey) -> Mapping[str, str]:
    """Return everything that the demo wrote beside its hospital and its secrets."""
    files = [journey.demo.log]
    for folder, _, names in os.walk(journey.demo.directory):
        files += [
            Path(folder, name)
            for name in names
            if not (NOT_WRITTEN.fullmatch(name) or SECRETS.fullmatch(name))
        ]
    return {file.name: file.read_text("utf-8", "replace") for file in files}


def test_the_journey_met_every_kind_of_answer(travelled: Journey) -> None:
    known = {200, 400, 401, 403, 404, 405, 406, 412, 413, 414, 500, 502, 503}
    assert known <= travelled.statuses
    # The search would find a leak.
    assert leaks(f"family={CANARY_FAMILY.upper()}", travelled) == [CANARY_FAMILY]
    assert len(leaks(f"Bearer {travelled.token}", travelled)) == 2


def test_nothing_that_is_written_holds_a_canary(travelled: Journey) -> None:
    files = written(travelled)
    assert {"service.log", "issuer.log", "redis.log", "audit.jsonl", "said.log"} <= set(
        files
    )
    assert any(name.startswith("appendonly") for name in files)
    assert files["service.log"].count("app.access") > 40
    assert files["audit.jsonl"].count("AuditEvent") > 40
    assert {
        name: found for name in files if (found := leaks(files[name], travelled))
    } == {}


def test_nothing_that_operators_are_told_holds_a_canary(travelled: Journey) -> None:
    told = travelled.operations
    assert sum("encounters_row_faults_total{" in each for each in told) >= 1
    assert sum("identite" in each for each in told) >= 1
    assert [each for each in told if leaks(each, travelled)] == []


def test_no_trace_holds_a_canary(travelled: Journey) -> None:
    sent = travelled.collector.text()
    assert leaks(sent, travelled) == []
    assert str(CANARY_PATIENT) not in re.findall(r'"stringValue": "([^"]*)"', sent)
    names = {span.name for span in travelled.collector.spans}
    assert {
        "keep redis",
        "load redis",
        "search Demo hospital",
    } <= names


def test_no_error_that_a_client_was_told_holds_a_canary(travelled: Journey) -> None:
    assert len(travelled.errors) > 25
    assert [text for text in travelled.errors if leaks(text, travelled)] == []


def test_each_request_of_the_journey_has_one_line_one_event_and_one_span(
    travelled: Journey,
) -> None:
    files = written(travelled)
    log, audit = files["service.log"], files["audit.jsonl"]
    lines = re.findall(r'"logger": "app\.access".*?"request_id": "(\w+)"', log)
    events = re.findall(r'"entity":\[\{"identifier":\{"value":"(\w+)"', audit)
    assert lines
    assert sorted(lines) == sorted(events)
    spans = [span.attributes for span in travelled.collector.spans]
    traced = [each[ID] for each in spans if ID in each]
    assert sorted(lines) == sorted(traced)
