"""The console script `encounters`: its commands and their options.

Exit status: 0 fine, 1 something was found or it could not go on, 2 the command or the
settings are invalid, 130 it was stopped by Ctrl-C. A command imports what it needs when
it runs, so that no command pays for another.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., int])

DEFAULT_PORT = 8000
DEFAULT_STAYS = 2000
DEFAULT_DIRECTORY = Path(".demo")
HIGHEST_PORT = 65532
"""The next ports are the token server's, the hospital's for group A, and the explorer's."""

STAYS = (1_000, 10_000_000)
"""The fewest that contain every special case, and the most that are of any use."""

STOPPED = 130
"""The exit status after Ctrl-C: 128 and the number of the signal, as shells have it."""

_STATUSES = "Exit status: 0 fine, 1 findings or failures, 2 it could not run."
_PATH = click.Path(path_type=Path)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        status = cli.main(arguments, prog_name="encounters", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        # click has printed the end of the line.
        return STOPPED
    return int(status or 0)


@click.group(context_settings=_SETTINGS)
@click.version_option(
    package_name="encounters", prog_name="encounters", message="%(prog)s %(version)s"
)
def cli() -> None:
    """A read-only FHIR STU3 service for hospital stays."""


def _refuse(error: Exception | str) -> int:
    click.echo(error, err=True)
    return 2


def _run_tool(module: str, function: str = "run", **options: Any) -> int:
    """Run the tool of a module below `app`, such as `cli.check`."""
    from adapters.contract import AdapterError
    from adapters.mapping.problems import MappingError
    from app.cli.tools import CANNOT_RUN, CannotRunError

    try:
        tool = getattr(import_module(f"app.{module}"), function)
        status: int = tool(**options)
    except (CannotRunError, MappingError) as error:
        click.echo(error, err=True)
        return CANNOT_RUN
    except AdapterError as error:
        hint = "run encounters mapping check --live"
        click.echo(f"the source cannot be read: {error}; {hint}", err=True)
        return CANNOT_RUN
    except BrokenPipeError:
        # The reader has enough (`| head`): Python must not flush more into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CANNOT_RUN
    return status


_json = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for machines."
)


# The service


@cli.command("serve")
def serve_command() -> NoReturn:
    """Start the service under gunicorn.

    Environment variables named ENCOUNTERS_… configure it; docs/operators.md lists them.
    It checks settings and mapping first, and refuses to start if one is invalid.
    """
    from app.server.reload import serve

    serve()


@cli.command("settings", epilog=_STATUSES)
@_json
def settings_command(**options: Any) -> int:
    """Print every setting and its origin, without secrets."""
    return _run_tool("cli.settings", **options)


@cli.command("doctor", epilog=_STATUSES)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=20.0,
    show_default=True,
    help="The timeout of each check. Checks run at the same time.",
)
@click.option(
    "--conformance",
    is_flag=True,
    help="Instead, test the CapabilityStatement against the running service, and write "
    "conformance.json and conformance.html.",
)
@click.option("--token-file", type=_PATH, help="With --conformance: an access token.")
@click.option(
    "--certificate",
    type=_PATH,
    help="With --conformance: the client's certificate and its key, as one PEM file.",
)
@click.option(
    "--out",
    type=_PATH,
    default=Path(),
    help="With --conformance: the directory of the report. Default: this one.",
)
@_json
def doctor_command(
    seconds: float, conformance: bool, as_json: bool, **options: Any
) -> int:
    """Check everything that the service depends on, and print what to do."""
    if not conformance:
        return _run_tool("cli.doctor", seconds=seconds, as_json=as_json)
    if options["token_file"] is None:
        raise click.UsageError("--conformance requires --token-file.")
    return _run_tool("cli.conformance", as_json=as_json, **options)


@cli.command("openapi", epilog=_STATUSES)
def openapi_command(**options: Any) -> int:
    """Print the OpenAPI description of this deployment, for client generators.

    ENCOUNTERS_MAPPING and ENCOUNTERS_BASE_URL name the deployment, ENCOUNTERS_TOKEN_URL
    its token address. The command needs no database and no token.
    """
    return _run_tool("cli.openapi", **options)


@cli.command("kit", epilog=_STATUSES)
@click.option(
    "--out", type=_PATH, required=True, metavar="DIR", help="The directory to write."
)
def kit_command(**options: Any) -> int:
    """Write requests to try on this deployment: Bruno, .http and OpenAPI.

    It reads the same settings as `encounters openapi`. No file contains a secret.
    """
    return _run_tool("cli.kit", **options)


# The audit trail


@cli.group()
def audit() -> None:
    """Read the audit events of this deployment."""


_audit_files = click.argument("files", nargs=-1, metavar="[FILE]...", type=_PATH)
_audit_keys = click.option(
    "--key",
    "keys",
    multiple=True,
    type=_PATH,
    help="The file of an earlier key. Repeatable.",
)
_day = click.DateTime(["%Y-%m-%d"])


