"""Keys that a database holds in other ways than as a number or a text, and rows without one."""

from contextlib import closing
from itertools import chain, product
from typing import cast
from uuid import UUID

import pytest
from sqlalchemy.engine import make_url

from adapters.contract import NotFoundError, Sort, SortKey
from adapters.mapping.binary import BinaryForm, text_of
from adapters.mapping.load import load_mapping
from adapters.sql.adapter import SqlAdapter, UnfitError, open_section
from adapters.sql.columns import ColumnKind
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.base import Statement
from adapters.sql.engine import Database
from tests.adapters.emptied import HEAD, NUMBERS, on, people, stays, table
from tests.adapters.sql.golden import Described
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

SMALL = stays("id, person", "_id, patient", patient_id="person")

BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA", "mysql": "BINARY(16)"}
UNEQUAL = {
    "postgresql": ("REAL", "XID", "JSON", "INTERVAL", "INTEGER[]"),
    "mysql": ("FLOAT", "FLOAT(10, 2)", "TIME"),
}
"""By the dialect: that of MySQL is MariaDB's, too."""


def _key(number):
    """Return 16 bytes: every byte is one that a text could not hold, or would escape."""
    return bytes(range(number, number + 12)) + b"\xff'\\%"


def _literal(url, key):
    form = "decode('{}', 'hex')" if url.startswith("postgresql") else "x'{}'"
    return form.format(key.hex())


KEYS = stays(
    "id, person, began",
    "_id, patient, identifier, date",
    "date",
    id="id, form: uuid-swapped",
    patient_id="person, merges: follow",
    visit_number="id, form: uuid-swapped",
    start="began",
) + people(
    "id, survivor",
    "_id, identifier",
    replaced_by="survivor",
    identifiers=f"[{NUMBERS}, {NUMBERS.replace('FROM numbers', 'FROM texts')}]",
)


def _stays(url, numbers):
    type_ = BYTES[make_url(url).get_backend_name()]
    keys = [_literal(url, _key(n)) for n in (0, 1, 2)]
    began = "'2024-03-14 10:00:00'"
    return (
        table(
            "stays",
            f"id {type_} NOT NULL, person {type_}, began TIMESTAMP NULL",
            *(f"{_literal(url, _key(n))}, {keys[n % 2]}, {began}" for n in numbers),
        )
        + table(
            "people",
            f"id {type_} NOT NULL, survivor {type_}",
            *(f"{keys[0]}, NULL", f"{keys[1]}, NULL", f"{keys[2]}, {keys[0]}"),
        )
        + table("numbers", f"person {type_}, number VARCHAR(9)", f"{keys[0]}, 'A'")
        + table(
            "texts", "person VARCHAR(64), number VARCHAR(9)", f"'{_key(1).hex()}', 'B'"
        )
    )


def _walked(adapter, query):
    return [*chain.from_iterable(map(ids_of, walk(adapter, query)))]


@on("sqlite", "postgresql", "mariadb")
def test_keys_of_bytes_are_found_by_their_text(url, opened):
    adapter = opened(KEYS, _stays(url, range(20)))
    assert list(adapter.check()) == []
    ids = [text_of(_key(n), BinaryForm.SWAPPED) for n in range(20)]
    people = [_key(n).hex() for n in range(3)]
    for sort in (SortKey.DATE, SortKey.ID):
        query = ask(sort=Sort(sort, descending=True), count=3)
        assert _walked(adapter, query) == ids[::-1]
    assert ids_of(adapter.search(ask(token("_id", ids[3])))) == [ids[3]]
    assert ids_of(adapter.search(ask(token("identifier", ids[3])))) == [ids[3]]
    # The bytes in the other order are another UUID, as is what the mapping shows as hex.
    for other in (str(UUID(bytes=_key(3))), _key(3).hex(), ids[3].upper()):
        assert adapter.count(ask(token("_id", other))) == 0
        with pytest.raises(NotFoundError):
            adapter.read(STAY, other)
    stay = adapter.read(STAY, ids[3])
    assert (stay.patient_id, stay.visit_number) == (people[1], ids[3])
    assert adapter.count(ask(patient(people[1]))) == 10
    assert adapter.count(ask(patient(people[2]))) == 10, "of the survivor"
    # The items of one SELECT have the bytes as key, those of the other their text.
    for number, id in (("A", people[0]), ("B", people[1])):
        query = ask(token("identifier", number), of=PATIENT)
        if number == "A" or not url.startswith("sqlite"):
            assert ids_of(adapter.search(query)) == [id]
        (identifier,) = adapter.read(PATIENT, id).identifiers
        assert identifier.value == number
    assert adapter.read(PATIENT, people[2]).replaced_by == people[0]


