"""Columns that hold less than microseconds: no bound is one that the server rounds."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.mapping.time_rule import TimeRule
from adapters.sql.columns import Kind, day_bound, time_bound
from adapters.sql.places import TICK, place_of

UTC_ZONE = ZoneInfo("UTC")
RULE = TimeRule(UTC_ZONE, UTC_ZONE)
NOON = datetime(2024, 3, 14, 12)  # noqa: DTZ001 - as the column is
SECOND = 10**6


def _ticks(moment: datetime) -> int:
    """Cast to DATETIME as SQL Server does: the nearest 1/300 second since noon."""
    exact = Fraction((moment - NOON) // TICK * 300, SECOND)
    return (exact + Fraction(1, 2)) // 1


def _shown(ticks: int) -> datetime:
    """Return what the driver hands over of so many 1/300 seconds: .000, .003 or .007."""
    return NOON + timedelta(milliseconds=round(Fraction(ticks * 10, 3)))


def _cut(moment: datetime) -> int:
    """Cast to DATE as Oracle does today: the fraction is cut off."""
    return (moment - NOON) // timedelta(seconds=1)


def _nearest(moment: datetime) -> int:
    """Cast to DATE as Oracle did once: to the nearest second."""
    return (moment - NOON + timedelta(milliseconds=500)) // timedelta(seconds=1)


def _whole(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


CASTS = {
    "datetime": (Kind.TICK_TIME, _ticks, _shown),
    "date-cut": (Kind.SECOND_TIME, _cut, _whole),
    "date-nearest": (Kind.SECOND_TIME, _nearest, _whole),
}
"""Kind, how the server casts what it is sent, and how what it holds comes back."""

Cast = Callable[[datetime], int]
Show = Callable[[int], datetime]
NUMBERS = st.integers(-1000, 1000)


@pytest.mark.parametrize(("kind", "cast", "show"), CASTS.values(), ids=CASTS)
@given(number=NUMBERS, off=st.integers(-SECOND, SECOND))
@example(number=0, off=1)
@example(number=0, off=SECOND // 2)
def test_a_bound_holds_for_exactly_the_values_not_before_it(
    kind: Kind, cast: Cast, show: Show, number: int, off: int
) -> None:
    asked = (show(number) + off * TICK).replace(tzinfo=UTC)
    bound = time_bound(kind, RULE, asked)
    assert isinstance(bound, datetime)
    assert (number >= cast(bound)) is (off <= 0)


@pytest.mark.parametrize(("kind", "cast", "show"), CASTS.values(), ids=CASTS)
@given(number=NUMBERS)
def test_a_walk_goes_on_behind_a_value_and_at_the_next(
    kind: Kind, cast: Cast, show: Show, number: int
) -> None:
    """Of several sources each is asked from the instant of another's row."""
    at = place_of(kind, RULE, show(number))
    here, beyond = (time_bound(kind, RULE, moment) for moment in (at, at + TICK))
    assert isinstance(here, datetime)
    assert isinstance(beyond, datetime)
    assert cast(here) == number
    assert cast(beyond) == number + 1


@pytest.mark.parametrize(("kind", "cast", "show"), CASTS.values(), ids=CASTS)
@given(number=NUMBERS)
def test_a_key_comes_back_as_itself(
    kind: Kind, cast: Cast, show: Show, number: int
) -> None:
    assert cast(show(number)) == number


def test_bounds_stay_inside_what_the_column_holds() -> None:
    """SQL Server's DATETIME starts in 1753, and a CAST of anything else is an error."""
    first, last = datetime(1753, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 997000)  # noqa: DTZ001
    ancient = datetime.min.replace(tzinfo=UTC)
    distant = datetime.max.replace(tzinfo=UTC)
    assert time_bound(Kind.TICK_TIME, RULE, ancient) == first
    assert time_bound(Kind.TICK_TIME, RULE, distant) == last
    assert day_bound(Kind.TICK_TIME, RULE, ancient) == first
    assert time_bound(Kind.SECOND_TIME, RULE, distant) == last.replace(microsecond=0)
