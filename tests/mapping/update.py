"""Writes what `encounters mapping check` says of each broken file: read it before you keep it."""

import contextlib
import io

from app.cli import main
from tests.mapping.broken import BAD, FILES

if __name__ == "__main__":
    with contextlib.chdir(BAD):
        for file in FILES:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                main(["mapping", "check", file.name])
            text = said.getvalue()
            file.with_suffix(".expected").write_text(text, encoding="utf-8")
