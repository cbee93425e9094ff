"""Small questions about texts that rules and rows both ask."""

import re
from datetime import datetime, time
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

FHIR_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}")
"""STU3 datatypes, id."""

SYSTEM_PATTERN = r"^(urn:oid:[0-2](\.(0|[1-9][0-9]*))+|urn:uuid:[0-9a-f-]{36}|https?://[^\s/]+(/\S*)?)$"
DAY_PATTERN = "^(?!.*%Z).*%[Yy]"
TIME_OF_DAY_PATTERN = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?$"
PREFIX_PATTERN = r"^[A-Za-z0-9.-]{1,16}$"
SELECT_PATTERN = (
    r"^(?![^'\"`/-]*;)[\s(]*([Ss][Ee][Ll][Ee][Cc][Tt]|[Ww][Ii][Tt][Hh]|--|/\*)"
)
ADDRESS_PATTERN = "^[a-z][a-z0-9+_]*:/(?!/[^/@:]*:[^/@]+@)"
"""What an editor may check while one types; the rules say more."""

_OID_URN = re.compile(r"urn:oid:[0-2](\.(0|[1-9][0-9]*))+")
_UUID_URN = re.compile(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?")

_DIRECTIVES = frozenset("YymdbBjHIMSfpz%")
_SORTABLE = re.compile(
    r"[^%]*%Y[^%]*%m[^%]*%d(?:[^%]*%H(?:[^%]*%M(?:[^%]*%S(?:[^%]*%f)?)?)?)?[^%]*"
)


def is_system(text: str) -> bool:
    """Tell whether the text is an OID URN, a UUID URN or an absolute URL."""
    return any(form.fullmatch(text) for form in (_OID_URN, _UUID_URN, _URL))


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(available_timezones())


def zone(name: str) -> ZoneInfo | None:
    """Return the time zone of an IANA name, None for another name."""
    return ZoneInfo(name) if name in zone_names() else None


def time_of_day(text: str) -> time | None:
    """Return the time of day of a text like 08:30, None for another text."""
    try:
        found = time.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is None and ":" in text else None


def directives(form: str) -> frozenset[str]:
    """Return the letters that follow a percent sign in a strptime format."""
    return frozenset(re.findall(r"%(.?)", form, re.DOTALL))


def is_format(form: str) -> bool:
    """Tell whether a strptime format is one that names a whole day."""
    letters = directives(form)
    year = bool(letters & set("Yy"))
    day = "j" in letters or ("d" in letters and bool(letters & set("mbB")))
    if not (letters <= _DIRECTIVES and year and day):
        return False
    sample = datetime(2024, 3, 30, 8, 15)  # noqa: DTZ001 (a local value, as sources have them)
    try:
        datetime.strptime(sample.strftime(form), form)  # noqa: DTZ007
    except (ValueError, re.error):
        return "z" in letters
    return True


def ends_in_a_z(form: str) -> bool:
    """Tell whether a strptime format ends in the letter Z, which says no zone by itself."""
    return form.endswith("Z") and not form.endswith("%Z")


def sorts_as_text(form: str) -> bool:
    """Tell whether texts of this format sort as the times that they stand for."""
    return _SORTABLE.fullmatch(form) is not None


def is_own(kind: object) -> bool:
    """Tell whether a kind of source is the path of a class: package.module:Class."""
    module, colon, name = str(kind).partition(":")
    return bool(colon) and all(
        part.isidentifier() for part in (*module.split("."), name)
    )