@audit.command("who", epilog=_STATUSES)
@click.argument("patient")
@_audit_files
@click.option("--from", "start", type=_day, help="The first day (UTC).")
@click.option("--to", "end", type=_day, help="The last day (UTC).")
@_audit_keys
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print CSV, with every id and address."
)
@_json
def audit_who(**options: Any) -> int:
    """Print who saw which data of PATIENT, such as Patient/42.

    Reads each FILE, by default that of ENCOUNTERS_AUDIT and its rotated ones (.gz too).
    ENCOUNTERS_AUDIT_KEY is the key of the digests.
    """
    return _run_tool("cli.audit", "who", **options)


# The demo


def _place(command: Function) -> Function:
    """Add the options that say which demo is meant."""
    group = click.option(
        "--group",
        default="",
        help="The demo of a hospital group, a or b, with its reduced features. "
        "Default: the demo with all features.",
    )
    directory = click.option(
        "--directory",
        type=_PATH,
        default=DEFAULT_DIRECTORY,
        show_default=True,
        help="The directory of the demo's data.",
    )
    return group(directory(command))


@cli.command("demo")
@click.option(
    "--port",
    type=click.IntRange(1, HIGHEST_PORT),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port of the service. The token server uses the next port, the hospital of "
    "group A the one after it, the explorer the one after that.",
)
@click.option(
    "--stays",
    type=click.IntRange(*STAYS),
    default=DEFAULT_STAYS,
    show_default=True,
    help="How many stays the hospital has.",
)
@click.option(
    "--mapping",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The mapping file of your own hospital, in place of the invented one. Set the "
    "variables that it names in the environment.",
)
@_place
def demo_command(
    port: int,
    stays: int,
    mapping: Path | None,
    group: str,
    directory: Path,
) -> int:
    """Start the service on this machine with an invented hospital, Redis and tokens.

    Ctrl-C stops everything. The next start uses the same data.
    """
    from demo import stack
    from demo.state import DemoError, deployment

    if mapping and group:
        raise click.UsageError("--mapping and --group exclude each other.")
    try:
        chosen = deployment(group, mapping)
    except DemoError as error:
        return _refuse(error)
    return stack.run(chosen, port, stays, directory)


@cli.command("token")
@click.option(
    "--scope",
    help="The scopes of the token, separated by blanks. Default: PATIENT_GAM_SEARCH, "
    "which allows everything.",
)
@click.option("--client", help="The client of the token. Default: demo.")
@_place
def token_command(
    scope: str | None, client: str | None, group: str, directory: Path
) -> int:
    """Print an access token for the demo of this directory.

    It is signed with the demo's key and valid for one hour.
    """
    from demo.issuer import DEFAULT_CLIENT, DEFAULT_SCOPE, issue_token
    from demo.state import DemoError, deployment

    try:
        place = deployment(group).directory(directory)
        text = issue_token(place, scope or DEFAULT_SCOPE, client or DEFAULT_CLIENT)
    except DemoError as error:
        return _refuse(error)
    click.echo(text)
    return 0


# Tools for mapping files


@cli.group()
def mapping() -> None:
    """Tools for the authors of mapping files."""


_file = click.argument("file", type=_PATH)
_files = click.argument("files", nargs=-1, metavar="FILE...", required=True, type=_PATH)


@mapping.command("check", epilog=_STATUSES)
@_files
@click.option(
    "--live",
    is_flag=True,
    help="Check the source as well: columns, codes, rows, times; measure searches.",
)
@click.option("--verbose", is_flag=True, help="Print each note, and all texts in full.")
@_json
def mapping_check(**options: Any) -> int:
    """Report everything that is wrong with mapping files."""
    return _run_tool("cli.check", **options)


@mapping.command("explain", epilog=_STATUSES)
@_file
@click.argument("search", required=False)
@click.option(
    "--values",
    is_flag=True,
    help="Print the values of the search as well: SQL that can be pasted into psql, mysql, "
    "sqlite3, sqlplus and sqlcmd. Without it values are hidden, as they may be a patient's.",
)
@_json
def mapping_explain(**options: Any) -> int:
    """Print what is offered and why, or what a search would send to the source.

    SEARCH is a search such as 'Encounter?patient=42&date=ge2024'.
    """
    return _run_tool("cli.explain", **options)


@mapping.command("test", epilog=_STATUSES)
@_files
@click.option("--complete", is_flag=True, help="Fail if coverage is incomplete.")
@_json
def mapping_test(**options: Any) -> int:
    """Run the tests next to mapping files."""
    return _run_tool("cli.mapping_tests", **options)


@mapping.command("confirm", epilog=_STATUSES)
@_file
@click.option(
    "--out",
    type=_PATH,
    help="The file to write. Default: NAME.confirmed.yaml beside FILE.",
)
def mapping_confirm(**options: Any) -> int:
    """Write which stays to compare with the hospital's own screens.

    'mapping check --live' compares the answers with what clients get, and names what no
    screen has confirmed yet.
    """
    return _run_tool("cli.confirm", **options)


