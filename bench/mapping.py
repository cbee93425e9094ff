"""Mapping alone: 100 rows of the hospital to the bytes of a page, ours and hand-written.

In one process, without web, database or store: CPU, not time.
"""

import gc
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson
import psycopg

from adapters.contract import ResourceType
from adapters.mapping.apply import NO_EXTRAS, RowMapper
from adapters.mapping.load import load_mapping
from app.schemas.bundle import Link, searchset
from app.schemas.resources import resource_entries, resource_schemas
from app.schemas.summary import Summary
from bench.cluster import Database
from bench.contenders import BASE_URL, ROOT
from bench.handwritten import COLUMNS, bundle

ROWS = 100
_ROUNDS, _TIMES = 41, 8


@dataclass(frozen=True, slots=True)
class Mapped:
    """Microseconds of CPU for a page."""

    ours: float
    handwritten: float

    @property
    def ratio(self) -> float:
        """Return ours to the hand-written."""
        return self.ours / self.handwritten


def measure(database: Database, unit: str) -> Mapped:
    """Map one page of a unit both ways, in turn, many times; the medians."""
    statement = (
        f"SELECT {COLUMNS} FROM sejour WHERE uf_courante = %s AND date_entree IS NOT NULL"
        " AND etat IN ('P','PA','E','EC','R','S','T','F')"
        f" ORDER BY date_entree DESC, sejour_id DESC LIMIT {ROWS}"
    )
    with psycopg.connect(database.libpq) as connection:
        rows = connection.execute(statement.encode(), (unit,)).fetchall()
    mapping = load_mapping(
        ROOT / "mappings/demo/demo.yaml", {**os.environ, "PAS_URL": database.sqlalchemy}
    )
    columns = COLUMNS.split(", ")
    mapper = RowMapper(mapping.resources[ResourceType.ENCOUNTER], columns)
    schemas = resource_schemas(mapping.constants)
    entries = resource_entries(schemas, BASE_URL)[ResourceType.ENCOUNTER]
    extras = [NO_EXTRAS] * len(rows)
    links = [Link("self", f"{BASE_URL}/Encounter")]

    def ours() -> bytes:
        records = mapper.many(rows, extras)
        written = entries.written(records, Summary.FALSE, ())
        return searchset("bench", ROWS, links, written)

    def handwritten() -> bytes:
        return bundle(rows, ROWS, BASE_URL)

    _same(ours(), handwritten())
    taken: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    for _ in range(_ROUNDS):
        for kept, make in zip(taken, (ours, handwritten), strict=True):
            kept.append(_cpu(make))
    return Mapped(*(statistics.median(kept) for kept in taken))


def _same(one: bytes, other: bytes) -> None:
    entries = [orjson.loads(body)["entry"] for body in (one, other)]
    if entries[0] != entries[1]:
        raise SystemExit("the mapped pages differ")


def _cpu(make: Callable[[], bytes]) -> float:
    began = time.thread_time()
    for _ in range(_TIMES):
        make()
    return (time.thread_time() - began) / _TIMES * 1e6
