"""`encounters mapping new`: what the structure of a source says, and what is left open."""

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml

from adapters import open_adapter
from adapters.contract import EncounterRecord, ResourceType, SearchQuery, Sort, SortKey
from adapters.mapping.load import load_mapping
from app.cli import main
from tests.databases import writing
from toolkit.check import check
from toolkit.findings import Finding, Severity
from toolkit.new import run

Capture = pytest.CaptureFixture[str]
NewUrl = Callable[[str], str]

# Columns that are named as slots are, with declared keys.
PLAIN = """
CREATE TABLE organization (id INTEGER PRIMARY KEY, name VARCHAR(40));
CREATE TABLE unit (unit_id INTEGER PRIMARY KEY, code VARCHAR(4), name VARCHAR(40));
CREATE TABLE staff (staff_id INTEGER PRIMARY KEY, {many});
CREATE TABLE patient (id INTEGER PRIMARY KEY, gender VARCHAR(10), birth_date DATE,
  surname VARCHAR(20), merged INTEGER REFERENCES patient (id));
CREATE TABLE phone (phone_id INTEGER PRIMARY KEY, number VARCHAR(20), owner INTEGER,
  FOREIGN KEY (owner) REFERENCES patient (id));
CREATE TABLE encounter (id INTEGER PRIMARY KEY, patient INTEGER, hospital INTEGER, unit INTEGER,
  last_unit INTEGER REFERENCES unit (unit_id),
  doctor INTEGER, status VARCHAR(12), kind VARCHAR(4), name VARCHAR(20), start {time},
  FOREIGN KEY (patient) REFERENCES patient (id),
  FOREIGN KEY (hospital) REFERENCES organization (id),
  FOREIGN KEY (unit) REFERENCES unit (unit_id),
  FOREIGN KEY (doctor) REFERENCES staff (staff_id));
INSERT INTO organization VALUES (1, 'North');
INSERT INTO unit VALUES (1, '0123', 'Cardiology');
"""
TIMES = {
    "sqlite": "DATETIME",
    "postgresql": "TIMESTAMP",
    "mariadb": "DATETIME",
    "mysql": "DATETIME",
}

# Names that say nothing here, and no declared key.
SILENT = """
CREATE TABLE mx (k INTEGER, b VARCHAR(20), c VARCHAR(10));
CREATE TABLE sx (nr VARCHAR(9) UNIQUE, q INTEGER, z VARCHAR(4), w DATE);
"""


def made(url: str, text: str, kind: str = "sqlite") -> str:
    """Make tables in an empty database and return its URL."""
    many = ", ".join(f"column_{n} VARCHAR(10)" for n in range(20))
    engine = writing(url)
    with engine.begin() as connection:
        for statement in text.format(time=TIMES[kind], many=many).split(";\n"):
            if statement.strip():
                connection.execute(sa.text(statement))
        if "CREATE TABLE patient" in text:
            for table, values in (
                ("patient", "(:n, 'female', NULL, :s, NULL)"),
                (
                    "encounter",
                    "(:n, :n, 1, 1, 1, NULL, :status, :kind, 'x', '2024-03-30 08:15:00')",
                ),
            ):
                insert = sa.text(f"INSERT INTO {table} VALUES {values}")
                connection.execute(insert, [_row(n) for n in range(1, 41)])
    engine.dispose()
    return url


def _row(n: int) -> dict[str, object]:
    return {
        "n": n,
        "s": "Ljungqvist" if n < 4 else f"Okafor{n}",
        "status": "Finished" if n > 6 else "planned",
        "kind": "HC" if n > 3 else f"Q{n}",
    }


@pytest.fixture
def url(new_url: NewUrl) -> str:
    return made(new_url("sqlite"), PLAIN)


def new(url: str, folder: Path, *options: str) -> tuple[int, str]:
    """Return the exit status and the file that is written."""
    file = folder / "new.yaml"
    file.unlink(missing_ok=True)
    status = main(["mapping", "new", "--from", url, "--out", str(file), *options])
    return status, file.read_text("utf-8")


def errors(file: Path) -> list[Finding]:
    """Return what is wrong with a file; its systems are those of examples, as questions."""
    return [one for one in check(file) if one.severity is Severity.ERROR]


