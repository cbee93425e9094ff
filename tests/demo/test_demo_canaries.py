"""No patient, number or token leaves by a side door, whatever happens to a request.

A real demo is led through searches, refusals, faulty rows and outages, all about its
canary patient; then everything that it wrote is looked through.
"""

import re
import signal
import socket
import sqlite3
from contextlib import ExitStack, closing, contextmanager

import pytest
import requests
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from werkzeug.wrappers import Request, Response

from demo.people import (
    CANARIES,
    CANARY_FAMILY,
    CANARY_INS,
    CANARY_PATIENT,
    CANARY_PHONE,
)
from tests.demo.running import PORTS, STAYS, offline_token, started
from tests.hospital_http import serving
from tests.live import HOST, free_ports, listens, wait_until
from tests.validity.client import QUOTING, check_response

pytestmark = pytest.mark.system

VISIT = "CANARI-V-7731"
PATIENT = f"Patient/{CANARY_PATIENT}"
STAYS_OF_PATIENT = f"Encounter?patient={CANARY_PATIENT}"
NOT_WRITTEN = re.compile(r"hospital-\d+\.sqlite.*|redis\.sock|lock")
SECRETS = re.compile(r".*\.(key|secret|pem)")


class Journey:
    """A client of a running demo that remembers every error it was told."""

    def __init__(self, demo, operations_port):
        self.demo = demo
        self.operations_url = f"http://{HOST}:{operations_port}"
        self.token = offline_token(demo.directory)
        self.errors, self.operations, self.statuses = [], [], set()
        self.session = requests.Session()
        self.session.trust_env = False

    def ask(self, path, method="GET", form=None, **headers):
        """Send a request with the token, and keep what an error says."""
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        if form is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        url = path if path.startswith("http") else f"{self.demo.base_url}/{path}"
        response = check_response(
            self.session.request(method, url, headers=sent, data=form, timeout=60)
        )
        self.statuses.add(response.status_code)
        if response.status_code >= 400 and response.status_code not in QUOTING:
            self.errors.append(f"{response.headers} {response.text}")
        return response

    def look(self):
        """Ask on the operations port, keep what is told, and return whether it is ready."""
        for path in ("live", "metrics", "ready"):
            answer = self.session.get(f"{self.operations_url}/{path}", timeout=60)
            self.operations.append(f"{answer.headers} {answer.text}")
        return answer.status_code

    def look_until(self, status):
        """Wait until new workers report this, and keep what the endpoints tell."""
        self.demo.child("gunicorn").send_signal(signal.SIGHUP)
        wait_until(lambda: self.look() == status, self.demo.log, 60)

    def hospital(self, *statements):
        """Change or ask the hospital behind the service; return what the last one finds."""
        path = self.demo.directory / f"hospital-{STAYS}.sqlite"
        with closing(sqlite3.connect(path, timeout=60)) as database:
            for statement in statements:
                rows = database.execute(statement).fetchall()
            database.commit()
        return rows


def find_the_canary(journey):
    page = journey.ask(f"Patient?family={CANARY_FAMILY}")
    assert CANARY_FAMILY in page.text
    assert CANARY_PHONE in page.text
    for path in (f"Patient?identifier={CANARY_INS}", PATIENT):
        assert CANARY_INS in journey.ask(path).text
    form = f"name:contains={CANARY_FAMILY[2:]}&_count=1"
    assert journey.ask("Patient/_search", "POST", form).json()["total"] == 1
    assert journey.ask(f"Encounter?identifier={VISIT}").json()["total"] == 1
    assert journey.ask(f"Patient?name=x{CANARY_FAMILY}").json()["total"] == 0
    # A walk through the canary's stays.
    page = journey.ask(f"{STAYS_OF_PATIENT}&_count=3").json()
    while following := [x["url"] for x in page["link"] if x["relation"] == "next"]:
        page = journey.ask(following[0]).json()


def ask_for_what_is_not_there(journey):
    root = journey.demo.base_url.partition("/fhir")[0]
    for path in (
        f"{root}/{CANARY_FAMILY}",
        f"{CANARY_FAMILY}?family={CANARY_FAMILY}",
        f"Patient/{CANARY_FAMILY}?_format=json",
        f"Patient/{CANARY_INS}",
        f"Encounter/{VISIT}",
        f"{PATIENT}/_history/{CANARY_PHONE}",
        f"Bundle?_id={'a' * 32}&_format=json",
    ):
        assert journey.ask(path).status_code == 404


