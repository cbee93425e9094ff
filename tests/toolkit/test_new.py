"""`encounters mapping new`: what keys and exact names say of a database, and what is left open."""

import re
from pathlib import Path

import pytest
import yaml

from tests.sets import SERVERS
from tests.toolkit.live_hospital import run
from toolkit.check import check_file
from toolkit.console import marked_lines
from toolkit.findings import Finding, Severity

# Keys, columns that are named as slots are, a column of names of people.
PLAIN = """
CREATE TABLE organization (id INTEGER PRIMARY KEY, name VARCHAR(40));
CREATE TABLE patient (id INTEGER PRIMARY KEY, mother INTEGER, family VARCHAR(20),
  gender VARCHAR(10), birth_date DATE, FOREIGN KEY (mother) REFERENCES patient (id));
CREATE TABLE encounter (id INTEGER PRIMARY KEY, subject INTEGER, hospital INTEGER,
  doctor VARCHAR(20), status VARCHAR(12), kind VARCHAR(40), note VARCHAR(99), start {time},
  "end" {time},
  FOREIGN KEY (subject) REFERENCES patient (id),
  FOREIGN KEY (hospital) REFERENCES organization (id));
INSERT INTO organization VALUES (1, 'North')
"""
TABLES = (
    *("--stay", "encounter", "--patient", "patient"),
    *("--organization", "organization"),
)
STAYS = 40


@pytest.fixture
def plain(new_url):
    """Return what makes a small hospital in a kind of database, and returns its URL."""

    def make(kind):
        statements = PLAIN.split(";\n")
        for n in range(1, STAYS + 1):
            status = "done" if n > 6 else "planned"
            kind_ = "HC" if n > 3 else f"Canary{n}"
            note = "''" if n > 5 else "NULL"
            end = "2024-03-31 08:00:00" if n > 9 else "9999-12-31 00:00:00"
            statements += [
                f"INSERT INTO patient VALUES ({n}, NULL, 'Canary{n % 4}', 'female', NULL)",
                f"INSERT INTO encounter VALUES ({n}, {n}, 1, 'Dr Canary {n % 3}', '{status}',"
                f" '{kind_}', {note}, '2024-03-30 08:15:00', '{end}')",
            ]
        run(url := new_url(kind), *statements)
        return url

    return make


@pytest.fixture
def new(tmp_path, mapping):
    """Return what makes a draft of a database, and returns its text."""

    def run(url, *options):
        file = tmp_path / "new.yaml"
        assert mapping("new", "--from", url, "--out", file, *options).status == 0
        return file.read_text("utf-8")

    return run


@pytest.fixture
def unmarked_errors(tmp_path, monkeypatch):
    """Return what returns the errors of `check --live` on lines without a question.

    That the account of the tests may write is none of the draft.
    """

    def errors(url):
        monkeypatch.setenv("PAS_URL", url)
        file = tmp_path / "new.yaml"
        marked = {number for number, _ in marked_lines(file.read_text("utf-8"))}
        results, problem = check_file(file, is_live=True)
        assert problem is None
        findings = [result for result in results if isinstance(result, Finding)]
        return [
            finding
            for finding in findings
            if finding.severity is Severity.ERROR
            and finding.element != "source"
            and finding.line not in marked
        ]

    return errors


# --------------------------------------------------------------- keys, names, counts


def test_keys_and_exact_names_fill_slots_and_codes_are_counted(
    kind, plain, new, unmarked_errors
):
    url = plain(kind)
    text = new(url, *TABLES)
    mapping = yaml.safe_load(text)
    fields = mapping["encounter"]["fields"]
    assert {slot: value["from"] for slot, value in fields.items()} == {
        **{"id": "id", "patient_id": "subject", "organization_id": "hospital"},
        **{"status": "status", "start": "start", "end": "end"},
    }
    assert mapping["organization"]["fields"]["name"] == {"from": "name"}
    # A mother replaces nobody.
    patient = mapping["patient"]["fields"]
    assert {slot: value["from"] for slot, value in patient.items()} == {
        **{"id": "id", "gender": "gender", "birth_date": "birth_date"}
    }
    # A declared key has no question; what a name says of time has one.
    marked = set(re.findall(r"(?m)^    (\w+): .*# \?", text.partition("\npatient:")[0]))
    assert marked == {"start", "end"}
    assert unmarked_errors(url) == []
    # Every column is there.
    columns = (
        "subject hospital doctor status kind note start end family gender birth_date"
    )
    assert {*columns.split()} <= {*re.findall(r"\{from: (\w+)", text)}
    # Codes and sentinels are counted, and nothing of people is written.
    lines = {
        name: line
        for line in text.splitlines()
        for name in re.findall(r"\{from: (\w+)", line)[:1]
    }
    assert "done (34), planned (6)" in lines["status"]
    assert "# table: {done: …, planned: …}" in text
    assert "9999-12-31 00:00:00" in lines["end"]
    assert "# ?" in lines["end"]
    assert "NULL (5)" in lines["note"]
    assert "'' (35)" in lines["note"]
    # A value that few rows have may be anybody's, and so may a text with a blank.
    assert "HC (37), 3 more" in lines["kind"]
    assert "3 different texts" in lines["doctor"]
    assert "Canary" not in text


def test_keys_that_are_called_uuid_are_keys(new_url, new):
    run(
        url := new_url("postgresql"),
        "CREATE TABLE people (people_uuid UUID PRIMARY KEY)",
        "CREATE TABLE visits (visit_uuid UUID PRIMARY KEY, people_uuid UUID,"
        " FOREIGN KEY (people_uuid) REFERENCES people (people_uuid))",
    )
    mapping = yaml.safe_load(new(url, "--stay", "visits", "--patient", "people"))
    assert mapping["encounter"]["fields"]["patient_id"] == {"from": "people_uuid"}
    assert mapping["patient"]["fields"]["id"] == {"from": "people_uuid"}


