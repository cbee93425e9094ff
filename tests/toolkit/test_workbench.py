"""The workbench: the draft, saving, panels beside the source, and who may open it."""

import html
import os
import re
from pathlib import Path
from threading import Event

import pytest
from werkzeug.test import Client, TestResponse

from tests.hospital_sql import Tables, mapping_text
from tests.toolkit import live_hospital
from tests.toolkit.conftest import NewUrl
from toolkit import workbench
from toolkit.contract.hospital import EDGES, Hospital
from toolkit.workbench import Workbench, create_workbench, digest

BASE = "http://127.0.0.1:8700"
STAY = EDGES.stays[0]


class Page:
    """The page as a browser has it: one cookie, and the header of its script."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.http = Client(create_workbench(bench), TestResponse)

    def open(self) -> TestResponse:
        return self.get(f"/?token={self.bench.token}")

    def get(self, path: str) -> TestResponse:
        return self.http.get(path, base_url=BASE, buffered=True)

    def post(self, path: str, text: str, **headers: str) -> TestResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        headers = {"X-Workbench": "1", **named}
        return self.http.post(path, base_url=BASE, data=text, headers=headers)

    def panel(self, name: str, **query: str) -> str:
        """Return what a panel shows in the end."""
        pairs = "&".join(f"{key}={value}" for key, value in query.items())
        text = self.get(f"/panel/{name}?{pairs}").text
        while "Give up" in text:
            text = self.get(f"/panel/{name}?wait=1").text
        return text

    def edit(self, text: str, form: dict[str, object]) -> TestResponse:
        """Send a choice; a form has other ends of lines than the editor."""
        data = {**form, "text": text.replace("\n", "\r\n")}
        headers = {"X-Workbench": "1"}
        return self.http.post("/edit", base_url=BASE, data=data, headers=headers)

    def draft(self, text: str) -> dict[str, object]:
        """Send a draft, as 400 ms after a keystroke."""
        answer: dict[str, object] = self.post("/draft", text).get_json()
        return answer


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a mapping file beside a hospital in SQLite."""
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    Tables(url, Hospital((STAY,), EDGES.patients, EDGES.organizations)).close()
    path = tmp_path / "mapping.yaml"
    path.write_text(mapping_text(EDGES, url), "utf-8")
    return path


@pytest.fixture
def page(file: Path) -> Page:
    """Return the open page of a mapping file."""
    opened = Page(Workbench(file, {}))
    assert opened.open().status_code == 302
    return opened


# --------------------------------------------------------------------------- who may


def test_the_token_works_once(file: Path) -> None:
    page = Page(Workbench(file, {}))
    token = page.bench.token
    assert page.get("/").status_code == 403
    for guess in ("guess", "gué"):
        assert page.get(f"/?token={guess}").status_code == 403
    assert page.open().status_code == 302
    assert page.get("/").status_code == 200
    other = Page(page.bench)
    assert other.get(f"/?token={token}").status_code == 403


def test_nobody_else_learns_the_session(page: Page) -> None:
    """The nonce of the policy is of one response, and tells nothing of the cookie."""
    refused = Page(page.bench).get("/")
    assert refused.status_code == 403
    shown = [page.get("/") for _ in range(2)]
    for response in (refused, *shown):
        assert page.bench.session not in f"{response.headers} {response.text}"
    first, second = (r.headers["Content-Security-Policy"] for r in shown)
    assert "'nonce-" in first
    assert first != second


def test_a_form_of_another_site_changes_nothing(page: Page, file: Path) -> None:
    before = file.read_text()
    for path in ("/save", "/draft", "/edit"):
        response = page.http.post(path, base_url=BASE, data="mapping: 2")
        assert response.status_code == 403
    assert file.read_text() == before


def test_another_host_is_not_served(page: Page) -> None:
    """And the page loads from here alone."""
    response = page.http.get("/", base_url="http://attacker.example:8700")
    assert response.status_code == 400
    response = page.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="(?!/static/)', response.text)


# ------------------------------------------------------------------------- the draft


