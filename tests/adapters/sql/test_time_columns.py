"""Times as hospitals' columns hold them, those among them that Python cannot hold."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    NotFoundError,
    Prefix,
    RowFault,
    Sort,
    SortKey,
    SourceDataError,
)
from adapters.mapping.load import load_mapping
from adapters.mapping.model import DateReading, TimeRule
from adapters.memory import MemoryAdapter
from adapters.sql.columns import FIRST, LAST, Kind, instant_of
from adapters.testing.harness import STAY, ask, dates, ids_of, patient, walk
from adapters.testing.hospital import PARIS, Hospital, StayRow
from tests.adapters.emptied import Opened

TIMES = """\
mapping: 1
name: One column of times
profile: full
time_zone: Europe/Paris
date: {reading}
source: {{kind: sql, url: {{env: PAS_URL}}}}
constants: {{visit_number_system: "urn:oid:1.2.3"}}
codes: {{states: {{table: {{S: finished}}}}}}
encounter:
  rows: SELECT id, state, began, ended FROM stays
  fields:
    id: {{from: id}}
    status: {{from: state, codes: states}}
    patient_id: {{from: state}}
    start: {{from: began{options}}}
    end: {{from: ended{options}}}
  search: [date]
  sort: [date]
"""


@dataclass(frozen=True)
class Layout:
    """A type of column, the options in the mapping, and how a local time is written.

    `step` is what the column tells apart.
    """

    type: str
    options: str
    write: Callable[[datetime], object]
    step: timedelta = timedelta(seconds=1)


def _instant(local: datetime) -> datetime:
    return local.replace(tzinfo=PARIS).astimezone(UTC)


def _utc(local: datetime) -> datetime:
    return _instant(local).replace(tzinfo=None)


_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


def _form(form: str, step: timedelta = timedelta(seconds=1)) -> Layout:
    return Layout("TEXT", f', format: "{form}"', lambda t: t.strftime(form), step)


TEXTS = {
    "iso": Layout("TEXT", "", lambda t: t.isoformat(" ")),
    "iso-T": _form("%Y-%m-%dT%H:%M:%S"),
    "compact": _form("%Y%m%d%H%M%S"),
    "minutes": _form("%Y-%m-%d %H:%M", _MINUTE),
    "days": Layout("TEXT", ', at: "00:00"', lambda t: t.date().isoformat(), _DAY),
    "noons": Layout("TEXT", ', at: "12:00"', lambda t: t.date().isoformat(), _DAY),
    "utc": Layout("TEXT", ", time_zone: UTC", lambda t: _utc(t).isoformat(" ")),
}
TYPES = {
    "timestamp": Layout("TIMESTAMP(0)", "", lambda t: t),
    "timestamptz": Layout("TIMESTAMPTZ", "", _instant),
    "date": Layout("DATE", ', at: "00:00"', lambda t: t.date(), _DAY),
    "date-at-noon": Layout("DATE", ', at: "12:00"', lambda t: t.date(), _DAY),
    "utc-timestamp": Layout("TIMESTAMP", ", time_zone: UTC", lambda t: _utc(t)),
}
LAYOUTS = {
    **{f"sqlite-{name}": layout for name, layout in TEXTS.items()},
    **{f"postgresql-{name}": layout for name, layout in (TEXTS | TYPES).items()},
}

STARTS = tuple(
    None if text is None else datetime.fromisoformat(text)
    for text in (
        *("2024-03-13 23:59:59", "2024-03-14 00:00:00", "2024-03-14 00:00:59"),
        *("2024-03-14 11:59:59", "2024-03-14 12:00:00", "2024-03-14 12:00:01"),
        *("2024-03-14 23:59:59", "2024-03-15 00:00:00", "2024-03-31 01:59:59"),
        *("2024-03-31 03:00:00", "2024-07-01 00:30:00", "2024-10-27 02:30:00"),
        *("2024-10-27 03:00:00", "2024-12-31 23:30:00", "2025-01-01 00:00:00", None),
    )
)
VALUES = (
    *("2024", "2024-03", "2024-03-14", "2024-03-31", "2024-10-27", "2025"),
    *("2024-03-14T00:00", "2024-03-14T12:00+01:00", "2024-03-14T11:59:59+01:00"),
    *("2024-03-14T12:00:00.5+01:00", "2024-10-27T00:30Z", "2024-10-27T01:30Z"),
    *("2024-03-31T01:00Z", "2024-06-30T22:30Z", "2024-12-31T23:00Z"),
)


def _held(layout: Layout, moment: datetime) -> datetime:
    """Return the local time that the column really says."""
    if layout.step == _MINUTE:
        return moment.replace(second=0)
    if layout.step == _DAY:
        at = time(12) if "12:00" in layout.options else time(0)
        return datetime.combine(moment.date(), at)
    return moment


def _model(layout: Layout, reading: DateReading) -> MemoryAdapter:
    texts = (_held(layout, m).isoformat(" ") if m else None for m in STARTS)
    stays = tuple(StayRow(n, began=t, ended=t) for n, t in enumerate(texts, 1))
    return Hospital(stays, date_reading=reading).model()


def _fill(url: str, layout: Layout) -> None:
    engine = sa.create_engine(url)
    rows = [
        {"id": number, "time": moment and layout.write(moment)}
        for number, moment in enumerate(STARTS, 1)
    ]
    columns = f"id INTEGER, state TEXT, began {layout.type}, ended {layout.type}"
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE stays ({columns})"))
        insert = sa.text("INSERT INTO stays VALUES (:id, 'S', :time, :time)")
        connection.execute(insert, rows)
    engine.dispose()


@dataclass(frozen=True)
class Source:
    """The stays in columns of one layout, behind an adapter for each reading of dates."""

    layout: Layout
    adapters: Mapping[DateReading, Adapter]


@pytest.fixture(scope="module", params=LAYOUTS)
def source(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Source]:
    """Return the stays in columns of one layout."""
    layout = LAYOUTS[request.param]
    directory = tmp_path_factory.mktemp("times")
    url = f"sqlite:///{directory / 'pas.db'}"
    if request.param.startswith("postgresql"):
        url = request.getfixturevalue("new_postgresql")("unicode")
    _fill(url, layout)
    adapters = {}
    for reading in DateReading:
        file = directory / f"{reading}.yaml"
        text = TIMES.format(reading=reading, options=layout.options)
        file.write_text(text, encoding="utf-8")
        adapters[reading] = open_adapter(load_mapping(file, {"PAS_URL": url}))
    yield Source(layout, adapters)
    for adapter in adapters.values():
        adapter.close()


@pytest.mark.parametrize("reading", DateReading)
@pytest.mark.parametrize("prefix", Prefix)
def test_dates(source: Source, reading: DateReading, prefix: Prefix) -> None:
    model = _model(source.layout, reading)
    for value in VALUES:
        query = ask(dates(f"{prefix}{value}"))
        expected = ids_of(model.search(query))
        assert ids_of(source.adapters[reading].search(query)) == expected, value


@pytest.mark.parametrize("descending", [False, True])
def test_walk(source: Source, descending: bool) -> None:
    sort = Sort(SortKey.DATE, descending)
    adapter = source.adapters[DateReading.START]
    expected = ids_of(_model(source.layout, DateReading.START).search(ask(sort=sort)))
    for size in (1, 2, 5):
        query = ask(sort=sort, count=size)
        assert [i for page in walk(adapter, query) for i in ids_of(page)] == expected
        last = ask(sort=sort, count=size, from_end=True)
        pages = list(walk(adapter, last, back=True))
        assert [i for page in reversed(pages) for i in ids_of(page)] == expected


MAPPING = """\
codes: {states: {table: {S: finished}}}
encounter:
  rows: SELECT id, patient, visit, state, began, ended, changed FROM stays
  fields:
    id: {from: id}
    status: {from: state, codes: states}
    patient_id: {from: patient}
    visit_number: {from: visit}
    start: {from: began}
    end: {from: ended, absent: [infinity], at: "12:00"}
    last_updated: {from: changed}
  search: [_id, patient, date]
  sort: [date, _lastUpdated]
