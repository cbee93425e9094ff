"""Keep a copy of stays, their patients and the hospitals in a SQLite file.

    python sync.py copy.sqlite           # what has changed since the last time: often
    python sync.py copy.sqlite --full    # what no time of change shows: every night

The table `resource` has the rows: state is current, invalid (500: the last version that could
be shown), removed (410) or cancelled (404), of which only the id is kept. Needs walk.py beside
it. ../README.md has the settings, the behaviour and the exit codes.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from walk import (
    COMPLETE,
    REFUSED,
    REQUIRED,
    RESTARTS,
    UNAVAILABLE,
    USAGE,
    Answer,
    GonePageError,
    Service,
    Tally,
    WalkError,
    json_of,
)

TYPES = ("Encounter", "Patient", "Organization")
PAGE_SIZE = 100
OVERLAP_SECONDS = 600
"""A transaction may be stored some time after the time of change that it wrote."""

_TABLES = """
CREATE TABLE IF NOT EXISTS resource (
    type TEXT, id TEXT, state TEXT, body TEXT, etag TEXT, walk INTEGER,
    PRIMARY KEY (type, id)
);
CREATE TABLE IF NOT EXISTS watermark (type TEXT PRIMARY KEY, time TEXT);
"""
_UPSERT = """
INSERT INTO resource VALUES (?, ?, 'current', ?, ?, ?) ON CONFLICT (type, id) DO UPDATE
SET state = 'current', body = excluded.body, etag = excluded.etag, walk = excluded.walk
"""
_PATIENTS = """
SELECT id, etag FROM resource WHERE type = 'Patient' AND body IS NOT NULL AND ?
UNION
SELECT reference, NULL FROM (
    SELECT replace(json_extract(body, '$.subject.reference'), 'Patient/', '') AS reference
    FROM resource WHERE type = 'Encounter' AND body IS NOT NULL
) WHERE NOT EXISTS (
    SELECT 1 FROM resource WHERE type = 'Patient' AND id = reference
    AND (body IS NOT NULL OR NOT ?)
)
"""
"""Patients to read: those that stays refer to and the copy lacks; in a full walk, all."""


class Copy:
    """The copy: rows by type and id, and a watermark for each type."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(_TABLES)

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, error: object, *_: object) -> None:
        self._db.execute("ROLLBACK" if error else "COMMIT")

    def store(
        self, kind: str, rows: Iterable[Any], walk: int, etag: str | None = None
    ) -> None:
        """Insert or replace resources."""
        values = [(kind, r["id"], json.dumps(r), etag, walk) for r in rows]
        self._db.executemany(_UPSERT, values)

    def mark(self, kind: str, id: str, state: str) -> None:
        """Set the state of a row; only an invalid one keeps its content."""
        row = (kind, id, state)
        self._db.execute(
            "INSERT OR IGNORE INTO resource (type, id) VALUES (?, ?)", row[:2]
        )
        keeps = state == "invalid"
        update = "SET state = ?, etag = NULL, body = CASE WHEN ? THEN body END"
        where = "WHERE type = ? AND id = ?"
        self._db.execute(f"UPDATE resource {update} {where}", (state, keeps, kind, id))

    def known(self, kind: str, rows: Iterable[Any]) -> list[Any]:
        """Return those of which the copy has a version."""
        query = "SELECT 1 FROM resource WHERE type = ? AND id = ?"
        return [r for r in rows if self._db.execute(query, (kind, r["id"])).fetchone()]

    def unseen(self, kind: str, walk: int) -> list[tuple[str, str | None]]:
        """Return ids and ETags of the rows that a full walk has not returned."""
        query = "SELECT id, etag FROM resource WHERE type = ? AND walk < ?"
        return self._db.execute(
            f"{query} AND body IS NOT NULL", (kind, walk)
        ).fetchall()

    def patients(self, is_full: bool) -> list[tuple[str, str | None]]:
        """Return ids and ETags of the patients to read."""
        return self._db.execute(_PATIENTS, (is_full, is_full)).fetchall()

    def next_walk(self) -> int:
        """Return the number of a new walk."""
        query = "SELECT COALESCE(MAX(walk), 0) + 1 FROM resource"
        return int(self._db.execute(query).fetchone()[0])

    def watermark(self, kind: str) -> datetime | None:
        """Return the time up to which every change is in the copy."""
        query = "SELECT time FROM watermark WHERE type = ?"
        row = self._db.execute(query, (kind,)).fetchone()
        return datetime.fromisoformat(row[0]) if row else None

    def advance(self, kind: str, time: datetime) -> None:
        """Move the watermark of a type forwards."""
        newest = max(time, self.watermark(kind) or time)
        row = (kind, newest.astimezone(UTC).isoformat())
        self._db.execute("INSERT OR REPLACE INTO watermark VALUES (?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


class Sync:
    """One run: brings the copy up to date with the service."""

    def __init__(
        self, service: Service, copy: Copy, *, is_full: bool, page_size: int = PAGE_SIZE
    ) -> None:
        self._service, self._copy, self._is_full = service, copy, is_full
        self._page_size = page_size
        answer = service.send("GET", f"{service.base}/metadata")
        (rest,) = json_of(answer, "CapabilityStatement")["rest"]
        self._begin = server_time(answer)
        self._dated = {
            resource["type"]
            for resource in rest["resource"]
            for parameter in resource.get("searchParam", ())
            if parameter["name"] == "_lastUpdated"
        }

    def run(self, kind: str) -> int:
        """Bring one type up to date and return the exit code."""
        walk = self._copy.next_walk()
        since = self._copy.watermark(kind)
        if kind == "Patient":
            for id, etag in self._copy.patients(self._is_full):
                self._read(kind, id, etag, walk)
            if since is None and self._begin:
                self._copy.advance(kind, self._begin)
            can_search = since is not None and kind in self._dated
            return self._search(kind, walk, since) if can_search else COMPLETE
        if since is not None and not self._is_full:
            return self._search(kind, walk, since)
        code = self._search(kind, walk, None)
        for id, etag in self._copy.unseen(kind, walk):
            self._read(kind, id, etag, walk)
        return code

    def _search(self, kind: str, walk: int, since: datetime | None) -> int:
        """Store what a search returns, page by page; `since` is None for all."""
        form = [("_count", str(self._page_size))]
        if kind in self._dated:
            # What changes during the walk moves to its end and is seen again.
            form.append(("_sort", "_lastUpdated"))
        if since is not None:
            begin = since - timedelta(seconds=OVERLAP_SECONDS)
            form.append(("_lastUpdated", f"ge{begin:%Y-%m-%dT%H:%M:%SZ}"))
        for _ in range(RESTARTS + 1):
            tally = Tally()
            try:
                for page, answer in self._service.pages(kind, form):
                    rows = tally.count(page)
                    with self._copy:
                        self._store(kind, rows, walk, answer)
            except GonePageError:
                continue
            return tally.result()
        raise WalkError(UNAVAILABLE, f"The pages were gone {RESTARTS + 1} times.")

    def _store(self, kind: str, rows: list[Any], walk: int, answer: Answer) -> None:
        """Store a page and, with it, the watermark."""
        stored = self._copy.known(kind, rows) if kind == "Patient" else rows
        self._copy.store(kind, stored, walk)
        changes = [
            r["meta"]["lastUpdated"] for r in rows if "lastUpdated" in r.get("meta", {})
        ]
        if changes and kind in self._dated:
            newest = max(map(datetime.fromisoformat, changes))
            # A row from the future must not hide the changes until then.
            self._copy.advance(kind, min(newest, server_time(answer) or newest))

    def _read(self, kind: str, id: str, etag: str | None, walk: int) -> None:
        """Read one resource again, if it has changed."""
        headers = {"If-None-Match": etag} if etag else {}
        url = f"{self._service.base}/{kind}/{id}"
        answer = self._service.send("GET", url, **headers)
        states = {404: "cancelled", 410: "removed", 500: "invalid"}
        with self._copy:
            if answer.status_code in states:
                self._copy.mark(kind, id, states[answer.status_code])
            elif answer.status_code != 304:
                etag = answer.headers.get("ETag")
                self._copy.store(kind, [json_of(answer, kind)], walk, etag)


def server_time(answer: Answer) -> datetime | None:
    """Return the time of an answer by the service's clock, None if it has no valid one."""
    try:
        time = parsedate_to_datetime(answer.headers.get("Date", ""))
    except ValueError:
        return None
    return time if time.tzinfo else None


def main(arguments: Sequence[str]) -> int:
    """Run the program and return the exit code."""
    path, *rest = arguments or [""]
    kinds = [each for each in rest if each != "--full"]
    missing = [name for name in REQUIRED if not os.environ.get(name)]
    if not path or missing or not set(kinds) <= set(TYPES):
        print("usage: sync.py COPY [--full] [TYPE ...]", *missing, file=sys.stderr)
        return USAGE
    try:
        with closing(Copy(path)) as copy:
            sync = Sync(Service(os.environ), copy, is_full="--full" in rest)
            return max([sync.run(kind) for kind in kinds or TYPES])
    except (WalkError, OSError, sqlite3.Error) as error:
        print(error, file=sys.stderr)
        return error.code if isinstance(error, WalkError) else REFUSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
