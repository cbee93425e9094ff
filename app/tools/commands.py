"""The tools' commands, `encounters mapping` and the operators': what each takes, where it is."""

import argparse
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from app.tools.report import CANNOT_RUN, CannotRunError

_LONGEST = 600
"""How many seconds a check of `doctor` may be given."""

STATUSES = "Exit status: 0 fine, 1 something was found, 2 it could not run."


def describe_mapping(parser: argparse.ArgumentParser) -> None:
    """Add the commands to the parser of `encounters mapping`."""
    parser.description = f"Tools for those who write mapping files. {STATUSES}"
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    _describe_check(
        _command(commands, "check", "say what is wrong with mapping files", "checking")
    )
    _describe_explain(
        _command(
            commands,
            "explain",
            "say what is offered and why, or what a search would send",
            "explaining",
        )
    )
    _describe_test(
        _command(commands, "test", "run the tests beside mapping files", "testing")
    )
    _describe_preview(
        _command(
            commands, "preview", "show what a row becomes, and from what", "previewing"
        )
    )
    _describe_schema(
        _command(commands, "schema", "print JSON Schema for an editor", "schema")
    )
    _describe_new(
        _command(
            commands,
            "new",
            "write a first mapping from a database's catalogue",
            "starting",
        )
    )


def describe_settings(commands: Any) -> None:
    """Add `encounters settings`."""
    settings = _command(
        commands,
        "settings",
        "say what the service is set up with, and from where, without its secrets",
        "effective",
    )
    _add_json(settings)


def describe_doctor(commands: Any) -> None:
    """Add `encounters doctor`."""
    doctor = _command(
        commands,
        "doctor",
        "look at all that the service stands on, and say what to do",
        "doctor",
    )
    doctor.add_argument(
        "--seconds",
        type=_seconds,
        default=20.0,
        help="how long each check may take (default: %(default)g); they run side by side",
    )
    _add_json(doctor)


def _seconds(text: str) -> float:
    if not (re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) and 0 < float(text) <= _LONGEST):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds up to {_LONGEST}"
        )
    return float(text)


def _describe_new(new: argparse.ArgumentParser) -> None:
    new.description = (
        "Write a first mapping file from the catalogue of a database: its tables, columns and "
        "keys, and how often codes occur. The file is then tried on ids, codes and times of the "
        "first rows; names, days of birth, numbers and addresses of people are never read. "
        "Guesses and open questions are comments marked '# ?'; a line without a mark is what a "
        "name or a count says plainly. What the codes of a table become is one guess, and its "
        f"mark stands at the table's name. {STATUSES}"
    )
    new.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="URL",
        help="the address of the database, or env:NAME for the environment variable that "
        "holds it, so that no password is seen; of an HTTP system an answer of its list of stays, "
        "saved as a file .json (then --patient and --organization name such files too)",
    )
    _add_tables(new, "stay", "tables of stays, in place of those that are guessed")
    _add_tables(
        new, "patient", "the table of patients, and that of persons if it is another"
    )
    _add_tables(new, "organization", "the table of hospitals")
    _add_tables(new, "schema", "schemas to look into, in place of the default one")
    new.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write it (default: standard output)",
    )
    _add_json(new)


def _add_tables(new: argparse.ArgumentParser, name: str, help: str) -> None:
    metavar = "NAME" if name == "schema" else "TABLE"
    new.add_argument(f"--{name}", nargs="+", default=(), metavar=metavar, help=help)


def _describe_check(check: argparse.ArgumentParser) -> None:
    _add_files(check)
    check.add_argument(
        "--live",
        action="store_true",
        help="look into the source as well: columns, codes, rows, times, indexes",
    )
    _add_json(check)


def _describe_explain(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("file", type=Path, help="a mapping file")
    explain.add_argument(
        "--openapi",
        metavar="URL",
        help="print what is offered as an OpenAPI description instead, for generators of"
        " clients; URL is where the deployment is",
    )
    explain.add_argument(
        "search",
        nargs="?",
        help="a search, such as 'Encounter?patient=42&date=ge2024'; values of a request"
        " or statement are shown as placeholders on purpose: they may be a patient's",
    )
    explain.add_argument(
        "--values",
        action="store_true",
        help="show what each placeholder stands for, as you typed it and the source gets it",
    )
    _add_json(explain)


def _describe_test(test: argparse.ArgumentParser) -> None:
    _add_files(test)
    test.add_argument(
        "--complete", action="store_true", help="let what no test touches fail too"
    )
    _add_json(test)


def _describe_preview(preview: argparse.ArgumentParser) -> None:
    preview.add_argument("file", type=Path, help="a mapping file")
    origin = preview.add_mutually_exclusive_group(required=True)
    origin.add_argument("--row", type=Path, help="a file of columns and values")
    origin.add_argument(
        "--live", action="store_true", help="read the row from the source itself"
    )
    preview.add_argument("--id", help="with --live: the id, as clients see it")
    preview.add_argument(
        "--of",
        choices=("encounter", "patient", "organization"),
        default="encounter",
        help="what the row is of (default: %(default)s)",
    )
    preview.add_argument(
        "--source", default="", help="with --row: the source, where there are several"
    )
    preview.add_argument(
        "--redact",
        action="store_true",
        help="put stand-ins in place of what identifies a person",
    )
    _add_json(preview)


def _describe_schema(schema: argparse.ArgumentParser) -> None:
    schema.add_argument(
        "--profile", action="store_true", help="of profile files, not of mapping files"
    )


def _command(commands: Any, name: str, help: str, module: str) -> Any:
    command = commands.add_parser(name, help=help)
    command.description = f"{help[0].upper()}{help[1:]}. {STATUSES}"
    command.set_defaults(run=_runner(f"app.tools.{module}"))
    return command


def _runner(module: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        # Imported when asked for, so that no command pays for another.
        try:
            status: int = import_module(module).run(options)
        except CannotRunError as error:
            print(error, file=sys.stderr)
            return CANNOT_RUN
        except BrokenPipeError:
            # Who reads has enough (`| head`); the interpreter must not write on at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return CANNOT_RUN
        return status

    return run


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="+", type=Path, help="mapping files")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")
