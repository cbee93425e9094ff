"""Values that a database compares in another way than the mapping reads them."""

from itertools import product

import pytest

from adapters.contract import (
    NotFoundError,
    Sort,
    SortKey,
    StringMatch,
)
from tests.adapters.emptied import NUMBERS, altered, on, people, stays, table
from toolkit.contract.harness import (
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    text,
    token,
    walk,
)

CONTAINS, EXACT = StringMatch.CONTAINS, StringMatch.EXACT
EXTENSION = "service-provider._extension"


def find(adapter, criterion, kind):
    """Return the ids that a search finds, once its total is their number."""
    query = ask(criterion, of=kind)
    ids = sorted(ids_of(adapter.search(query)))
    assert adapter.count(query) == len(ids), criterion
    return ids


def test_a_hidden_stay_whose_code_ends_in_blanks_is_never_served(opened):
    states = "codes: {states: {table: {S: finished, A: hidden, X: removed}, otherwise: planned}}\n"
    adapter = opened(
        states + stays("id, state", "_id, status", status="state, codes: states"),
        table("stays", "id INTEGER, state VARCHAR(4)", "1, 'S'", "2, 'A '", "3, 'X  '"),
    )
    for query in (ask(), ask(token("status", "planned")), ask(token("_id", "2", "3"))):
        assert {*ids_of(adapter.search(query))} <= {"1", "!state"}
    with pytest.raises(NotFoundError):
        adapter.read(STAY, "2")


FOUND = {
    "absent": (
        stays(
            "id, person, number, unit",
            f"_id, patient, identifier, {EXTENSION}",
            patient_id="person",
            visit_number="number, absent: ['0']",
            functional_unit="unit, absent: ['0000']",
        )
        + people(
            "id, merged, family, ipp",
            "_id, name, family, identifier",
            id="id, absent: ['9']",
            replaced_by="merged, absent: ['0']",
            names="[{family: {from: family, absent: [UNKNOWN]}}]",
            identifiers="[{type: PI, value: {from: ipp, absent: ['0']}}]",
        ),
        table(
            "stays",
            "id INTEGER, person INTEGER, number VARCHAR(9), unit VARCHAR(9)",
            *("1, 1, '0', '0000'", "2, 0, '12', '0001'", "3, 2, '0', '0001'"),
        )
        + table(
            "people",
            "id INTEGER, merged INTEGER, family VARCHAR(9), ipp VARCHAR(9)",
            *("1, 0, 'UNKNOWN', '0'", "2, 1, 'Unknowns', '7'"),
            *("3, 2, NULL, NULL", "9, 0, NULL, NULL"),
        ),
        # By what stands for no value nothing is found.
        (STAY, token("identifier", "0"), []),
        (STAY, token("identifier", "12"), ["2"]),
        (STAY, token(EXTENSION, "0000"), []),
        # The patient 1 was not merged: stays of "0" are somebody else's.
        (STAY, patient("1"), ["1"]),
        (STAY, patient("2", "3"), ["1", "3"]),
        (PATIENT, token("_id", "9"), []),
        (PATIENT, token("identifier", "0"), []),
        (PATIENT, text("name", "unknown"), ["2"]),
        (PATIENT, text("family", "known", match=CONTAINS), ["2"]),
        (PATIENT, text("family", "UNKNOWN", match=EXACT), []),
        # A number whose mapping names no system is in none.
        (PATIENT, token("identifier", "|7"), ["2"]),
        (PATIENT, token("identifier", "urn:oid:1.9|7"), []),
    ),
    # A system that is given to all others is one.
    "systems": (
        """\
codes: {systems: {table: {X: "urn:oid:1.1"}, otherwise: "urn:oid:1.2"}}
"""
        + stays(
            "id, number, house",
            "_id, identifier",
            visit_number="number",
            visit_number_system="house, codes: systems",
        ),
        table(
            "stays",
            "id INTEGER, number VARCHAR(9), house VARCHAR(9)",
            *("1, '5', NULL", "2, '5', 'X'"),
        ),
        (STAY, token("identifier", "|5"), []),
        (STAY, token("identifier", "urn:oid:1.2|5"), ["1"]),
        (STAY, token("identifier", "urn:oid:1.1|5"), ["2"]),
    ),
    # Where all other codes are hidden, the removed ones are not served either.
    "others": (
        "codes: {states: {table: {S: finished, X: removed}, otherwise: hidden}}\n"
        + stays("id, state", "_id, status", status="state, codes: states"),
        table(
            "stays",
            "id INTEGER, state VARCHAR(9)",
            *("1, 'S'", "2, 'X'", "3, 'NEW'", "4, NULL"),
        ),
        (STAY, token("_id", "1", "2", "3", "4"), ["1"]),
        (STAY, token("status", "finished", "hidden", "removed"), ["1"]),
    ),
    # Names are found where they are, and where their item counts.
    "names": (
        stays("id")
        + people(
            "id, family, checked",
            "_id, name, family, given",
            names="""[
      {use: official, family: {from: family}, only_if: {from: checked, in: [Y]}},
      {rows: "SELECT person, kind, last, first FROM names", key: person, use: maiden,
       only_if: {from: kind, in: [MAIDEN]}, family: {from: last}, given: {from: first}}]""",
        ),
        table("stays", "id INTEGER")
        + table(
            "people",
            "id INTEGER PRIMARY KEY, family VARCHAR(40), checked VARCHAR(1)",
            *("1, 'Lefevre', 'Y'", "2, 'Lefort', 'N'", "3, 'Morel', 'Y'"),
        )
        + table(
            "names",
            "person INTEGER, kind VARCHAR(9), last VARCHAR(40), first VARCHAR(40)",
            *("1, 'MAIDEN', 'Dubois', 'Anne'", "3, 'OLD', 'Dubois', 'Marie'"),
            "3, 'MAIDEN', 'Lefoulon', 'Marie'",
        ),
        (PATIENT, text("name", "lef"), ["1", "3"]),
        (PATIENT, text("family", "dubois"), ["1"]),
        (PATIENT, text("given", "anne"), ["1"]),
        (PATIENT, text("name", "lefort"), []),
        (PATIENT, text("given", "lef"), []),
    ),
    # Texts with fewer digits of a second compare as the times that they mean.
    "fractions": (
        stays("id, began", "_id, date", start="began"),
        table(
            "stays",
            "id INTEGER, began VARCHAR(30)",
            *("1, '2024-03-14 10:00:00'", "2, '2024-03-14 10:00:00.5'"),
            "3, '2024-03-14 10:00:00.500001'",
        ),
        (STAY, dates("ge2024-03-14T10:00:00.5+01:00"), ["2", "3"]),
        (STAY, dates("2024-03-14T10:00:00.500000+01:00"), ["2"]),
        (STAY, dates("lt2024-03-14T10:00:00.500000+01:00"), ["1"]),
    ),
}


