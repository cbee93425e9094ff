"""`mapping diff`: the stays that a changed mapping shows otherwise, on each database."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.databases import writing
from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.toolkit.conftest import Mapping, NewUrl, Printed
from tests.toolkit.live_hospital import MAPPING, YEAR, counted, run
from toolkit.contract.hospital import EDGES

Change = tuple[str, str]
Write = Callable[..., Path]
Diff = Callable[..., Printed]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return what writes a mapping file under a name, with changes."""

    def write(name: str, *changes: Change, text: str = MAPPING) -> Path:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / f"{name}.yaml"
        file.write_text(text, "utf-8")
        return file

    return write


@pytest.fixture
def diff(write: Write, mapping: Mapping) -> Diff:
    """Return what compares two files with such changes, as JSON or as text."""

    def run(
        old: tuple[Change, ...],
        new: tuple[Change, ...],
        *options: str,
        text: str = MAPPING,
        json: bool = True,
    ) -> Printed:
        files = write("old", *old, text=text), write("new", *new, text=text)
        return mapping("diff", *files, "--live", *["--json"] * json, *options)

    return run


def counts(document: dict[str, Any], *names: str) -> Counter[Any]:
    """Return how many stays the cases of a document have, by some of their members."""
    result: Counter[Any] = Counter()
    for case in document["changes"]:
        result[tuple(case[name] for name in names)] += case["stays"]
    return result


ROWS = """SELECT stay_id,
      CASE stay_id WHEN 10 THEN 11 ELSE patient_id END AS patient_id, state, kind, began,
      CASE stay_id WHEN 12 THEN NULL ELSE ended END AS ended, visit, unit, changed
    FROM stays WHERE stay_id NOT IN (5, 20)"""


def test_stays_are_counted_by_event_code_and_year(
    url: str, write: Write, diff: Diff
) -> None:
    same = diff((), ())
    assert (same.status, same.document["differing"], same.document["changes"]) == (
        0,
        0,
        [],
    )

    run(url, "UPDATE stays SET state = 'A' WHERE stay_id IN (7, 8, 9)")
    printed = diff((), (("S: finished, A: hidden", "S: in-progress, A: finished"),))
    assert (printed.status, printed.err) == (1, "")
    by_code = counted(url, "state")
    assert counts(printed.document, "event", "before", "after", "code") == {
        ("appear", "", "", "A"): by_code["A"],
        ("change", "finished", "in-progress", "S"): by_code["S"],
    }
    by_year = counted(url, YEAR, "state <> 'E'")
    assert counts(printed.document, "year") == {(y,): n for y, n in by_year.items()}
    assert {case["column"] for case in printed.document["changes"]} == {"state"}
    assert printed.document["old"]["stays"] == 120 - by_code["A"]
    assert printed.document["new"]["stays"] == 120
    assert "stays" not in printed.document

    run(
        url,
        "UPDATE stays SET state = 'T' WHERE stay_id IN (1, 2)",
        "UPDATE stays SET state = 'B' WHERE stay_id = 3",
    )
    document = diff(
        (("E: in-progress", "B: planned, E: in-progress"),),
        (
            ("E: in-progress", "T: finished, E: in-progress"),
            ("rows: SELECT * FROM stays", f"rows: |\n    {ROWS}"),
        ),
        "--ids",
    ).document
    events = {
        stay["id"]: [(change["event"], change["element"]) for change in stay["changes"]]
        for stay in document["stays"]
    }
    assert events == {
        "1": [("become valid", "")],
        "2": [("become valid", "")],
        "3": [("become invalid", "status")],
        "5": [("disappear", "")],
        "20": [("disappear", "")],
        "10": [("move to another patient", "")],
        "12": [("change", "period.end")],
    }
    assert document["differing"] == 7
    assert document["old"]["invalid_rows"] == 2
    assert document["new"]["invalid_rows"] == 1
    # The rule does not quote the code.
    rules = {case["after"] for case in document["changes"]} - {""}
    assert rules == {"no entry in codes.states"}


