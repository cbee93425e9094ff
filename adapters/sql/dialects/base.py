"""What a dialect defines, and what all dialects share.

A dialect is everything that differs between databases: connecting, types of columns, SQL that
each writes in its own way, errors, rows read. Each has one module beside this one.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.pool import QueuePool

from adapters.contract import SourceDataError
from adapters.mapping.model import WAIT_SECONDS
from adapters.mapping.slots import LONGEST_ID
from adapters.sql.columns import Column, ColumnKind
from adapters.sql.dialects.refusals import NETWORK

CONNECT_SECONDS = 3
"""The time limit of connecting, unless the address has another."""

GRACE_SECONDS = 1
"""How much longer than the statement timeout the driver waits for the response."""

MARK = "\0"
"""Stands for a value in the text of SQL, which can hold no such sign itself."""


class AddressError(SourceDataError):
    """The address of a database cannot be read, or has an option that is refused."""


class SessionError(SourceDataError):
    """A new connection lacks what the service relies on (decision 42)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        # The log shows it: the text has the statements that repair the session.
        self.reason = text


class Sql(NamedTuple):
    """A part of a statement: its text, and the values of its MARKs in order.

    No value is ever written into the text.
    """

    sql: str
    values: tuple[object, ...] = ()

    def call(self, function: str, *values: object) -> "Sql":
        """Return a function of this one; its other arguments are values."""
        marks = f", {MARK}" * len(values)
        return Sql(f"{function}({self.sql}{marks})", (*self.values, *values))

    def within(self, before: str, after: str) -> "Sql":
        """Return this one between two texts without values."""
        return Sql(f"{before}{self.sql}{after}", self.values)


class Statement(Sql):
    """A SELECT as a whole."""

    __slots__ = ()

    def text(self, placeholder: str) -> str:
        """Return the text with placeholders: `%s`, `?` or, numbered from 1, `:v`."""
        if not self.values:
            return self.sql
        if placeholder == "%s":
            return self.sql.replace("%", "%%").replace(MARK, placeholder)
        if placeholder == "?":
            return self.sql.replace(MARK, placeholder)
        first, *parts = self.sql.split(MARK)
        numbered = (f"{placeholder}{n}{part}" for n, part in enumerate(parts, 1))
        return first + "".join(numbered)


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """How a pool connects: seconds for a statement, its connections, seconds to wait for one.

    `account_seconds` is the time limit that the account needs where connections cannot have
    their own, 0 for the same. `schema` is where tables are found, "" for the account's own
    choice. `prepared`: whether statements are prepared; None does so where no pooler is seen.
    """

    seconds: float
    connections: int
    wait: float = WAIT_SECONDS
    account_seconds: float = 0
    schema: str = ""
    prepared: bool | None = None


class DatabaseTransport(NamedTuple):
    """Whom an address connects to, and whether TLS verifies the server.

    Files and unix sockets have no host.
    """

    hosts: tuple[str, ...] = ()
    is_verified: bool = False


