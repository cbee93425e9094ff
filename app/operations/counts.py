"""The files that processes count in: their room is taken before it is written to.

The library maps files into memory that have no room yet. In a directory that is full, as
/dev/shm may be, the kernel then ends whoever writes there (SIGBUS): each worker, at its
first request. Here room is asked for first; without any, a process counts where nobody
reads it, and answers.
"""

import logging
import mmap
import os
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

_BEGIN_BYTES = 65536
_BESIDE_BYTES = 32
"""What an entry takes besides its key, at most."""

# macOS has no such call, nor a service that anybody relies on.
_take = getattr(os, "posix_fallocate", None)

_log = logging.getLogger(__name__)


class RoomyDict(MmapedDict):
    """A file of counts with all its room; `is_kept` is whether others can read it."""

    def __init__(self, filename: str | Path, read_mode: bool = False) -> None:
        self.is_kept = read_mode or _begun(filename)
        name = filename if self.is_kept else _elsewhere()
        super().__init__(name, read_mode)  # type: ignore[no-untyped-call]

    def has_room_for(self, more: int) -> bool:
        """Take the room for so many bytes more, and return whether there is any."""
        size: int = self._capacity
        while self._used + more > size:
            size *= 2
        return self.is_kept and _taken(self._f.fileno(), size)

    # The library's own: where it writes a count for the first time, and may let the file
    # grow, to twice its size.

    def _init_value(self, key: str) -> None:
        more = len(key.encode()) + _BESIDE_BYTES
        if self.is_kept and not self.has_room_for(more):
            self._move()
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def _move(self) -> None:
        """Go on where there is room; what was counted so far stays where it was, too."""
        file = open(_elsewhere(), "a+b")  # noqa: SIM115 - as long as it is counted in
        file.write(self._m[:])
        file.flush()
        self._m.close()
        self._f.close()
        self._f, self._m = file, mmap.mmap(file.fileno(), self._capacity)
        self.is_kept = False


def _begun(filename: str | Path) -> bool:
    try:
        file = os.open(filename, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        _tell(error)
        return False
    try:
        return _taken(file, max(os.fstat(file).st_size, _BEGIN_BYTES))
    finally:
        os.close(file)


def _taken(file: int, size: int) -> bool:
    try:
        if _take:
            _take(file, 0, size)
    except OSError as error:
        _tell(error)
        return False
    return True


def _tell(error: OSError) -> None:
    data = {"reason": error.strerror}
    _log.error("no room for counts: they are not told", extra={"data": data})


def _elsewhere() -> str:
    """Return a name for memory of this process alone."""
    return f"/proc/self/fd/{os.memfd_create('counts')}"
