"""The language of a page: its catalogue, and how it writes and reads dates, times and numbers.

Texts in code and templates are English and marked; a catalogue has them in another language
(gettext, read by Babel when it is first used). Times are shown as they are written, in the
hospital's own zone.
"""

import re
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cache
from gettext import NullTranslations
from io import BytesIO
from pathlib import Path
from typing import Any

from babel import Locale
from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.support import Translations
from flask import g

LANGUAGES = {"en": "English", "fr": "Français"}
"""The languages of the pages, each by its own name."""

LOCALES = Path(__file__).parent / "locale"

_DATES = {"en": "d MMM y", "fr": "dd/MM/y"}
_MONTHS = {"en": "MMM y", "fr": "MM/y"}

DATE_IN_TEXT = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}"
    r"|\d{1,2}[/.-]\d{1,2}[/.-]\d{4}"
    r"|\d{1,2} [^\W\d_]+\.?,? \d{4}"
)
"""What is read as a date, alone or among other words."""


class ReadingError(ValueError):
    """A text that cannot be read; its own text is for the person."""


def mark(message: str) -> str:
    """Mark a text for the catalogues; it is translated where it is shown."""
    return message


@cache
def catalogue(language: str) -> NullTranslations:
    """Return the texts of a language."""
    file = LOCALES / language / "LC_MESSAGES" / "explorer.po"
    if not file.exists():
        return NullTranslations()
    compiled = BytesIO()
    with file.open("rb") as source:
        write_mo(compiled, read_po(source, locale=language))
    compiled.seek(0)
    return Translations(compiled)


def language() -> str:
    """Return the language of the page."""
    return str(g.get("language", "en"))


def gettext(message: str, **values: Any) -> str:
    """Return a text in the language of the page, filled in."""
    text = catalogue(language()).gettext(message)
    return text % values if values else text


def pgettext(context: str, message: str) -> str:
    """Return a text whose translation depends on a context."""
    return catalogue(language()).pgettext(context, message)


def ngettext(one: str, several: str, count: int, **values: Any) -> str:
    """Return the text for a number of things; it is filled in as `count`."""
    text = catalogue(language()).ngettext(one, several, count)
    return text % {"count": number(count), **values}


def number(value: int) -> str:
    """Return a whole number with the language's own separator of thousands."""
    return str(format_decimal(value, locale=language()))


def day(value: date) -> str:
    """Return a day: 31/12/2024, or 31 Dec 2024."""
    return named(value, _DATES[language()])


def partial_day(text: str) -> str:
    """Return a date of FHIR, which may be a year or a month, as people read it."""
    if len(text) <= len("2024"):
        return text
    if len(text) == len("2024-12"):
        return named(date.fromisoformat(f"{text}-01"), _MONTHS[language()])
    return day(date.fromisoformat(text[:10]))


def moment(value: datetime) -> str:
    """Return a time to the minute, in the offset that it is written with."""
    return f"{day(value)} {value:%H:%M}"


def named(value: date, pattern: str) -> str:
    """Return a date as a pattern of CLDR writes it, such as a month's name."""
    return str(format_date(value, pattern, locale=language()))


def duration(took: timedelta) -> str:
    """Return a duration: minutes, hours and minutes, or days and hours."""
    minutes = max(0, int(took.total_seconds()) // 60)
    days, hours = minutes // 1440, minutes % 1440 // 60
    if days:
        return gettext("%(days)s d %(hours)s h", days=number(days), hours=hours)
    if hours:
        rest = f"{minutes % 60:02d}"
        return gettext("%(hours)s h %(minutes)s", hours=hours, minutes=rest)
    return gettext("%(minutes)s min", minutes=minutes)


def read_day(text: str) -> date:
    """Return the day that a person wrote: 31/12/2024, 31 Dec 2024 or 2024-12-31.

    Raises ReadingError.
    """
    text = " ".join(text.split())
    if DATE_IN_TEXT.fullmatch(text):
        parts = re.split(r"[^\w]+", text.lower())
        if len(parts[0]) == len("2024"):
            parts.reverse()
        day_text, month_text, year_text = parts
        # An unknown name is month 0, which no date has.
        month = _months().get(month_text, 0)
        if month_text.isdecimal():
            month = int(month_text)
        with suppress(ValueError):
            return date(int(year_text), month, int(day_text))
    words = gettext(
        "“%(text)s” is not a date: the day comes first, then the month. Write it like "
        "%(example)s.",
        text=text,
        example=day(date(2024, 12, 31)),
    )
    raise ReadingError(words)


@cache
def _months() -> dict[str, int]:
    """Return the months by their names in every language."""
    return {
        str(name).lower().removesuffix("."): number
        for language in LANGUAGES
        for width in ("wide", "abbreviated")
        for number, name in Locale(language).months["format"][width].items()
    }
