"""Times as hospitals' columns hold them, also those that Python cannot hold."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from itertools import product
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from adapters.contract import Prefix, RowFault, Sort, SortKey, SourceDataError
from adapters.mapping.model import DateReading, TimeRule
from adapters.sql.columns import FIRST, LAST, ColumnKind, instant_of
from tests.adapters.emptied import on, stays, table
from tests.databases import writing
from toolkit.contract.harness import STAY, ask, dates, ids_of, walk
from toolkit.contract.hospital import PARIS, Hospital, StayRow

SECOND, MINUTE, DAY = (
    timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "days")
)


class Layout(NamedTuple):
    """A type of column, the options in the mapping, and how a local time is written.

    `step` is what the column tells apart.
    """

    url: str
    type: str
    options: str
    write: Callable[[datetime], object]
    step: timedelta = SECOND


def _instant(local):
    return local.replace(tzinfo=PARIS).astimezone(UTC)


def _seconds(local):
    return int(_instant(local).timestamp())


NOON, OF_UTC = ', at: "12:00"', ", time_zone: UTC"
LAYOUTS = {
    "numbers": Layout(
        "postgresql",
        "DECIMAL(12)",
        ', format: "%Y%m%d%H%M"',
        lambda t: int(f"{t:%Y%m%d%H%M}"),
        MINUTE,
    ),
    "days": Layout("sqlite", "TEXT", NOON, lambda t: t.date().isoformat(), DAY),
    "epoch": Layout(
        "sqlite", "REAL", ", format: epoch-ms", lambda t: _seconds(t) * 1000
    ),
    "pg-epoch": Layout("postgresql", "DOUBLE PRECISION", ", format: epoch", _seconds),
    "my-epoch": Layout("mysql", "DECIMAL(20, 6)", ", format: epoch", _seconds),
    "pg-instants": Layout("postgresql", "TIMESTAMPTZ", "", _instant),
    "pg-days": Layout("postgresql", "DATE", NOON, lambda t: t.date(), DAY),
    "pg-utc": Layout(
        "postgresql", "TIMESTAMP", OF_UTC, lambda t: _instant(t).replace(tzinfo=None)
    ),
}

STARTS = tuple(
    text and datetime.fromisoformat(text)
    for text in (
        *("2024-03-13 23:59:59", "2024-03-14 00:00:00", "2024-03-14 00:00:59"),
        *("2024-03-14 11:59:59", "2024-03-14 12:00:00", "2024-03-14 12:00:01"),
        *("2024-03-14 23:59:59", "2024-03-15 00:00:00", "2024-03-31 01:59:59"),
        *("2024-03-31 03:00:00", "2024-07-01 00:30:00", "2024-10-27 02:30:00"),
        *("2024-10-27 03:00:00", "2024-12-31 23:30:00", "2025-01-01 00:00:00", None),
    )
)
VALUES = (
    *("2024", "2024-03-14", "2024-03-31", "2024-03-14T00:00"),
    *("2024-03-14T11:59:59+01:00", "2024-03-14T12:00:00.5+01:00"),
    *("2024-10-27T00:30Z", "2024-10-27T01:30Z", "2024-06-30T22:30Z"),
)


def _held(layout, moment):
    """Return the local time that the column really says."""
    if layout.step == MINUTE:
        return moment.replace(second=0)
    return datetime.combine(moment, time(12)) if layout.step == DAY else moment


@pytest.mark.parametrize("reading", DateReading)
@pytest.mark.parametrize(
    ("url", "layout"),
    [pytest.param(each.url, each, id=name) for name, each in LAYOUTS.items()],
    indirect=["url"],
)
def test_dates_and_walks(opened, url, layout, reading):
    engine = writing(url)
    columns = f"id INTEGER, began {layout.type}, ended {layout.type}"
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE stays ({columns})"))
        rows = [
            {"id": number, "time": moment and layout.write(moment)}
            for number, moment in enumerate(STARTS, 1)
        ]
        insert = sa.text("INSERT INTO stays VALUES (:id, :time, :time)")
        connection.execute(insert, rows)
    engine.dispose()
    began, ended = f"began{layout.options}", f"ended{layout.options}"
    section = stays("id, began, ended", "date", "date", start=began, end=ended)
    adapter = opened(f"date: {reading}\n{section}", ())
    texts = [_held(layout, m).isoformat(" ") if m else None for m in STARTS]
    held = tuple(StayRow(n, began=t, ended=t) for n, t in enumerate(texts, 1))
    model = Hospital(held, date_reading=reading).model()
    for prefix, value in product(Prefix, VALUES):
        query = ask(dates(f"{prefix}{value}"))
        assert ids_of(adapter.search(query)) == ids_of(model.search(query)), query
    if reading is DateReading.PERIOD:
        return
    for descending, size in product((False, True), (1, 5)):
        query = ask(sort=Sort(SortKey.DATE, descending), count=size)
        expected = ids_of(model.search(replace(query, count=100)))
        assert [i for page in walk(adapter, query) for i in ids_of(page)] == expected
        pages = list(walk(adapter, replace(query, from_end=True), back=True))
        assert [i for page in reversed(pages) for i in ids_of(page)] == expected


MAPPING = stays(
    "id, visit, began, ended",
    "_id, date",
    "date",
    visit_number="visit",
    start="began",
    end="ended, absent: [infinity], at: '12:00'",
)
UNHELD = ("infinity", "-infinity", "10000-01-01", "0044-03-15 12:00:00 BC")


@on("postgresql")
@pytest.mark.parametrize("type_", ["timestamp", "timestamptz"])
def test_only_the_row_of_such_a_time_is_a_fault(opened, type_):
    rows = (f"'{n}', 'V', '{text}', NULL" for n, text in enumerate(UNHELD))
    adapter = opened(
        MAPPING,
        table(
            "stays",
            f"id text, visit text, began {type_}, ended date",
            *(*rows, "'a', 'V', '2024-03-14', 'infinity'"),
        ),
    )
    faults = [r for r in adapter.search(ask()).rows if isinstance(r, RowFault)]
    written = ("began", "outside the years 1 to 9999")
    assert [(fault.column, fault.rule) for fault in faults] == [written] * len(UNHELD)
    with pytest.raises(SourceDataError) as refused:
        adapter.read(STAY, "0")
    assert refused.value.fault.column == "began"
    # It may stand for none, `absent: [infinity]`: a stay that has not ended.
    assert adapter.read(STAY, "a").end is None
    # Among the instants of other sources they are first and last.
    for kind in (ColumnKind.LOCAL_TIME, ColumnKind.INSTANT):
        ends = [instant_of(kind, TimeRule(PARIS, PARIS), text) for text in UNHELD]
        assert ends == [LAST, FIRST, LAST, FIRST]


@on("sqlite")
def test_a_page_that_would_go_on_from_a_text_that_is_not_utf8_is_refused(opened):
    """No text that can be bound compares as it does, nor has it a place among sources."""
    adapter = opened(
        MAPPING.replace("id: {from: id}", "id: {from: visit}"),
        table(
            "stays",
            "id text, visit text, began text, ended date",
            "'a', '1', '2024-03-14 10:00:00', NULL",
            "'b', CAST(x'4af67267' AS TEXT), '2024-03-14 10:00:00', NULL",
        ),
    )
    with pytest.raises(SourceDataError, match="UTF-8"):
        adapter.search(replace(ask(), placed=True))
    by_id = Sort(SortKey.ID)
    assert len(ids_of(adapter.search(ask(sort=by_id)))) == 2
    with pytest.raises(SourceDataError, match="UTF-8"):
        list(walk(adapter, ask(sort=by_id, count=1)))
