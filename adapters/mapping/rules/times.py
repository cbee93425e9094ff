"""Rules about time zones, times of day and formats."""

from collections.abc import Iterator

from adapters.mapping.checks import (
    directives,
    ends_in_a_z,
    is_format,
    time_of_day,
    zone,
    zone_names,
)
from adapters.mapping.document import Document
from adapters.mapping.nodes import KeyPath
from adapters.mapping.problems import MappingProblem, did_you_mean
from adapters.mapping.slots import Kind

Z_IS_A_LETTER = (
    "Z is a letter here, and usually means UTC: say time_zone: UTC beside it"
)


def zones_are_known(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a time zone that is not an IANA name."""
    named: list[tuple[KeyPath, str | None]] = [
        (("time_zone",), doc.data.get("time_zone")),
        *(
            ((*path, "time_zone"), source.get("time_zone"))
            for path, source in doc.sources().items()
        ),
    ]
    named += [
        ((*site.path, "time_zone"), site.options.get("time_zone"))
        for site in doc.sites()
    ]
    for path, name in named:
        if name is not None and zone(name) is None:
            near = did_you_mean(name, sorted(zone_names()))
            text = f"'{name}' is not a time zone{near or ': write Europe/Paris or UTC'}"
            yield doc.problem(path, text)


def at_is_a_time_of_day(doc: Document) -> Iterator[MappingProblem]:
    """Refuse an `at` that is not a time of day."""
    for site in doc.sites():
        at = site.options.get("at")
        if at is not None and time_of_day(at) is None:
            text = f'\'{at}\' is not a time of day: write "00:00" or "23:59:59"'
            yield doc.problem((*site.path, "at"), text)


def formats_name_a_time(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a format without a time of day, where no `at` says one."""
    for site in doc.sites():
        form = site.options.get("format")
        if site.slot.kind is not Kind.TIME or form is None or not is_format(form):
            continue
        if not directives(form) & set("HIMSf") and not doc.holds((*site.path, "at")):
            text = f"'{form}' is a day and no time: say at: \"00:00\" beside it"
            yield doc.problem((*site.path, "format"), text)


def letters_name_no_zone(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a Z at the end of a format, where nothing says whose clock it stands for."""
    for site in doc.sites():
        is_named = site.slot.kind is not Kind.TIME or doc.says_zone(site)
        if not is_named and ends_in_a_z(site.options.get("format", "")):
            yield doc.problem((*site.path, "format"), Z_IS_A_LETTER)


def formats_name_a_day(doc: Document) -> Iterator[MappingProblem]:
    """Refuse a format that cannot be read, or that leaves out year, month or day."""
    for site in doc.sites():
        form = site.options.get("format")
        if form is None or is_format(form):
            continue
        text = f"'{form}' cannot be read: it needs at least %Y, %m and %d"
        if "%" not in form:
            text = f"'{form}' is not a format: write it like %d/%m/%Y %H:%M"
        elif "Z" in directives(form):
            text = "%Z (a zone's short name) says no instant: use %z, or time_zone:"
        yield doc.problem((*site.path, "format"), text)
