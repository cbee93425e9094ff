"""Each filter of an HTTP source asked once, for a value that its list has."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from adapters.contract import (
    NotAskableError,
    NotFoundError,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    TooCostlyError,
)
from adapters.http.inspection.looked import Looked
from adapters.http.source import RefusedError
from adapters.inspection import Observation, Weight
from adapters.inspection.questions import criterion_of
from adapters.mapping.parameters import PARAMETERS
from adapters.mapping.places import Place, places_of

_FEW = 10


class Tried(NamedTuple):
    """A parameter, the field that it compares, and a search for a value of the sample."""

    parameter: str
    place: Place
    query: SearchQuery


def filters_tried(looked: Looked) -> Iterator[Observation]:
    """Ask each filter once for a value that the list has."""
    for parameter in looked.section.mapping.parameters:
        tried = _tried(looked, parameter)
        if tried is None:
            text = f"'{parameter}' was not tried: no row of the list has a value for it"
            yield looked.seen(text, Weight.NOTE)
            continue
        text = _result(looked, tried.query)
        if text:
            column = ", ".join(tried.place.field.columns)
            text = f"'{parameter}' {text}"
            yield Observation.at(tried.place, column, text, Weight.ERROR)


def _result(looked: Looked, query: SearchQuery) -> str:
    """Return what is wrong with the answer to a search that a row of the list meets."""
    try:
        rows = looked.adapter.search(query).rows
    except NotAskableError:
        return ""
    except RefusedError:
        raise
    except SourceDataError as error:
        return f"does not filter: {error}"
    if not rows:
        return "brings no row, though the list has one with the value"
    everyone = replace(query, criteria=())
    if (
        len(looked.rows) > _FEW
        and len(rows) == _FEW
        and _counts_alike(looked, query, everyone)
    ):
        return (
            "brings as many rows as no filter at all: does the API know what is sent?"
        )
    return ""


def _counts_alike(looked: Looked, *queries: SearchQuery) -> bool:
    try:
        return len({looked.adapter.count(query) for query in queries}) == 1
    except TooCostlyError:
        return False


def _tried(looked: Looked, parameter: str) -> Tried | None:
    slots = PARAMETERS[looked.kind][parameter]
    places = [p for p in places_of(looked.section.mapping) if p.slot in slots]
    for row in looked.records:
        if isinstance(row, RowFault):
            continue
        criterion = criterion_of(parameter, row)
        if criterion is not None and places:
            query = SearchQuery(looked.kind, (criterion,), Sort(SortKey.ID), _FEW)
            return Tried(parameter, places[0], query)
    return None


def read_tried(looked: Looked) -> Iterator[Observation]:
    """Read one row of the list by its id."""
    first = next(
        (r for r in looked.records if not isinstance(r, RowFault) and r.id), None
    )
    if first is None:
        return
    place = next(p for p in places_of(looked.section.mapping) if p.slot == "id")
    try:
        looked.adapter.read(looked.kind, first.id)
    except NotFoundError:
        text = "read finds nothing by the id of a row of the list"
        yield Observation.at(place, place.field.columns[0], text, Weight.ERROR)