@on("sqlite", "postgresql", "mariadb")
def test_a_key_of_bytes_is_found_by_its_index(url, opened, tmp_path):
    index = (
        "CREATE UNIQUE INDEX stays_id ON stays (id)",
        "CREATE INDEX stays_person ON stays (person, began, id)",
    )
    opened(KEYS, (*_stays(url, range(200)), *index))
    mapping = load_mapping(tmp_path / "hospital.yaml", {"PAS_URL": url})
    id = text_of(_key(3), BinaryForm.SWAPPED)
    with closing(SqlAdapter(mapping)) as adapter:
        section, database = adapter.section(STAY), adapter.database
        filters, columns = section.filters, section.columns
        statements = [columns.select(section.selected, filters.of_id(id), limit=1)]
        for criterion in (token("_id", id), patient(_key(1).hex())):
            query = ask(criterion)
            statements.append(columns.count(filters.of_query(query)))
            statements += [section.page(*at, 11) for at in section.segments(query)]
        for statement in statements:
            if (rows := database.rows_read(statement)) is not None:
                # Half of the stays are of this patient.
                assert rows.read < 110, statement.sql
                continue
            plan = Statement(f"EXPLAIN QUERY PLAN {statement.sql}", statement.values)
            steps = [step for *_, step in database.fetch(plan)]
            assert not any(step.startswith("SCAN") for step in steps), statement.sql


NULLED = stays(
    "SELECT s.id, 1 AS person, v.began FROM visits v LEFT JOIN stays s ON s.id = v.stay",
    "_id, patient, date",
    "date",
    id="id, absent: ['7']",
    patient_id="person",
    start="began, at: '10:00'",
)


