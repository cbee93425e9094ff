"""Two tiny hospitals of one group, served as one: their mapping file and their model.

Both number stays and patients from 1. The first keeps local times as texts in SQLite, the
second instants in PostgreSQL; what `place` says goes for a stay in either.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from adapters import open_adapter
from adapters.contract import (
    EncounterRecord,
    Key,
    PatientRecord,
    Position,
    ResourceType,
    Sort,
)
from adapters.federated import FederatedAdapter
from adapters.mapping.load import load_mapping
from adapters.memory import FaultyRow, MemoryAdapter, MemoryRow
from tests.hospital_sql import Tables, mapping_text
from toolkit.contract.hospital import PARIS, Hospital, StayRow

NAMES = ("north", "south")
PREFIXES = ("n-", "s-")
SHARED = ("mapping", "name", "profile", "time_zone", "date", "local_times")


def served(prefix: str, row: MemoryRow) -> MemoryRow:
    """Return a row of one hospital as the group serves it."""
    if isinstance(row, FaultyRow):
        return FaultyRow(served(prefix, row.record), row.fault)  # type: ignore[arg-type]
    fields: dict[str, Any] = {"id": prefix + row.id}
    for name in ("patient_id", "organization_id", "replaced_by"):
        if getattr(row, name, None):
            fields[name] = prefix + getattr(row, name)
    return row._replace(**fields)


class GroupModel(MemoryAdapter):
    """The rows of all hospitals in one list, ordered by hospital before id."""

    def __init__(self, hospitals: tuple[Hospital, ...]) -> None:
        self._numbers = [hospital.ids.value == "numbers" for hospital in hospitals]
        rows = (
            served(prefix, row)
            for prefix, hospital in zip(PREFIXES, hospitals, strict=False)
            for row in hospital.records()
        )
        super().__init__(rows, time_zone=PARIS, date_reading=hospitals[0].date_reading)

    def _position(self, row: MemoryRow, sort: Sort) -> Position:
        position = super()._position(row, sort)
        place: Any = self._place(str(position.id), row)
        key = place if position.key == position.id else position.key
        return replace(position, key=key, id=place)

    def _place(self, id: str, row: MemoryRow) -> tuple[int, Key]:
        record = row.record if isinstance(row, FaultyRow) else row
        index = next(i for i, p in enumerate(PREFIXES) if id.startswith(p))
        own = id.removeprefix(PREFIXES[index])
        numbered = isinstance(record, EncounterRecord | PatientRecord)
        is_number = self._numbers[index] and numbered
        return (index, int(own) if is_number else own)


@dataclass(frozen=True, slots=True)
class Group:
    """Two hospitals behind one adapter, the model of both, and their tables."""

    adapter: FederatedAdapter
    model: GroupModel
    tables: tuple[Tables, ...]
    hospitals: tuple[Hospital, ...]

    def put_stay(self, place: int, row: StayRow) -> None:
        """Put a stay into one hospital, and into the model."""
        self.tables[place].put_stay(row)
        stay = self.hospitals[place].stay(row)
        self.model.put(served(PREFIXES[place], stay))

    def delete_stay(self, place: int, number: int) -> None:
        """Take a stay away."""
        self.tables[place].delete_stay(number)
        id_ = self.hospitals[place].ids.text(number)
        self.model.delete(ResourceType.ENCOUNTER, PREFIXES[place] + id_)

    def close(self) -> None:
        """Close all."""
        self.adapter.close()
        for tables in self.tables:
            tables.close()


class InstantTables(Tables):
    """The tables of a hospital that keeps instants: `timestamptz` in PostgreSQL."""

    def create(self) -> None:
        """Make the tables, and their columns of times instants."""
        super().create()
        with self._engine.begin() as connection:
            for column in ("began", "ended", "changed"):
                connection.execute(
                    sa.text(f"ALTER TABLE stays ALTER {column} TYPE timestamptz(6)")
                )

    def _stay(self, row: StayRow) -> dict[str, object]:
        """Write the hospital's clock times as instants; `changed` is in UTC already."""
        found = super()._stay(row)
        for name in ("began", "ended"):
            found[name] = found[name] and found[name].replace(tzinfo=PARIS)  # type: ignore[attr-defined]
        found["changed"] = f"{row.changed}+00:00" if row.changed else None
        return found


def group_mapping(hospitals: tuple[Hospital, ...]) -> str:
    """Return one mapping file for all: the sections of each as one of several sources."""
    files = [
        yaml.load(mapping_text(hospital), yaml.BaseLoader) for hospital in hospitals
    ]
    whole = {key: files[0][key] for key in (*SHARED, "constants", "codes")}
    whole["sources"] = {
        name: {
            "kind": "sql",
            "url": {"env": f"{name.upper()}_URL"},
            "connections": "2",
            "may_write": "true",
        }
        for name, _ in zip(NAMES, files, strict=False)
    }
    for kind in ("encounter", "patient", "organization"):
        whole[kind] = {
            "sources": [
                _entry(name, prefix, file[kind])
                for name, prefix, file in zip(NAMES, PREFIXES, files, strict=False)
            ],
            "search": files[0][kind]["search"],
            "sort": files[0][kind]["sort"],
        }
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


def _entry(name: str, prefix: str, section: dict[str, Any]) -> dict[str, Any]:
    fields = section["fields"]
    for slot in ("patient_id", "organization_id", "replaced_by"):
        if slot in fields:
            fields[slot]["source"] = name
    return {"source": name, "prefix": prefix, "rows": section["rows"], "fields": fields}


def open_group(
    hospitals: tuple[Hospital, ...], directory: Path, urls: tuple[str, ...]
) -> Group:
    """Make the tables of the hospitals, the last one's of instants, and open the group."""
    tables = (Tables(urls[0], hospitals[0]), InstantTables(urls[1], hospitals[1]))
    file = directory / "group.yaml"
    file.write_text(group_mapping(hospitals), encoding="utf-8")
    environ = {f"{n.upper()}_URL": u for n, u in zip(NAMES, urls, strict=True)}
    adapter = open_adapter(load_mapping(file, environ))
    assert isinstance(adapter, FederatedAdapter)
    return Group(adapter, GroupModel(hospitals), tables, hospitals)
