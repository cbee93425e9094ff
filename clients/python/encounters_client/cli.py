"""The command `encounters-client`: copy, sync, patient."""

import argparse
import json
import os
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from encounters_client.client import Encounters
from encounters_client.display import Display, display_for
from encounters_client.errors import EncountersError, Unavailable
from encounters_client.formats import writer_for
from encounters_client.resources import TYPES, Patient, Resource
from encounters_client.search import Search
from encounters_client.store import SqliteStore

COMPLETE, REFUSED, USAGE, INCOMPLETE, UNAVAILABLE = range(5)
INTERRUPTED = 130
"""Exit codes; the last one is what shells show after Ctrl-C."""

_SETTINGS = """\
Settings in the environment: BASE, TOKEN_URL, CLIENT_ID, CLIENT_SECRET; optional are AUDIENCE,
SCOPE and TIMEOUT_SECONDS. Exit codes: 0 complete, 1 refused, 2 wrong call, 3 not complete (the
hospital changed meanwhile, or there are no further pages), 4 unavailable (try later).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        hospital = Encounters.from_environment(os.environ)
    except ValueError as error:
        print(error, file=sys.stderr)
        return USAGE
    with hospital, display_for() as display:
        try:
            code: int = options.run(hospital, options, display)
        except ValueError as error:
            display.say(str(error))
            return USAGE
        except (EncountersError, OSError, sqlite3.Error) as error:
            display.say(str(error))
            return UNAVAILABLE if isinstance(error, Unavailable) else REFUSED
        except KeyboardInterrupt:
            display.say("Interrupted. Run the same command again to continue.")
            return INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="encounters-client", epilog=_SETTINGS)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    copy = commands.add_parser(
        "copy", help="copy all matches of a search into a file", epilog=_SETTINGS
    )
    copy.set_defaults(run=_copy)
    copy.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="FILE",
        help="file whose suffix is the format: .parquet, .csv, .ndjson, .sqlite",
    )
    copy.add_argument("--type", choices=TYPES, default="Encounter", help="what to copy")
    copy.add_argument(
        "--since",
        metavar="TIME",
        help="only what has changed since then (_lastUpdated=geTIME)",
    )
    _add_parameters(copy)

    sync = commands.add_parser(
        "sync", help="keep a copy in a SQLite file up to date", epilog=_SETTINGS
    )
    sync.set_defaults(run=_sync)
    sync.add_argument("file", type=Path, metavar="FILE", help="the copy")
    sync.add_argument(
        "--full", action="store_true", help="compare everything, to find deletions"
    )
    sync.add_argument(
        "--type", choices=TYPES, action="append", help="only this type (repeatable)"
    )

    patient = commands.add_parser(
        "patient", help="print patients as lines of JSON", epilog=_SETTINGS
    )
    patient.set_defaults(run=_patient)
    patient.add_argument("--id", help="the id of the patient")
    patient.add_argument(
        "--stays", action="store_true", help="print their stays instead"
    )
    _add_parameters(patient)
    return parser


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "parameters",
        type=_parameter,
        nargs="*",
        metavar="NAME=VALUE",
        help="a parameter of the search, as in date=ge2024",
    )


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError("use NAME=VALUE")
    return name, value


def _values(parameters: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    """Return the values of each parameter."""
    values: dict[str, list[str]] = {}
    for name, value in parameters:
        values.setdefault(name, []).append(value)
    return values


def _copy(hospital: Encounters, options: argparse.Namespace, display: Display) -> int:
    writer_for(options.to)
    parameters = [*options.parameters]
    if options.since:
        parameters.append(("_lastUpdated", f"ge{options.since}"))
    values = _values(parameters)
    search: Search[Resource]
    match options.type:
        case "Encounter":
            search = hospital.search(**values)
        case "Patient":
            search = hospital.patients(**values)
        case _:
            search = hospital.organizations(**values)
    report = search.copy_to(options.to, on_progress=display.show)
    for issue in search.issues:
        display.say(f"{issue.severity} {issue.code}: {issue.diagnostics}")
    total = "unknown" if report.total is None else report.total
    display.say(f"{report.ids} rows, {report.invalid_rows} invalid, total {total}")
    return COMPLETE if report.is_complete else INCOMPLETE


def _sync(hospital: Encounters, options: argparse.Namespace, display: Display) -> int:
    with SqliteStore(options.file) as store:
        report = hospital.sync(
            store,
            full=options.full,
            types=options.type or TYPES,
            on_progress=display.show,
        )
    for kind in options.type or TYPES:
        display.say(f"{kind}: {report.rows.get(kind, 0)} rows stored")
    for kind in report.incomplete:
        display.say(f"{kind}: fewer rows than the service counted")
    return COMPLETE if report.is_complete else INCOMPLETE


def _patient(
    hospital: Encounters, options: argparse.Namespace, display: Display
) -> int:
    del display
    if not (options.id or options.parameters):
        raise ValueError("Use --id ID, or parameters such as name=martin.")
    patients: list[Patient] = []
    if options.id:
        patients.append(hospital.patient(options.id))
    if options.parameters:
        patients += hospital.patients(**_values(options.parameters))
    for patient in patients:
        rows = hospital.stays_of(patient) if options.stays else [patient]
        for row in rows:
            print(json.dumps(row.raw, ensure_ascii=False))
    return COMPLETE
