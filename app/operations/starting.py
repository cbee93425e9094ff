"""The service is started: all that can be known is checked first, then gunicorn takes over."""

import logging
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from app.operations.shared import MEMORY, Shared
from app.settings import Settings, SettingsError

if TYPE_CHECKING:
    from app.operations.candidate import Passed

GUNICORN = ("-c", "python:app.operations.server", "wsgi:application")


def serve() -> str:
    """Become the service that the environment describes; return why not, if that is so."""
    _keep_streams_closed()
    _leave_no_core()
    try:
        settings = Settings.from_environ(os.environ)
    except SettingsError as error:
        return str(error)
    try:
        shared = Shared.made(settings.mapping)
    except OSError as error:
        return (
            "There is no place for what the processes of the service share: "
            f"{error.strerror} ({MEMORY})."
        )
    # Before anything that counts is read: it looks here where the counts of all lie.
    shared.tell(os.environ)
    from app.operations.candidate import RefusedError, pass_first

    try:
        # Before there are workers: they are too late a place to find out.
        passed = pass_first(shared, settings, os.environ)
    except RefusedError as error:
        shared.remove()
        return str(error)
    except BaseException:
        shared.remove()
        raise
    _warn(settings.log_level, passed)
    return _run_gunicorn()


def _keep_streams_closed() -> None:
    """Keep the places of standard streams that were closed from what is opened next.

    Else what is written there, as by a library or as the audit trail, would reach a client
    or a database. Nothing can be written to them.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # What is opened gets the lowest number that is free.
            os.open(os.devnull, os.O_RDONLY)
    if sys.stderr is None:
        # Log lines that nobody gets end nothing.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - to the end of the process


def _leave_no_core() -> None:
    """Let no process that crashes write its memory to a file: patients stand there, and keys.

    How much it may write at most stays as it is, so that one can be asked for meanwhile.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def _warn(level: str, passed: "Passed") -> None:
    """Log what does not keep the service from starting, sources by their names."""
    from app.operations.logs import configure_logs

    configure_logs(level)
    log = logging.getLogger("app.start")
    if passed.away:
        said = "sources do not answer: until they do, what needs them is answered 503"
        log.warning(said, extra={"data": {"sources": list(passed.away)}})
    if passed.wide:
        said = "sources may hold every thread: give them fewer connections than threads"
        log.warning(said, extra={"data": {"sources": list(passed.wide)}})


def _run_gunicorn() -> NoReturn:
    """Go on as gunicorn, with all that has been read."""
    from gunicorn.app import wsgiapp

    # Its own command: what it would start itself anew with.
    sys.argv = [str(Path(wsgiapp.__file__).parents[1] / "__main__.py"), *GUNICORN]
    wsgiapp.run()
    raise AssertionError("gunicorn ends the process")
