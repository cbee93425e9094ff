"""Times as texts in another form than searches compare: refused, until the file has the format."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from math import inf
from zoneinfo import ZoneInfo

import pytest

from adapters import open_source
from adapters.contract import Prefix, Sort, SortKey, SourceDataError
from adapters.mapping.load import load_mapping
from tests.adapters.emptied import on, people, stays, table
from toolkit.checks.sql import checks
from toolkit.contract.harness import PATIENT, ask, dates, ids_of, walk
from toolkit.contract.hospital import PARIS, Hospital, StayRow
from toolkit.findings import Finding, Severity

STARTS = (
    *("2024-01-01 23:00", "2024-01-02 00:00", "2024-01-02 00:30", "2024-01-02 12:00"),
    *("2024-01-03 00:00", "2024-03-31 03:00", "2024-07-01 00:00", "2024-07-01 01:30"),
)
VALUES = (
    *("2024-01-02", "2024-01-02T00:00+01:00", "2024-07-01"),
    *("2024-01-02T12:00:00.5+01:00", "2024-06-30T23:30Z"),
)


def _utc(local):
    return local.replace(tzinfo=PARIS).astimezone(UTC)


def _in(zone):
    return lambda t: _utc(t).astimezone(ZoneInfo(zone)).isoformat("T")


FORMS = {
    "sqlite-minutes": (lambda t: f"{t:%Y-%m-%d %H:%M}", 'format: "%Y-%m-%d %H:%M"'),
    "postgresql-T": (
        lambda t: f"{t:%Y-%m-%dT%H:%M:%S}.000",
        'format: "%Y-%m-%dT%H:%M:%S.%f"',
    ),
    "mariadb-Z": (
        lambda t: f"{_utc(t):%Y-%m-%d %H:%M:%SZ}",
        'format: "%Y-%m-%d %H:%M:%SZ", time_zone: UTC',
    ),
    "mysql-offset": (
        _in("Etc/GMT-3"),
        'format: "%Y-%m-%dT%H:%M:%S+03:00", time_zone: Etc/GMT-3',
    ),
}
NO_FORMAT = (
    _in("Europe/London"),
    lambda t: f"{t:%Y-%m-%d %H:%M}" + (":00" if t.hour else ""),
    lambda t: f"{_utc(t):%Y-%m-%dT%H:%M:%S}{'.5' if t.hour else ''}Z",
)
"""For texts in several forms there is no format: the SELECT has to make times of them."""


def _mapping(options=""):
    return stays("id, began", "_id, date", "date", start=f"began{options}")


def _filled(write):
    times = map(datetime.fromisoformat, STARTS)
    rows = (f"{number}, '{write(time)}'" for number, time in enumerate(times, 1))
    return table("stays", "id INTEGER, began VARCHAR(40)", *rows)


def _finds_as_the_model(adapter):
    model = Hospital(
        tuple(StayRow(n, began=f"{text}:00") for n, text in enumerate(STARTS, 1))
    ).model()
    for prefix, value in product(Prefix, VALUES):
        query = ask(dates(f"{prefix}{value}"))
        assert ids_of(adapter.search(query)) == ids_of(model.search(query)), query


@pytest.fixture
def remedies(url, tmp_path):
    """Return what reports the remedies of the check's errors, for the mapping that is open."""

    def check():
        mapping = load_mapping(tmp_path / "hospital.yaml", {"PAS_URL": url})
        with closing(open_source(mapping)) as adapter:
            subjects = list(checks(adapter, tuple(mapping.resources), inf))
            results = [result for each in subjects for result in each.run()]
        found = [each for each in results if isinstance(each, Finding)]
        return [each.remedy for each in found if each.severity is Severity.ERROR]

    return check


