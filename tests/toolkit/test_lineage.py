"""Tracing a row says field by field what mapping it makes: one meaning, told twice."""

from pathlib import Path
from typing import Any

import pytest

from adapters.contract import ResourceType, RowFault
from adapters.mapping.load import load_mapping
from adapters.mapping.slots import LINES, LISTS, SLOTS, UNSERVED, ListSlot
from adapters.sql.adapter import open_section
from adapters.sql.engine import Database
from adapters.sql.query import ALWAYS
from demo.hospital import fill
from toolkit.lineage import TracedField, trace

DEMO = Path(__file__).parents[2] / "mappings" / "demo" / "demo.yaml"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('demo') / 'pas.sqlite'}"
    fill(url, stays=1000)
    return url


@pytest.mark.parametrize("kind", ResourceType)
def test_every_row_of_the_demo_is_traced_as_it_is_mapped(
    url: str, kind: ResourceType
) -> None:
    mapping = load_mapping(DEMO, {"PAS_URL": url})
    database = Database(url, 5, 1)
    section = open_section(database, mapping, kind)
    rows = database.fetch(section.columns.select(section.selected, ALWAYS))
    assert rows
    extras = section.extras(database, rows)
    for row, items in zip(rows, extras, strict=True):
        mapped = section.mapper(row, items)
        traced = trace(section.mapping, section.selected, row, items)
        if isinstance(mapped, RowFault):
            assert (
                mapped in [made.fault for made in traced] or "required" in mapped.rule
            )
        elif getattr(mapped, "status", None) not in UNSERVED:
            assert dict(_fields(kind, traced)) == {
                name: getattr(mapped, name) for name, _ in _fields(kind, traced)
            }
            for listed in LISTS[kind]:
                _compare_items(listed, getattr(mapped, listed.name), traced)
    database.close()


def _fields(
    kind: ResourceType, traced: tuple[TracedField, ...]
) -> list[tuple[str, Any]]:
    records = {slot.name: slot.record for slot in SLOTS[kind]}
    return [(records[m.name], m.value) for m in traced if m.name in records]


def _compare_items(
    listed: ListSlot, items: tuple[Any, ...], traced: tuple[TracedField, ...]
) -> None:
    kept = {made.element: made.value for made in traced if made.is_included}
    for number, item in enumerate(items):
        path = f"{listed.element}[{number}]"
        for slot in listed.slots:
            empty = () if slot.name == "given" else None
            value = kept.get(f"{path}.{slot.element}", empty)
            assert value == getattr(item, slot.record)
        lines = [v for e, v in kept.items() if e.startswith(f"{path}.line[") and v]
        assert tuple(lines) == getattr(item, LINES.name, ())
