"""Values as columns of each kind hold them, and the instants at which they stand."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.mapping.binary import BinaryForm, text_of
from adapters.mapping.model import Never, TimeRule, Twice
from adapters.sql.columns import (
    TICK,
    ColumnKind,
    day_bound,
    held,
    instant_of,
    time_bound,
)
from toolkit.contract.hospital import PARIS

A_UUID = "2d1c2b1e-0000-4000-8000-00000000000a"
MIDNIGHT = datetime(2024, 3, 14)  # noqa: DTZ001 - as the column is
TEN = datetime(2024, 3, 14, 10)  # noqa: DTZ001

HELD = {
    ColumnKind.INTEGER: {str(n): n for n in (0, 42, -42, 2**63 - 1, -(2**63))},
    ColumnKind.WIDE: {str(n): n for n in (-42, 42, 2**64 - 1)},
    ColumnKind.NUMBER: {n: Decimal(n) for n in ("0", "-0.5", "10.05", "9" * 30)},
    ColumnKind.DOUBLE: {n: float(n) for n in ("0", "-0.5", "0.1", str(2**53))},
    ColumnKind.SINGLE: {"42": Decimal(42)},
    ColumnKind.UUID: {A_UUID: UUID(A_UUID)},
    ColumnKind.BINARY: {"00ff": b"\0\xff", "a" * 64: b"\xaa" * 32},
    ColumnKind.DATE: {
        "2024-03-14": date(2024, 3, 14),
        "2024-03-14 00:00": date(2024, 3, 14),
    },
    ColumnKind.LOCAL_TIME: {"2024-03-14": MIDNIGHT, "2024-03-14T10:00": TEN},
    ColumnKind.FINE_TIME: {
        "2024-03-14": "2024-03-14 00:00:00.000000",
        "9999-12-31T23:59:59.9999999": "9999-12-31 23:59:59.9999999",
        "2024-W11-4T10:00:00.1234567": "2024-03-14 10:00:00.1234567",
    },
    ColumnKind.INSTANT: {"2024-03-14T10:00:00+00:00": TEN.replace(tzinfo=UTC)},
    ColumnKind.TEXT: {"a b": "a b", "": "", "042": "042"},
    ColumnKind.FILLED: {"a": "a", "a ": "a "},
    ColumnKind.PADDED: {"a": "a"},
}
"""What a column of a kind can equal."""

NOT_HELD = {
    ColumnKind.INTEGER: "|-0|007|+7|4.0|1e3|abc| 7|7 |7\n|\u0663|"
    f"{2**63}|{-(2**63) - 1}|{'9' * 5000}",
    ColumnKind.NUMBER: "|-0|007|1.50|1.|.5|1e3|NaN|Infinity|7\n",
    # The last two are nearest to a float that is shown as another number.
    ColumnKind.DOUBLE: f"|-0|007|1.50|1e3|NaN|{2**53 + 1}|0.10000000000000001",
    ColumnKind.UUID: f"|abc|{A_UUID.upper()}|{A_UUID.replace('-', '')}|{{{A_UUID}}}",
    ColumnKind.BINARY: f"|0|00FF|0x00ff|00 ff|{{00ff}}|00ff\n|{A_UUID}|é",
    ColumnKind.DATE: "|abc|2024-02-30|2024-03-14T10:00|2024-03-14T00:00+00:00",
    ColumnKind.LOCAL_TIME: "|abc|2024-03-14T10:00Z|2024-03-14T25:00",
    ColumnKind.FINE_TIME: "|abc|2024-03-14T10:00Z|2024-02-30 00:00:00.0000001",
    ColumnKind.INSTANT: "|2024-03-14T10:00|2024-03-14",
    # A cell never has them, and some databases find that they make no difference.
    ColumnKind.TEXT: "a | ",
    ColumnKind.FILLED: "",
    ColumnKind.PADDED: "|a ",
}
"""What none can; the first text is mostly the empty one."""


def test_a_value_is_found_as_its_column_holds_it():
    for kind, values in HELD.items():
        for text, value in values.items():
            (found,) = held(kind, text)
            assert (found, type(found)) == (value, type(value)), text
        others = NOT_HELD[kind].split("|") if kind in NOT_HELD else []
        for text in (*others, "4\0002", "\ud800", "a\udfff"):
            assert held(kind, text) == (), text
    # A column without a type holds a number and its text.
    assert held(ColumnKind.LOOSE, "42") == ("42", 42, b"B")
    assert held(ColumnKind.LOOSE, "042") == ("042",)
    assert held(ColumnKind.LOOSE, "0a") == ("0a", b"\n")
    assert held(ColumnKind.LOOSE, "4\0002") == ()


def test_bytes_are_written_and_read_in_each_form():
    """The bytes are those of `UUID_TO_BIN(…)` and `UUID_TO_BIN(…, 1)` in MySQL's manual."""
    uuid = "6ccd780c-baba-1026-9564-5b8c656024db"
    for form, digits in (
        (BinaryForm.UUID, "6ccd780cbaba102695645b8c656024db"),
        (BinaryForm.SWAPPED, "1026baba6ccd780c95645b8c656024db"),
    ):
        value = bytes.fromhex(digits)
        assert text_of(value, form) == uuid
        assert held(ColumnKind.BINARY, uuid, form) == (value,)
        for other in (uuid.upper(), f"{{{uuid}}}", digits, uuid[:-1], f"{uuid}0", ""):
            assert held(ColumnKind.BINARY, other, form) == ()
        with pytest.raises(ValueError, match="15 bytes"):
            text_of(value[1:], form)


