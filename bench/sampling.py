"""What processes hold, sample by sample, and whether it stays flat.

Memory is PSS: what a process shares with others is counted once among them.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

MB = 1024 * 1024

MEMORY_SHARE, MEMORY_FLOOR = 0.10, 4 * MB
"""How much more memory a process may hold at the end: a share, and what is always let be."""

MORE_DESCRIPTORS = 4
MORE_THREADS = 2
"""How many more at the end; connections of clients come and go."""

_WINDOW = 5
"""Of how many samples the median stands for the start, and for the end."""


class Held(NamedTuple):
    """What a process holds at one moment."""

    memory: int
    descriptors: int
    threads: int


class Named(NamedTuple):
    """A process that is watched, and what it is called in the table."""

    name: str
    process: psutil.Process


Sample = Mapping[str, Held]
"""What each process holds, by its name; one that is not there has ended."""


@dataclass(frozen=True, slots=True)
class Course:
    """What one process held after the warm-up and at the end; None where it has ended."""

    name: str
    start: Held
    end: Held | None

    @property
    def faults(self) -> tuple[str, ...]:
        """Say what did not stay flat."""
        if self.end is None:
            return (f"{self.name} has ended",)
        bound = self.start.memory + max(
            MEMORY_FLOOR, int(self.start.memory * MEMORY_SHARE)
        )
        grown = (
            ("memory", self.end.memory > bound),
            (
                "descriptors",
                self.end.descriptors > self.start.descriptors + MORE_DESCRIPTORS,
            ),
            ("threads", self.end.threads > self.start.threads + MORE_THREADS),
        )
        return tuple(f"{what} of {self.name} grew" for what, grew in grown if grew)


def take(processes: Sequence[Named]) -> Sample:
    """Return what each process holds now; those that have ended are left out."""
    found = {}
    for name, process in processes:
        try:
            found[name] = Held(
                process.memory_full_info().pss,
                process.num_fds(),
                process.num_threads(),
            )
        except psutil.NoSuchProcess:
            continue
    return found


def courses(samples: Sequence[Sample], warm: int) -> tuple[Course, ...]:
    """Return the course of each process from sample number `warm` on."""
    first, last = samples[warm : warm + _WINDOW], samples[-_WINDOW:]
    names = dict.fromkeys(name for sample in first for name in sample)
    return tuple(
        Course(
            name,
            _median([sample[name] for sample in first if name in sample]),
            _median([sample[name] for sample in last])
            if all(name in sample for sample in last)
            else None,
        )
        for name in names
    )


def shared_files(directory: Path) -> tuple[int, int]:
    """Return how many files a directory in memory holds, and their bytes."""
    files = [file.stat() for file in directory.rglob("*") if file.is_file()]
    return len(files), sum(file.st_size for file in files)


def _median(held: Sequence[Held]) -> Held:
    return Held(*(int(statistics.median(each)) for each in zip(*held, strict=True)))
