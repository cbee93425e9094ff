"""What a database says of itself: its version, its clock, the limits that concern us."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Vitals:
    """How a database is; None where it does not tell.

    `statement_seconds` is how long a statement of ours may take there. `most` connections
    are for all its accounts, `used` of them now; `own_most` and `own_used` for ours.
    `writable` says that the account of this process may change the file that it is in.
    """

    version: str
    now: datetime | None = None
    statement_seconds: float | None = None
    most: int | None = None
    used: int | None = None
    own_most: int | None = None
    own_used: int | None = None
    encrypted: bool | None = None
    writable: bool = False


_POSTGRESQL = """
SELECT current_setting('server_version'), clock_timestamp(),
  (SELECT setting::int / 1000.0 FROM pg_settings WHERE name = 'statement_timeout'),
  current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int,
  (SELECT sum(numbackends) FROM pg_stat_database),
  (SELECT CASE WHEN rolconnlimit >= 0 AND NOT rolsuper THEN rolconnlimit END
     FROM pg_roles WHERE rolname = current_user),
  (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user),
  (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid())
"""


def postgresql_vitals(cursor: Any) -> Vitals:
    """Ask PostgreSQL, with no right but that to connect."""
    cursor.execute(_POSTGRESQL)
    (row,) = cursor.fetchall()
    version, now, seconds, most, used, own_most, own_used, encrypted = row
    return Vitals(
        f"PostgreSQL {version.split()[0]}",
        now,
        float(seconds),
        most,
        int(used),
        own_most,
        own_used,
        encrypted,
    )


def mysql_vitals(cursor: Any) -> Vitals:
    """Ask MariaDB or MySQL."""
    cursor.execute(
        "SELECT VERSION(), UTC_TIMESTAMP(6), @@max_connections, @@max_user_connections"
    )
    ((version, now, most, own_most),) = cursor.fetchall()
    is_mariadb = "MariaDB" in version
    limit = "@@max_statement_time" if is_mariadb else "@@max_execution_time / 1000"
    cursor.execute(f"SELECT {limit}")
    ((seconds,),) = cursor.fetchall()
    cursor.execute(
        "SHOW STATUS WHERE Variable_name IN ('Threads_connected', 'Ssl_cipher')"
    )
    told = dict(cursor.fetchall())
    return Vitals(
        f"{'MariaDB' if is_mariadb else 'MySQL'} {version.split('-')[0]}",
        now.replace(tzinfo=UTC),
        float(seconds),
        most,
        int(told["Threads_connected"]),
        own_most or None,
        encrypted=bool(told["Ssl_cipher"]),
    )


def sqlite_vitals(cursor: Any) -> Vitals:
    """Look at SQLite and its file."""
    cursor.execute("SELECT sqlite_version(), file FROM pragma_database_list")
    ((version, file), *_) = cursor.fetchall()
    return Vitals(f"SQLite {version}", writable=os.access(file, os.W_OK))
