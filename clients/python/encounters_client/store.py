"""Where `sync` keeps resources: what it needs of a store, and a store in a SQLite file."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from encounters_client.resources import Resource

CURRENT, INVALID, REMOVED, CANCELLED = "current", "invalid", "removed", "cancelled"


class Store(Protocol):
    """Rows by type and id, each with a state, and a watermark for each type.

    A row is current, or invalid (500 on read: the last version that could be shown), removed
    (410) or cancelled (404), of which only the id remains. `run` numbers the runs of `sync`.
    """

    def transaction(self) -> AbstractContextManager[object]:
        """Return a block whose changes are stored together, none of them if it raises."""

    def next_run(self) -> int:
        """Return a number that is greater than that of every row."""

    def put(self, kind: str, resources: Sequence[Resource], *, run: int) -> None:
        """Insert or replace resources: they are current, and of this run."""

    def mark(self, kind: str, id: str, state: str) -> None:
        """Set the state of a row, which may be new; only an invalid one keeps its content."""

    def known(self, kind: str, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that have a row, in any state."""

    def older(self, kind: str, *, run: int) -> Sequence[str]:
        """Return the ids of rows with content that are of earlier runs."""

    def missing_patients(self, *, retry: bool) -> Sequence[str]:
        """Return the ids of patients that stays refer to and that have no row.

        With `retry` also those whose row has no content.
        """

    def watermark(self, kind: str) -> datetime | None:
        """Return the time up to which every change is in the store, None at first."""

    def set_watermark(self, kind: str, time: datetime) -> None:
        """Store the time up to which every change is in the store."""


_TABLES = """
CREATE TABLE IF NOT EXISTS resource (
    type TEXT, id TEXT, state TEXT, body TEXT, run INTEGER, PRIMARY KEY (type, id)
);
CREATE INDEX IF NOT EXISTS resource_run ON resource (run);
CREATE TABLE IF NOT EXISTS watermark (type TEXT PRIMARY KEY, time TEXT);
"""
_UPSERT = """
INSERT INTO resource VALUES (?, ?, 'current', ?, ?) ON CONFLICT (type, id) DO UPDATE
SET state = 'current', body = excluded.body, run = excluded.run
"""
_MARK = """
INSERT INTO resource (type, id, state) VALUES (?, ?, ?) ON CONFLICT (type, id) DO UPDATE
SET state = excluded.state,
    body = CASE WHEN excluded.state = 'invalid' THEN resource.body END
"""
_MISSING_PATIENTS = """
SELECT id FROM (
    SELECT DISTINCT
        replace(json_extract(body, '$.subject.reference'), 'Patient/', '') AS id
    FROM resource WHERE type = 'Encounter' AND body IS NOT NULL
) AS referenced
WHERE id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM resource WHERE type = 'Patient' AND id = referenced.id
    AND (body IS NOT NULL OR NOT ?)
)
"""


class SqliteStore:
    """A store in a SQLite file: the tables `resource` and `watermark`."""

    def __init__(self, path: str | Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(_TABLES)

    def __enter__(self) -> "SqliteStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Return a block whose changes are stored together, none of them if it raises."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield

    def next_run(self) -> int:
        """Return a number that is greater than that of every row."""
        query = "SELECT COALESCE(MAX(run), 0) + 1 FROM resource"
        return int(self._db.execute(query).fetchone()[0])

    def put(self, kind: str, resources: Sequence[Resource], *, run: int) -> None:
        """Insert or replace resources: they are current, and of this run."""
        values = [(kind, row.id, json.dumps(row.raw), run) for row in resources]
        self._db.executemany(_UPSERT, values)

    def mark(self, kind: str, id: str, state: str) -> None:
        """Set the state of a row, which may be new; only an invalid one keeps its content."""
        self._db.execute(_MARK, (kind, id, state))

    def known(self, kind: str, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that have a row, in any state."""
        places = ", ".join("?" for _ in ids)
        query = f"SELECT id FROM resource WHERE type = ? AND id IN ({places})"
        return {id for (id,) in self._db.execute(query, (kind, *ids))}

    def older(self, kind: str, *, run: int) -> Sequence[str]:
        """Return the ids of rows with content that are of earlier runs."""
        query = (
            "SELECT id FROM resource WHERE type = ? AND run < ? AND body IS NOT NULL"
        )
        return [id for (id,) in self._db.execute(query, (kind, run))]

    def missing_patients(self, *, retry: bool) -> Sequence[str]:
        """Return the ids of patients that stays refer to and that have no row.

        With `retry` also those whose row has no content.
        """
        return [id for (id,) in self._db.execute(_MISSING_PATIENTS, (retry,))]

    def watermark(self, kind: str) -> datetime | None:
        """Return the time up to which every change is in the store, None at first."""
        query = "SELECT time FROM watermark WHERE type = ?"
        row = self._db.execute(query, (kind,)).fetchone()
        return datetime.fromisoformat(row[0]) if row else None

    def set_watermark(self, kind: str, time: datetime) -> None:
        """Store the time up to which every change is in the store."""
        row = (kind, time.astimezone(timezone.utc).isoformat())
        self._db.execute("INSERT OR REPLACE INTO watermark VALUES (?, ?)", row)