def ask_badly(journey):
    journey.ask(f"Patient?birthdate={CANARY_FAMILY}")
    journey.ask(f"Encounter?{CANARY_FAMILY}={CANARY_INS}")
    journey.ask(f"Encounter?patient=1&date={CANARY_PHONE}-{CANARY_PHONE}")
    journey.ask(f"Bundle?_id={CANARY_FAMILY}")
    journey.ask(f"Patient?name={CANARY_FAMILY}&access_token={journey.token}")
    journey.ask(PATIENT, "DELETE")
    journey.ask(PATIENT, CANARY_FAMILY.upper())
    journey.ask(PATIENT, Accept=f"application/{CANARY_FAMILY}")
    journey.ask(f"Patient?name=%ff{CANARY_FAMILY}")
    journey.ask("Patient/_search", "POST", f"name={CANARY_FAMILY}" * 10_000)
    lenient = f"Patient?name={CANARY_FAMILY}&x{CANARY_FAMILY}=1"
    assert journey.ask(lenient, Prefer="handling=lenient").status_code == 200


def send_what_is_no_request(journey):
    canary, host = CANARY_FAMILY.encode(), b"Host: a\r\n"
    for raw in (
        b"GET /" + canary * 1000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"G@T /" + canary + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"X Y: " + canary + b"\r\n\r\n",
        b"GET /" + canary + b" HTTP/9.9\r\n" + host + b"\r\n",
    ):
        with socket.create_connection((HOST, journey.demo.port), 60) as connection:
            connection.sendall(raw)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        journey.statuses.add(int(answer.split()[1]))
        journey.errors.append(answer.decode())


def come_with_bad_tokens(journey):
    head, body, signature = journey.token.split(".")
    for header in (
        f"Bearer {CANARY_FAMILY}",
        f"Bearer {CANARY_FAMILY}.{CANARY_INS}.{CANARY_PHONE}",
        f"Bearer {head}.{body}.{signature[::-1]}",
        f"Basic {CANARY_INS}",
        f"Bearer {journey.token}, Bearer {CANARY_FAMILY}",
    ):
        assert journey.ask(PATIENT, Authorization=header).status_code == 401
    small = offline_token(journey.demo.directory, "--scope", "ORGANIZATION_READ")
    path = f"Patient?name={CANARY_FAMILY}"
    assert journey.ask(path, Authorization=f"Bearer {small}").status_code == 403


def meet_faulty_rows(journey):
    mine = f"patient_id = {CANARY_PATIENT}"
    first, last = journey.hospital(
        f"SELECT min(sejour_id), max(sejour_id) FROM sejour WHERE {mine}"
    )[0]
    journey.hospital(
        f"UPDATE sejour SET etat = 'Q7' WHERE sejour_id = {first}",
        f"UPDATE sejour SET etat = 'S', date_entree = '{CANARY_PHONE}' "
        f"WHERE sejour_id = {last}",
    )
    assert journey.ask(STAYS_OF_PATIENT).text.count(" cannot be shown") >= 2
    for id in (first, last):
        assert journey.ask(f"Encounter/{id}").status_code == 500


def meet_outages(journey):
    page = journey.ask(f"{STAYS_OF_PATIENT}&_count=2").json()
    (following,) = [x["url"] for x in page["link"] if x["relation"] == "next"]
    searches = (
        f"Patient?family={CANARY_FAMILY}",
        f"Patient?identifier={CANARY_INS}",
        PATIENT,
    )
    journey.hospital("ALTER TABLE identite RENAME TO gone")
    for path in searches:
        assert journey.ask(path).status_code in {502, 503}
    journey.look_until(503)
    journey.hospital("ALTER TABLE gone RENAME TO identite")
    journey.look_until(200)
    redis = journey.demo.child("valkey-server")
    redis.send_signal(signal.SIGSTOP)
    for path in (following, f"{STAYS_OF_PATIENT}&_count=2"):
        assert journey.ask(path).status_code == 503
    redis.send_signal(signal.SIGCONT)
    file = journey.demo.directory / f"hospital-{STAYS}.sqlite"
    file.rename(f"{file}-away")
    file.write_text(CANARY_FAMILY * 99)
    statuses = {journey.ask(path).status_code for path in searches for _ in range(10)}
    assert statuses <= {200, 502, 503}


@contextmanager
def collecting():
    """Run a collector of traces; yield its address and the list of what came, as JSON."""
    sent = []

    @Request.application
    def collect(request):
        message = ExportTraceServiceRequest.FromString(request.get_data())
        sent.append(MessageToJson(message))
        return Response()

    with serving(collect) as address:
        yield address, sent


