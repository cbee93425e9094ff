"""Bring a store up to date with the service."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

from encounters_client.copying import RESTARTS
from encounters_client.errors import ResultExpired, Unavailable
from encounters_client.progress import OnProgress, Progress
from encounters_client.resources import Encounter, Organization, Patient, Resource
from encounters_client.search import Page, Search
from encounters_client.store import CANCELLED, INVALID, REMOVED, Store
from encounters_client.transport import Transport

PAGE_SIZE = 100
OVERLAP_SECONDS = 600
"""A transaction may be stored some time after the time of change that it wrote."""

KINDS: Mapping[str, type[Resource]] = {
    kind.__name__: kind for kind in (Encounter, Patient, Organization)
}
_IDS_OF_A_SEARCH = 10
"""So many values `_id` may have."""

_STATES = {404: CANCELLED, 410: REMOVED, 500: INVALID}


@dataclass(frozen=True)
class SyncReport:
    """Rows of each type that were stored, and the types whose search was not complete."""

    rows: Mapping[str, int]
    incomplete: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every search returned as many rows as the service counted."""
        return not self.incomplete


class Sync:
    """One run over a store."""

    def __init__(
        self,
        transport: Transport,
        store: Store,
        *,
        full: bool,
        page_size: int = PAGE_SIZE,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._transport = transport
        self._store = store
        self._is_full = full
        self._page_size = page_size
        self._on_progress = on_progress
        self._rows: dict[str, int] = {}
        answer = transport.get(f"{transport.base}/metadata")
        self._begin = answer.server_time()
        self._parameters = _parameters(answer.resource("CapabilityStatement"))

    def run(self, kinds: Iterable[str]) -> SyncReport:
        """Bring some types up to date. Raises Refused, Unavailable."""
        incomplete = tuple(kind for kind in kinds if not self._run(KINDS[kind]))
        return SyncReport(rows=self._rows, incomplete=incomplete)

    def _run(self, kind: type[Resource]) -> bool:
        """Bring a type up to date; return whether its search was complete."""
        run = self._store.next_run()
        since = self._store.watermark(kind.__name__)
        if kind is Patient:
            return self._run_patients(run, since)
        if since is not None and not self._is_full:
            return self._search(kind, run, since)
        is_complete = self._search(kind, run, None)
        for id in self._store.older(kind.__name__, run=run):
            self._read(kind, id, run)
        return is_complete

    def _run_patients(self, run: int, since: datetime | None) -> bool:
        """Read the patients of stays that are new, in a full run all; then what has changed."""
        ids = [*self._store.missing_patients(retry=self._is_full)]
        if self._is_full:
            ids += self._store.older("Patient", run=run)
        self._read_patients(ids, run)
        if since is None:
            if self._begin is not None:
                self._advance("Patient", self._begin)
            return True
        if not self._is_dated(Patient):
            return True
        return self._search(Patient, run, since)

    def _search(self, kind: type[Resource], run: int, since: datetime | None) -> bool:
        """Store what a search returns, page by page; `since` is None for all."""
        form = [("_count", str(self._page_size))]
        if self._is_dated(kind):
            # What changes during the run moves to its end and is returned again.
            form.append(("_sort", "_lastUpdated"))
        if since is not None:
            begin = since - timedelta(seconds=OVERLAP_SECONDS)
            text = begin.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            form.append(("_lastUpdated", f"ge{text}"))
        for _ in range(RESTARTS + 1):
            search = Search(self._transport, kind, form)
            ids = _DistinctIds()
            rows = 0
            try:
                for page in search.pages():
                    ids.add(page.resources)
                    with self._store.transaction():
                        self._store_page(kind, page, run)
                    rows += len(page.resources)
                    self._show(kind.__name__, rows, total=page.total)
            except ResultExpired:
                continue
            return search.is_complete(ids.count())
        raise Unavailable(f"The pages expired {RESTARTS + 1} times: try again later.")

    def _store_page(self, kind: type[Resource], page: Page[Any], run: int) -> None:
        """Store a page and, with it, the watermark."""
        name = kind.__name__
        rows: Sequence[Resource] = page.resources
        if kind is Patient:
            # Patients without a stay in the store are none of its concern.
            known = self._store.known(name, [row.id for row in rows])
            rows = [row for row in rows if row.id in known]
        self._store.put(name, rows, run=run)
        self._rows[name] = self._rows.get(name, 0) + len(rows)
        changes = [row.last_updated for row in page.resources if row.last_updated]
        if changes and self._is_dated(kind):
            newest = max(changes)
            # A row from the future must not hide the changes until then.
            self._advance(name, min(newest, page.server_time or newest))

    def _read_patients(self, ids: Sequence[str], run: int) -> None:
        """Read patients, ten with a request where the deployment can."""
        if "_id" not in self._parameters.get("Patient", ()):
            for id in ids:
                self._read(Patient, id, run)
            return
        remaining = iter(ids)
        read = 0
        while batch := list(islice(remaining, _IDS_OF_A_SEARCH)):
            form = [("_id", ",".join(batch)), ("_count", str(_IDS_OF_A_SEARCH))]
            page = next(Search(self._transport, Patient, form).pages())
            with self._store.transaction():
                self._store.put("Patient", page.resources, run=run)
            self._rows["Patient"] = self._rows.get("Patient", 0) + len(page.resources)
            returned = {patient.id for patient in page.resources}
            for id in batch:
                # Why a patient is missing, only a read says.
                if id not in returned:
                    self._read(Patient, id, run)
            read += len(batch)
            self._show("Patient", read, total=len(ids))

    def _read(self, kind: type[Resource], id: str, run: int) -> None:
        """Read one resource again: it is current, or its status says what it is."""
        name = kind.__name__
        answer = self._transport.read(name, id)
        with self._store.transaction():
            if answer.status in _STATES:
                self._store.mark(name, id, _STATES[answer.status])
            else:
                self._store.put(name, [kind(answer.resource(name))], run=run)

    def _advance(self, kind: str, time: datetime) -> None:
        """Move the watermark of a type forwards."""
        watermark = self._store.watermark(kind)
        if watermark is None or time > watermark:
            self._store.set_watermark(kind, time)

    def _is_dated(self, kind: type[Resource]) -> bool:
        return "_lastUpdated" in self._parameters.get(kind.__name__, ())

    def _show(self, kind: str, rows: int, *, total: int | None) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(kind, rows, total=total))


class _DistinctIds:
    """Counts different ids, on disk: the memory does not grow with the search."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("")
        self._db.execute("CREATE TABLE id (id TEXT PRIMARY KEY) WITHOUT ROWID")

    def add(self, resources: Iterable[Resource]) -> None:
        ids = [(resource.id,) for resource in resources]
        self._db.executemany("INSERT OR IGNORE INTO id VALUES (?)", ids)

    def count(self) -> int:
        """Return the number of ids. The last call."""
        (ids,) = self._db.execute("SELECT COUNT(*) FROM id").fetchone()
        self._db.close()
        return int(ids)


def _parameters(statement: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    """Return the search parameters of each type that a CapabilityStatement lists."""
    return {
        resource["type"]: frozenset(
            parameter["name"] for parameter in resource.get("searchParam", ())
        )
        for rest in statement["rest"]
        for resource in rest["resource"]
    }