@pytest.mark.parametrize("kind", SERVERS)
def test_zero_dates_are_counted(kind, new_url, new):
    zero = "0000-00-00 00:00:00"
    rows = ", ".join(f"({n}, '{zero}')" for n in range(1, 8))
    run(
        url := new_url(kind),
        "CREATE TABLE stays (id INTEGER PRIMARY KEY, start DATETIME)",
        f"INSERT INTO stays VALUES {rows}",
    )
    text = new(url, "--stay", "stays")
    (line,) = [line for line in text.splitlines() if " start: {" in line]
    assert f'"{zero}" (7)' in line
    assert "# ?" in line


def test_a_required_slot_that_nothing_fills_serves_nothing(
    kind, new_url, new, unmarked_errors
):
    run(
        url := new_url(kind),
        'CREATE TABLE mx (k INTEGER, b VARCHAR(20), "Odd Name" VARCHAR(10))',
        "CREATE TABLE sx (house INTEGER, nr INTEGER, PRIMARY KEY (house, nr))",
        "INSERT INTO sx VALUES (1, 1), (1, 2)",
    )
    text = new(url, "--stay", "SX", "--patient", "mx")
    mapping = yaml.safe_load(text)
    assert mapping["encounter"]["fields"].keys() == {"id", "patient_id", "status"}
    for slot in ("id", "patient_id", "status"):
        assert f"NULL AS open_{slot}" in mapping["encounter"]["rows"]
    assert '# …: {from: "Odd Name"}' in text
    assert unmarked_errors(url) == []


def test_several_tables_of_stays_are_sources(plain, new):
    text = new(plain("sqlite"), "--stay", "encounter", "--stay", "patient")
    sources = yaml.safe_load(text)["encounter"]["sources"]
    assert [source["prefix"] for source in sources] == ["enc1-", "pat2-"]
    assert "FROM patient p" in sources[1]["rows"]


def test_tables_of_another_schema(new_url, new, mapping):
    url = new_url("postgresql")
    for name in ("pas", "north"):
        run(url, f"CREATE SCHEMA {name}")
        run(url, f"CREATE TABLE {name}.stays (id INTEGER PRIMARY KEY)")
    printed = mapping("new", "--from", url)
    assert (printed.status, "north, pas" in printed.err) == (2, True)
    assert "FROM pas.stays s" in new(url, "--schema", "pas", "--stay", "pas.stays")


def test_what_stands_in_a_comment_stays_there(new_url, new):
    hostile = "a\nsource:\u2028 {kind: x}"
    rows = (f"({n}, '{hostile if n % 2 else 'b'}')" for n in range(20))
    run(
        url := new_url("sqlite"),
        "CREATE TABLE s (id INTEGER PRIMARY KEY, k VARCHAR(40))",
        f"INSERT INTO s VALUES {', '.join(rows)}",
    )
    mapping = yaml.safe_load(new(url, "--stay", "s"))
    assert mapping["source"] == {"kind": "sql", "url": {"env": "PAS_URL"}}


# ---------------------------------------------------------------------- the command


def test_without_options_the_tables_are_listed(kind, plain, tmp_path, mapping):
    url, file = plain(kind), tmp_path / "new.yaml"
    printed = mapping("new", "--from", url, "--out", file)
    assert (printed.status, file.exists()) == (0, False)
    lines = [re.split(r"\s{2,}", line) for line in printed.out.splitlines()]
    assert ["encounter", str(STAYS), "id", "organization, patient"] in lines
    assert ["organization", "1", "id", "-"] in lines
    assert "counted" in printed.out
    for option in ("--stay", "--patient", "--organization"):
        assert option in printed.err
    # The account of the tests may write, but to a file.
    is_warned = "warning: this account may change tables" in printed.err
    assert is_warned is (kind != "sqlite")


def test_the_address_the_database_and_an_existing_file_are_left_alone(
    plain, new, tmp_path, mapping, monkeypatch
):
    url = plain("sqlite")
    database = Path(url.removeprefix("sqlite:///"))
    before = database.read_bytes()
    monkeypatch.setenv("HIS_URL", url)
    text = new("env:HIS_URL", *TABLES)
    assert "url: {env: HIS_URL}" in text
    assert str(database) not in text
    assert database.read_bytes() == before
    file = tmp_path / "new.yaml"
    printed = mapping("new", "--from", url, "--out", file, "--stay", "patient")
    assert (printed.status, file.read_text("utf-8")) == (2, text)


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("env:PAS_NOWHERE", [], "PAS_NOWHERE"),
        ("env:1", [], "env:NAME"),
        ("http://127.0.0.1:1", [], "docs/bring/guide-http.md"),
        ("http://127.0.0.1:1", ["--stay", "x"], "FHIR server has no tables"),
        ("nonsense", [], "postgresql://host/database"),
        ("postgresql://u:secret@127.0.0.1:1/db?sslmode=secret", [], "sslmode"),
        ("db2://secret@host/x", [], "db2"),
        ("sqlite:////nowhere/x.sqlite", [], "catalogue"),
        ("", ["--stay", "encounters"], "'encounter'"),
        ("", ["--stay", "q"], "--stay, --patient"),
        ("", ["--patient", "patient"], "--stay TABLE"),
    ],
)
def test_what_cannot_be_read_is_an_error(source, options, says, plain, mapping):
    printed = mapping("new", "--from", source or plain("sqlite"), *options)
    assert (printed.status, printed.out) == (2, "")
    assert says in printed.err
    assert "secret" not in printed.err
