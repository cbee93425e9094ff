"""`encounters mapping check --live` on databases: each planted defect is found."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
import sqlalchemy as sa

from adapters.mapping.binary import BinaryForm, bytes_of
from app.cli import main
from demo import hospital as demo
from tests.databases import writing
from tests.live import ROOT
from tests.mariadb_server import MariaServer
from tests.sets import SERVERS
from tests.toolkit.live_hospital import (
    MAPPING,
    Findings,
    checked,
    defects,
    fill,
    findings_of,
    run,
    written,
)
from toolkit.check import check_live
from toolkit.findings import WIDTH, Finding

DEMO = ROOT / "mappings" / "demo" / "demo.yaml"
DEFECTS = defects("sql")
RIGHT = defects("right")
PARTS = 6
"""How many tests try all defects in a database: none takes minutes."""
SOON = f"{datetime.now(UTC) + timedelta(minutes=50):%Y-%m-%d %H:%M:%S}"
"""Ahead of the clock by less than the zone is from UTC."""

Capture = pytest.CaptureFixture[str]
NewUrl = Callable[[str], str]
Check = Callable[..., Findings]
Read = Callable[..., list[str]]


@pytest.fixture
def url(kind: str, new_url: NewUrl, monkeypatch: pytest.MonkeyPatch) -> str:
    url = new_url(kind)
    monkeypatch.setenv("PAS_URL", url)
    return url


@pytest.fixture
def check(tmp_path: Path, capsys: Capture) -> Check:
    """Return what changes the mapping file and returns the findings."""
    return lambda *changes: checked(written(tmp_path, *changes), capsys)


sqlite = pytest.mark.parametrize("kind", ["sqlite"])
postgresql = pytest.mark.parametrize("kind", ["postgresql"])


def severities(found: Findings) -> set[str]:
    return {one["severity"] for one in found}


def unhurried(found: Findings) -> Findings:
    """Return findings but for slow searches: the machine may be busy."""
    return [one for one in found if " slow: " not in one["text"]]


def test_nothing_is_wrong_with_a_sound_hospital(
    kind: str, url: str, tmp_path: Path, check: Check
) -> None:
    fill(url, kind)
    assert severities(check()) <= {"note"}
    # What is left is what the hospital's own screens have to confirm.
    assert main(["mapping", "check", "--live", str(written(tmp_path))]) == 1


@pytest.mark.parametrize("kind", SERVERS)
def test_tables_of_another_database_are_examined(
    kind: str, url: str, new_url: NewUrl, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url, kind)
    name = sa.make_url(url).database
    # A table of the same name is in the database of the address.
    run(here := new_url(kind), "CREATE TABLE stays (stay_id BIGINT)")
    monkeypatch.setenv("PAS_URL", here)
    tables = [(f"FROM {t}", f"FROM {name}.{t}") for t in ("stays", "patients")]
    assert unhurried(check(*tables)) == []


def is_found(
    defect: dict[str, Any], kind: str, url: str, folder: Path, capsys: Capture
) -> bool:
    """Whether a defect is reported, and gone once a proposed index is there."""
    fill(url, kind, [sql.replace("SOON", SOON) for sql in defect.get("sql", ())])
    file = written(folder, *defect.get("changes", ()))
    findings = findings_of(defect, file, checked(file, capsys))
    if not findings or not findings[0]["remedy"].startswith("CREATE INDEX"):
        return bool(findings)
    run(url, findings[0]["remedy"])
    return findings[0] not in checked(file, capsys)


@sqlite
@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found_in_sqlite(
    name: str, url: str, tmp_path: Path, capsys: Capture
) -> None:
    if "sqlite" in DEFECTS[name].get("databases", ("sqlite",)):
        assert is_found(DEFECTS[name], "sqlite", url, tmp_path, capsys)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", ["postgresql", *SERVERS])
def test_defects_are_found_in_other_databases(
    kind: str,
    part: int,
    new_url: NewUrl,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missed = []
    for name, defect in [*DEFECTS.items()][part::PARTS]:
        if kind in defect.get("databases", (kind,)):
            monkeypatch.setenv("PAS_URL", url := new_url(kind))
            if not is_found(defect, kind, url, tmp_path, capsys):
                missed.append(name)
    assert missed == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", *SERVERS])
def test_what_only_resembles_a_defect_is_no_finding(
    kind: str,
    new_url: NewUrl,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, right in RIGHT.items():
        if kind in right.get("databases", (kind,)):
            monkeypatch.setenv("PAS_URL", url := new_url(kind))
            fill(url, kind, right["sql"])
            found = checked(written(tmp_path, *right.get("changes", ())), capsys)
            assert severities(unhurried(found)) <= {"note"}, (name, found)
            assert not any("search by" in one["text"] for one in found), name


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////none/such.sqlite",
        "postgresql://eve:hush@127.0.0.1:9/secret_pas",
        "mysql://eve:hush@127.0.0.1:9/secret_pas",
        None,
    ],
    ids=["sqlite", "postgresql", "mariadb", "unset"],
)
def test_a_source_that_is_away_cannot_be_checked(
    url: str | None, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAS_URL", raising=False)
    if url:
        monkeypatch.setenv("PAS_URL", url)
    assert main(["mapping", "check", "--live", str(written(tmp_path))]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert ("PAS_URL" in printed.err) is (url is None)
    assert printed.err.count("\n") == 1
    assert not any(word in printed.err for word in ("eve", "hush", "secret_pas"))


def test_an_account_that_is_refused_cannot_check(
    mariadb_server: MariaServer,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = mariadb_server.new_database().rpartition("/")[2].partition("?")[0]
    monkeypatch.setenv("PAS_URL", mariadb_server.url(database, account="eve:hush"))
    assert main(["mapping", "check", "--live", str(written(tmp_path))]) == 2
    printed = capsys.readouterr().err
    assert "account" in printed
    assert not any(secret in printed for secret in ("eve", "hush", database))


@postgresql
def test_an_account_that_may_read_views_alone_is_enough(
    kind: str, url: str, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = [
        f"CREATE VIEW {name}_ AS SELECT * FROM {name}" for name in ("stays", "patients")
    ]
    role = f"reader_{sa.make_url(url).database}"
    account = (
        f"CREATE ROLE {role} LOGIN PASSWORD 'hush'",
        f"GRANT SELECT ON stays_, patients_ TO {role}",
    )
    fill(url, kind, (*views, *account))
    reader = sa.make_url(url).set(username=role, password="hush")
    monkeypatch.setenv("PAS_URL", reader.render_as_string(hide_password=False))
    changes = ("FROM stays", "FROM stays_"), ("FROM patients", "FROM patients_")
    assert unhurried(check(*changes, (", may_write: true", ""))) == []


HIDES = (
    "ALTER TABLE stays ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY few ON stays USING (stay_id = '1')",
)


@postgresql
@pytest.mark.parametrize(
    ("statements", "rows", "is_hidden"),
    [
        (HIDES, "stays", True),
        # None is shown, so that the plan names no table.
        ((HIDES[0],), "stays", True),
        ((*HIDES, "ALTER ROLE {0} BYPASSRLS"), "stays", False),
        (HIDES, "seen", False),
        ((*HIDES, "ALTER VIEW seen SET (security_invoker = true)"), "seen", True),
        ((*HIDES, "ALTER VIEW seen OWNER TO {0}"), "seen", True),
        (("ALTER TABLE patients ENABLE ROW LEVEL SECURITY",), "stays", True),
        ((), "stays", False),
    ],
)
def test_row_level_security_is_an_error(
    statements: tuple[str, ...],
    rows: str,
    is_hidden: bool,
    kind: str,
    url: str,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    role = f"reader_{sa.make_url(url).database}"
    account = (
        f"CREATE ROLE {role} LOGIN PASSWORD 'hush'",
        "CREATE VIEW seen AS SELECT * FROM stays",
        f"GRANT SELECT ON stays, patients, seen TO {role}",
    )
    fill(url, kind, (*account, *(each.format(role) for each in statements)))
    reader = sa.make_url(url).set(username=role, password="hush")
    monkeypatch.setenv("PAS_URL", reader.render_as_string(hide_password=False))
    found = check(("FROM stays", f"FROM {rows}"))
    hidden = [o for o in found if "security" in o["text"] and o["severity"] == "error"]
    assert bool(hidden) is is_hidden


def test_each_table_of_several_is_checked(kind: str, url: str, check: Check) -> None:
    fill(url, kind, ("CREATE TABLE more AS SELECT * FROM stays",))
    fields = MAPPING.partition("  fields:")[2].partition("  search:")[0]
    entry = "    - prefix: {0}-\n      rows: SELECT * FROM {1}\n      fields:{2}"
    entries = "".join(
        entry.format(prefix, table, fields.replace("\n", "\n    ").rstrip(" "))
        for prefix, table in (("a", "stays"), ("b", "more"))
    )
    own = f"  rows: SELECT * FROM stays\n  fields:{fields}"
    found = unhurried(check((own, f"  sources:\n{entries}")))
    wrong = [one for one in found if one["severity"] == "warning"]
    assert {one["part"] for one in wrong} == {"b"}, wrong
    assert {one["source"] for one in wrong} == {
        f"more.{column}"
        for column in ("stay_id", "patient_id", "began", "visit", "unit", "changed")
    }


@pytest.fixture
def read(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return what changes the mapping file and returns the lines that people read."""
    monkeypatch.chdir(tmp_path)

    def lines(*options: str, changes: Sequence[tuple[str, str]] = ()) -> list[str]:
        file = written(tmp_path, *changes)
        main(["mapping", "check", "--live", *options, file.name])
        return capsys.readouterr().out.splitlines()

    return lines


