"""`encounters mapping check --live` on databases: each planted defect is found."""

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import pytest
import sqlalchemy as sa

from adapters.mapping.binary import BinaryForm, bytes_of
from tests.sets import SERVERS
from tests.toolkit.live_hospital import (
    MAPPING,
    checked,
    defects,
    findings_of,
    run,
    written,
)
from toolkit.check import check_live
from toolkit.findings import WIDTH, Finding

DEFECTS = defects("sql")
PARTS = 6
"""How many tests try all defects in a database: none takes minutes."""
SOON = f"{datetime.now(UTC) + timedelta(minutes=50):%Y-%m-%d %H:%M:%S}"
"""Ahead of the clock by less than the zone is from UTC."""


def unhurried(findings):
    """Return findings but for slow searches: the machine may be busy."""
    return [one for one in findings if " slow: " not in one["text"]]


def test_nothing_is_wrong_with_a_sound_hospital(url, check, tmp_path, mapping):
    assert {one["severity"] for one in check()} <= {"note"}
    # What is left is what the hospital's own screens have to confirm.
    assert mapping("check", "--live", tmp_path / "hospital.yaml").status == 1


@pytest.mark.parametrize("kind", SERVERS)
def test_tables_of_another_database_are_examined(
    kind, url, new_url, check, monkeypatch
):
    name = sa.make_url(url).database
    # A table of the same name is in the database of the address.
    run(here := new_url(kind), "CREATE TABLE stays (stay_id BIGINT)")
    monkeypatch.setenv("PAS_URL", here)
    tables = [(f"FROM {t}", f"FROM {name}.{t}") for t in ("stays", "patients")]
    assert unhurried(check(*tables)) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_a_defect_is_found(kind, part, hospital, tmp_path, capsys):
    missed = []
    for name, defect in [*DEFECTS.items()][part::PARTS]:
        if kind not in defect.get("databases", (kind,)):
            continue
        url = hospital(kind)
        run(url, *(sql.replace("SOON", SOON) for sql in defect.get("sql", ())))
        file = written(tmp_path, *defect.get("changes", ()))
        findings = findings_of(defect, file, checked(file, capsys))
        if not findings:
            missed.append(name)
        elif findings[0]["remedy"].startswith("CREATE INDEX"):
            run(url, findings[0]["remedy"])
            if findings[0] in checked(file, capsys):
                missed.append(f"{name}: the index does not help")
    assert missed == []


def test_what_only_resembles_a_defect_is_no_finding(kind, hospital, check):
    for name, right in defects("right").items():
        if kind in right.get("databases", (kind,)):
            run(hospital(kind), *right["sql"])
            findings = check(*right.get("changes", ()))
            assert {one["severity"] for one in unhurried(findings)} <= {"note"}, name
            assert not any("search by" in one["text"] for one in findings), name


@pytest.mark.parametrize(
    "url",
    ["sqlite:////none/such.sqlite", "postgresql://eve:hush@127.0.0.1:9/secret_pas", ""],
)
def test_a_source_that_is_away_cannot_be_checked(url, tmp_path, mapping, monkeypatch):
    monkeypatch.delenv("PAS_URL", raising=False)
    if url:
        monkeypatch.setenv("PAS_URL", url)
    status, out, err = mapping("check", "--live", written(tmp_path))
    assert (status, out) == (2, "")
    assert ("PAS_URL" in err) is (not url)
    assert err.count("\n") == 1
    assert not any(word in err for word in ("eve", "hush", "secret_pas"))


def test_an_account_that_is_refused_cannot_check(
    mariadb_server, tmp_path, mapping, monkeypatch
):
    database = mariadb_server.new_database().rpartition("/")[2].partition("?")[0]
    monkeypatch.setenv("PAS_URL", mariadb_server.url(database, account="eve:hush"))
    printed = mapping("check", "--live", written(tmp_path))
    assert printed.status == 2
    assert "account" in printed.err
    assert not any(secret in printed.err for secret in ("eve", "hush", database))


