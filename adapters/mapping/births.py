"""Birth dates: days, or what is known of them, a year or a month.

A half-known date is the text that FHIR has for it (1950, 1950-06). A search compares the
days from its first to its last one. In a source it is such a text, one with zeros
(1950-00-00, 1950-06-00), also in the format of the column, or a number of a year.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, Self

from adapters.mapping.model import TimeRule
from adapters.mapping.times import EPOCHS, digits_of, directives, in_format, read_day
from adapters.mapping.values import as_text

_IN_ISO = re.compile(r"(?P<Y>\d{4})(-(?P<m>\d\d)(-00( 00:00:00)?)?)?", re.ASCII)
_SPELLED = {"Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d\d)", "m": r"(?P<m>\d\d)"}
_DAY = timedelta(days=1)


class Partial(NamedTuple):
    """A year, or a month of one where `month` is not 0."""

    year: int
    month: int = 0

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}" if self.month else f"{self.year:04}"

    @property
    def first(self) -> date:
        """The first day."""
        return date(self.year, self.month or 1, 1)

    @property
    def last(self) -> date:
        """The last day."""
        month = self.month or 12
        after = date(self.year + month // 12, month % 12 + 1, 1)
        return after - _DAY

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what a text of FHIR says, 1950 or 1950-06."""
        return cls(*map(int, text.split("-")))

    @classmethod
    def beginning(cls, day: date) -> "Partial | None":
        """Return the longest period that begins with a day, None for one within a month."""
        if day.day > 1:
            return None
        return cls(day.year, 0 if day.month == 1 else day.month)

    @classmethod
    def around(cls, day: date) -> "Iterator[Partial]":
        """Yield the year and month of a day, without those that begin with the day."""
        if (day.month, day.day) != (1, 1):
            yield cls(day.year)
        if day.day > 1:
            yield cls(day.year, day.month)


def days_of(birth: date | str) -> tuple[date, date]:
    """Return the first and the last day that a birth date may be."""
    if isinstance(birth, str):
        partial = Partial.of(birth)
        return partial.first, partial.last
    return birth, birth


def read_birth(value: object, rule: TimeRule, today: date) -> date | str:
    """Return the birth date of a source value, as text where its day is not known.

    Two digits of a year are of the last hundred years. Raises ValueError with a rule that
    quotes no value, also for a day after `today`.
    """
    birth: date | str
    try:
        first = birth = read_day(value, rule)
    except ValueError:
        partial = _partial(value, rule, today)
        if partial is None:
            raise
        first = partial.first
        birth = str(partial)
    else:
        if rule.format and "y" in directives(rule.format):
            first = birth = _of_last_century(birth, today)
    if first > today:
        raise ValueError("a birth in the future")
    return birth


def _of_last_century(day: date, today: date) -> date:
    """Return a day with another century, so that it is within the hundred years before today."""
    year = today.year - (today.year - day.year) % 100
    birth = day.replace(year=year)
    return birth.replace(year=year - 100) if birth > today else birth


def _partial(value: object, rule: TimeRule, today: date) -> Partial | None:
    """Return the year or month that a value names, None where it names a day or nothing."""
    if rule.format in EPOCHS or isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = as_text(value)
    elif isinstance(value, (int, Decimal)):
        text = digits_of(value, rule.format) if rule.format else as_text(value)
        # Without a format, a number is the four digits of a year.
        if rule.format is None and len(text) != 4:
            return None
    else:
        return None
    if not text.strip("0/.- :"):
        # Zeros alone are no date, also where two digits would be the year 2000.
        return None
    match = _pattern(rule.format).fullmatch(text)
    if match is None:
        return None
    groups = match.groupdict()
    month = int(groups["m"] or 0)
    year = int(groups.get("Y") or today.year - (today.year - int(groups["y"])) % 100)
    return Partial(year, month) if year and month <= 12 else None


@lru_cache
def _pattern(form: str | None) -> re.Pattern[str]:
    """Return the pattern of texts in a format whose day is 00; it may match none."""
    if form is None:
        return _IN_ISO
    if not {"m", "d"} <= directives(form):
        # This matches no text.
        return re.compile("(?!)")
    # Texts between directives stand at even places, the letters of directives at odd ones.
    parts = re.split("%(:z|.)", form)
    patterns = {"d": "00", "%": "%", **_SPELLED}
    parts[::2] = [re.escape(text) for text in parts[::2]]
    parts[1::2] = [patterns.get(letter, ".+?") for letter in parts[1::2]]
    return re.compile("".join(parts), re.ASCII | re.DOTALL)


def written(partial: Partial, form: str | None) -> tuple[str, ...]:
    """Return the texts that a source may have for a year or a month; the lowest comes first."""
    if form is not None:
        return (in_format(partial.first, _with_zeros(form, partial)),)
    text = str(partial)
    if partial.month:
        return (text, f"{text}-00", f"{text}-00 00:00:00")
    return (text, f"{text}-00", f"{text}-00-00", f"{text}-00-00 00:00:00")


def _with_zeros(form: str, partial: Partial) -> str:
    """Return a format with 00 in place of what is not known: the day, and perhaps the month."""
    form = form.replace("%d", "00")
    return form if partial.month else form.replace("%m", "00")
