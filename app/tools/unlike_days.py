"""HTTP sources that compare whole days, of another clock than that of clients."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from adapters.mapping.http_model import Step
from adapters.mapping.model import ResourceMapping, SourceMapping
from app.tools.report import Finding

_A_YEAR = tuple(date(2024, 1, 1) + timedelta(days=n) for n in range(366))


def unlike_days(mapping: SourceMapping) -> Iterator[Finding]:
    """Yield each date that no client can ask for by day: the source's begin at another time."""
    for section in mapping.sections:
        zone = _zone_of_days(section)
        if zone and not _begin_together(mapping.time_zone, zone):
            mark = section.fields["start"].mark
            yield Finding(
                mark.file,
                mark.line,
                mark.column,
                f"'date' compares days of {zone.key}, and the days of clients are of "
                f"{mapping.time_zone.key}: a search by day is refused (412). Ask the vendor "
                "for bounds with a time of day (step: minute), or whose days it compares "
                "(time_zone of date under search)",
                element=section.resource_type,
                source=", ".join(section.fields["start"].columns),
            )


def _zone_of_days(section: ResourceMapping) -> ZoneInfo | None:
    call = section.http.search.get("date") if section.http else None
    rule = section.fields["start"].time if call else None
    if call is None or rule is None or call.step is not Step.DAY:
        return None
    return call.zone or rule.zone


def _begin_together(one: ZoneInfo, other: ZoneInfo) -> bool:
    begins = (datetime.combine(day, time(), one).astimezone(other) for day in _A_YEAR)
    return all(each.time() == time() for each in begins)
