"""What differs between databases; everything else of the SQL adapter is the same for all."""

from collections.abc import Mapping
from types import MappingProxyType

from sqlalchemy.engine import URL

from adapters.contract import SourceUnavailableError
from adapters.sql.dialects.base import Cursor, Dialect
from adapters.sql.dialects.mysql import MYSQL
from adapters.sql.dialects.oracle import ORACLE
from adapters.sql.dialects.postgresql import POSTGRESQL
from adapters.sql.dialects.sqlite import SQLITE
from adapters.sql.dialects.sqlserver import SQLSERVER

__all__ = ["DIALECTS", "Cursor", "Dialect", "dialect_of"]

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "mariadb": MYSQL,
        "mysql": MYSQL,
        "mssql": SQLSERVER,
        "oracle": ORACLE,
        "postgresql": POSTGRESQL,
        "sqlite": SQLITE,
    }
)


def dialect_of(url: URL) -> Dialect:
    """Return how to speak to the database of this address.

    Raises SourceUnavailableError for one that is not known here.
    """
    name = url.get_backend_name()
    if name not in DIALECTS:
        raise SourceUnavailableError(
            f"no such kind of database: {name}; known are {', '.join(sorted(DIALECTS))}"
        )
    return DIALECTS[name]
