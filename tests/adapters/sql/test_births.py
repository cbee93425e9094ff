"""Birth dates of which the day, or the day and the month, is not known; two digits of a year."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from itertools import product
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from adapters.contract import (
    Adapter,
    PatientRecord,
    Prefix,
    Record,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.births import read_birth
from adapters.mapping.model import TimeRule
from adapters.memory import MemoryAdapter
from tests.adapters.emptied import Opened, people, stays, table
from toolkit.contract.harness import PATIENT, ask, dates
from toolkit.contract.hospital import PARIS

BIRTHS = (
    *("1950", "1950-06", "1950-01", "1950-12", "1950-06-01", "1950-06-30", "1950-01-01"),
    *("1949-12-31", "1951-01-01", "1951", "1949", "1950-05-31", "1950-06-15", "2004-02"),
)  # fmt: skip
VALUES = (*BIRTHS, "1950-12-31", "1950-07-01", "2004-02-29")


class Layout(NamedTuple):
    """A type of column, the options of the mapping, and how a birth date is written in it."""

    url: str
    type: str
    options: str
    write: Callable[[str], str]


def _zeros(birth: str) -> str:
    return f"{birth}-00-00"[:10] if len(birth) < 10 else birth


def _compact(birth: str) -> str:
    return _zeros(birth).replace("-", "")


LAYOUTS = {
    "texts": Layout("sqlite", "TEXT", "", str),
    "dates-of-sqlite": Layout("sqlite", "DATE", "", _zeros),
    "zeros": Layout("postgresql", "VARCHAR(20)", "", _zeros),
    "latin1": Layout("mysql", "CHAR(10) CHARACTER SET latin1", "", str),
    "compact": Layout("sqlite", "TEXT", ', format: "%Y%m%d"', _compact),
    "numbers": Layout("postgresql", "INTEGER", ', format: "%Y%m%d"', _compact),
    "of-numbers": Layout("mariadb", "INTEGER", ', format: "%Y%m%d"', _compact),
    **{
        f"{server}-{type_}": Layout(server, type_, "", _zeros)
        for server, type_ in product(("mariadb", "mysql"), ("DATE", "DATETIME"))
    },
}


def _patients(births: dict[str, str]) -> list[Record]:
    return [
        PatientRecord(id, birth_date=date.fromisoformat(b) if len(b) == 10 else b)
        for id, b in births.items()
    ]


def _query(criterion: str) -> SearchQuery:
    by_birth = dates(criterion, parameter="birthdate")
    return ask(by_birth, of=PATIENT, sort=Sort(SortKey.ID))


def _opened(
    opened: Opened, url: str, type_: str, births: dict[str, str], options: str = ""
) -> Adapter:
    """Open an adapter on births, which are written as SQL."""
    rows = (f"'{id}', {birth}" for id, birth in births.items())
    return opened(
        stays("id") + people("id, born", "_id, birthdate", birth_date=f"born{options}"),
        (("SET SESSION sql_mode = ''",) if url.startswith("mysql") else ())
        + table("stays", "id INTEGER")
        + table("people", f"id VARCHAR(10), born {type_}", *rows),
    )


def _compared(adapter: Adapter, births: dict[str, str]) -> None:
    """Compare searches by each value with those of the model."""
    model = MemoryAdapter(_patients(births), time_zone=PARIS)
    for prefix, value in product(Prefix, VALUES):
        query = _query(f"{prefix}{value}")
        assert adapter.search(query).rows == model.search(query).rows, query
        assert adapter.count(query) == model.count(query)


@pytest.mark.parametrize(
    ("url", "layout"),
    [pytest.param(each.url, each, id=name) for name, each in LAYOUTS.items()],
    indirect=["url"],
)
def test_a_search_compares_the_interval_of_what_is_known(
    opened: Opened, url: str, layout: Layout
) -> None:
    births = {f"p{number:02}": birth for number, birth in enumerate(BIRTHS)}
    written = {id: f"'{layout.write(birth)}'" for id, birth in births.items()}
    adapter = _opened(opened, url, layout.type, written, layout.options)
    for record in _patients(births):
        assert adapter.read(PATIENT, record.id) == record
    _compared(adapter, births)


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_years_as_numbers(opened: Opened, url: str) -> None:
    births = {"a": "1949", "b": "1950", "c": "1951"}
    _compared(_opened(opened, url, "INTEGER", births), births)


def test_a_birth_in_the_future_is_a_fault_of_its_row(opened: Opened, url: str) -> None:
    tomorrow = datetime.now(PARIS).date() + timedelta(days=1)
    births = {"a": f"'{tomorrow}'", "b": "'1950-06-15'"}
    query = ask(of=PATIENT, sort=Sort(SortKey.ID))
    fault, patient = _opened(opened, url, "DATE", births).search(query).rows
    assert fault == RowFault("birth_date", "born", "a birth in the future", id="a")
    assert patient == PatientRecord("b", birth_date=date(1950, 6, 15))


UTC, TODAY = ZoneInfo("UTC"), date(2026, 11, 28)
READ = (
    ("%d/%m/%y", "01/02/45", date(1945, 2, 1)),
    ("%d/%m/%y", "28/11/26", date(2026, 11, 28)),
    ("%d/%m/%y", "29/11/26", date(1926, 11, 29)),
    ("%d/%m/%y", "29/02/28", date(1928, 2, 29)),
    ("%d/%m/%y", "00/06/45", "1945-06"),
    ("%d.%m.%Y", "00.00.1950", "1950"),
    ("%Y%m%d", "19501100", "1950-11"),
    ("%Y%m%d", 19500000, "1950"),
    (None, 1950, "1950"),
    (None, "1950-00", "1950"),
    (None, "1950-06-00 00:00:00", "1950-06"),
    ("epoch-ms", -617068800000, date(1950, 6, 13)),
    ("%d/%m/%y", "29/02/00", date(2000, 2, 29)),
    ("%d/%m/%y", "1/2/45", date(1945, 2, 1)),
    # A number has lost the zeros at its front.
    ("%d%m%y", 10245, date(1945, 2, 1)),
    ("%d%m%Y", 61945, "1945-06"),
    ("%y%m%d", 50201, date(2005, 2, 1)),
)
UNREAD = (
    *((None, text) for text in ("0000-00-00", "1950-13", "195", "1950-06-0", "2027")),
    *((None, value) for value in (19500615, True, 195.0)),
    *(("%Y%m%d", text) for text in ("00000000", "1950", "19501300")),
    *(("%d%m%y", value) for value in ("10245", "1 0245", "000000", 0)),
    ("%d/%m/%y", "00/00/00"),
)


def test_how_births_are_read() -> None:
    for form, value, birth in READ:
        assert read_birth(value, TimeRule(UTC, PARIS, form), TODAY) == birth, value
    for form, value in UNREAD:
        with pytest.raises(ValueError, match=r"not|outside|future"):
            read_birth(value, TimeRule(UTC, PARIS, form), TODAY)
