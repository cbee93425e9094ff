"""Codes found in a source, held against the table of the mapping that reads them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from adapters.inspection import Observation, Weight
from adapters.inspection.faults import empty
from adapters.mapping.model import HIDDEN, REMOVED, CodeTable
from adapters.mapping.places import Place
from adapters.mapping.values import LONGEST_CODE, as_text

MOST = 100
"""A column with more different values than this holds no codes."""

_FEW, _OFTEN = 5, 3
"""More different values than a few are codes where each has so many rows."""

_SHOWN = 20
_MEANS = {HIDDEN: " (never served)", REMOVED: " (answered 410)"}
_BARE = re.compile(r"[A-Za-z0-9_.-]+")


class Counted(NamedTuple):
    """The codes of one field and how many rows have each, or `nothing`.

    `column` is where they stand.
    """

    place: Place
    column: str
    counts: Mapping[str, int]
    nothing: int

    @property
    def codes(self) -> CodeTable:
        """The table that reads the field."""
        codes = self.place.field.codes
        assert codes is not None, "only coded fields are counted"
        return codes


def counted(place: Place, column: str, values: Iterable[tuple[object, int]]) -> Counted:
    """Return how often each code was found, as a cell is read."""
    absent = place.field.absent | {""}
    found: dict[str, int] = {}
    nothing = 0
    for value, rows in values:
        text = plain_text(value)
        if text in absent:
            nothing += rows
        else:
            found[text] = found.get(text, 0) + rows
    return Counted(place, column, found, nothing)


def plain_text(value: object) -> str:
    """Return a value as a cell is read, "" for none and for what has no text."""
    try:
        return "" if value is None else as_text(value)
    except ValueError:
        return ""


def unnamed(found: Counted, required: Collection[str]) -> Iterator[Observation]:
    """Tell the codes that no entry names, and where a required one is missing."""
    codes = found.codes
    place = found.place
    is_required = place.field.slot in required and "." not in place.slot
    if found.nothing and codes.otherwise is None and is_required:
        yield empty(found.place, found.column, found.nothing)
    others = {c: n for c, n in found.counts.items() if c not in codes.table}
    if not others:
        return
    if not _are_codes(found):
        yield _doubted(found, sum(others.values()))
        return
    told = _told(others)
    if codes.otherwise is not None:
        text = f"codes.{codes.name} names no {told}: all become '{codes.otherwise}'"
        yield Observation.at(place, found.column, text, Weight.NOTE)
        return
    text = f"codes.{codes.name} names no {told}: such rows cannot be served"
    mark = codes.mark or place.field.mark
    yield Observation(
        mark, place.element, found.column, text, Weight.ERROR, _lines(others, found)
    )


def unused(codes: CodeTable, found: Iterable[Counted]) -> Iterator[Observation]:
    """Tell the entries of a table that no row of its fields has."""
    all_found = list(found)
    never = [
        code
        for code in codes.table
        if not any(code in counted.counts for counted in all_found)
    ]
    if never and codes.mark:
        names = ", ".join(map(repr, never[:_SHOWN]))
        text = f"no row has {names}{_more(never)}"
        columns = ", ".join(dict.fromkeys(counted.column for counted in all_found))
        yield Observation(codes.mark, f"codes.{codes.name}", columns, text, Weight.NOTE)


def _doubted(found: Counted, rows: int) -> Observation:
    """Return what is said of values that may be anything: how many, and none of them."""
    counts, codes = found.counts, found.codes
    values = f"{len(counts)}" if len(counts) <= MOST else f"over {MOST}"
    text = f"{values} different values, which are not shown: is this a column of codes?"
    if codes.otherwise is not None:
        return Observation.at(found.place, found.column, text, Weight.WARNING)
    at_least = "" if len(counts) <= MOST else "at least "
    unfit = f"{at_least}{_rows(rows)} with values that codes.{codes.name} does not name"
    text = f"{unfit} cannot be served; {text}"
    return Observation.at(found.place, found.column, text, Weight.ERROR)


def _are_codes(found: Counted) -> bool:
    """Whether values come back often enough to be codes, and not names of people.

    A table that names half of them was written for codes: a small copy of a hospital has
    few rows of each.
    """
    counts = found.counts
    if len(counts) <= _FEW:
        return True
    named = sum(1 for code in counts if code in found.codes.table)
    is_often = sum(counts.values()) >= _OFTEN * len(counts)
    return len(counts) <= MOST and (is_often or 2 * named >= len(counts))


def _told(codes: Mapping[str, int]) -> str:
    named = [(c, n) for c, n in _sorted(codes) if len(c) <= LONGEST_CODE]
    told = [f"{code!r} ({_rows(n)})" for code, n in named[:_SHOWN]]
    if longer := sum(n for c, n in codes.items() if len(c) > LONGEST_CODE):
        told.append(f"texts too long for a code ({_rows(longer)})")
    return ", ".join(told) + _more(named)


def _lines(codes: Mapping[str, int], found: Counted) -> str:
    """Return the entries to add, which the check refuses until somebody has decided."""
    takes = found.place.takes or dict.fromkeys(found.codes.table.values())
    known = ", ".join(f"{word}{_MEANS.get(word, '')}" for word in takes)
    return "\n".join(
        f"{code if _BARE.fullmatch(code) else repr(code)}: '?'   # {_rows(n)}; {known}"
        for code, n in _sorted(codes)[:_SHOWN]
        if len(code) <= LONGEST_CODE
    )


def _sorted(codes: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(codes.items(), key=lambda pair: (-pair[1], pair[0]))


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _more(told: list[str] | list[tuple[str, int]]) -> str:
    return f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
