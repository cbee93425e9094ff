"""Values of a source: what is absent, and codes as a row holds them."""

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mapping.values import PLAIN, as_text, as_they_come, presence

SENTINELS = (
    "9999-12-31",
    "9999-12-31 23:59:59",
    "2999-12-31 00:00:00",
    "31/12/2999",
    "1900-01-01 00:00:00+00:00",
    "-",
)
YEARS = st.sampled_from([1900, 2024, 2999, 9999])
DAYS = st.builds(date, YEARS, st.sampled_from([1, 12]), st.sampled_from([1, 31]))
TIMES = st.builds(
    lambda day, clock, zone: datetime(
        day.year, day.month, day.day, *clock, tzinfo=zone
    ),
    DAYS,
    st.sampled_from([(0, 0, 0), (23, 59, 59), (0, 0, 0, 1)]),
    st.sampled_from([None, UTC]),
)


@given(DAYS | TIMES, st.sets(st.sampled_from(SENTINELS), min_size=1))
def test_a_sentinel_is_told_by_how_it_is_written(
    value: date, absent: Collection[str]
) -> None:
    written = str(value)
    is_sentinel = bool({written, written.removesuffix(" 00:00:00")} & {*absent})
    present = presence(frozenset(absent))(value)
    assert present is (None if is_sentinel else value)


@pytest.mark.parametrize(
    "value", ["7", "07", 7, 7.0, Decimal("7.0"), True, "true", "x", -7, 8]
)
def test_a_code_is_found_by_what_it_is_written_as(value: object) -> None:
    made = {"7": "seven", "07": "padded", "true": "yes", "-7": "less"}
    known = as_they_come(made)
    if type(value) in PLAIN and value in known:
        assert known[value] == made[as_text(value)]


CLOCKS = {
    timedelta(): "00:00:00",
    timedelta(hours=8, minutes=5): "08:05:00",
    timedelta(hours=23, minutes=59, seconds=59): "23:59:59",
    timedelta(hours=9, microseconds=1): "09:00:00.000001",
}


@pytest.mark.parametrize(("value", "text"), CLOCKS.items())
def test_a_time_of_day_is_one_in_every_database(value: timedelta, text: str) -> None:
    """MariaDB's driver makes a span of a TIME, the others a time."""
    assert as_text(value) == as_text(time.fromisoformat(text)) == text
    assert presence(frozenset({text}))(value) is None
    assert presence(frozenset({"12:34:56"}))(value) is value


@pytest.mark.parametrize("value", [timedelta(days=1), timedelta(seconds=-1)])
def test_a_span_that_is_no_time_of_day_is_no_text(value: timedelta) -> None:
    with pytest.raises(ValueError, match="make one in the SELECT"):
        as_text(value)
    assert presence(frozenset({"00:00:00"}))(value) is value