class ColumnOrigin(NamedTuple):
    """The table and column that a column of a SELECT comes from."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


Convert: TypeAlias = Callable[[str], str]
"""Returns an expression on another one, both as SQL."""

Report: TypeAlias = Callable[[sa.Connection, str], Mapping[str, ColumnOrigin]]
"""Returns where the columns of a SELECT come from."""


class RowsRead(NamedTuple):
    """How many rows a database read for a statement, and how many the statement returned."""

    read: int
    returned: int


def _unchanged(text: str) -> str:
    return text


def _local(now: datetime) -> tuple[object, object]:
    return now.replace(tzinfo=None), now.date()


def _first_argument(error: BaseException) -> str:
    return str(error.args[0]) if error.args else ""


_NAME = r"[\w$#.\"`\[\]]*"

# Quoted texts and names, comments and PostgreSQL's casts (::) are passed over.
_COLONS = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?<![:\w]):(?P<name>now|today)\b|:""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of database is used: connections, SQL, errors, and what it reports."""

    # The pool of read-only connections, by the `driver`, SQLAlchemy's name for it.
    driver: str
    engine: Callable[[URL, PoolConfig], Engine]
    # Reads the columns of a SELECT, without reading a row.
    columns: Callable[[sa.Connection, str], tuple[Column, ...]]
    # Reads a privilege by which the account could change a table, "" for none.
    write_grant: Callable[[sa.Connection], str]
    # SQL that folds a text as `adapters.folding.fold` does, as far as a LIKE needs it.
    fold: Callable[[Sql], Sql]
    # The codes of errors of a statement timeout, and a pattern of those of a statement that
    # the database refuses.
    timeouts: tuple[str, ...]
    unknowns: str

    # Connections.
    placeholder: str = "?"
    # Is called before a statement, with a cursor and the seconds that the statement may take.
    ready: Callable[[Any, float], None] = lambda _cursor, _seconds: None
    # Whether an error is of a value that has no value of its type, or is no text. `lenient`
    # then makes a connection read such values as texts or as bytes.
    unread: Callable[[BaseException], bool] = lambda _error: False
    lenient: Callable[[Any], None] = lambda _connection: None
    # Whether prepared statements no longer fit their tables, on any connection.
    replans: Callable[[BaseException], bool] = lambda _error: False
    # The hosts of an address, and whether TLS verifies them, as options like `verifying` do.
    transport: Callable[[URL], DatabaseTransport] = lambda _url: DatabaseTransport()
    verifying: str = ""

    # SQL of an expression.
    # Folds a text in an encoding, where `fold` is refused.
    fold_in: Callable[[Sql, str], Sql] | None = None
    # Makes a FOLDING text compare character by character.
    exact: Convert = _unchanged
    # Makes a FOLDING text one that LIKE accepts.
    searched: Convert = _unchanged
    # Gives a text another collation.
    collated: Callable[[str, str], str] = lambda text, _collation: text
    # Stands for a value beside a FOLDING text of a collation.
    text_mark: Convert = lambda _collation: MARK
    # Whether a collation ignores blanks at the end, as `exact` does.
    pads: Callable[[str], bool] = lambda _collation: True
    # The operator that joins two texts, and the function that cuts one.
    joint: str = "||"
    substring: str = "substr"
    # How values are written for a kind of column, where a MARK alone would not use the index.
    marks: Mapping[ColumnKind, str] = field(default_factory=dict)
    # How a kind of column is selected, where the driver would change its values.
    reads: Mapping[ColumnKind, Convert] = field(default_factory=dict)
    # Converts a value to the text that the service shows, where a CAST differs.
    writes: Mapping[ColumnKind, Convert] = field(default_factory=dict)
    # The types, in a CAST, of other texts and of ids.
    long: str = "TEXT"
    short: str = f"VARCHAR({LONGEST_ID})"
    # Finds the value of an enumeration, by its type, that has a text.
    label: Callable[[str], str] = lambda _type: MARK
    # Stand before and after a SELECT of a number of rows.
    top: str = ""
    limit: str = f"\nLIMIT {MARK}"
    is_null: Convert = lambda column: f"{column} IS NULL"
    # Returns the values of `:now` and `:today` for a time in the source's zone.
    clock: Callable[[datetime], tuple[object, object]] = _local
    # A literal of any time.
    some_time: str = "'2000-01-01 00:00:00'"
    # Whether ORDER BY names a column even where it is NULL in every row: PostgreSQL needs that
    # to use the index, MariaDB would sort.
    orders_nulls: bool = False
    # Whether an index can hold columns beside its keys (INCLUDE).
    has_included_columns: bool = False
    # Whether comparisons ignore zeros at the end of bytes.
    pads_bytes: bool = False
    # Whether a column of numbers also holds texts that are no number.
    has_texts_in_numbers: bool = False
    # The date that IS NULL matches too.
    zero_date: str = ""
    # Whether a text is a time that its columns of times hold, and no datetime.
    unreal: Callable[[str], bool] = lambda _text: False

    # Errors.
    # The code of a driver's error, "" for none.
    code: Callable[[BaseException], str] = _first_argument
    # Patterns of code and message of a connection that failed, each with the reason.
    refusals: Mapping[str, str] = field(default_factory=dict)
    # The codes of a pooler that loses prepared statements.
    pooler: tuple[str, ...] = ()
    # Patterns of messages: a missing column or table; one that the account may not read, with
    # the GRANT that it lacks; two columns of one name.
    missing: tuple[str, ...] = ()
    denied: Mapping[str, str] = field(default_factory=dict)
    repeated: str = "$^"
    # The option of the address that the driver refuses, "" for an unknown one, None for other
    # errors.
    invalid_option: Callable[[BaseException], str | None] = lambda _error: None

    # What the database reports.
    # Runs a statement and counts the rows that it reads.
    rows_read: Callable[[sa.Connection, str, Any], RowsRead | None] = lambda *_: None
    # The origins of the columns of a SELECT.
    origins: Report = lambda *_: {}
    # The origins of columns that a table can have an index on as an expression.
    computed: Report = lambda *_: {}
    # The tables of a SELECT of which a policy hides rows.
    filtered: Callable[[sa.Connection, str], Collection[str]] = lambda *_: ()
    # The clock of the server.
    server_time: Callable[[sa.Connection], datetime | None] = lambda _connection: None
    # Selects the names of the tables of `:schema` that the account may read, where the
    # catalogue has others too.
    readable: str = ""
    # Whether names ignore case.
    folds_names: bool = False

    def quoted(self, name: str) -> str:
        """Return the name of a column as SQL, in quotes where it needs them."""
        return _quotes(self.driver)(name)

    def bound(self, rows: str) -> tuple[str, tuple[str, ...]]:
        """Return a SELECT with a MARK for each `:now` and `:today`, and their names in order.

        All other colons stay. The SELECT may end in a comment.
        """
        names = [match["name"] for match in _COLONS.finditer(rows) if match["name"]]
        return _COLONS.sub(lambda m: MARK if m["name"] else m[0], rows), tuple(names)

    def described(self, rows: str) -> str:
        """Return a SELECT with a literal for each time, to be described and never run."""
        return _COLONS.sub(lambda m: self.some_time if m["name"] else m[0], rows)

    def times(self, names: Sequence[str], zone: ZoneInfo) -> tuple[object, ...]:
        """Return the present values of `now` and `today` in a zone.

        The session's own clock is in UTC, hours away from local times (decision 29).
        """
        if not names:
            return ()
        now, today = self.clock(datetime.now(zone).replace(microsecond=0))
        return tuple(now if name == "now" else today for name in names)

    def first(self, rows: Sql, limit: int | None = None) -> Statement:
        """Return the statement of a SELECT without its verb, of its first rows if limited."""
        if limit is None:
            return Statement(f"SELECT {rows.sql}", rows.values)
        values = (limit, *rows.values) if self.top else (*rows.values, limit)
        return Statement(f"SELECT {self.top}{rows.sql}{self.limit}", values)

    def timed_out(self, error: BaseException) -> bool:
        """Whether a statement reached its time limit."""
        return self.code(error) in self.timeouts

    def unknown(self, error: BaseException) -> bool:
        """Whether the database refuses a statement."""
        return re.fullmatch(self.unknowns, self.code(error)) is not None

    def reason(self, error: BaseException, statement: str) -> str:
        """Return the SQLSTATE of an error, else its code, and the column or table that it names."""
        parts = [getattr(error, "sqlstate", None) or self.code(error)]
        for pattern in (*self.missing, *self.denied):
            if name := name_of(pattern, str(error), statement):
                parts.append(name)
                break
        return " ".join(filter(None, parts))

    def refusal(self, error: BaseException) -> str:
        """Return why there is no connection and what to do, "" for an unknown error."""
        text = f"{self.code(error)} {error}"
        for pattern, sentence in (*self.refusals.items(), *NETWORK.items()):
            if re.search(pattern, text):
                return sentence
        return ""