def test_a_structure_that_says_everything_is_served(
    kind: str, new_url: NewUrl, tmp_path: Path, capsys: Capture
) -> None:
    url = made(new_url(kind), PLAIN, kind)
    status, _ = new(url, tmp_path)
    assert status == 0, capsys.readouterr().err
    file = tmp_path / "new.yaml"
    assert errors(file) == []
    text = file.read_text("utf-8").replace(
        "table: {}\n      # ? HC:", "table:\n      HC: IMP"
    )
    file.write_text(text, "utf-8")
    mapping = load_mapping(file, {"PAS_URL": url})
    with closing(open_adapter(mapping)) as adapter:
        query = SearchQuery(ResourceType.ENCOUNTER, (), Sort(SortKey.ID), 4)
        *_, record = adapter.search(query).rows
    assert isinstance(record, EncounterRecord)
    assert (record.id, record.patient_id, record.organization_id, record.status) == (
        *("4", "4", "1", "planned"),
    )
    assert (str(record.start), record.class_code, record.functional_unit) == (
        *("2024-03-30 08:15:00+01:00", "IMP", "0123"),
    )


def test_declared_keys_are_joins_and_references(url: str, tmp_path: Path) -> None:
    _, text = new(url, tmp_path)
    mapping = yaml.safe_load(text)
    rows = mapping["encounter"]["rows"]
    # A key to a unit is the unit, by its code; what no field reads is not joined.
    joins = re.findall(r"JOIN (\w+) \w+ ON \w+\.unit_id = e\.(\w+)", rows)
    assert joins == [("unit", "unit")]
    assert "JOIN staff" not in rows
    assert "code AS unit_code" in rows
    fields = mapping["encounter"]["fields"]
    assert fields["functional_unit"] == {"from": "unit_code"}
    assert fields["patient_id"] == {"from": "patient"}
    assert fields["organization_id"] == {"from": "hospital"}
    assert mapping["patient"]["fields"]["replaced_by"] == {"from": "merged"}
    # Only what words say is marked.
    marked = set(re.findall(r"(?m)^    (\w+): .*# \?", text.partition("\npatient:")[0]))
    assert {"visit_number", "class", "functional_unit", "start"} <= marked
    assert not {"id", "patient_id", "organization_id", "status", "replaced_by"} & marked
    # A table whose rows refer to patients may hold items of a list.
    (phone,) = mapping["patient"]["fields"]["telecoms"]
    assert (phone["key"], phone["value"]) == ("owner", {"from": "number"})


def test_codes_are_counted_and_their_meaning_is_asked(url: str, tmp_path: Path) -> None:
    _, text = new(url, tmp_path)
    # FHIR's own words are filled in.
    assert "Finished: finished  # 34 rows" in text
    table = yaml.safe_load(text)["codes"]["status_encounter"]["table"]
    assert table == {"Finished": "finished", "planned": "planned"}
    # A code that few rows have may be anything, and so may the names of people.
    assert "# ? HC:  # 37 rows; EMER, IMP" in text
    assert "# ? 3 more" in text
    assert not any(secret in text for secret in ("Q1", "Ljungqvist", "Okafor"))
    # A time without a zone asks for its clock.
    (line,) = [line for line in text.splitlines() if " start: {" in line]
    assert "# ? by whose clock" in line


def test_what_the_structure_does_not_say_is_a_question(
    new_url: NewUrl, tmp_path: Path, capsys: Capture
) -> None:
    url = made(new_url("sqlite"), SILENT)
    status, text = new(url, tmp_path, "--stay", "Sx", "--patient", "mx")
    assert status == 1
    assert "Encounter.status" in capsys.readouterr().err
    mapping = yaml.safe_load(text)
    assert mapping["encounter"]["fields"] == {
        "id": {"from": "nr"},
        # Without another number the key is the number, with a mark.
        "visit_number": {"from": "nr"},
        "start": {"from": "w", "at": "00:00"},
    }
    assert mapping["encounter"]["search"] == ["_id", "date", "identifier"]
    assert re.search(r"start: .*# \? by its type", text)
    assert re.search(r"visit_number: .*# \? no column holds another number", text)
    assert "# ? patient_id: which column? q, z" in text
    assert "# status: {from: …, codes: status_sx}" in text
    assert "# ? no key is declared" in text
    # The line of a candidate is the field once its column is chosen.
    file = tmp_path / "new.yaml"
    for slot, column in (("status", "z"), ("patient_id", "q")):
        text = re.sub(rf"# ({slot}: {{from: )…", rf"\1{column}", text)
    text = text.replace("\nencounter:", "\ncodes: {status_sx: {table: {}}}\nencounter:")
    file.write_text(text, "utf-8")
    assert errors(file) == []


