"""Whether the database finds what searches filter by in its indexes."""

from collections.abc import Iterator
from dataclasses import dataclass

from adapters.contract import (
    Criterion,
    NotAskableError,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    StringCriterion,
)
from adapters.inspection import Observation, Weight
from adapters.inspection.questions import criterion_of
from adapters.mapping.parameters import PARAMETERS
from adapters.mapping.places import Place
from adapters.sql.conditions import NEVER, Filter
from adapters.sql.dialects.plans import Origin, Plan
from adapters.sql.inspection.advice import (
    index_on,
    observed,
    origin_of,
    seeks,
    tables_of,
    untold,
    weight_of,
)
from adapters.sql.inspection.computed import why_computed
from adapters.sql.inspection.rows import Looked
from adapters.sql.statements import Shape

_ALONE = ("_id", "identifier", "birthdate")
"""Parameters that leave so few rows that their order costs nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One search parameter as it is compared: by which fields, and a value of the sample."""

    parameter: str
    criterion: Criterion
    places: tuple[Place, ...]


def filters_without_index(looked: Looked) -> Iterator[Observation]:
    """Tell the search parameters that make the database read all rows of a table."""
    if not looked.sample:
        yield untold(looked, "there is no row to take a value from")
        return
    if not looked.database.tells_plans:
        yield untold(looked, "this kind of database is not asked for its plans")
        return
    texts: dict[Place, list[str]] = {}
    for parameter in looked.section.mapping.parameters:
        asked = _asked(looked, parameter)
        if asked is None:
            yield untold(looked, f"no row of the sample has a value for '{parameter}'")
        elif isinstance(asked.criterion, StringCriterion):
            for place in _without(looked, asked):
                texts.setdefault(place, []).append(parameter)
        else:
            yield from _of_filter(looked, asked)
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
        if criterion is not None and _wanted(looked, criterion) is not NEVER:
            return Asked(parameter, criterion, places) if places else None
    return None


def _wanted(looked: Looked, criterion: Criterion) -> Filter:
    query = SearchQuery(looked.kind, (criterion,), Sort(SortKey.ID), 1)
    try:
        return looked.section.filters.of_query(query)
    except NotAskableError:
        return NEVER


def _plan(looked: Looked, asked: Asked) -> Plan:
    """Return the plan of the count, which has to find every row that matches."""
    wanted = _wanted(looked, asked.criterion)
    shape = Shape(looked.section.mapping.rows, (), wanted.condition)
    return looked.database.plan(shape, wanted.values)


def _without(looked: Looked, asked: Asked) -> list[Place]:
    """Return the fields that no index leads to, while a whole table is read."""
    plan = _plan(looked, asked)
    if not plan.whole:
        return []
    return [place for place in asked.places if not seeks(looked, place, plan)]


def _of_filter(looked: Looked, asked: Asked) -> Iterator[Observation]:
    try:
        plan, without = _plan(looked, asked), _without(looked, asked)
    except SourceDataError as error:
        text = f"'{asked.parameter}' cannot be asked: {error}"
        yield observed(looked, asked.places[0], text, Weight.ERROR, "")
        return
    few = all(place.field.codes for place in without)
    for place in without:
        origin = origin_of(looked, place)
        tables = tables_of(looked, plan)
        text = f"'{asked.parameter}' reads every row of {tables}: no index leads to it"
        if origin is None:
            text += why_computed(looked, place)
        elif few:
            text += " (it has few different values: an index helps with rare ones only)"
        weight = Weight.NOTE if few else weight_of(looked)
        remedy = index_on(origin, *_order(looked, asked, origin)) if origin else ""
        yield observed(looked, place, text, weight, remedy)


def _order(looked: Looked, asked: Asked, origin: Origin) -> tuple[Origin, ...]:
    """Return what makes of an index one that also gives the order of pages."""
    slots = ["id"] if asked.parameter == "date" else ["start", "id"]
    places = [place for place in looked.places if place.slot in slots]
    found = [origin_of(looked, p) for p in places if p.field.columns]
    if asked.parameter in _ALONE or any(
        o is None or o.table != origin.table for o in found
    ):
        return ()
    return tuple(o for o in found[::-1] if o and o != origin)


def _of_texts(looked: Looked, place: Place, parameters: list[str]) -> Observation:
    origin = origin_of(looked, place)
    names = " and ".join(f"'{name}'" for name in parameters)
    reads = "reads" if len(parameters) == 1 else "read"
    rows = f"every row of {origin.table}" if origin else "all rows"
    text = f"{names} {reads} {rows}, to find words within texts"
    remedy = ""
    if not place.field.search_column:
        text += "; a column of folded texts (search:) makes that cheaper"
    elif origin:
        remedy = looked.database.text_index(origin)
    return observed(looked, place, text, Weight.NOTE, remedy)
