"""Write the generated parts of the pages anew: `python -m tests.docs.update`.

`python -m tests.docs.update tables` leaves out the guide. What a command claims to be
answered is left alone: a person looks at that.
"""

import sys
import tempfile
from pathlib import Path

from tests.docs.following import follow
from tests.docs.pages import GUIDE, rewritten
from tests.docs.tables import TABLES

STOPPED = "The service stopped by itself"


def main() -> None:
    """Write them."""
    for file, name, part in TABLES:
        page = rewritten(file.read_text("utf-8"), name, part())
        file.write_text(page, "utf-8")
    if sys.argv[1:] == ["tables"]:
        return
    with tempfile.TemporaryDirectory() as directory:
        typed = follow(GUIDE, Path(directory))
    for page, block, shown, was in typed:
        if STOPPED in was and STOPPED not in shown:
            place = f"{page}:{block.line}"
            sys.exit(f"{place}: the service did not start, nothing is written")
    # From the last block on: lines before it stay where they are.
    for page, block, shown, was in reversed(typed):
        lines = page.read_text("utf-8").splitlines(keepends=True)
        first = block.line - 1
        lines[first : first + shown.count("\n")] = [was]
        page.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
