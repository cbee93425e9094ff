"""An adapter on a database of a test's own: empty, until the test's statements fill it."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import indent
from typing import TypeAlias

import pytest
import sqlalchemy as sa

from adapters import open_adapter
from adapters.contract import Adapter
from adapters.mapping.load import load_mapping
from tests.databases import new_database, writing
from tests.sets import SERVERS

HEAD = """\
mapping: 1
name: Odd values
profile: full
time_zone: Europe/Paris
constants:
  visit_number_system: urn:oid:1.2.3
  functional_unit_extension: https://example.org/unit
source: {kind: sql, url: {env: PAS_URL}, may_write: true}
"""


def stays(select: str, search: str = "_id", sort: str = "", **fields: str) -> str:
    """Return a section of stays; `select` is a SELECT or columns of the table `stays`.

    A field is its column, with options behind it (`began, at: '10:00'`), a constant behind `=`,
    or a list of items.
    """
    usual = {"id": "id", "patient_id": "=P", "status": "=finished"}
    return _section("encounter", "stays", select, search, sort, usual | fields)


def people(select: str, search: str = "_id", sort: str = "", **fields: str) -> str:
    """Return a section of patients, as `stays` does; `select` may be columns of `people`."""
    return _section("patient", "people", select, search, sort, {"id": "id", **fields})


def _section(
    kind: str, table: str, select: str, search: str, sort: str, fields: dict[str, str]
) -> str:
    if not select.startswith("SELECT"):
        select = f"SELECT {select} FROM {table}"
    lines = [f"{kind}:", "  rows: |", indent(select, "    "), "  fields:"]
    for slot, text in fields.items():
        value = text.removeprefix("=")
        if text[0] not in "=[":
            value = f"{{from: {text}}}"
        lines.append(f"    {slot}: {value}")
    lines.append(f"  search: [{search}]")
    if sort:
        lines.append(f"  sort: [{sort}]")
    return "\n".join([*lines, ""])


NUMBERS = (
    '{rows: "SELECT person, number FROM numbers", key: person, type: PI,'
    " value: {from: number}}"
)
"""An item of `identifiers` that is read by a second SELECT."""


def table(name: str, columns: str, *rows: str) -> tuple[str, ...]:
    """Return statements that make a table anew and fill it with rows, written in SQL."""
    made = (f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})")
    filled = ", ".join(f"({row})" for row in rows)
    return (*made, f"INSERT INTO {name} VALUES {filled}") if rows else made


def altered(url: str, *statements: str) -> None:
    """Run statements on a database, each by itself."""
    engine = writing(url)
    with engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        for statement in statements:
            # Without SQLAlchemy, to which a percent sign is one of a placeholder.
            connection.connection.cursor().execute(statement)
    engine.dispose()


Opened: TypeAlias = Callable[[str, tuple[str, ...]], Adapter]
"""Takes what follows the head of a mapping, and statements that fill an empty database."""


@contextmanager
def listed() -> Iterator[list[int]]:
    """Yield the lengths of the lists of values after IN in what SQLite runs meanwhile."""
    lengths: list[int] = []
    with traced() as statements:
        yield lengths
    for statement in statements:
        lists = re.findall(r"\bIN \(([^()]+)\)", statement)
        lengths.extend(each.count(",") + 1 for each in lists)


@contextmanager
def traced() -> Iterator[list[str]]:
    """Yield the statements that SQLite runs meanwhile, with their values."""
    statements: list[str] = []

    def trace(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_trace_callback(statements.append)

    def end(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_trace_callback(None)

    hooks = {"checkout": trace, "checkin": end}
    for name, hook in hooks.items():
        sa.event.listen(sa.Pool, name, hook)
    try:
        yield statements
    finally:
        for name, hook in hooks.items():
            sa.event.remove(sa.Pool, name, hook)


@pytest.fixture(params=["sqlite", "postgresql", *SERVERS])
def url(request: pytest.FixtureRequest) -> str:
    """Return the address of an empty database."""
    return new_database(request.param, request)


def on(*kinds: str) -> pytest.MarkDecorator:
    """Run a test on these kinds of database alone."""
    return pytest.mark.parametrize("url", kinds, indirect=True)


@pytest.fixture
def opened(url: str, tmp_path: Path) -> Iterator[Opened]:
    """Return what opens an adapter on a database of the test's own."""
    with ExitStack() as until_the_end:

        def open_(mapping: str, statements: tuple[str, ...]) -> Adapter:
            altered(url, *statements)
            file = tmp_path / "hospital.yaml"
            file.write_text(HEAD + mapping, encoding="utf-8")
            adapter = open_adapter(load_mapping(file, {"PAS_URL": url}))
            until_the_end.callback(adapter.close)
            return adapter

        yield open_
