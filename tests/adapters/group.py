"""Several sources as one: two hospitals of a group, and a database beside an API.

Both hospitals number stays and patients alike. The first keeps local times as texts in SQLite,
the second instants in PostgreSQL.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from adapters import open_adapter
from adapters.mapping.load import load_mapping
from adapters.memory import FaultyRow, MemoryAdapter, MemoryRow
from tests.adapters.changeable import Changeable
from tests.hospital_http import http_mapping_text
from tests.hospital_sql import Tables, mapping_text
from toolkit.contract.hospital import EDGES, PARIS, Hospital, Ids, StayRow

NAMES = ("north", "south")
PREFIXES = ("n-", "s-")
SHARED = ("mapping", "name", "profile", "time_zone", "date", "local_times")
HOSPITAL = EDGES.with_ids(Ids.TEXTS)
NO_HOUR = "2024-03-31 02:30:00"


def served(prefix: str, row: MemoryRow) -> MemoryRow:
    """Return a row of one hospital as the group serves it."""
    if isinstance(row, FaultyRow):
        return FaultyRow(served(prefix, row.record), row.fault)  # type: ignore[arg-type]
    fields: dict[str, Any] = {"id": prefix + row.id}
    for name in ("patient_id", "organization_id", "replaced_by"):
        if getattr(row, name, None):
            fields[name] = prefix + getattr(row, name)
    return row._replace(**fields)


class Group(Changeable):
    """Two hospitals as the walks of one know it; even numbers live in the north."""

    def __init__(
        self, hospital: Hospital, directory: Path, urls: tuple[str, str]
    ) -> None:
        """`hospital` has ids whose order is that of texts, as with their prefixes."""
        self._tables = (Tables(urls[0], hospital), InstantTables(urls[1], hospital))
        file = directory / "group.yaml"
        file.write_text(group_mapping(hospital), encoding="utf-8")
        environ = {f"{n.upper()}_URL": u for n, u in zip(NAMES, urls, strict=True)}
        rows = [served(p, row) for p in PREFIXES for row in hospital.records()]
        super().__init__(
            hospital,
            open_adapter(load_mapping(file, environ)),
            MemoryAdapter(rows, time_zone=PARIS),
            lambda row: self._tables[row.id % 2].put_stay(_own(row)),
            lambda number: self._tables[number % 2].delete_stay((number + 1) // 2),
        )

    def id(self, number: int) -> str:
        """Return the id of a row as clients see it."""
        return PREFIXES[number % 2] + super().id((number + 1) // 2)

    def served(self, row: StayRow) -> MemoryRow:
        """Return a stay as the group should serve it."""
        return served(PREFIXES[row.id % 2], super().served(_own(row)))

    def close(self) -> None:
        """Close all."""
        self.adapter.close()
        for tables in self._tables:
            tables.close()


def _own(row: StayRow) -> StayRow:
    """Return a stay as its hospital numbers it; instants know of no hour that never is."""
    is_odd = row.id % 2 and row.began == NO_HOUR
    began = "2024-03-14 10:00:01" if is_odd else row.began
    return row._replace(id=(row.id + 1) // 2, began=began)


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


def group_mapping(hospital: Hospital) -> str:
    """Return one mapping file for both: each section as that of two sources."""
    file = yaml.load(mapping_text(hospital), yaml.BaseLoader)
    whole = {key: file[key] for key in (*SHARED, "constants", "codes")}
    whole["sources"] = {
        name: {
            "kind": "sql",
            "url": {"env": f"{name.upper()}_URL"},
            "connections": "2",
            "may_write": "true",
        }
        for name in NAMES
    }
    for kind in ("encounter", "patient", "organization"):
        sections = []
        for name, prefix in zip(NAMES, PREFIXES, strict=True):
            fields = deepcopy(file[kind]["fields"])
            for slot in {"patient_id", "organization_id", "replaced_by"} & {*fields}:
                fields[slot]["source"] = name
            rows = file[kind]["rows"]
            sections.append(
                {"source": name, "prefix": prefix, "rows": rows, "fields": fields}
            )
        offered = {key: file[kind][key] for key in ("search", "sort")}
        whole[kind] = {"sources": sections, **offered}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


def both_text() -> str:
    """Return a mapping file of HOSPITAL whose sections come from a database and an API."""
    database, api = (
        yaml.load(text, yaml.BaseLoader)
        for text in (mapping_text(HOSPITAL), http_mapping_text(HOSPITAL))
    )
    whole = {key: database[key] for key in SHARED if key in database}
    whole |= {key: {**api[key], **database[key]} for key in ("constants", "codes")}
    whole["sources"] = {
        "pas": {"kind": "sql", "url": {"env": "PAS_URL"}, "may_write": "true"},
        "api": {"kind": "http", "url": {"env": "API_URL"}, "timeout_seconds": "30"},
    }
    for kind in ("encounter", "patient"):
        whole[kind] = {"source": "pas", **database[kind]}
    whole["organization"] = {"source": "api", **api["organization"]}
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)
