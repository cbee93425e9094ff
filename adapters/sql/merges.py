"""Patients who were merged into others: whose stays a search means, and whom a stay shows.

The row of a patient names the one that it was merged into. Merges are followed from the
patients that a search or a page names, with one statement for each step of a chain: stays are
then compared with ids, by the index of their own column, on every database.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from adapters.contract import (
    Criterion,
    EncounterRecord,
    Record,
    ReferenceCriterion,
    ResourceType,
    RowFault,
    SearchQuery,
    SourceDataError,
)
from adapters.mapping.model import FieldMapping
from adapters.mapping.slots import FHIR_ID
from adapters.mapping.values import text_or_none
from adapters.parameters import SEARCH_PARAMETERS
from adapters.sql.dialects.base import Statement
from adapters.sql.engine import Database
from adapters.sql.query import NEVER, Columns, KeyColumn, SqlColumn, all_of

MOST = 1000
"""As many patients may be one: every database takes a list of so many values."""

_TOO_MANY = f"more than {MOST:,} patients were merged into one"
_NO_ID = "the patient that replaced it has an id that is not a FHIR id"

Merge: TypeAlias = tuple[str, str]
"""The id of a merged patient, and of the one that replaced it, as the source has them."""


@dataclass(frozen=True, eq=False)
class Merges:
    """The merges of the patients of a SELECT: `id` was merged into `survivor`.

    `patient` is the field of a stay that holds a patient. Where it `follows` merges, stays
    keep the ids of merged patients; else they have moved to the survivor.
    """

    columns: Columns
    id: SqlColumn
    survivor: KeyColumn
    patient: FieldMapping

    def names_patients(self, criterion: Criterion) -> bool:
        """Whether a criterion of stays names patients."""
        row = SEARCH_PARAMETERS[ResourceType.ENCOUNTER][criterion.parameter]
        return row.target is ResourceType.PATIENT and bool(self.patient.columns)

    def meant(self, database: Database, query: SearchQuery) -> SearchQuery:
        """Return a search of stays with every id of the patients that it names (decision 9).

        Raises SourceDataError where these are more than a list of values may hold.
        """
        criteria = (self._with_family(database, each) for each in query.criteria)
        return replace(query, criteria=tuple(criteria))

    def shown(
        self, database: Database, records: Sequence[Record | RowFault]
    ) -> tuple[Record | RowFault, ...]:
        """Return the records, stays of merged patients with the last survivor.

        Where merges lead in a circle there is none: the stay keeps its own patient.
        """
        if not self.patient.follows_merges:
            return tuple(records)
        ids = [r.patient_id for r in records if isinstance(r, EncounterRecord)]
        survivors: dict[str, str] = {}

        def step(ahead: Sequence[str]) -> list[str]:
            merges = self._merges(database, self.id, ahead)
            survivors.update(merges)
            return [survivor for _, survivor in merges]

        _reached(self.patient.own(filter(None, ids)), step)
        return tuple(self._moved(each, survivors) for each in records)

    def first_steps(self, query: SearchQuery) -> Iterator[Statement]:
        """Yield the first statement of each direction in which a search follows merges."""
        for criterion in filter(self.names_patients, query.criteria):
            assert isinstance(criterion, ReferenceCriterion), "it names patients"
            own = self.patient.own(criterion.values)
            statements = (self._statement(column, own) for column in self._directions)
            yield from filter(None, statements)

    @property
    def _directions(self) -> tuple[SqlColumn, ...]:
        """The columns by which merges are followed: to survivors, and back to the merged."""
        is_both = self.patient.follows_merges
        return (self.id, self.survivor.column) if is_both else (self.id,)

    def _with_family(self, database: Database, criterion: Criterion) -> Criterion:
        if not (
            isinstance(criterion, ReferenceCriterion) and self.names_patients(criterion)
        ):
            return criterion
        ids: Iterable[str] = self.patient.own(criterion.values)
        for end, column in enumerate(self._directions, 1):
            step = partial(self._other_ends, database, column, -end)
            ids = _reached(ids, step)
        prefix = self.patient.prefix
        values = dict.fromkeys((*criterion.values, *(prefix + id for id in ids)))
        return replace(criterion, values=tuple(values))

    def _other_ends(
        self, database: Database, column: SqlColumn, end: int, ids: Sequence[str]
    ) -> list[str]:
        return [merge[end] for merge in self._merges(database, column, ids)]

    def _merges(
        self, database: Database, column: SqlColumn, ids: Sequence[str]
    ) -> list[Merge]:
        """Return the merges that have one of the ids in a column."""
        statement = self._statement(column, ids)
        rows = database.fetch(statement) if statement else ()
        texts = (tuple(map(text_or_none, row)) for row in rows)
        return [(id, survivor) for id, survivor in texts if id and survivor]

    def _statement(self, column: SqlColumn, ids: Sequence[str]) -> Statement | None:
        named = self.columns.among(column, ids)
        if named is NEVER:
            return None
        selected = [self.id.name, self.survivor.column.name]
        return self.columns.select(selected, all_of([named, self.survivor.present]))

    def _moved(
        self, record: Record | RowFault, survivors: Mapping[str, str]
    ) -> Record | RowFault:
        if not isinstance(record, EncounterRecord):
            return record
        own = record.patient_id.removeprefix(self.patient.prefix)
        if own not in survivors:
            return record
        moved = self.patient.prefix + _last(own, survivors)
        if FHIR_ID.fullmatch(moved):
            return record._replace(patient_id=moved)
        column = self.survivor.column.name
        return RowFault("patient_id", column, _NO_ID, id=record.id)


def _reached(
    ids: Iterable[str], step: Callable[[Sequence[str]], Iterable[str]]
) -> tuple[str, ...]:
    """Return the ids and all that steps from them lead to, each once; circles end."""
    reached = dict.fromkeys(ids)
    ahead = tuple(reached)
    while ahead:
        ahead = tuple(id for id in dict.fromkeys(step(ahead)) if id not in reached)
        reached |= dict.fromkeys(ahead)
        if len(reached) > MOST:
            raise SourceDataError(_TOO_MANY)
    return tuple(reached)


def _last(id: str, survivors: Mapping[str, str]) -> str:
    """Return the last survivor of a patient, the patient itself in a circle."""
    last, passed = id, {id}
    while last in survivors:
        last = survivors[last]
        if last in passed:
            return id
        passed.add(last)
    return last