def test_a_draft_is_checked_and_not_written(page: Page, file: Path) -> None:
    before = file.read_text()
    answer = page.draft(before.replace("time_zone: Europe/Paris", "time_zone: Paris"))
    (problem,) = answer["problems"]
    line = before.splitlines().index("time_zone: Europe/Paris") + 1
    assert (problem["line"], problem["severity"]) == (line, "error")
    schema = page.get("/schema.json").get_json()
    assert "time_zone" in schema["definitions"]["File"]["properties"]
    # Open questions have their lines.
    text = before.replace("profile: full", "profile: full  # ? or group-a")
    ((number, question),) = page.draft(text)["questions"]
    assert text.splitlines()[number - 1] == question
    assert "or group-a" in page.panel("questions")
    assert file.read_text() == before


def test_a_file_without_its_address_is_not_faulty(page: Page, file: Path) -> None:
    """What to type is named, and all that needs no source works."""
    text = re.sub(r"url: [^,]*", "url: {env: WARD_URL}", file.read_text())
    file.write_text(text + "# ? whose wards\n", "utf-8")
    answer = page.draft(file.read_text())
    assert (answer["stale"], answer["problems"]) == (False, [])
    commands = ("export WARD_URL=", f"encounters workbench {file}")
    for panel in ("rows", "resource", "codes", "try", "findings"):
        shown = page.panel(panel, kind="encounter", id="1", search="Encounter")
        assert all(command in shown for command in commands), panel
    assert "whose wards" in page.panel("questions")
    assert "export" not in page.panel("tests")
    # A problem of the file is one all the same.
    answer = page.draft(file.read_text().replace("profile: full", "profile: none"))
    assert len(answer["problems"]) == 1


def test_a_broken_draft_keeps_the_last_good_result(page: Page, file: Path) -> None:
    good = page.panel("resource", kind="encounter", id="1", unmask="1")
    answer = page.draft(file.read_text().replace("profile: full", "profile: none"))
    assert answer["stale"] is True
    stale = page.panel("resource", kind="encounter", id="1", unmask="1")
    assert "has problems" in stale
    assert "has problems" not in good
    assert "finished" in stale


# --------------------------------------------------------------------------- the file


def test_saving_writes_the_file(page: Page, file: Path) -> None:
    text = file.read_text() + "# checked\n"
    response = page.post("/save", text, If_Match=digest(file.read_text()))
    assert response.status_code == 200
    assert file.read_text() == text
    opened = response.get_json()["digest"]
    assert opened == page.get("/version").get_json()["digest"]
    # An edit made elsewhere is not overwritten.
    file.write_text(file.read_text() + "# by somebody else\n")
    assert page.post("/save", "mapping: 1\n", If_Match=opened).status_code == 409
    assert "somebody else" in file.read_text()


# ------------------------------------------------------------------------- the panels


def test_values_are_masked_until_they_are_unmasked(page: Page) -> None:
    for panel, query in (("rows", {}), ("resource", {"id": "1"})):
        masked = page.panel(panel, kind="encounter", **query)
        shown = page.panel(panel, kind="encounter", unmask="1", **query)
        assert "V1" not in masked
        assert "V1" in shown


def test_dates_and_codes_are_shown_and_names_and_numbers_are_not(
    page: Page, file: Path
) -> None:
    stays = page.panel("rows", kind="encounter")
    assert ">S</td>" in stays
    assert str(STAY.began)[:10] in stays
    patient = EDGES.patients[0]
    for shown in (
        page.panel("rows", kind="patient"),
        page.panel("resource", kind="patient", id="1"),
    ):
        assert str(patient.born) in shown
        assert str(patient.birth_name) not in shown
    # A text in place of a date may be anything.
    page.draft(file.read_text().replace("{from: born}", "{from: birth_name}"))
    assert str(patient.birth_name) not in page.panel("rows", kind="patient")


