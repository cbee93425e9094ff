"""Connections to PostgreSQL: options added to those of the address, and read back.

A pooler between service and server (PgBouncer) may refuse options or drop them, and gives each
transaction another server. Nothing is SET there: it would reach other applications.
"""

import os
import re
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import URL, Engine

from adapters.sql.dialects.base import (
    CONNECT_SECONDS,
    GRACE_SECONDS,
    AddressError,
    PoolConfig,
    SessionError,
    pooled,
)

DRIVER = "postgresql+psycopg"

_VARIABLES = {
    "application_name": "PGAPPNAME",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "client_encoding": "PGCLIENTENCODING",
    "options": "PGOPTIONS",
    "service": "PGSERVICE",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
"""The variables of libpq that stand for what an address leaves out."""

_SETTING = re.compile(r"(?:-c\s*|--)([\w.-]+)\s*=")

_REFUSED = re.compile("startup parameter|command-line options", re.IGNORECASE)
"""What poolers answer to options: they have no SQLSTATE of their own, and no translations."""

_SESSION = """
SELECT date_part('epoch', CAST(current_setting('statement_timeout') AS INTERVAL)),
  current_setting('TimeZone'), current_setting('transaction_read_only'),
  current_setting('encounters.options', true), current_schema(), pg_backend_pid(),
  current_setting('DateStyle')
"""

_UTC = frozenset({"utc", "uct", "gmt", "zulu", "universal", "etc/utc", "etc/gmt"})
"""Names of the zone without an offset."""


def open_engine(url: URL, config: PoolConfig) -> Engine:
    """Return a pool whose connections read only, in UTC, with a time limit.

    Raises AddressError for options that the service sets itself.
    """
    milliseconds = round(config.seconds * 1000)
    defaults = {
        "application_name": "encounters",
        "connect_timeout": CONNECT_SECONDS,
        # Of a database without an encoding (SQL_ASCII) the driver would read bytes.
        "client_encoding": "utf8",
        # The kernel ends the wait for a host that has gone.
        "tcp_user_timeout": milliseconds + GRACE_SECONDS * 1000,
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
    }
    options = {n: v for n, v in defaults.items() if not _of_operator(url, n)}
    if config.prepared is False:
        options["prepare_threshold"] = None
    engine = pooled(url.set(drivername=DRIVER), config, connect_args=options)
    sa.event.listen(engine, "do_connect", _Connector(url, config).connect)
    return engine


def _of_operator(url: URL, name: str) -> str:
    """Return the value of an option in the address, else in its variable of libpq, else ""."""
    value = url.query.get(name, os.environ.get(_VARIABLES.get(name, ""), ""))
    return value if isinstance(value, str) else " ".join(value)


class _Connector:
    """Opens connections, and refuses one that lacks what the service relies on."""

    def __init__(self, url: URL, config: PoolConfig) -> None:
        self._config = config
        self._operator_options = _of_operator(url, "options")
        settings = {
            "default_transaction_read_only": "on",
            "TimeZone": "UTC",
            # Times as texts are ISO 8601, whatever the account or the server prefers.
            "DateStyle": "ISO",
            "statement_timeout": str(round(config.seconds * 1000)),
            # Shows whether the options arrive.
            "encounters.options": "on",
        }
        if config.schema:
            settings["search_path"] = _quoted(config.schema)
        set_by_operator = {
            name.replace("-", "_").lower()
            for name in _SETTING.findall(self._operator_options)
        }
        set_twice = [name for name in settings if name.lower() in set_by_operator]
        if set_twice:
            raise AddressError(
                f"the options of the address, or PGOPTIONS, set {', '.join(set_twice)}, which"
                " the service sets itself from the source of the mapping"
            )
        pairs = (f"-c {name}={_escaped(value)}" for name, value in settings.items())
        self._options = " ".join([self._operator_options, *pairs]).strip()
        if _of_operator(url, "target_session_attrs") == "read-write":
            raise AddressError(
                "target_session_attrs=read-write finds no server, since the service only"
                " reads: write target_session_attrs=primary"
            )
        if _of_operator(url, "service"):
            # They would replace those in the service file, which the service does not read.
            self._options = ""

    def connect(
        self, dialect: sa.Dialect, _record: object, args: Any, named: dict[str, Any]
    ) -> Any:
        """Return a connection as SQLAlchemy would make it. Raises SessionError."""
        named.pop("options", None)
        try:
            options = {"options": self._options} if self._options else {}
            connection: Any = dialect.connect(*args, **named, **options)
        except psycopg.OperationalError as error:
            if not _REFUSED.search(str(error)):
                raise
            if self._operator_options:
                raise SessionError(self._dropped_options()) from error
            connection = dialect.connect(*args, **named)
        try:
            self._read_back(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _read_back(self, connection: Any) -> None:
        """Raise SessionError where a session lacks what the service relies on (decision 42).

        Without the options that the service sends, the account has to have the settings.
        """
        connection.autocommit = True
        row = connection.execute(_SESSION, prepare=False).fetchone()
        seconds, zone, read_only, arrived, schema, process, style = row
        if self._config.prepared is None and process != connection.info.backend_pid:
            # The next statement may run on a server that has prepared another one by its name.
            connection.prepare_threshold = None
        if self._operator_options and self._options and not arrived:
            raise SessionError(self._dropped_options())
        wanted = self._config.schema
        if arrived and wanted and schema != wanted:
            raise SessionError(
                f"the database has no schema '{wanted}', or the account may not use it"
                f" (GRANT USAGE ON SCHEMA {_quoted(wanted)})"
            )
        limit = self._config.seconds if arrived else self._account_seconds
        lacking = []
        if not 0 < seconds <= limit:
            milliseconds = self._account_seconds * 1000
            lacking.append(f"statement_timeout = '{milliseconds:g}ms'")
        if zone.lower() not in _UTC:
            lacking.append("TimeZone = 'UTC'")
        if not style.startswith("ISO"):
            lacking.append("DateStyle = 'ISO'")
        if read_only != "on":
            lacking.append("default_transaction_read_only = on")
        if wanted and schema != wanted:
            lacking.append(f"search_path = {_quoted(wanted)}")
        if lacking:
            role = _quoted(connection.info.user)
            statements = " ".join(f"ALTER ROLE {role} SET {line};" for line in lacking)
            raise SessionError(
                "a pooler, a service file or a variable of libpq removes settings that the"
                f" service requires. Set them for the account: {statements} Then have the"
                " pooler reconnect"
            )

    @property
    def _account_seconds(self) -> float:
        return self._config.account_seconds or self._config.seconds

    def _dropped_options(self) -> str:
        """Return the message for a pooler that drops the options of the operator."""
        names = ", ".join(_SETTING.findall(self._operator_options)) or "them"
        return (
            "a pooler does not pass on the options of the address: remove them there, and"
            f" set {names} for the account (ALTER ROLE … SET …)"
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _escaped(value: str) -> str:
    """Return a value as it is written among options."""
    return re.sub(r"([\\\s])", r"\\\1", value)
