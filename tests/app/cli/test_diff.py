"""`mapping diff`: the stays that a changed mapping shows otherwise, on each database."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from adapters.inspection import SAMPLE
from adapters.testing.hospital import EDGES
from app.cli.diff import Side, pairs
from app.cli.stays import reading
from tests.app.cli.conftest import Mapping, NewUrl
from tests.app.cli.live_hospital import MAPPING, MONTH, counted, run
from tests.databases import writing
from tests.hospital_http import SECRETS, Api, serving
from tests.hospital_http_mapping import http_mapping_text

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return what writes a mapping file under a name, with changes."""

    def write(name: str, *changes: tuple[str, str], text: str = MAPPING) -> Path:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / f"{name}.yaml"
        file.write_text(text, "utf-8")
        return file

    return write


def counts(document: dict[str, Any], *names: str) -> Counter[Any]:
    """Return how many stays the cases of a document have, by some of their members."""
    result: Counter[Any] = Counter()
    for case in document["changes"]:
        result[tuple(case[name] for name in names)] += case["stays"]
    return result


STATUS = ("S: finished, A: hidden", "S: in-progress, A: finished")


def test_stays_are_counted_by_event_code_and_month(
    url: str, write: Write, mapping: Mapping
) -> None:
    run(url, "UPDATE stays SET state = 'A' WHERE stay_id IN (7, 8, 9)")
    printed = mapping("diff", write("old"), write("new", STATUS), "--live", "--json")
    assert (printed.status, printed.err) == (1, "")
    by_code = counted(url, "state")
    assert counts(printed.told, "event", "before", "after", "code") == {
        ("appear", "", "", "A"): by_code["A"],
        ("change", "finished", "in-progress", "S"): by_code["S"],
    }
    by_month = counted(url, MONTH, "state <> 'E'")
    assert counts(printed.told, "month") == {(m,): n for m, n in by_month.items()}
    assert {case["column"] for case in printed.told["changes"]} == {"state"}
    assert printed.told["old"]["stays"] == 120 - by_code["A"]
    assert printed.told["new"]["stays"] == 120
    assert "stays" not in printed.told


ROWS = """SELECT stay_id,
      CASE stay_id WHEN 10 THEN 11 ELSE patient_id END AS patient_id, state, kind, began,
      CASE stay_id WHEN 12 THEN NULL ELSE ended END AS ended, visit, unit, changed
    FROM stays WHERE stay_id NOT IN (5, 20)"""


def test_every_event_is_told_apart(url: str, write: Write, mapping: Mapping) -> None:
    run(
        url,
        "UPDATE stays SET state = 'T' WHERE stay_id IN (1, 2)",
        "UPDATE stays SET state = 'B' WHERE stay_id = 3",
    )
    old = write("old", ("E: in-progress", "B: planned, E: in-progress"))
    new = write(
        "new",
        ("E: in-progress", "T: finished, E: in-progress"),
        ("rows: SELECT * FROM stays", f"rows: |\n    {ROWS}"),
    )
    document = mapping("diff", old, new, "--live", "--json", "--ids").told
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


def test_ids_are_printed_on_request_only(
    sqlite: str, write: Write, mapping: Mapping
) -> None:
    run(sqlite, "UPDATE stays SET stay_id = 987654, state = 'A' WHERE stay_id = 50")
    files = (
        write("old"),
        write("new", ("S: finished, A: hidden", "S: finished, A: planned")),
    )
    assert "987654" not in mapping("diff", *files, "--live").out
    printed = mapping("diff", *files, "--live", "--ids")
    assert [line for line in printed.out.splitlines() if line.startswith("987654\t")]
    for arguments in (("--json",), ("--json", "--ids")):
        printed = mapping("diff", *files, "--live", *arguments)
        assert ("987654" in json.dumps(printed.told)) is ("--ids" in arguments)


def test_nothing_differs(url: str, write: Write, mapping: Mapping) -> None:
    printed = mapping("diff", write("old"), write("new"), "--live", "--json")
    assert printed.status == 0
    assert (printed.told["differing"], printed.told["changes"]) == (0, [])


def test_constants_that_no_row_has_are_differences(
    sqlite: str, write: Write, mapping: Mapping
) -> None:
    new = write("new", ("hospital.test/unit", "hospital.test/ward"))
    printed = mapping("diff", write("old"), new, "--live", "--json")
    assert (printed.status, printed.told["differing"]) == (1, 0)
    url = "https://fhir.hospital.test"
    assert printed.told["constants"] == {
        "functional_unit_extension": [f"{url}/unit", f"{url}/ward"]
    }


