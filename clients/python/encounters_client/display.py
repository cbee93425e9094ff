"""How far a command is, on stderr: a bar in a terminal, else a line every few seconds."""

import logging
import sys
import time
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from encounters_client.progress import Progress

SECONDS_BETWEEN_LINES = 5.0

_LOG = logging.getLogger("encounters_client")


class Display(Protocol):
    """Shows progress, and below it what the package logs; a context manager."""

    def __enter__(self) -> "Display": ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def show(self, progress: Progress) -> None:
        """Show how far the command is."""

    def say(self, line: str) -> None:
        """Print a line about a problem."""


class BarDisplay:
    """A bar for each type; without a total it has no end, but rows and rows a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._handler = _LineHandler(self)

    def __enter__(self) -> "BarDisplay":
        _LOG.addHandler(self._handler)
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()
        _LOG.removeHandler(self._handler)

    def show(self, progress: Progress) -> None:
        """Show how far the command is."""
        if progress.kind not in self._tasks:
            # Without a total the bar has no end; the default would be 100.
            self._tasks[progress.kind] = self._bars.add_task(
                progress.kind, total=None, speed=""
            )
        task = self._bars.tasks[self._tasks[progress.kind]]
        speed = f"{progress.rows / task.elapsed:,.0f}/s" if task.elapsed else ""
        self._bars.update(
            task.id, completed=progress.rows, total=progress.total, speed=speed
        )

    def say(self, line: str) -> None:
        """Print a line about a problem."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LineDisplay:
    """A line every few seconds, and one at the end."""

    def __init__(
        self, stream: TextIO, *, seconds_between: float = SECONDS_BETWEEN_LINES
    ) -> None:
        self._stream = stream
        self._seconds_between = seconds_between
        self._began = time.monotonic()
        self._last_line = self._began
        self._handler = _LineHandler(self)

    def __enter__(self) -> "LineDisplay":
        _LOG.addHandler(self._handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _LOG.removeHandler(self._handler)

    def show(self, progress: Progress) -> None:
        """Print how far the command is, if the last line is some seconds old."""
        now = time.monotonic()
        if now - self._last_line < self._seconds_between:
            return
        self._last_line = now
        total = "" if progress.total is None else f" of {progress.total}"
        seconds = now - self._began
        self.say(f"{progress.kind}: {progress.rows}{total} rows after {seconds:.0f} s")

    def say(self, line: str) -> None:
        """Print a line about a problem."""
        print(line, file=self._stream, flush=True)


class _LineHandler(logging.Handler):
    """Prints each log record of the package as a line of a display."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        self._display.say(self.format(record))


def display_for(stream: TextIO | None = None) -> Display:
    """Return what suits stderr, or a stream."""
    console = Console(file=stream or sys.stderr)
    if console.is_terminal:
        return BarDisplay(console)
    return LineDisplay(stream or sys.stderr)
