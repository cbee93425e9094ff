"""The privileges that a mapping's account needs, as GRANT statements of its database.

sqlglot finds the tables in a SELECT: the account may not exist yet, and what a database
reports of a SELECT leaves out views and tables that its plan skips. Only this module imports
it; it comes with the extra `grants`.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType

import sqlglot
from sqlalchemy.engine import URL
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from adapters.contract import SourceDataError
from adapters.mapping.model import ResourceMapping
from adapters.sql.dialects import dialect_of
from adapters.sql.engine import read_address

_GRAMMARS: Mapping[str, str] = MappingProxyType(
    {"mariadb": "mysql", "mssql": "tsql", "postgresql": "postgres"}
)
"""sqlglot's name of a dialect, where it is not SQLAlchemy's."""


def grants(
    address: str, sections: Iterable[ResourceMapping], account: str, schema: str = ""
) -> tuple[str, ...]:
    """Return the GRANTs with which an account can read the tables of some sections.

    `schema` is that of tables that are named without one. There are none for SQLite.
    Raises SourceDataError for an address or a SELECT that cannot be parsed.
    """
    url = read_address(address)
    dialect = dialect_of(url)
    if not dialect.grant:
        return ()
    quote = url.get_dialect()().identifier_preparer.quote
    database = quote(url.database or "")
    default = schema or dialect.schema.format(database=database)
    tables = set(chain.from_iterable(_tables(url, section) for section in sections))
    placed = sorted((place or default, name) for place, name in tables)
    schemas = list(dict.fromkeys(place for place, _ in placed))
    statements = [
        template.format(database=database, schema=place, account=account)
        for template in dialect.access
        for place in (schemas if "{schema}" in template else [""])
    ]
    named = (".".join(filter(None, each)) for each in placed)
    statements += [dialect.grant.format(table=t, account=account) for t in named]
    return tuple(statements)


def _tables(url: URL, section: ResourceMapping) -> Iterator[tuple[str, str]]:
    """Yield schema and name of each table that the SELECTs of a section read."""
    items = chain.from_iterable(section.items.values())
    own = [(item.rows, item.mark) for item in items if item.rows is not None]
    for rows, mark in [(section.rows, section.mark), *own]:
        try:
            yield from _read_tables(url, rows)
        except SqlglotError as error:
            text = (
                f"{mark}: {section.resource_type}: the SELECT of rows cannot be parsed"
            )
            raise SourceDataError(text) from error


def _read_tables(url: URL, rows: str) -> Iterator[tuple[str, str]]:
    name = url.get_backend_name()
    grammar = _GRAMMARS.get(name, name)
    select = sqlglot.parse_one(dialect_of(url).described(rows), read=grammar)
    for scope in traverse_scope(select):
        for table in scope.sources.values():
            # The others are the names of a WITH, functions, and Oracle's table of one row.
            if not isinstance(table, exp.Table) or table.name.upper() == "DUAL":
                continue
            if isinstance(table.this, exp.Identifier):
                *schema, name = (part.sql(dialect=grammar) for part in table.parts)
                yield ".".join(schema), name
