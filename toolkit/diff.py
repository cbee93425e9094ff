"""`encounters mapping diff`: what a changed mapping does to the stays of a hospital.

The stays of both files are read side by side in the order of their ids, one page of each
at a time, and compared as clients see them: by id and element. Source codes are quoted
where a code table names them; ids are printed on request only.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from adapters.contract import EncounterRecord, ResourceType, RowFault
from adapters.mapping.slots import SLOTS
from app.console import FINDINGS, FINE, CannotRunError
from toolkit.checks.rows import code_of, without_code
from toolkit.console import MappingFile
from toolkit.stays import NO_START, Row, Stays, month_of, reading

_ELEMENTS = {slot.name: slot.element for slot in SLOTS[ResourceType.ENCOUNTER]}
_UNNAMED = "codes without an entry"
_NONE = "none"


class Event(StrEnum):
    """What happens to a stay, as its clients see it."""

    APPEARS = "appear"
    DISAPPEARS = "disappear"
    BECOMES_VALID = "become valid"
    BECOMES_INVALID = "become invalid"
    MOVES = "move to another patient"
    CHANGES = "change"


class Change(NamedTuple):
    """An event, the element that changes, and the values of an element with codes.

    For a row that becomes invalid `after` is the rule that it breaks.
    """

    event: Event
    element: str = ""
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        if self.before:
            return f"{self.element} {self.before} → {self.after}"
        if self.after:
            return f"{self.event} ({self.element}: {self.after})"
        return self.element if self.event is Event.CHANGES else str(self.event)


class Case(NamedTuple):
    """What changes are counted by: the source code and its column, and the month of start."""

    change: Change
    column: str
    code: str
    month: str


# Stays of both files, side by side

_Order: TypeAlias = Callable[[str], Any]
_ORDERS: tuple[_Order, ...] = (lambda id: (len(id), id), str)
"""How a source may order ids: as numbers without leading zeros, or as texts."""


class Side:
    """The page of stays that one of both files is read up to.

    `rows` are those of the page, by id, that have no partner yet.
    """

    def __init__(self, stays: Stays | None) -> None:
        self.stays = stays
        self.rows: dict[str, Row] = {}
        self.counts: Counter[bool] = Counter()
        self.is_over = False
        self._pages = stays.pages() if stays else iter(())
        self._last = ""
        self._key: Any = None
        self._orders = list(_ORDERS)
        self.advance()

    def advance(self) -> None:
        """Go on to the next page, and count its valid and its invalid rows."""
        page = next(self._pages, [])
        self.is_over = not page
        self.rows = {row.outcome.id: row for row in reversed(page)}
        self.counts.update(row.stay is not None for row in page)
        if self.stays and page:
            self._key = page[-1].cell(self.stays.section.fields["id"])
            ids = [self._last, *(row.outcome.id for row in page if row.outcome.id)]
            self._last = ids[-1]
            self._orders = [o for o in self._orders if _is_ascending(map(o, ids))]

    def ends_before(self, other: "Side") -> bool:
        """Whether this page ends before that of the other file, in the order of ids.

        Raises CannotRunError where both are not in one order.
        """
        assert self.stays, "a side without stays has no page"
        assert other.stays, "a side without stays has no page"
        one, two = self._key, other._key
        if not (self.stays.is_keyset and other.stays.is_keyset):
            order = next((o for o in self._orders if o in other._orders), None)
            if order is None:
                raise CannotRunError(_NO_ORDER)
            return bool(order(self._last) < order(other._last))
        if isinstance(one, (int, Decimal)) and isinstance(two, (int, Decimal)):
            return one < two
        if type(one) is not type(two):
            raise CannotRunError(_OTHER_TYPE)
        # A database compares texts by a collation of its own.
        return other.stays.is_after(two, one)


_OTHER_TYPE = (
    "the ids of the two files are of different types, whose orders differ: let both SELECTs"
    " return ids of one type"
)
_NO_ORDER = (
    "a source does not return its stays in the order of their ids: stays of both files"
    " cannot be compared in bounded memory. An HTTP API needs '_id' under sort"
)


def _is_ascending(keys: Iterable[Any]) -> bool:
    return all(one <= other for one, other in pairwise(keys))


def pairs(old: Side, new: Side) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield the rows with an id of either file, and None where a file has no such row.

    The page that ends first is decided: what has no partner now has none at all.
    """
    while not (old.is_over and new.is_over):
        for id in [id for id in old.rows if id in new.rows]:
            yield old.rows.pop(id), new.rows.pop(id)
        if new.is_over or (not old.is_over and old.ends_before(new)):
            yield from ((row, None) for row in old.rows.values())
            old.advance()
        else:
            yield from ((None, row) for row in new.rows.values())
            new.advance()


