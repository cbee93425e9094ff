"""PostgreSQL, by psycopg: the server ends long statements and refuses to write."""

import codecs
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
import sqlalchemy as sa
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from sqlalchemy.engine import URL

from adapters.sql.columns import TEXTS, TIMES, Column, ColumnKind, UnreadText
from adapters.sql.dialects import refusals
from adapters.sql.dialects.base import (
    MARK,
    ColumnOrigin,
    DatabaseTransport,
    Dialect,
    RowsRead,
    Sql,
    description,
    execute,
    first_text,
    words_of,
)
from adapters.sql.dialects.folding import translated, translated_in
from adapters.sql.dialects.postgresql_connection import DRIVER, open_engine

_ONE_BYTE = 18
"""The type "char", the only text without a collation."""

_KINDS: Mapping[int, ColumnKind] = {
    16: ColumnKind.BOOLEAN,
    17: ColumnKind.BINARY,
    **dict.fromkeys((_ONE_BYTE, 19, 25, 1042, 1043), ColumnKind.TEXT),
    **dict.fromkeys((20, 21, 23), ColumnKind.INTEGER),
    700: ColumnKind.SINGLE,
    701: ColumnKind.DOUBLE,
    1700: ColumnKind.NUMBER,
    1082: ColumnKind.DATE,
    1114: ColumnKind.LOCAL_TIME,
    1184: ColumnKind.INSTANT,
    2950: ColumnKind.UUID,
}
"""By the object id of the type, which is the same in every PostgreSQL (pg_type.dat)."""


def _replans(error: BaseException) -> bool:
    # "cached plan must not change result type": a column has been altered, and each
    # connection that has prepared the statement would fail.
    # The server's function identifies it: there is no code for it, and texts are translated.
    return (
        isinstance(error, psycopg.Error)
        and error.diag.source_function == "RevalidateCachedQuery"
    )


_OF_ENVIRONMENT = ("host", "hostaddr", "service", "sslmode", "sslrootcert")


def _transport(url: URL) -> DatabaseTransport:
    """Read the options as libpq does: PGHOST and other variables stand for missing ones."""
    variables = {name: os.environ.get(f"PG{name.upper()}") for name in _OF_ENVIRONMENT}
    dialect = url.set(drivername=DRIVER).get_dialect()()
    _, named = dialect.create_connect_args(url)
    options = {name: str(named.get(name, variables[name]) or "") for name in variables}
    # The host that a service file names is not read: it counts as one of the network.
    hosts = options["hostaddr"] or options["host"] or options["service"]
    # The path of a unix socket begins with / or, for an abstract one, with @.
    network_hosts = [
        host for host in hosts.split(",") if host and not host.startswith(("/", "@"))
    ]
    is_verified = (
        options["sslmode"] in ("verify-ca", "verify-full")
        or options["sslrootcert"] == "system"
    )
    return DatabaseTransport(tuple(network_hosts), is_verified)


_NO_TEXT = ("22021", "22P05")
"""A row holds bytes that are no character of the encoding that the server knows, or of UTF-8."""


def _unread(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None)
    return isinstance(error, psycopg.DataError) and state in (None, *_NO_TEXT)


def _lenient(connection: Any) -> None:
    for oid, kind in _KINDS.items():
        if kind in TIMES:
            connection.adapters.register_loader(oid, _LenientLoader)
    # A text by itself: the server converts no row, and refuses none. Poolers keep this setting
    # for each client.
    encoding = connection.info.parameter_status("server_encoding")
    if connection.info.encoding == "utf-8":
        connection.execute(f"SET client_encoding TO '{encoding}'", prepare=False)
    # The loader of the type 0 is that of enumerations and of other types without one.
    types_of_texts = [oid for oid, kind in _KINDS.items() if kind is ColumnKind.TEXT]
    for oid in (0, *types_of_texts):
        connection.adapters.register_loader(oid, _TextLoader)


