"""A mapping kept as it was read: its file, those that it extends, its profile.

What a service was started with stays what it runs on, whatever happens to the files. A
kept mapping is read under the names of its files, so that every place in a problem or a log
line is that of the file that a person mends.
"""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import orjson

Reader: TypeAlias = Callable[[Path], bytes]
"""Returns what a file holds; raises OSError."""

SUFFIX = ".kept"
"""How the name of a kept mapping ends."""


def from_disk(path: Path) -> bytes:
    """Return what a file holds."""
    return path.read_bytes()


def is_there(path: Path, read: Reader) -> bool:
    """Tell whether there is a file to be read."""
    try:
        read(path)
    except OSError:
        return False
    return True


class Recorder:
    """Reads files from disk and remembers what they held."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def __call__(self, path: Path) -> bytes:
        """Return what a file holds."""
        self.files[str(path)] = held = from_disk(path)
        return held


def write_kept(place: Path, mapping: Path, files: Mapping[str, bytes]) -> None:
    """Write a kept mapping to `place`, whole or not at all, as old as its own file."""
    texts = {name: held.decode("utf-8") for name, held in files.items()}
    written = place.with_name(f"{place.name}.new")
    written.write_bytes(orjson.dumps({"mapping": str(mapping), "files": texts}))
    changed = mapping.stat().st_mtime
    os.utime(written, (changed, changed))
    written.replace(place)


def open_kept(held: bytes) -> tuple[Path, Reader]:
    """Return where a kept mapping stood and what reads its files: it holds them itself."""
    kept: dict[str, Any] = orjson.loads(held)
    files: dict[str, bytes] = {
        name: text.encode("utf-8") for name, text in kept["files"].items()
    }

    def read(asked: Path) -> bytes:
        if str(asked) not in files:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(asked))
        return files[str(asked)]

    return Path(kept["mapping"]), read
