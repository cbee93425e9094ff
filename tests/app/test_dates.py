"""Date values as intervals: how precise they are, and where they begin and end."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from app.dates import parse_date

PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("2024", "2023-12-31T23:00Z", "2024-12-31T23:00Z"),
        ("2024-02", "2024-01-31T23:00Z", "2024-02-29T23:00Z"),
        ("2024-03", "2024-02-29T23:00Z", "2024-03-31T22:00Z"),
        ("2024-12", "2024-11-30T23:00Z", "2024-12-31T23:00Z"),
        ("2024-03-31", "2024-03-30T23:00Z", "2024-03-31T22:00Z"),
        ("2024-03-14T10:05", "2024-03-14T09:05Z", "2024-03-14T09:06Z"),
        ("2024-03-14T10:05:07", "2024-03-14T09:05:07Z", "2024-03-14T09:05:08Z"),
        ("2024-03-14T10:05:00Z", "2024-03-14T10:05:00Z", "2024-03-14T10:05:01Z"),
        (
            "2024-03-14T10:05:07.25Z",
            "2024-03-14T10:05:07.250Z",
            "2024-03-14T10:05:07.260Z",
        ),
        (
            "2024-03-14T10:05:07.1234567-03:30",
            "2024-03-14T13:35:07.123456Z",
            "2024-03-14T13:35:07.123457Z",
        ),
        ("2024-03-14T10:05+14:00", "2024-03-13T20:05Z", "2024-03-13T20:06Z"),
        ("2024-03-14T10:05+05:59", "2024-03-14T04:06Z", "2024-03-14T04:07Z"),
        # Beyond what every zone can express a value is the end of the calendar: a midnight
        # of the zone, so that a source which compares whole days can be asked for it.
        ("0999-05-01", "1000-12-31T23:50:39Z", "1000-12-31T23:50:39Z"),
        ("1001", "1000-12-31T23:50:39Z", "1001-12-31T23:50:39Z"),
        ("9998-12-31", "9998-12-30T23:00Z", "9998-12-31T23:00Z"),
        ("9999-12-31T23:59:59", "9998-12-31T23:00Z", "9998-12-31T23:00Z"),
    ],
)
def test_a_date_is_as_long_as_it_is_precise(text: str, low: str, high: str) -> None:
    found = parse_date(text, PARIS)
    expected = (datetime.fromisoformat(low), datetime.fromisoformat(high))
    assert (found.low, found.high) == expected
