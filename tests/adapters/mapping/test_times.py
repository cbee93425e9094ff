"""Source values and instants, around both clock changes and far from them."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mapping.model import Never, TimeRule, Twice
from adapters.mapping.times import join_parts, presence, read_day, to_instant, to_local
from adapters.mapping.values import as_text

PARIS = ZoneInfo("Europe/Paris")
UTC_ZONE = ZoneInfo("UTC")
TICK = timedelta(microseconds=1)

# Half an hour of change, a whole skipped day, minutes of local mean time, and the usual.
ZONES = (
    *(PARIS, UTC_ZONE, ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")),
    *(ZoneInfo("Pacific/Apia"), ZoneInfo("Africa/Monrovia")),
    *(ZoneInfo("Africa/Casablanca"), ZoneInfo("Asia/Beirut")),
)


def rule(**options):
    return TimeRule(**{"zone": PARIS, "written": PARIS, **options})


def local(text):
    return datetime.fromisoformat(text)


READ = (
    # spring: 02:00 to 03:00 never happens
    ("2024-03-31 01:59:59", {}, "2024-03-31T01:59:59+01:00"),
    ("2024-03-31 02:30", {"never": Never.SHIFT}, "2024-03-31T03:00:00+02:00"),
    # autumn: 02:00 to 03:00 happens twice
    ("2024-10-27 02:30", {}, "2024-10-27T02:30:00+02:00"),
    ("2024-10-27 02:30", {"twice": Twice.SECOND}, "2024-10-27T02:30:00+01:00"),
    # written in another zone than read
    ("2024-07-15 08:00", {"zone": UTC_ZONE}, "2024-07-15T10:00:00+02:00"),
    # an offset that is not whole minutes, and the end of time
    ("1905-06-01 12:00", {}, "1905-06-01T11:50:39+00:00"),
    ("9999-12-31 23:59", {}, "9999-12-31T23:59:00+01:00"),
)
FORMS = (
    (date(2024, 3, 30), {"at": time()}, "2024-03-30T00:00:00+01:00"),
    ("2024W13", {"at": time(8)}, "2024-03-25T08:00:00+01:00"),
    ("2024-03-30T08:15:00-05:00", {}, "2024-03-30T14:15:00+01:00"),
    ("30/03/2024", {"format": "%d/%m/%Y", "at": time(8)}, "2024-03-30T08:00:00+01:00"),
    (202403300815, {"format": "%Y%m%d%H%M"}, "2024-03-30T08:15:00+01:00"),
    ("20240330 0815 +0500", {"format": "%Y%m%d %H%M %z"}, "2024-03-30T04:15:00+01:00"),
    (
        datetime(2024, 10, 27, 2, 30, tzinfo=PARIS, fold=1),
        {"twice": Twice.REFUSE},
        "2024-10-27T02:30:00+01:00",
    ),
)


def test_local_times_and_other_forms():
    for text, options, expected in READ:
        for value in (text, local(text)):
            assert to_instant(value, rule(**options)).isoformat() == expected, text
    for value, options, expected in FORMS:
        assert to_instant(value, rule(**options)).isoformat() == expected, value


NO_TIME_OF_DAY = 'a date without a time of day: add at: "00:00"'
BEYOND = "outside the years 1 to 9999"
FIRST_IN_EAST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
UNREADABLE = (
    (local("2024-03-31 02:30"), {}, "a local time that does not exist (clock change)"),
    (
        local("2024-10-27 02:30"),
        {"twice": Twice.REFUSE},
        "a local time that happens twice (clock change)",
    ),
    (date(2024, 3, 30), {}, NO_TIME_OF_DAY),
    ("30/03/2024", {"format": "%d/%m/%Y"}, NO_TIME_OF_DAY),
    ("Dupont", {}, "not readable as a time"),
    ("0044-03-15 12:00:00 BC", {}, BEYOND),
    (FIRST_IN_EAST, {}, BEYOND),
    ("2024-03-30 08:15", {"format": "%d/%m/%Y"}, "not readable as %d/%m/%Y"),
    (20240330, {}, "not a time"),
)


def test_unreadable():
    for value, options, text in UNREADABLE:
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            to_instant(value, rule(**options))


PARTS = (
    (local("2024-03-30"), "08:15:30", {}, "2024-03-30T08:15:30+01:00"),
    ("2024-03-30", "0815", {}, "2024-03-30T08:15:00+01:00"),
    (date(2024, 3, 30), local("1900-01-01 08:15"), {}, "2024-03-30T08:15:00+01:00"),
    (date(2024, 3, 30), None, {"at": time(7)}, "2024-03-30T07:00:00+01:00"),
    ("30/03/2024", "8h15", {"format": "%d/%m/%Y %Hh%M"}, "2024-03-30T08:15:00+01:00"),
)


def test_a_date_and_its_time_of_day():
    for day, clock, options, expected in PARTS:
        joined = join_parts(day, clock, rule(**options))
        assert to_instant(joined, rule(**options)).isoformat() == expected, clock
    for clock in ("8h", "25:00", timedelta(hours=24), 8.5):
        with pytest.raises(ValueError, match=r"^not readable as a time of day$"):
            join_parts(date(2024, 3, 30), clock, rule())


DAYS = (
    (date(1990, 2, 1), {}),
    (19900201, {"format": "%Y%m%d"}),
    (datetime(1990, 1, 31, 23, tzinfo=UTC), {}),
)


def test_days():
    for value, options in DAYS:
        assert read_day(value, rule(**options)) == date(1990, 2, 1), value


EPOCHS = (
    ("1710406800", "epoch", "2024-03-14T10:00:00+01:00"),
    (Decimal("1710406800.25"), "epoch", "2024-03-14T10:00:00.250000+01:00"),
    (1710406800001, "epoch-ms", "2024-03-14T10:00:00.001000+01:00"),
    (-1, "epoch", "1970-01-01T00:59:59+01:00"),
)


def test_numbers_since_1970():
    for value, form, expected in EPOCHS:
        assert to_instant(value, rule(format=form)).isoformat() == expected
    for value in ("", "1e9", True, 10**15, [1]):
        with pytest.raises(ValueError, match=r"not a number|outside the years"):
            to_instant(value, rule(format="epoch"))


def test_years_of_two_digits_are_of_a_hundred_years():
    for pivot, year in ((1970, 2045), (1946, 2045), (1945, 1945), (1900, 1945)):
        options = {"format": "%d/%m/%y %H:%M", "pivot": pivot}
        assert to_instant("14/03/45 10:00", rule(**options)).year == year, pivot


CHANGES = [
    datetime.fromisoformat(f"{text}Z")
    for text in (
        *("2024-03-31T01:00", "2024-10-27T01:00", "1911-03-10T23:50"),
        *("2024-03-10T07:00", "2024-11-03T06:00", "2024-04-06T15:00"),
        *("2011-12-30T10:00", "1972-01-07T00:44", "2019-05-05T02:00"),
    )
]
"""Instants about which the offset of a zone changes."""


@st.composite
def moments(draw):
    """A rule, and an instant that is likely to be near a change of its zone."""
    made = TimeRule(
        draw(st.sampled_from(ZONES)),
        draw(st.sampled_from(ZONES)),
        twice=draw(st.sampled_from(list(Twice))),
        never=draw(st.sampled_from(list(Never))),
    )
    anywhere = st.datetimes(datetime(1905, 1, 1), datetime(2030, 1, 1))  # noqa: DTZ001
    near = st.builds(
        lambda change, minutes, ticks: (
            change + timedelta(minutes=minutes) + ticks * TICK
        ),
        st.sampled_from(CHANGES),
        st.integers(-180, 180),
        st.integers(-2, 2),
    )
    return made, draw(near | anywhere.map(lambda moment: moment.replace(tzinfo=UTC)))


def instant_or_none(value, made):
    try:
        return to_instant(value, made)
    except ValueError:
        return None


@given(moments(), st.timedeltas(timedelta(0), timedelta(hours=30)))
def test_a_bound_is_the_smallest_value_that_is_not_before(moment, earlier):
    made, instant = moment
    bound = to_local(instant, made)
    at_bound = instant_or_none(bound, made)
    assert at_bound is not None
    assert at_bound >= instant
    for before in (TICK, earlier, timedelta(minutes=30), timedelta(hours=1)):
        value = instant_or_none(bound - before, made) if before else None
        assert value is None or value < instant


BOUNDS = (
    # The hour from 00:00Z is repeated from 01:00Z.
    ("2024-10-27T00:30:00Z", {}, "2024-10-27 02:30"),
    ("2024-10-27T01:30:00Z", {}, "2024-10-27 03:00"),
    ("2024-10-27T00:30:00Z", {"twice": Twice.SECOND}, "2024-10-27 02:00"),
    ("2024-10-27T01:30:00Z", {"twice": Twice.SECOND}, "2024-10-27 02:30"),
)


def test_bounds_of_the_hour_that_happens_twice():
    for instant, options, expected in BOUNDS:
        assert to_local(local(instant), rule(**options)) == local(expected), instant


def test_a_time_of_day_is_one_in_every_database():
    """MariaDB's driver makes a span of a TIME, the others a time."""
    for value, text in (
        (timedelta(), "00:00:00"),
        (timedelta(hours=8, minutes=5), "08:05:00"),
        (timedelta(hours=9, microseconds=1), "09:00:00.000001"),
    ):
        assert as_text(value) == as_text(time.fromisoformat(text)) == text
        assert presence(frozenset({text}))(value) is None
        assert presence(frozenset({"12:34:56"}))(value) is value
    for value in (timedelta(days=1), timedelta(seconds=-1)):
        with pytest.raises(ValueError, match="in the SELECT"):
            as_text(value)
        assert presence(frozenset({"00:00:00"}))(value) is value