class _TextLoader(Loader):
    """Loads texts; what is no text of the encoding stays bytes."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        encoding = self.connection.info.encoding if self.connection else "utf-8"
        self._encoding = "utf-8" if encoding == "ascii" else encoding

    def load(self, data: Buffer) -> str | UnreadText:
        try:
            return bytes(data).decode(self._encoding)
        except UnicodeDecodeError:
            return UnreadText(data)


class _LenientLoader(Loader):
    """Loads times; one that Python cannot hold (`infinity`, years BC) stays a text."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        loader = psycopg.adapters.get_loader(oid, Format.TEXT)
        assert loader is not None, "psycopg has a loader for every time"
        self._load = loader(oid, context).load

    def load(self, data: Buffer) -> object:
        try:
            return self._load(data)
        except psycopg.DataError:
            return bytes(data).decode()


def _is_unreal(text: str) -> bool:
    """Whether a text is infinity, or a time of a year past 9999 or BC."""
    if text in ("infinity", "-infinity"):
        return True
    match = re.fullmatch(r"(\d{4}|[1-9]\d{4,})(-.*?)( BC)?", text)
    if match is None:
        return False
    year, month_to_time, era = match.groups()
    if len(year) == 4 and not era:
        return False
    try:
        datetime.fromisoformat(f"2000{month_to_time}")
    except ValueError:
        return False
    return True


# Columns and their collations

_CITEXT = "citext"
_NAMED = f"""
SELECT oid, CASE typtype WHEN 'e' THEN format_type(oid, NULL) ELSE typname END
 FROM pg_type WHERE oid = ANY(%s) AND (typtype = 'e' OR typname = '{_CITEXT}')
"""
"""Enumerations, and a type of an extension, whose number differs between databases."""


def _columns(connection: sa.Connection, rows: str) -> tuple[Column, ...]:
    described = _described(connection, rows)

    # Kinds by type; enumerations and citext have other type numbers in each database.
    other_types = [column.type for column in described if column.type not in _KINDS]
    names: dict[int, str] = {}
    if other_types:
        names = dict(execute(connection, _NAMED, (other_types,)).all())
    kinds = []
    for column in described:
        kind = _KINDS.get(column.type, ColumnKind.OTHER)
        if names.get(column.type) == _CITEXT:
            kind = ColumnKind.FOLDING
        kinds.append(kind)
    enumerations = {oid: name for oid, name in names.items() if name != _CITEXT}

    # Texts of a collation to which different texts may be equal are FOLDING, too.
    texts = [
        index
        for index, column in enumerate(described)
        if kinds[index] in TEXTS and column.type != _ONE_BYTE
    ]
    collations = _collations(connection, rows, len(kinds), texts)
    never_null = _never_null(connection, rows, described)
    encoding = _encoding(connection)
    return tuple(
        Column(
            column.name,
            ColumnKind.FOLDING if folds else kind,
            collation=collation or "",
            enumeration=enumerations.get(column.type, ""),
            is_nullable=column not in never_null,
            encoding=encoding,
        )
        for column, kind, (collation, folds) in zip(
            described, kinds, collations, strict=True
        )
    )


def _encoding(connection: sa.Connection) -> str:
    """Return the codec of the characters of a database, "" for those of Unicode."""
    driver: Any = connection.connection.driver_connection
    server = driver.info.parameter_status("server_encoding") or "UTF8"
    if server == "UTF8":
        return ""
    if server == "SQL_ASCII":
        # It holds bytes: they are in the encoding that the client says.
        client = str(driver.info.encoding)
        return "utf-8" if client == "ascii" else client
    try:
        return codecs.lookup(re.sub("^WIN", "cp", server).replace("KOI8", "koi8-")).name
    except LookupError:
        return "ascii"


class _Described(NamedTuple):
    """A column of a result (RowDescription), with the table and column that it comes from.

    `type` and `table` are object ids, `number` is the place in the table; 0 for no table.
    """

    name: str
    type: int
    table: int
    number: int


def _described(connection: sa.Connection, rows: str) -> list[_Described]:
    # With WHERE false it would not look at the privileges of a SELECT within.
    with execute(connection, f"SELECT * FROM ({rows}\n) AS pas LIMIT 0") as result:
        sent = result.cursor.pgresult
        return [
            _Described(
                column.name,
                column.type_code,
                table=sent.ftable(n),
                number=sent.ftablecol(n),
            )
            for n, column in enumerate(result.cursor.description)
        ]


