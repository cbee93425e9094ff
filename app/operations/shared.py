"""The directory that the processes of one service share, from its start to its end.

It holds the mapping that is served, what is said of one that was refused, and the counts
for `/metrics`: nothing of patients, and no secret. `encounters serve` makes it; the processes
that it becomes find it in their environment.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from adapters.mapping.kept import SUFFIX
from app.setting_table import PREFIX

MEMORY = Path("/dev/shm")  # noqa: S108 - in a directory of our own, that only we may read

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
        """Make the directory, in memory where the machine lets us."""
        # Counts on a disk that stalls would hold up the answers.
        within = MEMORY if os.access(MEMORY, os.W_OK) else None
        shared = cls(Path(tempfile.mkdtemp(prefix="encounters-", dir=within)), file)
        shared.counts.mkdir()
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
        (self.directory / "file").write_text(str(self.file), "utf-8")
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
    def refused(self) -> Path:
        """What is wrong with the last one that was refused, a line each."""
        return self.directory / "refused"
