"""`encounters mapping new`: what keys and exact names say of a database, and what is left open."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml

import demo.hospital
from app.cli import main
from tests.databases import writing
from tests.sets import SERVERS
from toolkit.check import check_file
from toolkit.console import marked_lines
from toolkit.findings import Finding, Severity

Capture = pytest.CaptureFixture[str]
NewUrl = Callable[[str], str]

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
TIMES = {"postgresql": "TIMESTAMP"}
TABLES = (
    *("--stay", "encounter", "--patient", "patient"),
    *("--organization", "organization"),
)
STAYS = 40


def create(url: str, kind: str, text: str) -> None:
    """Run the statements of a text."""
    text = text.replace("{time}", TIMES.get(kind, "DATETIME"))
    text = text.replace('"', "`") if kind in SERVERS else text
    engine = writing(url)
    with engine.begin() as connection:
        for statement in text.split(";\n"):
            connection.execute(sa.text(statement))
    engine.dispose()


def insert(url: str, table: str, rows: list[dict[str, object]]) -> None:
    """Insert rows."""
    engine = writing(url)
    clause = sa.table(table, *map(sa.column, rows[0]))
    with engine.begin() as connection:
        connection.execute(sa.insert(clause), rows)
    engine.dispose()


@pytest.fixture
def plain(new_url: NewUrl) -> Callable[[str], str]:
    """Return what makes a small hospital in a kind of database, and returns its URL."""

    def make(kind: str) -> str:
        url, numbers = new_url(kind), range(1, STAYS + 1)
        create(url, kind, PLAIN)
        family = [f"Canary{n % 4}" for n in numbers]
        people = [
            {"id": n, "gender": "female", "family": family[n - 1]} for n in numbers
        ]
        insert(url, "patient", people)
        stays: list[dict[str, object]] = [
            {"id": n, "subject": n, "hospital": 1, "doctor": f"Dr Canary {n % 3}"}
            | {"status": "done" if n > 6 else "planned", "note": "" if n > 5 else None}
            | {"kind": "HC" if n > 3 else f"Canary{n}", "start": "2024-03-30 08:15:00"}
            | {"end": "2024-03-31 08:00:00" if n > 9 else "9999-12-31 00:00:00"}
            for n in numbers
        ]
        insert(url, "encounter", stays)
        return url

    return make


def new(url: str, folder: Path, *options: str) -> str:
    """Return the file that is written."""
    file = folder / "new.yaml"
    file.unlink(missing_ok=True)
    assert main(["mapping", "new", "--from", url, "--out", str(file), *options]) == 0
    return file.read_text("utf-8")


def unmarked_errors(file: Path) -> list[Finding]:
    """Return the errors of `check --live` on lines without a question.

    That the account of the tests may write is none of the draft.
    """
    marked = {number for number, _ in marked_lines(file.read_text("utf-8"))}
    (results, problem) = check_file(file, is_live=True)
    assert problem is None
    findings = [result for result in results if isinstance(result, Finding)]
    errors = [each for each in findings if each.severity is Severity.ERROR]
    of_file = [error for error in errors if error.element != "source"]
    return [error for error in of_file if error.line not in marked]


def is_fine(file: Path) -> bool:
    """Return whether a draft loads."""
    results, _ = check_file(file, is_live=False)
    return not [r for r in results if getattr(r, "severity", None) is Severity.ERROR]


# ------------------------------------------------------------------------ hospitals


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_draft_is_wrong_in_no_line_without_a_question(
    kind: str, new_url: NewUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_url(kind)
    demo.hospital.fill(url, 1000)
    tables = ("--stay", "sejour", "--patient", "patient")
    text = new(url, tmp_path, *tables, "--organization", "etablissement")
    monkeypatch.setenv("PAS_URL", url)
    assert is_fine(tmp_path / "new.yaml")
    assert unmarked_errors(tmp_path / "new.yaml") == []
    engine = writing(url)
    for table in ("sejour", "patient", "etablissement"):
        for column in sa.inspect(engine).get_columns(table):
            name = column["name"]
            assert re.search(rf"\{{from: (\w*_)?{name}[,}}]", text), (table, name)
    engine.dispose()


# --------------------------------------------------------------- keys, names, counts


def test_declared_keys_primary_keys_and_exact_names_fill_slots(
    kind: str,
    plain: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = plain(kind)
    text = new(url, tmp_path, *TABLES)
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
    monkeypatch.setenv("PAS_URL", url)
    assert unmarked_errors(tmp_path / "new.yaml") == []


def test_codes_and_sentinels_are_counted_and_nothing_of_people_is_written(
    kind: str, plain: Callable[[str], str], tmp_path: Path
) -> None:
    text = new(plain(kind), tmp_path, *TABLES)
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


@pytest.mark.parametrize("kind", ["postgresql", *SERVERS, "sqlite"])
def test_keys_that_are_called_uuid_are_keys(
    kind: str, new_url: NewUrl, tmp_path: Path
) -> None:
    type_ = "UUID" if kind == "postgresql" else "CHAR(36)"
    url = new_url(kind)
    create(
        url,
        kind,
        f"CREATE TABLE people (people_uuid {type_} PRIMARY KEY);\n"
        f"CREATE TABLE visits (visit_uuid {type_} PRIMARY KEY, people_uuid {type_},"
        " FOREIGN KEY (people_uuid) REFERENCES people (people_uuid))",
    )
    text = new(url, tmp_path, "--stay", "visits", "--patient", "people")
    mapping = yaml.safe_load(text)
    assert mapping["encounter"]["fields"]["patient_id"] == {"from": "people_uuid"}
    assert mapping["patient"]["fields"]["id"] == {"from": "people_uuid"}


@pytest.mark.parametrize("kind", SERVERS)
def test_zero_dates_are_counted(kind: str, new_url: NewUrl, tmp_path: Path) -> None:
    url, zero = new_url(kind), "0000-00-00 00:00:00"
    create(url, kind, "CREATE TABLE stays (id INTEGER PRIMARY KEY, start DATETIME)")
    insert(url, "stays", [{"id": n, "start": zero} for n in range(1, 8)])
    text = new(url, tmp_path, "--stay", "stays")
    (line,) = [line for line in text.splitlines() if " start: {" in line]
    assert f'"{zero}" (7)' in line
    assert "# ?" in line


SILENT = """
CREATE TABLE mx (k INTEGER, b VARCHAR(20), "Odd Name" VARCHAR(10));
CREATE TABLE sx (house INTEGER, nr INTEGER, z VARCHAR(4), PRIMARY KEY (house, nr))
"""


def test_a_required_slot_that_nothing_fills_serves_nothing(
    kind: str, new_url: NewUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_url(kind)
    create(url, kind, SILENT)
    insert(url, "sx", [{"house": 1, "nr": n, "z": "a"} for n in range(3)])
    text = new(url, tmp_path, "--stay", "SX", "--patient", "mx")
    mapping = yaml.safe_load(text)
    assert mapping["encounter"]["fields"].keys() == {"id", "patient_id", "status"}
    for slot in ("id", "patient_id", "status"):
        assert f"NULL AS open_{slot}" in mapping["encounter"]["rows"]
    assert '# …: {from: "Odd Name"}' in text
    monkeypatch.setenv("PAS_URL", url)
    assert is_fine(tmp_path / "new.yaml")
    assert unmarked_errors(tmp_path / "new.yaml") == []


def test_several_tables_of_stays_are_sources(
    plain: Callable[[str], str], tmp_path: Path
) -> None:
    text = new(plain("sqlite"), tmp_path, "--stay", "encounter", "--stay", "patient")
    sources = yaml.safe_load(text)["encounter"]["sources"]
    assert [source["prefix"] for source in sources] == ["enc1-", "pat2-"]
    assert "FROM patient p" in sources[1]["rows"]


def test_tables_of_another_schema(
    new_url: NewUrl, tmp_path: Path, capsys: Capture
) -> None:
    url = new_url("postgresql")
    for name in ("pas", "north"):
        create(url, "postgresql", f"CREATE SCHEMA {name}")
        create(url, "postgresql", f"CREATE TABLE {name}.stays (id INTEGER PRIMARY KEY)")
    assert main(["mapping", "new", "--from", url]) == 2
    assert "north, pas" in capsys.readouterr().err
    text = new(url, tmp_path, "--schema", "pas", "--stay", "pas.stays")
    assert "FROM pas.stays s" in text


def test_what_stands_in_a_comment_stays_there(new_url: NewUrl, tmp_path: Path) -> None:
    url = new_url("sqlite")
    create(url, "sqlite", "CREATE TABLE s (id INTEGER PRIMARY KEY, k VARCHAR(40))")
    hostile = "a\nsource:\u2028 {kind: x}"
    insert(url, "s", [{"id": n, "k": hostile if n % 2 else "b"} for n in range(20)])
    mapping = yaml.safe_load(new(url, tmp_path, "--stay", "s"))
    assert mapping["source"] == {"kind": "sql", "url": {"env": "PAS_URL"}}


# ------------------------------------------------------------------ without options


def test_without_options_the_tables_are_listed(
    kind: str, plain: Callable[[str], str], tmp_path: Path, capsys: Capture
) -> None:
    url, file = plain(kind), tmp_path / "new.yaml"
    assert main(["mapping", "new", "--from", url, "--out", str(file)]) == 0
    assert not file.exists()
    out, err = capsys.readouterr()
    lines = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    assert ["encounter", str(STAYS), "id", "organization, patient"] in lines
    assert ["organization", "1", "id", "-"] in lines
    assert "counted" in out
    assert all(option in err for option in ("--stay", "--patient", "--organization"))


# ---------------------------------------------------------------------- the command


def test_the_address_is_written_nowhere(
    plain: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = plain("sqlite")
    monkeypatch.setenv("HIS_URL", url)
    text = new("env:HIS_URL", tmp_path, *TABLES)
    assert "url: {env: HIS_URL}" in text
    assert url.removeprefix("sqlite:///") not in text


def test_the_database_and_an_existing_file_are_left_alone(
    plain: Callable[[str], str], tmp_path: Path
) -> None:
    url = plain("sqlite")
    database = Path(url.removeprefix("sqlite:///"))
    before = database.read_bytes()
    text = new(url, tmp_path, *TABLES)
    assert database.read_bytes() == before
    again = ["mapping", "new", "--from", url, "--out", str(tmp_path / "new.yaml")]
    assert main([*again, "--stay", "patient"]) == 2
    assert (tmp_path / "new.yaml").read_text("utf-8") == text


def test_an_account_that_may_write_is_warned_of(
    plain: Callable[[str], str], tmp_path: Path, capsys: Capture
) -> None:
    new(plain("postgresql"), tmp_path, *TABLES)
    assert "warning: this account may change tables" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from", "env:PAS_NOWHERE"], "PAS_NOWHERE"),
        (["--from", "env:1"], "env:NAME"),
        (["--from", "http://127.0.0.1:1"], "docs/bring/guide-http.md"),
        (["--from", "http://127.0.0.1:1", "--stay", "x"], "FHIR server has no tables"),
        (["--from", "nonsense"], "postgresql://host/database"),
        (["--from", "postgresql://u:secret@127.0.0.1:1/db?sslmode=secret"], "sslmode"),
        (["--from", "db2://secret@host/x"], "db2"),
        (["--from", "sqlite:////nowhere/x.sqlite"], "catalogue"),
        (["--from", "URL", "--stay", "encounters"], "'encounter'"),
        (["--from", "URL", "--stay", "q"], "--stay, --patient"),
        (["--from", "URL", "--patient", "patient"], "--stay TABLE"),
    ],
)
def test_what_cannot_be_read_is_an_error(
    options: list[str], says: str, plain: Callable[[str], str], capsys: Capture
) -> None:
    url = plain("sqlite")
    arguments = [url if option == "URL" else option for option in options]
    assert main(["mapping", "new", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert "secret" not in printed.err
