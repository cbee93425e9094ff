"""Times as hospitals' columns hold them: each way finds and orders the same stays."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import Adapter, Prefix, Sort, SortKey
from adapters.mapping.load import load_mapping
from adapters.mapping.model import DateReading
from adapters.memory import MemoryAdapter
from adapters.testing.asking import ask, dates, ids_of, walk
from adapters.testing.hospital import PARIS, Hospital, StayRow

MAPPING = """\
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


_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_COMPACT = "%Y%m%d%H%M%S"

TEXTS = {
    "iso": Layout("TEXT", "", lambda t: t.isoformat(" ")),
    "iso-T": Layout(
        "TEXT", ', format: "%Y-%m-%dT%H:%M:%S"', lambda t: t.isoformat("T")
    ),
    "compact": Layout(
        "TEXT", f', format: "{_COMPACT}"', lambda t: t.strftime(_COMPACT)
    ),
    "minutes": Layout(
        "TEXT",
        ', format: "%Y-%m-%d %H:%M"',
        lambda t: t.strftime("%Y-%m-%d %H:%M"),
        _MINUTE,
    ),
    "days": Layout("TEXT", ', at: "00:00"', lambda t: t.date().isoformat(), _DAY),
    "noons": Layout("TEXT", ', at: "12:00"', lambda t: t.date().isoformat(), _DAY),
    "utc": Layout(
        "TEXT",
        ", time_zone: UTC",
        lambda t: _instant(t).replace(tzinfo=None).isoformat(" "),
    ),
}
TYPES = {
    "timestamp": Layout("TIMESTAMP(0)", "", lambda t: t),
    "timestamptz": Layout("TIMESTAMPTZ", "", _instant),
    "date": Layout("DATE", ', at: "00:00"', lambda t: t.date(), _DAY),
    "date-at-noon": Layout("DATE", ', at: "12:00"', lambda t: t.date(), _DAY),
    "utc-timestamp": Layout(
        "TIMESTAMP", ", time_zone: UTC", lambda t: _instant(t).replace(tzinfo=None)
    ),
}
LAYOUTS = {
    **{f"sqlite-{name}": layout for name, layout in TEXTS.items()},
    **{f"postgresql-{name}": layout for name, layout in (TEXTS | TYPES).items()},
}

BEGAN = tuple(
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
    texts = (_held(layout, m).isoformat(" ") if m else None for m in BEGAN)
    stays = tuple(StayRow(n, began=t, ended=t) for n, t in enumerate(texts, 1))
    return Hospital(stays, date_reading=reading).model()


def _fill(url: str, layout: Layout) -> None:
    engine = sa.create_engine(url)
    rows = [
        {"id": number, "time": moment and layout.write(moment)}
        for number, moment in enumerate(BEGAN, 1)
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
        text = MAPPING.format(reading=reading, options=layout.options)
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
