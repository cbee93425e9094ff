"""How a column writes times: its format, its zone, and the days that stand for none."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache

from adapters.sql.database import Database
from adapters.sql.samples import first_and_last, some_times
from adapters.sql.tables import Holds, Table, TableColumn
from app.tools.starting.habits import DAYS
from app.tools.starting.words import meaning

FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y%m%d",
    "%Y%m%d%H%M",
    "%Y%m%d%H%M%S",
    "%Y%m%dT%H%M%S",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %Hh%M",
    "%d-%m-%Y",
    "%d-%m-%Y %H:%M",
    "%d-%m-%Y %H:%M:%S",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
)
LENGTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "T": 1, "Z": 1}
_PLAIN = frozenset({"%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"})
"""Formats that a text without `format` is compared by."""

_NEAR_ALL = 0.9
_LATEST, _EARLIEST = 2100, 1901


@dataclass(frozen=True, slots=True)
class Writing:
    """How a column writes its times.

    `format` is "" where the service reads them by itself. `has_clock` is False for mere
    days. `rearranged` is an SQL expression, {0} for the column, that makes of texts which
    do not sort those that do, and `format` then is theirs. `absent` are texts that stand
    for none. `zeros` tells that some are dates of zeros.
    """

    format: str = ""
    has_clock: bool = True
    rearranged: str = ""
    absent: tuple[str, ...] = ()
    zeros: bool = False
    is_utc: bool = False
    has_zone: bool = False
    is_text: bool = False
    question: str = ""

    @property
    def sorts(self) -> bool:
        """Whether the column can be compared and sorted by."""
        return not (self.has_zone and self.is_text)


def writing_of(database: Database, table: Table, column: TableColumn) -> Writing:
    """Return how a column writes its times, from some of them and the outermost two."""
    outer = first_and_last(database, table, column.name)
    # What the type says need not be looked for in the values.
    typed = bool(outer) and all(isinstance(value, date) for value in outer)
    some = () if typed else some_times(database, table, column.name)
    writing = Writing(
        has_clock=column.holds is not Holds.DATE,
        zeros=any(str(value).startswith("0000-00-00") for value in (*outer, *some)),
        is_utc="UTC" in meaning(column.name).known,
        has_zone=column.holds is Holds.INSTANT,
        absent=_sentinels(outer, "%Y-%m-%d"),
    )
    written = [str(v).rstrip() for v in some if isinstance(v, str | int | Decimal)]
    if written and not writing.zeros:
        return _of_texts(written, [str(value).rstrip() for value in outer], writing)
    if not outer and column.holds not in DAYS:
        return replace(writing, question="how are its times written? it is empty")
    return writing


def _of_texts(texts: Sequence[str], outer: Sequence[str], writing: Writing) -> Writing:
    fillers = {t: None for t in (*outer, *texts) if _is_all(t, "9") or _is_all(t, "0")}
    texts = [text for text in texts if text and text not in fillers]
    read = {form: sum(reads(text, form) for text in texts) for form in FORMATS}
    form = likeliest(read)
    absent = (*_sentinels([*outer, *texts], form), *fillers)
    return of_forms(read, len(texts), replace(writing, absent=absent))


def likeliest(read: Mapping[str, int]) -> str:
    """Return the format that reads most texts; the first of several."""
    return max(FORMATS, key=lambda form: read[form])


def of_forms(read: Mapping[str, int], number: int, writing: Writing) -> Writing:
    """Return how texts are written of which each format reads so many.

    `writing` has what is known beside that.
    """
    form = likeliest(read)
    if not number or read[form] < _NEAR_ALL * number:
        question = "no usual format fits its texts: say format"
        return replace(writing, is_text=True, question=question)
    found = replace(
        writing,
        is_text=True,
        has_clock="%H" in form,
        has_zone=form.endswith("%z"),
        is_utc=writing.is_utc or form.endswith("Z"),
        question=_doubt(number, form, read),
    )
    is_known = form in _PLAIN or form.endswith("%z")
    return found if is_known else replace(found, format=form)


def sorted_by_sql(writing: Writing) -> Writing:
    """Return how a column is read whose texts do not sort: as dates that SQL makes of them."""
    form = writing.format
    if not form or form.startswith("%Y"):
        return writing
    absent = tuple(_iso(text, form) for text in writing.absent)
    whole = "%S" in form or not writing.has_clock
    return replace(
        writing,
        format="" if whole else "%Y-%m-%d %H:%M",
        rearranged=_rearranged(form),
        absent=absent,
    )


def _is_all(text: str, digit: str) -> bool:
    return digit in text and set(text) <= {digit, *"-/: "}


def _doubt(number: int, form: str, read: Mapping[str, int]) -> str:
    swapped = form.replace("%d/%m", "%m/%d")
    if swapped != form and read.get(swapped) == read[form]:
        return "is the day before the month?"
    rest = number - read[form]
    return f"{rest} of {number} texts are written otherwise" if rest else ""


def reads(text: str, form: str) -> bool:
    """Tell whether a text is written in a format."""
    return _read(text, form) is not None


def _read(text: str, form: str) -> datetime | None:
    if len(text) != _length(form) and not form.endswith(("%f", "%z")):
        return None
    try:
        return datetime.strptime(text, form)  # noqa: DTZ007 - as the column is
    except ValueError:
        return None


@lru_cache
def _length(form: str) -> int:
    return sum(
        LENGTHS.get(letter, 2) if letter else 1
        for letter in (m[1] if m[0] == "%" else "" for m in re.findall(r"%.|.", form))
    )


def _sentinels(values: Iterable[object], form: str) -> tuple[str, ...]:
    """Return the texts among values that no stay or person can have: 31/12/2999."""
    found: dict[str, None] = {}
    for value in values:
        day = value if isinstance(value, date) else _read(str(value), form)
        if day is None or _EARLIEST <= day.year < _LATEST:
            continue
        if (day.month, day.day) in ((12, 31), (1, 1)):
            found[str(value)] = None
    return tuple(found)


def _rearranged(form: str) -> str:
    """Return SQL that every database has, which makes a date that sorts of a text."""
    place: dict[str, int] = {}
    at = 1
    for part in re.findall(r"%.|.", form):
        if part[0] == "%" and len(part) == 2:
            place[part[1]] = at
            at += LENGTHS[part[1]]
        else:
            at += 1
    cut = {
        letter: f"SUBSTR({{0}}, {start}, {LENGTHS[letter]})"
        for letter, start in place.items()
    }
    day = f"{cut['Y']} || '-' || {cut['m']} || '-' || {cut['d']}"
    clock = " || ':' || ".join(cut[letter] for letter in "HMS" if letter in cut)
    whole = f"{day} || ' ' || {clock}" if clock else day
    return f"CASE WHEN LENGTH(TRIM({{0}})) > 0 THEN {whole} END"


def _iso(text: str, form: str) -> str:
    read = _read(text, form)
    if read is None:
        return text
    length = 10 if "%H" not in form else 19 if "%S" in form else 16
    return read.isoformat(" ")[:length]
