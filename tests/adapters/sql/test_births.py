"""Birth dates of which the day, or the day and the month, is not known; two digits of a year."""

from datetime import date, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from adapters.contract import PatientRecord, Prefix, RowFault, Sort, SortKey
from adapters.mapping.births import read_birth
from adapters.mapping.model import TimeRule
from adapters.memory import MemoryAdapter
from tests.adapters.emptied import on, people, stays, table
from toolkit.contract.harness import PATIENT, ask, dates
from toolkit.contract.hospital import PARIS

BIRTHS = (
    *("1950", "1950-06", "1950-01", "1950-12", "1950-06-01", "1950-06-30", "1950-01-01"),
    *("1949-12-31", "1951-01-01", "1951", "1949", "1950-05-31", "1950-06-15", "2004-02"),
)  # fmt: skip
VALUES = (
    "1949",
    "1950",
    "1950-06",
    "1950-12",
    "1950-06-15",
    "1950-12-31",
    "2004-02-29",
)
COMPACT = ', format: "%Y%m%d"'


def _opened(opened, url, type_, births, options=""):
    rows = (f"'{id}', '{birth}'" for id, birth in births.items())
    return opened(
        stays("id") + people("id, born", "_id, birthdate", birth_date=f"born{options}"),
        (("SET SESSION sql_mode = ''",) if url.startswith("mysql") else ())
        + table("stays", "id INTEGER")
        + table("people", f"id VARCHAR(10), born {type_}", *rows),
    )


@pytest.mark.parametrize(
    ("url", "type_", "options"),
    [
        ("sqlite", "TEXT", ""),
        ("sqlite", "DATE", "zeros"),
        ("postgresql", "VARCHAR(20)", "zeros"),
        ("postgresql", "INTEGER", "years"),
        ("postgresql", "INTEGER", COMPACT),
        ("mysql", "CHAR(10) CHARACTER SET latin1", ""),
        ("mysql", "DATETIME", "zeros"),
        ("mariadb", "DATE", "zeros"),
    ],
    indirect=["url"],
)
def test_a_search_compares_the_interval_of_what_is_known(opened, url, type_, options):
    known = [b for b in BIRTHS if options != "years" or len(b) == 4]
    births = {f"p{number:02}": birth for number, birth in enumerate(known)}
    written = dict(births)
    if options in ("zeros", COMPACT):
        written = {id: (birth + "-00-00")[:10] for id, birth in births.items()}
    if options == COMPACT:
        written = {id: birth.replace("-", "") for id, birth in written.items()}
    format_ = COMPACT if options == COMPACT else ""
    adapter = _opened(opened, url, type_, written, format_)
    records = [
        PatientRecord(id, birth_date=date.fromisoformat(b) if len(b) == 10 else b)
        for id, b in births.items()
    ]
    for record in records:
        assert adapter.read(PATIENT, record.id) == record
    model = MemoryAdapter(records, time_zone=PARIS)
    for prefix, value in product(Prefix, VALUES):
        by_birth = dates(f"{prefix}{value}", parameter="birthdate")
        query = ask(by_birth, of=PATIENT, sort=Sort(SortKey.ID))
        assert adapter.search(query).rows == model.search(query).rows, query
        assert adapter.count(query) == model.count(query)


@on("sqlite")
def test_a_birth_in_the_future_is_a_fault_of_its_row(opened, url):
    tomorrow = datetime.now(PARIS).date() + timedelta(days=1)
    adapter = _opened(opened, url, "DATE", {"a": tomorrow, "b": "1950-06-15"})
    fault, patient = adapter.search(ask(of=PATIENT, sort=Sort(SortKey.ID))).rows
    assert fault == RowFault("birth_date", "born", "a birth in the future", id="a")
    assert patient == PatientRecord("b", birth_date=date(1950, 6, 15))


UTC, TODAY = ZoneInfo("UTC"), date(2026, 11, 28)
READ = (
    ("%d/%m/%y", "28/11/26", date(2026, 11, 28)),
    ("%d/%m/%y", "29/11/26", date(1926, 11, 29)),
    ("%d/%m/%y", "29/02/28", date(1928, 2, 29)),
    ("%d/%m/%y", "00/06/45", "1945-06"),
    ("%d.%m.%Y", "00.00.1950", "1950"),
    ("%Y%m%d", 19500000, "1950"),
    (None, "1950-06-00 00:00:00", "1950-06"),
    ("epoch-ms", -617068800000, date(1950, 6, 13)),
    ("%d/%m/%y", "1/2/45", date(1945, 2, 1)),
    # A number has lost the zeros at its front.
    ("%d%m%y", 10245, date(1945, 2, 1)),
    ("%d%m%Y", 61945, "1945-06"),
)
UNREAD = (
    *((None, text) for text in ("0000-00-00", "1950-13", "195", "2027", 19500615)),
    *(("%Y%m%d", text) for text in ("00000000", "1950", "19501300")),
    *(("%d%m%y", value) for value in ("10245", "1 0245", 0)),
    ("%d/%m/%y", "00/00/00"),
)


def test_how_births_are_read():
    for form, value, birth in READ:
        assert read_birth(value, TimeRule(UTC, PARIS, form), TODAY) == birth, value
    for form, value in UNREAD:
        with pytest.raises(ValueError, match=r"not|outside|future"):
            read_birth(value, TimeRule(UTC, PARIS, form), TODAY)
