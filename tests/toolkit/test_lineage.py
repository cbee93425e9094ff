"""Tracing a row says field by field what mapping it makes: one meaning, told twice."""

from adapters.contract import ResourceType, RowFault
from adapters.mapping.load import load_mapping
from adapters.mapping.slots import LINES, LISTS, SLOTS, UNSERVED
from adapters.sql.adapter import open_section
from adapters.sql.engine import Database
from adapters.sql.query import ALWAYS
from demo.hospital import fill
from tests.toolkit.places import DEMO
from toolkit.lineage import trace


def test_every_row_of_the_demo_is_traced_as_it_is_mapped(tmp_path):
    fill(url := f"sqlite:///{tmp_path / 'pas.sqlite'}", stays=1000)
    mapping = load_mapping(DEMO, {"PAS_URL": url})
    database = Database(url, 5, 1)
    for kind in ResourceType:
        section = open_section(database, mapping, kind)
        rows = database.fetch(section.columns.select(section.selected, ALWAYS))
        assert rows
        for row, items in zip(rows, section.extras(database, rows), strict=True):
            mapped = section.mapper(row, items)
            traced = trace(section.mapping, section.selected, row, items)
            if isinstance(mapped, RowFault):
                faults = [field.fault for field in traced]
                assert mapped in faults or "required" in mapped.rule
            elif getattr(mapped, "status", None) not in UNSERVED:
                assert_traced(kind, mapped, traced)
    database.close()


def assert_traced(kind, mapped, traced):
    values = {field.name: field.value for field in traced}
    for slot in SLOTS[kind]:
        if slot.name in values:
            assert values[slot.name] == getattr(mapped, slot.record)
    included = {field.element: field.value for field in traced if field.is_included}
    for listed in LISTS[kind]:
        for number, item in enumerate(getattr(mapped, listed.name)):
            path = f"{listed.element}[{number}]"
            for slot in listed.slots:
                empty = () if slot.name == "given" else None
                value = included.get(f"{path}.{slot.element}", empty)
                assert value == getattr(item, slot.record)
            lines = [
                v for e, v in included.items() if e.startswith(f"{path}.line[") and v
            ]
            assert tuple(lines) == getattr(item, LINES.name, ())
