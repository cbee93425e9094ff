"""How a column writes days of people, told without reading one: shapes are counted.

The database counts how many texts look like each format, and how many are one of the
days that stand for none. No day of birth or death leaves it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from adapters.sql.database import Database
from adapters.sql.samples import SOME, Shape, written_like
from adapters.sql.tables import Holds, Table, TableColumn
from app.tools.starting.habits import DAYS
from app.tools.starting.times import FORMATS, LENGTHS, Writing, likeliest, of_forms
from app.tools.starting.words import meaning

_RANGES = {
    "Y": ("1000", "9999"),
    "m": ("01", "12"),
    "d": ("01", "31"),
    "H": ("00", "23"),
    "M": ("00", "59"),
    "S": ("00", "59"),
}
_NONE = (
    *((year, "01", "01") for year in ("0001", "1600", "1700", "1753", "1800", "1900")),
    *((year, "12", "31") for year in ("1899", "2099", "2100", "2999", "9999")),
)
"""Year, month and day that stand for none in some systems."""

_DIRECTIVES = re.compile(r"%(.)")


def unseen_writing(
    database: Database, table: Table, column: TableColumn, *, is_typed: bool
) -> Writing:
    """Return how a column writes its times, by counts alone.

    `is_typed` tells that the database keeps to the declared type of a column.
    """
    looked = _Looked(database, table, column)
    writing = Writing(
        has_clock=column.holds is not Holds.DATE,
        zeros=bool(looked.found(("0000-00-00%",))),
        is_utc="UTC" in meaning(column.name).known,
        has_zone=column.holds is Holds.INSTANT,
    )
    if writing.zeros:
        return writing
    if is_typed and column.holds in DAYS:
        days = looked.found([f"{'-'.join(day)}%" for day in _NONE])
        return replace(writing, absent=tuple(day.rstrip("%") for day in days))
    return _of_texts(looked, writing, column)


def _of_texts(looked: "_Looked", writing: Writing, column: TableColumn) -> Writing:
    fillers = ("0", *(_filled(form, digit) for form in _days() for digit in "09"))
    every, *counts = looked.counts([Shape(text) for text in fillers], SOME)
    shapes = [Shape(_like(form), _parts(form)) for form in FORMATS]
    _, *counted = looked.counts(shapes, SOME)
    if not counted or not every:
        asked = column.holds not in DAYS
        return replace(writing, question=_EMPTY if asked else "")
    read = dict(zip(FORMATS, counted, strict=True))
    form = likeliest(read)
    days = [_written(form, *day) for day in _NONE]
    absent = looked.found(dict.fromkeys((*days, *fillers)))
    return of_forms(read, every - sum(counts), replace(writing, absent=absent))


_EMPTY = "how are its times written? it is empty"


class _Looked:
    """One column, of which texts are counted; what the database would not say is nothing."""

    def __init__(self, database: Database, table: Table, column: TableColumn) -> None:
        self._of = database, table, column.name

    def counts(self, shapes: Sequence[Shape], rows: int | None) -> tuple[int, ...]:
        return written_like(*self._of, shapes, rows) or (0,)

    def found(self, texts: "Sequence[str] | dict[str, None]") -> tuple[str, ...]:
        """Return those of the texts that some row has."""
        _, *counts = self.counts([Shape(text) for text in texts], None)
        return tuple(text for text, n in zip(texts, counts, strict=False) if n)


def is_no_day(text: str, form: str) -> bool:
    """Tell whether a text in a format is a day that stands for none."""
    days = {_written(form, *day) for day in _NONE}
    return text in days or text in (_filled(form, "0"), _filled(form, "9"))


def _days() -> tuple[str, ...]:
    return tuple(form for form in FORMATS if "%H" not in form)


def _like(form: str) -> str:
    """Return the pattern of LIKE that texts of a format have."""
    return _DIRECTIVES.sub(lambda m: "_" * LENGTHS.get(m[1], 0) or "%", form)


def _parts(form: str) -> tuple[tuple[int, str, str], ...]:
    """Return where the numbers of a format start, and what they may be."""
    found, at = [], 1
    for directive, sign in re.findall(r"%(.)|(.)", form):
        if directive in _RANGES:
            found.append((at, *_RANGES[directive]))
        at += LENGTHS.get(directive, 0) if directive else len(sign)
    return tuple(found)


def _filled(form: str, digit: str) -> str:
    return _DIRECTIVES.sub(lambda m: digit * LENGTHS[m[1]], form)


def _written(form: str, year: str, month: str, day: str) -> str:
    """Return a day in a format, at midnight where that has a clock."""
    known = {"Y": year, "m": month, "d": day, "f": "0", "z": "+00:00"}
    return _DIRECTIVES.sub(lambda m: known.get(m[1], "00"), form)
