"""What differs between databases; everything else of the SQL adapter is the same for all."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from sqlalchemy.engine import URL

from adapters.contract import SourceUnavailableError
from adapters.sql.dialects.base import Cursor, Dialect

__all__ = ["MODULES", "Cursor", "Dialect", "dialect_named", "dialect_of"]

MODULES: Mapping[str, str] = MappingProxyType(
    {
        "mariadb": "mysql",
        "mysql": "mysql",
        "mssql": "sqlserver",
        "oracle": "oracle",
        "postgresql": "postgresql",
        "sqlite": "sqlite",
    }
)
"""The module of each kind of database, by SQLAlchemy's name for it."""


def dialect_of(url: URL) -> Dialect:
    """Return how to speak to the database of this address.

    Raises SourceUnavailableError for one that is not known here.
    """
    name = url.get_backend_name()
    if name not in MODULES:
        raise SourceUnavailableError(
            f"no such kind of database: {name}; known are {', '.join(sorted(MODULES))}"
        )
    return dialect_named(name)


def dialect_named(name: str) -> Dialect:
    """Return how to speak to a kind of database, by SQLAlchemy's name for it."""
    # Read when it is needed: a hospital has one of them, and its driver's alone.
    module = import_module(f"adapters.sql.dialects.{MODULES[name]}")
    return cast("Dialect", module.DIALECT)
