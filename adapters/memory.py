"""Records in a list, searched: the shortest correct reading of the contract.

The other adapters are compared with this one, and it stands in for a hospital wherever
a test needs one. What is kept between searches is an order, and only while no row changes.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from adapters.contract import (
    Capabilities,
    Criterion,
    EncounterRecord,
    GoneError,
    Group,
    Key,
    NotFoundError,
    OrganizationRecord,
    Page,
    ParameterCapability,
    PatientRecord,
    Position,
    Problem,
    Record,
    ReferenceCriterion,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    StringMatch,
)
from adapters.mapping.model import HIDDEN, REMOVED, DateReading
from adapters.matching import Matcher, utc
from adapters.ordering import follows, inside, precedes


class FaultyRow(NamedTuple):
    """A row that cannot be mapped: where it stands and what it would match, and why not."""

    record: Record
    fault: RowFault


Row: TypeAlias = Record | FaultyRow
Placed: TypeAlias = list[tuple[Position, Row]]
"""Rows, each with its place in an order."""

MOST_ANSWERS = 100


def _able(tokens: str, texts: str, first: SortKey) -> ResourceCapabilities:
    text = ParameterCapability(matches=frozenset(StringMatch))
    return ResourceCapabilities(
        dict.fromkeys(tokens.split(), ParameterCapability())
        | dict.fromkeys(texts.split(), text),
        sorts=(first, SortKey.LAST_UPDATED),
        keyset=True,
    )


_STAY = "_id patient date identifier status class service-provider._extension"
CAPABILITIES: Capabilities = {
    ResourceType.ENCOUNTER: _able(_STAY, "", SortKey.DATE),
    ResourceType.PATIENT: _able(
        "_id identifier birthdate gender", "name family given", SortKey.ID
    ),
    ResourceType.ORGANIZATION: _able("_id identifier", "name", SortKey.ID),
}
"""Everything there is to ask."""


class MemoryAdapter:
    """A hospital system that is a list of records.

    A stay whose status is `hidden` or `removed` is held and not served. Ids are ordered
    by code point, but as numbers for the types in `number_ids`.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        *,
        time_zone: ZoneInfo,
        date_reading: DateReading = DateReading.START,
        number_ids: Collection[ResourceType] = (),
    ) -> None:
        self._matcher = Matcher(time_zone, date_reading)
        self._number_ids = frozenset(number_ids)
        self._rows: dict[tuple[ResourceType, str], Row] = {}
        self._answers: dict[object, Placed] = {}
        for row in rows:
            self.put(row)

    def put(self, row: Row) -> None:
        """Take a row in, in place of the one with its id when there is one."""
        record = _record(row)
        self._rows[resource_type_of(record), record.id] = row
        self._answers.clear()

    def delete(self, resource_type: ResourceType, id: str) -> None:
        """Drop a row; raises KeyError when there is none."""
        del self._rows[resource_type, id]
        self._answers.clear()

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked: everything there is."""
        return CAPABILITIES

    @property
    def fingerprint(self) -> str:
        """A digest of how this adapter reads a question."""
        return hashlib.sha256(repr(self._matcher).encode()).hexdigest()[:16]

    def search(self, query: SearchQuery) -> Page:
        """Return up to `query.count` rows from where the query starts."""
        rows = self._ordered(query)
        if query.backwards:
            if (mark := query.before) is not None:
                rows = [pair for pair in rows if precedes(pair[0], mark, query.sort)]
            return _page(rows[-query.count :], len(rows) > query.count)
        if (mark := query.after) is not None:
            rows = [pair for pair in rows if follows(pair[0], mark, query.sort)]
        return _page(rows[: query.count], len(rows) > query.count)

    def count(self, query: SearchQuery) -> int:
        """Return how many rows match, rows that cannot be mapped included."""
        return len(self._matching(query))

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource; raises as the contract says."""
        row = self._rows.get((resource_type, id))
        if row is None or _status(row) == HIDDEN:
            raise NotFoundError(f"no such {resource_type}")
        if _status(row) == REMOVED:
            raise GoneError(f"that {resource_type} is removed")
        if isinstance(row, FaultyRow):
            raise SourceDataError("a row cannot be mapped", row.fault)
        return row

    def explain(self, query: SearchQuery) -> str:
        """Return the question in words."""
        asked = " and ".join(f"{c.parameter} = ?" for c in query.criteria) or "all"
        direction = "descending" if query.sort.descending else "ascending"
        return f"{query.resource_type}: {asked}, by {query.sort.key}, {direction}"

    def check(self) -> Iterable[Problem]:
        """Find nothing: a list always answers."""
        return ()

    def close(self) -> None:
        """Do nothing: a list has no connections."""

    def _matching(self, query: SearchQuery) -> list[Row]:
        criteria = tuple(self._with_survivors(c) for c in query.criteria)
        return [
            row
            for (type_, _), row in tuple(self._rows.items())
            if type_ is query.resource_type
            and _status(row) not in (HIDDEN, REMOVED)
            and all(self._matcher.matches(_record(row), c) for c in criteria)
        ]

    def _with_survivors(self, criterion: Criterion) -> Criterion:
        """Add to the patients asked for those that replaced them (decision 9)."""
        if not isinstance(criterion, ReferenceCriterion):
            return criterion
        asked = [self._rows.get((ResourceType.PATIENT, id)) for id in criterion.values]
        survivors = tuple(
            record.replaced_by
            for record in (_record(row) for row in asked if row is not None)
            if isinstance(record, PatientRecord) and record.replaced_by
        )
        return replace(criterion, values=criterion.values + survivors)

    # The order: rows with the key, then rows without; inside both groups by key and id.

    def _ordered(self, query: SearchQuery) -> Placed:
        """Return what matches, in order; kept while no row changes, for page after page."""
        asked = (query.resource_type, query.criteria, query.sort)
        found = self._answers.get(asked)
        if found is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[asked] = self._in_order(query)
        return found

    def _in_order(self, query: SearchQuery) -> Placed:
        placed = [(self._position(r, query.sort), r) for r in self._matching(query)]
        return [
            pair
            for group in Group
            for pair in sorted(
                (pair for pair in placed if pair[0].group is group),
                key=lambda pair: inside(pair[0]),
                reverse=query.sort.descending,
            )
        ]

    def _position(self, row: Row, sort: Sort) -> Position:
        record = _record(row)
        is_number = resource_type_of(record) in self._number_ids
        id_: Key = int(record.id) if is_number else record.id
        key = id_ if sort.key is SortKey.ID else _time(record, sort.key)
        group = Group.UNKEYED if key is None else Group.KEYED
        return Position(group, key, id_, key if isinstance(key, datetime) else None)


def _page(rows: Placed, more: bool) -> Page:
    if not rows:
        return Page(())
    positions = tuple(position for position, _ in rows)
    shown = tuple(r.fault if isinstance(r, FaultyRow) else r for _, r in rows)
    return Page(shown, more, positions[0], positions[-1], positions)


def resource_type_of(record: Record) -> ResourceType:
    """Return the type of resource that a record is."""
    return _TYPES[type(record)]


_TYPES: Mapping[type[Record], ResourceType] = {
    EncounterRecord: ResourceType.ENCOUNTER,
    PatientRecord: ResourceType.PATIENT,
    OrganizationRecord: ResourceType.ORGANIZATION,
}


def _record(row: Row) -> Record:
    return row.record if isinstance(row, FaultyRow) else row


def _status(row: Row) -> str | None:
    record = _record(row)
    return record.status if isinstance(record, EncounterRecord) else None


def _time(record: Record, key: SortKey) -> datetime | None:
    if isinstance(record, EncounterRecord) and key is SortKey.DATE:
        time = record.start
    else:
        time = record.last_updated
    return utc(time) if time else None
