"""Merged patients whose stays keep the old ids: chains, branches and circles, on each database."""

import random
from collections.abc import Mapping

import pytest

from adapters.contract import EncounterRecord, SourceDataError
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

SIZE = 60
Merged = Mapping[int, int]


def _forest(seed):
    """Return who was merged into whom: half of them into anybody, themselves included."""
    chance = random.Random(seed)
    people = range(1, SIZE + 1)
    return {id: chance.choice(people) for id in people if chance.random() < 1 / 2}


def _survivor(merged, id):
    """Return the last survivor, the patient itself where merges lead in a circle."""
    passed = [id]
    while (into := merged.get(passed[-1])) is not None:
        if into in passed:
            return id
        passed.append(into)
    return passed[-1]


def _family(merged, id):
    """Return everybody whom merges, in either direction, make one with a patient."""
    family = {id}
    while True:
        more = {into for one, into in merged.items() if one in family}
        more |= {one for one, into in merged.items() if into in family}
        if more <= family:
            return family
        family |= more


def _tables(merged, survivor="INTEGER"):
    ids = range(1, SIZE + 1)
    return table(
        "people",
        f"id INTEGER PRIMARY KEY, merged {survivor}",
        *(f"{id}, {merged.get(id, 0)}" for id in ids),
    ) + table(
        "stays",
        "id INTEGER PRIMARY KEY, person VARCHAR(9), began VARCHAR(20)",
        *(
            f"{id + SIZE * n}, '{id}', '2024-01-{n + 1:02} 10:00:00'"
            for id in ids
            for n in range(id % 3)
        ),
    )


def test_any_id_of_a_chain_finds_the_stays_of_the_chain(opened):
    # The first has circles, too.
    for seed, survivor in ((0, "INTEGER"), (3, "VARCHAR(9)")):
        merged = _forest(seed)
        last = {id: _survivor(merged, id) for id in merged if id % 3}
        assert any(into not in (id, merged[id]) for id, into in last.items())
        assert any(id == into for id, into in last.items()) is (seed == 0)
        adapter = opened(FOLLOWED, _tables(merged, survivor))
        for id in range(1, SIZE + 1):
            expected = {
                str(one + SIZE * n): str(_survivor(merged, one))
                for one in _family(merged, id)
                for n in range(one % 3)
            }
            query = ask(patient(str(id)), count=SIZE * 3)
            rows = adapter.search(query).rows
            shown = {r.id: r.patient_id for r in rows if isinstance(r, EncounterRecord)}
            assert shown == expected
            assert adapter.count(query) == len(expected)
    for stay, survivor in expected.items():
        assert adapter.read(STAY, stay).patient_id == survivor


def test_pages_of_a_chain_follow_each_other(opened):
    merged = {7: 8, 8: 10, 11: 10}
    adapter = opened(FOLLOWED, _tables(merged))
    query = ask(patient("7"), dates("ge2024-01-01"), count=2)
    walked = [id for page in walk(adapter, query) for id in ids_of(page)]
    expected = sum(id % 3 for id in _family(merged, 7))
    assert len(walked) == len(set(walked)) == expected


def test_stays_that_have_moved_are_found_by_every_earlier_id(opened):
    adapter = opened(MOVED, _tables({50: 51, 51: 53, 53: 59}))
    at_the_last = ids_of(adapter.search(ask(patient("59"), count=SIZE)))
    assert at_the_last == ["119", "59"]
    for id in ("50", "51", "53"):
        found = ids_of(adapter.search(ask(patient(id), count=SIZE)))
        assert {*at_the_last} <= {*found}


@on("sqlite")
def test_no_list_of_values_is_longer_than_every_database_takes(opened):
    """Oracle takes 1,000 (ORA-01795); more merges of a patient are an error."""
    for number in (699, MOST, MOST + 1):
        more = range(SIZE + 1, number + 1)
        statements = _tables(dict.fromkeys(range(2, SIZE + 1), 1))
        merged = ", ".join(f"({id}, 1)" for id in more)
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
