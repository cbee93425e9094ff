"""Records in a list, searched: the shortest correct implementation of the interface.

The other adapters are compared with this one, and tests use it in place of a hospital.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
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
    Page,
    ParameterCapability,
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
from adapters.mapping.slots import UNSERVED
from adapters.matching import (
    Matcher,
    follows,
    in_group,
    precedes,
    resource_type_of,
    utc,
)
from adapters.parameters import SEARCH_PARAMETERS, SORTS, ParameterType


class FaultyRow(NamedTuple):
    """A row that cannot be mapped: what it is searched and ordered by, and its fault."""

    record: Record
    fault: RowFault


MemoryRow: TypeAlias = Record | FaultyRow
ShownRow: TypeAlias = Record | RowFault
Placed: TypeAlias = list[tuple[Position, ShownRow]]


def _capabilities(kind: ResourceType) -> ResourceCapabilities:
    text = ParameterCapability(matches=frozenset(StringMatch))
    return ResourceCapabilities(
        {
            name: text if row.type is ParameterType.STRING else ParameterCapability()
            for name, row in SEARCH_PARAMETERS[kind].items()
        },
        sorts=tuple(SortKey(key) for key in SORTS[kind]),
        keyset=True,
    )


CAPABILITIES: Capabilities = {kind: _capabilities(kind) for kind in ResourceType}
"""Every parameter, sort key and match there is."""


class MemoryAdapter:
    """A hospital system that is a list of records.

    It serves no stay whose status is `hidden` or `removed`. Ids are ordered by code point,
    and as numbers for the types in `number_ids`.
    """

    def __init__(
        self,
        rows: Iterable[MemoryRow],
        *,
        time_zone: ZoneInfo,
        date_reading: DateReading = DateReading.START,
        number_ids: Collection[ResourceType] = (),
    ) -> None:
        self._matcher = Matcher(time_zone, date_reading)
        self._number_ids = frozenset(number_ids)
        self._rows: dict[tuple[ResourceType, str], tuple[Record, ShownRow]] = {}
        for row in rows:
            self.put(row)

    def put(self, row: MemoryRow) -> None:
        """Add a row, or replace the one with its id."""
        record, shown = row if isinstance(row, FaultyRow) else (row, row)
        self._rows[resource_type_of(record), record.id] = (record, shown)

    def delete(self, resource_type: ResourceType, id: str) -> None:
        """Remove a row; raises KeyError if there is none."""
        del self._rows[resource_type, id]

    @property
    def capabilities(self) -> Capabilities:
        """Everything there is."""
        return CAPABILITIES

    @property
    def fingerprint(self) -> str:
        """A digest of how this adapter reads a search."""
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
        """Return the number of matches, including rows that cannot be mapped."""
        return len(self._matching(query))

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one resource."""
        record, shown = self._rows.get((resource_type, id), (None, None))
        if shown is None or _status(record) == HIDDEN:
            raise NotFoundError(f"no such {resource_type}")
        if _status(record) == REMOVED:
            raise GoneError(f"that {resource_type} is removed")
        if isinstance(shown, RowFault):
            raise SourceDataError("a row cannot be mapped", shown)
        return shown

    def explain(self, query: SearchQuery) -> str:
        """Return the search in words."""
        criteria = " and ".join(f"{c.parameter} = ?" for c in query.criteria) or "all"
        direction = "descending" if query.sort.descending else "ascending"
        return f"{query.resource_type}: {criteria}, by {query.sort.key}, {direction}"

    def check(self) -> Iterable[Problem]:
        """Return no problem: a list always answers."""
        return ()

    def close(self) -> None:
        """Do nothing: a list has no connections."""

    def _matching(self, query: SearchQuery) -> list[tuple[Record, ShownRow]]:
        """Return the records that match a search, each with what a page shows of it."""
        criteria = tuple(
            self._with_survivors(query.resource_type, c) for c in query.criteria
        )
        return [
            (record, shown)
            for (type_, _), (record, shown) in tuple(self._rows.items())
            if type_ is query.resource_type
            and _status(record) not in UNSERVED
            and all(self._matcher.matches(record, c) for c in criteria)
        ]

    def _with_survivors(self, kind: ResourceType, criterion: Criterion) -> Criterion:
        """Return a criterion for patients with all that replaced them added (decision 9)."""
        target = SEARCH_PARAMETERS[kind][criterion.parameter].target
        if target is not ResourceType.PATIENT:
            return criterion
        assert isinstance(criterion, ReferenceCriterion), "parameters with a target"
        ids = dict.fromkeys(criterion.values)
        unvisited = list(ids)
        while unvisited:
            patient, _ = self._rows.get(
                (ResourceType.PATIENT, unvisited.pop()), (None, None)
            )
            survivor = getattr(patient, "replaced_by", None)
            if survivor and survivor not in ids:
                ids[survivor] = None
                unvisited.append(survivor)
        return replace(criterion, values=tuple(ids))

    def _ordered(self, query: SearchQuery) -> Placed:
        """Return the matches in order: rows with the key, then those without."""
        rows = [
            (self._position(record, query.sort), shown)
            for record, shown in self._matching(query)
        ]
        return [
            pair
            for group in Group
            for pair in sorted(
                (pair for pair in rows if pair[0].group is group),
                key=lambda pair: in_group(pair[0]),
                reverse=query.sort.descending,
            )
        ]

    def _position(self, record: Record, sort: Sort) -> Position:
        """Return the position of a record; rows without the sort key are UNKEYED."""
        kind = resource_type_of(record)
        id_: Key = int(record.id) if kind in self._number_ids else record.id
        if sort.key is SortKey.ID:
            return Position(Group.KEYED, id_, id_)
        time = getattr(record, SORTS[kind].get(sort.key, ""), None)
        moment = utc(time) if time else None
        return Position(
            Group.KEYED if moment else Group.UNKEYED, moment, id=id_, moment=moment
        )


def _page(rows: Placed, more: bool) -> Page:
    if not rows:
        return Page(())
    positions = tuple(position for position, _ in rows)
    shown = tuple(row for _, row in rows)
    return Page(
        shown, more, first=positions[0], last=positions[-1], positions=positions
    )


def _status(record: Record | None) -> str | None:
    """Return the status of a stay, None for other resources."""
    return record.status if isinstance(record, EncounterRecord) else None
