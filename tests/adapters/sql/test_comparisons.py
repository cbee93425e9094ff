"""Columns are compared exactly, whatever their collations and types."""

from itertools import permutations, product

import pytest

from adapters.contract import (
    Adapter,
    NotFoundError,
    PatientRecord,
    Sort,
    SortKey,
    StringMatch,
)
from tests.adapters.emptied import NUMBERED, Opened
from tests.databases import writing
from tests.sets import SERVERS
from toolkit.contract.harness import (
    PATIENT,
    STAY,
    ask,
    ids_of,
    patient,
    text,
    token,
    walk,
)

pytestmark = pytest.mark.extended

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

TYPES = {
    "TEXT COLLATE NOCASE": ("sqlite", ()),
    "citext": ("postgresql", CITEXT),
    "VARCHAR(20)": ("mariadb", ()),
    "VARCHAR(20) COLLATE utf8mb4_unicode_nopad_ci": ("mariadb", ()),
    "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci": ("mysql", ()),
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


FOUND = (
    (STAY, [token("_id", "a")], ["a"]),
    (STAY, [patient("p")], ["!state"]),
    (STAY, [patient("m")], ["!state"]),
    (STAY, [patient("M")], ["A", "a"]),
    (STAY, [token("identifier", "v1")], ["!state"]),
    (STAY, [token("status", "finished")], ["A", "a"]),
    (STAY, [token("class", "IMP")], ["A"]),
    # A code that no entry names, as it is shown (decision 17).
    (STAY, [token("class", "UNK")], ["!state", "!state", "a"]),
    # The code of hidden stays in small letters is another one, and is reported.
    (STAY, [], ["!state", "!state", "A", "a"]),
    (PATIENT, [token("_id", "m", "P")], ["P", "m"]),
    (PATIENT, [token("identifier", "n1")], ["p"]),
    (PATIENT, [text("family", "Dupont", match=StringMatch.EXACT)], ["P"]),
    # Of names alone case and accents do not count (decision 9).
    (PATIENT, [text("family", "dup")], ["P", "p"]),
    (PATIENT, [text("family", "ea")], ["M", "m"]),
)


@pytest.mark.parametrize(
    ("url", "type_"),
    [(url, type_) for type_, (url, _) in TYPES.items()],
    indirect=["url"],
)
def test_capitals_count_but_for_names(adapter: Adapter, type_: str) -> None:
    for kind, criteria, found in FOUND:
        query = ask(*criteria, of=kind, sort=Sort(SortKey.ID))
        rows = adapter.search(query)
        assert adapter.count(query) == len(rows.rows)
        ids = ids_of(rows)
        assert (ids if kind is PATIENT else sorted(ids)) == found, criteria
    # A walk finds each once (decision 12), with what is its own.
    query = ask(of=PATIENT, sort=Sort(SortKey.ID), count=1)
    people = [row for page in walk(adapter, query) for row in page.rows]
    numbers = {
        person.id: [each.value for each in person.identifiers]
        for person in people
        if isinstance(person, PatientRecord)
    }
    assert numbers == {"M": [], "P": ["N1"], "m": [], "p": ["n1"]}
    assert len(people) == 4


ENUMERATED = """\
codes:
  states:
    table: {open: in-progress, closed: finished, "it's": planned, new: finished, shut: finished}
encounter:
  rows: SELECT id, state FROM stays
  fields: {id: {from: id}, patient_id: {from: id}, status: {from: state, codes: states}}
  search: [_id, status]
"""


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_codes_of_an_enumeration_are_compared_as_what_they_are(
    opened: Opened, url: str
) -> None:
    adapter = opened(
        ENUMERATED,
        (
            "CREATE SCHEMA kinds",
            """CREATE TYPE kinds."State" AS ENUM ('open', 'closed', 'it''s')""",
            'CREATE TABLE stays (id INTEGER, state kinds."State")',
            "INSERT INTO stays VALUES (1, 'open'), (2, 'closed'), (3, 'it''s'), (4, NULL)",
        ),
    )

    def found(*codes: str) -> list[str]:
        query = ask(token("status", *codes), sort=Sort(SortKey.ID))
        assert adapter.count(query) == len(ids_of(adapter.search(query)))
        return ids_of(adapter.search(query))

    assert found("finished") == ["2"]
    assert found("planned", "in-progress") == ["1", "3"]
    # Two codes of the mapping the type lacks; one of them it gets while the service runs.
    engine = writing(url)
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("""ALTER TYPE kinds."State" ADD VALUE 'new'""")
        connection.exec_driver_sql("INSERT INTO stays VALUES (5, 'new')")
    engine.dispose()
    assert found("finished") == ["2", "5"]
    # No cast of the column: an index of it serves.
    assert "CAST(pas.state" not in adapter.explain(ask(token("status", "finished")))


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


UNLIKE = {
    "sqlite": {"BIGINT": LARGE},
    "postgresql": {"UUID": UUIDS, "BIGINT": LARGE, "NUMERIC": LARGE},
    # Decimals it compares with texts to fifteen digits.
    "mariadb": {
        "BIGINT": LARGE,
        "BIGINT UNSIGNED": ["42", str(2**63 - 1), str(2**63 - 2)],
    },
    "mysql": {"BIGINT": LARGE},
}
"""Types of each database that do not compare with texts by themselves, and three ids."""

ON_UNLIKE = pytest.mark.parametrize(
    ("url", "kind"),
    [(url, kind) for url, kinds in UNLIKE.items() for kind in kinds],
    indirect=["url"],
)


def _ids(kind: str) -> list[str]:
    return next(ids[kind] for ids in UNLIKE.values() if kind in ids)


@ON_UNLIKE
def test_a_patient_is_found_by_a_number_whose_key_is_of_another_type(
    opened: Opened, kind: str
) -> None:
    one, other, third = _ids(kind)
    for id_type, key_type in ((kind, "CHAR(40)"), ("VARCHAR(40)", kind)):
        odd = [key for key in ODD if "CHAR" in key_type]
        adapter = opened(
            NUMBERED,
            (
                *("DROP TABLE IF EXISTS people", "DROP TABLE IF EXISTS numbers"),
                f"CREATE TABLE people (id {id_type})",
                f"CREATE TABLE numbers (person {key_type}, number VARCHAR(8))",
                *(f"INSERT INTO people VALUES ('{id}')" for id in (one, other, third)),
                f"INSERT INTO numbers VALUES ('{one}', 'N1'), ('{third}', 'N3')",
                *(f"INSERT INTO numbers VALUES ('{key}', 'ODD')" for key in odd),
            ),
        )
        for number, found in {"N1": [one], "N3": [third], "ODD": []}.items():
            query = ask(token("identifier", number), of=PATIENT)
            assert ids_of(adapter.search(query)) == found, id_type
            assert adapter.count(query) == len(found)
        for id in ODD:
            with pytest.raises(NotFoundError):
                adapter.read(PATIENT, id)


@ON_UNLIKE
def test_stays_of_a_survivor_are_found_whatever_types_their_patients_have(
    opened: Opened, kind: str
) -> None:
    old, survivor, other = _ids(kind)
    kinds = (kind, "CHAR(40)")
    for person, id_, merged in [*product(kinds, repeat=3)][1:-1]:
        odd = [key for key in ODD if "CHAR" in merged and "CHAR" in id_]
        adapter = opened(
            MERGED,
            (
                *("DROP TABLE IF EXISTS stays", "DROP TABLE IF EXISTS people"),
                f"CREATE TABLE stays (id INTEGER, person {person})",
                f"CREATE TABLE people (id {id_}, merged {merged})",
                f"INSERT INTO stays VALUES (1, '{old}'), (2, '{survivor}'), (3, '{other}')",
                f"INSERT INTO people VALUES ('{old}', '{survivor}'), ('{survivor}', NULL)",
                *(
                    f"INSERT INTO people VALUES ('P{n}', '{k}')"
                    for n, k in enumerate(odd)
                ),
            ),
        )
        expected = {(old,): "12", (survivor,): "2", (other,): "3", ("abc", old): "12"}
        expected |= {(f"P{n}",): "" for n in range(len(odd))}
        for ids, found in expected.items():
            query = ask(patient(*ids))
            assert sorted(ids_of(adapter.search(query))) == [*found], (ids, person, id_)
            assert adapter.count(query) == len(found)


@pytest.mark.parametrize("url", ["postgresql", "mariadb"], indirect=True)
def test_an_id_that_no_key_can_be_has_nothing_there(opened: Opened) -> None:
    keys = (("BIGINT", "42"), ("UUID", UUIDS[0]), ("CHAR(8)", "A1"))
    for (id_type, id), (key_type, key) in permutations(keys, 2):
        adapter = opened(
            NUMBERED,
            (
                *("DROP TABLE IF EXISTS people", "DROP TABLE IF EXISTS numbers"),
                f"CREATE TABLE people (id {id_type})",
                f"CREATE TABLE numbers (person {key_type}, number VARCHAR(8))",
                f"INSERT INTO people VALUES ('{id}')",
                f"INSERT INTO numbers VALUES ('{key}', 'N1')",
            ),
        )
        assert getattr(adapter.read(PATIENT, id), "identifiers", None) == ()
        query = ask(token("identifier", "N1"), of=PATIENT)
        assert ids_of(adapter.search(query)) == [], (id_type, key_type)


MIXED = {
    "mariadb": ("COLLATE utf8mb4_unicode_ci", "COLLATE utf8mb4_general_ci"),
    "mysql": ("COLLATE utf8mb4_0900_ai_ci", "COLLATE utf8mb4_general_ci"),
    "postgresql": ('COLLATE "C"', 'COLLATE "POSIX"'),
}
"""Collations that one server has in tables of different years, and will not compare."""


@pytest.mark.parametrize(
    ("url", "one", "other"),
    [(server, *pair) for server, pair in MIXED.items()]
    + [(server, "CHARACTER SET latin1", "COLLATE utf8mb4_bin") for server in SERVERS],
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
