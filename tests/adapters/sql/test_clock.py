"""`:now` and `:today` in a SELECT: the time on the clocks of the hospital (decision 29)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from adapters.contract import EncounterRecord, ResourceType
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.base import MARK
from tests.adapters.emptied import Opened, stays, table
from toolkit.contract.harness import ask, ids_of, token
from toolkit.contract.hospital import PARIS

MAPPING = "codes: {status: {table: {past: finished, coming: planned}}}\n" + stays(
    """\
SELECT id, 'at :now' AS unit, -- :today
  CASE WHEN began > :now THEN 'coming' ELSE 'past' END AS state,
  CASE WHEN day > :today THEN 'after' ELSE 'before' END AS days
FROM stays""",
    "_id, status, identifier",
    functional_unit="unit",
    status="state, codes: status",
    visit_number="days",
)

MINUTES = (-90, -20, 20, 90)
"""Within two hours of now: a clock in UTC is wrong about one of them, summer or winter."""


def filled(type_: str, zone: ZoneInfo) -> tuple[str, ...]:
    """Return statements that make stays before and after the present time."""
    now = datetime.now(UTC).astimezone(zone)
    times = [now + timedelta(minutes=minutes) for minutes in MINUTES]
    days = [(now + timedelta(days=days)).date() for days in (-2, -2, 2, 2)]
    rows = (
        f"{id}, '{time:%Y-%m-%d %H:%M:%S}', '{day}'"
        for id, (time, day) in enumerate(zip(times, days, strict=True))
    )
    return table("stays", f"id INTEGER, began {type_}, day DATE", *rows)


def test_stays_are_compared_with_the_local_time_and_day(
    opened: Opened, url: str
) -> None:
    local = "DATETIME" if url.startswith("mysql") else "TIMESTAMP"
    adapter = opened(MAPPING, filled(local, PARIS))
    assert ids_of(adapter.search(ask(token("status", "planned")))) == ["3", "2"]
    assert adapter.count(ask(token("status", "finished"))) == 2
    assert ids_of(adapter.search(ask(token("identifier", "after")))) == ["3", "2"]
    record = adapter.read(ResourceType.ENCOUNTER, "3")
    assert isinstance(record, EncounterRecord)
    assert (record.status, record.visit_number) == ("planned", "after")
    assert record.functional_unit == "at :now"


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_postgresql_compares_an_instant_with_the_instant(opened: Opened) -> None:
    instant = "TIMESTAMP WITH TIME ZONE"
    adapter = opened(MAPPING, filled(instant, ZoneInfo("UTC")))
    assert ids_of(adapter.search(ask(token("status", "planned")))) == ["3", "2"]


BOUND: dict[str, tuple[str, ...]] = {
    "SELECT ':now', a::text FROM t": (),
    'SELECT `:now`, ":today" FROM t -- :now': (),
    "SELECT 1 /* :now\n:today */": (),
    "SELECT a::now, b:now, :nowhere": (),
    "SELECT 'it''s', :now WHERE d=:today": ("now", "today"),
    "SELECT :today, :now, :today": ("today", "now", "today"),
}


def test_only_the_two_names_outside_of_texts_and_comments_are_bound() -> None:
    dialect = dialect_named("sqlite")
    for rows, names in BOUND.items():
        text, times = dialect.bound(rows)
        assert times == names, rows
        assert text.count(MARK) == len(names)
        assert (text == rows) is not bool(names)
        described = dialect.described(rows)
        assert (described != rows) is bool(names)
        assert dialect.bound(described) == (described, ())