def test_ids_are_printed_on_request_only(sqlite: str, diff: Diff) -> None:
    run(sqlite, "UPDATE stays SET stay_id = 987654, state = 'A' WHERE stay_id = 50")
    files = ((), (("S: finished, A: hidden", "S: finished, A: planned"),))
    for is_json in (False, True):
        assert "987654" not in diff(*files, json=is_json).out
        assert "987654" in diff(*files, "--ids", json=is_json).out
    lines = diff(*files, "--ids", json=False).out.splitlines()
    assert [line for line in lines if line.startswith("987654\t")]


def test_constants_and_offsets_that_clients_see_are_differences(
    sqlite: str, diff: Diff
) -> None:
    printed = diff((), (("hospital.test/unit", "hospital.test/ward"),))
    assert (printed.status, printed.document["differing"]) == (1, 0)
    url = "https://fhir.hospital.test"
    assert printed.document["constants"] == {
        "functional_unit_extension": [f"{url}/unit", f"{url}/ward"]
    }
    # The columns are read in their own zone, and written in the file's.
    kept = ("may_write: true}", "may_write: true, time_zone: Europe/Paris}")
    zone = ("\ntime_zone: Europe/Paris", "\ntime_zone: America/Cayenne")
    document = diff((kept,), (kept, zone)).document
    elements = {case["element"] for case in document["changes"]}
    assert {"period.start", "period.end"} <= elements
    assert document["differing"] == document["old"]["stays"]


def test_a_text_is_quoted_where_a_code_table_names_it_alone(
    sqlite: str, diff: Diff
) -> None:
    """A column of names in place of one of codes: none is printed."""
    otherwise = ("otherwise: UNK", "otherwise: AMB")
    select = "SELECT s.*, family FROM stays s JOIN patients USING (patient_id)"
    names = (("SELECT * FROM stays", select), ("from: kind", "from: family"))
    for is_json in (False, True):
        printed = diff(names, (*names, otherwise), "--ids", json=is_json)
        assert printed.status == 1
        assert "Ljungqvist" not in printed.out
    codes = {case["code"] for case in printed.document["changes"]}
    assert codes == {"codes without an entry"}
    # What the table of the element names is a code.
    named = ("{table: {HC: IMP}", "{table: {Ljungqvist7: IMP}")
    document = diff(names, (*names, named)).document
    assert counts(document, "element", "code") == {("class", "Ljungqvist7"): 1}


# Order

TYPES = {
    "sqlite": ("INTEGER", "TEXT", "TEXT COLLATE NOCASE"),
    "postgresql": ("BIGINT", "VARCHAR(20)", 'VARCHAR(20) COLLATE "C"'),
    "mariadb": ("BIGINT", "VARCHAR(20)", "VARCHAR(20) COLLATE utf8mb4_bin"),
    "mysql": ("BIGINT", "VARCHAR(20)", "VARCHAR(20) COLLATE utf8mb4_bin"),
}

FEW = """\
mapping: 1
name: Many
profile: full
time_zone: UTC
constants: {visit_number_system: urn:oid:1.2.3}
source: {kind: sql, url: {env: PAS_URL}, may_write: true, timeout_seconds: 60}
encounter:
  rows: SELECT id, patient FROM many WHERE TRUE
  fields: {id: {from: id}, patient_id: {from: patient}, status: finished}
  search: [_id, patient]
"""


