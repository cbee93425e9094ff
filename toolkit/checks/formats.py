"""The format to write for a column of texts, so that searches compare them as times."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from adapters.mapping.births import read_birth
from adapters.mapping.model import FieldMapping
from adapters.mapping.times import to_instant
from adapters.sql.columns import ColumnKind
from adapters.sql.texts import compare_as_read

_DAYS = ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d")
_CLOCKS = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H%M%S", "%H%M")
_SUFFIX = re.compile(
    r"(?<=[\d ])( ?Z| ?UTC|(?<=[:\d]{5}) ?[+-]\d\d(:?\d\d)?)$", re.IGNORECASE
)


def format_of(values: Sequence[object], kind: ColumnKind, field: FieldMapping) -> str:
    """Return the `format` with which all texts of a column compare as times, "" for none.

    It is in the words of the mapping file, with `time_zone` if the texts name a zone.
    """
    assert field.time is not None, "the column is one of times"
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    for form, zone in _candidates(texts, field):
        rule = replace(field.time, format=form)
        remedy = f'format: "{form}"'
        if zone:
            rule = replace(rule, zone=ZoneInfo(zone))
            remedy += f", time_zone: {zone}"
        candidate = replace(field, time=rule)
        if all(_fits(text, kind, field, candidate) for text in texts):
            return remedy
    return ""


def _fits(
    text: str, kind: ColumnKind, field: FieldMapping, candidate: FieldMapping
) -> bool:
    """Whether a text means the same time with another format, and sorts as that time."""
    try:
        is_same = _meaning(text, candidate) == _meaning(text, field)
    except ValueError:
        return False
    return is_same and compare_as_read(kind, candidate, text)


def _meaning(text: str, field: FieldMapping) -> object:
    """Return the time or the birth date that a text means. Raises ValueError."""
    assert field.time is not None, "the column is one of times"
    if field.slot == "birth_date":
        return read_birth(text.rstrip(), field.time, date.max)
    return to_instant(text.rstrip(), field.time)


def _candidates(texts: Sequence[str], field: FieldMapping) -> Iterator[tuple[str, str]]:
    """Yield the formats that texts may have, each with the zone that the texts name or "".

    There are none unless all texts end in the same offset from UTC, or in no offset.
    """
    matches = [_SUFFIX.search(text) for text in texts]
    suffixes = {match[0] if match else "" for match in matches}
    if len(suffixes) != 1:
        return
    (suffix,) = suffixes
    zone: str | None = ""
    if suffix and field.slot != "birth_date":
        zone = _zone(suffix.strip())
    if zone is None:
        return
    for day in _DAYS:
        yield f"{day}{suffix}", zone
        for separator, clock in product((" ", "T", ""), _CLOCKS):
            yield f"{day}{separator}{clock}{suffix}", zone


def _zone(suffix: str) -> str | None:
    """Return the zone of an offset such as `Z` or `+01:00`, None if no zone has it.

    The zones of offsets are whole hours.
    """
    hours, minutes = suffix[:3], suffix[3:].strip(":")
    if suffix.upper() in ("Z", "UTC") or not int(f"{hours}{minutes}"):
        return "UTC"
    if minutes.strip("0"):
        return None
    # The names have the signs of POSIX: east of Greenwich is minus.
    name = f"Etc/GMT{-int(hours):+d}"
    try:
        return ZoneInfo(name).key
    except ZoneInfoNotFoundError:
        return None
