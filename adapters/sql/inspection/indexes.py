"""Whether the database finds what searches filter by, and sort by, in its indexes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from adapters.contract import (
    Criterion,
    NotAskableError,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    StringCriterion,
)
from adapters.inspection import Observation, Weight
from adapters.inspection.questions import criterion_of
from adapters.mapping.parameters import PARAMETERS, SORTS
from adapters.mapping.places import Place
from adapters.sql.columns import FOLDS
from adapters.sql.conditions import NEVER, Filter
from adapters.sql.dialects.plans import Origin, Plan
from adapters.sql.inspection.rows import Looked
from adapters.sql.pages import legs_of, page_shape
from adapters.sql.statements import Shape


@dataclass(frozen=True, slots=True)
class Asked:
    """One search parameter as it is compared: by which fields, and a value of the sample."""

    parameter: str
    criterion: Criterion
    places: tuple[Place, ...]


def filters_without_index(looked: Looked) -> Iterator[Observation]:
    """Tell the search parameters that make the database read all rows of a table."""
    if not looked.sample:
        yield _untold(looked, "there is no row to take a value from")
        return
    for parameter in looked.section.mapping.parameters:
        asked = _asked(looked, parameter)
        if asked is None:
            text = f"no row of the sample has a value for '{parameter}'"
            yield _untold(looked, text)
            continue
        wanted = _wanted(looked, asked.criterion)
        shape = Shape(looked.section.mapping.rows, (), wanted.condition)
        plan = looked.database.plan(shape, wanted.values)
        if plan is None:
            yield _untold(looked, "this kind of database is not asked for its plans")
            return
        yield from _of_filter(looked, asked, plan)


def _asked(looked: Looked, parameter: str) -> Asked | None:
    slots = PARAMETERS[looked.kind][parameter]
    places = tuple(
        place for place in looked.places if place.slot in slots and place.field.columns
    )
    for row in looked.sample:
        if isinstance(row, RowFault):
            continue
        criterion = criterion_of(parameter, row)
        if criterion is not None and _wanted(looked, criterion) != NEVER:
            return Asked(parameter, criterion, places) if places else None
    return None


def _wanted(looked: Looked, criterion: Criterion) -> Filter:
    query = SearchQuery(looked.kind, (criterion,), Sort(SortKey.ID), 1)
    try:
        return looked.section.filters.of_query(query)
    except NotAskableError:
        return NEVER


def _of_filter(looked: Looked, asked: Asked, plan: Plan) -> Iterator[Observation]:
    without = [place for place in asked.places if not _seeks(looked, place, plan)]
    if not plan.whole or not without:
        return
    if isinstance(asked.criterion, StringCriterion):
        yield from _of_texts(looked, asked, without)
        return
    few = all(place.field.codes for place in without)
    for place in without:
        origin = _origin(looked, place)
        tables = _tables(plan, origin)
        text = f"'{asked.parameter}' reads every row of {tables}: no index leads to it"
        if few:
            text += " (its few values help little; a rare one does)"
        weight = Weight.NOTE if few else Weight.WARNING
        remedy = _index(origin) if origin else ""
        yield Observation.at(place, looked.column(place), text, weight, remedy)


def _seeks(looked: Looked, place: Place, plan: Plan) -> bool:
    origin = _origin(looked, place)
    if origin is None:
        return not plan.whole
    is_id = place.slot == "id"
    return plan.seeks(origin.column) or (is_id and "rowid" in plan.sought)


def _origin(looked: Looked, place: Place) -> Origin | None:
    origins = looked.origins
    if place.rows:
        origins = looked.database.origins(place.rows)
    return origins.get(place.field.filter_column or "")


def _tables(plan: Plan, origin: Origin | None) -> str:
    return origin.table if origin else ", ".join(dict.fromkeys(plan.whole))


def _index(origin: Origin, *more: Origin) -> str:
    columns = [each.column for each in (origin, *more)]
    name = origin.index_name(*columns)
    return f"CREATE INDEX {name} ON {origin.table} ({', '.join(columns)});"


# ------------------------------------------------------------------------------ texts


def _of_texts(
    looked: Looked, asked: Asked, places: list[Place]
) -> Iterator[Observation]:
    for place in places:
        origin = _origin(looked, place)
        table = origin.table if origin else "a table"
        text = (
            f"'{asked.parameter}' reads every row of {table}: it seeks parts of texts"
        )
        remedy = ""
        if not place.field.search_column:
            text += "; a column of folded texts (search:) makes that cheaper"
        elif origin:
            remedy = looked.database.text_index(origin)
        yield Observation.at(place, looked.column(place), text, Weight.NOTE, remedy)


# ------------------------------------------------------------------------------ sorts


def sorts_without_index(looked: Looked) -> Iterator[Observation]:
    """Tell the orders in which the database has to sort all rows before each page."""
    section = looked.section
    kind = section.mapping.resource_type
    for key in dict.fromkeys((*section.mapping.sorts, SortKey.ID)):
        slot = SORTS[kind].get(key)
        if slot is None:
            continue
        place = _by_slot(looked, slot)
        plan = _plan_of_page(looked, Sort(key, descending=key is not SortKey.ID))
        if plan is None:
            yield _untold(looked, "this kind of database is not asked for its plans")
            return
        if plan.sorts:
            yield _of_sort(looked, key, place)


def _plan_of_page(looked: Looked, sort: Sort) -> Plan | None:
    """Return the plan of a page that is not the first one, where there is one."""
    section = looked.section
    first = SearchQuery(looked.kind, (), sort, 1)
    query = replace(first, after=looked.search(first).last)
    for leg, wanted in legs_of(section, query):
        shape = page_shape(section, leg, wanted.condition)
        return looked.database.plan(shape, wanted.values, query.count + 1)
    return None


def _of_sort(looked: Looked, key: SortKey, place: Place) -> Observation:
    id = looked.place("id")
    origin, of_id = _origin(looked, place), _origin(looked, id)
    remedy = ""
    text = f"the order '{key}' sorts all rows before each page: no index has it"
    if _is_folded(looked, place) or _is_folded(looked, id):
        text += (
            ", nor can one while its column or that of the id is compared without case"
        )
    elif origin and of_id and origin.table == of_id.table and origin != of_id:
        remedy = _index(origin, of_id)
    elif origin:
        remedy = _index(origin)
    return Observation.at(place, looked.column(place), text, Weight.WARNING, remedy)


def _is_folded(looked: Looked, place: Place) -> bool:
    kinds = looked.section.filters.columns.kinds
    return kinds[place.field.filter_column or ""] in FOLDS


def _by_slot(looked: Looked, slot: str) -> Place:
    return next(place for place in looked.places if place.slot == slot)


def _untold(looked: Looked, reason: str) -> Observation:
    mark = looked.section.mapping.mark
    text = f"indexes: not told, {reason}"
    return Observation(mark, str(looked.kind), "", text, Weight.NOTE)
