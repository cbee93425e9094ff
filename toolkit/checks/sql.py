"""What `mapping check --live` examines in a database, section by section.

Rights, columns and their types, codes, blanks, rows that are left out or invalid, ids,
references, merged patients, times. `CHECKS` lists them; what searches cost is
`sql_searches.py`. What could not be examined is one note. Nothing that is reported quotes a
value of a person.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, time
from functools import partial
from typing import Any, TypeAlias

import sqlalchemy as sa

from adapters.contract import PatientRecord, ResourceType, SourceDataError
from adapters.folding import fold
from adapters.mapping.binary import BinaryForm, text_of
from adapters.mapping.births import days_of, read_birth
from adapters.mapping.model import HIDDEN, REMOVED, ResourceMapping, TimeRule
from adapters.mapping.slots import REFERS, Place, SlotKind
from adapters.mapping.times import EPOCHS, to_instant
from adapters.mapping.values import text_or_none
from adapters.sql.adapter import SqlAdapter, UnfitError
from adapters.sql.columns import NUMBERS, TEXTS, TIMES, ColumnKind
from adapters.sql.dialects.base import MARK, ColumnOrigin, Sql
from adapters.sql.query import ALWAYS, Columns, Condition, all_of, in_rows
from adapters.sql.texts import are_texts, compare_as_read, sample
from toolkit.checks.formats import format_of
from toolkit.checks.inspection import Findings
from toolkit.checks.rows import (
    ENOUGH_ROWS,
    FEW_ROWS,
    SAMPLE_ROWS,
    codes,
    doubtful_times,
    empty,
    far_days,
    invalid_rows,
    never_filled,
    rows_that,
    selects,
    unknown_zone,
)
from toolkit.checks.selects import (
    arguments_behind,
    arguments_of,
    comparisons,
    from_of,
    key_columns,
    with_outer_joins,
)
from toolkit.checks.sql_inspection import GROUPS, SqlInspection
from toolkit.checks.sql_searches import SearchChecks
from toolkit.findings import Check, Finding, Result, Severity


def checks(
    adapter: SqlAdapter, kinds: Collection[ResourceType], deadline: float
) -> Iterator[Check]:
    """Yield the checks of a database, section by section.

    After the deadline no search is measured, and indexes are suggested all the same.
    """
    yield Check("account", partial(_unfit, adapter.refuse_writing))
    inspections = []
    for kind in adapter.mapping.resources:
        if kind not in kinds:
            continue
        columns = partial(_unfit, partial(adapter.section, kind))
        yield Check(f"{kind}: columns", columns, ends_in_time=True)
        with suppress(SourceDataError):
            inspections.append(SqlInspection(adapter, kind, deadline))
    for inspection in inspections:
        for subject, check in CHECKS:
            run = partial(inspection.run, subject, check)
            yield Check(f"{inspection.kind}: {subject}", run)
        searches = SearchChecks(inspection).results
        run = partial(inspection.run, "searches", searches)
        yield Check(f"{inspection.kind}: searches", run, ends_in_time=True)
    for inspection in inspections:
        subject = f"{inspection.kind}: what is not examined"
        yield Check(subject, inspection.not_examined, ends_in_time=True)


def _unfit(call: Callable[[], object]) -> Findings:
    """Yield a finding for each problem of the UnfitError that a call raises, if it does."""
    try:
        call()
    except UnfitError as error:
        yield from map(Finding.of, error.problems)


# Rows that clients do not see


_LIMIT = re.compile(
    r"\ASELECT\s+TOP\s+\(?\d|\b(LIMIT|FETCH\s+(FIRST|NEXT))\s+\d+(\s+OFFSET\s+\d+|\s+ROWS?\s+ONLY)?\s*\Z",
    re.IGNORECASE,
)


def limited_rows(inspection: SqlInspection) -> Findings:
    """Report a SELECT that ends in a LIMIT, or begins with TOP."""
    if _LIMIT.search(inspection.section.rows.strip()):
        text = (
            "the SELECT of rows has a LIMIT: rows beyond it are never served. Remove it"
        )
        yield inspection.finding(text, Severity.WARNING)


def hidden_rows(inspection: SqlInspection) -> Findings:
    """Report the tables of which the database shows only some rows to the account."""
    selects = [inspection.section.rows, *(p.rows for p in inspection.places)]
    for rows in dict.fromkeys(filter(None, selects)):
        for table in inspection.database.filtered(rows):
            text = (
                f"row-level security of {table} hides rows from the account of the source, so"
                " clients would not see them. Use an account that sees every row"
                " (PostgreSQL: BYPASSRLS)"
            )
            yield inspection.finding(text, Severity.ERROR)


def no_stays(inspection: SqlInspection) -> Findings:
    """Report that the sample has no row of a stay."""
    if inspection.kind is ResourceType.ENCOUNTER and not inspection.sample:
        text = (
            "the source has no stay that can be served. Check the address of the database,"
            " the table and the conditions of rows"
        )
        yield inspection.finding(text, Severity.WARNING)


def rows_left_out(inspection: SqlInspection) -> Findings:
    """Compare the number of rows of the table of ids with the number that clients see.

    The difference shows a wrong JOIN or condition, which no single row can show.
    """
    table = inspection.table_of_ids()
    if not table:
        # Without FROM there is one row.
        if from_of(inspection.section.rows, 0):
            inspection.skip("rows that are left out", "no table has the ids")
        return
    whole = sa.select(sa.func.count()).select_from(sa.text(table))
    try:
        ((rows,),) = inspection.database.fetch(whole)
    except SourceDataError:
        inspection.skip("rows that are left out", f"the account cannot read {table}")
        return
    selected = inspection.count(inspection.opened.columns, ALWAYS)
    lost = _lost_by_joins(inspection, selected)
    if lost > 0:
        text = (
            f"{lost:,} of {rows:,} rows of {table} are left out by a JOIN:"
            " use LEFT JOIN to keep rows without a match, and WHERE to leave rows out"
        )
        yield inspection.at(inspection.place("id"), text, Severity.WARNING)
    elif inspection.kind is ResourceType.ENCOUNTER and rows >= selected:
        yield from _stays_not_seen(inspection, table, rows, selected)


def _lost_by_joins(inspection: SqlInspection, selected: int) -> int:
    """Return how many rows the SELECT has more with LEFT JOINs; it has `selected` now."""
    database, zone = inspection.database, inspection.mapping.source.zone
    outer = with_outer_joins(inspection.section.rows)
    if outer == inspection.section.rows:
        return 0
    try:
        columns = Columns(database.dialect, outer, database.columns(outer), zone=zone)
        id = columns.column(inspection.opened.id.name)
        return inspection.count(columns, id.is_not_null) - selected
    except SourceDataError:
        inspection.skip("joins", "the SELECT fails with LEFT JOIN")
        return 0


def _stays_not_seen(
    inspection: SqlInspection, table: str, rows: int, selected: int
) -> Findings:
    """Yield how many stays clients see.

    There is no finding where no row of the table is missing from the SELECT, and fewer than
    half of the stays are hidden or removed.
    """
    served = inspection.count(inspection.opened.columns, inspection.served)
    text = f"clients see {served:,} of {rows_that(rows)} of {table}"
    is_most = served >= rows / 2
    if served == rows:
        text += ". Check that no row is a cancelled stay"
    elif rows > selected or not is_most:
        text += (
            f": the SELECT omits {rows - selected:,}, and the codes {HIDDEN} and {REMOVED}"
            f" omit {selected - served:,}. Check that these are the cancelled stays, and no"
            " others"
        )
    else:
        return
    severity = Severity.NOTE if is_most else Severity.WARNING
    yield inspection.finding(text, severity, "types with rows that are left out")


# Columns


_WITHOUT_ZONE = {
    ColumnKind.LOCAL_TIME,
    ColumnKind.FINE_TIME,
    ColumnKind.TICK_TIME,
    ColumnKind.SECOND_TIME,
}
_WITH_FRACTIONS = {ColumnKind.NUMBER, ColumnKind.DOUBLE}
_TYPES = "columns whose type can be improved"


def types_of_columns(inspection: SqlInspection) -> Findings:
    """Report the columns whose type makes the service fail or return wrong rows."""
    for place in inspection.places:
        if place.rows or not place.field.columns:
            continue
        name = place.field.filter_column or place.field.columns[0]
        kind = inspection.opened.columns.column(name).kind
        if kind is not ColumnKind.INSTANT:
            yield from unknown_zone(inspection, place)
        if place.field.time:
            yield from _type_of_time(inspection, place, kind, place.field.time)
        elif place.kind is SlotKind.ID and kind in _WITH_FRACTIONS:
            text = "an id of a type with fractions: CAST it to an integer or a text"
            yield inspection.at(place, text, Severity.NOTE, topic=_TYPES)
        elif place.kind in (SlotKind.ID, SlotKind.EXACT) and kind in TIMES:
            text = "a column of times, not of ids or numbers: name another column"
            yield inspection.at(place, text, Severity.WARNING, topic=_TYPES)
        elif (
            place.kind is SlotKind.PARTS
            and kind is ColumnKind.OTHER
            and place.field in inspection.compared
        ):
            text = "a list cannot be searched: name a column of texts with search:"
            yield inspection.at(place, text, Severity.ERROR, topic=_TYPES)


def _type_of_time(
    inspection: SqlInspection, place: Place, kind: ColumnKind, rule: TimeRule
) -> Findings:
    """Report why searches by a column of this type are wrong, or why rows are invalid."""
    is_compared = place.field in inspection.compared
    is_time = place.kind is SlotKind.TIME
    is_day = is_time and kind is ColumnKind.DATE
    severity = Severity.ERROR
    remedy = ""
    if kind in NUMBERS and rule.format is None and is_time:
        text = "the column contains numbers. Set format, or convert them to times in the SELECT"
        remedy = 'format: "%Y%m%d%H%M%S"'
    elif rule.format in EPOCHS and is_compared and kind in TEXTS:
        text = (
            "the column contains numbers as texts, and searches would compare them as"
            " texts. CAST them to numbers in the SELECT"
        )
    elif kind in NUMBERS and is_compared and rule.format not in (None, *EPOCHS):
        text = "searches compare these numbers as texts. CAST them to texts or times in the SELECT"
        severity = Severity.WARNING
    elif is_day and is_compared and place.field.search_column:
        text = (
            "the field has a time of day, but searches compare a column of days: searches"
            " by the hour and sorts are wrong. Name a column of the whole time under search"
        )
    elif is_day and not rule.at and len(place.field.columns) == 1:
        text = "the column contains days without a time. Add at: with the time of day"
        remedy = 'at: "00:00"'
        rule_of_row = "a date without a time"
        inspection.reported.add((place.field.columns[0], rule_of_row))
    elif kind in (ColumnKind.OTHER, ColumnKind.BOOLEAN, ColumnKind.UUID):
        text = "not a column of times. Convert it to times in the SELECT"
        if kind is ColumnKind.OTHER:
            severity = Severity.WARNING
    elif are_texts(kind) and is_compared:
        values = _extremes(inspection, place)
        unequal = sum(not compare_as_read(kind, place.field, value) for value in values)
        if not unequal:
            return
        remedy = format_of(values, kind, place.field)
        text = (
            f"{unequal:,} of {len(values):,} texts do not sort in the order of their times: the"
            " service refuses searches by this column"
        )
        if not remedy:
            text += (
                ". No format fits all of them: convert the column to times in the SELECT, or"
                " name a column of times with search:"
            )
    else:
        return
    yield inspection.at(place, text, severity, remedy, _TYPES)


def _extremes(inspection: SqlInspection, place: Place) -> list[object]:
    """Return values from both ends of a column: in the order of ids, then in its own order."""
    columns, database = inspection.opened.columns, inspection.database
    key = columns.key(place.field)
    by_id = sample(database, columns, key, inspection.opened.id)
    by_value = sample(database, columns, key, key.column)
    return [*by_id, *by_value]


_CALL = re.compile(r"\b(COALESCE|IFNULL|NVL|GREATEST|LEAST)\s*\(", re.IGNORECASE)


def mixed_zones(inspection: SqlInspection) -> Findings:
    """Report times with a zone and without one in one expression."""
    for rows, mark in selects(inspection.section):
        for call in _CALL.finditer(rows):
            source = from_of(rows, call.end())
            # The first argument of each kind.
            arguments: dict[ColumnKind, str] = {}
            for argument in arguments_of(rows, call.end()):
                arguments.setdefault(inspection.kind_of(argument, source), argument)
            local_kinds = [kind for kind in arguments if kind in _WITHOUT_ZONE]
            if local_kinds and ColumnKind.INSTANT in arguments:
                text = (
                    f"{call[1]} mixes times without a zone ('{arguments[local_kinds[0]]}') and"
                    f" with one ('{arguments[ColumnKind.INSTANT]}'), so some are hours off."
                    " Convert both to one type"
                )
                severity = Severity.WARNING
                yield Finding.at(mark, text, inspection.kind, severity=severity)


_MAY_END_IN_BLANKS = {*TEXTS, ColumnKind.LOOSE} - {ColumnKind.PADDED}
_EXACT = (SlotKind.ID, SlotKind.EXACT, SlotKind.SYSTEM, SlotKind.CODE, SlotKind.FLAG)


def trailing_blanks(inspection: SqlInspection) -> Findings:
    """Report how many rows have an id, number or code that searches by it miss."""
    for place in inspection.places:
        is_compared = place.field in inspection.compared or place.kind is SlotKind.ID
        if not (is_compared and place.kind in _EXACT and place.field.filter_column):
            continue
        columns = inspection.columns_of(place)
        column = columns.column(place.field.filter_column)
        if column.kind not in _MAY_END_IN_BLANKS:
            continue
        blanks = all_of([inspection.condition_of(place), column.ends_in_blanks])
        if rows := inspection.count(columns, blanks):
            text = (
                f"{rows_that(rows, 'end')} in blanks, which the database compares: searches"
                " do not find them. RTRIM the column in the SELECT"
            )
            yield inspection.at(place, text, Severity.ERROR)


def search_columns(inspection: SqlInspection) -> Findings:
    """Report columns under `search:` that do not hold what their field shows."""
    for place in inspection.places:
        if not place.field.search_column or len(place.field.columns) != 1:
            continue
        columns = inspection.columns_of(place)
        shown = columns.key(replace(place.field, search_column=None))
        searched = columns.key(place.field)
        served = ALWAYS if place.rows else inspection.served
        only_shown = all_of([served, shown.present, searched.missing])
        only_searched = all_of([served, searched.present, shown.missing])
        unpaired = inspection.count(columns, only_shown)
        unpaired += inspection.count(columns, only_searched)
        names = [shown.column.name, searched.column.name]
        in_both = all_of([served, shown.present, searched.present])
        statement = columns.select(names, in_both, limit=SAMPLE_ROWS)
        pairs = inspection.database.fetch(statement)
        differing = [pair for pair in pairs if not _holds_same(place, *pair)]
        texts = []
        if unpaired:
            texts.append(f"{unpaired:,} rows have a value in only one of the columns")
        if differing:
            number = f"{len(differing):,} of {len(pairs):,}"
            texts.append(f"{number} rows have different values")
        if texts:
            text = f"search: {place.field.search_column} differs from what the field shows, so"
            text += f" searches return wrong rows: {', '.join(texts)}"
            is_text = place.kind in (SlotKind.TEXT, SlotKind.PARTS)
            severity = Severity.WARNING if is_text else Severity.ERROR
            yield inspection.at(place, text, severity)


def _holds_same(place: Place, shown: object, searched: object) -> bool:
    """Return whether the column that searches compare holds what its field shows.

    True also where another check reports the row: the shown cell has no readable value, or
    the searched one is a day and the field a time.
    """
    rule, is_time = place.field.time, place.kind is SlotKind.TIME
    if rule is not None and is_time and type(searched) is date:
        return True
    form = place.field.form or BinaryForm.HEX
    convert: Callable[[Any], object] = partial(text_or_none, form=form)
    if rule is not None:
        read_day = partial(read_birth, today=date.max)
        convert = partial(to_instant if is_time else read_day, rule=rule)
    try:
        value = convert(shown)
    except ValueError:
        return True
    if value is None:
        return True
    try:
        compared = convert(searched)
    except ValueError:
        return False
    if place.kind in (SlotKind.TEXT, SlotKind.PARTS):
        return fold(str(value)) in fold(str(compared))
    return value == compared


def orders_of_uuids(inspection: SqlInspection) -> Findings:
    """Report a column of UUIDs that are all valid in the other order of their bytes only."""
    for place in inspection.places:
        form = place.field.form
        if place.rows or form not in (BinaryForm.UUID, BinaryForm.SWAPPED):
            continue
        other = BinaryForm.UUID if form is BinaryForm.SWAPPED else BinaryForm.SWAPPED
        values = inspection.values(place)
        keys = [value for value in values if type(value) is bytes and len(value) == 16]
        if len(keys) < ENOUGH_ROWS:
            continue
        invalid = [key for key in keys if not _is_versioned(text_of(key, form))]
        if invalid and all(_is_versioned(text_of(key, other)) for key in keys):
            text = (
                f"{len(invalid):,} of {len(keys):,} keys are no valid UUIDs as {form}, but"
                f" all are as {other}. Check the order of their bytes"
            )
            yield inspection.at(place, text, Severity.WARNING, f"form: {other}")


def _is_versioned(uuid: str) -> bool:
    """Whether a UUID has a version and the variant of RFC 9562."""
    return re.fullmatch(r".{14}[1-8].{4}[89ab].*", uuid) is not None


_REPAIRS = {
    "mysql": "CASE WHEN CONVERT({0} USING utf8mb4) COLLATE utf8mb4_bin LIKE '%Ã%'"
    " THEN CONVERT(CAST(CONVERT({0} USING latin1) AS BINARY) USING utf8mb4) ELSE {0} END",
    "postgresql": "CASE WHEN {0} LIKE '%Ã%'"
    " THEN convert_from(convert_to({0}, '{1}'), 'UTF8') ELSE {0} END",
}
"""By the kind of database, an expression that reads a text as the UTF-8 that it is."""


def encoded_twice(inspection: SqlInspection) -> Findings:
    """Report texts whose bytes are UTF-8 and were read as Latin-1: Ã¨ in place of è."""
    for place in inspection.places:
        if place.kind not in (SlotKind.TEXT, SlotKind.PARTS, SlotKind.EXACT):
            continue
        if not place.field.columns:
            continue
        columns, name = inspection.columns_of(place), place.field.columns[0]
        column = columns.column(name)
        if column.kind not in TEXTS or not column.can_hold("Ã"):
            continue
        marked = Condition(f"{column.exact} LIKE {MARK}", ("%Ã%",))
        condition = all_of([inspection.condition_of(place), marked])
        statement = columns.select([name], condition, limit=SAMPLE_ROWS)
        texts = [text for (text,) in inspection.database.fetch(statement)]
        if not any(map(_is_encoded_twice, texts)):
            continue
        rows = rows_that(inspection.count(columns, condition), "have")
        text = (
            f"{rows} UTF-8 that was stored as Latin-1 (Ã¨ for è). Clients see it like that, and"
            " searches do not find it. Correct the data, or convert it in the SELECT"
        )
        kind, _, _ = inspection.database.dialect.driver.partition("+")
        latin = "LATIN1" if column.encoding == "iso8859-1" else "WIN1252"
        remedy = _REPAIRS.get(kind, "").format(name, latin)
        yield inspection.at(place, text, Severity.WARNING, remedy)


def _is_encoded_twice(text: object) -> bool:
    """Whether the bytes of a text, as Latin-1 or Windows-1252, are UTF-8 of another text."""
    for codec in ("cp1252", "latin-1"):
        with suppress(UnicodeError):
            return str(text).encode(codec).decode() != text
    return False


# Values


def required_values(inspection: SqlInspection) -> Findings:
    """Report how many rows have no value in a required field; `codes` counts coded ones."""
    columns = inspection.opened.columns
    for place in inspection.places:
        field = place.field
        is_required = field.slot in inspection.section.required
        if not is_required or len(field.columns) != 1 or field.codes:
            continue
        shown = columns.key(replace(field, search_column=None))
        inspection.reported.add((field.columns[0], "required and empty"))
        served = inspection.served
        if field.slot == "id":
            # The condition of searches leaves rows without an id out.
            served = inspection.opened.filters.served
        rows = inspection.count(columns, all_of([served, shown.missing]))
        if rows and field.slot == "id":
            text = f"{rows_that(rows, 'have')} no id and cannot be served"
            yield inspection.at(place, text, Severity.ERROR)
        elif rows:
            yield empty(place, inspection.column(place), rows)


def zero_dates(inspection: SqlInspection) -> Findings:
    """Report columns with 0000-00-00, which MySQL and MariaDB store though it is no day."""
    zero = inspection.database.dialect.zero_date
    if not zero:
        return
    columns, served = inspection.opened.columns, inspection.served
    for place in inspection.places:
        is_absent = any(text.startswith(zero) for text in place.field.absent)
        if place.rows or not place.field.columns or is_absent:
            continue
        name = place.field.columns[0]
        column = columns.column(name)
        if column.kind not in TIMES:
            continue
        is_zero = Condition(f"{column.plain} = 0")
        rows = inspection.count(columns, all_of([served, is_zero]))
        if not rows:
            continue
        # Not `column.is_null`, which excludes zeros.
        is_null = Condition(f"{column.plain} IS NULL")
        matches_null = inspection.count(columns, all_of([served, is_zero, is_null]))
        reason = "is not a day"
        if matches_null:
            reason = "the database also matches with IS NULL"
        text = (
            f"{rows_that(rows, 'contain')} {zero}, which {reason}. Add it to absent, or use"
            f" NULLIF({name}, 0) in the SELECT"
        )
        inspection.reported.add((name, "not readable"))
        remedy = f"absent: {[zero, *sorted(place.field.absent)]}"
        yield inspection.at(place, text, Severity.ERROR, remedy)


_CLOCK = re.compile(r"\d[ T](?!00:00(?![:.]*0*[1-9]))\d\d:\d\d")


def times_cut_to_days(inspection: SqlInspection) -> Findings:
    """Report fields for which the SELECT computes a day from a column with a time of day."""
    section, database = inspection.opened, inspection.database
    for place in inspection.places:
        rule, names = place.field.time, place.field.columns
        if rule is None or place.kind is not SlotKind.TIME or place.rows:
            continue
        # The database knows the origin of a column that is not computed.
        if len(names) != 1 or inspection.origin(place) is not None:
            continue
        statement = section.columns.select(names, inspection.served, limit=SAMPLE_ROWS)
        values = [value for (value,) in database.fetch(statement) if value]
        is_day = rule.at is not None or len(values) >= ENOUGH_ROWS
        if not is_day or any(map(_has_clock, values)):
            continue
        for column, tables in arguments_behind(section.mapping.rows, names[0]):
            source, times = database.dialect.bound(tables)
            values_of_zone = database.dialect.times(times, rule.zone)
            select = Sql(f"{column} FROM {source}", values_of_zone)
            try:
                rows = database.fetch(database.dialect.first(select, SAMPLE_ROWS))
            except SourceDataError:
                continue
            with_clock = [value for (value,) in rows if _has_clock(value)]
            # In fewer rows, the column may be in a condition only, as in CASE WHEN.
            if with_clock and len(with_clock) >= len(rows) / 10:
                text = (
                    f"the SELECT keeps only the day of {column}, which has a time of day in"
                    f" {len(with_clock):,} of {len(rows):,} rows: select the column itself,"
                    " without at:"
                )
                yield inspection.at(place, text, Severity.WARNING)
                break


def _has_clock(value: object) -> bool:
    """Whether a time, or a text of one, has a time of day other than midnight."""
    if isinstance(value, datetime):
        return value.time() != time()
    return isinstance(value, str) and bool(_CLOCK.search(value))


# Ids and references


def repeated_ids(inspection: SqlInspection) -> Findings:
    """Report ids that several rows have; `required_values` counts rows without one."""
    section, database = inspection.opened, inspection.database
    present = all_of([inspection.served, section.id.is_not_null])
    statement = section.columns.count_by(section.id, present, GROUPS)
    repeated = [rows for _, rows in database.fetch(statement) if rows > 1]
    if not repeated:
        return
    at_least = "at least " if len(repeated) == GROUPS else ""
    text = (
        f"{at_least}{len(repeated):,} ids have several rows (at most {repeated[0]:,}). The SELECT"
        " must return one row for each id"
    )
    replaced = section.mapping.fields.get("replaced_by")
    if replaced and replaced.columns:
        merged = all_of([present, section.columns.key(replaced).present])
        statement = section.columns.count_by(section.id, merged, GROUPS)
        if any(rows > 1 for _, rows in database.fetch(statement)):
            text += ". Check that replaced_by is not the wrong way round"
    yield inspection.at(inspection.place("id"), text, Severity.ERROR)


def parts_of_keys(inspection: SqlInspection) -> Findings:
    """Report joins that compare only some of several columns of the id.

    Rows of other ids match such a join, if the table of the id repeats what it compares.
    """
    rows, place = inspection.section.rows, inspection.place("id")
    database = inspection.database
    key = key_columns(rows, place.field.columns[0])
    key_tables = {origin.table for origin in key}
    # By joined table, the columns of the id that its join compares.
    compared_by_table: dict[str, set[ColumnOrigin]] = {}
    for inner, outer in comparisons(rows):
        if outer.table in key_tables:
            compared_by_table.setdefault(inner.table, set()).add(outer)
    for table, compared in compared_by_table.items():
        if not compared < key:
            continue
        described = database.columns(f"SELECT * FROM {table}")
        names = {column.name.lower() for column in described}
        missing = [o.column for o in key - compared if o.column.lower() in names]
        if not missing:
            continue
        columns: list[Any] = [sa.literal_column(origin.column) for origin in compared]
        source = sa.text(next(iter(compared)).table)
        groups = sa.select(sa.func.count()).select_from(source).group_by(*columns)
        if database.fetch(groups.having(sa.func.count() > 1).limit(1)):
            text = (
                f"the SELECT joins {table} without {', '.join(missing)}, a part of the id, so"
                " rows of other stays match. Compare all columns of the id"
            )
            yield inspection.at(place, text, Severity.WARNING)


def references(inspection: SqlInspection) -> Findings:
    """Report references to resources that their section does not have."""
    for place in inspection.places:
        field, kind = place.field, REFERS.get(place.slot.rpartition(".")[2])
        section = _section(inspection, kind, field.prefix) if kind else None
        if kind is None or section is None:
            continue
        if field.codes or field.strip:
            reason = "the id is computed from the column"
            inspection.skip(f"references of {place.element}", reason)
            continue
        target = inspection.open(section)
        text = f"an id that the section {kind.lower()} does not have"
        if field.constant is not None:
            of_id = target.filters.of_id(f"{field.prefix}{field.constant}")
            if not inspection.count(target.columns, of_id):
                text = f"refers to '{field.constant}', {text}"
                yield inspection.at(place, text, Severity.WARNING)
            continue
        columns = inspection.columns_of(place)
        key = columns.key(field)
        refers = all_of([inspection.condition_of(place), key.present])
        has_target = in_rows(key.column, target.columns, target.id, ALWAYS)
        referring = inspection.count(columns, refers)
        dangling = referring - inspection.count(columns, all_of([refers, has_target]))
        if dangling:
            text = f"{dangling:,} of {rows_that(referring, 'refer')} to {text}"
            yield inspection.at(place, text, Severity.WARNING)


def _section(
    inspection: SqlInspection, kind: ResourceType, prefix: str
) -> ResourceMapping | None:
    """Return the section of this source whose ids have a prefix.

    Where there is none, return None and note that references are not examined.
    """
    section = inspection.mapping.beside.get((kind, prefix))
    if section is None:
        inspection.skip(f"references to {kind}", "this source has no such section")
    return section


_EARLY = 0.05
"""A smaller share of stays that start before a birth are newborns."""


def starts_before_births(inspection: SqlInspection) -> Findings:
    """Report stays of the sample that begin before their patient was born."""
    if inspection.kind is not ResourceType.ENCOUNTER:
        return
    starts = [(s.patient_id, s.start) for s in inspection.stays if s.start]
    prefix = inspection.section.fields["patient_id"].prefix
    section = inspection.mapping.beside.get((ResourceType.PATIENT, prefix))
    if section is None:
        reason = "this source has no section of patients"
        inspection.skip("starts before births", reason)
        return
    if not starts:
        inspection.skip("starts before births", "no stay has a start")
        return
    # Every database accepts so many values in one statement.
    ids = sorted({id for id, _ in starts})[:SAMPLE_ROWS]
    patients = inspection.open(section)
    among = patients.columns.equal(section.fields["id"], ids)
    cells = inspection.database.fetch(patients.columns.select(patients.selected, among))
    births = {
        record.id: days_of(record.birth_date)[0]
        for record in patients.records(inspection.database, cells)
        if isinstance(record, PatientRecord) and record.birth_date
    }
    known = [(start.date(), births[id]) for id, start in starts if id in births]
    early = sum(start < birth for start, birth in known)
    # A mother may be admitted under the number of her unborn child.
    if early >= max(FEW_ROWS, _EARLY * len(known)):
        text = (
            f"{early:,} of {len(known):,} stays start before the birth of their patient. Check"
            " the columns of both dates, and that patient_id is the id of the patient"
        )
        yield inspection.at(inspection.place("start"), text, Severity.WARNING)


# Merged patients


def merged_patients(inspection: SqlInspection) -> Findings:
    """Report stays of merged patients where merges are not followed, and circles of merges."""
    merges = inspection.opened.merges
    if inspection.kind is not ResourceType.ENCOUNTER or merges is None:
        return
    section, place = inspection.opened, inspection.place("patient_id")
    if not place.field.follows_merges and place.field.columns:
        column = section.columns.column(place.field.filter_column)
        is_merged = merges.survivor.present
        has_merged = in_rows(column, merges.columns, merges.id, is_merged)
        condition = all_of([inspection.served, has_merged])
        if stays := inspection.count(section.columns, condition):
            text = (
                f"{rows_that(stays, 'have')} a patient who was merged into another. Searches by"
                " the surviving patient do not find them"
            )
            yield inspection.at(place, text, Severity.WARNING, "merges: follow")
    if lost := merges.without_survivor(inspection.database):
        text = (
            f"{rows_that(lost, 'lead')} into a circle of merges, in which no patient"
            " survives: their stays keep their own patient. Correct the data"
        )
        yield Finding.of_field(*inspection.survivor, text, Severity.WARNING)


CheckOfSection: TypeAlias = Callable[[SqlInspection], Iterator[Result]]

CHECKS: tuple[tuple[str, CheckOfSection], ...] = (
    ("row-level security", hidden_rows),
    ("all rows", limited_rows),
    ("no stays", no_stays),
    ("rows that are left out", rows_left_out),
    ("types of columns", types_of_columns),
    ("zones", mixed_zones),
    ("orders of UUIDs", orders_of_uuids),
    ("codes", codes),
    ("blanks", trailing_blanks),
    ("required values", required_values),
    ("zero dates", zero_dates),
    ("search columns", search_columns),
    ("encodings", encoded_twice),
    ("rows", invalid_rows),
    ("times", doubtful_times),
    ("fields", never_filled),
    ("far days", far_days),
    ("times cut to days", times_cut_to_days),
    ("ids", repeated_ids),
    ("parts of keys", parts_of_keys),
    ("references", references),
    ("starts before births", starts_before_births),
    ("merged patients", merged_patients),
)
"""The checks of a section with their subjects, in the order in which they run.

`invalid_rows` omits the faults that the checks before it have reported.
"""
