"""`encounters mapping report`: the data quality of a hospital, as a page and as JSON.

All stays are read as searches read them, and counted. What is written are counts, the
FHIR codes and months that they are of, names of columns, and codes of the source that have
enough rows. Counts below 5 are hidden. All others are rounded to multiples of 5, so that
neither a total nor an earlier report reveals what is hidden.
"""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias, cast

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from adapters.contract import EncounterRecord, RowFault
from adapters.mapping.slots import Place
from app.console import FINE, CannotRunError
from toolkit.checks.engine import MOST, Counted, code_of, missing_codes, without_code
from toolkit.console import html_page, write_text
from toolkit.stays import NO_START, Row, Stays, month_of, reading

FORMAT = 1
"""The format of the JSON document."""

STEP = 5
"""Counts below it are hidden, all others are multiples of it."""

_LONG = timedelta(days=365)
_OTHER = "other values"

_FIGURES = (_STAYS, _INVALID, _ENDS_EARLY, _OPEN, _REPEATED) = (
    "stays",
    "invalid rows",
    "ends before starts",
    "open for more than a year",
    "visit numbers of several stays",
)
_TITLES = {
    "status": ("Stays by status", ""),
    "class": ("Stays by class", ""),
    "month": ("Stays by month of start", ""),
    "empty": (
        "Stays without a value",
        "Stays in progress and planned ones need no end. Many without a number or a unit"
        " may mean that the mapping reads another column, or other rows, than it should.",
    ),
    "rules": (
        "Invalid rows by rule",
        "Clients do not get these rows. Correct them in the hospital's system, or the mapping.",
    ),
    "codes": (
        "Codes missing from the tables",
        "Rows with these codes are invalid, or become what otherwise says (→).",
    ),
}
"""The tables of a report: their titles, and what they tell their readers."""

Counts: TypeAlias = Mapping[str, int | None]
"""Rounded counts by what they count, None for a hidden one."""


def rounded(number: int) -> int | None:
    """Return a count as a report may show it, None for a hidden one."""
    if 0 < number < STEP:
        return None
    return STEP * round(number / STEP)


# Counting


class Tally:
    """The counts of all stays of a file."""

    def __init__(self, now: datetime) -> None:
        self._long_ago = now - _LONG
        self._figures = dict.fromkeys(_FIGURES, 0)
        self._counts: Mapping[str, Counter[str]] = {name: Counter() for name in _TITLES}
        # Hashes, as there may be millions of numbers.
        self._numbers = array("q")

    @property
    def tables(self) -> Mapping[str, Counts]:
        """The tables of the report, rounded; labels are in no order of their counts."""
        groups = (len([*same]) for _, same in groupby(sorted(self._numbers)))
        self._figures[_REPEATED] = sum(length > 1 for length in groups)
        tables = {name: sorted(each.items()) for name, each in self._counts.items()}
        return {
            name: {label: rounded(number) for label, number in counts}
            for name, counts in {"figures": self._figures.items(), **tables}.items()
        }

    def read(self, stays: Stays) -> None:
        """Count the stays of a source."""
        codes = [(place, Counter[str]()) for place in stays.coded.values()]
        for page in stays.pages():
            for row in page:
                if row.stay:
                    self._count(row.stay)
                elif isinstance(row.outcome, RowFault):
                    self._count_fault(row.outcome, stays)
            for place, counts in codes:
                _count_codes(place, counts, page)
        for place, counts in codes:
            self._count_missing(stays, place, counts)

    def _count(self, stay: EncounterRecord) -> None:
        self._figures[_STAYS] += 1
        self._counts["status"][stay.status] += 1
        self._counts["class"][stay.class_code or "no class"] += 1
        self._counts["month"][month_of(stay)] += 1
        empty = {name for name, value in stay._asdict().items() if value is None}
        if stay.status != "finished":
            empty.discard("end")
        self._counts["empty"].update(empty)
        is_open = stay.status == "in-progress" and not stay.end
        if is_open and stay.start and stay.start < self._long_ago:
            self._figures[_OPEN] += 1
        if stay.visit_number:
            self._numbers.append(hash((stay.visit_number_system, stay.visit_number)))

    def _count_fault(self, fault: RowFault, stays: Stays) -> None:
        self._figures[_INVALID] += 1
        self._figures[_ENDS_EARLY] += fault.rule == "ends before it starts"
        source = f" ← {stays.column(fault.column)}" if fault.column else ""
        label = f"{fault.field}{source}: {without_code(fault.rule)}"
        self._counts["rules"][label] += 1

    def _count_missing(self, stays: Stays, place: Place, counts: Counter[str]) -> None:
        column = stays.column(place.field.columns[0])
        counted = Counted(place, column, counts, counts.pop("", 0))
        other = counted.codes.otherwise
        becomes = f" → {other}" if other else ""
        for code, rows in missing_codes(counted).items():
            # What few rows have may be no code but a text about somebody.
            shown = code if code and rows >= STEP else _OTHER
            label = f"{place.slot} ← {column}: {shown}{becomes}"
            self._counts["codes"][label] += rows


