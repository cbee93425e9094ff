"""The processes of a service that run: gunicorn's workers, and the one beside them."""

import psutil

from app.operations.endpoints import NAME


def workers_of(master: int) -> list[psutil.Process]:
    """Return the workers."""
    return [child for child in _children(master) if _name(child) not in ("", NAME)]


def beside(master: int) -> list[psutil.Process]:
    """Return the operations process."""
    return [child for child in _children(master) if _name(child) == NAME]


def is_complete(master: int) -> bool:
    """Return whether a service runs with its one worker and the process beside it.

    That process is forked when the worker may answer already, and has its name a
    moment later: until then it passes for a second worker.
    """
    return len(beside(master)) == len(workers_of(master)) == 1


def _children(master: int) -> list[psutil.Process]:
    return psutil.Process(master).children()


def _name(process: psutil.Process) -> str:
    """Return what a process is called, "" for one that has ended."""
    try:
        ended = process.status() == psutil.STATUS_ZOMBIE
        return "" if ended else str(process.name())
    except psutil.NoSuchProcess:
        return ""
