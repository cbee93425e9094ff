"""Rows into an empty database, fast: in batches, indexes last, all in one transaction.

PostgreSQL takes them by COPY, every other database by `executemany`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from demo.rows import Row
from demo.tables import INDEXES, TABLES
from demo.views import VIEWS

BATCH = 20_000
"""How many rows of one table are kept before they are sent."""


class NotEmptyError(Exception):
    """The database already has tables of the demo hospital; nothing was changed."""


def load(url: str, rows: Iterable[Row]) -> Mapping[str, int]:
    """Make tables, rows, indexes and views; return the number of rows of each table.

    Raises NotEmptyError. Whatever goes wrong, the database stays as it was.
    """
    engine = _engine(make_url(url))
    try:
        with engine.begin() as connection:
            _tune(connection)
            _make_tables(connection)
            counts = _write(connection, rows)
            for index in INDEXES:
                index.create(connection)
            for view in VIEWS:
                connection.exec_driver_sql(view)
        _analyze(engine)
    finally:
        engine.dispose()
    return counts


def _engine(url: URL) -> sa.Engine:
    if url.get_backend_name() == "postgresql":
        return sa.create_engine(url.set(drivername="postgresql+psycopg"))
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _leave_transactions_alone)
        sa.event.listen(engine, "begin", _begin)
    return engine


def _leave_transactions_alone(connection: Any, _record: Any) -> None:
    # The driver's own transactions do not hold the making of tables.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -200000")


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _tune(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
        connection.exec_driver_sql("SET LOCAL maintenance_work_mem = '256MB'")


def _make_tables(connection: sa.Connection) -> None:
    there = set(sa.inspect(connection).get_table_names())
    taken = sorted(there & {table.name for table in TABLES.values()})
    if taken:
        raise NotEmptyError(f"the database already has {', '.join(taken)}")
    for table in TABLES.values():
        connection.execute(sa.schema.CreateTable(table))


def _write(connection: sa.Connection, rows: Iterable[Row]) -> Mapping[str, int]:
    insert = _copy if connection.dialect.name == "postgresql" else _execute
    counts: Counter[str] = Counter()
    for table, batch in _batches(rows):
        insert(connection, table, batch)
        counts[table.name] += len(batch)
    return counts


def _batches(rows: Iterable[Row]) -> Iterator[tuple[sa.Table, list[Row]]]:
    waiting: dict[type[Row], list[Row]] = {kind: [] for kind in TABLES}
    for row in rows:
        batch = waiting[type(row)]
        batch.append(row)
        if len(batch) == BATCH:
            yield TABLES[type(row)], batch
            waiting[type(row)] = []
    for kind, batch in waiting.items():
        if batch:
            yield TABLES[kind], batch


def _copy(connection: sa.Connection, table: sa.Table, rows: list[Row]) -> None:
    driver: Any = connection.connection.driver_connection
    columns = ", ".join(table.columns.keys())
    statement = f"COPY {table.name} ({columns}) FROM STDIN"
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _execute(connection: sa.Connection, table: sa.Table, rows: list[Row]) -> None:
    connection.execute(table.insert(), [row._asdict() for row in rows])


def _analyze(engine: sa.Engine) -> None:
    """Let the database learn what its tables hold."""
    names = [table.name for table in TABLES.values()]
    commands = {
        "postgresql": f"VACUUM (ANALYZE) {', '.join(names)}",
        "sqlite": "ANALYZE",
        "mysql": f"ANALYZE TABLE {', '.join(names)}",
        "mariadb": f"ANALYZE TABLE {', '.join(names)}",
    }
    command = commands.get(engine.dialect.name)
    if command:
        unbound = engine.execution_options(isolation_level="AUTOCOMMIT")
        with unbound.begin() as connection:
            connection.exec_driver_sql(command)