def test_an_invalid_row_has_its_reason_in_the_list(page: Page, file: Path) -> None:
    text = file.read_text().replace("'S': 'finished', ", "")
    page.draft(text)
    shown = page.panel("rows", kind="encounter")
    assert "Encounter.status" in shown
    (line,) = re.findall(r'class="reason">.*data-go="(\d+)"', shown)
    assert "status" in text.splitlines()[int(line) - 1]


def test_an_id_that_is_typed_leads_to_its_resource(page: Page) -> None:
    """With the blanks of a pasted one; an unknown one is told."""
    assert "stay_id" in page.panel("resource", kind="encounter", id="%201%20")
    assert "notice" in page.panel("resource", kind="encounter", id="nobody")


def test_codes_are_chosen_beside_their_rows(page: Page, file: Path) -> None:
    text = file.read_text().replace("'S': 'finished', ", "")
    page.draft(text)
    shown = page.panel("codes", field="0")
    codes = re.findall(r'name="code" value="(\w+)"', shown)
    assert codes[-1] == "S", "a code without an entry comes after the others"
    assert re.search(r"<code>S</code></th><td[^>]*>[1-9]", shown)
    (table,) = re.findall(r'name="table" value="(\w+)"', shown)
    form = {"edit": "codes", "table": table, "code": "S", "word": "finished"}
    edited = page.edit(text, form).get_json()["text"]
    assert page.draft(edited)["stale"] is False
    assert "finished" in page.panel("resource", kind="encounter", id="1")
    refused = page.edit(text, {**form, "table": "nowhere"})
    assert refused.status_code == 409


LABELLED = """
CREATE TABLE states (code VARCHAR(8) PRIMARY KEY, label VARCHAR(40));
INSERT INTO states VALUES ('S', 'Sorti <b>'), ('E', 'Entré'), ('P', 'Prévu');
CREATE TABLE kinds (kind VARCHAR(8), title VARCHAR(40));
INSERT INTO kinds VALUES ('HC', 'Complète'), ('HC', 'Partielle');
CREATE TABLE stays (id BIGINT PRIMARY KEY, patient BIGINT, state VARCHAR(8), kind VARCHAR(8),
  in_words VARCHAR(40), remark VARCHAR(40), visit VARCHAR(40),
  FOREIGN KEY (state) REFERENCES states (code))
"""
LABELLED_FILE = """
mapping: 1
name: Labelled
profile: full
time_zone: Europe/Paris
source: {kind: sql, url: {env: PAS_URL}}
constants: {visit_number_system: "urn:oid:1.2.3"}
codes:
  status: {table: {S: finished, E: in-progress}}
  class: {table: {HC: IMP}}
encounter:
  rows: |
    SELECT stays.id, stays.patient, stays.state, stays.kind, stays.visit
    FROM stays LEFT JOIN kinds ON kinds.kind = stays.kind
  fields:
    id: {from: id}
    patient_id: {from: patient}
    status: {from: state, codes: status}
    class: {from: kind, codes: class}
    visit_number: {from: visit}
"""


