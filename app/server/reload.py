"""The mapping that a service runs on: read and checked once, by gunicorn's master.

gunicorn ends when a worker cannot start. So workers read no mapping, no file that it
extends and no secret: they are forked with what the master has read (`served`). A file
that is half written, gone or wrong harms nobody: it is refused, and what was served goes
on being served.

`app.server.config` has it read at the start and on SIGHUP. The source is checked in a process
of its own: what that imports and connects to ends with it, and a source that hangs does not
hold the master for long.
"""

import logging
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from typing import NoReturn
from urllib.parse import urlsplit

from adapters.contract import AdapterError, Problem
from adapters.mapping.examples import example_lines
from adapters.mapping.load import load_mapping
from adapters.mapping.model import ReadFile, SourceMapping, from_disk
from adapters.mapping.problems import MappingError
from adapters.mapping.profile import profile_of
from adapters.registry import problems_of
from adapters.transport import is_loopback
from app.config import Settings, SettingsError
from app.server import STOPS, forget_process, ignore_signals

_EXAMPLES = (
    "example identifiers (urn:oid:1.2.250.1.999…, example.org) are allowed on loopback only:"
    " replace them"
)

CHECK_SECONDS = 15.0
"""How long the source may take to answer the check; then it counts as away."""

_FORK = multiprocessing.get_context("fork")
_log = logging.getLogger(__name__)


def serve() -> NoReturn:
    """Become gunicorn, with the configuration of the service."""
    ignore_signals()
    # Findings quote mapping files, which are UTF-8 whatever the locale.
    os.environ["PYTHONUTF8"] = "1"
    command = [sys.executable, "-m", "gunicorn", "-c", "python:app.server.config"]
    os.execv(sys.executable, command)  # noqa: S606 - this process becomes gunicorn


class RefusedMappingError(Exception):
    """A mapping that cannot be served; the text has one finding per line."""


@dataclass
class MasterState:
    """What workers are forked with, all None under another server than ours.

    `refused` are the findings of the last check, none where it passed.
    """

    settings: Settings | None = None
    mapping: SourceMapping | None = None
    refused: tuple[str, ...] = ()

    def start(self) -> SourceMapping:
        """Check and read the mapping; return it. Raises RefusedMappingError."""
        # The memory of a process that crashes holds patients and keys: no core files.
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))
        self.settings, self.mapping = _read_checked()
        return self.mapping

    def renew(self) -> None:
        """Check and read the mapping again; where it is refused the one before stays."""
        try:
            self.settings, self.mapping = _read_checked()
        except RefusedMappingError as error:
            self.refused = tuple(str(error).splitlines())
            data: dict[str, object] = {"problems": self.refused}
            _log.error("mapping refused", extra={"data": data})
        else:
            self.refused = ()
            data = {"file": str(self.settings.mapping)}
            _log.warning("mapping passed", extra={"data": data})


served = MasterState()


def _read_checked() -> tuple[Settings, SourceMapping]:
    """Return settings and mapping as they are now. Raises RefusedMappingError."""
    # The mapping keeps what each of its files holds: nobody reads them again.
    read = cache(from_disk)
    try:
        settings = Settings.from_environ(os.environ)
        mapping = load_mapping(settings.mapping, os.environ, read)
        profile_of(mapping)
    except (MappingError, SettingsError, OSError) as error:
        raise RefusedMappingError(str(error)) from error
    problems = _problems(settings, mapping)
    lasting = [p.text for p in problems if p.serious and not p.outage]
    if faults := [*lasting, *example_faults(settings, read)]:
        raise RefusedMappingError("\n".join(faults))
    _warn(mapping, problems, settings.threads)
    return settings, mapping


def _problems(settings: Settings, mapping: SourceMapping) -> tuple[Problem, ...]:
    """Return the problems of mapping and source that a process of its own finds.

    A source that hangs counts as away. That does not count against the mapping: the source
    may be back soon, and until then the service answers 503.
    """
    results, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_check, args=(sender, settings, mapping))
    # A stop during the fork would leave the process behind.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    process.start()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        sender.close()
        if not results.poll(CHECK_SECONDS):
            return (Problem("The source does not answer.", outage=True),)
        problems: tuple[Problem, ...] = results.recv()
        return problems
    except EOFError:
        return (
            Problem("The check of the mapping ended without a result: see the log."),
        )
    finally:
        process.kill()
        process.join()
        results.close()
        forget_process(process.pid)


def _check(sender: Connection, settings: Settings, mapping: SourceMapping) -> None:
    """Build the service as a worker does it, and send the problems of its source."""
    from app import create_app
    from app.service import EXTENSION

    try:
        app = create_app(settings, mapping=mapping)
    except (MappingError, AdapterError, SettingsError, OSError) as error:
        problems = tuple(map(Problem, str(error).splitlines()))
    else:
        with closing(app.extensions[EXTENSION].adapter) as adapter:
            problems = problems_of(adapter)
    sender.send(problems)


def example_faults(settings: Settings, read: ReadFile) -> list[str]:
    """Return where other machines would get identifiers of examples (decision 33).

    A base URL on loopback is a demo, or a trial.
    """
    if is_loopback(urlsplit(settings.base_url).hostname):
        return []
    lines = example_lines(settings.mapping, read)
    return [f"{mark}: {_EXAMPLES}: {rows}" for mark, rows in lines]


def _warn(mapping: SourceMapping, problems: Iterable[Problem], threads: int) -> None:
    """Log the sources that are away, and those with connections for all threads."""
    if away := sorted({p.source or mapping.name for p in problems if p.outage}):
        _log.warning("sources do not answer", extra={"data": {"sources": away}})
    sources = mapping.sources.items()
    if wide := sorted(name for name, s in sources if s.connections >= threads):
        data = {"sources": wide, "threads": threads}
        _log.warning("sources can block all threads", extra={"data": data})