def test_several_tables_of_stays_are_sources(
    url: str, tmp_path: Path, new_url: NewUrl
) -> None:
    _, text = new(url, tmp_path, "--stay", "encounter", "--stay", "phone")
    sources = yaml.safe_load(text)["encounter"]["sources"]
    assert [source["prefix"] for source in sources] == ["enc1-", "pho2-"]
    assert "FROM phone p" in sources[1]["rows"]


def test_persons_are_joined_to_patients(new_url: NewUrl, tmp_path: Path) -> None:
    text = PLAIN.replace("merged INTEGER REFERENCES patient (id)", "person INTEGER")
    text = text.replace("surname", "house")
    person = (
        "CREATE TABLE person (id INTEGER PRIMARY KEY, family VARCHAR(20), {many});\n"
    )
    text = text.replace("person INTEGER", "person INTEGER REFERENCES person (id)")
    url = made(new_url("sqlite"), person + text)
    _, text = new(url, tmp_path, "--patient", "patient", "--patient", "person")
    rows = yaml.safe_load(text)["patient"]["rows"]
    assert re.search(r"LEFT JOIN person (p\d) ON \1.id = p.person", rows)
    assert "family AS person_family" in rows
    _, text = new(url, tmp_path, "--patient", "patient", "--patient", "unit")
    assert "no key leads to unit" in text


def test_tables_of_another_schema(
    new_url: NewUrl, tmp_path: Path, capsys: Capture
) -> None:
    url = new_url("postgresql")
    for name in ("pas", "north"):
        _run(url, f"CREATE SCHEMA {name}")
        _run(url, f"CREATE TABLE {name}.stays (id INTEGER PRIMARY KEY)")
    assert main(["mapping", "new", "--from", url]) == 2
    assert "north, pas" in capsys.readouterr().err
    _, text = new(url, tmp_path, "--schema", "pas", "--stay", "pas.stays")
    assert "FROM pas.stays s" in text