@on("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("name", FOUND)
def test_found(opened, name):
    mapping, rows, *cases = FOUND[name]
    adapter = opened(mapping, rows)
    for kind, criterion, ids in cases:
        assert find(adapter, criterion, kind) == ids, criterion


@pytest.mark.parametrize(
    ("url", "type_", "zone"),
    [
        ("postgresql", "TIMESTAMPTZ", "SET TIME ZONE 'UTC'"),
        ("mysql", "TIMESTAMP", "SET time_zone = '+00:00'"),
    ],
    indirect=["url"],
)
def test_a_day_of_birth_that_is_an_instant_is_the_day_in_its_zone(opened, type_, zone):
    rows = "1, '1980-05-16 21:59:59'", "2, '1980-05-16 22:00:00'"
    adapter = opened(
        stays("id") + people("id, born", "_id, birthdate", birth_date="born"),
        (
            zone,
            *table("stays", "id INTEGER"),
            *table("people", f"id INTEGER, born {type_} NULL", *rows),
        ),
    )
    for day, ids in {"15": [], "16": ["1"], "17": ["2"], "18": []}.items():
        query = ask(dates(f"1980-05-{day}", parameter="birthdate"), of=PATIENT)
        rows = adapter.search(query).rows
        assert [row.id for row in rows] == ids
        assert all(str(row.birth_date) == f"1980-05-{day}" for row in rows)


FAR_CELLS = (
    ("mysql", "DATETIME(3)", "9999-12-31 23:59:59.999", "9999-12-31 23:59:59.999"),
    ("postgresql", "TIMESTAMP(3)", "9999-12-31 23:59:59", "9999-12-31T23:59:59"),
    ("postgresql", "TIMESTAMP(3)", "9999-12-31 00:00:00", "9999-12-31"),
    (
        "postgresql",
        "TIMESTAMPTZ",
        "2099-12-31 23:30:00+00",
        "2100-01-01 00:30:00+01:00",
    ),
    ("mysql", "DATE", "9999-12-31", "9999-12-31 00:00:00"),
    ("sqlite", "VARCHAR(30)", "9999-12-31 00:00:00", "9999-12-31"),
)
"""Database, type, value, and how the mapping file writes it."""


@pytest.mark.parametrize(
    ("url", "type_", "cell", "sentinel"), FAR_CELLS, indirect=["url"]
)
def test_a_time_that_stands_for_none_is_the_same_however_it_is_written(
    opened, type_, cell, sentinel
):
    start = f"began, absent: ['{sentinel}'], at: '00:00'"
    adapter = opened(
        stays("id, began", "_id, date", "date", start=start),
        table("stays", f"id INTEGER, began {type_}", f"2, '{cell}'", "1, NULL"),
    )
    page = adapter.search(ask(sort=Sort(SortKey.DATE)))
    assert ids_of(page) == ["1", "2"]
    assert [row.start for row in page.rows] == [None, None]
    assert adapter.count(ask(dates("gt1900"))) == 0


SIGNS = ("%(a)s", ":now", "?", "&x", "-- x", "/*")


def test_no_sign_of_a_value_or_of_rows_has_a_meaning(opened):
    select = "SELECT id, visit, '%' || 'a\\b' AS unit FROM stays -- 5 % of all\n\nWHERE id >= 0"
    adapter = opened(
        stays(
            select,
            f"_id, identifier, {EXTENSION}",
            visit_number="visit",
            functional_unit="unit",
        ),
        table(
            "stays",
            "id INTEGER, visit VARCHAR(20)",
            *(f"{id}, '{text}'" for id, text in enumerate(SIGNS)),
        ),
    )
    for id, visit in enumerate(SIGNS):
        assert find(adapter, token("identifier", visit), STAY) == [str(id)]
    assert len(find(adapter, token(EXTENSION, "%a\\b"), STAY)) == len(SIGNS)


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
"""Types whose own comparison is not exact."""

CAPITALS = """\
codes:
  states: {table: {S: finished, A: hidden}}
  kinds: {table: {HC: IMP}, otherwise: UNK}
"""
CAPITALS += stays(
    "id, person, state, kind, number",
    "_id, patient, identifier, status, class",
    patient_id="person",
    status="state, codes: states",
    **{"class": "kind, codes: kinds"},
    visit_number="number",
) + people(
    "id, merged, family",
    "_id, family, identifier",
    "_id",
    replaced_by="merged",
    names="[{family: {from: family}}]",
    identifiers=f"[{NUMBERS}]",
)

EXACTLY = (
    (STAY, token("_id", "a"), ["a"]),
    (STAY, patient("p"), ["!state"]),
    (STAY, patient("m"), ["!state"]),
    (STAY, patient("M"), ["A", "a"]),
    (STAY, token("identifier", "v1"), ["!state"]),
    (STAY, token("status", "finished"), ["A", "a"]),
    (STAY, token("class", "IMP"), ["A"]),
    # A code that no entry names, as it is shown (decision 17).
    (STAY, token("class", "UNK"), ["!state", "!state", "a"]),
    # The code of hidden stays in small letters is another one, and is reported.
    (STAY, token("_id", *"AabcdABC"), ["!state", "!state", "A", "a"]),
    (PATIENT, token("_id", "m", "P"), ["P", "m"]),
    (PATIENT, token("identifier", "n1"), ["p"]),
    (PATIENT, text("family", "Dupont", match=EXACT), ["P"]),
    # Of names alone case and accents do not count (decision 9).
    (PATIENT, text("family", "dup"), ["P", "p"]),
    (PATIENT, text("family", "ea"), ["M", "m"]),
)


@pytest.mark.parametrize(
    ("url", "type_"),
    [(url, type_) for type_, (url, _) in TYPES.items()],
    indirect=["url"],
)
def test_capitals_count_but_for_names(opened, type_):
    of_stays = [
        f"{name} {type_}" for name in ("id", "person", "state", "kind", "number")
    ]
    adapter = opened(
        CAPITALS,
        TYPES[type_][1]
        + table(
            "stays",
            ", ".join(of_stays),
            *("'A', 'P', 'S', 'HC', 'V1'", "'a', 'P', 'S', 'hc', 'V1'"),
            *("'b', 'p', 's', 'hc', 'v1'", "'c', 'Q', 'a', NULL, NULL"),
            "'d', 'Q', 'A', 'HC', 'V1'",
        )
        + table(
            "people",
            f"id {type_}, merged {type_}, family {type_}",
            *("'P', NULL, 'Dupont'", "'p', NULL, 'DUPONT'"),
            *("'M', 'P', '\u00c9a'", "'m', 'p', 'ea'"),
        )
        + table("numbers", f"person {type_}, number {type_}", "'P', 'N1'", "'p', 'n1'"),
    )
    for kind, criterion, ids in EXACTLY:
        assert find(adapter, criterion, kind) == ids, criterion
    # A walk finds each once (decision 12), with what is its own.
    query = ask(of=PATIENT, sort=Sort(SortKey.ID), count=1)
    rows = [row for page in walk(adapter, query) for row in page.rows]
    held = {p.id: [i.value for i in p.identifiers] for p in rows}
    assert held == {"M": [], "P": ["N1"], "m": [], "p": ["n1"]}
    assert len(rows) == 4


@on("postgresql")
def test_codes_of_an_enumeration_are_compared_as_what_they_are(opened, url):
    codes = '{open: in-progress, closed: finished, "it\'s": planned, new: finished}'
    type_ = 'kinds."State"'
    adapter = opened(
        f"codes: {{states: {{table: {codes}}}}}\n"
        + stays("id, state", "_id, status", status="state, codes: states"),
        (
            "CREATE SCHEMA kinds",
            f"CREATE TYPE {type_} AS ENUM ('open', 'closed', 'it''s')",
            *table(
                "stays",
                f"id INTEGER, state {type_}",
                *("1, 'open'", "2, 'closed'", "3, 'it''s'", "4, NULL"),
            ),
        ),
    )
    assert find(adapter, token("status", "finished"), STAY) == ["2"]
    assert find(adapter, token("status", "planned", "in-progress"), STAY) == ["1", "3"]
    # A code of the mapping that the type gets while the service runs.
    altered(
        url,
        f"ALTER TYPE {type_} ADD VALUE 'new'",
        "INSERT INTO stays VALUES (5, 'new')",
    )
    assert find(adapter, token("status", "finished"), STAY) == ["2", "5"]
    # No cast of the column: an index of it serves.
    assert "CAST(pas.state" not in adapter.explain(ask(token("status", "finished")))


MERGED = stays("id, person", "_id, patient", patient_id="person") + people(
    "id, merged", "_id, identifier", replaced_by="merged", identifiers=f"[{NUMBERS}]"
)

UUIDS = [f"2d1c2b1e-0000-4000-8000-00000000000{end}" for end in "abc"]
LARGE = ["42", "9007199254740993", "9007199254740992"]
ODD = ("abc", "042", UUIDS[0].upper(), "9" * 19, "1.5")
"""Texts that are neither a number of 64 bits as it is written nor a UUID."""

UNLIKE = (
    ("sqlite", "BIGINT", LARGE),
    *(("postgresql", "UUID", UUIDS), ("postgresql", "NUMERIC", LARGE)),
    # Decimals it compares with texts to fifteen digits.
    ("mariadb", "BIGINT", LARGE),
)
"""Types of each database that do not compare with texts by themselves, and three ids."""


@pytest.mark.parametrize(("url", "type_", "ids"), UNLIKE, indirect=["url"])
def test_keys_compare_whatever_their_types_are(opened, type_, ids):
    """Patients of stays, survivors and numbers, of which some are texts."""
    old, survivor, other = ids
    types = (type_, "CHAR(40)")
    for person, id_, merged in [*product(types, repeat=3)][1:-1]:
        owner = types[id_ == type_]
        odd = [key for key in ODD if "CHAR" in merged and "CHAR" in id_]
        people_rows = [f"'{old}', '{survivor}'", f"'{survivor}', NULL"]
        people_rows += [f"'{other}', NULL"]
        people_rows += [f"'P{n}', '{key}'" for n, key in enumerate(odd)]
        number_rows = [f"'{old}', 'N1'", f"'{other}', 'N3'"]
        number_rows += [f"'{key}', 'ODD'" for key in ODD if "CHAR" in owner]
        stay_rows = [f"{n}, '{id}'" for n, id in enumerate(ids, 1)]
        adapter = opened(
            MERGED,
            table("stays", f"id INTEGER, person {person}", *stay_rows)
            + table("people", f"id {id_}, merged {merged}", *people_rows)
            + table("numbers", f"person {owner}, number VARCHAR(8)", *number_rows),
        )
        stays_of = {(old,): "12", (survivor,): "2", (other,): "3", ("abc", old): "12"}
        stays_of |= {(f"P{n}",): "" for n in range(len(odd))}
        for patients, found in stays_of.items():
            assert find(adapter, patient(*patients), STAY) == [*found], (patients, id_)
        for number, numbered in {"N1": [old], "N3": [other], "ODD": []}.items():
            assert find(adapter, token("identifier", number), PATIENT) == numbered
        for id in ODD:
            with pytest.raises(NotFoundError):
                adapter.read(PATIENT, id)


COLLATIONS = (
    ("mariadb", "COLLATE utf8mb4_unicode_ci", "COLLATE utf8mb4_general_ci"),
    ("postgresql", 'COLLATE "C"', 'COLLATE "POSIX"'),
    ("mysql", "CHARACTER SET latin1", "COLLATE utf8mb4_bin"),
)
"""Collations that one server has in tables of different years, and will not compare."""


@pytest.mark.parametrize(("url", "one", "other"), COLLATIONS, indirect=["url"])
def test_texts_of_two_collations_compare(opened, one, other):
    adapter = opened(
        MERGED,
        table(
            "stays",
            f"id VARCHAR(9), person VARCHAR(9) {one}",
            *("'1', 'a'", "'2', 'A'", "'3', 'b'"),
        )
        + table(
            "people",
            f"id VARCHAR(9) {one}, merged VARCHAR(9) {other}",
            *("'a', 'b'", "'A', NULL", "'b', NULL"),
        )
        + table(
            "numbers", f"person VARCHAR(9) {other}, number VARCHAR(9)", "'a', 'N1'"
        ),
    )
    assert find(adapter, patient("a"), STAY) == ["1", "3"]
    assert find(adapter, patient("A"), STAY) == ["2"]
    assert find(adapter, token("identifier", "N1"), PATIENT) == ["a"]


@on("mysql")
def test_a_number_without_sign_is_found_as_it_is_shown(opened):
    """Up to 2^64; nothing is found for what is beyond, nor for what is below nought."""
    large = [2**64 - 1, 2**63, 2**63 - 1, 0]
    adapter = opened(
        stays(
            "id, visit",
            "_id, patient, identifier",
            patient_id="id",
            visit_number="visit",
        ),
        table(
            "stays",
            "id BIGINT UNSIGNED, visit BIGINT",
            *(f"{id}, {id - 2**63}" for id in large),
        ),
    )
    by_id = Sort(SortKey.ID, descending=True)
    pages = walk(adapter, ask(sort=by_id, count=1))
    assert [id for page in pages for id in ids_of(page)] == [*map(str, large)]
    for id in map(str, large):
        assert adapter.read(STAY, id).id == id
        assert find(adapter, patient(id), STAY) == [id]
    assert find(adapter, token("identifier", str(-(2**63))), STAY) == ["0"]
    for other in (str(2**64), "-1", "9" * 40):
        assert find(adapter, token("_id", other), STAY) == []
        with pytest.raises(NotFoundError):
            adapter.read(STAY, other)


@on("mysql")
@pytest.mark.parametrize("owner", ["BIT(9)", "VARCHAR(9)"])
def test_bits_are_the_number_that_they_stand_for(opened, owner):
    codes = "codes: {flags: {table: {'0': finished, '1': planned}}}\n"
    adapter = opened(
        codes
        + stays(
            "id, person, flag",
            "_id, patient, status",
            patient_id="person",
            status="flag, codes: flags",
        )
        + people(
            "id, flag", "_id, identifier", active="flag", identifiers=f"[{NUMBERS}]"
        ),
        table(
            "stays",
            "id BIT(64), person BIT(9), flag BIT(1)",
            *("1, 300, 0", f"{2**64 - 1}, 300, 1", "2, 1, 0"),
        )
        + table("people", "id BIT(9), flag BIT(1)", "300, 1", "1, 0")
        + table("numbers", f"person {owner}, number VARCHAR(9)", "300, 'N'"),
    )
    last = str(2**64 - 1)
    pages = walk(adapter, ask(sort=Sort(SortKey.ID), count=1))
    assert [id for page in pages for id in ids_of(page)] == ["1", "2", last]
    assert find(adapter, token("_id", last), STAY) == [last]
    assert find(adapter, patient("300"), STAY) == ["1", last]
    assert find(adapter, token("status", "planned"), STAY) == [last]
    assert adapter.read(PATIENT, "1").active is False
    assert find(adapter, token("identifier", "N"), PATIENT) == ["300"]