@mapping.command("preview", epilog=_STATUSES)
@_file
@click.option("--row", type=_PATH, help="A file of columns and values.")
@click.option("--live", is_flag=True, help="Read the row from the source.")
@click.option("--id", default="", help="With --live: the id, as clients see it.")
@click.option(
    "--of",
    type=click.Choice(["encounter", "patient", "organization"]),
    default="encounter",
    show_default=True,
    help="The resource that the row becomes.",
)
@click.option(
    "--source", default="", help="With --row: the source, if there are several."
)
@click.option("--redact", is_flag=True, help="Hide what identifies a person.")
@_json
def mapping_preview(live: bool, **options: Any) -> int:
    """Print what a row becomes, and the origin of each value."""
    row, id, source = (options[name] for name in ("row", "id", "source"))
    if bool(row) is live or live is not bool(id) or (live and source):
        raise click.UsageError("--row FILE or --live --id ID is required.")
    return _run_tool("cli.preview", **options)


@mapping.command("grants", epilog=_STATUSES)
@_file
@click.option(
    "--account",
    default="encounters",
    show_default=True,
    help="The account, as the database writes it.",
)
@click.option(
    "--schema",
    default="",
    help="The schema of tables that the SELECTs name without one. Default: public on "
    "PostgreSQL, dbo on SQL Server, the database of the address on MariaDB and MySQL.",
)
@_json
def mapping_grants(**options: Any) -> int:
    """Print the privileges that the account of the source needs, as GRANT statements.

    They allow it to read the tables that the mapping names, and nothing else.
    """
    return _run_tool("cli.grants", **options)


_live = click.option(
    "--live",
    flag_value="live",
    required=True,
    expose_value=False,
    help="Required: every stay is read from the source.",
)


@mapping.command(
    "diff", epilog="Exit status: 0 no stay differs, 1 stays differ, 2 it could not run."
)
@click.argument("old", type=_PATH)
@click.argument("new", type=_PATH)
@_live
@click.option("--ids", is_flag=True, help="Print the id of each stay that differs.")
@_json
def mapping_diff(**options: Any) -> int:
    """Print what a mapping change does to the stays of the hospital.

    Reads all stays with OLD and with NEW, and counts those that appear, disappear, become
    valid or invalid, move to another patient or change an element, by source code and
    month of start.
    """
    return _run_tool("cli.diff", **options)


@mapping.command(
    "report", epilog="Exit status: 0 the report is written, 2 it could not run."
)
@_file
@_live
@click.option(
    "--out", type=_PATH, required=True, metavar="HTML", help="The page to write."
)
@click.option(
    "--json",
    "figures",
    type=_PATH,
    metavar="JSON",
    help="Write the figures as well.",
)
@click.option(
    "--previous",
    type=_PATH,
    metavar="JSON",
    help="The figures of an earlier report, to compare with.",
)
def mapping_report(**options: Any) -> int:
    """Write a report on the data quality of the hospital, as one HTML page.

    Reads all stays. The page has rounded counts, and nothing else of a row.
    """
    return _run_tool("cli.report", **options)


@mapping.command("schema", epilog=_STATUSES)
def mapping_schema() -> int:
    """Print the JSON Schema of mapping files, for editors."""
    return _run_tool("cli.schema")


def _tables(command: Function) -> Function:
    """Add the options that say where a database holds what."""
    for name, metavar, text in (
        ("--schema", "NAME", "A schema to inspect, in place of the default one."),
        ("--organization", "TABLE", "The table of hospitals."),
        ("--patient", "TABLE", "A table of patients."),
        ("--stay", "TABLE", "A table of stays."),
    ):
        text = f"{text} Repeatable."
        click.option(name, multiple=True, metavar=metavar, help=text)(command)
    return command


@mapping.command("new", epilog=_STATUSES)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL",
    help="The address of the database, or env:NAME for the variable that contains it, "
    "which hides its password; of a FHIR R4 server its base address.",
)
@_tables
@click.option("--out", type=_PATH, help="The file to write. Default: standard output.")
@_json
def mapping_new(**options: Any) -> int:
    """Write a first mapping of a database or a FHIR R4 server.

    Reads tables, columns and keys, and how often codes occur; never names, birth dates,
    numbers and addresses of people. Declared keys come first, then words in names. Every
    guess and every open question is marked '# ?'.
    """
    return _run_tool("cli.new", **options)


@cli.command("workbench", epilog=_STATUSES)
@_file
@click.option(
    "--from",
    "source",
    metavar="URL",
    help="Write a first mapping to FILE if there is none, as 'mapping new' does.",
)
@_tables
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Where it listens on this machine. Default: a free port.",
)
@click.option(
    "--browser/--no-browser", default=True, help="Whether a browser is opened."
)
def workbench_command(**options: Any) -> int:
    """Write a mapping file in the browser, beside rows of its source.

    The page is for this machine only. It edits FILE, and adds tests beside it.
    """
    return _run_tool("ui.workbench", **options)
