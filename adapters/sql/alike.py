"""Columns of unlike kinds compared with each other, as the mapping reads them.

Databases compare a number with a text roughly, or not at all, as with a UUID. Here a value
and its text are one where a row would be shown with the one for the other.
"""

from typing import Any

import sqlalchemy as sa

from adapters.sql.columns import FOLDS, NUMBERS, TEXTS, WHOLE, Column, Kind
from adapters.sql.idiom import Idiom

LONGEST_ID = 64
"""In signs: what FHIR lets an id have."""

_WRITTEN = WHOLE | {Kind.UUID}
"""Kinds whose text in every database is the one that is shown."""


def exactly(column: Column, idiom: Idiom) -> sa.ColumnElement[Any]:
    """Return a column in the form in which it is compared and ordered exactly."""
    plain: sa.ColumnElement[Any] = sa.column(column.name)
    return idiom.exact(plain) if column.kind in FOLDS else plain


def are_alike(one: Kind, other: Kind) -> bool:
    """Whether a database itself compares columns of two kinds as they are read."""
    if one is other:
        return True
    kinds = {one, other}
    return not (
        kinds & {Kind.UUID, Kind.OTHER} or (kinds & {*TEXTS} and kinds & NUMBERS)
    )


def fitted(column: Column, other: Column, idiom: Idiom) -> sa.ColumnElement[Any] | None:
    """Return what `other` holds as it compares with `column`, whose index then serves.

    NULL where the column can hold no such value; None where the database has no words for
    that, so that only the texts of both compare.
    """
    plain: sa.ColumnElement[Any] = sa.column(other.name)
    if are_alike(column.kind, other.kind):
        collations = {column.collation, other.collation}
        is_mixed = len(collations) > 1 and "" not in collations
        return idiom.collated(plain, column.collation) if is_mixed else plain
    if column.kind in TEXTS:
        return written(other, idiom)
    make = idiom.reads.get(column.kind)
    return make(plain) if make and other.kind in TEXTS else None


def written(column: Column, idiom: Idiom) -> sa.ColumnElement[Any]:
    """Return the text that a person would write for the value of a column."""
    plain: sa.ColumnElement[Any] = sa.column(column.name)
    if write := idiom.writes.get(column.kind):
        return write(plain)
    if column.kind is Kind.OTHER:
        return sa.cast(plain, sa.Text)
    if column.kind in _WRITTEN:
        return sa.cast(plain, sa.String(LONGEST_ID))
    return exactly(column, idiom)


def ends_in_blanks(column: Column) -> sa.ColumnElement[bool]:
    """Return where a text is another one to its database without its trailing blanks."""
    text: sa.ColumnElement[Any] = sa.column(column.name)
    if column.kind is Kind.LOOSE:
        text = sa.cast(text, sa.Text)
    return text != sa.func.rtrim(text)
