"""Labels of codes: texts of the hospital's own database, in a column that somebody chooses.

A text may be about a person. A label is shown if no code of the column has two and at least
five rows carry it; in another table that has one row for each code, one row is enough. Of the
rows of patients themselves no column is offered.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import sqlalchemy as sa

from adapters.contract import ResourceType, SourceDataError, SourceTimedOutError
from adapters.mapping.model import ResourceMapping
from adapters.mapping.slots import Place
from adapters.sql.adapter import SqlAdapter
from adapters.sql.dialects.base import ColumnOrigin
from adapters.sql.query import Columns
from adapters.sql.texts import are_texts
from toolkit.catalogue import parts_of_name
from toolkit.checks.rows import FEW_ROWS, code_of, plain_text
from toolkit.checks.selects import comparisons
from toolkit.checks.sql_inspection import GROUPS, SqlInspection
from toolkit.source_rows import RowReader
from toolkit.tried_row import PERSONAL_TEXTS


class Labels(NamedTuple):
    """The columns that may hold labels; of the chosen one its labels by code, or a problem."""

    columns: Sequence[str] = ()
    by_code: Mapping[str, str] = {}
    problem: str = ""


def read_labels(
    adapter: RowReader, section: ResourceMapping, place: Place, chosen: str
) -> Labels:
    """Return the labels of the codes of a field; none for an API."""
    if not isinstance(adapter, SqlAdapter):
        return Labels()
    inspection = SqlInspection(adapter, section.resource_type, math.inf)
    names, labels = list[str](), Labels()
    for source, column in _offered(inspection, place):
        names.append(f"{source.table}.{column}" if source.table else column)
        if names[-1] == chosen:
            labels = _labels(inspection, place, source, column)
    return labels._replace(columns=names)


def _offered(
    inspection: SqlInspection, place: Place
) -> Iterator[tuple["_CodeSource", str]]:
    """Yield the columns that may hold labels, each with its SELECT."""
    # Neither times nor what identifies a person.
    excluded = {
        name
        for other in inspection.places
        if other.field.time or f"{inspection.kind}.{other.slot}" in PERSONAL_TEXTS
        for name in (*other.field.columns, other.field.search_column)
    }
    of_patients = inspection.kind is ResourceType.PATIENT
    for source in _sources(inspection, place):
        if of_patients and not source.is_elsewhere:
            # Texts beside a patient are about them.
            continue
        texts = [c.name for c in source.columns.described if are_texts(c.kind)]
        columns = [name for name in texts if name not in {source.code, *excluded}]
        yield from ((source, name) for name in columns)
        if not source.is_elsewhere:
            # The table of the codes has them too: they are listed once.
            excluded |= {*columns}


class _CodeSource(NamedTuple):
    """A SELECT with a column of codes: that of the mapping, or all of a table."""

    table: str
    columns: Columns
    code: str
    is_elsewhere: bool = False


def _sources(inspection: SqlInspection, place: Place) -> Iterator[_CodeSource]:
    """Yield the SELECT of a field, the table of its codes, and those with the same codes."""
    yield _CodeSource("", inspection.columns_of(place), place.field.columns[0])
    origin, database = inspection.origin(place), inspection.database
    if origin is None:
        return
    others = [*_joined(place.rows or inspection.section.rows, origin)]
    with suppress(SourceDataError):
        others += database.run(lambda connection: _referred(connection, origin))
    for table, code in dict.fromkeys([origin, *others]):
        with suppress(SourceDataError):
            select = f"SELECT * FROM {table}"
            described = database.columns(select)
            (code,) = [c.name for c in described if c.name.lower() == code.lower()]
            columns = Columns(database.dialect, select, described)
            yield _CodeSource(table, columns, code, is_elsewhere=table != origin.table)


def _joined(rows: str, origin: ColumnOrigin) -> Iterator[ColumnOrigin]:
    """Yield the columns of other tables that a SELECT compares with a column."""
    column = parts_of_name(str(origin).lower())[-2:]
    for inner, outer in comparisons(rows):
        for origin, other in ((inner, outer), (outer, inner)):
            if parts_of_name(str(origin).lower())[-2:] == column:
                yield other


def _referred(connection: sa.Connection, origin: ColumnOrigin) -> list[ColumnOrigin]:
    """Return the columns that declared keys of a column lead to."""
    *schemas, table = parts_of_name(origin.table)
    keys = sa.inspect(connection).get_foreign_keys(table, *schemas[-1:])
    quote = connection.dialect.identifier_preparer.quote
    return [
        ColumnOrigin(
            ".".join(
                quote(n) for n in (key["referred_schema"], key["referred_table"]) if n
            ),
            key["referred_columns"][0],
        )
        for key in keys
        if [name.lower() for name in key["constrained_columns"]]
        == [origin.column.lower()]
    ]


def _labels(
    inspection: SqlInspection, place: Place, source: _CodeSource, name: str
) -> Labels:
    """Return the labels in a column, or why they are none."""
    columns, database = source.columns, inspection.database
    code, label = columns.column(source.code), columns.column(name)
    figures = f"count(DISTINCT {label.plain}), min({label.plain}), count(*)"
    groups = columns.rows(f"{code.exact}, {figures}", label.is_not_null)
    order = f"\nGROUP BY {code.exact}\nORDER BY count(*) DESC"
    try:
        rows = database.fetch(database.dialect.first(groups.within("", order), GROUPS))
    except (SourceDataError, SourceTimedOutError) as error:
        return Labels(problem=f"{name} cannot be read as labels: {error}.")
    if several := sum(different > 1 for _, different, _, _ in rows):
        text = f"{several:,} of {len(rows):,} codes have several texts in {name}"
        return Labels(problem=f"{text}: choose a column with one label for each code.")
    is_key = source.is_elsewhere and all(number == 1 for *_, number in rows)
    return Labels(
        by_code={
            code_of(place, cell): plain_text(text)
            for cell, _, text, number in rows
            if is_key or number >= FEW_ROWS
        }
    )
