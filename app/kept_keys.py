"""The key set that was fetched last, for processes that begin while the provider is away.

A worker that takes the place of another knows no key: without this it would refuse every
token until the provider answers, beside others that go on with what they have.
"""

import os
from contextlib import suppress
from pathlib import Path

import orjson
from joserfc.jwk import Key


class KeptKeys:
    """A file that the processes of a service share; public keys alone stand in it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def keep(self, keys: tuple[Key, ...]) -> None:
        """Keep what was fetched, where there is room: who has it does without."""
        written = orjson.dumps({"keys": [key.as_dict(private=False) for key in keys]})
        new = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with suppress(OSError):
            new.write_bytes(written)
            new.replace(self._file)

    def kept(self) -> dict[str, object]:
        """Return the key set that was kept, one without keys where none was."""
        with suppress(OSError, orjson.JSONDecodeError):
            found: dict[str, object] = orjson.loads(self._file.read_bytes())
            return found
        return {}