def test_codes_have_their_labels(
    kind: str, new_url: NewUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a table that a key leads to, a joined one, and the table of the codes."""
    url = new_url(kind)
    monkeypatch.setenv("PAS_URL", url)
    rows = [
        f"({n}, {n}, '{'E' if n < 4 else 'S'}', 'HC', '{'In' if n < 4 else 'Out'}',"
        f" 'Text {n}', 'V{n}')"
        for n in range(10)
    ]
    live_hospital.run(
        url, *LABELLED.strip().split(";"), f"INSERT INTO stays VALUES {', '.join(rows)}"
    )
    file = tmp_path / "labelled.yaml"
    file.write_text(LABELLED_FILE, "utf-8")
    page = Page(Workbench(file, os.environ))
    page.open()

    def labels(column: str, field: int = 0) -> dict[str, str]:
        shown = page.panel("codes", field=str(field), labels=column)
        assert f"<option selected>{column}</option>" in shown
        found = re.findall(r"<code>(\w+)</code></th><td>([^<]*)</td>", shown)
        return {code: html.unescape(label) for code, label in found}

    # A table with a row for each code holds no persons.
    assert labels("states.label") == {"S": "Sorti <b>", "E": "Entré"}
    # Three rows may be about one person.
    assert labels("stays.in_words") == {"S": "Out", "E": ""}
    assert labels("stays.remark") == {}
    assert "2 of 2 codes have several" in page.panel("codes", labels="stays.remark")
    assert labels("kinds.title", field=1) == {}
    # Numbers of visits are not offered, and what is not offered is not read.
    offered = page.panel("codes", field="0", labels="stays.visit")
    assert not {"visit", "code"} & {*re.findall(r"(\w+)</option>", offered)}
    assert "V5" not in offered


def test_no_text_beside_a_patient_is_a_label(page: Page) -> None:
    (number,) = re.findall(r'value="(\d+)"[^>]*>Patient.gender', page.panel("codes"))
    assert 'id="labels"' in page.panel("codes", field="0")
    assert 'id="labels"' not in page.panel("codes", field=number)


def test_questions_are_answered_by_choosing(page: Page, file: Path) -> None:
    text = re.sub(r"(    id: \{from: stay_id\})", r"\1  # ? or visit", file.read_text())
    ((line, _),) = page.draft(text)["questions"]
    shown = page.panel("questions")
    assert "<option selected>stay_id</option>" in shown
    edited = page.edit(text, {"edit": "column", "line": line, "column": "visit"})
    answered = edited.get_json()["text"]
    assert page.draft(answered)["questions"] == []
    assert "id: {from: visit}" in answered.splitlines()[line - 1]
    kept = page.edit(text, {"edit": "answer", "line": line}).get_json()["text"]
    assert kept.splitlines() == file.read_text().splitlines()


def test_a_search_shows_what_is_sent_and_found(page: Page) -> None:
    shown = page.panel("try", search="Encounter?patient=1")
    statements = re.findall(r"[\d.]+ ms</p>\s<pre[^>]*><code>[^<]*SELECT", shown)
    assert len(statements) == shown.count("<pre")
    assert "1 rows" in shown
    assert "1 in all" in shown
    for stage in (
        "parameters",
        "source: a page of rows",
        "source: count",
        "rows to FHIR",
    ):
        assert f"<td>{stage}</td>" in shown
    assert "V1" not in shown
    assert "V1" in page.panel("try", search="Encounter?patient=1", unmask="1")
    for refused in ("Encounter?length=3", "Observation", "Encounter?date=13"):
        assert "notice" in page.panel("try", search=refused)


def test_a_slow_source_blocks_no_draft(
    page: Page, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A panel waits in a thread of its own; it can be asked again, and given up."""
    monkeypatch.setattr(workbench, "WAIT_SECONDS", 0.01)
    going_on = Event()
    with create_workbench(page.bench).app_context():
        shown = page.bench.panel("rows", lambda: str(going_on.wait()), start=True)
    assert "Give up" in shown
    assert page.draft(file.read_text())["problems"] == []
    going_on.set()


def test_a_column_cannot_write_into_the_page(tmp_path: Path) -> None:
    """XSS through a column of the hospital, in each panel that shows values."""
    hostile = "<script>alert(1)</script>"
    url = f"sqlite:///{tmp_path / 'pas.db'}"
    stay = STAY._replace(visit=hostile, unit=hostile, kind="<script>")
    Tables(url, Hospital((stay,), EDGES.patients, EDGES.organizations)).close()
    file = tmp_path / "mapping.yaml"
    file.write_text(f"{mapping_text(EDGES, url)}  # ? {hostile}\n", "utf-8")
    page = Page(Workbench(file, {}))
    page.open()
    for panel, query in (
        ("rows", {"kind": "encounter"}),
        ("resource", {"kind": "encounter", "id": "1"}),
        ("try", {"search": "Encounter?_id=1"}),
        ("codes", {"field": "1"}),
        ("questions", {}),
    ):
        shown = page.panel(panel, unmask="1", **query)
        assert "&lt;script&gt;" in shown, panel
        assert hostile not in shown, panel
