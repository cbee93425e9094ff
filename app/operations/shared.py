"""The directory that the processes of one service share, from its start to its end.

It holds the mapping that is served, what is said of one that was refused, the provider's
public keys, and the counts for `/metrics`: nothing of patients, and no secret. `encounters
serve` makes it; the processes that it becomes find it in their environment. They hold it
locked as long as one of them lives: what a service that was killed has left, the next start
takes away.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from adapters.mapping.kept import SUFFIX
from app.setting_kinds import PREFIX

MEMORY = Path("/dev/shm")  # noqa: S108 - in a directory of our own, that only we may read

_BEGINS = "encounters-run-"
_DIRECTORY = f"{PREFIX}SHARED_DIRECTORY"
_MAPPING = f"{PREFIX}MAPPING"
_COUNTS = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True, slots=True)
class Shared:
    """The directory; `file` is the mapping file that the operator named."""

    directory: Path
    file: Path

    @classmethod
    def made(cls, file: Path) -> Self:
        """Make the directory, in memory where the machine lets us. Raises OSError."""
        # Counts on a disk that stalls would hold up the answers.
        within = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
        _clear(within)
        hidden = Path(tempfile.mkdtemp(prefix=f".{_BEGINS}", dir=within))
        # Locked before it can be taken for one that was left.
        os.set_inheritable(_lock(hidden), True)
        shared = cls(hidden.rename(hidden.with_name(hidden.name[1:])), file)
        shared.counts.mkdir()
        (shared.directory / "file").write_text(str(file), "utf-8")
        return shared

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self | None:
        """Return the directory that `told` told of, None where there is none."""
        told = environ.get(_DIRECTORY)
        if not told:
            return None
        return cls(Path(told), Path((Path(told) / "file").read_text("utf-8")))

    def tell(self, environ: MutableMapping[str, str]) -> None:
        """Let the processes to come find it, and serve the mapping that is kept here."""
        environ[_DIRECTORY] = str(self.directory)
        environ[_MAPPING] = str(self.mapping)
        environ[_COUNTS] = str(self.counts)

    def remove(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def counts(self) -> Path:
        """Where each process counts."""
        return self.directory / "counts"

    @property
    def mapping(self) -> Path:
        """The mapping that is served, kept."""
        return self.directory / f"mapping{SUFFIX}"

    @property
    def candidate(self) -> Path:
        """The one that is being checked."""
        return self.directory / f"candidate{SUFFIX}"

    @property
    def keys(self) -> Path:
        """The public keys of the identity provider, as they were fetched last."""
        return self.directory / "keys"

    @property
    def refused(self) -> Path:
        """What is wrong with the last one that was refused, a line each."""
        return self.directory / "refused"


def _clear(within: Path) -> None:
    """Take away what services have left that ended without taking it away."""
    for left in within.glob(f"{_BEGINS}*"):
        # Another's, or one that a service that runs holds, or that has just gone.
        with suppress(OSError):
            held = _lock(left)
            try:
                shutil.rmtree(left)
            finally:
                os.close(held)


def _lock(directory: Path) -> int:
    """Lock a directory for as long as the returned descriptor is open anywhere."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