@on("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("absent", [", absent: ['7']", ""])
def test_rows_without_an_id_are_no_resources(absent, opened):
    """The column is NOT NULL: it is a JOIN that makes it NULL, at each end of an order."""
    days = ("'2024-03-13'", "'2024-03-14'", "'2024-03-15'", "NULL")
    visits = [
        f"{'NULL' if m % 2 else 4 * n + m // 2}, {days[n]}"
        for n in range(4)
        for m in range(8)
    ]
    adapter = opened(
        NULLED.replace(", absent: ['7']", absent),
        table("stays", "id BIGINT NOT NULL PRIMARY KEY", *map(str, range(16)))
        + table("visits", "stay BIGINT, began DATE", *visits),
    )
    expected = {str(n) for n in range(16)} - {"7" if absent else ""}
    dated = expected - {"12", "13", "14", "15"}
    for sort, descending in product((SortKey.DATE, SortKey.ID), (True, False)):
        for criterion, found in (
            ((), expected),
            ((patient("1"),), expected),
            ((dates("ge2024"),), dated),
        ):
            query = ask(*criterion, sort=Sort(sort, descending), count=1)
            assert sorted(_walked(adapter, query)) == sorted(found)
            assert adapter.count(query) == len(found)


@on("sqlite")
def test_patients_without_an_id_are_neither_found_nor_followed(opened):
    follows = "person, merges: follow"
    named = {"replaced_by": "survivor", "names": "[{family: {from: name}}]"}
    adapter = opened(
        stays("id, person", "_id, patient", patient_id=follows)
        + people("id, survivor, name", "_id, name", **named),
        table(
            "stays", "id INTEGER, person INTEGER", "1, 2", "2, 1", "NULL, 2", "3, NULL"
        )
        + table(
            "people",
            "id INTEGER, survivor INTEGER, name VARCHAR(9)",
            *("1, NULL, 'a'", "2, 1, NULL", "4, NULL, 'a'"),
            *("NULL, NULL, 'a'", "NULL, 1, 'a'", "NULL, 2, 'a'"),
        ),
    )
    for descending, size in ((True, 1), (False, 2)):
        by_id = Sort(SortKey.ID, descending)
        everybody = ask(of=PATIENT, sort=by_id, count=size)
        assert sorted(_walked(adapter, everybody)) == ["1", "2", "4"]
        assert adapter.count(everybody) == 3
        by_name = ask(text("name", "a"), of=PATIENT, sort=by_id, count=size)
        assert sorted(_walked(adapter, by_name)) == ["1", "4"]
        for id in ("1", "2"):
            of_patient = ask(patient(id), sort=by_id, count=size)
            assert sorted(_walked(adapter, of_patient)) == ["1", "2"]


@on("sqlite")
def test_an_empty_id_is_an_invalid_row_and_ends_no_walk(opened):
    rows = ("'', '1'", "'1', '1'", "'2', '1'", "NULL, '1'")
    adapter = opened(SMALL, table("stays", "id VARCHAR(9), person VARCHAR(9)", *rows))
    for descending in (True, False):
        query = ask(sort=Sort(SortKey.ID, descending), count=1)
        assert sorted(_walked(adapter, query)) == ["!id", "1", "2"]
        assert adapter.count(query) == 3


@on("postgresql", "mariadb")
@pytest.mark.parametrize("column", ["id", "person"])
def test_a_key_that_no_value_equals_is_refused(column, url, opened):
    for type_ in UNEQUAL[make_url(url).get_backend_name()]:
        types = {"id": "INTEGER", "person": "INTEGER", column: type_}
        columns = ", ".join(f"{name} {one}" for name, one in types.items())
        adapter = opened(SMALL, table("stays", columns))
        (problem,) = adapter.check()
        assert f"{column}: " in str(problem), type_
        for question in (adapter.search, adapter.count):
            with pytest.raises(UnfitError):
                question(ask())


@pytest.mark.parametrize("database", ["oracle", "mssql"])
@pytest.mark.parametrize("column", ["id", "person"])
@pytest.mark.parametrize(
    ("kind", "says"),
    [(ColumnKind.LARGE, "a large object"), (ColumnKind.OTHER, "does not compare")],
)
def test_what_a_database_does_not_compare_is_no_key(
    database, column, kind, says, tmp_path
):
    file = tmp_path / "hospital.yaml"
    file.write_text(HEAD + SMALL, "utf-8")
    mapping = load_mapping(file, {"PAS_URL": f"{database}://"})
    kinds = {"id": ColumnKind.INTEGER, "person": ColumnKind.INTEGER}
    described = Described(dialect_named(database), {**kinds, column: kind})
    with pytest.raises(UnfitError, match=f"{column}: .*{says}"):
        open_section(cast("Database", described), mapping, STAY)


@on("sqlite", "postgresql", "mariadb")
def test_a_fraction_is_no_id(opened):
    rows = ("1, 1", "1.1, 1", "2.3, 1", f"{2**53}, 1")
    adapter = opened(
        SMALL, table("stays", "id DOUBLE PRECISION, person INTEGER", *rows)
    )
    query = ask(sort=Sort(SortKey.ID), count=1)
    assert _walked(adapter, query) == ["1", "!id", "!id", str(2**53)]
    for id in ("1", str(2**53)):
        assert adapter.read(STAY, id).id == id
    # To the database, the first one equals 2**53, too.
    for other in (str(2**53 + 1), "1.0", "01"):
        assert adapter.count(ask(token("_id", other))) == 0
        with pytest.raises(NotFoundError):
            adapter.read(STAY, other)


@on("postgresql")
def test_what_is_no_number_is_no_id(opened):
    rows = ("1, 1", "'NaN', 1", "'Infinity', 1")
    adapter = opened(SMALL, table("stays", "id NUMERIC, person INTEGER", *rows))
    query = ask(sort=Sort(SortKey.ID), count=1)
    assert _walked(adapter, query) == ["1", "!id", "!id"]


@on("sqlite")
@pytest.mark.parametrize("type_", ["INTEGER", "REAL", "NUMERIC"])
def test_texts_in_a_column_of_numbers_are_found(opened, type_):
    rows = ("1, 'p'", "'x', 1", "'nan', 2")
    adapter = opened(SMALL, table("stays", f"id {type_}, person {type_}", *rows))
    query = ask(sort=Sort(SortKey.ID), count=1)
    assert _walked(adapter, query) == ["1", "nan", "x"]
    for id in ("1", "nan", "x"):
        assert adapter.read(STAY, id).id == id
    assert _walked(adapter, ask(patient("p"))) == ["1"]
    assert adapter.count(ask(token("_id", "1.0"))) == 0


@on("sqlite", "mariadb")
@pytest.mark.parametrize("name", ["id", "ID"])
def test_two_columns_of_one_name_are_refused(name, url, opened):
    quoted = f'"{name}"' if not url.startswith("mysql") else name
    rows = f"SELECT id, person, person + 1 AS {quoted} FROM stays"
    adapter = opened(
        SMALL.replace("SELECT id, person FROM stays", rows),
        table("stays", "id INTEGER, person INTEGER", "1, 1"),
    )
    (problem,) = adapter.check()
    assert "'id'" in str(problem).lower()
    with pytest.raises(UnfitError):
        adapter.search(ask())
