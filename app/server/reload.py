"""The mapping that a service runs on: checked and read once, by gunicorn's master.

gunicorn ends when a worker cannot start. So workers read no mapping, no file that it
extends and no secret: they are forked with what the master has read (`served`). A file
that is half written, gone or wrong harms nobody: the check refuses it, and what was
served goes on being served.

`app.server.config` has the check run at the start and on SIGHUP, in a process of its own
(`python -m app.server.reload`): what it imports and connects to ends with that process, and
a source that hangs does not hold the master for long. It returns the files that it read.
"""

import logging
import os
import resource
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from tempfile import TemporaryFile
from threading import Thread
from typing import Any, NoReturn
from urllib.parse import urlsplit

import orjson

from adapters.contract import Adapter, AdapterError, Problem
from adapters.encryption import is_loopback
from adapters.mapping.examples import example_lines
from adapters.mapping.load import Recorded, Recorder, load_mapping
from adapters.mapping.model import ReadFile, SourceMapping
from adapters.mapping.problems import MappingError
from adapters.registry import problems_of
from app.config import Settings, SettingsError
from app.logging import configure_logs
from app.server import ignore_signals

_EXAMPLES = (
    "identifiers of examples (urn:oid:1.2.250.1.999…, example.org) are served on loopback"
    " only: put the hospital's"
)

CHECK_SECONDS = 15.0
"""How long the source may take to answer the check; then it counts as away."""

# By its name: this module is also run as a program.
_log = logging.getLogger("app.server.reload")


def serve() -> NoReturn:
    """Become gunicorn, with the configuration of the service."""
    ignore_signals()
    # Findings quote mapping files, which are UTF-8 whatever the locale.
    os.environ["PYTHONUTF8"] = "1"
    command = [sys.executable, "-m", "gunicorn", "-c", "python:app.server.config"]
    os.execv(sys.executable, command)  # noqa: S606 - this process becomes gunicorn


class RefusedError(Exception):
    """A mapping that cannot be served; the text has one finding per line."""


@dataclass
class Served:
    """What workers are forked with, all None under another server than ours.

    `refused` are the findings of the last check, none where it passed.
    """

    settings: Settings | None = None
    mapping: SourceMapping | None = None
    refused: tuple[str, ...] = ()

    def start(self) -> SourceMapping:
        """Check and read the mapping; return it. Raises RefusedError."""
        # The memory of a process that crashes holds patients and keys: no core files.
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))
        self.settings, self.mapping = _read_checked()
        return self.mapping

    def renew(self) -> None:
        """Check and read the mapping again; where it is refused the one before stays."""
        try:
            self.settings, self.mapping = _read_checked()
        except RefusedError as error:
            self.refused = tuple(str(error).splitlines())
            data: dict[str, object] = {"problems": self.refused}
            _log.error("mapping refused", extra={"data": data})
        else:
            self.refused = ()
            data = {"file": str(self.settings.mapping)}
            _log.warning("mapping passed", extra={"data": data})


served = Served()


def _read_checked() -> tuple[Settings, SourceMapping]:
    """Return settings and mapping as they are now. Raises RefusedError."""
    report = _run_check()
    if "files" not in report:
        raise RefusedError("\n".join(report["problems"]))
    files = {name: text.encode() for name, text in report["files"].items()}
    changed = date.fromisoformat(report["changed"])
    try:
        settings = Settings.from_environ(os.environ)
        mapping = load_mapping(
            settings.mapping, os.environ, Recorded(files), changed=changed
        )
    except (MappingError, SettingsError) as error:
        # The file of a secret may have gone since it was checked.
        raise RefusedError(str(error)) from error
    return settings, mapping


def _run_check() -> dict[str, Any]:
    """Return what the process of the check reports, or the problem that it has."""
    # What the check counts was not served.
    environ = {k: v for k, v in os.environ.items() if k != "PROMETHEUS_MULTIPROC_DIR"}
    try:
        # Not by stdout: whether audit events can go there is checked too.
        with TemporaryFile() as file:
            subprocess.run(  # noqa: S603 - our own module
                [sys.executable, "-m", "app.server.reload", str(file.fileno())],
                env=environ,
                pass_fds=[file.fileno()],
                timeout=2 * CHECK_SECONDS,
                check=False,
            )
            file.seek(0)
            report: dict[str, Any] = orjson.loads(file.read())
    except (OSError, orjson.JSONDecodeError, subprocess.TimeoutExpired) as error:
        reason = type(error).__name__
        problem = f"The check of the mapping has no result ({reason}): see the log."
        return {"problems": [problem]}
    return report


def main(file: int) -> None:
    """Check the mapping that the environment names; write its files, or the problems."""
    try:
        settings = Settings.from_environ(os.environ)
        configure_logs(settings.log_level)
        report = check_mapping(settings)
    except (SettingsError, RefusedError) as error:
        report = {"problems": str(error).splitlines()}
    with open(file, "wb") as opened:
        opened.write(orjson.dumps(report))


def check_mapping(settings: Settings) -> dict[str, Any]:
    """Check the mapping and its source; return the files that it was read from.

    A source that is away does not count against the mapping: it may be back soon, and
    until then the service answers 503. Raises RefusedError.
    """
    from app import create_app
    from app.service import EXTENSION, Service

    read = Recorder()
    try:
        mapping = load_mapping(settings.mapping, os.environ, read)
        # Built as a worker does it.
        app = create_app(settings, mapping=mapping)
    except (MappingError, AdapterError, SettingsError, OSError) as error:
        raise RefusedError(str(error)) from error
    service: Service = app.extensions[EXTENSION]
    problems = source_problems(service.adapter, CHECK_SECONDS)
    lasting = [p.text for p in problems if p.serious and not p.outage]
    if faults := [*lasting, *example_faults(settings, read)]:
        raise RefusedError("\n".join(faults))
    _warn(mapping, problems, settings.threads)
    files = {name: content.decode("utf-8") for name, content in read.files.items()}
    return {"changed": mapping.changed, "files": files}


def source_problems(adapter: Adapter, seconds: float) -> tuple[Problem, ...]:
    """Return what the adapter reports, an outage if it does not answer in time."""
    hangs = Problem("The source does not answer.", outage=True)
    results: list[tuple[Problem, ...]] = []
    # Nobody waits for a daemon thread: a driver that hangs ends with the process.
    thread = Thread(target=lambda: results.append(problems_of(adapter)), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else (hangs,)


def example_faults(settings: Settings, read: ReadFile) -> list[str]:
    """Return where other machines would get identifiers of examples (decision 33).

    A base URL on loopback is a demo, or a trial.
    """
    if is_loopback(urlsplit(settings.base_url).hostname):
        return []
    lines = example_lines(settings.mapping, read)
    return [f"{mark}: {_EXAMPLES}: {rows}" for mark, rows in lines]


def _warn(mapping: SourceMapping, problems: Iterable[Problem], threads: int) -> None:
    if away := sorted({p.source or mapping.name for p in problems if p.outage}):
        text = "sources do not answer: requests that need them get 503 until they do"
        _log.warning(text, extra={"data": {"sources": away}})
    sources = mapping.sources.items()
    if wide := sorted(name for name, s in sources if s.connections >= threads):
        text = "sources may hold every thread: give them fewer connections than threads"
        _log.warning(text, extra={"data": {"sources": wide}})


if __name__ == "__main__":
    main(int(sys.argv[1]))
