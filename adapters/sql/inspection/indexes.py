"""Whether the database finds what searches filter by, and sort by, in its indexes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from adapters.contract import (
    Criterion,
    NotAskableError,
    ResourceType,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    StringCriterion,
)
from adapters.inspection import SAMPLE, Observation, Weight
from adapters.inspection.questions import criterion_of
from adapters.mapping.parameters import PARAMETERS, SORTS
from adapters.mapping.places import Place
from adapters.sql.columns import FOLDS
from adapters.sql.conditions import NEVER, Filter
from adapters.sql.dialects.plans import Origin, Plan
from adapters.sql.inspection.rows import Looked
from adapters.sql.pages import legs_of, page_shape
from adapters.sql.statements import Shape

_ALONE = ("_id", "identifier", "birthdate")
"""Parameters that leave so few rows that their order costs nothing."""

_COMPUTED = ", as the SELECT computes the column (search: may name a plain one)"

_ALIAS = re.compile(r"\b(?:FROM|JOIN)\s+([\w.]+)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE)


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
    texts: dict[Place, list[str]] = {}
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
        if not isinstance(asked.criterion, StringCriterion):
            yield from _of_filter(looked, asked, plan)
            continue
        for place in _without(looked, asked, plan):
            texts.setdefault(place, []).append(parameter)
    for place, parameters in texts.items():
        yield _of_texts(looked, place, parameters)


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


def _without(looked: Looked, asked: Asked, plan: Plan) -> list[Place]:
    """Return the fields that no index leads to, while a whole table is read."""
    if not plan.whole:
        return []
    return [place for place in asked.places if not _seeks(looked, place, plan)]


def _of_filter(looked: Looked, asked: Asked, plan: Plan) -> Iterator[Observation]:
    without = _without(looked, asked, plan)
    few = all(place.field.codes for place in without)
    for place in without:
        origin = _origin(looked, place)
        tables = _tables(looked, plan)
        text = f"'{asked.parameter}' reads every row of {tables}: no index leads to it"
        if origin is None:
            text += _COMPUTED
        elif few:
            text += " (it has few different values: an index helps with rare ones only)"
        weight = Weight.NOTE if few else _weight(looked)
        remedy = _index(origin, *_order(looked, asked, origin)) if origin else ""
        yield _observed(looked, place, text, weight, remedy)


def _order(looked: Looked, asked: Asked, origin: Origin) -> tuple[Origin, ...]:
    """Return what makes of an index one that also gives the order of pages."""
    slots = ["id"] if asked.parameter == "date" else ["start", "id"]
    places = [place for place in looked.places if place.slot in slots]
    found = [_origin(looked, p) for p in places if p.field.columns]
    if asked.parameter in _ALONE or any(
        o is None or o.table != origin.table for o in found
    ):
        return ()
    return tuple(dict.fromkeys(o for o in found if o and o != origin))[::-1]


def _weight(looked: Looked) -> Weight:
    """Return how much it matters: organizations are few everywhere, stays only in a copy."""
    few = looked.kind is ResourceType.ORGANIZATION and len(looked.sample) < SAMPLE
    return Weight.NOTE if few else Weight.WARNING


def _observed(
    looked: Looked, place: Place, text: str, weight: Weight, remedy: str
) -> Observation:
    """Return the observation of a field with the column that is compared."""
    origin = _origin(looked, place)
    column = str(origin or place.field.filter_column or "")
    return Observation.at(place, column, text, weight, remedy)


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


def _tables(looked: Looked, plan: Plan) -> str:
    """Return the tables that are read whole, by their own names where they have others."""
    rows = looked.section.mapping.rows
    named = {}
    for table, alias in _ALIAS.findall(rows):
        named[alias or table] = table
    return ", ".join(dict.fromkeys(named.get(name, name) for name in plan.whole))


def _index(origin: Origin, *more: Origin) -> str:
    columns = [each.column for each in (origin, *more)]
    name = origin.index_name(*columns)
    return f"CREATE INDEX {name} ON {origin.table} ({', '.join(columns)});"


# ------------------------------------------------------------------------------ texts


def _of_texts(looked: Looked, place: Place, parameters: list[str]) -> Observation:
    origin = _origin(looked, place)
    table = origin.table if origin else "a table"
    names = " and ".join(f"'{name}'" for name in parameters)
    reads = "reads" if len(parameters) == 1 else "read"
    text = f"{names} {reads} every row of {table}, to find words within texts"
    remedy = ""
    if not place.field.search_column:
        text += "; a column of folded texts (search:) makes that cheaper"
    elif origin:
        remedy = looked.database.text_index(origin)
    return _observed(looked, place, text, Weight.NOTE, remedy)


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
    else:
        text += _COMPUTED
    return _observed(looked, place, text, _weight(looked), remedy)


def _is_folded(looked: Looked, place: Place) -> bool:
    kinds = looked.section.filters.columns.kinds
    return kinds[place.field.filter_column or ""] in FOLDS


def _by_slot(looked: Looked, slot: str) -> Place:
    return next(place for place in looked.places if place.slot == slot)


def _untold(looked: Looked, reason: str) -> Observation:
    mark = looked.section.mapping.mark
    text = f"indexes: not told, {reason}"
    return Observation(mark, str(looked.kind), "", text, Weight.NOTE)
