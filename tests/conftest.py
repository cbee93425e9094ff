"""Fixtures for all tests."""

from tests.databases import (  # noqa: F401 - pytest finds fixtures by name here
    new_postgresql,
    postgresql_server,
    postgresql_url,
)
from tests.mariadb_server import mariadb_server  # noqa: F401
from tests.redis_server import redis_server  # noqa: F401
