"""A criterion in FHIR's terms as a filter on the columns of one section.

The values that a filter binds are the source's own: its codes, its local times, its
kind of number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from adapters.contract import (
    Criterion,
    DateCriterion,
    DateValue,
    Prefix,
    ReferenceCriterion,
    ResourceType,
    SearchQuery,
    SortKey,
    StringCriterion,
    StringMatch,
    Token,
    TokenCriterion,
)
from adapters.mapping.model import (
    DateReading,
    FieldMapping,
    ItemMapping,
    ResourceMapping,
)
from adapters.mapping.parameters import COMPARED, PARAMETERS
from adapters.mapping.slots import UNSERVED
from adapters.sql.columns import day_bound, held, time_bound
from adapters.sql.conditions import (
    ALWAYS,
    NEVER,
    Filter,
    InRows,
    IsNull,
    Operator,
    all_of,
    any_of,
)
from adapters.sql.moments import TimeColumn, lasts, starts
from adapters.sql.values import Columns, Survivors


@dataclass(frozen=True)
class Filters:
    """The filters of one section; `item_columns` are those of each second SELECT."""

    section: ResourceMapping
    columns: Columns
    item_columns: Mapping[str, Columns] = field(default_factory=dict)
    date_reading: DateReading = DateReading.START
    survivors: Survivors | None = None

    def of_query(self, query: SearchQuery, implied: Operator | None = None) -> Filter:
        """Return what the rows of a search meet, rows that are not served left out.

        The start of the page makes `implied` comparisons of the start hold already; one
        that is asked all the same costs PostgreSQL and SQLite the index.
        """
        parts = [self._of(criterion, implied) for criterion in query.criteria]
        if not any(criterion.parameter == "status" for criterion in query.criteria):
            parts.append(self.served)
        return all_of(parts)

    def need_start(self, query: SearchQuery) -> bool:
        """Whether only rows with a start can match, ordered by it (decision 5)."""
        return (
            query.sort.key is SortKey.DATE
            and self.date_reading is DateReading.START
            and any(criterion.parameter == "date" for criterion in query.criteria)
        )

    def of_id(self, id: str) -> Filter:
        """Return what the row of one resource meets."""
        return self.columns.equal(self.section.fields["id"], [id])

    @cached_property
    def served(self) -> Filter:
        """What keeps hidden and removed rows out, `ALWAYS` where none is (decision 17)."""
        status = self.section.fields.get("status")
        if status is None or status.codes is None or not status.columns:
            return ALWAYS
        codes, column = status.codes, status.columns[0]
        kept_out = [code for code, made in codes.table.items() if made in UNSERVED]
        if codes.otherwise in UNSERVED:
            return self.columns.among(column, sorted(codes.table.keys() - kept_out))
        if not kept_out:
            return ALWAYS
        others = self.columns.not_among(column, kept_out)
        return any_of([others, Filter(IsNull(self.columns.column(column)))])

    def _of(self, criterion: Criterion, implied: Operator | None) -> Filter:
        match criterion:
            case TokenCriterion(parameter="_id"):
                ids = [token.code for token in criterion.values if token.code]
                return self.columns.equal(self.section.fields["id"], ids)
            case TokenCriterion():
                return any_of(
                    self._token(criterion.parameter, token)
                    for token in criterion.values
                )
            case ReferenceCriterion():
                return self._patient(criterion.values)
            case DateCriterion(parameter="birthdate"):
                return any_of(starts(self._birth_date(), v) for v in criterion.values)
            case DateCriterion(values=(value,)) if value.prefix is not Prefix.NE:
                return self._date(value, implied)
            case DateCriterion():
                return any_of(self._date(value, None) for value in criterion.values)
            case StringCriterion():
                return self._string(criterion)

    def _patient(self, ids: tuple[str, ...]) -> Filter:
        """Return the stays of these patients, or of those that replaced them (decision 9)."""
        patient = self.section.fields["patient_id"]
        where = self.survivors
        if where is None or patient.filter_column is None:
            return self.columns.equal(patient, ids)
        column, own = self.columns.column(patient.filter_column), patient.own(ids)
        unknown = [id for id in own if not held(where.id.kind, id)]
        alone = self.columns.among(column.name, unknown)
        pairs = [
            (here, there)
            for id in own
            for here in held(column.kind, id)
            for there in held(where.id.kind, id)
        ]
        return any_of([alone, where.of(column, pairs)]) if pairs else alone

    # ------------------------------------------------------------------- tokens

    def _token(self, parameter: str, token: Token) -> Filter:
        if parameter == "identifier":
            return self._identifier(token)
        if token.code in (None, *UNSERVED):
            return NEVER
        field = COMPARED[self.section.resource_type][parameter]
        return self.columns.coded(self.section.fields[field], token.code)

    def _identifier(self, token: Token) -> Filter:
        if self.section.resource_type is ResourceType.ENCOUNTER:
            fields = self.section.fields
            number, system = fields["visit_number"], fields.get("visit_number_system")
            return self.columns.numbered(number, system, token)
        items = self.section.items.get("identifiers", ())
        return any_of(self._item(item, token) for item in items)

    def _item(self, item: ItemMapping, token: Token) -> Filter:
        fields = item.fields
        columns = self._columns_of(item)
        numbered = columns.numbered(fields["value"], fields.get("system"), token)
        return self._counted(item, numbered)

    def _columns_of(self, item: ItemMapping) -> Columns:
        return self.item_columns[item.rows] if item.rows else self.columns

    def _counted(self, item: ItemMapping, found: Filter) -> Filter:
        """Return where an item is found that counts, in its own SELECT if it has one."""
        columns = self._columns_of(item)
        if item.only_if is not None:
            values = sorted(item.only_if.values)
            found = all_of([found, columns.among(item.only_if.column, values)])
        if item.rows is None or item.key is None or found is NEVER:
            return found
        id_column = self.columns.column(self.section.fields["id"].columns[0])
        key = columns.column(item.key)
        inside = InRows(id_column, item.rows, key, found.condition)
        return Filter(inside, found.values)

    # --------------------------------------------------------- times and texts

    def _date(self, value: DateValue, implied: Operator | None) -> Filter:
        start = self.time("start")
        if self.date_reading is DateReading.PERIOD:
            return lasts(start, self.time("end"), value)
        return starts(replace(start, implied=implied), value)

    def time(self, slot: str) -> TimeColumn:
        """Return the column that a time is compared by."""
        time = self.section.fields[slot]
        key = self.columns.key(time)
        if time.time is None:
            raise AssertionError(f"{slot} is a time")
        return TimeColumn(key, partial(time_bound, key.column.kind, time.time))

    def _birth_date(self) -> TimeColumn:
        born = self.section.fields["birth_date"]
        key = self.columns.key(born)
        if born.time is None:
            raise AssertionError("birth_date is a time")
        return TimeColumn(key, partial(day_bound, key.column.kind, born.time))

    def _string(self, criterion: StringCriterion) -> Filter:
        return any_of(
            self._text(criterion.parameter, text, criterion.match)
            for text in criterion.values
        )

    def _text(self, parameter: str, text: str, match: StringMatch) -> Filter:
        if self.section.resource_type is ResourceType.ORGANIZATION:
            return self.columns.matching(self.section.fields["name"], text, match)
        return any_of(
            self._counted(item, self._columns_of(item).matching(part, text, match))
            for item in self.section.items.get("names", ())
            for part in _name_parts(item, parameter)
        )


def _name_parts(item: ItemMapping, parameter: str) -> Iterable[FieldMapping]:
    """Yield what a parameter compares of a name, as far as it comes from a column."""
    for slot in PARAMETERS[ResourceType.PATIENT][parameter]:
        part = item.fields.get(slot.removeprefix("names."))
        if part is not None and part.columns:
            yield part
