"""Dates in the contract of adapters: the prefix table, both readings, the clock changes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import Prefix
from adapters.mapping.model import DateReading
from adapters.mapping.time_rule import Never, Twice
from adapters.testing.asking import STAY, ask, assert_as_model, dates, ids_of
from adapters.testing.hospital import PARIS, Hospital, Ids, StayRow
from adapters.testing.opened import Open, Opened

TABLE = json.loads(
    (Path(__file__).parent / "date-prefix-truth-table.json").read_text(encoding="utf-8")
)
CASES = tuple(TABLE["cases"])
ROWS = tuple(row for row in TABLE["rows"] if row["value"][:2] in set(Prefix))
VALUES = tuple(dict.fromkeys(row["value"] for row in ROWS))
COLUMNS = {DateReading.START: "start_only", DateReading.PERIOD: "literal"}

START_OF_NO_HOUR = {
    (DateReading.START, "date-only-day", f"{prefix}2019-03-14T{time}")
    for prefix in ("gt", "ge")
    for time in ("10:00:00+01:00", "10:00Z")
}
"""Rows about a start that is a whole day: our sources give a day its hour (`at`)."""


def _local(text: str | None, midnight: str) -> str | None:
    """Write a time of the table as the hospital's clock showed it."""
    if text is None:
        return None
    if len(text) == len("2019-03-14"):
        return f"{text} {midnight}"
    local = datetime.fromisoformat(text).astimezone(PARIS)
    return local.strftime("%Y-%m-%d %H:%M:%S")


def _stay(number: int, period: dict[str, str]) -> StayRow:
    return StayRow(
        number,
        began=_local(period.get("start"), "00:00:00"),
        ended=_local(period.get("end"), "23:59:59"),
    )


@pytest.fixture(scope="module", params=DateReading)
def table(request: pytest.FixtureRequest, open_hospital: Open) -> Opened:
    """Return a hospital of the table's cases, under one of the readings."""
    periods = {row["period_case"]: row["period"] for row in ROWS}
    stays = (_stay(number, periods[case]) for number, case in enumerate(CASES, 1))
    return open_hospital(Hospital(tuple(stays), date_reading=request.param))


def test_table_is_whole() -> None:
    assert len(ROWS) == len(CASES) * len(VALUES) == 17 * 30


@pytest.mark.parametrize("value", VALUES)
def test_prefix_table(table: Opened, value: str) -> None:
    reading = table.hospital.date_reading
    asked = [row for row in ROWS if row["value"] == value]
    held = {CASES[int(id) - 1] for id in table.held(STAY)}
    expected = held & {
        row["period_case"]
        for row in asked
        if row[COLUMNS[reading]]
        and (reading, row["period_case"], value) not in START_OF_NO_HOUR
    }
    page = table.adapter.search(ask(dates(value)))
    assert {CASES[int(id) - 1] for id in ids_of(page)} == expected
    assert table.adapter.count(ask(dates(value))) == len(expected)


@pytest.mark.parametrize("first", VALUES[::4])
@pytest.mark.parametrize("second", VALUES[2::5])
def test_dates_together(table: Opened, first: str, second: str) -> None:
    for query in (ask(dates(first, second)), ask(dates(first), dates(second))):
        assert_as_model(table, query)


# -------------------------------------------------------------- clock changes

CHANGES = tuple(map(datetime.fromisoformat, ("2024-03-31", "2024-10-27")))
QUARTERS = tuple(
    night + timedelta(minutes=minutes)
    for night in CHANGES
    for minutes in range(0, 301, 15)
)


@pytest.fixture(
    scope="module",
    params=[
        (Twice.FIRST, Never.REFUSE, Ids.NUMBERS),
        (Twice.SECOND, Never.SHIFT, Ids.TEXTS),
    ],
    ids=["first-refuse", "second-shift"],
)
def nights(request: pytest.FixtureRequest, open_hospital: Open) -> Opened:
    """Return a hospital where somebody arrives each quarter of an hour of both nights."""
    twice, never, ids = request.param
    stays = (
        StayRow(number, began=moment.isoformat(" "), changed=moment.isoformat(" "))
        for number, moment in enumerate(QUARTERS, 1)
    )
    return open_hospital(Hospital(tuple(stays), ids=ids, twice=twice, never=never))


@pytest.mark.parametrize("prefix", Prefix)
@pytest.mark.parametrize("night", CHANGES, ids=("spring", "autumn"))
@pytest.mark.parametrize("precision", ["minutes", "seconds"])
def test_bounds_around_clock_changes(
    nights: Opened, prefix: Prefix, night: datetime, precision: str
) -> None:
    start = night.replace(tzinfo=UTC) - timedelta(hours=2)
    for minutes in range(0, 361, 15):
        moment = start + timedelta(minutes=minutes)
        texts = [
            f"{prefix}{moment.astimezone(zone).isoformat(timespec=precision)}"
            for zone in (UTC, PARIS)
        ]
        query, local = (ask(dates(text)) for text in texts)
        # The adapter sees an instant, and not how it was written.
        assert repr(local) == repr(query), texts
        expected = _found(nights.model.search(query).rows)
        assert _found(nights.adapter.search(query).rows) == expected, texts
        assert nights.adapter.count(query) == len(expected)


def _found(rows: tuple[Any, ...]) -> list[str]:
    return sorted(row.column if hasattr(row, "column") else row.id for row in rows)


ODD_HOURS = {
    Twice.FIRST: {
        # 02:30 summer time is the first 02:30 of that night, 02:30 winter time the other.
        "2024-10-27T02:30+02:00": 1,
        "2024-10-27T02:30+01:00": 0,
        "2024-10-27T00:30Z": 1,
        # The hour that never was: who is said to come in it is a fault of that day.
        "2024-03-31T03:00+02:00": 1,
        "2024-03-31T02:30+01:00": 1,
        "2024-03-31": 21,
        # A day of 25 hours.
        "2024-10-27": 21,
    },
    Twice.SECOND: {
        "2024-10-27T02:30+02:00": 0,
        "2024-10-27T02:30+01:00": 1,
        "2024-10-27T01:30Z": 1,
        # All of the hour that never was is three o'clock.
        "2024-03-31T03:00+02:00": 5,
    },
}


def test_odd_hours(nights: Opened) -> None:
    if len(nights.held(STAY)) < len(QUARTERS):
        pytest.skip("the hospital does not hold all hours of the nights")
    for value, found in ODD_HOURS[nights.hospital.twice].items():
        assert nights.adapter.count(ask(dates(value))) == found, value