_NOT_NULL = """
SELECT attrelid, attnum, relname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
 WHERE attrelid = ANY(%s) AND attnum > 0 AND attnotnull
"""

_NULLED = {"Left": ("Inner",), "Right": ("Outer",), "Full": ("Inner", "Outer")}
"""The sides of a join whose columns it may fill with NULL."""


def _never_null(
    connection: sa.Connection, rows: str, described: Sequence[_Described]
) -> Collection[_Described]:
    """Return the columns of tables that are NOT NULL, and that no outer join makes NULL.

    Before PostgreSQL 17, IS NOT NULL on such a column would cost a count its index.
    """
    # The names of the tables of columns with a constraint.
    tables = [column.table for column in described]
    constraints = execute(connection, _NOT_NULL, (tables,))
    table_names = {(table, number): name for table, number, name in constraints}
    if not table_names:
        return ()

    # The nodes of the plan on a side of a join that the join may fill with NULL.
    _, nodes = _explained(connection, "COSTS OFF", f"SELECT * FROM ({rows}\n) AS pas")
    nulled: list[dict[str, Any]] = []
    for join in nodes:
        nulled_sides = _NULLED.get(join.get("Join Type", ""), ())
        for side in join.get("Plans", ()):
            if side.get("Parent Relationship") in nulled_sides:
                nulled += _nodes(side)
    has_nulled_cte = any("CTE Name" in node for node in nulled)
    if has_nulled_cte or any("Grouping Sets" in node for node in nodes):
        return ()

    safe_tables = {node.get("Relation Name") for node in nodes}
    safe_tables -= {node.get("Relation Name") for node in nulled}
    safe_tables.discard(None)
    return {
        column
        for column in described
        if table_names.get((column.table, column.number)) in safe_tables
    }


_FOLDS = "SELECT NOT collisdeterministic FROM pg_collation WHERE oid ="


def _collations(
    connection: sa.Connection, rows: str, size: int, texts: Sequence[int]
) -> Iterator[tuple[str | None, bool | None]]:
    """Return each column's collation, and whether different texts may be equal by it.

    Both are None for columns that are not among `texts`.
    """
    # One row of NULLs, each with the collation of its column.
    names = ", ".join(f"c{n}" for n in range(size))
    collations = [
        f"pg_collation_for(c{n})" if n in texts else "NULL" for n in range(size)
    ]
    reports = ", ".join(
        f"{name}, ({_FOLDS} {name}::regcollation)" for name in collations
    )
    row = execute(
        connection,
        f"SELECT {reports} FROM (SELECT 1) AS one LEFT JOIN"
        f" (SELECT * FROM ({rows}\n) AS pas LIMIT 0) AS pas ({names}) ON false",
    ).one()
    return zip(row[::2], row[1::2], strict=True)


# SQL of its own


def _label(type_: str) -> str:
    # A CAST of a text that is no label would be an error, and the type may get labels while
    # the service runs.
    labels = f"unnest(enum_range(CAST(NULL AS {type_})))"
    return f"(SELECT label FROM {labels} AS label WHERE CAST(label AS TEXT) = {MARK})"


def _collated(text: str, collation: str) -> str:
    # The server reports collations with their schema and quoted.
    return f"({text} COLLATE {collation})"


def _exact(text: str) -> str:
    return f'(CAST({text} AS TEXT) COLLATE "C")'


def _searched(text: str) -> str:
    # Before PostgreSQL 18, LIKE accepts no collation that is not exact.
    return f'(CAST({text} AS TEXT) COLLATE "default")'


def _fold(text: Sql) -> Sql:
    """Fold with functions that every PostgreSQL has from version 13 on."""
    plain = text.call("lower").within("normalize(", ", NFKD)")
    # Where the locale knows no upper-case accents, they are separate characters now.
    return translated(plain.call("lower"), "g").within("normalize(", ", NFC)")


def _fold_in(text: Sql, encoding: str) -> Sql:
    return translated_in(text, encoding, "g")


