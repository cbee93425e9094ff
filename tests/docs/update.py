"""Write the generated parts of the pages anew: `python -m tests.docs.update`.

`python -m tests.docs.update tables` leaves out the guide. What a command claims to be
answered is left alone: a person looks at that.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import report
from tests.docs import generated, key_tables
from tests.docs.following import Typed, follow
from tests.docs.pages import BRING, CALL, GUIDE, RUN, rewritten

TABLES: tuple[tuple[Path, str, Callable[[], str]], ...] = (
    (BRING / "keys.md", "parameters", generated.compared),
    (CALL / "search.md", "patients", generated.patients),
    (CALL / "limits.md", "groups", generated.groups),
    *(
        (BRING / f"{table.page}.md", name, partial(key_tables.keys, name))
        for name, table in key_tables.KEYS.items()
    ),
)
"""The tables of search parameters and of keys, with the page of each."""

PARTS: tuple[tuple[Path, str, Callable[[], str]], ...] = (
    (RUN / "settings.md", "settings", generated.settings_table),
    (RUN / "capacity.md", "capacity", report.served),
)
"""The generated parts of docs/run."""

STOPPED = "The service stopped by itself"


def main() -> None:
    """Write them."""
    for file, name, part in (*TABLES, *PARTS):
        page = rewritten(file.read_text("utf-8"), name, part())
        file.write_text(page, "utf-8")
    if sys.argv[1:] == ["tables"]:
        return
    with tempfile.TemporaryDirectory() as directory:
        typed = follow(GUIDE, Path(directory))
    broken = [t for t in typed if STOPPED in t.was and STOPPED not in t.shown]
    if broken:
        place = f"{broken[0].page}:{broken[0].block.line}"
        sys.exit(f"{place}: the service did not start, nothing is written")
    for page in GUIDE:
        of_page = [t for t in typed if t.page == page]
        page.write_text(retyped(page.read_text("utf-8"), of_page), "utf-8")


def retyped(page: str, typed: list[Typed]) -> str:
    """Return a page whose console blocks hold what was really printed."""
    lines = page.splitlines(keepends=True)
    for _, block, shown, was in reversed(typed):
        first = block.line - 1
        lines[first : first + shown.count("\n")] = [was]
    return "".join(lines)


if __name__ == "__main__":
    main()