@pytest.mark.parametrize("place", [0, 1, 2], ids=["numbers", "texts", "collated"])
def test_stays_of_several_pages_are_paired_whatever_their_order(
    kind: str,
    place: int,
    new_url: NewUrl,
    diff: Diff,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = new_url(kind)
    monkeypatch.setenv("PAS_URL", url)
    ids: list[Any] = list(range(3200))
    if place:
        ids = [f"{'aBcZ'[n % 4]}{'-.x'[n % 3]}{n}" for n in ids]
    type_ = TYPES[kind][place]
    run(url, f"CREATE TABLE many (id {type_} PRIMARY KEY, patient INTEGER, n INTEGER)")
    engine = writing(url)
    with engine.begin() as connection:
        statement = sa.text("INSERT INTO many VALUES (:id, :n, :n)")
        connection.execute(statement, [{"id": id, "n": n} for n, id in enumerate(ids)])
    engine.dispose()
    document = diff(
        (("TRUE", "n > 100 AND n < 3000"),), (("TRUE", "n > 1500"),), "--ids", text=FEW
    ).document
    events = {stay["id"]: stay["changes"][0]["event"] for stay in document["stays"]}
    assert events == {
        **{str(ids[n]): "disappear" for n in range(101, 1501)},
        **{str(ids[n]): "appear" for n in range(3000, 3200)},
    }


def test_sections_are_compared_by_the_prefix_of_their_ids(
    sqlite: str, write: Write, mapping: Mapping
) -> None:
    """A section that is new, one that is gone, and one that is changed."""
    head, _, rest = MAPPING.partition("encounter:\n")
    head = head.replace("  sexes: {table: {F: female, M: male}}\n", "")
    fields = rest[rest.index("  fields:") : rest.index("  search:")]
    fields = "".join(f"    {line}\n" for line in fields.splitlines())
    search = rest[rest.index("  search:") : rest.index("patient:\n")]

    def file(name: str, sections: dict[str, str]) -> Path:
        parts = "".join(
            f"    - prefix: {prefix}\n      rows: SELECT * FROM stays WHERE {where}\n{fields}"
            for prefix, where in sections.items()
        )
        return write(name, text=f"{head}encounter:\n{search}  sources:\n{parts}")

    old = file("old", {"a-": "stay_id < 20", "b-": "stay_id > 100"})
    new = file("new", {"b-": "stay_id > 110", "c-": "stay_id < 4"})
    document = mapping("diff", old, new, "--live", "--json", "--ids").document
    ids = {(stay["id"], stay["changes"][0]["event"]) for stay in document["stays"]}
    assert ids == {
        *((f"a-{n}", "disappear") for n in range(1, 20)),
        *((f"b-{n}", "disappear") for n in range(101, 111)),
        *((f"c-{n}", "appear") for n in range(1, 4)),
    }
    columns = {case["column"] for case in document["changes"]}
    assert columns == {"a.state", "b.state", "c.state"}


def test_stays_of_an_api_are_compared_in_any_order(
    diff: Diff, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = http_mapping_text(EDGES, source=", timeout_seconds: 60")
    with serving(Api(EDGES)) as url:
        for name, value in {"PAS_URL": url, **SECRETS}.items():
            monkeypatch.setenv(name, value)
        changed = ("'C': 'finished'", "'C': 'in-progress'")
        printed = diff((), (changed,), text=text)
        assert (printed.status, printed.err) == (1, "")
        assert counts(printed.document, "before", "after", "code") == {
            ("finished", "in-progress", "C"): sum(s.state == "C" for s in EDGES.stays)
        }


def test_files_that_do_not_fit_are_refused(sqlite: str, diff: Diff) -> None:
    for change in (
        ("from: stay_id", "from: no_such_column"),
        ("FROM stays", "FROM no_such_table"),
        ("codes: states", "codes: no_such_table"),
        ("env: PAS_URL", "env: NO_SUCH_VARIABLE"),
    ):
        printed = diff((), (change,))
        assert (printed.status, printed.out) == (2, "")
        assert "new.yaml:" in printed.err
        assert change[1].rpartition(" ")[2] in printed.err
    # Ids of another type are the same ids.
    select = ("SELECT *", "SELECT CAST(stay_id AS TEXT) AS id_text, stays.*")
    printed = diff((), (select, ("from: stay_id", "from: id_text")))
    assert (printed.status, printed.document["differing"]) == (0, 0)