@pytest.fixture
def reader(hospital, monkeypatch):
    """Return what makes an account of PostgreSQL that may read some tables, PAS_URL."""
    url = hospital("postgresql")
    role = f"reader_{sa.make_url(url).database}"
    run(url, "CREATE VIEW seen AS SELECT * FROM stays")

    def grant(tables, *statements):
        run(
            url,
            f"CREATE ROLE {role} LOGIN PASSWORD 'hush'",
            *(statement.format(role) for statement in statements),
            f"GRANT SELECT ON {tables} TO {role}",
        )
        account = sa.make_url(url).set(username=role, password="hush")
        monkeypatch.setenv("PAS_URL", account.render_as_string(hide_password=False))

    return grant


def test_an_account_that_may_read_views_alone_is_enough(reader, check):
    reader("seen, people", "CREATE VIEW people AS SELECT * FROM patients")
    changes = ("FROM stays", "FROM seen"), ("FROM patients", "FROM people")
    assert unhurried(check(*changes, (", may_write: true", ""))) == []


ENABLED = "ALTER TABLE stays ENABLE ROW LEVEL SECURITY"
POLICY = "CREATE POLICY few ON stays USING (stay_id = '1')"


@pytest.mark.parametrize(
    ("statements", "rows", "is_hidden"),
    [
        ((ENABLED, POLICY), "stays", True),
        # None is shown, so that the plan names no table.
        ((ENABLED,), "stays", True),
        ((ENABLED, POLICY, "ALTER ROLE {0} BYPASSRLS"), "stays", False),
        ((ENABLED, POLICY), "seen", False),
        ((ENABLED, POLICY, "ALTER VIEW seen SET (security_invoker = true)"), "seen", True),
        ((ENABLED, POLICY, "ALTER VIEW seen OWNER TO {0}"), "seen", True),
    ],
)  # fmt: skip
def test_row_level_security_is_an_error(statements, rows, is_hidden, reader, check):
    reader("stays, patients, seen", *statements)
    findings = check(("FROM stays", f"FROM {rows}"))
    errors = [one["text"] for one in findings if one["severity"] == "error"]
    assert any("security" in text for text in errors) is is_hidden


def test_each_table_of_several_is_checked(sqlite, check):
    run(sqlite, "CREATE TABLE more AS SELECT * FROM stays")
    fields = MAPPING.partition("  fields:")[2].partition("  search:")[0]
    entry = "    - prefix: {0}-\n      rows: SELECT * FROM {1}\n      fields:{2}"
    entries = "".join(
        entry.format(prefix, table, fields.replace("\n", "\n    ").rstrip(" "))
        for prefix, table in (("a", "stays"), ("b", "more"))
    )
    own = f"  rows: SELECT * FROM stays\n  fields:{fields}"
    findings = unhurried(check((own, f"  sources:\n{entries}")))
    wrong = [one for one in findings if one["severity"] == "warning"]
    assert {one["part"] for one in wrong} == {"b"}, wrong
    assert {one["source"] for one in wrong} == {
        f"more.{column}"
        for column in ("stay_id", "patient_id", "began", "visit", "unit", "changed")
    }