def _number_text(number: str) -> str:
    return f"CAST(trim_scale(CAST({number} AS NUMERIC)) AS TEXT)"


# Errors


def _code(error: BaseException) -> str:
    # A value that the driver cannot read has no code: it is of the class of data, too.
    unread = "22000" if isinstance(error, psycopg.DataError) else ""
    return getattr(error, "sqlstate", None) or unread


_DENIED = "(?:permission denied|droit refusé|keine Berechtigung)"
"""In English, French and German, where the name comes last as well."""

_INVALID_OPTION = (
    r"invalid (\w+) value: ",
    r'for connection option "(\w+)"',
    r'definition of (service) "',
    r"weak (sslmode) ",
)


def _invalid_option(error: BaseException) -> str | None:
    # Messages of libpq, which checks options before it connects.
    for pattern in _INVALID_OPTION:
        if match := re.search(pattern, str(error)):
            return match[1]
    is_unknown = isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None
    return "" if is_unknown else None


# Rows read, origins, clock


def _explained(
    connection: sa.Connection, options: str, text: str, parameters: Any = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the root of the plan of a statement, and all of its nodes."""
    result = execute(connection, f"EXPLAIN ({options}, FORMAT JSON) {text}", parameters)
    plans = result.scalar_one()
    if isinstance(plans, str):
        plans = json.loads(plans)
    root = plans[0]["Plan"]
    return root, list(_nodes(root))


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


_READ = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")


def _rows_read(connection: sa.Connection, text: str, parameters: Any) -> RowsRead:
    """Run the statement, and add up what each scan of a table read."""
    root, nodes = _explained(connection, "ANALYZE, TIMING OFF", text, parameters)
    rows_read = 0
    for scan in nodes:
        if "Relation Name" in scan:
            rows_of_a_loop = sum(scan.get(key, 0) for key in _READ)
            rows_read += rows_of_a_loop * scan["Actual Loops"]
    return RowsRead(round(rows_read), round(root["Actual Rows"]))


_LITERALS = re.compile(r"'(?:[^']|'')*'(?:::[a-z ]+)?")
_QUALIFIER = re.compile(r"""('(?:[^']|'')*')|\b(\w+)\.(?=[\w"])""")
_PARTS = r'(?:COALESCE|NULLIF|lower|upper)\(|[\w".]+(?!\w|\()|[|(), ]'
_STABLE = re.compile(f"(?:{_PARTS})+")
"""Expressions that can be indexed: their value depends on nothing but the row."""
_STABLE_OF_TIMES = re.compile(
    rf"(?:::(?:timestamp without time zone|date)|\+|{_PARTS})+"
)
"""Expressions that can be indexed if all their columns are days and times without a zone."""
_NOT_OF_TIMES = """
SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = ANY(%s)
 AND atttypid NOT IN ('date'::regtype, 'timestamp'::regtype, 'time'::regtype)
"""


def _computed(connection: sa.Connection, rows: str) -> Mapping[str, ColumnOrigin]:
    """Return the expressions that a column can be computed by and a table have an index on.

    They are of columns of one table, and as the server writes them in the plan of the SELECT.
    """
    names = [column.name for column in description(connection, rows)]
    select = f"SELECT * FROM ({rows}\n) AS pas"
    root, nodes = _explained(connection, "VERBOSE", select)
    if any("Append" in node["Node Type"] for node in nodes):
        # Of several tables, the first one's expression would be used for all.
        return {}
    tables = {
        node["Alias"]: (node["Schema"], node["Relation Name"])
        for node in nodes
        if "Schema" in node
    }
    computed: dict[str, ColumnOrigin] = {}
    for name, expression in zip(names, root.get("Output", ()), strict=False):
        without_literals = _LITERALS.sub("1", expression)
        aliases = {match[2] for match in _QUALIFIER.finditer(without_literals)}
        is_column = re.fullmatch(r'[\w".]+', without_literals)
        if len(aliases) != 1 or is_column:
            continue
        if not _STABLE_OF_TIMES.fullmatch(without_literals):
            continue
        schema_and_table = tables.get(aliases.pop(), ("", ""))
        table = execute(connection, _REGCLASS, schema_and_table).scalar()
        if not table:
            continue
        if not _STABLE.fullmatch(without_literals):
            named = re.findall(r'\w+\.(?:"([^"]+)"|(\w+))', without_literals)
            columns = [quoted or plain for quoted, plain in named]
            if execute(connection, _NOT_OF_TIMES, (table, columns)).scalar():
                continue
        unqualified = _QUALIFIER.sub(lambda match: match[1] or "", expression)
        computed[name] = ColumnOrigin(table, unqualified)
    return computed


