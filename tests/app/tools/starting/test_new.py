"""`encounters mapping new`: a file that passes, loads and serves, and what it leaves open."""

import json
import lzma
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    EncounterRecord,
    NameRecord,
    PatientRecord,
    Record,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from app.cli import main
from demo import hospital
from tests.app.tools.starting.invented import SYSTEMS, statements
from tests.databases import NewDatabase, writing
from tests.mariadb_server import MariaServer

SHIPPED = Path(hospital.__file__).parents[1] / "mappings"
SAMPLE = Path(__file__).parents[3] / "gnuhealth" / "sample.sqlite.xz"
STAY, PATIENT, ORGANIZATION = ResourceType


def made(url: str, system: str) -> str:
    """Make an invented system in an empty database and return its URL."""
    engine = writing(url)
    with engine.begin() as connection:
        for statement in statements(system, engine.dialect.name):
            connection.exec_driver_sql(statement)
    engine.dispose()
    return url


@pytest.fixture(scope="module", params=["sqlite", "postgresql", "mariadb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def empty(
    kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NewDatabase:
    """Return a function that makes an empty database."""
    if kind == "postgresql":
        make: NewDatabase = request.getfixturevalue("new_postgresql")
        return lambda _: make("unicode")
    if kind == "mariadb":
        server: MariaServer = request.getfixturevalue("mariadb_server")
        return lambda _: server.new_database()
    folder = tmp_path_factory.mktemp("invented")
    return lambda name: f"sqlite:///{folder / name}.sqlite"


@pytest.fixture(scope="module")
def urls(empty: NewDatabase) -> dict[str, str]:
    """Return the URL of each invented system in one kind of database."""
    return {name: made(empty(name), name) for name in SYSTEMS}


def new(url: str, tmp_path: Path, *more: str) -> Path:
    """Write a first mapping and return its file."""
    file = tmp_path / "new.yaml"
    assert main(["mapping", "new", "--from", url, "--out", str(file), *more]) == 0
    return file


@contextmanager
def opened(url: str, file: Path) -> Iterator[Adapter]:
    adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
    with closing(adapter):
        yield adapter


def said(file: Path) -> str:
    """Return a file in one line of small letters, however its comments are broken."""
    return " ".join(file.read_text("utf-8").lower().replace("#", " ").split())


def served(adapter: Adapter, of: ResourceType) -> dict[str, Record]:
    rows = adapter.search(SearchQuery(of, (), Sort(SortKey.ID), 1000)).rows
    return {row.id: row for row in rows if not isinstance(row, RowFault)}


def faults(adapter: Adapter, of: ResourceType) -> list[RowFault]:
    rows = adapter.search(SearchQuery(of, (), Sort(SortKey.ID), 1000)).rows
    return [row for row in rows if isinstance(row, RowFault)]


def stays(adapter: Adapter) -> dict[str, EncounterRecord]:
    found = served(adapter, STAY)
    return {id: row for id, row in found.items() if isinstance(row, EncounterRecord)}


def patients(adapter: Adapter) -> dict[str, PatientRecord]:
    found = served(adapter, PATIENT)
    return {id: row for id, row in found.items() if isinstance(row, PatientRecord)}


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_file_passes_and_fits_its_database(
    urls: dict[str, str], system: str, tmp_path: Path
) -> None:
    file = new(urls[system], tmp_path)
    assert main(["mapping", "check", str(file)]) == 0
    with opened(urls[system], file) as adapter:
        told = [problem.text for problem in adapter.check()]
    assert [text for text in told if "may change tables" not in text] == []


def test_french_system(urls: dict[str, str], tmp_path: Path) -> None:
    with opened(urls["french"], new(urls["french"], tmp_path)) as adapter:
        found = stays(adapter)
        (fault,) = faults(adapter, STAY)
        people = patients(adapter)
        (house,) = served(adapter, ORGANIZATION).values()
    assert fault.rule == "no entry for 'Z9' in codes.status"
    first = found["1"]
    assert (first.visit_number, first.patient_id, first.organization_id) == (
        "240000001",
        "1",
        "1",
    )
    assert (first.status, first.class_code) == ("finished", "IMP")
    assert first.functional_unit == "0123"
    assert first.start is not None
    assert first.start.isoformat() == "2024-03-30T08:15:00+01:00"
    assert [found[id].status for id in ("2", "3")] == ["in-progress", "planned"]
    assert (people["1"].gender, people["1"].names[0]) == (
        "female",
        NameRecord("official", "MARTIN", ("Anne",)),
    )
    # 1900-01-01 is no day of birth.
    assert people["2"].birth_date is None
    assert house.id == "1"


def test_english_system_in_two_tables(urls: dict[str, str], tmp_path: Path) -> None:
    with opened(urls["english"], new(urls["english"], tmp_path)) as adapter:
        found = stays(adapter)
        people = patients(adapter)
    assert sorted(found) == ["adm-1", "adm-2", "cli-1", "cli-2"]
    assert (found["adm-1"].class_code, found["adm-2"].class_code) == ("IMP", "EMER")
    assert found["adm-1"].functional_unit == "CARD"
    visit = found["cli-1"]
    assert (visit.status, visit.class_code) == ("finished", "AMB")
    assert visit.start is not None
    assert visit.start.isoformat() == "2024-05-02T09:30:00+02:00"
    assert [name.use for name in people["1"].names] == ["official", "maiden"]
    assert (people["2"].active, people["2"].replaced_by) == (False, "1")


def test_old_system_with_dates_as_text(urls: dict[str, str], tmp_path: Path) -> None:
    with opened(urls["legacy"], new(urls["legacy"], tmp_path)) as adapter:
        found = stays(adapter)
        people = patients(adapter)
    first = found["240000001"]
    assert (first.patient_id, first.functional_unit) == ("0000000042", "0123")
    assert first.start is not None
    assert first.start.isoformat() == "2024-03-30T08:15:00+01:00"
    assert found["240000002"].end is None
    assert [found[id].class_code for id in sorted(found)] == ["IMP", "EMER", "AMB"]
    born = people["0000000042"].birth_date
    assert born is not None
    assert born.isoformat() == "1957-12-24"
    assert [name.family for name in people["0000000043"].names] == ["PETIT"]


def test_codes_and_names_in_tables_of_their_own(
    urls: dict[str, str], tmp_path: Path
) -> None:
    file = new(urls["clinic"], tmp_path)
    with opened(urls["clinic"], file) as adapter:
        found = stays(adapter)
        (person,) = patients(adapter).values()
    assert [found[id].class_code for id in ("1", "2")] == ["AMB", "IMP"]
    assert [found[id].status for id in ("1", "2")] == ["finished", "in-progress"]
    assert person.names == (NameRecord("official", "Moss", ("Ada",)),)
    assert (person.gender, person.deceased) == ("female", False)
    assert [identifier.value for identifier in person.identifiers] == ["M0042"]
    text = said(file)
    assert "identifier_type (green card: 1) may say the type: how?" in text
    assert (
        "encounter also looks like stays, but each of its rows has a visit_id" in text
    )


def test_dates_as_people_write_them(urls: dict[str, str], tmp_path: Path) -> None:
    file = new(urls["oldest"], tmp_path)
    with opened(urls["oldest"], file) as adapter:
        found = stays(adapter)
        (person,) = patients(adapter).values()
        newest = SearchQuery(STAY, (), Sort(SortKey.DATE, descending=True), 10)
        order = [
            row.id
            for row in adapter.search(newest).rows
            if isinstance(row, EncounterRecord)
        ]
    assert order == ["hos-2", "hos-1", "urg-1"]
    assert (found["hos-1"].status, found["hos-2"].status) == ("finished", "in-progress")
    assert (found["hos-1"].class_code, found["urg-1"].class_code) == ("IMP", "EMER")
    assert found["hos-1"].end is not None
    assert found["hos-1"].end.isoformat() == "2021-02-25T12:00:00+01:00"
    assert person.birth_date is not None
    assert person.birth_date.isoformat() == "1980-01-22"
    assert [name.family for name in person.names] == ["MARTIN", "DURAND"]
    # Nothing says that the identity is qualified.
    assert [identifier.type for identifier in person.identifiers] == ["PI"]
    assert "nir seems to be the ins" in said(file)


def test_questions_stand_where_they_are_asked(
    urls: dict[str, str], tmp_path: Path
) -> None:
    english = new(urls["english"], tmp_path).read_text("utf-8")
    assert "leave them out by WHERE deleted_at IS NULL in rows?" in english
    (tmp_path / "new.yaml").unlink()
    text = new(urls["french"], tmp_path).read_text("utf-8")
    assert "# ? annule (N: 4, O: 1) seems to mark rows that were cancelled" in text
    assert "COALESCE(s.date_entree," in text
    assert "# ? Z9:" in text
    assert "# tables that nothing reads: mouvement" in text


def test_no_name_number_or_address_is_written(
    urls: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for system in urls:
        text = new(urls[system], tmp_path).read_text("utf-8")
        (tmp_path / "new.yaml").unlink()
        told = capsys.readouterr()
        for word in (
            "MARTIN",
            "Miller",
            "M0042",
            "0000000042",
            "240000001",
            "Dr",
            "1957",
        ):
            assert word not in text + told.out + told.err, (system, word)
        assert "url: {env: PAS_URL}" in text
        assert "://" not in text.replace("https://example.org/", "")


# ------------------------------------------------------------------ known hospitals


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('demo') / 'pas.sqlite'}"
    hospital.fill(url, 1000)
    return url


@pytest.fixture(scope="module")
def gnuhealth_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("gnuhealth") / "gh.sqlite"
    file.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    return f"sqlite:///{file}"


def test_demo_hospital_is_read_as_its_own_mapping_reads_it(
    empty: NewDatabase, tmp_path: Path
) -> None:
    demo_url = empty("demo")
    hospital.fill(demo_url, 1000)
    shipped = SHIPPED / "demo" / "demo.yaml"
    file = new(demo_url, tmp_path)
    with opened(demo_url, file) as ours:
        found, people = stays(ours), patients(ours)
    with opened(demo_url, shipped) as theirs:
        known, known_people = stays(theirs), patients(theirs)
    assert found.keys() == known.keys()
    fields = [f for f in EncounterRecord._fields if f != "visit_number_system"]
    for id, stay in known.items():
        assert all(getattr(found[id], f) == getattr(stay, f) for f in fields), id
    # No national number goes out before somebody has said of whom.
    numbers = {i for person in people.values() for i in person.identifiers}
    assert {(number.type, number.use) for number in numbers} == {("PI", "usual")}
    text = " ".join(file.read_text("utf-8").replace("#", "").split())
    assert "other codes of domaine are left out (INS-NIR: " in text
    assert "qualified, which identite.statut (QUAL: " in text
    assert (
        "THEN i.statut ELSE 'QUAL' END AS may_go_out FROM identifiant_patient" in text
    )
    # A code of gender that nobody knows is unknown here, and a fault there.
    assert known_people.keys() <= people.keys()
    for id, person in known_people.items():
        assert people[id].names == person.names
        assert (people[id].gender, people[id].birth_date, people[id].replaced_by) == (
            person.gender,
            person.birth_date,
            person.replaced_by,
        )


def test_a_time_of_change_in_a_zone_that_nobody_told_is_a_comment(
    urls: dict[str, str], tmp_path: Path
) -> None:
    file = new(urls["french"], tmp_path)
    text = file.read_text("utf-8")
    environ = {"PAS_URL": urls["french"]}
    assert "only the hospital knows: local clock, or utc" in said(file)
    assert "_lastUpdated" not in text
    for kind, section in load_mapping(file, environ).resources.items():
        assert "last_updated" not in section.fields, kind
    file.write_text(text.replace("# last_updated:", "last_updated:"))
    stays = load_mapping(file, environ).resources[STAY]
    assert stays.fields["last_updated"].columns == ("date_maj",)


def test_gnu_health_is_three_tables_of_stays(
    gnuhealth_url: str, tmp_path: Path
) -> None:
    file = new(gnuhealth_url, tmp_path)
    text = file.read_text("utf-8")
    assert "time_zone: UTC" in text
    assert "rows without patient (13) are left out" in text
    assert "all 76 stays that are planned or in progress have a discharge_date" in text
    assert (
        "organization_id: in 41 of 501 rows institution of the unit is another" in text
    )
    assert "class: urgency (a: 104, b: 30, c: 26) may mark emergencies" in text
    assert (
        "80 of 501 rows are of visits that gnuhealth_patient_evaluation has too" in text
    )
    assert "of party_party nothing reads active (1: 209, 0: 1)" in text
    # A state of something else, and a column with one code, are no questions.
    assert "nothing reads active (1: 209, 0: 1); " not in text
    assert "or is it visit_type (followup: 273, new: 228)?" in text
    assert "visit_type (new: 200)" not in text
    assert "4 of 200 rows were changed later in party_party (write_date)" in text
    assert "joined by party, which nothing keeps unique" in text
    # The 13 free slots are left out by the WHERE, and counted nowhere.
    table = text.partition("status_appointment:")[2].partition("class_appointment:")[0]
    assert "free" not in table
    assert "confirmed: planned       # 31 rows" in table
    # What would be served as any other class is written, and asked.
    assert "urgent: IMP              # ? 84 rows, which one: EMER" in text
    with opened(gnuhealth_url, file) as adapter:
        found = stays(adapter)
        assert not faults(adapter, STAY)
        assert not faults(adapter, PATIENT)
    shipped = SHIPPED / "gnuhealth" / "gnuhealth-5.0.yaml"
    with opened(gnuhealth_url, shipped) as adapter:
        known = stays(adapter)
    # What the file leaves open is what no row says: which urgency is an emergency.
    assert found.keys() == known.keys()
    fields = [f for f in EncounterRecord._fields if f != "visit_number_system"]
    for id, stay in known.items():
        differ = {f for f in fields if getattr(found[id], f) != getattr(stay, f)}
        assert differ <= ({"class_code"} if stay.class_code == "EMER" else set()), id
    assert {id[:4] for id in found} == {"inp-", "eva-", "app-"}
    going = [stay for stay in found.values() if stay.status != "finished"]
    assert {stay.end for stay in going if stay.id.startswith("inp-")} == {None}
    assert found["inp-1"].start is not None
    assert found["inp-1"].start.isoformat() == "2025-10-26T02:30:00+02:00"


# ------------------------------------------------------------------ the command


def test_it_prints_where_no_file_is_named(
    demo_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mapping", "new", "--from", demo_url]) == 0
    told = capsys.readouterr()
    new(demo_url, tmp_path)
    assert told.out == (tmp_path / "new.yaml").read_text("utf-8")
    assert "Encounter: 495 of the first 500 rows are served" in told.err
    assert "2 not: status: no entry for 'Q7' in codes.status" in told.err


def test_the_address_may_stand_in_the_environment(
    demo_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIS_URL", demo_url)
    assert "url: {env: HIS_URL}" in new("env:HIS_URL", tmp_path).read_text("utf-8")


def test_json_holds_the_file_and_its_questions(
    demo_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mapping", "new", "--json", "--from", demo_url]) == 0
    told = json.loads(capsys.readouterr().out)
    lines = told["mapping"].splitlines()
    assert told["file"] == ""
    assert told["warnings"] == []
    assert told["served"][2] == "Organization: 4 of the first 4 rows are served"
    assert len(told["questions"]) > 10
    for question in told["questions"]:
        assert question["text"] in lines[question["line"] - 1]


def test_tables_that_are_named_go_before_those_that_are_guessed(
    urls: dict[str, str], kind: str, tmp_path: Path
) -> None:
    file = new(
        urls["english"], tmp_path, "--stay", "Admissions", "--patient", "persons"
    )
    text = file.read_text("utf-8")
    assert "prefix:" not in text
    assert "FROM admissions a" in text
    assert "clinic_appointments" in text.split("tables that nothing reads")[1]


@pytest.mark.parametrize("option", ["--stay", "--patient", "--organization"])
@pytest.mark.parametrize("name", ["MALADE", "HOSPIT", "URGENCE"])
def test_whatever_table_is_named_the_file_is_whole(
    tmp_path: Path, option: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = made(f"sqlite:///{tmp_path / 'oldest.sqlite'}", "oldest")
    file = tmp_path / "new.yaml"
    command = ["mapping", "new", "--from", url, "--out", str(file), option, name]
    assert main(command) in (0, 1)
    assert "warning" not in capsys.readouterr().err
    assert main(["mapping", "check", str(file)]) == 0


def test_tables_of_another_schema(
    new_postgresql: NewDatabase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = new_postgresql("unicode")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA pas")
        connection.exec_driver_sql("SET search_path TO pas")
        for statement in statements("french", "postgresql"):
            connection.exec_driver_sql(statement)
    engine.dispose()
    told = refused(capsys, "--from", url)
    assert "sees no table in the default schema; name another with --schema" in told
    assert "pas" in told
    file = new(url, tmp_path, "--schema", "pas")
    assert "FROM pas.sejour s" in file.read_text("utf-8")
    with opened(url, file) as adapter:
        assert stays(adapter)["1"].functional_unit == "0123"


def test_an_account_that_may_read_views_alone(
    new_postgresql: NewDatabase, tmp_path: Path
) -> None:
    url = new_postgresql("unicode")
    hospital.fill(url, 1000)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE views_only LOGIN")
        for view in ("vue_sejour", "vue_patient"):
            connection.exec_driver_sql(f"GRANT SELECT ON {view} TO views_only")
    engine.dispose()
    reader = url.replace("postgres:@", "views_only@")
    with opened(reader, new(reader, tmp_path)) as adapter:
        assert list(adapter.check()) == []
        found = stays(adapter)
        people = patients(adapter)
    assert len(found) > 900
    assert {stay.patient_id for stay in found.values()} <= people.keys()
    assert "UNK" not in {stay.class_code for stay in list(found.values())[:5]}


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["mapping", "new", *options]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


def test_nothing_like_stays_lists_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)"
        )
        connection.execute("CREATE TABLE articles (id INTEGER PRIMARY KEY, label TEXT)")
    said = refused(capsys, "--from", f"sqlite:///{file}")
    assert (
        "no table looks like stays: name the one or more that are with --stay" in said
    )
    assert said.endswith("The tables are: articles, orders\n")


def test_stays_without_patients_are_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stays.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE TABLE sejour (id INTEGER PRIMARY KEY, ipp TEXT, date_entree DATETIME,"
            " date_sortie DATETIME)"
        )
        connection.execute(
            "INSERT INTO sejour VALUES (1, '7', '2024-01-02 10:00:00', NULL)"
        )
        connection.commit()
    url = f"sqlite:///{file}"
    out = tmp_path / "out.yaml"
    assert main(["mapping", "new", "--from", url, "--out", str(out)]) == 1
    assert (
        "no table looks like patients: name it with --patient"
        in capsys.readouterr().err
    )
    with opened(url, out) as adapter:
        (stay,) = stays(adapter).values()
    # No column of states: the dates tell.
    assert (stay.patient_id, stay.status) == ("7", "in-progress")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--from", "env:PAS_NOWHERE"],
            "the environment variable PAS_NOWHERE is not set",
        ),
        (["--from", "https://pas.example.org"], "an HTTP system has no catalogue"),
        (["--from", "nonsense"], "not an address like postgresql://host/database"),
        (
            ["--from", "postgresql://u:secret@127.0.0.1:1/db?sslmode=secret"],
            "the address has a value of sslmode that the driver does not take",
        ),
        (["--from", "db2://secret@host/x"], "no such kind of database: db2"),
        (["--from", "sqlite:////nowhere/x.sqlite"], "the catalogue cannot be read"),
    ],
    ids=["unset", "http", "no-address", "bad-option", "unknown-kind", "no-file"],
)
def test_what_cannot_be_read(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, *options)
    assert said in told
    assert "secret" not in told
    assert "Traceback" not in told


def test_an_http_system_of_the_environment_has_no_catalogue_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAS_URL", "http://pas.example.org/api")
    assert "'A hospital behind an HTTP API'" in refused(capsys, "--from", "env:PAS_URL")


def test_a_table_that_is_not_there_is_told_with_the_nearest(
    demo_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, "--from", demo_url, "--stay", "sejours")
    assert told == "there is no table 'sejours'; did you mean 'sejour'?\n"


def test_a_file_that_is_there_is_kept(
    demo_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    assert "is there already" in refused(capsys, "--from", demo_url, "--out", str(file))
    assert file.read_text() == "mine"


def test_the_database_is_only_read(demo_url: str, tmp_path: Path) -> None:
    file = Path(demo_url.removeprefix("sqlite:///"))
    before = file.read_bytes()
    new(demo_url, tmp_path)
    assert file.read_bytes() == before
    assert stat.S_ISREG(file.stat().st_mode)