"""

TABLE = (
    "CREATE TABLE stays (id text, patient text, visit text, state text,"
    " began timestamp, ended date, changed {})"
)

BEGAN = {
    "a": "2024-03-14 10:00:00",
    "b": "infinity",
    "c": "-infinity",
    "d": "10000-01-01 00:00:00",
    "e": "0044-03-15 12:00:00 BC",
    "f": "2024-03-14 11:00:00",
    "g": None,
}
"""In PostgreSQL's own order: c e a f d b, and g without one."""

UNHELD = {"b", "c", "d", "e"}


@pytest.fixture
def adapter(opened: Opened) -> Adapter:
    """Return an adapter on such times; its tests choose PostgreSQL."""
    rows = (
        f"INSERT INTO stays VALUES ('{id}', 'P', '{id}', 'S', {time}, {ended}, {time})"
        for id, began in BEGAN.items()
        for time in [f"'{began}'" if began else "NULL"]
        for ended in ["'infinity'" if id == "a" else "NULL"]
    )
    zone = "SET TIME ZONE 'UTC'"
    return opened(MAPPING, (zone, TABLE.format("timestamptz"), *rows))


ON_POSTGRESQL = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


@ON_POSTGRESQL
def test_only_the_row_of_such_a_time_is_a_fault(adapter: Adapter) -> None:
    page = adapter.search(ask())
    faults = [row for row in page.rows if isinstance(row, RowFault)]
    read = {row.id for row in page.rows if not isinstance(row, RowFault)}
    assert read == set(BEGAN) - UNHELD
    told = [(fault.column, fault.rule) for fault in faults]
    assert told == [("began", "outside the years that can be written")] * len(UNHELD)
    with pytest.raises(SourceDataError) as refused:
        adapter.read(STAY, "b")
    assert refused.value.fault is not None
    assert refused.value.fault.column == "began"
    with pytest.raises(NotFoundError):
        adapter.read(STAY, "z")
    # It may stand for none, `absent: [infinity]`: a stay that has not ended.
    assert getattr(adapter.read(STAY, "a"), "end", "?") is None