def test_another_offset_is_another_text_for_clients(
    sqlite: str, write: Write, mapping: Mapping
) -> None:
    """The columns are read in their own zone, and written in the file's."""
    kept = "may_write: true, time_zone: Europe/Paris}"
    old = write("old", ("may_write: true}", kept))
    new = write(
        "new",
        ("may_write: true}", kept),
        ("\ntime_zone: Europe/Paris", "\ntime_zone: America/Cayenne"),
    )
    document = mapping("diff", old, new, "--live", "--json").told
    elements = {case["element"] for case in document["changes"]}
    assert {"period.start", "period.end"} <= elements
    assert document["differing"] == document["old"]["stays"]


def test_texts_that_are_no_codes_are_not_quoted(
    sqlite: str, write: Write, mapping: Mapping
) -> None:
    """A column of names in place of one of codes: none is printed."""
    select = (
        "SELECT * FROM stays",
        "SELECT s.*, family FROM stays s JOIN patients USING (patient_id)",
    )
    files = [
        write(
            name,
            select,
            ("from: kind", "from: family"),
            ("HC: IMP}, otherwise: UNK", code),
        )
        for name, code in (
            ("old", "HC: IMP}, otherwise: UNK"),
            ("new", "HC: IMP}, otherwise: AMB"),
        )
    ]
    for arguments in ((), ("--json", "--ids")):
        printed = mapping("diff", *files, "--live", *arguments)
        assert printed.status == 1
        assert "Ljungqvist" not in printed.out
    assert {case["code"] for case in printed.told["changes"]} == {
        "codes without an entry"
    }


def test_a_code_is_quoted_where_any_table_of_its_column_names_it(
    sqlite: str, write: Write, mapping: Mapping
) -> None:
    """The class changes, and the status names the text that both read."""
    word = "in the ward of the north"
    run(sqlite, f"UPDATE stays SET state = '{word}' WHERE stay_id < 20")
    named = ("E: in-progress", f"'{word}': in-progress, E: in-progress")
    kind = ("from: kind", "from: state")
    files = (
        write("old", named, kind),
        write("new", named, kind, ("otherwise: UNK", "otherwise: AMB")),
    )
    printed = mapping("diff", *files, "--live", "--json")
    assert counts(printed.told, "element", "code")["class", word] == 19


# Order and memory

TYPES = {
    "sqlite": ("INTEGER", "TEXT", "TEXT COLLATE NOCASE"),
    "postgresql": ("BIGINT", "VARCHAR(20)", 'VARCHAR(20) COLLATE "C"'),
    "mariadb": ("BIGINT", "VARCHAR(20)", "VARCHAR(20) COLLATE utf8mb4_bin"),
    "mysql": ("BIGINT", "VARCHAR(20)", "VARCHAR(20) COLLATE utf8mb4_bin"),
}
SUBSETS: list[tuple[str, str, Callable[[int], tuple[bool, bool]]]] = [
    ("1 = 1", "1 = 1", lambda n: (True, True)),
    ("n % 7 <> 0", "n % 5 <> 0", lambda n: (n % 7 != 0, n % 5 != 0)),
    ("n > 2500", "n < 2700", lambda n: (n > 2500, n < 2700)),
    ("n < 1500", "n > 2000", lambda n: (n < 1500, n > 2000)),
    ("n = 0", "n = 3199", lambda n: (n == 0, n == 3199)),
    ("n < 0", "n % 2 = 0", lambda n: (False, n % 2 == 0)),
]
"""What the SELECTs of both files keep of the rows, and the same of a number."""

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


