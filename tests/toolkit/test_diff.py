"""`mapping diff`: the stays that a changed mapping shows otherwise."""

import re

import pytest

from tests.hospital_http import Api, http_mapping_text
from tests.toolkit.live_hospital import MAPPING, run
from toolkit.contract.hospital import EDGES


def changed(*changes, text=MAPPING):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture
def diff(tmp_path, mapping):
    """Return what compares the texts of two mapping files."""

    def run(old, new, *options):
        files = tmp_path / "old.yaml", tmp_path / "new.yaml"
        for file, text in zip(files, (old, new), strict=True):
            file.write_text(text, "utf-8")
        return mapping("diff", *files, "--live", *options)

    return run


def of_stays(printed):
    """Return what `--ids` prints of each stay."""
    return dict(line.split("\t") for line in printed.out.splitlines() if "\t" in line)


ROWS = """SELECT stay_id,
      CASE stay_id WHEN 10 THEN 11 ELSE patient_id END AS patient_id, state, kind, began,
      CASE stay_id WHEN 12 THEN NULL ELSE ended END AS ended, visit, unit, changed
    FROM stays WHERE stay_id NOT IN (5, 20)"""


def test_stays_are_counted_by_event_and_code(sqlite, diff):
    same = diff(MAPPING, MAPPING)
    assert (same.status, same.out.splitlines()[-1]) == (0, "0 stays differ")

    run(sqlite, "UPDATE stays SET state = 'A' WHERE stay_id IN (7, 8, 9)")
    served = ("S: finished, A: hidden", "S: in-progress, A: finished")
    status, out, err = diff(MAPPING, changed(served))
    assert (status, err) == (1, "")
    for text in (
        "old.yaml: 116 stays, 0 invalid rows",
        "new.yaml: 120 stays, 0 invalid rows",
        "  status finished → in-progress: 104\n    by state: S 104",
        "  appear: 4\n    by state: A 4",
    ):
        assert text in out
    # An id is printed on request only.
    assert not re.search(r"\b80\b", out)


def test_each_stay_has_its_event(sqlite, diff):
    run(
        sqlite,
        "UPDATE stays SET state = 'T' WHERE stay_id IN (1, 2)",
        "UPDATE stays SET state = 'B' WHERE stay_id = 3",
    )
    printed = diff(
        changed(("E: in-progress", "B: planned, E: in-progress")),
        changed(
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


def test_constants_and_offsets_that_clients_see_are_differences(sqlite, diff):
    ward = changed(("hospital.test/unit", "hospital.test/ward"))
    status, out, _ = diff(MAPPING, ward)
    assert (status, "0 stays differ" in out) == (1, True)
    url = "https://fhir.hospital.test"
    assert f"constants.functional_unit_extension: {url}/unit → {url}/ward, " in out
    # The columns are read in their own zone, and written in the file's.
    own = changed(("may_write: true}", "may_write: true, time_zone: Europe/Paris}"))
    zone = ("\ntime_zone: Europe/Paris", "\ntime_zone: America/Cayenne")
    out = diff(own, changed(zone, text=own)).out
    (stays,) = re.findall(r"old.yaml: (\d+) stays", out)
    for text in (f"{stays} stays differ", "  period.start: ", "  period.end: "):
        assert text in out


def test_a_text_is_quoted_where_a_code_table_names_it_alone(sqlite, diff):
    # A column of names in place of one of codes: none is printed.
    otherwise = ("otherwise: UNK", "otherwise: AMB")
    select = "SELECT s.*, family FROM stays s JOIN patients USING (patient_id)"
    names = changed(("SELECT * FROM stays", select), ("from: kind", "from: family"))
    status, out, _ = diff(names, changed(otherwise, text=names), "--ids")
    assert (status, "Ljungqvist" in out) == (1, False)
    assert "by family: codes without an entry " in out
    # What the table of the element names is a code.
    named = ("{table: {HC: IMP}", "{table: {Ljungqvist7: IMP}")
    out = diff(names, changed(otherwise, named, text=names)).out
    assert "by family: Ljungqvist7 1\n" in out


def test_stays_of_several_pages_are_compared_in_any_order(sqlite, diff):
    numbers = "SELECT 121 UNION ALL SELECT i + 1 FROM n WHERE i < 3200"
    run(
        sqlite,
        f"INSERT INTO stays (stay_id, patient_id, state) WITH RECURSIVE n(i) AS ({numbers})"
        " SELECT i, 1, 'S' FROM n",
    )

    def where(condition, id):
        select = f"SELECT {id} AS id, s.* FROM stays s WHERE {condition}"
        return changed(
            ("SELECT * FROM stays", select), ("{from: stay_id}", "{from: id}")
        )

    # Ids of another type are the same ids.
    printed = diff(
        where("stay_id BETWEEN 200 AND 3000", "stay_id"),
        where("stay_id > 1500", "CAST(stay_id AS TEXT)"),
        "--ids",
    )
    assert of_stays(printed) == {
        **{str(n): "disappear" for n in range(200, 1501)},
        **{str(n): "appear" for n in range(3001, 3201)},
    }


def test_sections_are_compared_by_the_prefix_of_their_ids(sqlite, diff):
    head, _, rest = MAPPING.partition("encounter:\n")
    head = head.replace("  sexes: {table: {F: female, M: male}}\n", "")
    fields = rest[rest.index("  fields:") : rest.index("  search:")]
    fields = "".join(f"    {line}\n" for line in fields.splitlines())
    search = rest[rest.index("  search:") : rest.index("patient:\n")]

    def sections(conditions):
        parts = "".join(
            f"    - prefix: {prefix}\n      rows: SELECT * FROM stays WHERE {where}\n{fields}"
            for prefix, where in conditions.items()
        )
        return f"{head}encounter:\n{search}  sources:\n{parts}"

    # A section that is new, one that is gone, and one that is changed.
    old = sections({"a-": "stay_id < 20", "b-": "stay_id > 100"})
    new = sections({"b-": "stay_id > 110", "c-": "stay_id < 4"})
    printed = diff(old, new, "--ids")
    assert of_stays(printed) == {
        **{f"a-{n}": "disappear" for n in range(1, 20)},
        **{f"b-{n}": "disappear" for n in range(101, 111)},
        **{f"c-{n}": "appear" for n in range(1, 4)},
    }
    columns = {*re.findall(r"by (\w\.\w+): ", printed.out)}
    assert columns == {"a.state", "b.state", "c.state"}


def test_stays_of_an_api_are_compared(diff, serve):
    serve(Api(EDGES))
    text = http_mapping_text(EDGES, source=", timeout_seconds: 60")
    finished = ("'C': 'finished'", "'C': 'in-progress'")
    status, out, err = diff(text, changed(finished, text=text))
    assert (status, err) == (1, "")
    number = sum(stay.state == "C" for stay in EDGES.stays)
    assert f"  status finished → in-progress: {number}\n    by etat: C {number}" in out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from: stay_id", "from: no_such_column"),
        ("FROM stays", "FROM no_such_table"),
        ("codes: states", "codes: no_such_codes"),
        ("env: PAS_URL", "env: NO_SUCH_VARIABLE"),
    ],
)
def test_files_that_do_not_fit_are_refused(old, new, sqlite, diff):
    printed = diff(MAPPING, changed((old, new)))
    assert (printed.status, printed.out) == (2, "")
    assert "new.yaml:" in printed.err
    assert new.rpartition(" ")[2] in printed.err
