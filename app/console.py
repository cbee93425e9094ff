"""What the commands of `encounters` share: exit statuses, options, output."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

FINE, FINDINGS, CANNOT_RUN = 0, 1, 2
"""The exit statuses of every command."""

STATUSES = "Exit status: 0 success, 1 findings or failures, 2 the command did not run."
PATH = click.Path(path_type=Path)

as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for machines."
)


class CannotRunError(Exception):
    """The command cannot do its work; the text says what to do about it."""


def run_tool(module: str, function: str = "run", **options: Any) -> int:
    """Run the function of a module, such as `toolkit.check`; return the exit status.

    A command imports what it needs when it runs, so that no command pays for another.
    """
    from adapters.contract import AdapterError
    from adapters.mapping.problems import MappingError

    try:
        tool = getattr(import_module(module), function)
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


def print_json(value: object) -> None:
    """Print one JSON document."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2)
    print()


def aligned(
    rows: Sequence[Sequence[str]], *, has_figures: bool = False
) -> Iterator[str]:
    """Yield rows as lines with aligned columns; figures, after the first, on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        side = ">" if has_figures else "<"
        cells = (
            f"{text:{side}{width}}"
            for text, width in zip(others, widths[1:], strict=True)
        )
        yield "  ".join((f"{first:{widths[0]}}", *cells)).rstrip()
