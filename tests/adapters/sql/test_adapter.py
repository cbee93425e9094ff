"""Searches of a service that runs on while its tables are altered, or offers more."""

import pytest

from adapters.contract import NotFoundError, SourceDataError
from adapters.sql.query import LONGEST_LIST
from tests.adapters.emptied import NUMBERS, altered, listed, on, people, stays, table
from toolkit.contract.harness import PATIENT, STAY, ask, dates, ids_of, token

STAYS = stays(
    "id, person, began",
    "_id, patient, date",
    "date",
    patient_id="person",
    start="began",
)


@on("postgresql")
def test_a_column_of_another_type_is_read_anew_within_the_request(opened, url):
    adapter = opened(
        STAYS,
        table(
            "stays",
            "id BIGINT, person BIGINT, began TIMESTAMP",
            *("1, 7, '2024-03-14 10:00:00'", "2, 8, NULL"),
        ),
    )
    by_id, by_date = ask(token("_id", "1")), ask(dates("2024-03-14"))
    for _ in range(9):
        # As often as a driver needs to prepare a statement.
        assert ids_of(adapter.search(by_id)) == ["1"]
        assert ids_of(adapter.search(by_date)) == ["1"]
    for type_ in ("text", "bigint", "text"):
        altered(url, f"ALTER TABLE stays ALTER id TYPE {type_} USING id::{type_}")
        assert ids_of(adapter.search(by_id)) == ["1"]
        assert adapter.read(STAY, "2").id == "2"
    altered(url, "ALTER TABLE stays ALTER began TYPE text")
    assert ids_of(adapter.search(by_date)) == ["1"]
    assert adapter.count(by_date) == 1
    altered(
        url, "ALTER TABLE stays ALTER person TYPE text", "UPDATE stays SET id = 'x'"
    )
    with pytest.raises(NotFoundError):
        adapter.read(STAY, "1")


@on("postgresql")
def test_a_column_that_goes_is_an_error_until_it_is_back(opened, url):
    made = table("stays", "id INTEGER, person INTEGER, began DATE", "1, 7, NULL")
    adapter = opened(STAYS.replace("began}", 'began, at: "00:00"}'), made)
    assert ids_of(adapter.search(ask())) == ["1"]
    altered(url, "ALTER TABLE stays DROP COLUMN began")
    for _ in range(2):
        with pytest.raises(SourceDataError):
            adapter.search(ask())
    altered(url, *made)
    assert ids_of(adapter.search(ask())) == ["1"]


@on("sqlite")
def test_items_of_many_rows_are_read_in_lists_that_every_database_takes(opened):
    """A key without a type may hold each id as a text and as a number."""
    number = 700
    adapter = opened(
        stays("id") + people("id", "_id, identifier", identifiers=f"[{NUMBERS}]"),
        (
            *table("stays", "id INTEGER"),
            *table("people", "id INTEGER", *map(str, range(number))),
            *table("numbers", "person, number"),
            "INSERT INTO numbers SELECT id, 'N' || id FROM people",
        ),
    )
    with listed() as lengths:
        rows = adapter.search(ask(of=PATIENT, count=number)).rows
    assert [row.identifiers[0].value for row in rows] == [f"N{row.id}" for row in rows]
    assert len(rows) == number
    assert max(lengths) <= LONGEST_LIST
