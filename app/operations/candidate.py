"""A mapping is checked before it is served, in a process that serves nobody.

Only one that passes takes the place of the mapping that is served: a worker never meets
another.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import orjson

from adapters import read_in
from adapters.contract import AdapterError, Problem
from adapters.mapping.load import keep_mapping, load_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.problems import MappingError
from app import create_app
from app.operations.forked import Forked
from app.operations.shared import Shared
from app.service import EXTENSION, Service
from app.settings import Settings, SettingsError

CHECK_SECONDS = 60
"""How long the check may take: its questions to the source have time-outs of their own."""


class RefusedError(Exception):
    """A deployment that cannot be served, in words for its operator."""


class Passed(NamedTuple):
    """What a mapping that passed leaves to be told: sources, by name.

    Those that are `away`, and those that may hold every thread of a process when they hang
    because they have as many connections.
    """

    away: tuple[str, ...]
    wide: tuple[str, ...]


def pass_first(
    shared: Shared, settings: Settings, environ: Mapping[str, str]
) -> Passed:
    """Check the mapping file before the start, as `pass_candidate` does, elsewhere.

    What code its sources need is read in this process: workers are forked with it.
    """
    _kept(shared, environ)
    try:
        # As it is kept: the processes to come need not read it again.
        mapping = load_mapping(shared.candidate, environ)
        read_in(mapping)
    except (MappingError, AdapterError, OSError) as error:
        raise RefusedError(str(error)) from error
    check = Check(shared, lambda: _pass(shared, settings, mapping))
    while (passed := check.passed(CHECK_SECONDS)) is None:
        pass
    return passed


def pass_next(
    shared: Shared, environ: Mapping[str, str], begins: Callable[[], None]
) -> "Check":
    """Begin to check the file of a running service anew, as `pass_candidate` does."""

    def check() -> Passed:
        try:
            settings = Settings.from_environ(environ)
        except SettingsError as error:
            raise RefusedError(str(error)) from error
        return pass_candidate(shared, settings, environ)

    return Check(shared, check, begins)


def pass_candidate(
    shared: Shared, settings: Settings, environ: Mapping[str, str]
) -> Passed:
    """Check the mapping file and keep it for serving.

    Raises RefusedError; then what is served stays as it was.
    """
    return _pass(shared, settings, _kept(shared, environ))


def _kept(shared: Shared, environ: Mapping[str, str]) -> SourceMapping:
    try:
        return keep_mapping(shared.file, environ, shared.candidate)
    except (MappingError, OSError) as error:
        raise RefusedError(str(error)) from error


def _pass(shared: Shared, settings: Settings, mapping: SourceMapping) -> Passed:
    try:
        # Put together as a worker does it, and thrown away.
        app = create_app(replace(settings, mapping=shared.candidate))
        service: Service = app.extensions[EXTENSION]
        problems = tuple(service.adapter.check())
        service.adapter.close()
    except (MappingError, AdapterError, SettingsError, OSError) as error:
        raise RefusedError(str(error)) from error
    # A source that is down now may be up soon: until then the answer is 503.
    if lasting := [p.text for p in problems if p.serious and not p.outage]:
        raise RefusedError("\n".join(lasting))
    shared.candidate.replace(shared.mapping)
    return Passed(_away(problems, service.title), _wide(mapping, settings.threads))


class Check:
    """A check under way, in a process of its own. Raises RefusedError where there is no room.

    `begins` is what that process does first.
    """

    def __init__(
        self,
        shared: Shared,
        check: Callable[[], Passed],
        begins: Callable[[], None] = lambda: None,
    ) -> None:
        def work(say: BinaryIO) -> int:
            begins()
            say.write(_told(shared, check))
            return 0

        try:
            self._process = Forked(work)
        except OSError as error:
            raise RefusedError(
                f"there is no room for the check: {error.strerror}"
            ) from error
        self._ends = time.monotonic() + CHECK_SECONDS

    def passed(self, seconds: float) -> Passed | None:
        """Wait so long for what it says, None where it goes on; raises RefusedError."""
        try:
            told = self._process.told(seconds)
        except TimeoutError:
            if time.monotonic() < self._ends:
                return None
            self.stop()
            raise RefusedError("the check took too long") from None
        except BaseException:
            self.stop()
            raise
        status = self.stop()
        with suppress(orjson.JSONDecodeError):
            passed: list[list[str]] | str = orjson.loads(told)
            if isinstance(passed, str):
                raise RefusedError(passed)
            return Passed(*map(tuple, passed))
        how = "by itself" if status is None else f"with status {status}"
        raise RefusedError(f"the check ended {how}")

    def stop(self) -> int | None:
        """End it, and return its exit status, where that is known."""
        self._process.kill()
        return self._process.bury()


def _told(shared: Shared, check: Callable[[], Passed]) -> bytes:
    try:
        told: list[tuple[str, ...]] | str = list(check())
    except RefusedError as error:
        told = str(error)
    finally:
        # What it counted is nothing that was served.
        for counts in shared.counts.glob(f"*_{os.getpid()}.db"):
            counts.unlink()
    return orjson.dumps(told)


def _away(problems: Iterable[Problem], title: str) -> tuple[str, ...]:
    return tuple(sorted({p.source or title for p in problems if p.outage}))


def _wide(mapping: SourceMapping, threads: int) -> tuple[str, ...]:
    sources = mapping.sources.items()
    return tuple(sorted(n for n, s in sources if s.connections >= threads))
