"""The console script `encounters`: serve, settings, doctor, demo, token, mapping.

Exit status: 0 fine, 1 it could not go on, 2 the command or the settings are at fault.
Each command imports what it needs, so that none pays for another.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from app.tools.commands import describe_doctor, describe_mapping, describe_settings

DEFAULT_PORT = 8000
DEFAULT_STAYS = 2000
DEFAULT_DIRECTORY = Path(".demo")
HIGHEST_PORT = 65533
"""The two after it are the token server's and, for group A, the hospital's."""

STAYS = (1_000, 10_000_000)
"""The fewest that show every special case, and the most that are of any use."""


class _Version(argparse.Action):
    """Prints the release that /metadata tells (`software.version`), when asked."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print name and version, and leave."""
        from importlib.metadata import version

        print(parser.prog, version("encounters"))
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = _parser()
    options, left = parser.parse_known_args(arguments)
    if left and getattr(options, "search", "") is None and left[0][:1] != "-":
        # argparse misses a last argument that may be missing, where an option precedes it.
        options.search = left.pop(0)
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    command: Callable[[argparse.Namespace], int] = options.run
    return command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="encounters",
        description="A read-only FHIR STU3 service for hospital stays.",
    )
    parser.add_argument(
        "--version", action=_Version, help="print which release this is, and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    _describe_serve(
        commands.add_parser(
            "serve", help="start the service, set up by environment variables"
        )
    )
    describe_settings(commands)
    describe_doctor(commands)
    _describe_demo(
        commands.add_parser(
            "demo", help="start the service with a made-up hospital, Redis and tokens"
        )
    )
    _describe_token(
        commands.add_parser("token", help="print an access token for the demo")
    )
    describe_mapping(
        commands.add_parser("mapping", help="tools for those who write mapping files")
    )
    return parser


def _describe_serve(serve: argparse.ArgumentParser) -> None:
    serve.description = (
        "Start the service under gunicorn. Everything is set by environment variables "
        "named ENCOUNTERS_…, which docs/operators.md lists. Settings and mapping are "
        "checked first: when one is at fault, nothing is started."
    )
    serve.set_defaults(run=_serve)


def _describe_demo(demo: argparse.ArgumentParser) -> None:
    demo.description = (
        "Start the service on this machine with all that it needs: a hospital of "
        "made-up stays, Redis and a token server. Ctrl-C stops it; what it holds is "
        "kept in one directory and found again by the next start."
    )
    demo.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help="where the service listens; the token server takes the next port, and "
        "group A's hospital the one after it (default: %(default)s)",
    )
    hospital = demo.add_mutually_exclusive_group()
    hospital.add_argument(
        "--stays",
        type=_stays,
        default=DEFAULT_STAYS,
        help="how many stays the hospital has (default: %(default)s)",
    )
    hospital.add_argument(
        "--mapping",
        type=_file,
        help="the mapping file of a hospital of your own, in place of the made-up one; "
        "the variables that it names stand in the environment",
    )
    _add_place(demo)
    demo.set_defaults(run=_demo)


def _describe_token(token: argparse.ArgumentParser) -> None:
    token.description = (
        "Print an access token, signed with the key of the demo in this directory. "
        "It is of use for that demo only, for one hour."
    )
    token.add_argument(
        "--scope",
        type=_word,
        help="the scopes of the token, separated by blanks "
        "(default: PATIENT_GAM_SEARCH, which allows everything)",
    )
    token.add_argument(
        "--client",
        type=_word,
        help="the name of the client that gets it (default: demo)",
    )
    _add_place(token)
    token.set_defaults(run=_token)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--group",
        default="",
        help="a or b: the service as this group is offered it, on a hospital like the "
        "group's (default: the whole service)",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=DEFAULT_DIRECTORY,
        help="where the demo keeps what it holds (default: %(default)s)",
    )


def _word(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty")
    return text


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not a file")
    return Path(text)


def _port(text: str) -> int:
    return _whole(text, 1, HIGHEST_PORT)


def _stays(text: str) -> int:
    return _whole(text, *STAYS)


def _whole(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number from {low} to {high}"
        )
    return int(text)


def _serve(_: argparse.Namespace) -> int:
    # Until the workers are forked nothing that is read is garbage.
    gc.disable()
    from app.operations.starting import serve

    return _refused(serve())


def _demo(options: argparse.Namespace) -> int:
    from demo import stack
    from demo.deployments import Deployment, deployment
    from demo.state import DemoError

    if options.mapping and options.group:
        return _refused("--mapping and --group cannot stand together.")
    try:
        chosen = deployment(options.group)
        if options.mapping:
            chosen = Deployment(own=options.mapping)
    except DemoError as error:
        return _refused(error)
    return stack.run(chosen, options.port, options.stays, options.directory)


def _token(options: argparse.Namespace) -> int:
    from demo.deployments import deployment
    from demo.issuer import DEFAULT_CLIENT, DEFAULT_SCOPE, issue_token
    from demo.state import DemoError

    scope, client = options.scope or DEFAULT_SCOPE, options.client or DEFAULT_CLIENT
    try:
        directory = deployment(options.group).directory(options.directory)
        print(issue_token(directory, scope, client))
    except DemoError as error:
        return _refused(error)
    return 0


def _refused(error: Exception | str) -> int:
    print(error, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
