"""Whether the database has the orders of pages in its indexes."""

from collections.abc import Iterator
from dataclasses import replace

from adapters.contract import SearchQuery, Sort, SortKey
from adapters.inspection import Observation
from adapters.mapping.parameters import SORTS
from adapters.mapping.places import Place
from adapters.sql.columns import FOLDS
from adapters.sql.dialects.plans import Plan
from adapters.sql.inspection.advice import (
    index_on,
    observed,
    origin_of,
    weight_of,
)
from adapters.sql.inspection.computed import why_computed
from adapters.sql.inspection.rows import Looked
from adapters.sql.pages import legs_of, page_shape


def sorts_without_index(looked: Looked) -> Iterator[Observation]:
    """Tell the orders in which the database has to sort all rows before each page."""
    if not looked.database.tells_plans:
        return  # as is said of the filters
    section = looked.section
    kind = section.mapping.resource_type
    for key in dict.fromkeys((*section.mapping.sorts, SortKey.ID)):
        slot = SORTS[kind].get(key)
        if slot is None:
            continue
        place = _by_slot(looked, slot)
        plan = _plan_of_page(looked, Sort(key, descending=key is not SortKey.ID))
        if plan and plan.sorts:
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
    origin, of_id = origin_of(looked, place), origin_of(looked, id)
    remedy = ""
    text = f"the order '{key}' sorts all rows before each page: no index has it"
    if _is_folded(looked, place) or _is_folded(looked, id):
        text += (
            ", nor can one while its column or that of the id is compared without case"
        )
    elif origin and of_id and origin.table == of_id.table and origin != of_id:
        remedy = index_on(origin, of_id)
    elif origin:
        remedy = index_on(origin)
    else:
        text += why_computed(looked, place)
    return observed(looked, place, text, weight_of(looked), remedy)


def _is_folded(looked: Looked, place: Place) -> bool:
    kinds = looked.section.filters.columns.kinds
    return kinds[place.field.filter_column or ""] in FOLDS


def _by_slot(looked: Looked, slot: str) -> Place:
    return next(place for place in looked.places if place.slot == slot)
