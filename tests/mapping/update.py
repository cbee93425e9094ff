"""Writes what `encounters mapping check` says of each broken file: read it before you keep it."""

import contextlib
import io
import tempfile
from pathlib import Path
from textwrap import indent

from app.cli import main
from tests.mapping.broken import FILES, TABLE, write_all

if __name__ == "__main__":
    text = TABLE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_all(Path(folder))
        for name, file in FILES.items():
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                main(["mapping", "check", f"{name}.yaml"])
            entry = text.index(f"\n  {name}:\n")
            old, new = (
                indent(each, " " * 6) for each in (file["says"], said.getvalue())
            )
            text = text[:entry] + text[entry:].replace(old, new, 1)
    TABLE.write_text(text, "utf-8")
