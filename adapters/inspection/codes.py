"""Codes found in a source, held against the table of the mapping that reads them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from adapters.inspection import Observation, Weight
from adapters.mapping.model import CodeTable
from adapters.mapping.places import Place
from adapters.mapping.values import LONGEST_CODE, as_text

MOST = 100
"""A column with more different values than this holds no codes."""

_SHOWN = 20
_BARE = re.compile(r"[A-Za-z0-9_.-]+")


class Counted(NamedTuple):
    """The codes of one field and how many rows have each; `column` is where they stand."""

    place: Place
    column: str
    counts: Mapping[str, int]

    @property
    def codes(self) -> CodeTable:
        """The table that reads the field."""
        codes = self.place.field.codes
        assert codes is not None, "only coded fields are counted"
        return codes


def counted(place: Place, values: Iterable[tuple[object, int]]) -> Mapping[str, int]:
    """Return how often each code was found, absent ones left out, as a cell is read."""
    nothing = place.field.absent | {""}
    found: dict[str, int] = {}
    for value, rows in values:
        text = _text(value)
        if text not in nothing:
            found[text] = found.get(text, 0) + rows
    return found


def _text(value: object) -> str:
    try:
        return "" if value is None else as_text(value)
    except ValueError:
        return ""


def unnamed(found: Counted) -> Iterator[Observation]:
    """Tell the codes that no entry names."""
    codes = found.codes
    others = {c: n for c, n in found.counts.items() if c not in codes.table}
    if not others:
        return
    if len(found.counts) > MOST:
        text = f"more than {MOST} different values: is this a column of codes?"
        yield Observation.at(found.place, found.column, text, Weight.WARNING)
        return
    told = _told(others)
    place = found.place
    if codes.otherwise is not None:
        text = f"codes.{codes.name} names no {told}: all become '{codes.otherwise}'"
        yield Observation.at(place, found.column, text, Weight.NOTE)
        return
    text = f"codes.{codes.name} names no {told}: such rows cannot be served"
    mark = codes.mark or place.field.mark
    yield Observation(
        mark, place.element, found.column, text, Weight.ERROR, _lines(others, codes)
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


def _told(codes: Mapping[str, int]) -> str:
    named = [(c, n) for c, n in _sorted(codes) if len(c) <= LONGEST_CODE]
    told = [f"{code!r} ({_rows(n)})" for code, n in named[:_SHOWN]]
    if longer := sum(n for c, n in codes.items() if len(c) > LONGEST_CODE):
        told.append(f"texts too long for a code ({_rows(longer)})")
    return ", ".join(told) + _more(named)


def _lines(codes: Mapping[str, int], table: CodeTable) -> str:
    """Return the entries to add, which the check refuses until somebody has decided."""
    known = ", ".join(dict.fromkeys(table.table.values()))
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
