"""What a live source says of a mapping: each look asked in turn, in bounded time."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from adapters import open_adapter
from adapters.contract import Adapter, AdapterError
from adapters.inspection import Inspectable, Look, Observation
from adapters.mapping.load import load_mapping
from adapters.mapping.problems import MappingError
from app.tools.report import CannotRunError, Finding, Severity, findings_of

LONGEST = 300.0
"""How many seconds all looks at the source of a file may take."""

_AWAY = (
    "the source cannot be looked at: {}; is it up, and are address and account right?"
)


def check_live(file: Path, seconds: float = LONGEST) -> Iterator[Finding]:
    """Yield what the source of a file says of it, each thing once.

    Raises CannotRunError where the environment lacks a variable or the source is away.
    """
    try:
        mapping = load_mapping(file, os.environ)
    except MappingError as error:
        raise CannotRunError(str(error)) from error
    try:
        adapter = open_adapter(mapping)
    except MappingError as error:
        yield from findings_of(error)
        return
    except AdapterError as error:
        raise CannotRunError(f"{file}: {error}") from error
    try:
        found = dict.fromkeys(_findings(file, adapter, seconds))
    finally:
        adapter.close()
    yield from sorted(found, key=lambda one: (one.file, one.line, one.column))


def _findings(file: Path, adapter: Adapter, seconds: float) -> Iterator[Finding]:
    if not isinstance(adapter, Inspectable):
        yield from _checked(file, adapter)
        return
    ends = time.monotonic() + seconds
    for look in adapter.looks(tuple(adapter.capabilities)):
        if time.monotonic() > ends:
            text = f"not all was looked at: it took longer than {seconds:g} seconds"
            yield Finding(str(file), 0, 0, text, severity=Severity.WARNING)
            break
        _show_progress(f"{file}: {look.subject} …")
        yield from map(_finding, _asked(file, look))
    _show_progress("")


def _asked(file: Path, look: Look) -> Iterator[Observation]:
    try:
        yield from look.ask()
    except AdapterError as error:
        _show_progress("")
        raise CannotRunError(f"{file}: {_AWAY.format(error)}") from error


def _checked(file: Path, adapter: Adapter) -> Iterator[Finding]:
    """Yield what an adapter without looks says of itself."""
    for problem in adapter.check():
        if problem.outage:
            raise CannotRunError(f"{file}: {_AWAY.format(problem.text)}")
        severity = Severity.ERROR if problem.serious else Severity.WARNING
        yield Finding(str(file), 0, 0, problem.text, severity=severity)


def _finding(seen: Observation) -> Finding:
    mark = seen.mark
    severity = Severity(seen.weight)
    made = (seen.text, seen.element, seen.column, severity, seen.remedy)
    return Finding(mark.file, mark.line, mark.column, *made)


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