_REGCLASS = "SELECT to_regclass(quote_ident(%s) || '.' || quote_ident(%s))::text"


def _origins(connection: sa.Connection, rows: str) -> Mapping[str, ColumnOrigin]:
    """Return the origins that the server sends, those behind views: they have no index."""
    described = _described(connection, rows)
    tables = [column.table for column in described]
    attributes = execute(
        connection,
        "SELECT attrelid, attnum, attrelid::regclass::text, attname FROM pg_attribute"
        " WHERE attrelid = ANY(%s) AND attnum > 0",
        (tables,),
    )
    by_number = {(row[0], row[1]): ColumnOrigin(row[2], row[3]) for row in attributes}
    views = execute(
        connection,
        "SELECT oid, rtrim(pg_get_viewdef(oid), ';') FROM pg_class"
        " WHERE oid = ANY(%s) AND relkind = 'v'",
        (tables,),
    ).all()
    behind = {oid: _origins(connection, definition) for oid, definition in views}
    origins = {}
    for column in described:
        origin = by_number.get((column.table, column.number))
        if origin and column.table in behind:
            origin = behind[column.table].get(origin.column)
        if origin:
            origins[column.name] = origin
    return origins


def _server_time(connection: sa.Connection) -> datetime:
    now: datetime = execute(connection, "SELECT clock_timestamp()").scalar_one()
    return now


_FILTERED = """
WITH RECURSIVE used (id, reader) AS (
  SELECT oid, CAST(CAST(current_user AS regrole) AS oid) FROM pg_class
  WHERE relname = ANY(%s) AND has_any_column_privilege(oid, 'SELECT')
  UNION
  -- A view reads as its owner, unless it says otherwise.
  SELECT refobjid, CASE WHEN 'security_invoker=true' = ANY(reloptions) THEN reader
    WHEN 'security_invoker=on' = ANY(reloptions) THEN reader ELSE relowner END
  FROM used JOIN pg_class ON pg_class.oid = id AND relkind IN ('v', 'm')
  JOIN pg_rewrite ON ev_class = id
  JOIN pg_depend ON classid = CAST('pg_rewrite' AS regclass) AND objid = pg_rewrite.oid
    AND refclassid = CAST('pg_class' AS regclass) AND refobjid <> id)
SELECT DISTINCT CAST(CAST(id AS regclass) AS TEXT)
FROM used JOIN pg_class ON pg_class.oid = id JOIN pg_roles ON pg_roles.oid = reader
WHERE relkind IN ('r', 'p') AND CASE
  WHEN rolname = current_user THEN row_security_active(id)
  ELSE relrowsecurity AND NOT rolsuper AND NOT rolbypassrls
    AND (relforcerowsecurity OR NOT pg_has_role(reader, relowner, 'USAGE')) END
ORDER BY 1
"""


def _filtered(connection: sa.Connection, rows: str) -> Collection[str]:
    """Return the tables of a SELECT, those behind views too, with active row security."""
    result = execute(connection, _FILTERED, (words_of(rows),))
    return [str(row[0]) for row in result]


_WRITE_GRANT = """
(SELECT 'SUPERUSER' FROM pg_roles WHERE rolname = current_user AND rolsuper)
UNION ALL
(SELECT privilege || ' ON ' || CAST(CAST(pg_class.oid AS regclass) AS TEXT)
  FROM pg_class, (VALUES ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS p (privilege)
  WHERE relkind IN ('r', 'p', 'v', 'f')
    AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    AND CASE WHEN privilege IN ('INSERT', 'UPDATE')
      THEN has_any_column_privilege(pg_class.oid, privilege)
      ELSE has_table_privilege(pg_class.oid, privilege) END
  LIMIT 1)
LIMIT 1
"""