RULES = [
    TimeRule(PARIS, PARIS, twice=twice, never=never, at=time())
    for twice in Twice
    for never in Never
]
# Clock times of the two nights on which the clocks change.
HOURS = st.builds(
    lambda night, ticks: datetime.fromisoformat(night) + ticks * TICK,
    st.sampled_from(("2024-03-31", "2024-10-27")),
    st.integers(0, 5 * 3600 * 10**6),
)
WRITTEN = {
    ColumnKind.LOCAL_TIME: "",
    ColumnKind.TEXT: "%Y-%m-%d %H:%M:%S.%f",
    ColumnKind.FINE_TIME: "%Y-%m-%d %H:%M:%S.%f7",
}


@given(local=HOURS, rule=st.sampled_from(RULES), kind=st.sampled_from([*WRITTEN]))
def test_bounds_see_a_value_at_its_place(local, rule, kind):
    form = WRITTEN[kind]
    value = local.strftime(form) if form else local
    at = instant_of(kind, rule, value)
    assert time_bound(kind, rule, at) <= value < time_bound(kind, rule, at + TICK)


UTC_ZONE = ZoneInfo("UTC")
RULE = TimeRule(UTC_ZONE, UTC_ZONE)
NOON = datetime(2024, 3, 14, 12)  # noqa: DTZ001 - as the column is
SECOND = 10**6


def _ticks(moment):
    """Cast to DATETIME as SQL Server does: the nearest 1/300 second since noon."""
    exact = Fraction((moment - NOON) // TICK * 300, SECOND)
    return (exact + Fraction(1, 2)) // 1


def _shown(ticks):
    """Return what the driver hands over of so many 1/300 seconds: .000, .003 or .007."""
    return NOON + timedelta(milliseconds=round(Fraction(ticks * 10, 3)))


def _cut(moment):
    """Cast to DATE as Oracle does today: the fraction is cut off."""
    return (moment - NOON) // timedelta(seconds=1)


def _nearest(moment):
    """Cast to DATE as Oracle did once: to the nearest second."""
    return (moment - NOON + timedelta(milliseconds=500)) // timedelta(seconds=1)


def _whole(seconds):
    return NOON + timedelta(seconds=seconds)


CASTS = {
    "datetime": (ColumnKind.TICK_TIME, _ticks, _shown),
    "date-cut": (ColumnKind.SECOND_TIME, _cut, _whole),
    "date-nearest": (ColumnKind.SECOND_TIME, _nearest, _whole),
}
"""Kind, how the server casts what it is sent, and how what it holds comes back."""


@pytest.mark.parametrize(("kind", "cast", "show"), CASTS.values(), ids=CASTS)
@given(number=st.integers(-1000, 1000), off=st.integers(-SECOND, SECOND))
@example(number=0, off=1)
@example(number=0, off=SECOND // 2)
def test_a_bound_holds_for_exactly_the_values_not_before_it(
    kind, cast, show, number, off
):
    asked = (show(number) + off * TICK).replace(tzinfo=UTC)
    assert (number >= cast(time_bound(kind, RULE, asked))) is (off <= 0)
    # A walk goes on behind a value, and at the next: of several sources each is asked
    # from the instant of another's row.
    at = instant_of(kind, RULE, show(number))
    assert cast(time_bound(kind, RULE, at)) == number
    assert cast(time_bound(kind, RULE, at + TICK)) == number + 1


def test_bounds_stay_inside_what_the_column_holds():
    """SQL Server's DATETIME starts in 1753, and a CAST of anything else is an error."""
    first, last = datetime(1753, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 997000)  # noqa: DTZ001
    ancient = datetime.min.replace(tzinfo=UTC)
    distant = datetime.max.replace(tzinfo=UTC)
    assert time_bound(ColumnKind.TICK_TIME, RULE, ancient) == first
    assert time_bound(ColumnKind.TICK_TIME, RULE, distant) == last
    assert day_bound(ColumnKind.TICK_TIME, RULE, ancient) == first
    whole = last.replace(microsecond=0)
    assert time_bound(ColumnKind.SECOND_TIME, RULE, distant) == whole
