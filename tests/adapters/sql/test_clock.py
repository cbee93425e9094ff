"""`:now` and `:today` in a SELECT: the time on the clocks of the hospital (decision 29)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.base import MARK
from tests.adapters.emptied import stays, table
from toolkit.contract.harness import STAY, ask, ids_of, token
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
UTC_ZONE = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("url", "type_", "zone"),
    [
        ("sqlite", "TIMESTAMP", PARIS),
        ("postgresql", "TIMESTAMP", PARIS),
        ("postgresql", "TIMESTAMP WITH TIME ZONE", UTC_ZONE),
        ("mariadb", "DATETIME", PARIS),
    ],
    indirect=["url"],
)
def test_stays_are_compared_with_the_local_time_and_day(opened, type_, zone):
    now = datetime.now(UTC).astimezone(zone)
    # Within two hours: a clock in UTC is wrong about one of them, summer or winter.
    times = [now + timedelta(minutes=minutes) for minutes in (-90, -20, 20, 90)]
    days = [(now + timedelta(days=days)).date() for days in (-2, -2, 2, 2)]
    rows = (
        f"{id}, '{time:%Y-%m-%d %H:%M:%S}', '{day}'"
        for id, (time, day) in enumerate(zip(times, days, strict=True))
    )
    adapter = opened(
        MAPPING, table("stays", f"id INTEGER, began {type_}, day DATE", *rows)
    )
    assert ids_of(adapter.search(ask(token("status", "planned")))) == ["3", "2"]
    assert adapter.count(ask(token("status", "finished"))) == 2
    assert ids_of(adapter.search(ask(token("identifier", "after")))) == ["3", "2"]
    record = adapter.read(STAY, "3")
    assert (record.status, record.visit_number) == ("planned", "after")
    assert record.functional_unit == "at :now"


BOUND = {
    "SELECT ':now', a::text FROM t": (),
    'SELECT `:now`, ":today" FROM t -- :now': (),
    "SELECT 1 /* :now\n:today */": (),
    "SELECT a::now, b:now, :nowhere": (),
    "SELECT 'it''s', :now WHERE d=:today": ("now", "today"),
    "SELECT :today, :now, :today": ("today", "now", "today"),
}


def test_only_the_two_names_outside_of_texts_and_comments_are_bound():
    dialect = dialect_named("sqlite")
    for rows, names in BOUND.items():
        text, times = dialect.bound(rows)
        assert times == names, rows
        assert text.count(MARK) == len(names)
        assert (text == rows) is not bool(names)
        described = dialect.described(rows)
        assert (described != rows) is bool(names)
        assert dialect.bound(described) == (described, ())
