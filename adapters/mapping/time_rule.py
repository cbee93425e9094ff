"""How a time of the source becomes an instant, as a mapping file says it."""

from dataclasses import dataclass, field, fields
from datetime import time
from enum import StrEnum
from zoneinfo import ZoneInfo


class Twice(StrEnum):
    """Which instant a local time that happens twice is (the autumn clock change)."""

    FIRST = "first"
    SECOND = "second"
    REFUSE = "refuse"


class Never(StrEnum):
    """What a local time that never happens is (the spring clock change)."""

    REFUSE = "refuse"
    SHIFT = "shift"


@dataclass(frozen=True, slots=True)
class TimeRule:
    """How a source value becomes an instant.

    `zone` reads values without an offset; `is_told` is whether the field or its source says
    it, and not the file alone. `written` is the zone of the offset that
    clients see. `format` is a strptime format for text, None for ISO 8601 text and the
    database's own types. `at` is the time of day that a date without one gets.
    """

    zone: ZoneInfo
    written: ZoneInfo
    format: str | None = None
    at: time | None = None
    twice: Twice = Twice.FIRST
    never: Never = Never.REFUSE
    # It changes no value: walks go on where it is another.
    is_told: bool = field(default=True, compare=False, repr=False)


DECISIVE = tuple(each.name for each in fields(TimeRule) if each.compare)
"""What decides which instant a value is."""
