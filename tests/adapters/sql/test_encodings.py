"""Databases that do not hold every character, and rows whose texts cannot be read."""

from contextlib import closing
from math import inf

import psycopg
import pytest

from adapters import open_adapter, open_source
from adapters.contract import (
    NameRecord,
    PatientRecord,
    RowFault,
    Sort,
    SortKey,
    StringMatch,
)
from adapters.mapping.load import load_mapping
from adapters.memory import MemoryAdapter
from adapters.sql.adapter import SqlAdapter
from tests.adapters.emptied import HEAD, altered, people, stays, table
from tests.databases import new_database
from tests.sets import SERVERS
from toolkit.checks.sql import checks
from toolkit.contract.harness import PATIENT, ask, ids_of, text, token
from toolkit.contract.hospital import PARIS
from toolkit.findings import Finding

MAPPING = stays("id") + people(
    "id, family",
    "_id, name, family, identifier",
    names="[{family: {from: family}}]",
    identifiers="[{value: {from: family}, type: PI}]",
)
NAMES = {
    **{"a": "Lefèvre", "b": "DUPRÉ-Martin", "c": "Strauß", "d": "Ñuñez d\u2019Àvila"},
    **{"e": "de  la  TOUR", "f": "Œuf", "g": "Dupont", "h": "Éa", "i": "Kožuch"},
    **{"j": "жуков", "k": "日本"},
}
ASKED = (
    *("lefevre", "LEFÈVRE", "lef", "dupre martin", "martin", "Avila", "strauss", "nunez"),
    *("de la tour", "tour", "oeuf", "dupont", "ea", "kozuch", "evre", "e\u0301a"),
    *("日本", "Жуков", "Łukasz", "Ünal", "a😀", "\u2019"),
)  # fmt: skip
ENCODINGS = {"LATIN1": "latin1", "WIN1252": "cp1252", "SQL_ASCII": "utf-8"}
ENCODINGS |= {"KOI8R": "koi8-r", "EUC_CN": "gb2312"}
"""Of PostgreSQL, each with the codec of what it holds."""

BYTES = {"SQL_ASCII": r"E'Caf\351'", "WIN1252": r"E'Caf\201'"}


