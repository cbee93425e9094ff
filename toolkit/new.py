"""`encounters mapping new`: a first mapping file from the structure of a source.

Of a database it reads the catalogue: tables, columns, types, keys. The author names the tables;
without a name the command lists them. Of a FHIR R4 server it reads the CapabilityStatement
(`toolkit.fhir`). Every open question has the mark `# ?`.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic

import sqlalchemy as sa

from adapters.contract import AdapterError, ResourceType
from adapters.mapping.problems import did_you_mean
from adapters.sql.dialects.base import AddressError
from adapters.sql.engine import Database
from app.console import FINE, CannotRunError, aligned
from toolkit.catalogue import foreign_keys, primary_key, read_catalogue
from toolkit.console import marked_lines, write_text
from toolkit.contents import MOST_ROWS, count_rows
from toolkit.draft import text_of
from toolkit.draft_sections import Tables, read_sections
from toolkit.fhir import draft_of_server

MAY_WRITE = (
    "warning: this account may change tables ({}): the service needs one that may only read"
    " (docs/run/databases.md, The database account)"
)
NAME_TABLES = "name the tables with --stay TABLE --patient TABLE --organization TABLE"
VARIABLE = "PAS_URL"
_CATALOGUE_SECONDS = 30.0
_COUNT_SECONDS = 2.0
_LISTING_SECONDS = 20.0


def run(
    *,
    source: str,
    schema: Sequence[str],
    stay: Sequence[str],
    patient: str | None,
    organization: str | None,
    out: Path | None,
) -> int:
    """Write a first mapping and say what is open, or list the tables of a database."""
    if out is not None and out.exists():
        raise CannotRunError(f"{out} exists already: name another file with --out")
    url, variable = _address(source)
    named: Mapping[ResourceType, Sequence[str]] = {
        ResourceType.ENCOUNTER: stay,
        ResourceType.PATIENT: [patient] if patient else [],
        ResourceType.ORGANIZATION: [organization] if organization else [],
    }
    warnings: list[str] = []
    if url.lower().startswith(("http:", "https:")):
        if schema or any(named.values()):
            text = "a FHIR server has no tables: give its address only"
            raise CannotRunError(text)
        # An address with a password is not written into the file.
        is_secret = source.startswith("env:") or "@" in url
        if is_secret:
            text = draft_of_server(url, f"{{env: {variable}}}")
        else:
            variable = ""
            text = draft_of_server(url, json.dumps(url))
    else:
        catalogue, warnings = _read_catalogue(url, schema)
        if not any(named.values()):
            _list_tables(url, catalogue)
            _report([*warnings, f"next: {NAME_TABLES}"])
            return FINE
        if not stay:
            raise CannotRunError("name the table of stays too: --stay TABLE")
        tables = {
            kind: [_table(catalogue, name) for name in names]
            for kind, names in named.items()
        }
        text = _of_database(url, tables, variable)

    if out is not None:
        write_text(out, text)
    else:
        print(text, end="")
    lines = [*warnings]
    if "\npatient:\n" not in text and "\nextend:" not in text:
        lines.append(
            "the file has no section of patients: name their table with --patient"
        )
    questions = len([*marked_lines(text)])
    lines.append(f"{out or 'the file'}: {questions} questions are marked '# ?'")
    if out is not None:
        address = f" put the address of the source into {variable}," if variable else ""
        check = f"encounters mapping check {out}, then the same with --live"
        lines.append(f"next: answer them,{address} and run {check}")
    _report(lines)
    return FINE


def _report(lines: Sequence[str]) -> None:
    """Print lines to standard error, which is free where the file goes to standard output."""
    print("\n".join(lines), file=sys.stderr)


def _address(source: str) -> tuple[str, str]:
    """Return the address of the source and the variable that the file names for it."""
    if not source.startswith("env:"):
        return source, VARIABLE
    variable = source.removeprefix("env:")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        text = "--from env:NAME needs the name of an environment variable"
        raise CannotRunError(text)
    url = os.environ.get(variable, "")
    if not url:
        raise CannotRunError(f"the environment variable {variable} is not set")
    return url, variable


def _read_catalogue(
    url: str, schemas: Sequence[str]
) -> tuple[list[sa.Table], list[str]]:
    """Return the tables of a database, and the warning that the account may change tables.

    Raises CannotRunError for a URL that is no address, and where nothing can be read.
    """
    try:
        with closing(Database(url, _CATALOGUE_SECONDS, 1)) as database:
            catalogue = read_catalogue(database, schemas)
            grant = database.write_grant()
            warnings = [MAY_WRITE.format(grant)] if grant else []
            return catalogue, warnings
    except AddressError as error:
        message = f"--from is not an address like postgresql://host/database: {error}"
        raise CannotRunError(message) from error
    except AdapterError as error:
        raise CannotRunError(f"the catalogue cannot be read: {error}") from error


def _of_database(url: str, tables: Tables, variable: str) -> str:
    """Return the text of a first mapping file of a database."""
    with closing(Database(url, _COUNT_SECONDS, 1)) as database:
        named = [table for of_kind in tables.values() for table in of_kind]
        rows = {table.key: count_rows(database, table) for table in named}
        return text_of(read_sections(database, tables), rows, variable)


def _table(catalogue: Sequence[sa.Table], name: str) -> sa.Table:
    """Return the table that an option names; the case counts only if two names differ by it.

    Raises CannotRunError for a name that no table has.
    """
    tables = [table for table in catalogue if table.key == name]
    if not tables:
        tables = [table for table in catalogue if table.key.lower() == name.lower()]
    if len(tables) != 1:
        near = did_you_mean(name, [table.key for table in catalogue])
        hint = near or ": without --stay, --patient and --organization it lists them"
        raise CannotRunError(f"there is no table '{name}'{hint}")
    return tables[0]


def _list_tables(url: str, catalogue: Sequence[sa.Table]) -> None:
    """Print the tables with their numbers of rows and their keys."""
    deadline = monotonic() + _LISTING_SECONDS
    lines = [("table", "rows", "primary key", "foreign keys to")]
    with closing(Database(url, _COUNT_SECONDS, 1)) as database:
        for table in catalogue:
            rows = count_rows(database, table) if monotonic() < deadline else None
            primary = ", ".join(primary_key(table)) or "-"
            tables = sorted({target for _, target, _ in foreign_keys(table)})
            lines.append((table.key, _counted(rows), primary, ", ".join(tables) or "-"))
    print("\n".join(aligned(lines)))
    limits = f"{_COUNT_SECONDS:g} s for a table, {_LISTING_SECONDS:g} s for all"
    print(f"Rows are counted, not estimated: up to {MOST_ROWS:,}, {limits}.")


def _counted(rows: int | None) -> str:
    """Return a number of rows in words; None is one that was not counted in time."""
    if rows is None:
        return "not counted"
    return f"> {MOST_ROWS:,}" if rows > MOST_ROWS else f"{rows:,}"
