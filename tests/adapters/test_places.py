"""The instant of a row is where comparisons with search bounds see it, exactly."""

from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mapping.time_rule import Never, TimeRule, Twice
from adapters.sql.columns import Kind, time_bound
from adapters.sql.places import FIRST, LAST, TICK, place_of
from adapters.testing.hospital import PARIS

UTC_ZONE = ZoneInfo("UTC")
RULES = [
    TimeRule(PARIS, PARIS, twice=twice, never=never, at=time())
    for twice in Twice
    for never in Never
]
# Clock times of the two nights on which the clocks change.
NIGHTS = ("2024-03-31", "2024-10-27")
HOURS = st.builds(
    lambda night, ticks: datetime.fromisoformat(night) + ticks * TICK,
    st.sampled_from(NIGHTS),
    st.integers(0, 5 * 3600 * 10**6),
)


@given(local=HOURS, rule=st.sampled_from(RULES), as_text=st.booleans())
def test_bounds_see_a_value_at_its_place(
    local: datetime, rule: TimeRule, as_text: bool
) -> None:
    kind = Kind.TEXT if as_text else Kind.LOCAL_TIME
    value: Any = f"{local:%Y-%m-%d %H:%M:%S.%f}" if as_text else local
    at = place_of(kind, rule, value)
    here: Any = time_bound(kind, rule, at)
    beyond: Any = time_bound(kind, rule, at + TICK)
    assert here <= value < beyond


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-03-14 10:00:00", datetime(2024, 3, 14, 9, tzinfo=UTC)),
        ("2024-03-14 10:00:00.500000", datetime(2024, 3, 14, 9, 0, 0, 500000, UTC)),
        # Shorter texts are compared as texts are.
        ("2024-03-14 10:00", datetime(2024, 3, 14, 9, tzinfo=UTC) - TICK),
        ("2024-03-31 02:30:00", datetime(2024, 3, 31, 1, tzinfo=UTC) - TICK),
        ("none", LAST),
        ("!", FIRST),
        (20240314, FIRST),
    ],
)
def test_texts(value: object, expected: datetime) -> None:
    rule = TimeRule(PARIS, PARIS)
    assert place_of(Kind.LOOSE, rule, value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (202403141000, datetime(2024, 3, 14, 9, tzinfo=UTC)),
        (Decimal(202403141000), datetime(2024, 3, 14, 9, tzinfo=UTC)),
        # An hour that never happens, a day that no calendar has.
        (202403310230, datetime(2024, 3, 31, 1, tzinfo=UTC) - TICK),
        (202402301000, datetime(2024, 2, 29, 22, 59, tzinfo=UTC)),
        (0, FIRST),
        (999999999999, LAST),
        ("none", LAST),
    ],
)
@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.NUMBER])
def test_numbers(kind: Kind, value: object, expected: datetime) -> None:
    rule = TimeRule(PARIS, PARIS, format="%Y%m%d%H%M")
    assert place_of(kind, rule, value) == expected


def test_instants_are_what_they_are() -> None:
    rule = TimeRule(UTC_ZONE, PARIS)
    moment = datetime(2024, 3, 14, 10, tzinfo=PARIS)
    assert place_of(Kind.INSTANT, rule, moment) == moment
    assert place_of(Kind.INSTANT, rule, datetime.max.replace(tzinfo=UTC)) == LAST
