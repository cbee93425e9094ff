"""Values of a source: what is absent, and codes as a row holds them."""

from collections.abc import Collection
from datetime import UTC, date, datetime
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
