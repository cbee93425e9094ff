"""Dates asked for as bounds in the source's own format and precision."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from types import MappingProxyType

from adapters.contract import DateCriterion, DateValue, Limit, NotAskableError, Prefix
from adapters.mapping.checks import directives
from adapters.mapping.http_model import SearchCall, Step
from adapters.mapping.time_rule import TimeRule
from adapters.mapping.times import in_format, to_local

_STEPS: Mapping[Step, timedelta] = MappingProxyType(
    {
        Step.DAY: timedelta(days=1),
        Step.MINUTE: timedelta(minutes=1),
        Step.SECOND: timedelta(seconds=1),
    }
)
_LIMITS: Mapping[Step, Limit] = MappingProxyType(
    {Step.DAY: Limit.DAY, Step.MINUTE: Limit.MINUTE, Step.SECOND: Limit.SECOND}
)
_FORMS: Mapping[Step, str] = MappingProxyType(
    {
        Step.DAY: "%Y-%m-%d",
        Step.MINUTE: "%Y-%m-%dT%H:%M",
        Step.SECOND: "%Y-%m-%dT%H:%M:%S",
    }
)


def askable_prefixes(call: SearchCall) -> frozenset[Prefix]:
    """Return the prefixes that the bounds of a parameter can say; `ne` none can."""
    found = set()
    if call.low:
        found |= {Prefix.GE, Prefix.GT}
    if call.before or call.until:
        found |= {Prefix.LT, Prefix.LE}
    if len(found) == len(Prefix) - 2:
        found.add(Prefix.EQ)
    return frozenset(found)


def finest(call: SearchCall) -> Limit:
    """Return the limit of bounds that are whole days, minutes or seconds."""
    return _LIMITS[call.step]


def date_pairs(
    call: SearchCall, rule: TimeRule | None, criteria: Iterable[DateCriterion]
) -> tuple[tuple[str, str], ...] | None:
    """Return the bounds to send, None when nothing can lie between them.

    `rule` says how the source's times stand for instants, None for birth dates. Raises
    NotAskableError; a bound is never widened.
    """
    low: datetime | None = None
    high: datetime | None = None
    for criterion in criteria:
        if not criterion.values:
            return None
        if len(criterion.values) > 1:
            raise _refusal(call, Limit.ONE_VALUE)
        from_, before = _bounds(call, criterion.values[0])
        low = max(filter(None, (low, from_)), default=None)
        high = min(filter(None, (high, before)), default=None)
    if low is not None and high is not None and low >= high:
        return None
    return tuple(_pairs(call, rule, low, high))


def _bounds(
    call: SearchCall, value: DateValue
) -> tuple[datetime | None, datetime | None]:
    """Return the instants from which and before which a value holds."""
    if value.prefix not in askable_prefixes(call):
        raise _refusal(call, Limit.PREFIX)
    match value.prefix:
        case Prefix.GE:
            return value.low, None
        case Prefix.GT:
            return value.high, None
        case Prefix.LT:
            return None, value.low
        case Prefix.LE:
            return None, value.high
        case _:
            return value.low, value.high


def _pairs(
    call: SearchCall,
    rule: TimeRule | None,
    low: datetime | None,
    high: datetime | None,
) -> Iterable[tuple[str, str]]:
    if low is not None and call.low:
        yield call.low, _written(call, rule, low, timedelta())
    if high is not None and call.before:
        yield call.before, _written(call, rule, high, timedelta())
    elif high is not None and call.until:
        yield call.until, _written(call, rule, high, _STEPS[call.step])


def _written(
    call: SearchCall, rule: TimeRule | None, instant: datetime, less: timedelta
) -> str:
    form = call.format or _FORMS[call.step]
    local = _local(call, rule, instant)
    if (local - datetime.combine(local, time())) % _STEPS[call.step]:
        raise _refusal(call, _too_fine(call, instant))
    try:
        if "z" in directives(form) and rule is not None:
            zone = call.zone or rule.zone
            return in_format((instant - less).astimezone(zone), form)
        return in_format(local - less, form)
    except OverflowError as error:
        raise _refusal(call, Limit.PREFIX) from error


def _too_fine(call: SearchCall, instant: datetime) -> Limit:
    """Return the limit of a bound between two steps; `instant` is in the clients' zone."""
    is_day = instant.time() == time()
    return Limit.OTHER_DAYS if call.step is Step.DAY and is_day else _LIMITS[call.step]


def _local(call: SearchCall, rule: TimeRule | None, instant: datetime) -> datetime:
    if rule is None:
        # A birth date is a day of the calendar, in whatever zone it is asked for.
        return instant.replace(tzinfo=None)
    zoned = replace(rule, zone=call.zone) if call.zone else rule
    return to_local(instant, zoned)


def _refusal(call: SearchCall, limit: Limit) -> NotAskableError:
    return NotAskableError("the source cannot compare it", call.name, limit)
