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
    """A source code and its column, by which changes are counted; "" for a row without one."""

    column: str = ""
    code: str = ""


class RowSummary(NamedTuple):
    """A row in about 300 bytes, so that a million stays fit into memory.

    `digests` has a hash of each element as clients read it, b"" for an invalid row.
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

    `named` has the codes that may be quoted, by element: a code that no table names may be a
    text about a person.
    """

    def __init__(self, reader: SourceReader, named: Mapping[str, Set[str]]) -> None:
        self.file = reader.file
        self.valid = 0
        self.invalid = 0
        self._reader = reader
        self._named = named

    def __iter__(self) -> Iterator[tuple[FoundRow, Mapping[str, ChangeGroup]]]:
        """Yield each row with its groups, by the element that has the code.

        The element "" has the group of a row without a code. Raises AdapterError for a source
        that is away or does not fit the file.
        """
        sections = self.file.sections(ResourceType.ENCOUNTER)
        for section in sections:
            prefix = ""
            if len(sections) > 1:
                prefix = f"{self.file.names(section)[0].rstrip('-')}."
            coded = [p for p in places_of(section) if p.field.codes and p.field.columns]
            for page in self._reader.pages(section):
                for row in page:
                    if row.stay is None:
                        self.invalid += 1
                    else:
                        self.valid += 1
                    groups = {"": ChangeGroup()}
                    for place in coded:
                        column = prefix + place.field.columns[0]
                        element = place.element.partition(".")[2]
                        groups[element] = ChangeGroup(column, self._code(place, row))
                    yield row, groups

    def _code(self, place: Place, row: FoundRow) -> str:
        """Return the source code of a field in a row, or the words for none or another one."""
        code = code_of(place, row.cell(place.field))
        if not code:
            return _NO_CODE
        return code if code in self._named[place.element] else _OTHER_CODES


def _named_codes(files: Iterable[MappingFile]) -> Mapping[str, Set[str]]:
    """Return the codes that the code tables of the files name, by element."""
    named: dict[str, set[str]] = {}
    for file in files:
        for section in file.sections(ResourceType.ENCOUNTER):
            for place in places_of(section):
                if place.field.codes:
                    codes = named.setdefault(place.element, set())
                    codes.update(place.field.codes.table)
    return named


class FileComparison:
    """The changes between two files, counted by group; `differing` counts the stays."""

    def __init__(self, old: Stays, new: Stays) -> None:
        self.old, self.new = old, new
        self.counts: Counter[tuple[Change, ChangeGroup]] = Counter()
        self.differing = 0

    @property
    def constants(self) -> Mapping[str, tuple[object, object]]:
        """The constants that differ, each with its old and its new value.

        The constant `visit_number_system` is part of each row, and compared with it.
        """
        old_constants = self.old.file.mapping.constants
        new_constants = self.new.file.mapping.constants
        differing = {}
        for name in sorted(field.name for field in fields(Constants)):
            old, new = getattr(old_constants, name), getattr(new_constants, name)
            if old != new and name != "visit_number_system":
                differing[name] = (old, new)
        return differing

    def run(self) -> Iterator[tuple[str, Sequence[Change]]]:
        """Count the changes of all stays; yield the id and the changes of each that differs."""
        before: dict[str, RowSummary] = {}
        # One object for each group, to save memory.
        shared: dict[ChangeGroup, ChangeGroup] = {}
        for row, groups in self.old:
            group = groups.get("status", groups[""])
            summary = summary_of(row, shared.setdefault(group, group))
            before.setdefault(row.outcome.id, summary)
        for row, groups in self.new:
            old = before.pop(row.outcome.id, None)
            changes = [*_changes(old, row)]
            if not changes:
                continue
            self.differing += 1
            of_status = groups.get("status", groups[""])
            for change in changes:
                # An event of the whole stay, and an element without codes, count by status.
                element = change.element or "status"
                self.counts[change, groups.get(element, of_status)] += 1
            yield row.outcome.id, changes
        # What is left is not in the new file; invalid rows were no stays of clients before.
        for id, summary in before.items():
            if summary.digests:
                change = Change(Event.DISAPPEARS)
                self.differing += 1
                self.counts[change, summary.group] += 1
                yield id, [change]


def _changes(old: RowSummary | None, new: FoundRow) -> Iterator[Change]:
    """Yield what happens to a stay; `old` is None where the old file has no such row."""
    was_valid = old is not None and bool(old.digests)
    if isinstance(new.outcome, RowFault):
        if was_valid:
            elements = {slot.name: slot.element for slot in _SLOTS}
            element = elements[new.outcome.field]
            rule = without_code(new.outcome.rule)
            yield Change(Event.BECOMES_INVALID, element, after=rule)
        return
    if old is None:
        yield Change(Event.APPEARS)
        return
    if not was_valid:
        yield Change(Event.BECOMES_VALID)
        return
    assert isinstance(new.outcome, EncounterRecord), "rows of stays become stays"
    now = summary_of(new, old.group)
    old_digests = _DIGESTS.unpack(old.digests)
    new_digests = _DIGESTS.unpack(now.digests)
    for slot, before, after in zip(_SLOTS, old_digests, new_digests, strict=True):
        if before == after:
            continue
        if slot.name == "patient_id":
            yield Change(Event.MOVES)
        elif slot.codes:
            old_value, new_value = getattr(old, slot.record), getattr(now, slot.record)
            yield Change(Event.CHANGES, slot.element, before=old_value, after=new_value)
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
    """Yield the lines that are printed: rows, constants, and the numbers of each change."""
    for side in (comparison.old, comparison.new):
        file = side.file.mapping.file
        yield f"{file}: {side.valid:,} stays, {side.invalid:,} invalid rows"
    for name, (before, after) in comparison.constants.items():
        yield f"constants.{name}: {before} → {after}, in every stay that shows it"
    yield f"{comparison.differing:,} stays differ"
    totals: Counter[Change] = Counter()
    # By change and column, how many stays with each code change.
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
    """Return codes with their numbers of stays in one line, the last ones as a sum."""
    texts = [f"{code} {stays:,}" for code, stays in counts[:_MOST_LISTED]]
    rest = [stays for _, stays in counts[_MOST_LISTED:]]
    if rest:
        texts.append(f"{len(rest)} others {sum(rest):,}")
    return ", ".join(texts)
