"""The console script `encounters`: its commands and their options.

Exit status: 0 fine, 1 something was found or it could not go on, 2 the command or the
settings are invalid, 130 it was stopped by Ctrl-C. A command imports what it needs when
it runs, so that no command pays for another.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from app.console import PATH, STATUSES, as_json, run_tool

STOPPED = 130
"""The exit status after Ctrl-C: 128 and the number of the signal, as shells have it."""

BESIDE: Mapping[str, tuple[str, str]] = {
    "demo": ("demo.cli", "demo_command"),
    "mapping": ("toolkit.cli", "mapping"),
    "token": ("demo.cli", "token_command"),
    "workbench": ("toolkit.cli", "workbench_command"),
}
"""Commands of packages that the service does not import: module and name of each."""

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """A group that loads the commands of other packages when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted((*super().list_commands(ctx), *BESIDE))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None where there is none of this name."""
        if cmd_name not in BESIDE:
            return super().get_command(ctx, cmd_name)
        module, name = BESIDE[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    # Whatever the locale: mapping files, CSV and JSON are UTF-8, and so is what prints them.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        status = cli.main(arguments, prog_name="encounters", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        # click has printed the end of the line.
        return STOPPED
    return int(status or 0)


DOORS = (
    "Documentation, in docs/ of the project and in the archive encounters-docs of a release: "
    "call/ for clients of the API, bring/ to connect a hospital, run/ to run the service, "
    "change/ to change it."
)


@click.group(cls=Commands, context_settings=_SETTINGS, epilog=DOORS)
@click.version_option(
    package_name="encounters", prog_name="encounters", message="%(prog)s %(version)s"
)
def cli() -> None:
    """A read-only FHIR STU3 service for hospital stays."""


# The service


@cli.command("serve")
def serve_command() -> NoReturn:
    """Start the service under gunicorn.

    Environment variables named ENCOUNTERS_… configure it; docs/run/settings.md lists them.
    If a setting or the mapping is invalid, it prints all faults and does not start.
    """
    from app.server.reload import serve

    serve()


@cli.command("settings", epilog=STATUSES)
@click.option(
    "--first",
    is_flag=True,
    help="Print a file of settings to fill in, with the variables of ENCOUNTERS_MAPPING.",
)
@as_json
def settings_command(**options: Any) -> int:
    """Print every setting and its origin, without secrets."""
    return run_tool("app.cli.settings", **options)


@cli.command("doctor", epilog=STATUSES)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=20.0,
    show_default=True,
    help="The timeout of each check. Checks run at the same time.",
)
@click.option(
    "--token",
    type=PATH,
    metavar="FILE",
    help="Check only the access token in FILE: print its claims, client and scopes, or why it "
    "is refused.",
)
@as_json
def doctor_command(**options: Any) -> int:
    """Check everything that the service depends on, and print what to do."""
    return run_tool("app.cli.doctor", **options)


@cli.command("openapi", epilog=STATUSES)
def openapi_command(**options: Any) -> int:
    """Print the OpenAPI description of this deployment, for client generators.

    Reads ENCOUNTERS_MAPPING, ENCOUNTERS_BASE_URL and ENCOUNTERS_TOKEN_URL; needs no database
    and no token.
    """
    return run_tool("app.cli.openapi", **options)


# The audit trail


@cli.group()
def audit() -> None:
    """Read the audit events of this deployment."""


_audit_files = click.argument("files", nargs=-1, metavar="[FILE]...", type=PATH)
_audit_keys = click.option(
    "--key",
    "keys",
    multiple=True,
    type=PATH,
    help="A file with an earlier key. Repeatable.",
)
_day = click.DateTime(["%Y-%m-%d"])


@audit.command("who", epilog=STATUSES)
@click.argument("patient")
@_audit_files
@click.option(
    "--from", "start", type=_day, metavar="YYYY-MM-DD", help="The first day (UTC)."
)
@click.option(
    "--to", "end", type=_day, metavar="YYYY-MM-DD", help="The last day (UTC)."
)
@_audit_keys
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print CSV, with every id and address."
)
@as_json
def audit_who(**options: Any) -> int:
    """Print who saw which data of PATIENT, such as Patient/42.

    Reads each FILE, by default that of ENCOUNTERS_AUDIT and its rotated ones (.gz too).
    ENCOUNTERS_AUDIT_KEY is the key of the digests.
    """
    return run_tool("app.cli.audit", "who", **options)