# What changes

_Both: TypeAlias = tuple[Stays | None, Stays | None]
"""The stays of both files whose ids begin with the same prefix."""


class Comparison:
    """The changes between two files, counted."""

    def __init__(self, old: MappingFile, new: MappingFile) -> None:
        self._files = old, new
        # Equal instants with another offset are another text for clients.
        self._has_other_zone = old.mapping.time_zone != new.mapping.time_zone
        self.cases: Counter[Case] = Counter()
        self._named: dict[str, set[str]] = {}
        self.differing = 0
        self.rows: tuple[Counter[bool], Counter[bool]] = Counter(), Counter()

    @property
    def constants(self) -> Mapping[str, tuple[object, object]]:
        """The constants that differ and that no row has: stays show them."""
        old, new = (asdict(file.mapping.constants) for file in self._files)
        names = old.keys() - {"visit_number_system"}
        return {n: (old[n], new[n]) for n in sorted(names) if old[n] != new[n]}

    def run(
        self, old: Iterable[Stays], new: Iterable[Stays]
    ) -> Iterator[tuple[str, Sequence[Change]]]:
        """Count the changes of all stays; yield the id and the changes of each that differs."""
        before, after = ({stays.prefix: stays for stays in of} for of in (old, new))
        for prefix in dict.fromkeys((*before, *after)):
            stays = before.get(prefix), after.get(prefix)
            sides = Side(stays[0]), Side(stays[1])
            for rows in pairs(*sides):
                if changes := list(self._changes(stays, *rows)):
                    self.differing += 1
                    self.cases.update(self._case(c, stays, *rows) for c in changes)
                    yield next(filter(None, rows)).outcome.id, changes
            for counts, side in zip(self.rows, sides, strict=True):
                counts.update(side.counts)

    def _changes(
        self, both: _Both, old: Row | None, new: Row | None
    ) -> Iterator[Change]:
        before, after = old and old.stay, new and new.stay
        if before and after:
            yield from self._changes_of_stay(both, before, after)
        elif after:
            yield Change(Event.BECOMES_VALID if old else Event.APPEARS)
        elif before and new and isinstance(fault := new.outcome, RowFault):
            element, rule = _ELEMENTS[fault.field], without_code(fault.rule)
            yield Change(Event.BECOMES_INVALID, element, after=rule)
        elif before:
            yield Change(Event.DISAPPEARS)

    def _changes_of_stay(
        self, both: _Both, old: EncounterRecord, new: EncounterRecord
    ) -> Iterator[Change]:
        if old == new and not self._has_other_zone:
            return
        for slot in SLOTS[ResourceType.ENCOUNTER]:
            before, after = (_shown(getattr(stay, slot.record)) for stay in (old, new))
            is_coded = all(stays and slot.element in stays.coded for stays in both)
            if before == after:
                continue
            if slot.name == "patient_id":
                yield Change(Event.MOVES)
            elif slot.codes or is_coded:
                values = (before or _NONE, after or _NONE)
                yield Change(Event.CHANGES, slot.element, *values)
            else:
                yield Change(Event.CHANGES, slot.element)

    def _case(
        self, change: Change, both: _Both, old: Row | None, new: Row | None
    ) -> Case:
        """Return what a change is counted by: the code of the new row, if there is one."""
        row, stays = (new, both[1]) if new else (old, both[0])
        assert row, "a change is of a row"
        assert stays, "a row is of stays"
        month = month_of((new and new.stay) or (old and old.stay))
        place = stays.coded.get(change.element) or stays.coded.get("status")
        if place is None:
            return Case(change, "", "", month)
        column = stays.column(place.field.columns[0])
        if column not in self._named:
            self._named[column] = {_NONE, *_named_codes(both, column)}
        code = code_of(place, row.cell(place.field)) or _NONE
        # What no table names may be no code but a text about somebody.
        shown = code if code in self._named[column] else _UNNAMED
        return Case(change, column, shown, month)