@sqlite
def test_people_read_two_lines_a_finding_and_how_many_there_are(
    kind: str, url: str, read: Read
) -> None:
    codes = ("UPDATE stays SET state = 'Z' || stay_id WHERE stay_id < 20",)
    fill(url, kind, codes)
    lines = read()
    assert lines[0].startswith("hospital.yaml:10:3: Encounter.status ← stays.state: ")
    assert lines[1].startswith("    ")
    assert [line for line in lines if "'Z" in line] == lines[:2]
    assert lines[-1] == "hospital.yaml: 1 error"
    assert max(map(len, lines)) <= WIDTH


@sqlite
def test_notes_of_one_kind_are_one_line(kind: str, url: str, read: Read) -> None:
    few = ("DROP INDEX stays_state", "DROP INDEX stays_kind", "DROP INDEX patients_sex")
    fill(url, kind, few)
    (note,) = [line for line in read() if ": note: " in line and "index" in line]
    assert "3 fields" in note
    assert "Encounter.status, Encounter.class, Patient.gender" in note
    verbose = [line for line in read("--verbose") if ": note: " in line]
    assert sum("index" in line for line in verbose) == 3


@sqlite
def test_errors_come_first_and_an_index_is_proposed_once(
    kind: str, url: str, check: Check, read: Read
) -> None:
    dropped = ("stays_began", "stays_changed", "patients_changed", "patients_born")
    faulty = "UPDATE patients SET sex = 'Z' WHERE patient_id = 1"
    fill(url, kind, [*(f"DROP INDEX {name}" for name in dropped), faulty])
    found = check()
    order = ["error", "warning", "note"]

    def rank(one: dict[str, str]) -> tuple[int, bool]:
        return order.index(one["severity"]), one["remedy"].startswith("CREATE INDEX")

    assert [rank(one) for one in found] == sorted(map(rank, found))
    indexes = [one["remedy"] for one in found if "CREATE INDEX" in one["remedy"]]
    assert len(indexes) == len(set(indexes)) == len(dropped)
    # A parameter and a sort that lack the same index are one finding.
    (began,) = [one["text"] for one in found if one["source"] == "stays.began"]
    assert "'date', '_sort=date'" in began
    printed = "\n".join(read())
    assert all(printed.count(index) == 1 for index in indexes)


