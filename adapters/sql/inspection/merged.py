"""Stays of patients who were merged into others: counted, and no patient is read."""

from collections.abc import Iterator

from adapters.contract import ResourceType
from adapters.inspection import Observation, Weight
from adapters.sql.conditions import Filter, InRows, all_of
from adapters.sql.inspection.rows import Looked
from adapters.sql.statements import Shape
from adapters.sql.values import Columns


def merged_patients(looked: Looked) -> Iterator[Observation]:
    """Tell how many stays are of a patient who was replaced by another.

    Only where the patients of the same source say so, and their ids compare with those
    of stays.
    """
    section = looked.section
    where, place = section.filters.survivors, looked.place("patient_id")
    if where is None or place.field.filter_column is None:
        return
    own = section.filters.columns.column(place.field.filter_column)
    if own.kind is not where.id.kind:
        return
    there = Columns.of(looked.database.columns(where.rows))
    field = looked.mapping.resources[ResourceType.PATIENT].fields["replaced_by"]
    merged = there.key(field).present
    inside = InRows(own, where.rows, where.id, merged.condition)
    of_one = Filter(inside, merged.values)
    wanted = all_of([looked.served, of_one])
    shape = Shape(section.mapping.rows, (), wanted.condition)
    ((stays,),) = looked.database.fetch(shape, wanted.values)
    if stays:
        text = (
            f"{stays:,} {'stay has' if stays == 1 else 'stays have'} a patient who was"
            " replaced by another, whose searches do not find them: let the SELECT of rows"
            " give the patient who lives on"
        )
        yield Observation.at(place, looked.column(place), text, Weight.WARNING)
