"""Stays without a column of states: `encounters mapping new` tells them by their dates."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters import open_adapter
from adapters.contract import (
    EncounterRecord,
    ResourceType,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from app.cli import main

TABLES = """
CREATE TABLE patient (id INTEGER PRIMARY KEY, last_name VARCHAR(20), birth_date DATE);
INSERT INTO patient VALUES (1, 'Roe', '1980-05-17');
"""
START, END = 202403300815, 202403311700


def states(file: Path, kind: str, *ends: object) -> list[str]:
    """Return what becomes of stays with these ends, by the file that is written."""
    database = file / "pas.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executescript(
            f"{TABLES} CREATE TABLE stay (id INTEGER PRIMARY KEY, patient_id INTEGER,"
            f" entry_date {kind}, exit_date {kind});"
        )
        rows = [(id, 1, START, end) for id, end in enumerate(ends, 1)]
        connection.executemany("INSERT INTO stay VALUES (?, ?, ?, ?)", rows)
    url, out = f"sqlite:///{database}", file / "new.yaml"
    assert main(["mapping", "new", "--from", url, "--out", str(out)]) == 0
    query = SearchQuery(ResourceType.ENCOUNTER, (), Sort(SortKey.ID), 100)
    with closing(open_adapter(load_mapping(out, {"PAS_URL": url}))) as adapter:
        found = adapter.search(query).rows
    records = [row for row in found if isinstance(row, EncounterRecord)]
    assert len(records) == len(found)
    return [record.status for record in records]


@pytest.mark.parametrize(
    ("kind", "none"),
    [
        ("INTEGER", (0,)),
        ("INTEGER", (999999999999,)),
        ("INTEGER", (190001010000,)),
        ("INTEGER", (0, 999999999999)),
        ("TEXT", ("",)),
        ("TEXT", ("000000000000",)),
        ("TEXT", ("", "999912310000")),
    ],
)
def test_a_stay_is_over_where_its_end_is_a_time(
    tmp_path: Path, kind: str, none: tuple[object, ...]
) -> None:
    there = states(tmp_path, kind, END, END + 1, None, *none)
    here = ["in-progress"] * (1 + len(none))
    assert there == ["finished", "finished", *here]