def measured(file: Path, capsys: Capture) -> dict[str, dict[str, Any]]:
    main(["mapping", "check", "--live", "--json", str(file)])
    costs = json.loads(capsys.readouterr().out)["measurements"]
    return {cost["search"]: cost for cost in costs}


def test_each_parameter_and_sort_and_count_is_measured(
    kind: str, url: str, tmp_path: Path, capsys: Capture
) -> None:
    # With statistics PostgreSQL would read so small a table whole, whatever is looked
    # for: the test server makes none by itself.
    fill(url, kind, ("DROP INDEX stays_patient",))
    costs = measured(written(tmp_path), capsys)
    stay = ("_id", "patient", "date", "identifier", "status", "class")
    assert {f"Encounter?{name}" for name in stay} < {*costs}
    assert {f"Encounter?{name}, count" for name in stay} < {*costs}
    assert {"Encounter?_sort=date", "Patient?_sort=_lastUpdated"} < {*costs}
    patient = costs["Encounter?patient"]
    assert patient["rows"] == costs["Encounter?patient, count"]["rows"] == 1
    # Every search leaves hidden stays out: a count need not read the table for them.
    keys = "(patient_id, began, stay_id, state);"
    if kind == "postgresql":
        keys = "(patient_id, began, stay_id) INCLUDE (state);"
    assert patient["indexes"][0].endswith(keys)
    assert costs["Encounter?_id"]["indexes"] == []
    if kind == "sqlite":
        assert {cost["read"] for cost in costs.values()} == {None}
    else:
        # All stays, for want of an index, and the one that is found by its key.
        assert costs["Encounter?patient, count"]["read"] >= 120
        assert costs["Encounter?_id, count"]["read"] <= 3
        run(url, patient["indexes"][0])
        costs = measured(written(tmp_path), capsys)
        assert costs["Encounter?patient, count"]["read"] <= 3
        assert costs["Encounter?patient"]["indexes"] == []


