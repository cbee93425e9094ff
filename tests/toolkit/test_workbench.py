"""The workbench: the draft, saving, panels beside the source, and who may open it."""

import html
import os
import re

import pytest
from werkzeug.test import Client, TestResponse

from tests.toolkit.live_hospital import run, written
from toolkit.workbench import Workbench, create_workbench

BASE = "http://127.0.0.1:8700"


class Page:
    """The page as a browser has it: one cookie, and the header of its script."""

    def __init__(self, bench):
        self.bench = bench
        self.http = Client(create_workbench(bench), TestResponse)

    def get(self, path):
        return self.http.get(path, base_url=BASE, buffered=True)

    def open(self):
        return self.get(f"/?token={self.bench.token}")

    def post(self, path, data, **headers):
        headers["X-Workbench"] = "1"
        return self.http.post(path, base_url=BASE, data=data, headers=headers)

    def draft(self, text):
        """Send a draft, as 400 ms after a keystroke."""
        return self.post("/draft", text).get_json()

    def edit(self, text, **form):
        """Send a choice; a form has other ends of lines than the editor."""
        return self.post("/edit", {**form, "text": text.replace("\n", "\r\n")})

    def panel(self, name, **query):
        """Return what a panel shows in the end."""
        pairs = "&".join(f"{key}={value}" for key, value in query.items())
        text = self.get(f"/panel/{name}?{pairs}").text
        while "Give up" in text:
            text = self.get(f"/panel/{name}?wait=1").text
        return text


@pytest.fixture
def file(sqlite, tmp_path):
    return written(tmp_path)


@pytest.fixture
def page(file):
    """Return the open page of a mapping file."""
    opened = Page(Workbench(file, os.environ))
    assert opened.open().status_code == 302
    return opened


# --------------------------------------------------------------------------- who may


def test_the_token_works_once(file):
    page = Page(Workbench(file, {}))
    assert page.get("/").status_code == 403
    for guess in ("guess", "gué"):
        assert page.get(f"/?token={guess}").status_code == 403
    token = page.bench.token
    assert page.open().status_code == 302
    assert page.get("/").status_code == 200
    assert Page(page.bench).get(f"/?token={token}").status_code == 403


def test_nobody_else_learns_the_session(page):
    refused = Page(page.bench).get("/")
    assert refused.status_code == 403
    shown = [page.get("/") for _ in range(2)]
    for response in (refused, *shown):
        assert page.bench.session not in f"{response.headers} {response.text}"
    # The nonce of the policy is of one response.
    first, second = (r.headers["Content-Security-Policy"] for r in shown)
    assert "'nonce-" in first
    assert first != second


def test_a_form_of_another_site_changes_nothing(page, file):
    before = file.read_text()
    for path in ("/save", "/draft", "/edit"):
        response = page.http.post(path, base_url=BASE, data="mapping: 2")
        assert response.status_code == 403
    assert file.read_text() == before


def test_another_host_is_not_served_and_the_page_loads_from_here_alone(page):
    response = page.http.get("/", base_url="http://attacker.example:8700")
    assert response.status_code == 400
    response = page.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="(?!/static/)', response.text)


# ---------------------------------------------------------------- the draft and the file


def test_a_draft_is_checked_and_not_written(page, file):
    before = file.read_text()
    answer = page.draft(
        before.replace("\ntime_zone: Europe/Paris", "\ntime_zone: Paris")
    )
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


def test_a_file_without_its_address_is_not_faulty(file):
    page = Page(Workbench(file, {}))
    page.open()
    text = file.read_text() + "# ? whose wards\n"
    answer = page.draft(text)
    assert (answer["stale"], answer["problems"]) == (False, [])
    # What to type is named, and all that needs no source works.
    commands = ("export PAS_URL=", f"encounters workbench {file}")
    for panel in ("rows", "resource", "codes", "try", "findings"):
        shown = page.panel(panel, kind="encounter", id="1", search="Encounter")
        assert all(command in shown for command in commands), panel
    assert "whose wards" in page.panel("questions")
    assert "export" not in page.panel("tests")
    # A problem of the file is one all the same.
    answer = page.draft(text.replace("profile: full", "profile: none"))
    assert len(answer["problems"]) == 1


# ------------------------------------------------------------------------- the panels


def test_texts_are_masked_until_they_are_unmasked_and_dates_and_codes_are_shown(
    page, file
):
    for panel, kind, shown, hidden in (
        ("rows", "encounter", ">S</td>", "V1"),
        ("rows", "encounter", ">2020-0", "V1"),
        ("resource", "encounter", "2020-05-01", "V1"),
        ("rows", "patient", "1911-02-03", "Ljungqvist1"),
        ("resource", "patient", "1911-02-03", "Ljungqvist1"),
    ):
        masked = page.panel(panel, kind=kind, id="1")
        assert shown in masked
        assert hidden not in masked
        assert hidden in page.panel(panel, kind=kind, id="1", unmask="1")
    # A text in place of a date may be anything.
    page.draft(file.read_text().replace("{from: born}", "{from: family}"))
    assert "Ljungqvist1" not in page.panel("rows", kind="patient")


def test_an_invalid_row_has_its_reason_in_the_list(page, file):
    text = file.read_text().replace("S: finished, ", "")
    page.draft(text)
    shown = page.panel("rows", kind="encounter")
    assert "Encounter.status" in shown
    line, *_ = re.findall(r'class="reason">.*data-go="(\d+)"', shown)
    assert "status" in text.splitlines()[int(line) - 1]


