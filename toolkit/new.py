"""`encounters mapping new`: a first mapping file from the structure of a source.

Of a database it reads the catalogue: tables, columns, types, keys (`toolkit.tables`). Of a
FHIR R4 server it reads the CapabilityStatement (`toolkit.fhir`). A line without the mark `# ?`
follows from the structure: a declared key, a column with the name of its slot. Every guess,
every row that is left out, every id prefix and every open slot has the mark.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from adapters import open_adapter
from adapters.contract import AdapterError, ResourceType
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from adapters.sql.engine import AddressError, Database
from app.console import FINDINGS, FINE, CannotRunError, print_json
from toolkit.catalogue import Contents, read_catalogue
from toolkit.console import MARK, marked_lines
from toolkit.draft import text_of
from toolkit.evidence import Evidence, only_hospital
from toolkit.fhir import draft_of_server
from toolkit.tables import RowsReader, Structure

MAY_WRITE = (
    "this account may change tables: the service needs one that may only read"
    " (docs/operators.md, The database account)"
)
VARIABLE = "PAS_URL"
_QUERY_SECONDS = 10.0


def run(*, next_step: str = "", **values: Any) -> int:
    """Read the structure of the source, write a first mapping, and say what is open.

    `next_step` is what a caller does with the file; without it the commands are named.
    """
    options = SimpleNamespace(**values)
    if options.out is not None and options.out.exists():
        text = f"{options.out} exists already: name another file with --out"
        raise CannotRunError(text)
    url, variable = _address(options.source)
    warnings: tuple[str, ...] = ()
    if url.lower().startswith(("http:", "https:")):
        is_hidden = options.source.startswith("env:") or "@" in url
        text = _of_server(options, url, variable if is_hidden else "")
        variable = variable if is_hidden else ""
    else:
        text, warnings = _of_database(options, url, variable)
    problems = _problems(text, {variable: url})
    _write(options, text, [*problems, *warnings])
    lines = [f"open: {problem}" for problem in problems]
    lines += [f"warning: {warning}" for warning in warnings]
    has_patients = "\npatient:\n" in text or "\nextend:" in text
    if not has_patients:
        lines.append("there is no section of patients: name their table with --patient")
    questions = len([*marked_lines(text)])
    lines.append(f"{options.out or 'the file'}: {questions} questions are marked '# ?'")
    if options.out is not None:
        address = f" put the address of the source into {variable}," if variable else ""
        check = f"encounters mapping check {options.out}, then the same with --live"
        commands = f"answer them,{address} and run {check}"
        lines.append(f"next: {next_step or commands}")
    print("\n".join(lines), file=sys.stderr)
    return FINE if has_patients and not problems else FINDINGS


def _write(options: SimpleNamespace, text: str, warnings: list[str]) -> None:
    """Write the file, or print it, or as JSON with its questions."""
    if options.out is not None:
        try:
            options.out.write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"{options.out} cannot be written: {error.strerror}"
            raise CannotRunError(message) from error
    if options.as_json:
        parts = [(number, line.partition(MARK)) for number, line in marked_lines(text)]
        questions = [
            {"line": number, "text": question.strip(), "of": before.strip()}
            for number, (before, _, question) in parts
        ]
        file = {"file": str(options.out or ""), "mapping": text}
        print_json(file | {"questions": questions, "warnings": warnings})
    elif options.out is None:
        print(text, end="")


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


def _of_database(
    options: SimpleNamespace, url: str, variable: str
) -> tuple[str, tuple[str, ...]]:
    """Return the file of a database, and what is wrong with the account."""
    try:
        with closing(Database(url, _QUERY_SECONDS, 1)) as database:
            catalogue = read_catalogue(database, options.schema)
            structure = Structure(catalogue, Contents(database))
            named = (options.stay, options.patient, options.organization)
            tables = dict(zip(ResourceType, named, strict=True))
            rows = RowsReader(structure, tables).sections()
            id, name = only_hospital(database, rows)
            sections = Evidence(database, structure, rows, id).parts()
            text = text_of(sections, variable, name or "My hospital")
            return text, (MAY_WRITE,) if database.may_write() else ()
    except AddressError as error:
        message = f"--from is not an address like postgresql://host/database: {error}"
        raise CannotRunError(message) from error
    except AdapterError as error:
        raise CannotRunError(f"the catalogue cannot be read: {error}") from error


def _of_server(options: SimpleNamespace, url: str, variable: str) -> str:
    """Return the file of a FHIR R4 server, with the variable for its address if any."""
    if options.stay or options.patient or options.organization or options.schema:
        raise CannotRunError("a FHIR server has no tables: name its address alone")
    return draft_of_server(url, f"{{env: {variable}}}" if variable else json.dumps(url))


def _problems(text: str, environ: Mapping[str, str]) -> list[str]:
    """Return what keeps the file from being served as it is."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "new.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            mapping = load_mapping(file, environ)
            if mapping.source.kind != "sql":
                return []
            # An account that may write is a warning of its own.
            source = replace(mapping.source, may_write=True)
            with closing(open_adapter(replace(mapping, source=source))) as adapter:
                texts = [problem.text for problem in adapter.check()]
            return [text.removeprefix(f"{file}:") for text in texts]
        except MappingError as error:
            return [f"{one.element}: {one.text}" for one in error.problems]
        except AdapterError as error:
            return [str(error)]
