"""`encounters mapping new`: a first mapping file from the catalogue of a database."""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sqlalchemy.exc import ArgumentError

from adapters import open_adapter
from adapters.contract import AdapterError
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError, did_you_mean
from adapters.sql.catalogue import Catalogue, Table, read_catalogue
from adapters.sql.database import Database
from app.tools.report import FINDINGS, FINE, CannotRunError, findings_of, print_json
from app.tools.starting.drafting import draft_of
from app.tools.starting.references import References
from app.tools.starting.tables import Finder, Roles
from app.tools.starting.writing import named, written

_SECONDS = 10.0
"""How long each look into the database may take."""

_VARIABLE = "PAS_URL"


def run(options: argparse.Namespace) -> int:
    """Read the catalogue, write a first mapping, and say what is left to do."""
    url, variable = _address(options.source)
    if options.out is not None and options.out.exists():
        raise CannotRunError(f"{options.out} is there already: name another file with --out")
    try:
        with closing(Database(url, _SECONDS, 1)) as database:
            catalogue = read_catalogue(database, options.schema)
            roles, references = _roles(options, database, catalogue)
            draft = draft_of(database, catalogue, references, roles, variable)
            may_write = database.may_write()
    except ArgumentError as error:
        raise CannotRunError("--from is not an address like postgresql://host/database") from error
    except AdapterError as error:
        raise CannotRunError(f"the catalogue cannot be read: {error}") from error
    text = written(draft)
    troubles = _tried(text, url, variable)
    if may_write:
        troubles.append("the account may change tables: the service needs one that may only read")
    _hand_over(text, options.out, as_json=options.json)
    _tell(options, text, troubles, variable)
    without = roles.patient is None
    return FINDINGS if without or len(troubles) > may_write else FINE


def _address(source: str) -> tuple[str, str]:
    """Return the address of the database and the variable that the file names for it."""
    if not source.startswith("env:"):
        return source, _VARIABLE
    variable = source.removeprefix("env:")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise CannotRunError("--from env:NAME needs the name of an environment variable")
    url = os.environ.get(variable, "")
    if not url:
        raise CannotRunError(f"the environment variable {variable} is not set")
    return url, variable


def _roles(
    options: argparse.Namespace, database: Database, catalogue: Catalogue
) -> tuple[Roles, References]:
    if not catalogue.tables:
        raise CannotRunError(
            "the account sees no table in the default schema; name another with --schema:"
            f" {named(catalogue.schemas)}"
        )
    references = References(catalogue)
    chosen = [
        _named(catalogue, names) for names in (options.stay, options.patient, options.organization)
    ]
    roles = Finder(catalogue, references).roles(database, *chosen)
    if not roles.stays:
        seen = "" if roles.patient is None else f" (patients seem to be in {roles.patient.name})"
        raise CannotRunError(
            f"no table looks like stays{seen}: name the one or more that are with --stay."
            f" The tables are: {named([table.name for table in catalogue.tables])}"
        )
    return roles, references


def _named(catalogue: Catalogue, names: Sequence[str]) -> list[Table]:
    """Return the tables that a person named, whatever the case of the letters."""
    found = []
    for name in names:
        same = [t for t in catalogue.tables if t.name.lower() == name.lower()]
        exact = [t for t in same if t.name == name]
        if not same:
            near = did_you_mean(name, catalogue.by_name)
            tables = named(list(catalogue.by_name))
            raise CannotRunError(f"there is no table '{name}'{near or f'; there are: {tables}'}")
        found.append((exact or same)[0])
    return found


def _tried(text: str, url: str, variable: str) -> list[str]:
    """Load the file and hold it against the database; return what is wrong with it."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "mapping.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            mapping = load_mapping(file, {variable: url})
        except MappingError as error:
            return [f"line {f.line}: {f.text}" for f in findings_of(error)]
        # Whether the account may write is told apart.
        mapping = replace(mapping, source=replace(mapping.source, may_write=True))
        adapter = open_adapter(mapping)
        try:
            return [problem.text.replace(f"{file}:", "line ") for problem in adapter.check()]
        finally:
            adapter.close()


def _hand_over(text: str, out: Path | None, *, as_json: bool) -> None:
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CannotRunError(f"{out} cannot be written: {error.strerror}") from error
    if as_json:
        print_json({"file": str(out or ""), "mapping": text, "questions": _questions(text)})
    elif out is None:
        print(text, end="")


def _questions(text: str) -> list[dict[str, object]]:
    """Return the open questions of a file by their lines."""
    return [
        {"line": number, "text": line.partition("# ?")[2].strip(), "of": line.partition("# ?")[0].strip()}
        for number, line in enumerate(text.splitlines(), 1)
        if "# ? " in line
    ]


def _tell(options: argparse.Namespace, text: str, troubles: Sequence[str], variable: str) -> None:
    """Say on standard error what was written and what to do next."""
    for trouble in troubles:
        print(f"warning: {trouble}", file=sys.stderr)
    if "\npatient:" not in text:
        print(
            "no table looks like patients: name it with --patient, or serve stays alone",
            file=sys.stderr,
        )
    place = options.out or "the file"
    count = len(_questions(text))
    print(f"{place}: {count} guesses and questions are marked with '# ?'", file=sys.stderr)
    if options.out is not None:
        print(
            f"next: answer them, set {variable} to the address of the database, then\n"
            f"    encounters mapping check {options.out}",
            file=sys.stderr,
        )
