"""Columns of unlike types compared with each other, as the mapping reads them.

A stay and its patient, a patient and their numbers, may come from tables that write the
same id in two ways: a UUID and its text, a number and its text.
"""

import re
from itertools import product

import pytest

from adapters.contract import NotFoundError
from adapters.testing.asking import PATIENT, STAY, ask, ids_of, patient, token
from tests.adapters.emptied import NUMBERED, Opened

MERGED = """\
encounter:
  rows: SELECT id, person FROM stays
  fields: {id: {from: id}, patient_id: {from: person}, status: finished}
  search: [_id, patient]
patient:
  rows: SELECT id, merged FROM people
  fields:
    id: {from: id}
    replaced_by: {from: merged}
  search: [_id]
"""

UUIDS = [f"2d1c2b1e-0000-4000-8000-00000000000{end}" for end in "abc"]
LARGE = ["42", "9007199254740993", "9007199254740992"]

ODD = ("abc", "042", "-0", UUIDS[0].upper(), UUIDS[0][:-1], "9" * 19, "1.5")
"""Texts that are neither a number of 64 bits as it is written nor a UUID."""


def _types(url: str, kind: str, text: str) -> tuple[list[str], list[str]]:
    """Return the types of two columns, and three ids; skip where there is no such."""
    if kind == "UUID":
        if not url.startswith("postgresql"):
            pytest.skip("has no such type, or one that is a text to its clients")
        return ["UUID", text], UUIDS
    if kind == "BIGINT UNSIGNED":
        if not url.startswith("mysql"):
            pytest.skip("has no such type")
        return [kind, text], ["42", str(2**64 - 1), str(2**64 - 2)]
    if kind == "NUMERIC" and not url.startswith("postgresql"):
        pytest.skip("compares decimals with texts, to fifteen digits")
    return [kind, text], LARGE