def _run(url: str, statement: str) -> None:
    engine = writing(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def test_it_prints_the_file_or_json(url: str, tmp_path: Path, capsys: Capture) -> None:
    _, text = new(url, tmp_path)
    capsys.readouterr()
    assert main(["mapping", "new", "--from", url]) == 0
    assert capsys.readouterr().out == text
    assert main(["mapping", "new", "--json", "--from", url]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["file"], printed["mapping"], printed["warnings"]) == ("", text, [])
    lines = text.splitlines()
    assert len(printed["questions"]) == text.count("# ? ") > 5
    for question in printed["questions"]:
        assert question["text"] in lines[question["line"] - 1]


def test_the_address_is_written_nowhere(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIS_URL", url)
    _, text = new("env:HIS_URL", tmp_path)
    assert "url: {env: HIS_URL}" in text
    assert url.removeprefix("sqlite:///") not in text


def test_the_database_and_an_existing_file_are_left_alone(
    url: str, tmp_path: Path
) -> None:
    database = Path(url.removeprefix("sqlite:///"))
    before = database.read_bytes()
    _, text = new(url, tmp_path)
    assert database.read_bytes() == before
    again = ["mapping", "new", "--from", url, "--out", str(tmp_path / "new.yaml")]
    assert main([*again, "--stay", "phone"]) == 2
    assert (tmp_path / "new.yaml").read_text("utf-8") == text


def test_an_account_that_may_write_is_warned_of(
    new_url: NewUrl, tmp_path: Path, capsys: Capture
) -> None:
    new(made(new_url("postgresql"), PLAIN, "postgresql"), tmp_path)
    assert "warning: this account may change tables" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from", "env:PAS_NOWHERE"], "PAS_NOWHERE"),
        (["--from", "env:1"], "env:NAME"),
        (["--from", "http://127.0.0.1:1"], "'A hospital behind an HTTP API'"),
        (["--from", "http://127.0.0.1:1", "--stay", "x"], "its address alone"),
        (["--from", "nonsense"], "postgresql://host/database"),
        (["--from", "postgresql://u:secret@127.0.0.1:1/db?sslmode=secret"], "sslmode"),
        (["--from", "db2://secret@host/x"], "db2"),
        (["--from", "sqlite:////nowhere/x.sqlite"], "catalogue"),
        (["--from", "URL", "--stay", "encounters"], "'encounter'"),
        (["--from", "URL", "--stay", "q"], "organization, patient, phone"),
    ],
)
def test_what_cannot_be_read_is_an_error(
    options: list[str], says: str, url: str, capsys: Capture
) -> None:
    arguments = [url if option == "URL" else option for option in options]
    assert main(["mapping", "new", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert "secret" not in printed.err


def test_a_database_without_a_table_of_stays_lists_its_tables(
    new_url: NewUrl, capsys: Capture
) -> None:
    """The tables whose names say stay come first, as the example of the option."""
    visits = "CREATE TABLE zz_visit (nr INTEGER);\n"
    url = made(new_url("sqlite"), SILENT + visits)
    assert main(["mapping", "new", "--from", url]) == 2
    error = capsys.readouterr().err
    assert "--stay zz_visit" in error
    assert "zz_visit, mx, sx" in error


def test_a_key_of_a_type_that_no_slot_takes_is_a_question(
    new_url: NewUrl, tmp_path: Path
) -> None:
    url = new_url("postgresql")
    engine = writing(url)
    with engine.begin() as connection:
        for table in ("encounter", "organization"):
            columns = "id BYTEA PRIMARY KEY, name VARCHAR(20)"
            connection.execute(sa.text(f"CREATE TABLE {table} ({columns})"))
    engine.dispose()
    _, text = new(url, tmp_path)
    assert text.count("# ? id: which column?") == 2


def test_a_table_whose_columns_fit_nothing_is_all_questions(
    new_url: NewUrl, tmp_path: Path
) -> None:
    status, text = new(made(new_url("sqlite"), "CREATE TABLE stays (k BLOB)"), tmp_path)
    assert status == 1
    assert "SELECT *\n    FROM stays s" in text


NAMED = """
CREATE TABLE "Stays" ("Id" INTEGER PRIMARY KEY, "Patient-Id" INTEGER, "Visit Number" VARCHAR(9),
  "The first start-time" {time}, "The last end-time" {time}, "Ward" INTEGER,
  FOREIGN KEY ("Ward") REFERENCES "Ward 1" ("Id"));
"""
WARD = """
CREATE TABLE "Ward 1" ("Id" INTEGER PRIMARY KEY, "Ward Code" VARCHAR(9));
"""


def test_names_of_any_form_are_quoted_whole(
    kind: str, new_url: NewUrl, tmp_path: Path, capsys: Capture
) -> None:
    url, text = new_url(kind), WARD + NAMED
    text = text.replace('"', "`") if kind in ("mariadb", "mysql") else text
    new(made(url, text, kind), tmp_path, "--stay", "Stays")
    capsys.readouterr()
    file = tmp_path / "new.yaml"
    rows = yaml.safe_load(file.read_text("utf-8"))["encounter"]["rows"]
    engine = writing(url)
    with engine.connect() as connection:
        now = {"now": "2024-01-01 00:00:00"}
        columns = connection.execute(sa.text(rows), now).keys()
    engine.dispose()
    fields = yaml.safe_load(file.read_text("utf-8"))["encounter"]["fields"]
    assert {"id", "visit_number", "start", "end", "functional_unit"} <= fields.keys()
    assert {each["from"] for each in fields.values()} == {*columns}


def test_a_caller_says_what_to_do_next(
    url: str, tmp_path: Path, capsys: Capture
) -> None:
    options = {"source": url, "out": tmp_path / "new.yaml", "as_json": False}
    tables: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("stay", "patient", "organization", "schema"), ()
    )
    run(next_step="open the page", **options, **tables)
    error = capsys.readouterr().err
    assert "next: open the page\n" in error
    assert "mapping check" not in error
