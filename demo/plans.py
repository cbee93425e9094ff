"""The stays that every demo hospital has, however small: one row a case.

A plan is what a stay is before it gets a patient, a number and a unit.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

STILL_HERE = datetime(2999, 12, 31)  # noqa: DTZ001 - a local time, as the hospital's
"""What some stays have as their end while the patient is there."""

SAME_MINUTE = datetime(2024, 6, 11, 8)  # noqa: DTZ001
"""When a whole morning of consultations starts."""

SAME_MINUTE_STAYS = 120


class Plan(NamedTuple):
    """State, kind and times of a stay; `planned` is when it was meant to start."""

    state: str | None
    kind: str | None
    start: datetime | None
    end: datetime | None = None
    planned: datetime | None = None


def _plan(state: str | None, kind: str, start: str, end: str = "") -> Plan:
    begins = datetime.fromisoformat(start)
    return Plan(state, kind, begins, datetime.fromisoformat(end) if end else None)


CASES: tuple[Plan, ...] = (
    # The hour that happens twice, in two autumns.
    _plan("S", "HC", "2024-10-27T02:30", "2024-10-29T11:00"),
    _plan("S", "URG", "2024-10-27T02:30", "2024-10-27T09:05"),
    _plan("T", "URG", "2024-10-26T22:10", "2024-10-27T02:30"),
    _plan("S", "HC", "2024-10-27T02:00", "2024-10-28T10:00"),
    _plan("S", "URG", "2024-10-27T01:59", "2024-10-27T03:00"),
    _plan("F", "URG", "2023-10-29T02:30", "2023-10-29T07:45"),
    # Around the hour that never happens, in two springs.
    _plan("S", "HC", "2024-03-30T08:15", "2024-03-31T17:00"),
    _plan("S", "URG", "2025-03-30T01:59", "2025-03-30T03:00"),
    _plan("S", "URG", "2025-03-30T03:00", "2025-03-30T06:20"),
    # The edges of days and years.
    _plan("S", "HC", "2024-01-01T00:00", "2024-01-04T10:00"),
    _plan("S", "EXT", "2023-12-31T23:59", "2024-01-01T00:00"),
    _plan("S", "HC", "2024-02-29T00:00", "2024-02-29T23:59"),
    # Here since long ago, with either way to say that there is no end yet.
    Plan("E", "HC", datetime(2016, 5, 2, 9), STILL_HERE),  # noqa: DTZ001
    _plan("EC", "HC", "2017-09-14T14:30"),
    # States that nobody mapped.
    _plan("Q7", "HC", "2025-05-20T10:00", "2025-05-21T10:00"),
    _plan("Q7", "EXT", "2024-11-05T09:00", "2024-11-05T09:40"),
    _plan("?", "CS", "2022-02-02T15:00", "2022-02-02T15:30"),
    _plan(None, "HC", "2021-07-07T07:07", "2021-07-09T09:00"),
    _plan("", "HC", "2020-08-08T08:08", "2020-08-10T10:00"),
)

IN_THE_GAP = _plan("S", "URG", "2025-03-30T02:30", "2025-03-30T08:00")
"""A start that never happened: a fault of the hospital's, only made when asked for."""

_FIRST_CASE = 101
_FIRST_OF_MORNING = 301


def special_plans(*, spring_gap: bool) -> Mapping[int, Plan]:
    """Return the plans of the special stays, by the number of the stay."""
    cases = (*CASES, IN_THE_GAP) if spring_gap else CASES
    lasts = timedelta(minutes=20)
    morning = Plan("S", "CS", SAME_MINUTE, SAME_MINUTE + lasts)
    return MappingProxyType(
        dict(enumerate(cases, _FIRST_CASE))
        | {_FIRST_OF_MORNING + i: morning for i in range(SAME_MINUTE_STAYS)}
    )
