"""`mapping diff`: the stays that a changed mapping shows otherwise, on each database."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.databases import writing
from tests.hospital_http import SECRETS, Api, http_mapping_text, serving
from tests.toolkit.conftest import Mapping, NewUrl, Printed
from tests.toolkit.live_hospital import MAPPING, counted, run
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
    """Return what compares two files with such changes."""

    def run(
        old: tuple[Change, ...],
        new: tuple[Change, ...],
        *options: str,
        text: str = MAPPING,
    ) -> Printed:
        files = write("old", *old, text=text), write("new", *new, text=text)
        return mapping("diff", *files, "--live", *options)

    return run


def of_stays(printed: Printed) -> dict[str, str]:
    """Return what `--ids` prints of each stay."""
    lines = (line.split("\t") for line in printed.out.splitlines() if "\t" in line)
    return dict(lines)


ROWS = """SELECT stay_id,
      CASE stay_id WHEN 10 THEN 11 ELSE patient_id END AS patient_id, state, kind, began,
      CASE stay_id WHEN 12 THEN NULL ELSE ended END AS ended, visit, unit, changed
    FROM stays WHERE stay_id NOT IN (5, 20)"""


def test_stays_are_counted_by_event_code_and_year(url: str, diff: Diff) -> None:
    same = diff((), ())
    assert (same.status, same.out.splitlines()[-1]) == (0, "0 stays differ")

    run(url, "UPDATE stays SET state = 'A' WHERE stay_id IN (7, 8, 9)")
    status, out, err = diff((), ((SOLD, SNEW),))
    assert (status, err) == (1, "")
    by_code = counted(url, "state")
    assert f"old.yaml: {120 - by_code['A']} stays, 0 invalid rows" in out
    assert "new.yaml: 120 stays, 0 invalid rows" in out
    changed, appeared = by_code["S"], by_code["A"]
    assert (
        f"  status finished → in-progress: {changed}\n    by state: S {changed}" in out
    )
    assert f"  appear: {appeared}\n    by state: A {appeared}" in out
    run(
        url,
        "UPDATE stays SET state = 'T' WHERE stay_id IN (1, 2)",
        "UPDATE stays SET state = 'B' WHERE stay_id = 3",
    )
    printed = diff(
        (("E: in-progress", "B: planned, E: in-progress"),),
        (
            ("E: in-progress", "T: finished, E: in-progress"),
            ("rows: SELECT * FROM stays", f"rows: |\n    {ROWS}"),
        ),
        "--ids",
    )
    assert of_stays(printed) == {
        "1": "become valid",
        "2": "become valid",
        # The rule does not quote the code.
        "3": "become invalid (status: no entry in codes.states)",
        "5": "disappear",
        "20": "disappear",
        "10": "move to another patient",
        "12": "period.end",
    }
    assert "7 stays differ" in printed.out
    assert "stays, 2 invalid rows\n" in printed.out


SOLD, SNEW = "S: finished, A: hidden", "S: in-progress, A: finished"


def test_ids_are_printed_on_request_only(sqlite: str, diff: Diff) -> None:
    run(sqlite, "UPDATE stays SET stay_id = 987654, state = 'A' WHERE stay_id = 50")
    files = ((), (("S: finished, A: hidden", "S: finished, A: planned"),))
    assert "987654" not in diff(*files).out
    assert "987654" in of_stays(diff(*files, "--ids"))


def test_constants_and_offsets_that_clients_see_are_differences(
    sqlite: str, diff: Diff
) -> None:
    status, out, _ = diff((), (("hospital.test/unit", "hospital.test/ward"),))
    assert (status, "0 stays differ" in out) == (1, True)
    url = "https://fhir.hospital.test"
    assert f"constants.functional_unit_extension: {url}/unit → {url}/ward, " in out
    # The columns are read in their own zone, and written in the file's.
    kept = ("may_write: true}", "may_write: true, time_zone: Europe/Paris}")
    zone = ("\ntime_zone: Europe/Paris", "\ntime_zone: America/Cayenne")
    out = diff((kept,), (kept, zone)).out
    (stays,) = re.findall(r"old.yaml: (\d+) stays", out)
    for changed in (f"{stays} stays differ", "  period.start: ", "  period.end: "):
        assert changed in out


def test_a_text_is_quoted_where_a_code_table_names_it_alone(
    sqlite: str, diff: Diff
) -> None:
    """A column of names in place of one of codes: none is printed."""
    otherwise = ("otherwise: UNK", "otherwise: AMB")
    select = "SELECT s.*, family FROM stays s JOIN patients USING (patient_id)"
    names = (("SELECT * FROM stays", select), ("from: kind", "from: family"))
    status, out, _ = diff(names, (*names, otherwise), "--ids")
    assert (status, "Ljungqvist" in out) == (1, False)
    assert "by family: codes without an entry " in out
    # What the table of the element names is a code.
    named = ("{table: {HC: IMP}", "{table: {Ljungqvist7: IMP}")
    assert "by family: Ljungqvist7 1\n" in diff(names, (*names, named)).out


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
    printed = diff(
        (("TRUE", "n > 100 AND n < 3000"),), (("TRUE", "n > 1500"),), "--ids", text=FEW
    )
    assert of_stays(printed) == {
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
    printed = mapping("diff", old, new, "--live", "--ids")
    assert {*of_stays(printed).items()} == {
        *((f"a-{n}", "disappear") for n in range(1, 20)),
        *((f"b-{n}", "disappear") for n in range(101, 111)),
        *((f"c-{n}", "appear") for n in range(1, 4)),
    }
    columns = {*re.findall(r"by (\w\.\w+): ", printed.out)}
    assert columns == {"a.state", "b.state", "c.state"}


def test_stays_of_an_api_are_compared_in_any_order(
    diff: Diff, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = http_mapping_text(EDGES, source=", timeout_seconds: 60")
    with serving(Api(EDGES)) as url:
        for name, value in {"PAS_URL": url, **SECRETS}.items():
            monkeypatch.setenv(name, value)
        changed = ("'C': 'finished'", "'C': 'in-progress'")
        status, out, err = diff((), (changed,), text=text)
        assert (status, err) == (1, "")
        number = sum(stay.state == "C" for stay in EDGES.stays)
        assert (
            f"  status finished → in-progress: {number}\n    by etat: C {number}" in out
        )


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
    assert (printed.status, "0 stays differ" in printed.out) == (0, True)
