"""Patients who were merged into others: in the searches of stays, and in the stays returned.

The row of a patient names the one that it was merged into. Merges are followed from the
patients that a search or a page names, with one statement for each step of a chain: stays are
then compared with ids, by the index of their own column, on every database.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from typing import Any, NamedTuple, TypeGuard, cast

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
from adapters.mapping.model import FieldMapping, Mark
from adapters.mapping.slots import FHIR_ID
from adapters.mapping.values import text_or_none
from adapters.parameters import SEARCH_PARAMETERS
from adapters.sql.dialects.base import Statement
from adapters.sql.engine import Database
from adapters.sql.query import (
    LONGEST_LIST,
    NEVER,
    Columns,
    KeyColumn,
    SqlColumn,
    all_of,
)

MOST = LONGEST_LIST
"""As many patients may be one: stays are compared with a list of them."""

_TOO_MANY = f"more than {MOST:,} patients were merged into one"
_NO_ID = "the patient that replaced it has an id that is not a FHIR id"


class Chains(NamedTuple):
    """The `ids` whose merges are known, and the survivor of each that was merged."""

    ids: dict[str, None]
    survivors: dict[str, str]


@dataclass(frozen=True, eq=False)
class Merges:
    """The merges of the patients of a SELECT: `id` was merged into `survivor`.

    `patient` is the field of a stay that holds a patient. Where it follows merges, stays
    keep the ids of merged patients; else they have moved to the survivor. `mark` is the
    place of the patients in the mapping.
    """

    mark: Mark
    columns: Columns
    id: SqlColumn
    survivor: KeyColumn
    patient: FieldMapping

    def _names_patients(self, criterion: Criterion) -> TypeGuard[ReferenceCriterion]:
        """Whether a criterion of stays names patients."""
        row = SEARCH_PARAMETERS[ResourceType.ENCOUNTER][criterion.parameter]
        return row.target is ResourceType.PATIENT and bool(self.patient.columns)

    def with_merged_patients(
        self, database: Database, query: SearchQuery
    ) -> tuple[SearchQuery, Chains]:
        """Return a search of stays with every id of the patients that it names (decision 9).

        Raises SourceDataError where these are more than a list of values may hold.
        """
        chains = Chains({}, {})
        criteria = []
        shared = {} if query.shared is None else query.shared
        for criterion in query.criteria:
            if self._names_patients(criterion):
                of_criterion = self._chains(database, criterion, shared)
                chains.ids.update(of_criterion.ids)
                chains.survivors.update(of_criterion.survivors)
                ids = (self.patient.prefix + id for id in of_criterion.ids)
                values = dict.fromkeys((*criterion.values, *ids))
                criterion = replace(criterion, values=_padded(values))
            criteria.append(criterion)
        return replace(query, criteria=tuple(criteria)), chains

    def shown(
        self,
        database: Database,
        records: Sequence[Record | RowFault],
        chains: Chains,
    ) -> tuple[Record | RowFault, ...]:
        """Return the records, stays of merged patients with the last survivor.

        Where merges lead in a circle there is none: the stay keeps its own patient. `chains`
        are those that are known already.
        """
        if not self.patient.follows_merges:
            return tuple(records)
        stays = (record for record in records if isinstance(record, EncounterRecord))
        ids = self.patient.source_ids(
            stay.patient_id for stay in stays if stay.patient_id
        )
        self._follow(database, ids, chains, back=False, most=inf)
        return tuple(self._moved(record, chains.survivors) for record in records)

    def first_steps(self, query: SearchQuery) -> Iterator[Statement]:
        """Yield the first statement with which a search follows merges, for each criterion."""
        for criterion in query.criteria:
            if self._names_patients(criterion):
                ids = self.patient.source_ids(criterion.values)
                if step := self._step(ids, back=self.patient.follows_merges):
                    yield step

    def without_survivor(self, database: Database) -> int:
        """Return how many patients have no last survivor: their merges lead into a circle."""
        survivors = dict(self.pairs(database))
        in_circles = [id for id in survivors if _last(id, survivors) == id]
        return len(in_circles)

    def pairs(self, database: Database) -> list[tuple[str, str]]:
        """Return the patients who were replaced, each with the one that replaced it."""
        names = [self.id.name, self.survivor.column.name]
        statement = self.columns.select_each(names, [self.survivor.present])
        return self._pairs_of(database.fetch(statement))

    def _chains(
        self,
        database: Database,
        criterion: ReferenceCriterion,
        shared: dict[Any, Any],
    ) -> Chains:
        """Return the chains of the patients of a criterion.

        Stays of several tables refer to the same patients, and are searched at the same time:
        the search that comes first reads their merges, the others wait for its result in
        `shared`.
        """
        back = self.patient.follows_merges
        own_future: Future[Chains] = Future()
        key = (database, self.mark, back, criterion.values)
        future = cast("Future[Chains]", shared.setdefault(key, own_future))
        if future is own_future:
            try:
                chains = Chains({}, {})
                ids = self.patient.source_ids(criterion.values)
                self._follow(database, ids, chains, back=back)
                future.set_result(chains)
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result()

    def _follow(
        self,
        database: Database,
        ids: Iterable[str],
        chains: Chains,
        *,
        back: bool,
        most: float = MOST,
    ) -> None:
        """Add patients to the chains, and all that their merges lead to.

        With `back` these are their survivors and those who were merged into them, else their
        survivors alone. Each id is read once, so merges in a circle end. Raises SourceDataError
        for more ids than `most`.
        """
        unread = [id for id in dict.fromkeys(ids) if id not in chains.ids]
        while unread:
            chains.ids.update(dict.fromkeys(unread))
            if len(chains.ids) > most:
                raise SourceDataError(_TOO_MANY)
            step = self._step(unread, back=back)
            rows = database.fetch(step) if step else ()
            merges = self._pairs_of(rows)
            chains.survivors.update(merges)
            reached = dict.fromkeys(chain.from_iterable(merges))
            unread = [id for id in reached if id not in chains.ids]

    def _step(self, ids: Sequence[str], *, back: bool) -> Statement | None:
        """Return the statement that reads the survivors of patients, None where no id fits.

        With `back` it also reads the patients who were merged into them.
        """
        columns = (self.id, self.survivor.column) if back else (self.id,)
        conditions = []
        for column in columns:
            of_ids = self.columns.among(column, _padded(ids))
            condition = all_of([of_ids, self.survivor.present])
            if condition is not NEVER:
                conditions.append(condition)
        if not conditions:
            return None
        selected = [self.id.name, self.survivor.column.name]
        return self.columns.select_each(selected, conditions)

    def _pairs_of(self, rows: Iterable[Sequence[Any]]) -> list[tuple[str, str]]:
        """Return the id and the survivor of each row that has both."""
        pairs = []
        for id_value, survivor_value in rows:
            id = text_or_none(id_value, self.id.form)
            survivor = text_or_none(survivor_value, self.survivor.column.form)
            if id and survivor:
                pairs.append((id, survivor))
        return pairs

    def _moved(
        self, record: Record | RowFault, survivors: Mapping[str, str]
    ) -> Record | RowFault:
        """Return a stay with the last survivor of its patient, other records as they are."""
        if not isinstance(record, EncounterRecord):
            return record
        patient = record.patient_id.removeprefix(self.patient.prefix)
        if patient not in survivors:
            return record
        moved = self.patient.prefix + _last(patient, survivors)
        if FHIR_ID.fullmatch(moved):
            return record._replace(patient_id=moved)
        column = self.survivor.column.name
        return RowFault("patient_id", column, _NO_ID, id=record.id)


def _padded(ids: Iterable[str]) -> tuple[str, ...]:
    """Return ids with the last one repeated, so that statements come in few lengths.

    A database needs longer to plan one than to run it. The length is a power of two; no list
    becomes longer than MOST.
    """
    values = tuple(ids)
    if not values:
        return ()
    power_of_two = 1 << (len(values) - 1).bit_length()
    padding = min(power_of_two, MOST) - len(values)
    return (*values, *[values[-1]] * padding)


def _last(id: str, survivors: Mapping[str, str]) -> str:
    """Return the last survivor of a patient, the patient itself in a circle."""
    last, passed = id, {id}
    while last in survivors:
        last = survivors[last]
        if last in passed:
            return id
        passed.add(last)
    return last