def test_suggested_indexes_of_the_demo_make_their_findings_disappear(
    kind: str, url: str, capsys: Capture
) -> None:
    demo.fill(url, stays=demo.LEAST_STAYS)
    engine = writing(url)
    with engine.connect() as connection:
        names = [
            (index["name"], table)
            for table in ("sejour", "patient")
            for index in sa.inspect(connection).get_indexes(table)
            if not index["unique"]
        ]
    engine.dispose()
    on = " ON {1}" if kind in SERVERS else ""
    run(url, *(f"DROP INDEX {{0}}{on}".format(*name) for name in names))
    lacking = [one for one in checked(DEMO, capsys) if is_index(one)]
    assert {"sejour.patient_id", "sejour.date_entree"} < {o["source"] for o in lacking}
    # MariaDB may say only once a table has its indexes of which table a column is; an index
    # that is suggested twice cannot be made.
    while lacking:
        run(url, *(one["remedy"] for one in lacking))
        lacking = [one for one in checked(DEMO, capsys) if is_index(one)]


def is_index(one: dict[str, str]) -> bool:
    return one["remedy"].startswith("CREATE INDEX")


NUMBERS = (
    "CREATE TABLE numbers (of_type VARCHAR(9), of_id BIGINT, tag VARCHAR(9), value VARCHAR(9))",
    "INSERT INTO numbers SELECT 'stay', s.stay_id, 'VN' || p.patient_id, 'V' || s.stay_id"
    " FROM stays s CROSS JOIN patients p WHERE p.patient_id <= 20",
)
NUMBER = (
    "SELECT s.*, n.value FROM stays s LEFT JOIN numbers n"
    " ON n.of_type = 'stay' AND n.of_id = s.stay_id AND n.tag = 'VN1'"
)


