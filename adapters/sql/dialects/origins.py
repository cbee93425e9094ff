"""The table and column that each column of a SELECT comes from, as the database tells it."""

from collections.abc import Callable, Mapping
from typing import Any

from adapters.sql.dialects.plans import Origin

# --------------------------------------------------------------------------- SQLite


def sqlite_origins(cursor: Any, rows: str) -> Mapping[str, Origin]:
    """Read the program that SQLite makes of the SELECT (sqlite.org/opcode.html)."""
    tables = _tables(cursor)
    cursor.execute(f"SELECT * FROM ({rows}\n) WHERE 1 = 0")
    names = [column[0] for column in cursor.description or ()]
    found = {}
    for name in names:
        quoted = name.replace('"', '""')
        cursor.execute(f'EXPLAIN SELECT "{quoted}" FROM ({rows}\n)')
        origin = _origin([tuple(row[1:5]) for row in cursor.fetchall()], tables)
        if origin:
            found[name] = origin
    return found


def _tables(cursor: Any) -> Mapping[int, tuple[str, list[str], str]]:
    """Return what stands at each root page: its table, its columns, its row id's name."""
    cursor.execute(
        "SELECT type, name, tbl_name, rootpage FROM main.sqlite_master WHERE rootpage > 0"
    )
    found = {}
    for type_, name, table, page in cursor.fetchall():
        columns = _names(cursor, "table_info", table, 1)
        cursor.execute(f"PRAGMA main.table_info({_quoted(table)})")
        keys = [str(row[1]) for row in cursor.fetchall() if row[5]]
        key = keys[0] if len(keys) == 1 else ""
        if type_ == "index":
            columns = _names(cursor, "index_xinfo", name, 2)
        found[page] = (str(table), columns, key)
    return found


def _names(cursor: Any, pragma: str, of: str, at: int) -> list[str]:
    cursor.execute(f"PRAGMA main.{pragma}({_quoted(of)})")
    return [str(row[at] or "") for row in cursor.fetchall()]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_AT_P2 = (
    *("Null", "Integer", "Int64", "Real", "String", "String8", "Blob", "Variable"),
    *("Copy", "SCopy", "Move", "Rowid", "IdxRowid"),
)
_AT_P3 = (
    *("Column", "Function", "PureFunc", "Add", "Subtract", "Multiply", "Divide"),
    *("Remainder", "Concat", "And", "Or", "BitAnd", "BitOr", "AggFinal", "AggValue"),
)
"""The steps that write a register, by the operand that names it."""

_Step = tuple[str, int, int, int]


def _origin(
    steps: list[_Step], tables: Mapping[int, tuple[str, list[str], str]]
) -> Origin | None:
    """Return what the one cell of a row of the result is read from, None if computed."""
    results = {p1 for code, p1, _, _ in steps if code == "ResultRow"}
    if len(results) != 1:
        return None
    (cell,) = results
    writers = [step for step in steps if _writes(step, cell)]
    opened = {p1: tables.get(p2) for code, p1, p2, _ in steps if code == "OpenRead"}
    if len(writers) != 1 or ("Cast", cell) in {(code, p1) for code, p1, _, _ in steps}:
        return None
    code, cursor, at, _ = writers[0]
    read = opened.get(cursor)
    if read is None:
        return None
    table, columns, key = read
    if code == "Column" and at < len(columns):
        # An index ends with the row id, which has no name there.
        return Origin(table, columns[at] or key) if columns[at] or key else None
    return Origin(table, key) if code in ("Rowid", "IdxRowid") and key else None


def _writes(step: _Step, register: int) -> bool:
    code, _, p2, p3 = step
    return (code in _AT_P2 and p2 == register) or (code in _AT_P3 and p3 == register)


# ----------------------------------------------------------------------- PostgreSQL


def postgresql_origins(cursor: Any, rows: str) -> Mapping[str, Origin]:
    """Take what the server says of the columns of a result (protocol, RowDescription)."""
    cursor.execute(f"SELECT * FROM ({rows}\n) AS pas WHERE 1 = 0")
    result = cursor.pgresult
    columns = {
        column[0]: (result.ftable(index), result.ftablecol(index))
        for index, column in enumerate(cursor.description or ())
    }
    tables = [table for table, _ in columns.values()]
    cursor.execute(
        "SELECT attrelid, attnum, attrelid::regclass::text, attname FROM pg_attribute"
        " WHERE attrelid = ANY(%s) AND attnum > 0",
        (tables,),
    )
    there = {(row[0], row[1]): Origin(row[2], row[3]) for row in cursor.fetchall()}
    cursor.execute(
        "SELECT oid::regclass::text, rtrim(pg_get_viewdef(oid), ';') FROM pg_class"
        " WHERE oid = ANY(%s) AND relkind = 'v'",
        (tables,),
    )
    views = dict(cursor.fetchall())
    found = {name: there[at] for name, at in columns.items() if at in there}
    return _behind(found, views, lambda view: postgresql_origins(cursor, view))


# ------------------------------------------------------------------ MariaDB, MySQL


def mysql_origins(cursor: Any, rows: str) -> Mapping[str, Origin]:
    """Take what the server says of the columns of a result (protocol, column definition)."""
    cursor.execute(f"{rows}\nLIMIT 0")
    found = {
        field.name: Origin(field.org_table, field.org_name)
        for field in cursor._result.fields
        if field.org_table and field.org_name
    }
    cursor.execute(
        "SELECT table_name, view_definition FROM information_schema.views"
        " WHERE table_schema = DATABASE()"
    )
    views = dict(cursor.fetchall())
    return _behind(found, views, lambda view: mysql_origins(cursor, view))


def _behind(
    found: Mapping[str, Origin],
    views: Mapping[str, str],
    origins: Callable[[str], Mapping[str, Origin]],
) -> Mapping[str, Origin]:
    """Return the columns of tables behind those of views, which can have no index."""
    behind = {
        table: origins(views[table]) if views[table] else {}
        for table in {origin.table for origin in found.values()} & views.keys()
    }
    return {
        name: behind[origin.table][origin.column] if origin.table in behind else origin
        for name, origin in found.items()
        if origin.table not in behind or origin.column in behind[origin.table]
    }