@pytest.fixture(params=[0, 1, 2], ids=["numbers", "texts", "collated"])
def many(
    request: pytest.FixtureRequest,
    kind: str,
    new_url: NewUrl,
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """Fill a table of more than three pages; return its ids by number."""
    url = new_url(kind)
    monkeypatch.setenv("PAS_URL", url)
    ids = [str(n) for n in range(3200)]
    if request.param:
        ids = [f"{'aBcZ'[n % 4]}{'-.x'[n % 3]}{n}" for n in range(3200)]
    type_ = TYPES[kind][request.param]
    run(url, f"CREATE TABLE many (id {type_} PRIMARY KEY, patient INTEGER, n INTEGER)")
    engine = writing(url)
    rows = [{"id": id, "n": n} for n, id in enumerate(ids)]
    if not request.param:
        rows = [{**row, "id": row["n"]} for row in rows]
    with engine.begin() as connection:
        statement = "INSERT INTO many VALUES (:id, :n, :n)"
        connection.execute(sa.text(statement), rows)
    engine.dispose()
    return ids


def test_stays_are_paired_in_the_order_of_any_column_one_page_at_a_time(
    many: list[str], write: Write
) -> None:
    for before, after, is_in in SUBSETS:
        old = write("old", ("TRUE", before), text=FEW)
        new = write("new", ("TRUE", after), text=FEW)
        ids: dict[tuple[bool, bool], list[str]] = {}
        with reading(old, new) as ((_, (old_stays,)), (_, (new_stays,))):
            sides = Side(old_stays), Side(new_stays)
            for one, other in pairs(*sides):
                assert all(len(side.rows) <= SAMPLE for side in sides)
                (id,) = {row.outcome.id for row in (one, other) if row}
                ids.setdefault((one is not None, other is not None), []).append(id)
        expected: dict[tuple[bool, bool], list[str]] = {}
        for at, id in enumerate(many):
            if any(is_in(at)):
                expected.setdefault(is_in(at), []).append(id)
        assert {key: sorted(each) for key, each in ids.items()} == {
            key: sorted(each) for key, each in expected.items()
        }, (before, after)


def test_ids_of_two_types_are_refused(
    sqlite: str, write: Write, mapping: Mapping
) -> None:
    new = write(
        "new",
        ("SELECT *", "SELECT CAST(stay_id AS TEXT) AS id_text, stays.*"),
        ("from: stay_id", "from: id_text"),
    )
    printed = mapping("diff", write("old"), new, "--live")
    assert (printed.status, printed.out) == (2, "")
    assert "types" in printed.err


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
    document = mapping("diff", old, new, "--live", "--json", "--ids").told
    ids = {(stay["id"], stay["changes"][0]["event"]) for stay in document["stays"]}
    assert ids == {
        *((f"a-{n}", "disappear") for n in range(1, 20)),
        *((f"b-{n}", "disappear") for n in range(101, 111)),
        *((f"c-{n}", "appear") for n in range(1, 4)),
    }
    assert {case["column"] for case in document["changes"]} == {
        "a.state",
        "b.state",
        "c.state",
    }


# HTTP sources


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    served = Api(EDGES)
    with serving(served) as url:
        for name, value in {"PAS_URL": url, **SECRETS}.items():
            monkeypatch.setenv(name, value)
        yield served


BY_ID = ("by: {date: entree,", "by: {_id: id, -_id: -id, date: entree,")
HTTP = ("'C': 'finished'", "'C': 'in-progress'")


def test_an_api_that_sorts_by_id_is_compared(
    api: Api, write: Write, mapping: Mapping
) -> None:
    text = http_mapping_text(EDGES, source=", timeout_seconds: 60")
    old, new = write("old", BY_ID, text=text), write("new", BY_ID, HTTP, text=text)
    printed = mapping("diff", old, new, "--live", "--json")
    assert (printed.status, printed.err) == (1, "")
    expected = sum(row.state == "C" for row in EDGES.stays)
    assert counts(printed.told, "before", "after", "code") == {
        ("finished", "in-progress", "C"): expected
    }


def test_an_api_that_does_not_is_refused(
    api: Api, write: Write, mapping: Mapping
) -> None:
    text = http_mapping_text(EDGES, source=", timeout_seconds: 60")
    printed = mapping(
        "diff", write("old", text=text), write("new", text=text), "--live"
    )
    assert (printed.status, printed.out) == (2, "")
    assert "order of their ids" in printed.err


# Refusals


@pytest.mark.parametrize(
    "change",
    [
        ("from: stay_id", "from: no_such_column"),
        ("FROM stays", "FROM no_such_table"),
        ("codes: states", "codes: no_such_table"),
        ("env: PAS_URL", "env: NO_SUCH_VARIABLE"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    sqlite: str, write: Write, mapping: Mapping, change: tuple[str, str]
) -> None:
    printed = mapping("diff", write("old"), write("new", change), "--live")
    assert (printed.status, printed.out) == (2, "")
    assert "new.yaml:" in printed.err
    assert change[1].rpartition(" ")[2] in printed.err
