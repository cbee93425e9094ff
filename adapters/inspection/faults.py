"""Rows of a sample that cannot be served, grouped by the rule that they break."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from adapters.contract import Record, RowFault
from adapters.inspection import Observation, Weight
from adapters.mapping.model import ResourceMapping
from adapters.mapping.places import Place, places_of

_COUNTED = ("no entry for ", "required and empty")
_NEVER = "never happens"
_UNREAD = "not readable as a time"


def broken_rules(
    section: ResourceMapping,
    rows: Collection[Record | RowFault],
    columns: Mapping[str, str],
    counted: Collection[str],
) -> Iterator[Observation]:
    """Tell how many rows break which rule.

    `columns` are names of columns as the source has them. What is told elsewhere, for
    all rows, are the codes of columns in `counted`, and where they are empty.
    """
    places = places_of(section)
    faults = Counter(row for row in rows if isinstance(row, RowFault))
    for fault, number in faults.most_common():
        if fault.rule.startswith(_COUNTED) and fault.column in counted:
            continue
        text = (
            f"{number:,} of {len(rows):,} rows looked at cannot be served: {fault.rule}"
        )
        if _NEVER in fault.rule:
            text += " (is the column in UTC, or in another time zone?)"
        elif fault.rule == _UNREAD:
            text += " (how is it written? Say so with format)"
        place = _place(fault, places)
        source = columns.get(fault.column, fault.column)
        if place is None:
            yield Observation(
                section.mark, str(section.resource_type), source, text, Weight.ERROR
            )
        else:
            yield Observation.at(place, source, text, Weight.ERROR)


def empty(place: Place, column: str, rows: int) -> Observation:
    """Return the observation of rows that lack what they must have."""
    have = "1 row has" if rows == 1 else f"{rows:,} rows have"
    text = f"{have} nothing here, which is required: such rows cannot be served"
    return Observation.at(place, column, text, Weight.ERROR)


def _place(fault: RowFault, places: Iterable[Place]) -> Place | None:
    named = [place for place in places if place.slot == fault.field]
    exactly = [p for p in named if ", ".join(p.field.columns) == fault.column]
    return next(iter(exactly or named), None)
