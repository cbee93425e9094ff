"""The test to write next: a row or a search for the first thing that no test touches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapters.contract import ResourceType
from adapters.mapping.model import FieldMapping, ResourceMapping
from adapters.mapping.slots import SLOTS, UNSERVED, Slot
from app.tools.sections import MappingFile
from app.tools.testing.coverage import Target

_SIMPLE = ("status", "class", "gender", "active")
"""Elements that are a code, and nothing else with it."""


def next_test(file: MappingFile, gaps: Sequence[Target]) -> tuple[str, ...]:
    """Return the lines of a test for the first gap that is a code, () where there is none.

    What it expects is what the file says now: whoever writes it holds that against the
    hospital's word. Codes of items in lists are left to the reader.
    """
    for gap in gaps:
        for section in file.mapping.sections if gap.kind == "code" else ():
            for slot, field in _coded(section, gap.group):
                code = None if gap.name == "otherwise" else gap.name
                return tuple(_lines(file, section, slot, field, code))
    return ()


def _coded(section: ResourceMapping, group: str) -> Iterator[tuple[Slot, FieldMapping]]:
    """Yield the fields of a section that go by a code table."""
    for slot in SLOTS[section.resource_type]:
        field = section.fields.get(slot.record)
        is_simple = slot.element in _SIMPLE and field and field.codes and field.columns
        if is_simple and field and group == f"codes.{field.codes and field.codes.name}":
            yield slot, field


def _lines(
    file: MappingFile,
    section: ResourceMapping,
    slot: Slot,
    field: FieldMapping,
    code: str | None,
) -> Iterator[str]:
    assert field.codes is not None, "only coded fields are suggested"
    made = field.codes.otherwise if code is None else field.codes.table[code]
    yield f"  - name: {slot.name} {code or 'that nobody named'}"
    if section.resource_type is not ResourceType.ENCOUNTER:
        yield f"    of: {section.resource_type.lower()}"
    if file.of_source(section):
        yield f"    source: {file.names(section)[0]}"
    given = {**_required(section), field.columns[0]: code or "a code of no entry"}
    is_nested = file.source_of(section).source.kind == "http"
    yield f"    given: {_flow(_nested(given) if is_nested else given)}"
    within = {"code": made} if slot.element == "class" else made
    yield f"    expect: {made if made in UNSERVED else _flow({slot.element: within})}"


def _required(section: ResourceMapping) -> dict[str, str]:
    """Return cells for the slots without which a row is a fault."""
    cells = {}
    for slot in SLOTS[section.resource_type]:
        field = section.fields.get(slot.record)
        if slot.record not in section.required or field is None or not field.columns:
            continue
        served = [
            code
            for code, made in (field.codes.table.items() if field.codes else ())
            if made not in UNSERVED
        ]
        cells[field.columns[0]] = served[0] if served else "1"
    name = section.fields.get("name")
    if section.resource_type is ResourceType.ORGANIZATION and name:
        cells |= dict.fromkeys(name.columns, "North")
    return cells


def _nested(cells: Mapping[str, str]) -> Mapping[str, object]:
    """Return cells by path as the objects that an API answers."""
    found: dict[str, Any] = {}
    for path, cell in cells.items():
        *above, last = path.split(".")
        holder = found
        for name in above:
            holder = holder.setdefault(name, {})
        holder[last] = cell
    return found


def _flow(value: object) -> str:
    if not isinstance(value, Mapping):
        return _quoted(str(value))
    inner = ", ".join(f"{_quoted(key)}: {_flow(of)}" for key, of in value.items())
    return f"{{{inner}}}"


def _quoted(text: str) -> str:
    plain = text.replace("_", "").replace("-", "").isalnum()
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
