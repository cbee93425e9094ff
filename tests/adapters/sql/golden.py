"""Statements for Oracle and SQL Server, for which no test has a server.

`python -m tests.adapters.sql.golden` writes the files of tests/golden/sql anew; somebody who
knows the database reviews the change.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from adapters.contract import DateValue, Prefix, StringMatch
from adapters.mapping.model import FieldMapping, Mark, TimeRule
from adapters.sql.columns import (
    Column,
    ColumnKind,
    day_bound,
    partial_values,
    time_bound,
)
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.base import Dialect, Statement
from adapters.sql.query import (
    NEVER,
    Columns,
    Condition,
    KeyColumn,
    Order,
    TimeColumn,
    all_of,
    any_of,
    in_rows,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "sql"

DATABASES = ("mssql", "oracle")

GRAMMARS = {"mssql": "tsql", "oracle": "oracle"}
"""sqlglot's names."""

DEPTH = 20_000
"""In frames: a name is folded by some hundred functions within each other."""

KINDS: Mapping[str, tuple[ColumnKind, ColumnKind, ColumnKind]] = {
    "mssql": (ColumnKind.FOLDING, ColumnKind.FOLDING, ColumnKind.TICK_TIME),
    "oracle": (ColumnKind.FILLED, ColumnKind.PADDED, ColumnKind.SECOND_TIME),
}
"""What an old table has for names, for codes and for times."""

DAY = (datetime(1950, 6, 15, tzinfo=UTC), datetime(1950, 6, 16, tzinfo=UTC))
RULE = TimeRule(ZoneInfo("UTC"), ZoneInfo("UTC"))
MINUTES = replace(RULE, format="%Y-%m-%d %H:%M")

SELECTED = ("id", "patient", "state", "began")