@ON_POSTGRESQL
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("key", [SortKey.DATE, SortKey.LAST_UPDATED])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_walk_passes_them_once(
    adapter: Adapter, key: SortKey, descending: bool, size: int
) -> None:
    query = ask(sort=Sort(key, descending), count=size)
    found = [id for page in walk(adapter, query) for id in ids_of(page)]
    order = ["!began", "!began", "a", "f", "!began", "!began"]
    assert found == [*(order[::-1] if descending else order), "g"]


@ON_POSTGRESQL
def test_they_are_compared_as_the_database_does(adapter: Adapter) -> None:
    assert adapter.count(ask(dates("ge2025"))) == 2
    assert adapter.count(ask(dates("lt2024"))) == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("infinity", LAST),
        ("-infinity", FIRST),
        ("10000-01-01", LAST),
        ("294276-12-31 23:59:59", LAST),
        ("2024-03-14 BC", FIRST),
        ("0044-03-15 12:00:00+00 BC", FIRST),
    ],
)
def test_they_have_a_place_among_the_instants_of_other_sources(
    text: str, place: object
) -> None:
    for kind in (Kind.DATE, Kind.LOCAL_TIME, Kind.INSTANT):
        rule = TimeRule(PARIS, PARIS, at=time() if kind is Kind.DATE else None)
        assert instant_of(kind, rule, text) == place


NOT_UTF8 = (
    TABLE.format("text"),
    *(
        f"INSERT INTO stays VALUES ('{id}', 'P', {visit}, 'S', '2024-03-14 10:00:00',"
        " NULL, NULL)"
        for id, visit in (
            ("a", "'1'"),
            ("b", "CAST(x'4af67267' AS TEXT)"),
            ("c", "'Jörg'"),
        )
    ),
)
"""One of the names is in Latin-1."""

ON_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
BY_ID = Sort(SortKey.ID)


@ON_SQLITE
def test_only_the_row_of_a_text_that_is_not_utf8_is_a_fault(opened: Opened) -> None:
    adapter = opened(MAPPING, NOT_UTF8)
    for _ in range(2):
        page = adapter.search(ask(patient("P"), sort=BY_ID))
        assert ids_of(page) == ["a", "!visit", "c"]
        assert getattr(page.rows[2], "visit_number", "") == "Jörg"


@ON_SQLITE
@pytest.mark.parametrize("column", ["id: {from: id}", "start: {from: began}"])
def test_a_page_that_would_go_on_from_such_a_text_is_refused(
    opened: Opened, column: str
) -> None:
    """No text that can be bound compares as it does, nor has it a place among sources."""
    changed = column.replace(column.split()[-1], "visit}")
    adapter = opened(MAPPING.replace(column, changed), NOT_UTF8)
    with pytest.raises(SourceDataError, match="no text"):
        adapter.search(replace(ask(), placed=True))
    if column.startswith("id"):
        assert len(ids_of(adapter.search(ask(sort=BY_ID)))) == 3
        with pytest.raises(SourceDataError, match="no text"):
            list(walk(adapter, ask(sort=BY_ID, count=1)))
