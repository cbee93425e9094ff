"""Columns that their database compares without regard to capitals are compared exactly.

So are all of MariaDB and MySQL as they are made, and in others those that say so.
"""

from contextlib import closing

import pytest

from adapters.contract import (
    Adapter,
    Criterion,
    PatientRecord,
    Sort,
    SortKey,
    StringMatch,
)
from adapters.sql.columns import Kind
from adapters.sql.database import Database
from adapters.testing.asking import PATIENT, ask, ids_of, patient, text, token, walk
from tests.adapters.emptied import Opened

CAPITALS = """\
codes:
  states: {table: {S: finished, A: hidden}}
  kinds: {table: {HC: IMP}, otherwise: UNK}
encounter:
  rows: SELECT s.id, s.person, s.state, s.kind, s.number FROM stays s
  fields:
    id: {from: id}
    patient_id: {from: person}
    status: {from: state, codes: states}
    class: {from: kind, codes: kinds}
    visit_number: {from: number}
  search: [_id, patient, identifier, status, class]
patient:
  rows: SELECT id, merged, family FROM people
  fields:
    id: {from: id}
    replaced_by: {from: merged}
    names: [{family: {from: family}}]
    identifiers:
      - {rows: "SELECT person, number FROM numbers", key: person, type: PI, value: {from: number}}
  search: [_id, family, identifier]
  sort: [_id]
"""

CITEXT = (
    "CREATE TYPE citext",
    *(
        f"CREATE FUNCTION citext{way}({takes}) RETURNS {makes} AS 'text{way}'"
        " LANGUAGE internal IMMUTABLE STRICT"
        for way, takes, makes in (
            ("in", "cstring", "citext"),
            ("out", "citext", "cstring"),
        )
    ),
    "CREATE TYPE citext (INPUT = citextin, OUTPUT = citextout, LIKE = text,"
    " COLLATABLE = true, CATEGORY = 'S')",
    "CREATE CAST (citext AS text) WITHOUT FUNCTION AS IMPLICIT",
    "CREATE CAST (text AS citext) WITHOUT FUNCTION AS ASSIGNMENT",
    "CREATE FUNCTION citext_eq(citext, citext) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT"
    " AS 'SELECT lower($1::text) = lower($2::text)'",
    "CREATE OPERATOR = (LEFTARG = citext, RIGHTARG = citext, FUNCTION = citext_eq)",
)
"""The type as its extension makes it, which not every server of the tests has."""

NOT_EXACT = (
    'CREATE COLLATION ci FROM "C"',
    "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'ci'",
)
"""A collation of which PostgreSQL says that it may take texts for the same that are not."""

TYPES = {
    "TEXT COLLATE NOCASE": ("sqlite", ()),
    "citext": ("postgresql", CITEXT),
    "TEXT COLLATE ci": ("postgresql", NOT_EXACT),
    "VARCHAR(20)": ("mariadb", ()),
    "VARCHAR(20) COLLATE utf8mb4_unicode_nopad_ci": ("mariadb", ()),
}


@pytest.fixture
def adapter(opened: Opened, type_: str) -> Adapter:
    """Return an adapter on columns of a type whose own comparison is not exact."""
    of_stays = ", ".join(
        f"{name} {type_}" for name in ("id", "person", "state", "kind", "number")
    )
    return opened(
        CAPITALS,
        (
            *TYPES[type_][1],
            f"CREATE TABLE stays ({of_stays})",
            f"CREATE TABLE people (id {type_}, merged {type_}, family {type_})",
            f"CREATE TABLE numbers (person {type_}, number {type_})",
            "INSERT INTO stays VALUES ('A', 'P', 'S', 'HC', 'V1'),"
            " ('a', 'P', 'S', 'hc', 'V1'), ('b', 'p', 's', 'hc', 'v1'),"
            " ('c', 'Q', 'a', NULL, NULL), ('d', 'Q', 'A', 'HC', 'V1')",
            "INSERT INTO people VALUES"
            " ('P', NULL, 'Dupont'), ('p', NULL, 'DUPONT'),"
            " ('M', 'P', '\u00c9a'), ('m', 'p', 'ea')",
            "INSERT INTO numbers VALUES ('P', 'N1'), ('p', 'n1')",
        ),
    )


