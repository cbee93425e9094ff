"""Labels of codes: texts of the hospital's own database, in a column that the integrator chooses.

A text may be about a person. A label is shown if no code of the column has two texts, and if at
least five rows have it; in another table with one row for each code, one row is enough. No
column in the rows of patients themselves is offered.
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
    """The columns that may hold labels, and the labels in the chosen one by code.

    `problem` says why the chosen column has no labels, "" if it has.
    """

    columns: Sequence[str] = ()
    by_code: Mapping[str, str] = {}
    problem: str = ""


def read_labels(
    adapter: RowReader, section: ResourceMapping, place: Place, chosen: str
) -> Labels:
    """Return the columns that may label the codes of a field, and the labels in the chosen one.

    An API has none.
    """
    if not isinstance(adapter, SqlAdapter):
        return Labels()
    inspection = SqlInspection(adapter, section.resource_type, math.inf)
    names: list[str] = []
    labels = Labels()
    for source, column in _offered(inspection, place):
        name = f"{source.table}.{column}" if source.table else column
        names.append(name)
        if name == chosen:
            labels = _labels(inspection, place, source, column)
    return labels._replace(columns=names)


def _offered(
    inspection: SqlInspection, place: Place
) -> Iterator[tuple["_CodeSource", str]]:
    """Yield the columns that may hold labels, each with its SELECT."""
    excluded: set[str | None] = set()
    for other in inspection.places:
        identifies_person = f"{inspection.kind}.{other.slot}" in PERSONAL_TEXTS
        if other.field.time or identifies_person:
            excluded |= {*other.field.columns, other.field.search_column}
    for source in _sources(inspection, place):
        if inspection.kind is ResourceType.PATIENT and not source.is_elsewhere:
            # Texts in the row of a patient are about that patient.
            continue
        texts = [c.name for c in source.columns.described if are_texts(c.kind)]
        names = [name for name in texts if name not in {source.code, *excluded}]
        for name in names:
            yield source, name
        if not source.is_elsewhere:
            # The SELECT of the mapping and its table have the same columns: list them once.
            excluded |= {*names}


class _CodeSource(NamedTuple):
    """A SELECT with a column of codes: that of the mapping, or all of a table.

    `is_elsewhere` is whether the table is another than that of the mapping's codes.
    """

    table: str
    columns: Columns
    code: str
    is_elsewhere: bool = False


def _sources(inspection: SqlInspection, place: Place) -> Iterator[_CodeSource]:
    """Yield the SELECT of a field, the table of its codes, and the tables with the same codes."""
    yield _CodeSource("", inspection.columns_of(place), place.field.columns[0])
    origin, database = inspection.origin(place), inspection.database
    if origin is None:
        return
    same_codes = [*_joined(place.rows or inspection.section.rows, origin)]
    with suppress(SourceDataError):
        same_codes += database.run(lambda connection: _referred(connection, origin))
    for table, column in dict.fromkeys([origin, *same_codes]):
        with suppress(SourceDataError):
            select = f"SELECT * FROM {table}"
            described = database.columns(select)
            # The database may write the name in another case.
            (code,) = [c.name for c in described if c.name.lower() == column.lower()]
            columns = Columns(database.dialect, select, described)
            yield _CodeSource(table, columns, code, is_elsewhere=table != origin.table)


def _joined(rows: str, origin: ColumnOrigin) -> Iterator[ColumnOrigin]:
    """Yield the columns of other tables that a SELECT compares with a column."""
    name = _table_and_column(origin)
    for inner, outer in comparisons(rows):
        if _table_and_column(inner) == name:
            yield outer
        if _table_and_column(outer) == name:
            yield inner


def _table_and_column(origin: ColumnOrigin) -> list[str]:
    """Return the table and the name of a column in small letters, without the schema."""
    return parts_of_name(str(origin).lower())[-2:]


def _referred(connection: sa.Connection, origin: ColumnOrigin) -> list[ColumnOrigin]:
    """Return the columns that foreign keys of a column refer to."""
    *schemas, table = parts_of_name(origin.table)
    keys = sa.inspect(connection).get_foreign_keys(table, *schemas[-1:])
    quote = connection.dialect.identifier_preparer.quote
    referred = []
    for key in keys:
        constrained = [name.lower() for name in key["constrained_columns"]]
        if constrained == [origin.column.lower()]:
            names = [key["referred_schema"], key["referred_table"]]
            target = ".".join(quote(name) for name in names if name)
            referred.append(ColumnOrigin(target, key["referred_columns"][0]))
    return referred


def _labels(
    inspection: SqlInspection, place: Place, source: _CodeSource, name: str
) -> Labels:
    """Return the labels in a column, or the problem if a code has several texts."""
    columns, database = source.columns, inspection.database
    code, label = columns.column(source.code), columns.column(name)
    # Of each code: how many different texts it has, one of them, and its number of rows.
    figures = f"count(DISTINCT {label.plain}), min({label.plain}), count(*)"
    select = columns.rows(f"{code.exact}, {figures}", label.is_not_null)
    group = f"\nGROUP BY {code.exact}\nORDER BY count(*) DESC"
    try:
        rows = database.fetch(database.dialect.first(select.within("", group), GROUPS))
    except (SourceDataError, SourceTimedOutError) as error:
        return Labels(problem=f"{name} cannot be read as labels: {error}.")
    ambiguous = [cell for cell, different, _, _ in rows if different > 1]
    if ambiguous:
        text = f"{len(ambiguous):,} of {len(rows):,} codes have several texts in {name}"
        return Labels(problem=f"{text}: choose a column with one label for each code.")
    # A text of few rows may be about a person, but not in a table of codes.
    is_code_table = source.is_elsewhere and all(number == 1 for *_, number in rows)
    labels = {
        code_of(place, cell): plain_text(text)
        for cell, _, text, number in rows
        if is_code_table or number >= FEW_ROWS
    }
    return Labels(by_code=labels)