def statements(database: str) -> Mapping[str, Statement]:
    """Return the statements by name, with the kinds of column of one database."""
    text, code, time = KINDS[database]
    dialect = dialect_named(database)

    def columns(rows: str, alias: str, **kinds: ColumnKind) -> Columns:
        described = [Column(name, kind) for name, kind in kinds.items()]
        return Columns(dialect, rows, described, alias)

    stays = columns(
        "SELECT id, patient, state, began FROM stays -- all",
        "pas",
        id=ColumnKind.INTEGER,
        patient=ColumnKind.INTEGER,
        state=code,
        began=time,
        name=text,
        colour=ColumnKind.OTHER,
        uuid=ColumnKind.UUID,
        bytes=ColumnKind.BINARY,
        changed=ColumnKind.FINE_TIME,
        written=text,
        padded=code,
    )
    people = columns(
        "SELECT id, name, merged FROM patients WHERE note <> ':x'",
        "patients",
        id=ColumnKind.INTEGER,
        code=text,
        name=text,
        merged=ColumnKind.INTEGER,
        survivor=text,
        note=ColumnKind.LARGE,
        born=time,
        birth=text,
        year=ColumnKind.NUMBER,
    )
    numbers = columns(
        "SELECT patient, digits FROM numbers",
        "items",
        patient=ColumnKind.INTEGER,
        digits=text,
        code=text,
        uuid=ColumnKind.UUID,
        bytes=ColumnKind.BINARY,
    )
    id_, patient = stays.column("id"), stays.column("patient")
    state, began, name = map(stays.column, ("state", "began", "name"))
    uuid, key, changed = map(stays.column, ("uuid", "bytes", "changed"))
    newest: Order = ((began, True), (id_, True))
    past = any_of([began.compare("<", 1), id_.compare("<", 2)])
    numbered = numbers.column("digits").is_in(["1"])
    merged = KeyColumn(people.column("merged"))
    shown = FieldMapping("name", Mark("", 1, 1), ("name",))
    folded = FieldMapping("name", Mark("", 1, 1), ("name",), search_column="name")

    noted = FieldMapping("name", Mark("", 1, 1), ("note",))
    encoded = Columns(
        dialect, "SELECT name FROM t", [Column("name", text, encoding="cp1252")]
    )

    def page(condition: Condition, *order: Any) -> Statement:
        limit = 7 if order else None
        return stays.select(SELECTED, condition, order, limit=limit)

    def of_patient(id: str, key: str) -> Statement:
        column, key_column = people.column(id), numbers.column(key)
        return people.select(["id"], in_rows(column, numbers, key_column, numbered))

    def named(field: FieldMapping, match: StringMatch) -> Statement:
        return people.select(["id"], people.matching(field, "Le_b", match))

    def absent(column: str, *texts: str) -> KeyColumn:
        return KeyColumn(stays.column(column), frozenset(texts))

    def born(column: str, prefix: Prefix) -> Statement:
        """Search births by a day, where some are known to the year or month alone."""
        birth = people.column(column)
        bound = partial(day_bound, birth.kind, RULE, zeros=False)
        values = partial(partial_values, birth.kind, RULE, zeros=False)
        time = TimeColumn(KeyColumn(birth), bound, partial=values)
        return people.select(["id"], time.at(DateValue(prefix, *DAY)))

    written = absent("written", "2011-05-00 00:00:00", "9999-12-31")
    moments = TimeColumn(written, partial(time_bound, text, MINUTES))

    return {
        "times-as-texts": page(moments.at(DateValue(Prefix.EQ, *DAY)), *newest),
        "times-as-texts-sampled": stays.select(
            ["written"], written.present, ((id_, True),), limit=7
        ),
        "absent-text": stays.count(written.missing),
        "absent-padded-text": stays.count(absent("padded", "9999-12-31").present),
        "absent-time": stays.count(
            absent("began", "2011-05-00 00:00:00", "9999-12-31 23:59:59").present
        ),
        "absent-fine-time": stays.count(
            absent("changed", "9999-12-31 23:59:59.9999999").present
        ),
        "foreign-characters": encoded.select(
            ["name"], encoded.equal(shown, ["Łukasz", "Zoé"])
        ),
        "births-of-days": born("born", Prefix.EQ),
        "births-as-texts": born("birth", Prefix.EQ),
        "births-as-texts-after": born("birth", Prefix.GT),
        "births-as-years": born("year", Prefix.LE),
        "name-in-large-text-starts": named(noted, StringMatch.STARTS_WITH),
        "count": stays.count(any_of([state.is_in(["S"]), state.is_null])),
        "never": page(NEVER),
        "first-page": page(began.is_not_null, *newest),
        "few-rows": stays.select(
            SELECTED, patient.is_in([1]), newest, limit=7, nulls_last=True
        ),
        "next-page": page(
            all_of([began.compare("<=", 1), past, state.is_in(["S"])]), *newest
        ),
        "without-key": page(all_of([began.is_null, id_.compare("<", 1)]), (id_, True)),
        "codes-counted": stays.count_by(state, state.is_in(["S"]), 7),
        "by-text-id": page(name.compare(">", "a"), (name, False)),
        "in-other-type": page(stays.column("colour").is_in(["red"])),
        "not-in-codes": page(state.not_in(["S", "T"])),
        "by-uuid": stays.select(
            ["uuid"], uuid.compare(">", "a"), ((uuid, False),), limit=7
        ),
        "by-bytes": stays.select(
            ["bytes"], key.compare(">", b"a"), ((key, False),), limit=7
        ),
        "in-bytes": page(key.is_in([b"a", b"b"])),
        "next-page-of-fine-times": stays.select(
            ["changed"],
            all_of([changed.compare("<=", "a"), id_.is_not_null]),
            ((changed, True), (id_, True)),
            limit=7,
        ),
        "ends-in-blanks": stays.count(name.ends_in_blanks),
        "merges": people.select_each(
            ["id", "merged"],
            [
                all_of([people.column("id").is_in([1, 2]), merged.present]),
                all_of([merged.column.is_in([1, 2]), merged.present]),
            ],
        ),
        "of-second-select": of_patient("id", "patient"),
        "of-second-select-by-text-id": of_patient("code", "code"),
        "of-second-select-by-number": of_patient("code", "patient"),
        "of-second-select-by-text": of_patient("id", "code"),
        "of-second-select-by-uuid": of_patient("code", "uuid"),
        "of-second-select-by-bytes": of_patient("code", "bytes"),
        "name-starts": named(shown, StringMatch.STARTS_WITH),
        "name-is": named(shown, StringMatch.EXACT),
        "folded-name-contains": named(folded, StringMatch.CONTAINS),
    }


def sent(database: str, statement: Statement) -> str:
    """Return the text of a statement as the driver of a database gets it."""
    return statement.text(dialect_named(database).placeholder)


def parsed(database: str, text: str) -> exp.Expression:
    """Return a statement as sqlglot reads it; raises ParseError."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(DEPTH)
    try:
        (statement,) = sqlglot.parse(
            text, read=GRAMMARS[database], error_level=ErrorLevel.RAISE
        )
    finally:
        sys.setrecursionlimit(limit)
    assert statement is not None
    return statement


@dataclass(frozen=True, slots=True)
class Described:
    """The part of a `Database` that opens sections: its dialect, the columns of SELECTs.

    A `Database` itself needs the driver, which is not installed for tests.
    """

    dialect: Dialect
    kinds: dict[str, ColumnKind]

    def columns(self, rows: str) -> tuple[Column, ...]:
        select = parsed("oracle", rows)
        assert isinstance(select, exp.Select)
        return tuple(Column(name, self.kinds[name]) for name in select.named_selects)


def main() -> None:
    """Write all files."""
    for database in DATABASES:
        folder = GOLDEN / database
        folder.mkdir(parents=True, exist_ok=True)
        for name, statement in statements(database).items():
            text = sent(database, statement)
            (folder / f"{name}.sql").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
