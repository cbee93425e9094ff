"""Copy a search into a file, so that each id is in it once, however often it was interrupted.

The rows are collected in `FILE.part`, a SQLite file that also holds the link of the next page.
The file itself appears when all pages are there.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encounters_client.errors import Refused, ResultExpired, Unavailable
from encounters_client.formats import writer_for
from encounters_client.progress import OnProgress, Progress
from encounters_client.resources import Resource

if TYPE_CHECKING:
    from encounters_client.search import Page, Search

RESTARTS = 3

_TABLES = """
CREATE TABLE IF NOT EXISTS resource (id TEXT PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS state (
    search TEXT, next_link TEXT, invalid_rows INTEGER, total INTEGER
);
"""
_UPSERT = """
INSERT INTO resource VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body
"""


@dataclass(frozen=True)
class CopyReport:
    """What a copy holds: different ids, matches that cannot be shown, and the total."""

    ids: int
    invalid_rows: int
    total: int | None

    @property
    def is_complete(self) -> bool:
        """Whether ids and invalid rows together are the total, where the service counted."""
        return self.total in (None, self.ids + self.invalid_rows)


class PartFile:
    """The rows of a copy so far, and where it continues."""

    def __init__(self, path: Path, search: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        # A page is stored without waiting for the disk, and a crash corrupts nothing.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_TABLES)
        self._search = search
        row = self._db.execute("SELECT search, next_link FROM state").fetchone()
        if row is None or row[0] != search or row[1] is None:
            self.clear()

    def clear(self) -> None:
        """Begin again."""
        with self._db:
            self._db.execute("BEGIN")
            self._db.execute("DELETE FROM resource")
            self._db.execute("DELETE FROM state")
            begin = (self._search, None, 0, None)
            self._db.execute("INSERT INTO state VALUES (?, ?, ?, ?)", begin)

    def next_link(self) -> str | None:
        """Return the link to continue with, None at the beginning."""
        query = "SELECT next_link FROM state"
        link: str | None = self._db.execute(query).fetchone()[0]
        return link

    def add(self, page: "Page[Any]") -> None:
        """Add the rows of a page and where it leads, both or neither."""
        rows = [(item.id, json.dumps(item.raw)) for item in page.resources]
        with self._db:
            self._db.execute("BEGIN")
            self._db.executemany(_UPSERT, rows)
            self._db.execute(
                "UPDATE state SET next_link = ?, total = ?,"
                " invalid_rows = invalid_rows + ?",
                (page.next_link, page.total, page.invalid_rows),
            )

    def report(self) -> CopyReport:
        """Return the numbers so far."""
        (ids,) = self._db.execute("SELECT COUNT(*) FROM resource").fetchone()
        query = "SELECT invalid_rows, total FROM state"
        return CopyReport(ids, *self._db.execute(query).fetchone())

    def resources(self, kind: type[Resource]) -> Iterator[Resource]:
        """Yield the rows in the order in which their ids came."""
        for (body,) in self._db.execute("SELECT body FROM resource ORDER BY rowid"):
            yield kind(json.loads(body))

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def copy_search(
    search: "Search[Any]", path: Path, *, on_progress: OnProgress | None = None
) -> CopyReport:
    """Write all matches of a search to a file whose suffix names the format."""
    write = writer_for(path)
    part_path = path.with_name(f"{path.name}.part")
    try:
        with closing(PartFile(part_path, _key(search))) as part:
            _collect(search, part, on_progress)
            report = part.report()
            new = path.with_name(f"{path.name}.new")
            try:
                write(new, search.kind, part.resources(search.kind))
                new.replace(path)
            finally:
                new.unlink(missing_ok=True)
    except Refused:
        # It would be refused again.
        part_path.unlink(missing_ok=True)
        raise
    part_path.unlink()
    return report


def _collect(
    search: "Search[Any]", part: PartFile, on_progress: OnProgress | None
) -> None:
    """Collect the rows of all pages; begin again if they expire."""
    for _ in range(RESTARTS + 1):
        rows = part.report().ids
        try:
            for page in search.pages(resume=part.next_link()):
                part.add(page)
                rows += len(page.resources)
                if on_progress is not None:
                    kind = search.kind.__name__
                    on_progress(Progress(kind, rows, total=page.total))
        except ResultExpired:
            part.clear()
        else:
            return
    raise Unavailable(f"The pages expired {RESTARTS + 1} times: try again later.")


def _key(search: "Search[Any]") -> str:
    """Return what makes two searches one: service, client, type and parameters."""
    transport = search.transport
    parts = [
        transport.base,
        transport.credentials.client_id,
        search.kind.__name__,
        *search.form,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
