"""Merged patients whose stays keep the old ids: chains, branches and circles, on each database."""

import pytest

from adapters.contract import SourceDataError
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from adapters.sql.merges import MOST
from tests.adapters.emptied import HEAD, listed, on, people, stays, table
from toolkit.contract.harness import STAY, ask, dates, ids_of, patient, walk

MOVED = stays(
    "id, person, began",
    "_id, patient, date",
    "date",
    patient_id="person",
    start="began",
) + people("id, merged", replaced_by="merged, absent: ['0']")
FOLLOWED = MOVED.replace("from: person}", "from: person, merges: follow}")

MERGED = {1: 2, 2: 3, 4: 3, 5: 6, 6: 5, 7: 7, 8: 5}
"""Who was merged into whom: a chain with a branch, a circle, and one into herself."""

FAMILIES = (
    {1: 3, 2: 3, 3: 3, 4: 3},
    # Where merges lead in a circle, a patient stays who she is.
    {5: 5, 6: 6, 8: 8},
    {7: 7},
    {9: 9},
)
"""Those whose stays are found together, each with the patient that is shown."""


def _tables(merged, survivor="INTEGER"):
    ids = range(1, 10)
    return table(
        "people",
        f"id INTEGER PRIMARY KEY, merged {survivor}",
        *(f"{id}, {merged.get(id, 0)}" for id in ids),
    ) + table(
        "stays",
        "id INTEGER PRIMARY KEY, person VARCHAR(9), began VARCHAR(20)",
        *(f"{id}, '{id}', '2024-01-01 10:00:00'" for id in ids),
        *(f"{id + 10}, '{id}', '2024-01-02 10:00:00'" for id in ids),
    )


@on("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("survivor", ["INTEGER", "VARCHAR(9)"])
def test_any_id_of_a_chain_finds_the_stays_of_the_chain(opened, survivor):
    adapter = opened(FOLLOWED, _tables(MERGED, survivor))
    for family in FAMILIES:
        shown = {id: str(last) for id, last in family.items()}
        shown |= {id + 10: str(last) for id, last in family.items()}
        for id in family:
            query = ask(patient(str(id)), dates("ge2024-01-01"), count=3)
            rows = [row for page in walk(adapter, query) for row in page.rows]
            assert {int(row.id): row.patient_id for row in rows} == shown
            assert len(rows) == adapter.count(query) == len(shown)
            assert adapter.read(STAY, str(id)).patient_id == shown[id]


@on("sqlite")
def test_stays_that_have_moved_are_found_by_every_earlier_id(opened):
    adapter = opened(MOVED, _tables(MERGED))
    for id in "1234":
        found = ids_of(adapter.search(ask(patient(id))))
        assert {"13", "3"} <= {*found}


@on("sqlite")
def test_no_list_of_values_is_longer_than_every_database_takes(opened):
    """Oracle takes 1,000 (ORA-01795); more merges of a patient are an error."""
    for number in (699, MOST, MOST + 1):
        merged = ", ".join(f"({id}, 1)" for id in range(10, number + 1))
        statements = _tables(dict.fromkeys(range(2, 10), 1))
        adapter = opened(FOLLOWED, (*statements, f"INSERT INTO people VALUES {merged}"))
        if number > MOST:
            with pytest.raises(SourceDataError):
                adapter.search(ask(patient("1")))
        else:
            with listed() as lengths:
                assert adapter.search(ask(patient("1"))).rows
            assert number <= max(lengths) <= MOST


CANNOT_BE_FOLLOWED = (
    ("    replaced_by: {from: merged, absent: ['0']}\n", ""),
    ("{from: merged, absent: ['0']}", "P1"),
    ("{from: person, merges: follow}", "{value: P1, merges: follow}"),
    ("id: {from: id}\n    replaced", "id: {from: id, merges: follow}\n    replaced"),
    ("{from: merged, absent: ['0']}", "{from: merged, merges: follow}"),
)


def test_merges_that_cannot_be_followed_are_refused(tmp_path):
    text, environ = HEAD + FOLLOWED, {"PAS_URL": "sqlite://"}
    file = tmp_path / "mapping.yaml"
    file.write_text(text, "utf-8")
    followed = load_mapping(file, environ)
    file.write_text(HEAD + MOVED, "utf-8")
    assert load_mapping(file, environ).fingerprint != followed.fingerprint
    for old, new in CANNOT_BE_FOLLOWED:
        assert old in text
        file.write_text(text.replace(old, new), "utf-8")
        with pytest.raises(MappingError) as refused:
            load_mapping(file, environ)
        assert any("merges" in str(each) for each in refused.value.problems), new
