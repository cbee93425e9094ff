"""The commands of `encounters` for the demo, and their options."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., int])

PATH = click.Path(path_type=Path)

DEFAULT_PORT = 8000
DEFAULT_STAYS = 2000
DEFAULT_DIRECTORY = Path(".demo")
HIGHEST_PORT = 65532
"""The next ports are the token server's, the hospital's for group A, and the explorer's."""

STAYS = (1_000, 10_000_000)
"""The fewest that contain every special case, and the most that are of any use."""


def _refuse(error: Exception | str) -> int:
    click.echo(error, err=True)
    return 2


def _place(command: Command) -> Command:
    """Add the options that say which demo is meant."""
    group = click.option(
        "--group",
        default="",
        help="Use the demo of hospital group a or b, with its reduced features. "
        "Default: all features.",
    )
    directory = click.option(
        "--directory",
        type=PATH,
        default=DEFAULT_DIRECTORY,
        show_default=True,
        help="The directory of the demo's data.",
    )
    return group(directory(command))


@click.command("demo")
@click.option(
    "--port",
    type=click.IntRange(1, HIGHEST_PORT),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port of the service. The token server, the hospital of group A and the "
    "explorer use the next three.",
)
@click.option(
    "--stays",
    type=click.IntRange(*STAYS),
    default=DEFAULT_STAYS,
    show_default=True,
    help="The number of stays.",
)
@click.option(
    "--mapping",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own mapping file, in place of the invented hospital. Set the variables that "
    "it names in the environment.",
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


@click.command("token")
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