@pytest.fixture(scope="module")
def url(request, postgresql_server):
    """Return the address of an empty database of a kind, or of PostgreSQL in an encoding."""
    encoding = request.param
    if encoding not in ENCODINGS:
        return new_database(encoding, request)
    name = f"e_{encoding.lower()}"
    with psycopg.connect(postgresql_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        options = f"TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"
        connection.execute(f"CREATE DATABASE {name} {options}")
    return postgresql_server.get_uri(name, "psycopg")


def _filled(url, names, charset="", *more):
    type_ = f"VARCHAR(40) {f'CHARACTER SET {charset}' if charset else ''}"
    rows = [f"'{id}', '{name}'" for id, name in names.items()]
    is_ascii = "e_sql_ascii" in url
    altered(
        f"{url}&client_encoding=utf8" if is_ascii else url,
        *table("stays", "id INTEGER"),
        *table("people", f"id VARCHAR(9) PRIMARY KEY, family {type_}", *rows, *more),
    )


def _opened(url, directory):
    file = directory / "hospital.yaml"
    file.write_text(HEAD + MAPPING, encoding="utf-8")
    return open_adapter(load_mapping(file, {"PAS_URL": url}))


def _held(codec):
    """Return the names that an encoding has all characters of."""
    return {
        id: name
        for id, name in NAMES.items()
        if name.encode(codec, "ignore").decode(codec) == name
    }


def _compared(adapter, names):
    """Compare searches by name and number with those of the model."""
    records = [
        PatientRecord(id, names=(NameRecord(family=name),))
        for id, name in names.items()
    ]
    model = MemoryAdapter(records, time_zone=PARIS)
    for word in (*ASKED, *names.values()):
        for match in StringMatch:
            query = ask(text("family", word, match), of=PATIENT, sort=Sort(SortKey.ID))
            assert ids_of(adapter.search(query)) == ids_of(model.search(query)), query
        by_number = ask(token("identifier", word), of=PATIENT, sort=Sort(SortKey.ID))
        numbers = [id for id, name in names.items() if name == word]
        assert ids_of(adapter.search(by_number)) == numbers, word


@pytest.mark.parametrize(
    ("url", "codec"),
    [pytest.param(*item, id=item[0]) for item in ENCODINGS.items()],
    indirect=["url"],
)
def test_names_and_numbers_are_found_in_every_encoding(url, codec, tmp_path):
    names = _held(codec)
    _filled(url, names)
    with closing(_opened(url, tmp_path)) as adapter:
        _compared(adapter, names)


CHARSETS = {
    **{name: name for name in ("ascii", "cp850", "cp932", "gbk")},
    **{"latin1": "cp1252", "greek": "iso8859-7", "swe7": "ascii", "utf16": "utf-8"},
}
"""Character sets of MariaDB and MySQL, each with a codec of what it surely holds."""


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("url", SERVERS, indirect=True)
def test_names_and_numbers_are_found_in_every_character_set(url, charset, tmp_path):
    names = _held(CHARSETS[charset])
    _filled(url, names, charset)
    with closing(_opened(url, tmp_path)) as adapter:
        _compared(adapter, names)


@pytest.mark.parametrize("url", ["SQL_ASCII", "WIN1252", "sqlite"], indirect=True)
def test_an_unreadable_text_is_one_invalid_row(url, tmp_path):
    encoding = url.rpartition("/e_")[2].partition("?")[0].upper()
    names = {"a": "Lefèvre", "g": "Dupont"}
    raw = BYTES.get(encoding, "CAST(x'436166e9' AS TEXT)")
    _filled(url, names, "", f"'c', {raw}")
    with closing(_opened(url, tmp_path)) as adapter:
        for _ in range(2):
            page = adapter.search(ask(of=PATIENT, sort=Sort(SortKey.ID)))
            assert [row.id for row in page.rows] == ["a", "c", "g"]
            assert isinstance(page.rows[1], RowFault)
        for word, ids in (("lefevre", ["a"]), ("Dup", ["g"]), ("日本", [])):
            query = ask(text("family", word), of=PATIENT, sort=Sort(SortKey.ID))
            assert ids_of(adapter.search(query)) == ids, word


@pytest.mark.parametrize("url", ["SQL_ASCII"], indirect=True)
def test_an_address_names_the_encoding_of_bytes(url, tmp_path):
    _filled(url, {"g": "Dupont"}, "", r"'a', E'Lef\350vre'")
    with closing(_opened(f"{url}&client_encoding=latin1", tmp_path)) as adapter:
        _compared(adapter, {"a": "Lefèvre", "g": "Dupont"})


WRONG = "Lefèvre".encode().decode("cp1252")


@pytest.mark.parametrize(
    ("url", "charset"),
    [("mariadb", "latin1"), ("WIN1252", ""), ("sqlite", "")],
    indirect=["url"],
)
def test_utf8_that_was_stored_as_latin1_is_a_finding_with_its_repair(
    url, charset, tmp_path
):
    _filled(url, {"a": WRONG, "b": "Éa", "g": "Dupont"}, charset)
    file = tmp_path / "hospital.yaml"
    file.write_text(HEAD + MAPPING, encoding="utf-8")
    mapping = load_mapping(file, {"PAS_URL": url})
    with closing(open_source(mapping)) as adapter:
        assert isinstance(adapter, SqlAdapter)
        subjects = [check.run() for check in checks(adapter, (PATIENT,), inf)]
        found = [f for part in subjects for f in part if isinstance(f, Finding)]
    of_number, finding = (f for f in found if "UTF-8" in f.text)
    assert of_number.element == "Patient.identifier.value"
    assert finding.element == "Patient.name.family"
    if url.startswith("sqlite"):
        assert finding.remedy == ""
        return
    repaired = MAPPING.replace(
        "SELECT id, family", f"SELECT id, {finding.remedy} AS family"
    )
    file.write_text(HEAD + repaired, "utf-8")
    with closing(open_adapter(load_mapping(file, {"PAS_URL": url}))) as adapter:
        for word, id in (("lefevre", "a"), ("ea", "b"), ("dupont", "g")):
            assert ids_of(adapter.search(ask(text("family", word), of=PATIENT))) == [id]
