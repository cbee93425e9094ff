"""The tables of GNU Health 5.0 in SQLite and in PostgreSQL, as two installations left them.

`sample.sqlite.xz` and `sample.sql.xz` are 28 of the tables of an installation each, cut
out whole (`pg_dump` for the latter) and packed by xz. The program itself filled both, with
people who do not exist.
"""

import json
import lzma
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from adapters import open_adapter
from adapters.contract import (
    Adapter,
    EncounterRecord,
    ResourceType,
    RowFault,
    SearchQuery,
)
from adapters.mapping.load import load_mapping
from tests.databases import NewDatabase
from tests.docs.pages import BRING, section
from toolkit.contract.harness import ask

HERE = Path(__file__).parent
MAPPING = HERE.parents[1] / "mappings" / "gnuhealth" / "gnuhealth-5.0.yaml"
PAGE = section((BRING / "extend.md").read_text("utf-8"), "GNU Health 5.0")
"""What the documentation says to a hospital with GNU Health."""
SERVED = HERE / "served.json.xz"
EVERY = 2000
"""More than there are rows of any kind."""

READER = "gnuhealth_reader"
_GRANTS = f"""
DO $$ BEGIN CREATE ROLE {READER} LOGIN;
EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER};
"""
_COPIES = re.compile(r"(?m)^(?=COPY )|^\\\.\n")


@dataclass(frozen=True, slots=True)
class Sample:
    """One database: `url` for the service, which only reads; `run` may write.

    `run` executes any number of statements, `rows` returns those of a SELECT.
    """

    name: str
    url: str
    run: Callable[[str], None]
    rows: Callable[[str], list[tuple[Any, ...]]]

    def texts(self, query: str) -> set[str]:
        """Return the first column of a SELECT, as texts."""
        return {str(row[0]) for row in self.rows(query)}

    def number(self, query: str) -> int:
        """Return the one number that a SELECT gives."""
        ((number,),) = self.rows(query)
        return int(number)

    def open(self, mapping: Path = MAPPING) -> Adapter:
        """Return the adapter of a mapping over this database."""
        return open_adapter(load_mapping(mapping, {"PAS_URL": self.url}))


def sqlite_sample(directory: Path) -> Sample:
    """Unpack the sample of SQLite into a directory."""
    path = directory / "gh.sqlite"
    path.write_bytes(lzma.decompress((HERE / "sample.sqlite.xz").read_bytes()))

    def run(script: str) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)

    def rows(query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(query).fetchall()

    return Sample("SQLite", f"sqlite:///{path}", run, rows)


def postgresql_sample(new_postgresql: NewDatabase) -> Sample:
    """Load the sample of PostgreSQL into a database of its own, with an account that reads."""
    owner = make_url(new_postgresql("unicode"))
    address = owner.set(drivername="postgresql").render_as_string(hide_password=False)
    _load(address, lzma.decompress((HERE / "sample.sql.xz").read_bytes()).decode())

    def run(script: str) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(script.encode())

    def rows(query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(address, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    run(_GRANTS)
    reader = owner.set(username=READER).render_as_string(hide_password=False)
    return Sample("PostgreSQL", reader, run, rows)


def _load(address: str, dump: str) -> None:
    """Run a dump of pg_dump: statements, and COPY with its rows up to a line of `\\.`."""
    with psycopg.connect(address, autocommit=True) as connection:
        for part in _COPIES.split(dump):
            if part.startswith("COPY "):
                command, _, lines = part.partition("\n")
                with connection.cursor().copy(command.encode()) as copy:
                    copy.write(lines)
            else:
                connection.execute(part.encode())


def stays_of(adapter: Adapter, query: SearchQuery) -> dict[str, EncounterRecord]:
    """Return the stays of a search by id, without faults."""
    rows = adapter.search(query).rows
    return {row.id: row for row in rows if isinstance(row, EncounterRecord)}


RESOURCES = (ResourceType.ENCOUNTER, ResourceType.PATIENT, ResourceType.ORGANIZATION)


def served_rows(adapter: Adapter) -> list[str]:
    """Return each row that is served as a line, without rows that cannot be mapped."""
    queries = (ask(of=kind, count=EVERY) for kind in RESOURCES)
    rows = (row for query in queries for row in adapter.search(query).rows)
    return sorted(repr(row) for row in rows if not isinstance(row, RowFault))


@cache
def recorded() -> dict[str, list[str]]:
    """Return the lines that were reviewed, by sample."""
    lines: dict[str, list[str]] = json.loads(lzma.decompress(SERVED.read_bytes()))
    return lines