_REFUSALS: Mapping[str, str] = {
    # Of poolers, which know no other language.
    "no such database": refusals.DATABASE,
    "no such user": refusals.ACCOUNT,
    "no more connections allowed": refusals.FULL,
    "server login|bouncer config|server_login_retry|server conn": refusals.POOLER,
    "startup parameter": refusals.POOLER_OPTIONS,
    # Of the server, as its catalogues of messages have them.
    # A socket, of which "no encryption" is said as well, or a rule that rejects.
    r"pg_hba.conf.*\[local\]|pg_hba.conf rejects": refusals.PLACE,
    "pg_hba.conf.*(no encryption|SSL off|aucun chiffrement|keine Verschl)": (
        refusals.PLACE_OR_TLS
    ),
    "pg_hba.conf": refusals.PLACE,
    "too many c|trop de c|zu viele Verb|slots are res|too many connections": refusals.FULL,
    "denied for database|refusé pour la base|Berechtigung für Datenbank": (
        refusals.NO_RIGHT
    ),
    "not permitted to log in|pas autorisé à se connecter|zum Einloggen": refusals.LOCKED,
    "(role|rôle|Rolle) .*(not exist|existe pas|existiert nicht)": refusals.ACCOUNT,
    "(database|données|Datenbank) .*(not exist|existe pas|existiert nicht)": (
        refusals.DATABASE
    ),
    "authentication failed|échou|Authentifizierung|no password supplied": (
        refusals.CREDENTIALS
    ),
    "starting up|shutting down|recovery|not yet accepting": refusals.STARTING,
    "se lance|s'arrête|en restauration|startet|fährt|Wiederherst": refusals.STARTING,
}
"""libpq reports no SQLSTATE of a connection that failed."""


def _clock(now: datetime) -> tuple[str, str]:
    # Of no type: compared with a local time the offset is dropped, with an instant it counts.
    midnight = now.replace(hour=0, minute=0, second=0)
    return now.isoformat(" "), midnight.isoformat(" ")


DIALECT = Dialect(
    driver=DRIVER,
    placeholder="%s",
    engine=open_engine,
    unread=_unread,
    lenient=_lenient,
    replans=_replans,
    transport=_transport,
    verifying="sslmode=verify-full",
    columns=_columns,
    write_grant=first_text(_WRITE_GRANT),
    fold=_fold,
    fold_in=_fold_in,
    exact=_exact,
    searched=_searched,
    collated=_collated,
    label=_label,
    writes={
        **dict.fromkeys((ColumnKind.NUMBER, ColumnKind.DOUBLE), _number_text),
        ColumnKind.BINARY: lambda column: f"encode({column}, 'hex')",
    },
    clock=_clock,
    orders_nulls=True,
    has_included_columns=True,
    code=_code,
    timeouts=("57014",),
    # A statement of that name exists, or does not, or takes other values.
    pooler=("42P05", "26000", "08P01"),
    # Classes 0A (not supported), 22 (data), 42 (syntax, names, rights) of PostgreSQL's
    # appendix A, and 25006, a change or a lock.
    unknowns="(0A|22|42)...|25006",
    missing=(r'(?:column|relation) "?([\w.$]+)"? does not exist',),
    denied={
        rf"(?im){_DENIED}.*? schéma (\S+)$": "GRANT USAGE ON SCHEMA",
        rf"(?im){_DENIED}.*? schema (\S+)$": "GRANT USAGE ON SCHEMA",
        rf"(?im){_DENIED}.* (\S+)$": "GRANT SELECT ON",
    },
    refusals=_REFUSALS,
    invalid_option=_invalid_option,
    rows_read=_rows_read,
    origins=_origins,
    computed=_computed,
    filtered=_filtered,
    server_time=_server_time,
    unreal=_is_unreal,
    readable="SELECT relname FROM pg_class"
    " JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE nspname = COALESCE(:schema, current_schema())"
    " AND has_any_column_privilege(pg_class.oid, 'SELECT')",
)
