"""The rows of a list: what they lack, their codes, the rules that they break."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from adapters.contract import EncounterRecord
from adapters.http.inspection.looked import Looked
from adapters.http.section import JsonRow
from adapters.inspection import Observation, Weight
from adapters.inspection.codes import Counted, counted, plain_text, unnamed
from adapters.inspection.faults import broken_rules
from adapters.inspection.filled import never_filled
from adapters.inspection.times import doubtful_times, far_days, has_far_days
from adapters.inspection.zones import has_offset, hidden_zone, hides_its_zone
from adapters.mapping.http_build import path_of
from adapters.mapping.http_model import Path
from adapters.mapping.items import own_columns
from adapters.mapping.model import Condition
from adapters.mapping.places import Place, places_of
from adapters.mapping.problems import did_you_mean
from adapters.mapping.slots import UNSERVED


def rows_seen(looked: Looked) -> Iterator[Observation]:
    """Tell what is odd about the rows of the list."""
    section = looked.section.mapping
    seen = len(looked.rows)
    text = (
        f"the first {seen:,} rows were looked at, of {looked.asked:,} that were asked for at"
        " once; types, indexes and all other rows are not told by an API"
    )
    yield looked.seen(text, Weight.NOTE)
    lost = list(_lost(looked))
    yield from lost
    yield from (one for one in _unfilled(looked) if not lost)
    coded = [p for p in places_of(section) if p.field.codes and p.field.columns]
    for place in coded:
        yield from unnamed(_codes(looked, place), section.required)
    told = {place.field.columns[0] for place in coded}
    yield from broken_rules(section, looked.records, {}, told)
    now = datetime.now(UTC)
    yield from doubtful_times(section, looked.records, {}, now)
    yield from _hidden_zones(looked)
    for place in filter(has_far_days, places_of(section)):
        column = place.field.columns[0]
        values = [(_step(row, path_of(column)), 1) for row in looked.rows]
        yield from far_days(place, column, values, now)
    unserved = [
        row
        for row in looked.records
        if isinstance(row, EncounterRecord) and row.status in UNSERVED
    ]
    if unserved:
        text = (
            f"{len(unserved)} rows of the list are hidden or removed, which searches"
            " refuse: keep them out with list.fixed"
        )
        yield looked.seen(text, Weight.ERROR)


def _unfilled(looked: Looked) -> Iterator[Observation]:
    section = looked.section
    rows = [section.cells(row) for row in looked.rows]
    return never_filled(section.mapping, own_columns(section.mapping), rows, {})


def _hidden_zones(looked: Looked) -> Iterator[Observation]:
    for place in filter(hides_its_zone, places_of(looked.section.mapping)):
        column = place.field.columns[0]
        values = [_step(row, path_of(column)) for row in looked.rows]
        if not any(map(has_offset, values)):
            yield hidden_zone(place, column)


def _lost(looked: Looked) -> Iterator[Observation]:
    """Tell the paths that no row has."""
    for place in places_of(looked.section.mapping):
        within = _within(looked.rows, place)
        known = Counter(name for row in within for name in _names(row))
        for column in place.field.columns:
            if within and not any(_has(row, path_of(column)) for row in within):
                text = f"no row of the list has '{column}'{did_you_mean(column, known)}"
                yield Observation.at(place, column, text, Weight.ERROR)


def _within(rows: Sequence[JsonRow], place: Place) -> list[Any]:
    """Return the rows that a field is read from: those of a list in each, for some items."""
    if not place.rows:
        return list(rows)
    return [each for row in rows for each in _step(row, path_of(place.rows)) or ()]


def _has(row: Any, path: Path) -> bool:
    *above, last = path
    holder = _step(row, tuple(above))
    # What holds it may be absent itself, as in a row without a unit.
    return isinstance(holder, Mapping) and last in holder


def _step(row: Any, path: Path) -> Any:
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


def _names(row: Any, above: str = "") -> Iterator[str]:
    """Yield the paths of all that a row holds."""
    if isinstance(row, Mapping):
        for key, value in row.items():
            yield f"{above}{key}"
            yield from _names(value, f"{above}{key}.")


def _counts(row: Any, condition: Condition | None) -> bool:
    """Tell whether `only_if` lets an item count in its row."""
    if condition is None:
        return True
    return plain_text(_step(row, path_of(condition.column))) in condition.values


def _codes(looked: Looked, place: Place) -> Counted:
    (column,) = place.field.columns
    rows = [row for row in _within(looked.rows, place) if _counts(row, place.only_if)]
    values = [_step(row, path_of(column)) for row in rows]
    column = ", ".join(filter(None, (place.rows, column)))
    return counted(place, column, [(value, 1) for value in values])