ON_EACH = pytest.mark.parametrize(
    ("url", "type_"),
    [(url, type_) for type_, (url, _) in TYPES.items()],
    indirect=["url"],
)


@ON_EACH
@pytest.mark.parametrize(
    ("criterion", "found"),
    [
        (token("_id", "a"), ["a"]),
        (patient("p"), ["!state"]),
        (patient("m"), ["!state"]),
        (patient("M"), ["A", "a"]),
        (token("identifier", "v1"), ["!state"]),
        (token("status", "finished"), ["A", "a"]),
        (token("class", "IMP"), ["A"]),
        # A code that no entry names, as it is shown (decision 17).
        (token("class", "UNK"), ["!state", "!state", "a"]),
        # The code of hidden stays in small letters is another one, and is told of.
        (None, ["!state", "!state", "A", "a"]),
    ],
    ids=str,
)
def test_capitals_count_in_what_a_stay_is_found_by(
    adapter: Adapter, type_: str, criterion: Criterion | None, found: list[str]
) -> None:
    query = ask(*[criterion] if criterion else [])
    rows = adapter.search(query)
    assert adapter.count(query) == len(rows.rows)
    assert sorted(ids_of(rows)) == found


@ON_EACH
@pytest.mark.parametrize(
    ("criterion", "found"),
    [
        (token("_id", "m", "P"), ["P", "m"]),
        (token("identifier", "N1"), ["P"]),
        (token("identifier", "n1"), ["p"]),
        (text("family", "Dupont", match=StringMatch.EXACT), ["P"]),
        # Of names alone case and accents do not count (decision 9).
        (text("family", "dup"), ["P", "p"]),
        (text("family", "ea"), ["M", "m"]),
    ],
    ids=str,
)
def test_capitals_count_in_what_a_patient_is_found_by_but_for_names(
    adapter: Adapter, type_: str, criterion: Criterion, found: list[str]
) -> None:
    query = ask(criterion, of=PATIENT, sort=Sort(SortKey.ID))
    rows = adapter.search(query)
    assert adapter.count(query) == len(rows.rows)
    assert ids_of(rows) == found


@ON_EACH
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_walk_tells_ids_apart_that_differ_in_capitals(
    adapter: Adapter, type_: str, size: int
) -> None:
    """Each once (decision 12), each with what is its own."""
    query = ask(of=PATIENT, sort=Sort(SortKey.ID), count=size)
    people = [row for page in walk(adapter, query) for row in page.rows]
    numbers = {
        person.id: [each.value for each in person.identifiers]
        for person in people
        if isinstance(person, PatientRecord)
    }
    assert numbers == {"M": [], "P": ["N1"], "m": [], "p": ["n1"]}
    assert len(people) == 4


@ON_EACH
def test_a_database_tells_that_a_column_compares_so(
    adapter: Adapter, url: str, type_: str
) -> None:
    """Whatever its name in the SELECT is."""
    quote = "`" if url.startswith("mysql") else '"'
    rows = f"SELECT id, state AS {quote}it's{quote}, 1 AS one FROM stays"
    with closing(Database(url, 5, 1)) as database:
        kinds = [column.kind for column in database.columns(rows)]
    assert kinds[:2] == [Kind.FOLDING] * 2
    assert kinds[2] is not Kind.FOLDING


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_texts_without_a_collation_are_texts(opened: Opened, url: str) -> None:
    """The type "char" of PostgreSQL's own tables, in which codes stand here and there."""
    opened(
        CAPITALS, ('CREATE TABLE codes (code "char", whole name, few character(2))',)
    )
    with closing(Database(url, 5, 1)) as database:
        columns = database.columns("SELECT * FROM codes")
    assert {column.kind for column in columns} == {Kind.TEXT}
