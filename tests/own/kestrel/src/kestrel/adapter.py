"""Kestrel keeps visits in one file, times as microseconds since 1970."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from adapters.contract import (
    Capabilities,
    EncounterRecord,
    GoneError,
    Group,
    Key,
    NotFoundError,
    Page,
    ParameterCapability,
    Position,
    Problem,
    Record,
    ResourceCapabilities,
    ResourceType,
    RowFault,
    SearchQuery,
    SortKey,
    SourceDataError,
    SourceUnavailableError,
)
from adapters.mapping.model import SourceMapping
from kestrel.questions import KEYS, conditions, place
from kestrel.visits import COLUMNS, record

OFFERED = ("_id", "patient", "date", "status")


class KestrelAdapter:
    """A Kestrel file, seen as stays to search and read."""

    def __init__(self, mapping: SourceMapping) -> None:
        file = mapping.source.options.get("file")
        if not file:
            raise SourceDataError("options: {file: …} must name the file of Kestrel")
        self._mapping = mapping
        self._url = f"file:{file}?mode=ro"

    @property
    def capabilities(self) -> Capabilities:
        """Stays by id, patient, date and status, by date and by last change."""
        parameters = dict.fromkeys(OFFERED, ParameterCapability())
        sorts = (SortKey.DATE, SortKey.LAST_UPDATED)
        stays = ResourceCapabilities(parameters, sorts, keyset=True)
        return {ResourceType.ENCOUNTER: stays}

    @property
    def fingerprint(self) -> str:
        """Change the number when the order or the meaning of a search changes."""
        return f"{self._mapping.fingerprint}-1"

    def search(self, query: SearchQuery) -> Page:
        """Return a page of visits."""
        sql, values = self._statement(query)
        rows = self._rows(sql, [*values, query.count + 1])
        shown = rows[: query.count]
        if query.backwards:
            shown.reverse()
        if not shown:
            return Page(())
        key = KEYS[query.sort.key]
        places = [_position(row[COLUMNS.index(key)], row[0]) for row in shown]
        found = tuple(record(row, self._mapping) for row in shown)
        return Page(found, len(rows) > query.count, places[0], places[-1])

    def count(self, query: SearchQuery) -> int:
        """Return how many visits match."""
        where, values = conditions(query)
        ((number,),) = self._rows(f"SELECT count(*) FROM visits WHERE {where}", values)
        return int(number)

    def read(self, resource_type: ResourceType, id: str) -> Record:
        """Return one visit."""
        sql = f"SELECT {', '.join(COLUMNS)} FROM visits WHERE CAST(visit AS TEXT) = ?"
        rows = self._rows(sql, [id]) if id.isprintable() else []
        if not rows or rows[0][2] == "A":
            raise NotFoundError("no such visit")
        if rows[0][2] == "X":
            raise GoneError("that visit was cancelled")
        found = record(rows[0], self._mapping)
        if isinstance(found, RowFault):
            raise SourceDataError("a visit cannot be read", found)
        assert isinstance(found, EncounterRecord)
        return found

    def explain(self, query: SearchQuery) -> str:
        """Return the statement of a page."""
        return self._statement(query)[0]

    def check(self) -> Iterable[Problem]:
        """Tell whether the file is there."""
        try:
            self._rows("SELECT 1 FROM visits LIMIT 1", [])
        except SourceUnavailableError as error:
            yield Problem(str(error), outage=True)

    def close(self) -> None:
        """Each question opens the file anew."""

    def _statement(self, query: SearchQuery) -> tuple[str, list[object]]:
        where, values = conditions(query)
        beyond, order, marks = place(query)
        sql = (
            f"SELECT {', '.join(COLUMNS)} FROM visits WHERE {where} AND {beyond} "
            f"ORDER BY {order} LIMIT ?"
        )
        return sql, [*values, *marks]

    def _rows(self, sql: str, values: list[object]) -> list[tuple[Any, ...]]:
        seconds = self._mapping.source.timeout_seconds
        try:
            connection = sqlite3.connect(self._url, uri=True, timeout=seconds)
            try:
                return connection.execute(sql, values).fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise SourceUnavailableError(
                "the file of Kestrel cannot be read"
            ) from error


def _position(key: Key, id: Key) -> Position:
    return Position(Group.UNKEYED if key is None else Group.KEYED, key, id)
