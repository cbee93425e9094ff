"""`/metrics`: what all processes of the service have counted, added up.

The counts of a process that has ended are added to those of process 0, which never was, so
that they go on counting without a file each.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from app.operations.counts import RoomyDict

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ADDED = ("counter", "histogram")
"""What goes on counting when its process has ended; a gauge ends with it."""


_TRIES = 100
"""How often the files are listed anew when one of them has gone before it was read."""


class _Counts(MultiProcessCollector):
    """The counts of processes of which some begin or end while they are read."""

    def collect(self) -> Iterable[Metric]:
        """Return them; a file that is empty yet holds none."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return self._begun()
        return self._begun()

    def _begun(self) -> Iterable[Metric]:
        files = (Path(self._path) / name for name in os.listdir(self._path))
        begun = [str(each) for each in files if each.stat().st_size]
        counts: Iterable[Metric] = self.merge(begun)  # type: ignore[no-untyped-call]
        return counts


class Scraper:
    """Reads the counts of a directory; one process does, its threads may share it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._one = Lock()

    def text(self) -> bytes:
        """Return all counts, as Prometheus reads them."""
        with self._one:
            return generate_latest(self._registry())

    def sources_held_back(self) -> tuple[str, ...]:
        """Return the sources that a process leaves alone at present."""
        with self._one:
            metrics = tuple(self._registry().collect())
        return tuple(
            sorted(
                sample.labels["source"]
                for metric in metrics
                for sample in metric.samples
                if sample.name == "encounters_source_held_back" and sample.value
            )
        )

    def _registry(self) -> CollectorRegistry:
        self._add_up()
        registry = CollectorRegistry()
        _Counts(registry, str(self._directory))  # type: ignore[no-untyped-call]
        return registry

    def _add_up(self) -> None:
        for pid in set(self._processes()):
            if _has_ended(pid):
                for kind in _ADDED:
                    self._add(kind, pid)
                mark_process_dead(pid, str(self._directory))  # type: ignore[no-untyped-call]

    def _processes(self) -> Iterator[int]:
        for file in self._directory.glob("*_*.db"):
            if pid := int(file.stem.rpartition("_")[2]):
                yield pid

    def _add(self, kind: str, pid: int) -> None:
        own = self._directory / f"{kind}_{pid}.db"
        if not own.is_file():
            return
        if not own.stat().st_size:
            own.unlink()
            return
        total = RoomyDict(self._directory / f"{kind}_0.db")
        if not total.has_room_for(own.stat().st_size):
            # Where it is, it counts too; another time there may be room.
            total.close()  # type: ignore[no-untyped-call]
            return
        values = MmapedDict.read_all_values_from_file(own)  # type: ignore[no-untyped-call]
        for key, value, told, _ in values:
            before, _ = total.read_value(key)  # type: ignore[no-untyped-call]
            total.write_value(key, before + value, told)  # type: ignore[no-untyped-call]
        total.close()  # type: ignore[no-untyped-call]
        own.unlink()


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