def test_people_read_errors_first_each_index_once_and_notes_of_one_kind_as_one_line(
    sqlite, check, mapping, tmp_path, monkeypatch
):
    needed = ("stays_began", "stays_changed", "patients_changed", "patients_born")
    useful = ("stays_state", "stays_kind", "patients_sex")
    run(
        sqlite,
        "UPDATE stays SET state = 'Z' || stay_id WHERE stay_id < 20",
        *(f"DROP INDEX {name}" for name in needed + useful),
    )
    findings = check()
    order = ["error", "warning", "note"]
    ranks = [
        (order.index(one["severity"]), one["remedy"].startswith("CREATE INDEX"))
        for one in findings
    ]
    assert ranks == sorted(ranks)
    indexes = [
        one["remedy"]
        for one in findings
        if "CREATE INDEX" in one["remedy"] and one["severity"] == "warning"
    ]
    assert len(indexes) == len(set(indexes)) == len(needed)
    # A parameter and a sort that lack the same index are one finding.
    (began,) = [one["text"] for one in findings if one["source"] == "stays.began"]
    assert "'date', '_sort=date'" in began

    monkeypatch.chdir(tmp_path)
    printed = mapping("check", "--live", "hospital.yaml").out
    assert all(printed.count(index) == 1 for index in indexes)
    lines = printed.splitlines()
    assert lines[0].startswith("hospital.yaml:10:3: Encounter.status ← stays.state: ")
    assert lines[1].startswith("    ")
    assert [line for line in lines if "'Z" in line] == lines[:2]
    assert lines[-1] == "hospital.yaml: 1 error, 4 warnings, 3 notes"
    assert max(map(len, lines)) <= WIDTH
    (note,) = [line for line in lines if ": note: " in line and "index" in line]
    assert "3 fields" in note
    assert "Encounter.status, Encounter.class, Patient.gender" in note
    verbose = mapping("check", "--live", "--verbose", "hospital.yaml").out.splitlines()
    assert sum(": note: " in line and "index" in line for line in verbose) == 3


def test_each_parameter_and_sort_and_count_is_measured(kind, url, tmp_path, mapping):
    # With statistics PostgreSQL would read so small a table whole, whatever is looked
    # for: the test server makes none by itself.
    run(url, "DROP INDEX stays_patient")

    def measured():
        document = mapping("check", "--live", "--json", written(tmp_path)).document
        return {cost["search"]: cost for cost in document["measurements"]}

    costs = measured()
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
        costs = measured()
        assert costs["Encounter?patient, count"]["read"] <= 3
        assert costs["Encounter?patient"]["indexes"] == []


def test_a_page_has_findings_and_costs_and_nobody(sqlite, tmp_path, mapping):
    run(
        sqlite,
        "UPDATE stays SET state = '<b>' WHERE stay_id < 3",
        "DROP INDEX stays_visit",
    )
    out = tmp_path / "pages" / "check.html"
    assert mapping("check", "--live", "--html", out, written(tmp_path)).status == 1
    page = out.read_text("utf-8")
    for text in ("codes.states", "&lt;b&gt;", "Encounter?patient", "INDEX stays_visit"):
        assert text in page
    assert "<b>" not in page
    assert "jungqvist" not in page.lower()
    assert not re.search(r"<script|https?://|src=", page)


def test_a_check_without_time_names_what_it_leaves_out_and_the_indexes(
    sqlite, tmp_path
):
    run(sqlite, "DROP INDEX stays_began", "DROP INDEX stays_visit")
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


@pytest.mark.parametrize("stored", ["uuid", "uuid-swapped"])
def test_bytes_of_a_uuid_in_the_other_order_are_found(sqlite, check, stored):
    keys = {
        n: bytes_of(str(uuid5(UUID(int=0), str(n))), BinaryForm(stored))[0].hex()
        for n in range(1, 121)
    }
    run(
        sqlite,
        "ALTER TABLE stays ADD COLUMN key_ BLOB",
        *(f"UPDATE stays SET key_ = x'{keys[n]}' WHERE stay_id = {n}" for n in keys),
    )
    for form in ("uuid", "uuid-swapped"):
        findings = check(("{from: visit}", f"{{from: key_, form: {form}}}"))
        remedies = {one["remedy"] for one in findings if "form" in one["remedy"]}
        assert remedies == ({f"form: {stored}"} if form != stored else set())
    patients = "{from: stay_id}", "{from: key_}"
    assert not [one for one in check(patients) if one["severity"] == "error"]