@pytest.fixture(scope="module")
def travelled(tmp_path_factory):
    """Return a journey through everything, its demo stopped."""
    folder = tmp_path_factory.mktemp("canaries")
    with ExitStack() as stack:
        address, traces = stack.enter_context(collecting())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        port = free_ports(PORTS + 1)
        operations_port = port + PORTS
        for name, value in (
            ("ENCOUNTERS_OPERATIONS_BIND", f"{HOST}:{operations_port}"),
            ("ENCOUNTERS_TRACING", "true"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", address),
            # No batch is given up: each span is looked for.
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "60"),
        ):
            patch.setenv(name, value)
        demo = started(folder / "demo", folder / "said.log", port)
        demo = stack.enter_context(demo)
        # A process of its own: it may begin to listen after the service answers.
        wait_until(lambda: listens(operations_port), demo.log)
        journey = Journey(demo, operations_port)
        stack.enter_context(journey.session)
        journey.hospital(
            f"UPDATE sejour SET num_venue = '{VISIT}' WHERE sejour_id = (SELECT "
            f"sejour_id FROM sejour WHERE patient_id = {CANARY_PATIENT} "
            "AND etat IN ('S', 'T', 'F') ORDER BY date_entree LIMIT 1)"
        )
        for travel in (
            find_the_canary,
            ask_for_what_is_not_there,
            ask_badly,
            send_what_is_no_request,
            come_with_bad_tokens,
            meet_faulty_rows,
            meet_outages,
        ):
            travel(journey)
            journey.look()
        assert demo.stop() == 0
    journey.traces = traces
    files = [demo.log, *filter(lambda f: f.is_file(), demo.directory.rglob("*"))]
    journey.secrets = [
        f.read_text().strip() for f in files if SECRETS.fullmatch(f.name)
    ]
    journey.files = {
        file.name: file.read_text("utf-8", "replace")
        for file in files
        if not (NOT_WRITTEN.fullmatch(file.name) or SECRETS.fullmatch(file.name))
    }
    return journey


def leaks(text, journey):
    """Return the canaries and secrets that a text holds."""
    _, body, signature = journey.token.split(".")
    wanted = [*CANARIES, VISIT, body, signature, *journey.secrets]
    return [each for each in wanted if each.lower() in text.lower()]


def test_the_journey_met_every_kind_of_answer(travelled):
    known = {200, 400, 401, 403, 404, 405, 406, 412, 413, 414, 500, 502, 503}
    assert known <= travelled.statuses
    assert len(travelled.errors) > 25
    operations = " ".join(travelled.operations)
    assert "encounters_row_faults_total{" in operations
    assert "identite" in operations
    # The search would find a leak.
    assert leaks(f"family={CANARY_FAMILY.upper()}", travelled) == [CANARY_FAMILY]
    assert len(leaks(f"Bearer {travelled.token}", travelled)) == 2
    assert len(travelled.secrets) >= 4


def test_nothing_that_is_written_holds_a_canary(travelled):
    files = travelled.files
    assert files.keys() >= {"service.log", "issuer.log", "redis.log", "said.log"}
    assert any(name.startswith("appendonly") for name in files)
    for name, text in files.items():
        assert leaks(text, travelled) == [], name


@pytest.mark.parametrize("of", ["errors", "operations", "traces"])
def test_nothing_that_anybody_is_told_holds_a_canary(travelled, of):
    for text in getattr(travelled, of):
        assert leaks(text, travelled) == []
        if of == "traces":
            values = re.findall(r'"stringValue": "([^"]*)"', text)
            assert str(CANARY_PATIENT) not in values


def test_each_request_of_the_journey_has_one_line_one_event_and_one_span(travelled):
    log, audit = travelled.files["service.log"], travelled.files["audit.jsonl"]
    traces = " ".join(travelled.traces)
    lines = re.findall(r'"logger": "app\.access".*?"request_id": "(\w+)"', log)
    events = re.findall(r'"entity":\[\{"identifier":\{"value":"(\w+)"', audit)
    spans = re.findall(
        r'"encounters\.request_id",\s*"value": \{\s*"stringValue": "(\w+)"', traces
    )
    assert len(lines) > 40
    assert sorted(lines) == sorted(events) == sorted(spans)
    for name in ("keep redis", "load redis", "search Demo hospital"):
        assert f'"name": "{name}"' in traces
