"""Everything that differs between databases: one module each, found by the address."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from sqlalchemy.engine import URL

from adapters.contract import SourceUnavailableError
from adapters.sql.dialects.base import Dialect

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
    """Return the dialect of an address.

    Raises SourceUnavailableError where there is none.
    """
    name = url.get_backend_name()
    if name not in MODULES:
        raise SourceUnavailableError(
            f"no such kind of database: {name}; known are {', '.join(sorted(MODULES))}"
        )
    return dialect_named(name)


def dialect_named(name: str) -> Dialect:
    """Return the dialect of a kind of database, by SQLAlchemy's name for it."""
    # Imported when needed: a hospital has one of them, and only its driver.
    module = import_module(f"adapters.sql.dialects.{MODULES[name]}")
    return cast("Dialect", module.DIALECT)
