"""Records what `mapping check` prints of each broken file: read it before you keep it."""

import contextlib
import tempfile
from pathlib import Path

from tests.mapping.broken import SAID, checked, write_all

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_all(Path(folder))
        SAID.write_text("".join(checked().values()), "utf-8")
