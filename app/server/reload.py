"""The mapping that a service runs on: checked first, then stored for the workers.

Workers never read the mapping file. They load a copy of the last mapping that passed the
check, with what it extends and its profile, from the state directory. So a file that is
half written, gone or wrong harms nobody: the check refuses it, and the copy stays.

`app.server.config` runs the check at the start and on SIGHUP, in a process of its own
(`python -m app.server.reload`): what it imports and connects to ends with that process, and
a source that hangs does not hold gunicorn's master for long.
"""

import logging
import os
import resource
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import NoReturn
from urllib.parse import urlsplit

from adapters.contract import Adapter, AdapterError, Problem
from adapters.encryption import is_loopback
from adapters.mapping.examples import example_lines
from adapters.mapping.load import SUFFIX, copy_mapping, load_mapping, open_kept
from adapters.mapping.model import Reader, SourceMapping, from_disk
from adapters.mapping.problems import MappingError
from adapters.registry import problems_of
from app.config import PREFIX, Settings, SettingsError
from app.logging import configure_logs
from app.tls import require_verified_tls

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
    command = [sys.executable, "-m", "gunicorn", "-c", "python:app.server.config"]
    os.execv(sys.executable, command)  # noqa: S606 - this process becomes gunicorn


class RefusedError(Exception):
    """A mapping that cannot be served; the text has one finding per line."""


class StateDirectory:
    """Where a service keeps what it needs after a change that fails, or a restart."""

    def __init__(self, path: Path) -> None:
        self.mapping = path / f"mapping{SUFFIX}"
        self.candidate = path / f"candidate{SUFFIX}"
        self.refused = path / "refused"


class Reload:
    """Runs the check for gunicorn's master, and reports its result.

    Creates the state directory, in `shared` where none is set, and names it in the
    environment (ENCOUNTERS_STATE_DIRECTORY). Raises SettingsError.
    """

    def __init__(self, settings: Settings, shared: Path) -> None:
        self._settings = settings
        try:
            # `StateDirectory=` of a unit may name several.
            of_systemd = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
            path = settings.state_directory or Path(of_systemd or shared / "state")
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            fault = f"{PREFIX}STATE_DIRECTORY cannot be created ({error.strerror})."
            raise SettingsError((fault,)) from error
        self.state = StateDirectory(path)
        os.environ[f"{PREFIX}STATE_DIRECTORY"] = str(path)

    def start(self) -> None:
        """Check the mapping. Raises RefusedError where there is none to serve."""
        # The memory of a process that crashes holds patients and keys: no core files.
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))
        findings = self._run_check()
        if findings and not can_serve(self._settings, self.state):
            raise RefusedError(findings)
        self._report(findings)
        # From here on, what is forked serves the stored mapping.
        os.environ[f"{PREFIX}MAPPING"] = str(self.state.mapping)

    def check(self) -> None:
        """Check the mapping file again; workers that start later serve what passed last."""
        findings = self._run_check()
        self._report(findings)
        if not findings:
            data = {"file": str(self._settings.mapping)}
            _log.warning("mapping passed", extra={"data": data})
            # Workers that are forked later know the secrets of files as they are now.
            with suppress(MappingError):
                load_mapping(self.state.mapping, os.environ)

    def _run_check(self) -> str:
        """Return the findings, none for a mapping that passes."""
        environ = {**os.environ, f"{PREFIX}MAPPING": str(self._settings.mapping)}
        # What the check counts was not served.
        del environ["PROMETHEUS_MULTIPROC_DIR"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "app.server.reload"],
                env=environ,
                stdout=subprocess.PIPE,
                text=True,
                timeout=2 * CHECK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "The check of the mapping took too long."
        if done.returncode == 0:
            return ""
        ended = f"The check of the mapping ended with status {done.returncode}."
        return done.stdout.strip() or ended

    def _report(self, findings: str) -> None:
        if not findings:
            self.state.refused.unlink(missing_ok=True)
            return
        data = {"problems": findings.splitlines()}
        _log.error("mapping refused", extra={"data": data})
        # On a full disk the log alone has it.
        with suppress(OSError):
            self.state.refused.write_text(findings, "utf-8")


def main() -> int:
    """Check the mapping that the environment names; print the findings."""
    try:
        settings = Settings.from_environ(os.environ)
        configure_logs(settings.log_level)
        check_mapping(settings, StateDirectory(settings.state_directory or Path()))
    except (SettingsError, RefusedError) as error:
        print(error)
        return 2
    return 0


def check_mapping(settings: Settings, state: StateDirectory) -> None:
    """Check the mapping file and its source, and keep it. Raises RefusedError.

    A source that is away does not count against the mapping: it may be back soon, and
    until then the service answers 503.
    """
    from app import create_app
    from app.service import EXTENSION, Service

    try:
        mapping = copy_mapping(settings.mapping, os.environ, state.candidate)
        # Built as a worker does it.
        app = create_app(replace(settings, mapping=state.candidate))
    except (MappingError, AdapterError, SettingsError, OSError) as error:
        raise RefusedError(str(error)) from error
    service: Service = app.extensions[EXTENSION]
    problems = source_problems(service.adapter, CHECK_SECONDS)
    lasting = [p.text for p in problems if p.serious and not p.outage]
    if faults := [*lasting, *example_faults(settings, settings.mapping)]:
        raise RefusedError("\n".join(faults))
    # Only here is it the one that is served: what was raised above keeps the last one.
    state.candidate.replace(state.mapping)
    _warn(mapping, problems, settings.threads)


def source_problems(adapter: Adapter, seconds: float) -> tuple[Problem, ...]:
    """Return what the adapter reports, an outage if it does not answer in time."""
    hangs = Problem("The source does not answer.", outage=True)
    results: list[tuple[Problem, ...]] = []
    # Nobody waits for a daemon thread: a driver that hangs ends with the process.
    thread = Thread(target=lambda: results.append(problems_of(adapter)), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else (hangs,)


def example_faults(
    settings: Settings, mapping: Path, read: Reader = from_disk
) -> list[str]:
    """Return where other machines would get identifiers of examples (decision 33).

    A base URL on loopback is a demo, or a trial.
    """
    if is_loopback(urlsplit(settings.base_url).hostname):
        return []
    return [
        f"{mark}: {_EXAMPLES}: {rows}" for mark, rows in example_lines(mapping, read)
    ]


def can_serve(settings: Settings, state: StateDirectory) -> bool:
    """Return whether a copy of the mapping file is stored and still loads."""
    try:
        origin, read = open_kept(state.mapping.read_bytes())
        mapping = load_mapping(state.mapping, os.environ)
        require_verified_tls(settings, mapping)
    except (MappingError, OSError, SettingsError, ValueError, LookupError):
        # A copy that a power failure left incomplete is none.
        return False
    return origin == settings.mapping and not example_faults(settings, origin, read)


def _warn(mapping: SourceMapping, problems: Iterable[Problem], threads: int) -> None:
    if away := sorted({p.source or mapping.name for p in problems if p.outage}):
        text = "sources do not answer: requests that need them get 503 until they do"
        _log.warning(text, extra={"data": {"sources": away}})
    sources = mapping.sources.items()
    if wide := sorted(name for name, s in sources if s.connections >= threads):
        text = "sources may hold every thread: give them fewer connections than threads"
        _log.warning(text, extra={"data": {"sources": wide}})


if __name__ == "__main__":
    sys.exit(main())