@postgresql
@pytest.mark.parametrize(
    ("columns", "misses"), [("of_type, of_id, tag", False), ("value, of_id", True)]
)
def test_a_column_of_a_join_may_stand_behind_one_that_a_constant_fixes(
    columns: str, misses: bool, kind: str, url: str, check: Check
) -> None:
    fill(url, kind, (*NUMBERS, f"CREATE INDEX numbers_ ON numbers ({columns})"))
    changes = ("SELECT * FROM stays", NUMBER), ("{from: visit}", "{from: value}")
    joined = [one for one in check(*changes) if "numbers.of_id" in one["source"]]
    assert bool(joined) is misses


@sqlite
def test_a_page_has_findings_and_costs_and_nobody(
    kind: str, url: str, tmp_path: Path, capsys: Capture
) -> None:
    codes = "UPDATE stays SET state = '<b>' WHERE stay_id < 3"
    fill(url, kind, (codes, "DROP INDEX stays_visit"))
    out = tmp_path / "pages" / "check.html"
    file = written(tmp_path)
    assert main(["mapping", "check", "--live", "--html", str(out), str(file)]) == 1
    page = out.read_text("utf-8")
    assert "codes.states" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "Encounter?patient" in page
    assert "CREATE INDEX stays_visit" in page
    assert "jungqvist" not in page.lower()
    assert not re.search(r"<script|https?://|src=", page)
    capsys.readouterr()


def test_a_check_without_time_names_what_it_leaves_out_and_the_indexes(
    kind: str, url: str, tmp_path: Path
) -> None:
    fill(url, kind, ("DROP INDEX stays_began", "DROP INDEX stays_visit"))
    results = list(check_live(written(tmp_path), seconds=0))
    findings = [result for result in results if isinstance(result, Finding)]
    assert len(results) == len(findings), "nothing is measured"
    (left_out,) = [f for f in findings if f.line == 0]
    assert left_out.severity == "warning"
    for subject in ("account", "Encounter: rows", "Patient: ids"):
        assert subject in left_out.text
    suggested = {f.source for f in findings if f.remedy.startswith("CREATE INDEX")}
    assert {"stays.began", "stays.visit"} <= suggested
    notes = [f for f in findings if "not examined: " in f.text and f.line]
    assert {f.element for f in notes} == {"Encounter", "Patient"}
    assert all("cost of '_id'" in note.text for note in notes)


_KEY = {"sqlite": ("BLOB", "x'{}'"), "postgresql": ("BYTEA", "decode('{}', 'hex')")}


@pytest.mark.parametrize("stored", ["uuid", "uuid-swapped"])
def test_bytes_of_a_uuid_in_the_other_order_are_found(
    kind: str, url: str, check: Check, stored: str
) -> None:
    type_, literal = _KEY.get(kind, ("BINARY(16)", "x'{}'"))
    changes = [f"ALTER TABLE stays ADD COLUMN key_ {type_}"]
    for number in range(1, 121):
        (key,) = bytes_of(str(uuid5(UUID(int=0), str(number))), BinaryForm(stored))
        value = literal.format(key.hex())
        changes.append(f"UPDATE stays SET key_ = {value} WHERE stay_id = {number}")
    fill(url, kind, changes)
    for form in ("uuid", "uuid-swapped"):
        found = check(("{from: visit}", f"{{from: key_, form: {form}}}"))
        remedies = {one["remedy"] for one in found if "form" in one["remedy"]}
        assert remedies == ({f"form: {stored}"} if form != stored else set())
    patients = "{from: stay_id}", "{from: key_}"
    assert not [one for one in check(patients) if one["severity"] == "error"]