@pytest.mark.parametrize(
    ("url", "form"),
    [pytest.param(name.partition("-")[0], name, id=name) for name in FORMS],
    indirect=["url"],
)
def test_the_check_names_the_format_with_which_searches_are_right(
    opened, remedies, form
):
    write, remedy = FORMS[form]
    adapter = opened(_mapping(), _filled(write))
    for query in (ask(), ask(dates("2024-01-02"), sort=Sort(SortKey.ID))):
        for question in (adapter.search, adapter.count):
            with pytest.raises(SourceDataError, match="began"):
                question(query)
    assert len(adapter.search(ask(sort=Sort(SortKey.ID))).rows) == len(STARTS)
    assert remedies() == [remedy]
    adapter = opened(_mapping(f", {remedy}"), ())
    assert remedies() == []
    _finds_as_the_model(adapter)


@on("sqlite")
@pytest.mark.parametrize("write", NO_FORMAT)
def test_where_no_format_fits_searches_stay_refused(opened, remedies, write):
    adapter = opened(_mapping(), _filled(write))
    with pytest.raises(SourceDataError, match="began"):
        adapter.search(ask())
    assert remedies() == [""]


@on("sqlite")
def test_offsets_of_the_zone_compare_as_they_are(opened, remedies):
    statements = _filled(lambda t: t.replace(tzinfo=PARIS).isoformat(" "))
    adapter = opened(_mapping(), statements)
    assert remedies() == []
    _finds_as_the_model(adapter)


def test_a_few_of_many_texts_are_seen_where_a_table_ends(opened):
    """The newest rows are written by another release of the hospital's system."""
    first = datetime.fromisoformat("2024-01-01 10:00")
    rows = [f"{number}, '{first + timedelta(hours=number)}'" for number in range(2000)]
    columns = "id INTEGER PRIMARY KEY, began VARCHAR(40)"
    statements = table("stays", columns, *rows, "2001, '2024-04-01T10:00:00'")
    adapter = opened(_mapping(), statements)
    with pytest.raises(SourceDataError, match="began"):
        adapter.search(ask())


ABSENT = ("9999-12-31", "9999-12-31 00:00:00", "", "9999-12-31  ", "   ")


@pytest.mark.parametrize(
    ("url", "collation"),
    [
        *(("sqlite", ""), ("postgresql", ""), ("mysql", "")),
        *(("mysql", "utf8mb4_general_ci"), ("mariadb", "utf8mb4_general_nopad_ci")),
    ],
    indirect=["url"],
)
def test_blanks_behind_what_is_absent_lose_no_row(opened, url, collation):
    """Refused where the database counts blanks; else such a row is one without a start."""
    collate = f"COLLATE {collation}" if collation else ""
    for number in range(3, len(ABSENT) + 1):
        rows = [f"{n}, '{text}'" for n, text in enumerate(ABSENT[:number])]
        rows += ["8, '2024-01-02 10:00:00'", "9, NULL"]
        columns = f"id INTEGER, began VARCHAR(40) {collate}"
        adapter = opened(
            _mapping(", absent: ['9999-12-31']"), table("stays", columns, *rows)
        )
        for descending in (True, False):
            query = ask(sort=Sort(SortKey.DATE, descending), count=1)
            if number > 3 and not url.startswith("mysql"):
                with pytest.raises(SourceDataError, match="began"):
                    adapter.search(query)
                continue
            ids = [id for page in walk(adapter, query) for id in ids_of(page)]
            assert ids[0] == "8"
            assert sorted(ids) == [*map(str, range(number)), "8", "9"]
            assert ids_of(adapter.search(ask(dates("ne2024")))) == []


@on("sqlite")
def test_births_as_texts(opened, remedies):
    mapping = _mapping() + people("id, born", "birthdate", birth_date="born")
    rows = ("'a', '19500615'", "'b', '19491231'")
    adapter = opened(
        mapping,
        _filled(str) + table("people", "id VARCHAR(9), born VARCHAR(40)", *rows),
    )
    query = ask(dates("1950", parameter="birthdate"), of=PATIENT)
    with pytest.raises(SourceDataError, match="born"):
        adapter.search(query)
    remedy = 'format: "%Y%m%d"'
    assert remedies() == [remedy]
    adapter = opened(mapping.replace("from: born", f"from: born, {remedy}"), ())
    assert ids_of(adapter.search(query)) == ["a"]
