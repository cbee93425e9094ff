"""The commands of `encounters` for mapping files, and their options."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from app.console import PATH, STATUSES, as_json, run_tool

Command = TypeVar("Command", bound=Callable[..., int])


@click.group(epilog="docs/bring/index.md shows how to write a mapping file.")
def mapping() -> None:
    """Tools for the authors of mapping files."""


_file = click.argument("file", type=PATH)
_files = click.argument("files", nargs=-1, metavar="FILE...", required=True, type=PATH)


@mapping.command("check", epilog=STATUSES)
@_files
@click.option(
    "--live",
    is_flag=True,
    help="Also check columns, codes, rows and times of the source, and measure searches.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=40.0,
    help="With --live: start no check after this many seconds. Default: 40.",
)
@click.option("--verbose", is_flag=True, help="Print each note, and all texts in full.")
@click.option(
    "--html",
    type=PATH,
    metavar="FILE",
    help="Also write findings and costs of searches as an HTML page.",
)
@as_json
def mapping_check(**options: Any) -> int:
    """Report everything that is wrong with mapping files."""
    return run_tool("toolkit.check", **options)


@mapping.command("explain", epilog=STATUSES)
@_file
@click.argument("search", required=False)
@click.option(
    "--live",
    is_flag=True,
    help="Read a resource from the source.",
)
@click.option(
    "--redact/--no-redact",
    default=True,
    help="With --live: hide what identifies a person (default), or print it.",
)
def mapping_explain(**options: Any) -> int:
    """Print why search parameters are offered or not, or what a search sends.

    SEARCH is a search, such as 'Encounter?patient=42&date=ge2024'. With --live it is a
    resource, such as Encounter/42: the command prints why clients do or do not get it.
    """
    return run_tool("toolkit.explain", **options)


@mapping.command("test", epilog=STATUSES)
@_files
def mapping_test(**options: Any) -> int:
    """Run the tests beside mapping files (NAME.test.yaml)."""
    return run_tool("toolkit.mapping_tests", **options)


@mapping.command("confirm", epilog=STATUSES)
@_file
@click.option(
    "--out",
    type=PATH,
    help="The file to write. Default: NAME.confirmed.yaml beside FILE.",
)
def mapping_confirm(**options: Any) -> int:
    """Write questions about stays, to answer from the hospital's own screens.

    'mapping check --live' compares the answers with what clients get, and names what no
    screen has confirmed yet.
    """
    return run_tool("toolkit.confirm", **options)


@mapping.command("preview", epilog=STATUSES)
@_file
@click.option(
    "--row", type=PATH, required=True, help="A YAML file of columns and values."
)
@click.option(
    "--of",
    type=click.Choice(["encounter", "patient", "organization"]),
    default="encounter",
    show_default=True,
    help="The resource that the row becomes.",
)
@click.option("--source", default="", help="The source, if there are several.")
@click.option("--redact", is_flag=True, help="Hide what identifies a person.")
def mapping_preview(**options: Any) -> int:
    """Print what the row of a file becomes, and where each value comes from.

    For a row of the source: mapping explain FILE Encounter/42 --live.
    """
    return run_tool("toolkit.preview", **options)


_live = click.option(
    "--live",
    flag_value="live",
    required=True,
    expose_value=False,
    help="Required, because the command reads every stay from the source.",
)


@mapping.command(
    "diff",
    epilog="Exit status: 0 no stay differs, 1 stays differ, 2 the command did not run.",
)
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@_live
@click.option("--ids", is_flag=True, help="Print the id of each stay that differs.")
def mapping_diff(**options: Any) -> int:
    """Print what a mapping change does to the stays of the hospital.

    It reads all stays with OLD and with NEW. It counts those that appear, disappear, become
    valid or invalid, move to another patient or change an element.
    """
    return run_tool("toolkit.diff", **options)


@mapping.command("schema", epilog=STATUSES)
def mapping_schema() -> int:
    """Print the JSON Schema of mapping files, for editors."""
    return run_tool("toolkit.schema")


def _tables(command: Command) -> Command:
    """Add the options that say where a database holds what."""
    for name, metavar, multiple, text in (
        ("--schema", "NAME", True, "A schema to inspect, in place of the default one."),
        ("--organization", "TABLE", False, "The table of hospitals."),
        ("--patient", "TABLE", False, "The table of patients."),
        ("--stay", "TABLE", True, "A table of stays."),
    ):
        text = f"{text} Repeatable." if multiple else text
        click.option(name, multiple=multiple, metavar=metavar, help=text)(command)
    return command


@mapping.command("new", epilog=STATUSES)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL",
    help="The address of the database or FHIR R4 server, or env:NAME for the variable that "
    "contains it.",
)
@_tables
@click.option("--out", type=PATH, help="The file to write. Default: standard output.")
def mapping_new(**options: Any) -> int:
    """Write a first mapping of a database or a FHIR R4 server.

    Without --stay, --patient and --organization it lists the tables of a database. It reads
    columns, keys and counts of codes; never names, birth dates, numbers or addresses of
    people. It fills a field only by a declared key or an exact name. Other columns are
    comments, and '# ?' marks open questions.
    """
    return run_tool("toolkit.new", **options)


@click.command("workbench", epilog=STATUSES)
@_file
@click.option(
    "--from",
    "source",
    metavar="URL",
    help="Write a first mapping to FILE if there is none, as 'mapping new' does.",
)
@_tables
def workbench_command(**options: Any) -> int:
    """Edit a mapping file in the browser, beside rows of its source.

    The page is for this machine only. It edits FILE.
    """
    return run_tool("toolkit.workbench", **options)
