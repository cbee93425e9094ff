"""Where the replay gets its servers from: one function each, to be adapted here alone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True)
class Servers:
    """Give the address of a Redis, and of empty databases; skip where there is none."""

    redis: Callable[[], str]
    postgresql: Callable[[], str]
    mariadb: Callable[[], str]


def servers_of_session(request: pytest.FixtureRequest) -> Servers:
    """Return the servers that all tests of a session share."""
    found = request.getfixturevalue
    return Servers(
        redis=lambda: str(found("redis_server").url),
        postgresql=lambda: str(found("new_postgresql")("unicode")),
        mariadb=lambda: str(found("mariadb_server").new_database()),
    )


@contextmanager
def own_servers() -> Iterator[Servers]:
    """Start servers as they are asked for, and end them; for what is not a test."""
    with ExitStack() as stack:
        yield Servers(
            redis=lambda: stack.enter_context(_redis()),
            postgresql=lambda: stack.enter_context(_postgresql()),
            mariadb=lambda: stack.enter_context(_mariadb()),
        )


@contextmanager
def _redis() -> Iterator[str]:
    from tests.redis_server import RedisServer

    server = RedisServer()
    server.start()
    try:
        yield server.url
    finally:
        server.remove()


@contextmanager
def _postgresql() -> Iterator[str]:
    import psycopg

    from tests.databases import LOCALES, postgresql

    with postgresql() as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            command = "CREATE DATABASE replay TEMPLATE template0 ENCODING 'UTF8'"
            connection.execute(f"{command} {LOCALES['unicode']}".encode())
        yield server.get_uri("replay", "psycopg")


@contextmanager
def _mariadb() -> Iterator[str]:
    from tests.mariadb_server import started_mariadb

    with started_mariadb() as server:
        yield server.new_database()
