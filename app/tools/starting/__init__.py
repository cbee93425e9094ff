"""`encounters mapping new`: a first mapping file from a catalogue, or from saved answers."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from adapters.contract import AdapterError, ResourceType
from adapters.mapping.problems import did_you_mean
from adapters.sql.addresses import AddressError
from adapters.sql.catalogue import read_catalogue
from adapters.sql.database import Database
from adapters.sql.tables import Catalogue, Table
from app.tools.report import FINDINGS, FINE, CannotRunError, print_json
from app.tools.starting.asking import draft_of_answers
from app.tools.starting.draft import Draft
from app.tools.starting.drafting import draft_of
from app.tools.starting.references import References
from app.tools.starting.tables import Finder, Roles
from app.tools.starting.trying import Tried, load, try_out
from app.tools.starting.writing import named, written
from app.tools.unanswered import MARK, marked_lines

_SECONDS = 10.0
"""How long each look into the database may take."""

_VARIABLE = "PAS_URL"

_MAY_WRITE = (
    "this account may change tables: the service needs one that may only read"
    " (docs/operators.md, The database account)"
)


def run(options: argparse.Namespace) -> int:
    """Read what the source says of itself, write a first mapping, and say what is left."""
    if options.out is not None and options.out.exists():
        raise CannotRunError(
            f"{options.out} is there already: name another file with --out"
        )
    if options.source.endswith(".json"):
        return _from_answers(options)
    url, variable = _address(options.source)
    try:
        with closing(Database(url, _SECONDS, 1)) as database:
            catalogue = read_catalogue(database, options.schema)
            roles, references = _roles(options, database, catalogue)
            draft = draft_of(database, catalogue, references, roles, variable)
            may_write = database.may_write()
    except AddressError as error:
        raise CannotRunError(
            f"--from is not an address like postgresql://host/database: {error}"
        ) from error
    except AdapterError as error:
        raise CannotRunError(f"the catalogue cannot be read: {error}") from error
    status = _finish(options, draft, try_out(draft, {variable: url}))
    if may_write:
        print(f"warning: {_MAY_WRITE}", file=sys.stderr)
    return status


def _from_answers(options: argparse.Namespace) -> int:
    """Write a first mapping of an HTTP API from answers that somebody saved."""
    kinds = (options.patient, options.organization)
    if options.stay or options.schema or any(len(files) > 1 for files in kinds):
        raise CannotRunError(
            "saved answers are one file each: --from stays.json --patient patients.json"
        )
    further = zip((ResourceType.PATIENT, ResourceType.ORGANIZATION), kinds, strict=True)
    files = {kind: Path(given[0]) for kind, given in further if given}
    files = {ResourceType.ENCOUNTER: Path(options.source), **files}
    draft = draft_of_answers(files, _VARIABLE)
    return _finish(options, draft, load(draft, {_VARIABLE: "http://127.0.0.1"}))


def _finish(options: argparse.Namespace, draft: Draft, tried: Tried) -> int:
    text = written(draft)
    _hand_over(text, tried, options.out, as_json=options.json)
    _tell(options, text, tried, draft.variable)
    whole = ResourceType.PATIENT in draft.sections and not tried.troubles
    return FINE if whole else FINDINGS


def _address(source: str) -> tuple[str, str]:
    """Return the address of the database and the variable that the file names for it."""
    _refuse_http(source)
    if not source.startswith("env:"):
        return source, _VARIABLE
    variable = source.removeprefix("env:")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise CannotRunError(
            "--from env:NAME needs the name of an environment variable"
        )
    url = os.environ.get(variable, "")
    if not url:
        raise CannotRunError(f"the environment variable {variable} is not set")
    _refuse_http(url)
    return url, variable


def _refuse_http(url: str) -> None:
    if re.match(r"https?:", url, re.IGNORECASE):
        raise CannotRunError(
            "an HTTP system has no catalogue: save an answer of its list of stays, and give"
            " that file (--from stays.json); mappings/guide.md shows the rest, under 'A"
            " hospital behind an HTTP API'"
        )


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
        _named(catalogue, names)
        for names in (options.stay, options.patient, options.organization)
    ]
    roles = Finder(catalogue, references).roles(database, *chosen)
    if not roles.stays:
        seen = (
            ""
            if roles.patient is None
            else f" (patients seem to be in {roles.patient.name})"
        )
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
            raise CannotRunError(
                f"there is no table '{name}'{near or f'; there are: {tables}'}"
            )
        found.append((exact or same)[0])
    return found


def _hand_over(text: str, tried: Tried, out: Path | None, *, as_json: bool) -> None:
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CannotRunError(
                f"{out} cannot be written: {error.strerror}"
            ) from error
    if as_json:
        told = {"file": str(out or ""), "mapping": text, "questions": _questions(text)}
        print_json(told | {"warnings": tried.troubles, "served": tried.served})
    elif out is None:
        print(text, end="")


def _questions(text: str) -> list[dict[str, object]]:
    """Return the open questions of a file by their lines."""
    return [
        {
            "line": number,
            "text": line.partition(MARK)[2].strip(),
            "of": line.partition(MARK)[0].strip(),
        }
        for number, line in marked_lines(text)
    ]


def _tell(options: argparse.Namespace, text: str, tried: Tried, variable: str) -> None:
    """Say on standard error what was written and what to do next."""
    place = options.out or "the file"
    said = [f"{place}: {len(_questions(text))} guesses and questions are marked '# ?'"]
    if "\npatient:" not in text:
        said.append(
            "no table looks like patients: name it with --patient, or serve stays alone"
        )
    if options.out is not None:
        said.append(
            f"next: answer them, put the address of the source into {variable}, and run"
        )
        said.append(f"    encounters mapping check {options.out}")
        said.append(
            "and then with --live: it also reads what was left alone here, people"
        )
    for line in (*tried.served, *(f"warning: {t}" for t in tried.troubles), *said):
        print(line, file=sys.stderr)