def test_an_id_that_is_typed_leads_to_its_resource(page):
    # With the blanks of a pasted one.
    assert "stay_id" in page.panel("resource", kind="encounter", id="%201%20")
    assert "notice" in page.panel("resource", kind="encounter", id="nobody")


def test_codes_are_chosen_beside_their_rows(page, file):
    text = file.read_text().replace("S: finished, ", "")
    page.draft(text)
    shown = page.panel("codes", field="0")
    codes = re.findall(r'name="code" value="(\w+)"', shown)
    assert codes[-1] == "S", "a code without an entry comes after the others"
    assert re.search(r"<code>S</code></th><td[^>]*>[1-9]", shown)
    (table,) = re.findall(r'name="table" value="(\w+)"', shown)
    form = {"edit": "codes", "code": "S", "word": "finished"}
    edited = page.edit(text, table=table, **form).get_json()["text"]
    assert page.draft(edited)["stale"] is False
    assert "finished" in page.panel("resource", kind="encounter", id="1")
    assert page.edit(text, table="nowhere", **form).status_code == 409
    # No text beside a patient is a label.
    (number,) = re.findall(r'value="(\d+)"[^>]*>Patient.gender', shown)
    assert 'id="labels"' in shown
    assert 'id="labels"' not in page.panel("codes", field=number)


LABELLED = """
CREATE TABLE states (code VARCHAR(8) PRIMARY KEY, label VARCHAR(40));
INSERT INTO states VALUES ('S', 'Sorti <b>'), ('E', 'Entré'), ('A', 'Annulé');
CREATE TABLE kinds (kind VARCHAR(8), title VARCHAR(40));
INSERT INTO kinds VALUES ('HC', 'Complète'), ('HC', 'Partielle');
CREATE TABLE labelled (stay_id BIGINT PRIMARY KEY, state VARCHAR(8), in_words VARCHAR(40),
  remark VARCHAR(40), visit_number VARCHAR(20), FOREIGN KEY (state) REFERENCES states (code));
INSERT INTO labelled SELECT stay_id, state, CASE state WHEN 'S' THEN 'Out' ELSE 'In' END,
  visit, visit FROM stays
"""
LABELLED_ROWS = """|
    SELECT l.stay_id, patient_id, l.state, s.kind, began, ended, visit_number AS visit, unit,
      changed
    FROM labelled l JOIN stays s ON s.stay_id = l.stay_id
    LEFT JOIN kinds ON kinds.kind = s.kind"""


def test_codes_have_their_labels(url, tmp_path):
    # From a table that a key leads to, a joined one, and the table of the codes.
    run(url, *LABELLED.split(";\n"))
    file = written(tmp_path, ("SELECT * FROM stays", LABELLED_ROWS))
    page = Page(Workbench(file, os.environ))
    page.open()

    def labels(column, field="0"):
        shown = page.panel("codes", field=field, labels=column)
        assert f"<option selected>{column}</option>" in shown
        pairs = re.findall(r"<code>(\w+)</code></th><td>([^<]*)</td>", shown)
        return {code: html.unescape(label) for code, label in pairs}

    # A table with a row for each code holds no persons.
    label = {"S": "Sorti <b>", "E": "Entré", "A": "Annulé"}
    assert labels("states.label") == label
    # A row may be about one person.
    assert labels("labelled.in_words") == {"S": "Out", "E": "In", "A": ""}
    assert labels("labelled.remark") == {}
    several = page.panel("codes", labels="labelled.remark")
    assert "2 of 3 codes have several" in several
    assert labels("kinds.title", field="1") == {}
    # Numbers of visits are not offered, and what is not offered is not read.
    offered = page.panel("codes", field="0", labels="labelled.visit_number")
    assert not {"visit", "code"} & {*re.findall(r"(\w+)</option>", offered)}
    assert "V5" not in offered


def test_questions_are_answered_by_choosing(page, file):
    text = re.sub(r"(    id: \{from: stay_id\})", r"\1  # ? or visit", file.read_text())
    ((line, _),) = page.draft(text)["questions"]
    shown = page.panel("questions")
    assert "<option selected>stay_id</option>" in shown
    edited = page.edit(text, edit="column", line=line, column="visit")
    answered = edited.get_json()["text"]
    assert page.draft(answered)["questions"] == []
    assert "id: {from: visit}" in answered.splitlines()[line - 1]
    same = page.edit(text, edit="answer", line=line).get_json()["text"]
    assert same.splitlines() == file.read_text().splitlines()


def test_a_search_shows_what_is_sent_and_found(page):
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


@pytest.mark.parametrize(
    ("panel", "query"),
    [
        ("rows", {"kind": "encounter"}),
        ("resource", {"kind": "encounter", "id": "1"}),
        ("try", {"search": "Encounter?_id=1"}),
        ("codes", {"field": "1"}),
        ("questions", {}),
    ],
)
def test_a_column_cannot_write_into_the_page(panel, query, page, sqlite, file):
    hostile = "<script>alert(1)</script>"
    run(
        sqlite, f"UPDATE stays SET visit = '{hostile}', unit = visit, kind = '<script>'"
    )
    page.draft(f"{file.read_text()}  # ? {hostile}\n")
    shown = page.panel(panel, unmask="1", **query)
    assert "&lt;script&gt;" in shown
    assert hostile not in shown
