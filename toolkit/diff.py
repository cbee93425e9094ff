"""`encounters mapping diff`: what a changed mapping does to the stays of a hospital.

All stays are read with the old file, and a summary of each is kept; then with the new one.
They are compared as clients see them: by id and element. Source codes are quoted where a
code table names them; ids are printed on request only.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from adapters.contract import EncounterRecord, ResourceType, RowFault
from adapters.mapping.model import Constants
from adapters.mapping.slots import SLOTS, Place, places_of
from app.console import FINDINGS, FINE
from toolkit.checks.rows import code_of, without_code
from toolkit.console import MappingFile
from toolkit.source_rows import FoundRow, SourceReader

_SLOTS = SLOTS[ResourceType.ENCOUNTER]
_DIGESTS = Struct(f"{len(_SLOTS)}q")
_NO_CODE = "none"
_OTHER_CODES = "codes without an entry"
_MOST_LISTED = 12
"""How many codes a line has."""


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


class ChangeGroup(NamedTuple):
    """What changes are counted by besides: a source code and its column, "" for none."""

    column: str = ""
    code: str = ""


class RowSummary(NamedTuple):
    """What is kept of a row: about 300 bytes, so that a million stays fit into memory.

    `digests` has a number for each element as clients read it, b"" for an invalid row.
    """

    digests: bytes
    status: str
    class_code: str
    group: ChangeGroup


def summary_of(row: FoundRow, group: ChangeGroup) -> RowSummary:
    """Return the summary of a row; `group` is that of its status."""
    stay = row.stay
    if stay is None:
        return RowSummary(b"", "", class_code="", group=group)
    texts = [str(getattr(stay, slot.record)) for slot in _SLOTS]
    digests = _DIGESTS.pack(*map(hash, texts))
    return RowSummary(
        digests, stay.status, class_code=stay.class_code or _NO_CODE, group=group
    )


class Stays:
    """The stays of a file, read section by section; `valid` and `invalid` count their rows.

    `named` has the codes of each element that may be quoted: what no table names may be a
    text about somebody.
    """

    def __init__(self, reader: SourceReader, named: Mapping[str, Set[str]]) -> None:
        self.file = reader.file
        self.valid = self.invalid = 0
        self._reader, self._named = reader, named

    def __iter__(self) -> Iterator[tuple[FoundRow, Mapping[str, ChangeGroup]]]:
        """Yield each row, and the groups that it counts in, by the element with the code.

        Raises AdapterError for a source that is away or does not fit the file.
        """
        sections = self.file.sections(ResourceType.ENCOUNTER)
        for section in sections:
            name = ""
            if len(sections) > 1:
                name = f"{self.file.names(section)[0].rstrip('-')}."
            coded = [p for p in places_of(section) if p.field.codes and p.field.columns]
            for page in self._reader.pages(section):
                for row in page:
                    self.valid += row.stay is not None
                    self.invalid += row.stay is None
                    groups = {"": ChangeGroup()}
                    for place in coded:
                        column, code = place.field.columns[0], self._code(place, row)
                        group = ChangeGroup(name + column, code)
                        groups[place.element.partition(".")[2]] = group
                    yield row, groups

    def _code(self, place: Place, row: FoundRow) -> str:
        """Return the code that a row has for an element."""
        code = code_of(place, row.cell(place.field))
        if not code:
            return _NO_CODE
        return code if code in self._named[place.element] else _OTHER_CODES


def _named_codes(files: Iterable[MappingFile]) -> Mapping[str, Set[str]]:
    """Return the codes that a table of one of the files names, by element."""
    named: dict[str, set[str]] = {}
    for file in files:
        for section in file.sections(ResourceType.ENCOUNTER):
            for place in places_of(section):
                if place.field.codes:
                    named.setdefault(place.element, set()).update(
                        place.field.codes.table
                    )
    return named


class FileComparison:
    """The changes between two files, counted by group."""

    def __init__(self, old: Stays, new: Stays) -> None:
        self.old, self.new = old, new
        self.counts: Counter[tuple[Change, ChangeGroup]] = Counter()
        self.differing = 0

    @property
    def constants(self) -> Mapping[str, tuple[object, object]]:
        """The constants that differ and that no row has: stays show them."""
        old, new = (stays.file.mapping.constants for stays in (self.old, self.new))
        pairs = {
            field.name: (getattr(old, field.name), getattr(new, field.name))
            for field in fields(Constants)
            if field.name != "visit_number_system"
        }
        return {n: pair for n, pair in sorted(pairs.items()) if pair[0] != pair[1]}

    def run(self) -> Iterator[tuple[str, Sequence[Change]]]:
        """Count the changes of all stays; yield the id and the changes of each that differs."""
        before: dict[str, RowSummary] = {}
        shared: dict[ChangeGroup, ChangeGroup] = {}
        for row, groups in self.old:
            group = groups.get("status", groups[""])
            # Stays have few groups: each is kept once.
            summary = summary_of(row, shared.setdefault(group, group))
            before.setdefault(row.outcome.id, summary)
        for row, groups in self.new:
            old = before.pop(row.outcome.id, None)
            changes = [*_changes(old, row)]
            of_status = groups.get("status", groups[""])
            self._count(
                [(c, groups.get(c.element or "status", of_status)) for c in changes]
            )
            if changes:
                yield row.outcome.id, changes
        for id, summary in before.items():
            if summary.digests:
                change = Change(Event.DISAPPEARS)
                self._count([(change, summary.group)])
                yield id, [change]

    def _count(self, changes: Sequence[tuple[Change, ChangeGroup]]) -> None:
        self.counts.update(changes)
        if changes:
            self.differing += 1


def _changes(old: RowSummary | None, new: FoundRow) -> Iterator[Change]:
    """Yield what happens to a stay; `old` is None where the old file has no such row."""
    was_valid = old is not None and bool(old.digests)
    if isinstance(new.outcome, RowFault):
        if was_valid:
            elements = {slot.name: slot.element for slot in _SLOTS}
            element, rule = elements[new.outcome.field], without_code(new.outcome.rule)
            yield Change(Event.BECOMES_INVALID, element, after=rule)
        return
    if old is None or not was_valid:
        yield Change(Event.APPEARS if old is None else Event.BECOMES_VALID)
        return
    assert isinstance(new.outcome, EncounterRecord), "rows of stays become stays"
    now = summary_of(new, old.group)
    digests = zip(
        _DIGESTS.unpack(old.digests), _DIGESTS.unpack(now.digests), strict=True
    )
    for slot, (before, after) in zip(_SLOTS, digests, strict=True):
        if before == after:
            continue
        if slot.name == "patient_id":
            yield Change(Event.MOVES)
        elif slot.codes:
            values = getattr(old, slot.record), getattr(now, slot.record)
            yield Change(Event.CHANGES, slot.element, *values)
        else:
            yield Change(Event.CHANGES, slot.element)


def run(*, old: Path, new: Path, ids: bool) -> int:
    """Print what changes, and return 1 if anything does."""
    with ExitStack() as stack:
        files = [MappingFile.open(path, os.environ) for path in (old, new)]
        readers = [stack.enter_context(SourceReader(file)) for file in files]
        named = _named_codes(files)
        comparison = FileComparison(*(Stays(reader, named) for reader in readers))
        for id, changes in comparison.run():
            if ids:
                print(id, "; ".join(map(str, changes)), sep="\t")
    print(*_as_text(comparison), sep="\n")
    return FINDINGS if comparison.differing or comparison.constants else FINE


def _as_text(comparison: FileComparison) -> Iterator[str]:
    for side in (comparison.old, comparison.new):
        file = side.file.mapping.file
        yield f"{file}: {side.valid:,} stays, {side.invalid:,} invalid rows"
    for name, (before, after) in comparison.constants.items():
        yield f"constants.{name}: {before} → {after}, in every stay that shows it"
    yield f"{comparison.differing:,} stays differ"
    totals: Counter[Change] = Counter()
    # By the change and a column with codes, how many stays of each code it concerns.
    by_code: dict[Change, dict[str, Counter[str]]] = {}
    for (change, group), stays in comparison.counts.items():
        totals[change] += stays
        columns = by_code.setdefault(change, {})
        if group.column:
            columns.setdefault(group.column, Counter())[group.code] += stays
    for change, total in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        yield f"  {change}: {total:,}"
        for column, counts in by_code[change].items():
            yield f"    by {column}: {_listed(counts.most_common())}"


def _listed(counts: Sequence[tuple[str, int]]) -> str:
    texts = [f"{name} {stays:,}" for name, stays in counts[:_MOST_LISTED]]
    if others := counts[_MOST_LISTED:]:
        texts.append(f"{len(others)} others {sum(n for _, n in others):,}")
    return ", ".join(texts)
