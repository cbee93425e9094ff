"""Whether the texts of a column compare as the times that they mean.

A search compares texts with the text that the service writes for an instant: 10:00 and
10:00:00, a blank and a T, Z and an offset are one time and other texts. Where a sample has
such texts, a search by the column would return wrong rows, and is refused.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta

from adapters.contract import SourceTimedOutError
from adapters.mapping.births import Partial, read_birth, written
from adapters.mapping.model import FieldMapping, TimeRule
from adapters.mapping.times import EPOCHS, presence, to_instant
from adapters.sql.columns import LAST, TEXTS, TICK, ColumnKind, day_bound, is_at
from adapters.sql.engine import Database
from adapters.sql.query import Columns, KeyColumn, Order, SqlColumn

_DAY = timedelta(days=1)

SAMPLE = 200
"""How many values are read from each end of an order."""


def are_texts(kind: ColumnKind) -> bool:
    """Whether a column may hold times as texts."""
    return kind in TEXTS or kind is ColumnKind.LOOSE


def sample(
    database: Database, columns: Columns, key: KeyColumn, order: SqlColumn
) -> Sequence[object]:
    """Return values of a column, those of the first and the last rows of an order."""
    values: list[object] = []
    for descending in (False, True):
        by: Order = ((order, descending),)
        statement = columns.select([key.column.name], key.present, by, limit=SAMPLE)
        # Searches by it are as slow, and say so.
        with suppress(SourceTimedOutError):
            values += [value for (value,) in database.fetch(statement)]
    return values


def compare_as_read(kind: ColumnKind, field: FieldMapping, value: object) -> bool:
    """Whether the database compares a value of a sample as the time that it means.

    A value that means no time counts as one that does: it is reported as another fault.
    """
    rule = field.time
    assert rule is not None, "only times and births are written in several ways"
    if not isinstance(value, str):
        return True
    if presence(field.absent)(value) is None:
        # The mapping reads it as missing, and a comparison would find it (decision 45).
        return False
    text = value.rstrip()
    try:
        if field.slot == "birth_date":
            return _is_birth(kind, rule, value, read_birth(text, rule, date.max))
        moment = to_instant(text, rule).astimezone(UTC)
    except (ValueError, OverflowError):
        return True
    if rule.format in EPOCHS:
        return False
    # A letter after the fraction comes behind all digits that could follow.
    _, fraction, suffix = (rule.format or "").partition("%f")
    step = timedelta(milliseconds=1) if fraction and suffix else TICK
    return moment >= LAST or is_at(kind, rule, value, moment, step)


def _is_birth(kind: ColumnKind, rule: TimeRule, value: str, birth: date | str) -> bool:
    """Whether a text compares as the birth date that it means.

    `birth` is a day, or a text for a year or a month.
    """
    if rule.format in EPOCHS:
        return False
    if isinstance(birth, str):
        return value.rstrip() in written(Partial.of(birth), rule.format)
    midnight = datetime.combine(birth, time())
    low = day_bound(kind, rule, midnight)
    high = day_bound(kind, rule, midnight + _DAY)
    return str(low) <= value < str(high)