def _shown(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _named_codes(both: Iterable[Stays | None], column: str) -> Iterator[str]:
    """Yield the codes of a column that a table of either file names."""
    for stays in filter(None, both):
        for place in stays.coded.values():
            if place.field.codes and stays.column(place.field.columns[0]) == column:
                yield from place.field.codes.table


# What is printed


def run(*, old: Path, new: Path, ids: bool, as_json: bool) -> int:
    """Print what changes, and return 1 if anything does."""
    files = (old, new)
    with reading(*files) as ((old_file, before), (new_file, after)):
        comparison = Comparison(old_file, new_file)
        differing = comparison.run(before, after)
        if ids and as_json:
            _stream_json(differing)
        for id, changes in differing:
            if ids:
                print(id, "; ".join(map(str, changes)), sep="\t")
    if as_json:
        document = json.dumps(_as_json(comparison, files), ensure_ascii=False, indent=2)
        # The list of stays stands before, where there is one.
        print(document[1:] if ids else document)
    else:
        print(*_as_text(comparison, files), sep="\n")
    return FINDINGS if comparison.differing or comparison.constants else FINE


def _stream_json(differing: Iterable[tuple[str, Sequence[Change]]]) -> None:
    """Print the first member of a JSON document, one stay after the other."""
    comma = ""
    print('{"stays": [')
    for id, changes in differing:
        stay = {"id": id, "changes": [change._asdict() for change in changes]}
        print(f"{comma}{json.dumps(stay, ensure_ascii=False)}")
        comma = ","
    print("],", end="")


def _as_json(comparison: Comparison, files: Sequence[Path]) -> dict[str, Any]:
    old, new = (
        {"file": str(file), "stays": rows[True], "invalid_rows": rows[False]}
        for file, rows in zip(files, comparison.rows, strict=True)
    )
    return {
        "old": old,
        "new": new,
        "differing": comparison.differing,
        "constants": comparison.constants,
        "changes": [
            {**case._asdict(), **case.change._asdict(), "stays": stays}
            for case, stays in sorted(comparison.cases.items())
        ],
    }


def _as_text(comparison: Comparison, files: Sequence[Path]) -> Iterator[str]:
    for file, rows in zip(files, comparison.rows, strict=True):
        yield f"{file}: {rows[True]:,} stays, {rows[False]:,} invalid rows"
    for name, (before, after) in comparison.constants.items():
        yield f"constants.{name}: {before} → {after}, in every stay that shows it"
    yield f"{comparison.differing:,} stays differ"
    by_change: dict[Change, Counter[Case]] = {}
    for case, stays in comparison.cases.items():
        by_change.setdefault(case.change, Counter())[case] = stays
    for change in sorted(by_change, key=lambda c: (-by_change[c].total(), c)):
        cases = by_change[change]
        yield f"  {change}: {cases.total():,}"
        codes: dict[str, Counter[str]] = {}
        months: Counter[str] = Counter()
        for case, stays in cases.items():
            codes.setdefault(case.column, Counter())[case.code] += stays
            months[case.month] += stays
        for column, counts in codes.items():
            if column:
                yield f"    by {column}: {_listed(counts.most_common())}"
        yield f"    by {_starts(months)}"


def _starts(months: Counter[str]) -> str:
    unit, length = ("month", 7) if len(months) <= _MOST else ("year", 4)
    starts: Counter[str] = Counter()
    for month, stays in months.items():
        starts[month if month == NO_START else month[:length]] += stays
    return f"{unit} of start: {_listed(sorted(starts.items()))}"


_MOST = 12
"""How many codes or months a line has; more months are printed as years."""


def _listed(counts: Sequence[tuple[str, int]]) -> str:
    texts = [f"{name} {stays:,}" for name, stays in counts[:_MOST]]
    if others := counts[_MOST:]:
        texts.append(f"{len(others)} others {sum(n for _, n in others):,}")
    return ", ".join(texts)