@pytest.mark.parametrize("text", ["VARCHAR(40)", "CHAR(40)"])
@pytest.mark.parametrize("kind", ["UUID", "BIGINT", "BIGINT UNSIGNED", "NUMERIC"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_patient_is_found_by_a_number_whose_key_is_of_another_type(
    opened: Opened, url: str, kind: str, text: str, swapped: bool
) -> None:
    types, (one, other, third) = _types(url, kind, text)
    id_type, key_type = types[::-1] if swapped else types
    odd = [key for key in ODD if "CHAR" in key_type]
    adapter = opened(
        NUMBERED,
        (
            f"CREATE TABLE people (id {id_type})",
            f"CREATE TABLE numbers (person {key_type}, number VARCHAR(8))",
            *(f"INSERT INTO people VALUES ('{id}')" for id in (one, other, third)),
            f"INSERT INTO numbers VALUES ('{one}', 'N1'), ('{third}', 'N3')",
            *(f"INSERT INTO numbers VALUES ('{key}', 'ODD')" for key in odd),
        ),
    )
    for number, found in {"N1": [one], "N3": [third], "ODD": []}.items():
        query = ask(token("identifier", number), of=PATIENT)
        assert ids_of(adapter.search(query)) == found
        assert adapter.count(query) == len(found)
    for id in ODD:
        assert ids_of(adapter.search(ask(token("_id", id), of=PATIENT))) == []
        with pytest.raises(NotFoundError):
            adapter.read(PATIENT, id)


@pytest.mark.parametrize("text", ["VARCHAR(40)", "CHAR(40)"])
@pytest.mark.parametrize("kind", ["UUID", "BIGINT", "BIGINT UNSIGNED", "NUMERIC"])
@pytest.mark.parametrize("places", [*product((0, 1), repeat=3)][1:-1])
def test_stays_of_a_survivor_are_found_whatever_types_their_patients_have(
    opened: Opened, url: str, kind: str, text: str, places: tuple[int, int, int]
) -> None:
    types, (old, survivor, other) = _types(url, kind, text)
    person, id_, merged = (types[place] for place in places)
    odd = [key for key in ODD if "CHAR" in merged and "CHAR" in id_]
    adapter = opened(
        MERGED,
        (
            f"CREATE TABLE stays (id INTEGER, person {person})",
            f"CREATE TABLE people (id {id_}, merged {merged})",
            f"INSERT INTO stays VALUES (1, '{old}'), (2, '{survivor}'), (3, '{other}')",
            f"INSERT INTO people VALUES ('{old}', '{survivor}'), ('{survivor}', NULL)",
            *(f"INSERT INTO people VALUES ('P{n}', '{k}')" for n, k in enumerate(odd)),
        ),
    )
    asked = {(old,): "12", (survivor,): "2", (other,): "3", ("abc", old): "12"}
    asked |= {(f"P{n}",): "" for n in range(len(odd))}
    for ids, found in asked.items():
        query = ask(patient(*ids))
        assert sorted(ids_of(adapter.search(query))) == [*found], ids
        assert adapter.count(query) == len(found)
    assert adapter.read(STAY, "1").id == "1"


def test_an_index_leads_to_such_stays_and_patients(opened: Opened) -> None:
    """What is indexed is compared as it is: the other column is made to fit."""
    adapter = opened(
        MERGED,
        (
            "CREATE TABLE stays (id INTEGER, person BIGINT)",
            "CREATE TABLE people (id VARCHAR(20), merged VARCHAR(20))",
        ),
    )
    told = adapter.explain(ask(patient("1")))
    assert re.search(r"WHERE person IN \(", told), told


@pytest.mark.parametrize(
    ("id_type", "id", "key_type", "key"),
    [
        ("BIGINT", "42", "UUID", UUIDS[0]),
        ("UUID", UUIDS[0], "BIGINT", "42"),
        ("CHAR(8)", "A1", "BIGINT", "42"),
        ("CHAR(8)", "A1", "UUID", UUIDS[0]),
        ("BIGINT", "42", "CHAR(8)", "A1"),
    ],
)
def test_an_id_that_no_key_can_be_has_nothing_there(
    opened: Opened, url: str, id_type: str, id: str, key_type: str, key: str
) -> None:
    if "UUID" in (id_type, key_type) and url.startswith("sqlite"):
        pytest.skip("has no such type")
    adapter = opened(
        NUMBERED,
        (
            f"CREATE TABLE people (id {id_type})",
            f"CREATE TABLE numbers (person {key_type}, number VARCHAR(8))",
            f"INSERT INTO people VALUES ('{id}')",
            f"INSERT INTO numbers VALUES ('{key}', 'N1')",
        ),
    )
    assert getattr(adapter.read(PATIENT, id), "identifiers", None) == ()
    query = ask(token("identifier", "N1"), of=PATIENT)
    assert ids_of(adapter.search(query)) == []


MIXED = {
    "mariadb": ("COLLATE utf8mb4_unicode_ci", "COLLATE utf8mb4_general_ci"),
    "postgresql": ('COLLATE "C"', 'COLLATE "POSIX"'),
}
"""Collations that one server has in tables of different years, and will not compare."""


@pytest.mark.parametrize(
    ("url", "one", "other"),
    [(server, *pair[::way]) for server, pair in MIXED.items() for way in (1, -1)]
    + [("mariadb", "CHARACTER SET latin1", "COLLATE utf8mb4_bin")],
    indirect=["url"],
)
def test_texts_of_two_collations_compare(opened: Opened, one: str, other: str) -> None:
    adapter = opened(
        MERGED.removesuffix("  search: [_id]\n")
        + NUMBERED[NUMBERED.index("    iden") :],
        (
            f"CREATE TABLE stays (id VARCHAR(9), person VARCHAR(9) {one})",
            f"CREATE TABLE people (id VARCHAR(9) {one}, merged VARCHAR(9) {other})",
            f"CREATE TABLE numbers (person VARCHAR(9) {other}, number VARCHAR(9))",
            "INSERT INTO stays VALUES ('1', 'a'), ('2', 'A'), ('3', 'b')",
            "INSERT INTO people VALUES ('a', 'b'), ('A', NULL), ('b', NULL)",
            "INSERT INTO numbers VALUES ('a', 'N1')",
        ),
    )
    assert {*ids_of(adapter.search(ask(patient("a"))))} == {"1", "3"}
    assert ids_of(adapter.search(ask(patient("A")))) == ["2"]
    query = ask(token("identifier", "N1"), of=PATIENT)
    assert ids_of(adapter.search(query)) == ["a"]