def _count_codes(place: Place, counts: Counter[str], page: Iterable[Row]) -> None:
    """Count the codes of a page, a limited number of them."""
    assert place.field.codes is not None, "only coded fields are counted"
    table = place.field.codes.table
    for cell, rows in Counter(row.cell(place.field) for row in page).items():
        code = code_of(place, cell)
        if len(counts) > MOST and code not in counts and code not in table:
            code = _OTHER
        counts[code] += rows


# What is written


def run(*, file: Path, out: Path, figures: Path | None, previous: Path | None) -> int:
    """Read all stays and write the report."""
    earlier = _previous(previous) if previous else None
    now = datetime.now(UTC)
    tally = Tally(now)
    with reading(file) as ((read, every),):
        for stays in every:
            tally.read(stays)
    document: dict[str, Any] = {
        "format": FORMAT,
        "hospital": read.mapping.name,
        "mapping": file.name,
        "version": version("encounters"),
        "created": now.isoformat(timespec="minutes"),
        "rounded_to": STEP,
        "tables": tally.tables,
    }
    write_text(out, page(document, earlier))
    if figures:
        write_text(figures, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    counts = document["tables"]["figures"].items()
    shown = ", ".join(f"{name} {_text(count)}" for name, count in counts)
    print(f"{out}: {shown}")
    return FINE


_DOCUMENT = Schema.from_dict(
    {
        "format": fields.Integer(required=True, validate=validate.Equal(FORMAT)),
        "hospital": fields.String(required=True),
        "created": fields.String(required=True),
        "tables": fields.Dict(
            values=fields.Dict(values=fields.Integer(strict=True, allow_none=True)),
            required=True,
        ),
    },
    name="Document",
)
"""What a page reads of an earlier document."""


def _previous(path: Path) -> Mapping[str, Any]:
    """Return an earlier document; raises CannotRunError."""
    try:
        document = _DOCUMENT(unknown=EXCLUDE).loads(path.read_text("utf-8"))
    except OSError as error:
        raise CannotRunError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, ValidationError) as error:
        text = f"{path} is no report of format {FORMAT}: name what --json wrote"
        raise CannotRunError(text) from error
    return cast(Mapping[str, Any], document)


# The page


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table; `share` is its part of the largest count, in percent."""

    label: str
    count: str
    previous: str
    change: str
    share: float


_IN_ORDER = ("figures", "month")


def page(document: Mapping[str, Any], previous: Mapping[str, Any] | None) -> str:
    """Return the page of a document, compared with an earlier one."""
    tables, earlier = document["tables"], (previous or {}).get("tables", {})
    lines = {
        name: lines_of(counts, earlier.get(name), is_ranked=name not in _IN_ORDER)
        for name, counts in tables.items()
    }
    return html_page(
        "report.html",
        document=document,
        previous=previous,
        figures=lines["figures"],
        tables=[(name, *_TITLES[name], lines[name]) for name in _TITLES],
        months=chart_of(tables["month"], document["created"][:7]),
    )


def lines_of(
    counts: Counts, earlier: Counts | None, *, is_ranked: bool
) -> Sequence[Line]:
    """Return the lines of a table, those of the earlier one that are gone too.

    Where they are ranked, those with the largest counts come first.
    """
    largest = max((count or 0 for count in counts.values()), default=0)
    lines = []
    for label in dict.fromkeys((*counts, *(earlier or ()))):
        count, previous, change = counts.get(label, 0), "", ""
        if earlier is not None:
            before = earlier.get(label, 0)
            previous = _text(before)
            if count is not None and before is not None:
                change = f"{count - before:+,}" if count != before else "="
        share = 100 * (count or 0) / largest if largest else 0
        lines.append(Line(label, _text(count), previous, change, round(share, 1)))
    return sorted(lines, key=lambda line: -line.share) if is_ranked else lines


def _text(count: int | None) -> str:
    return f"< {STEP}" if count is None else f"{count:,}"


_MONTHS = 36
"""How many months the chart has."""


def chart_of(counts: Counts, this_month: str) -> Sequence[tuple[str, int, str]]:
    """Return the last months with stays, none in the future: each with its height and count."""
    past = [month for month in counts if month != NO_START and month <= this_month]
    if not past:
        return ()
    year, _, number = max(past).partition("-")
    after = 12 * int(year) + int(number)
    months = [f"{n // 12:04}-{n % 12 + 1:02}" for n in range(after - _MONTHS, after)]
    return [(m, counts.get(m) or 0, _text(counts.get(m, 0))) for m in months]
