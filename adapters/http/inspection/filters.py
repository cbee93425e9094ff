"""Each filter of an HTTP source asked once, for a value that its list has."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from adapters.contract import (
    DateCriterion,
    DateValue,
    NotAskableError,
    NotFoundError,
    Prefix,
    Record,
    ReferenceCriterion,
    RowFault,
    SearchQuery,
    Sort,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
    StringCriterion,
    TokenCriterion,
    TooCostlyError,
)
from adapters.http.inspection.looked import Looked
from adapters.inspection import Observation, Weight
from adapters.inspection.questions import criterion_of
from adapters.mapping.http_model import Several
from adapters.mapping.parameters import PARAMETERS
from adapters.mapping.places import Place, places_of

_FEW = 10

_WORDS = (TokenCriterion, ReferenceCriterion)


class Tried(NamedTuple):
    """A parameter, the field that it compares, and a search for a value of the sample."""

    parameter: str
    place: Place
    query: SearchQuery


def filters_tried(looked: Looked) -> Iterator[Observation]:
    """Ask each filter once, for a value that the list has and that can be asked for."""
    for parameter in looked.section.mapping.parameters:
        reason = "no row of the list has a value for it"
        for tried in _tries(looked, parameter):
            try:
                yield from _answered(looked, tried)
                break
            except NotAskableError:
                reason = "it cannot be asked for a value of a row"
        else:
            yield _untried(looked, parameter, reason)


def _answered(looked: Looked, tried: Tried) -> Iterator[Observation]:
    try:
        told = list(_told(looked, tried))
        yield from told or _several_told(looked, tried)
    except SourceUnavailableError as error:
        # The list was answered: an API may fail at what it does not know.
        column = ", ".join(tried.place.field.columns)
        text = f"'{tried.parameter}' is not answered: {error}"
        yield Observation.at(tried.place, column, text, Weight.ERROR)


def _untried(looked: Looked, parameter: str, reason: str) -> Observation:
    return looked.seen(f"'{parameter}' was not tried: {reason}", Weight.NOTE)


def _told(looked: Looked, tried: Tried) -> Iterator[Observation]:
    """Tell what is odd about the answer to a search that a row of the list meets."""
    column = ", ".join(tried.place.field.columns)
    weight, text = Weight.ERROR, ""
    try:
        rows = looked.adapter.search(tried.query).rows
    except SourceDataError as error:
        if error.refused:
            raise
        text = f"does not filter: {error}"
    else:
        if not rows:
            text = "brings no row, though the list has one with the value"
        elif len(rows) == _FEW and _may_be_ignored(looked, tried.query):
            weight = Weight.WARNING
            text = "brings as many rows as no filter: does the API know what is sent?"
    bounds = []
    if not text.startswith("brings") and _is_of_times(tried.query):
        bounds = list(_bounds_told(looked, tried, column))
    yield from bounds
    if text and not bounds:
        yield Observation.at(tried.place, column, f"'{tried.parameter}' {text}", weight)


def _several_told(looked: Looked, tried: Tried) -> Iterator[Observation]:
    """Tell of a parameter that finds rows of one value alone where two are sent."""
    name, (asked,) = tried.parameter, tried.query.criteria
    two = tuple(dict.fromkeys(_values(looked.records, name)))[:2]
    is_one = looked.section.http.search[name].several is Several.ONE
    if is_one or len(two) < 2 or not isinstance(asked, _WORDS):
        return
    both = type(asked)(name, two)
    query = replace(tried.query, criteria=(both,))
    text = ""
    try:
        rows = looked.adapter.search(query).rows
        if len(rows) < _FEW and not {*two} <= {*_values(rows, name)}:
            text = "brings no row of one of two values"
    except NotAskableError:
        # Two numbers of two systems may not be asked at once.
        return
    except SourceDataError as error:
        if error.refused:
            raise
        text = f"does not filter by two values: {error}"
    if text:
        column = ", ".join(tried.place.field.columns)
        text = f"'{name}' {text}: does the API take several so (several:)?"
        yield Observation.at(tried.place, column, text, Weight.ERROR)


def _values(records: Iterable[Record | RowFault], parameter: str) -> Iterator[Any]:
    for record in records:
        if not isinstance(record, RowFault):
            asked = criterion_of(parameter, record)
            if isinstance(asked, _WORDS):
                yield asked.values[0]


def _is_of_times(query: SearchQuery) -> bool:
    return isinstance(query.criteria[0], DateCriterion)


def _bounds_told(looked: Looked, tried: Tried, column: str) -> Iterator[Observation]:
    """Tell of each bound of times that is sent alone and keeps nothing out.

    Each is beyond all rows of the sample, so that one which is left out brings them.
    """
    for sent, value in _beyond(looked, tried.parameter):
        criterion = DateCriterion(tried.parameter, (value,))
        try:
            looked.adapter.search(replace(tried.query, criteria=(criterion,)))
        except SourceDataError as error:
            if error.refused:
                raise
            text = f"'{tried.parameter}' does not filter by '{sent}' alone: {error}"
            yield Observation.at(tried.place, column, text, Weight.ERROR)


def _beyond(looked: Looked, parameter: str) -> Iterator[tuple[str, DateValue]]:
    call = looked.section.http.search[parameter]
    records = (r for r in looked.records if not isinstance(r, RowFault))
    asked = (criterion_of(parameter, record) for record in records)
    days = [c.values[0] for c in asked if isinstance(c, DateCriterion)]
    last, first = max(day.high for day in days), min(day.low for day in days)
    if call.low:
        yield call.low, DateValue(Prefix.GE, last, last)
    if before := call.before or call.until:
        yield before, DateValue(Prefix.LT, first, first)


def _may_be_ignored(looked: Looked, query: SearchQuery) -> bool:
    """Whether a filter whose rows are not held against it narrows nothing."""
    if not isinstance(query.criteria[0], (StringCriterion, ReferenceCriterion)):
        return False
    try:
        alone = looked.adapter.count(replace(query, criteria=()))
        return len(looked.rows) > _FEW and looked.adapter.count(query) == alone
    except TooCostlyError:
        return False


def _tries(looked: Looked, parameter: str) -> Iterator[Tried]:
    """Yield a search for each of the first values that the list has."""
    slots = PARAMETERS[looked.kind][parameter]
    places = [p for p in places_of(looked.section.mapping) if p.slot in slots]
    records = (row for row in looked.records if not isinstance(row, RowFault))
    criteria = dict.fromkeys(criterion_of(parameter, row) for row in records)
    found = [each for each in criteria if each is not None and places]
    for criterion in found[:_FEW]:
        query = SearchQuery(looked.kind, (criterion,), Sort(SortKey.ID), _FEW)
        yield Tried(parameter, places[0], query)


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