@lru_cache
def _quotes(driver: str) -> Convert:
    # With placeholders of a style with %, a % in a name would be doubled.
    dialect: Callable[..., sa.Dialect] = make_url(f"{driver}://").get_dialect()
    return dialect(paramstyle="named").identifier_preparer.quote


def name_of(pattern: str, message: str, statement: str) -> str:
    """Return the name that a message quotes as the statement writes it, "" if it does not.

    Only what is in the statement is returned: the rest of a message of a database may
    hold data, and must not be logged.
    """
    match = re.search(pattern, message)
    if match is None:
        return ""
    _, _, last_part = re.sub(r'["`\[\]]', "", match[1]).rpartition(".")
    in_statement = rf"({_NAME}\b{re.escape(last_part)}\b[\"`\]]?)"
    as_table = rf"(?:\bFROM|\bJOIN|,)\s+{in_statement}"
    name = re.search(as_table, statement, re.IGNORECASE)
    if name is None:
        name = re.search(in_statement, statement, re.IGNORECASE)
    return name[1] if name else ""


def pooled(url: URL, config: PoolConfig, **options: Any) -> Engine:
    """Return an engine with a pool of fixed size; each statement is its own transaction."""
    defaults = {
        "isolation_level": "AUTOCOMMIT",
        # There is no transaction to roll back: MySQL is spared a round trip.
        "pool_reset_on_return": None,
        "skip_autocommit_rollback": True,
    }
    return sa.create_engine(
        url,
        poolclass=QueuePool,
        pool_size=config.connections,
        max_overflow=0,
        pool_timeout=config.wait,
        pool_use_lifo=True,
        hide_parameters=True,
        **{**defaults, **options},
    )


def execute(connection: sa.Connection, statement: str, parameters: Any = None) -> Any:
    """Run SQL as it is, with the placeholders of the driver where it has parameters."""
    return connection.exec_driver_sql(
        statement, parameters, execution_options={"no_parameters": True}
    )


def description(connection: sa.Connection, rows: str) -> Sequence[Any]:
    """Return the driver's description of the columns of a SELECT, without reading a row."""
    select = f"SELECT * FROM ({rows}\n) pas WHERE 1 = 0"
    with execute(connection, select) as result:
        return list(result.cursor.description)


def first_text(statement: str) -> Callable[[sa.Connection], str]:
    """Return a function that runs a statement and returns its first cell, "" without a row."""

    def ask(connection: sa.Connection) -> str:
        with execute(connection, statement) as result:
            row = result.first()
        return str(row[0]) if row else ""

    return ask


def words_of(rows: str) -> list[str]:
    """Return the names in a SELECT that may be tables, also in small and in large letters."""
    quoted = re.findall(r'["`\[]([^"`\]]+)["`\]]', rows)
    plain = re.findall(r"[^\W\d][\w$#]*", rows)
    names = (*quoted, *plain, *map(str.lower, plain), *map(str.upper, plain))
    return list(dict.fromkeys(names))


def named_in(statement: str) -> Callable[[sa.Connection, str], Collection[str]]:
    """Return a function that runs a statement and returns the names of it that a SELECT has."""

    def ask(connection: sa.Connection, rows: str) -> Collection[str]:
        words = frozenset(words_of(rows))
        return [
            str(row[0]) for row in execute(connection, statement) if row[0] in words
        ]

    return ask
