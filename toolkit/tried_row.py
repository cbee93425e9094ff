"""What a row becomes and from what, by the service's own row mapper and schemas.

`mapping test`, `preview`, `explain` and the workbench show what is computed here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, Self

import orjson

from adapters.contract import (
    EncounterRecord,
    ResourceType,
    RowFault,
)
from adapters.mapping.model import FieldMapping, Mark, ResourceMapping, SourceMapping
from adapters.mapping.row_mapper import RowMapper
from adapters.mapping.slots import SLOTS, UNSERVED, element, named_slots
from adapters.mapping.values import LONGEST_CODE, as_text
from adapters.mapping.yaml import find
from app.fhir.resources import SCHEMAS
from toolkit.checks.rows import plain_text
from toolkit.console import MappingFile
from toolkit.findings import Finding
from toolkit.lineage import TracedField, trace
from toolkit.source_rows import FoundRow, SourceRow

MASK = "***"

PERSONAL = frozenset(
    f"{kind}.{name}"
    for kind in (ResourceType.ENCOUNTER, ResourceType.PATIENT)
    for name, slot in named_slots(kind)
    if slot.personal
)
"""The slots that identify a person. Times of a stay, codes and units do not."""

PERSONAL_TEXTS = PERSONAL - {"Patient.birth_date", "Patient.deceased_at"}
"""The slots of PERSONAL without dates, which the integrator's own screen shows."""

_FIXED: Mapping[str, str] = {
    "Encounter.identifier.use": "always so",
    "Encounter.identifier.type.coding.system": "constants.identifier_type_system",
    "Encounter.identifier.type.coding.version": "constants.identifier_type_version",
    "Encounter.identifier.type.coding.display": "constants.identifier_type_display",
    "Encounter.identifier.type.coding.code": "always so",
    "Encounter.class.display": "the label of the code",
    "Encounter.class.system": "constants.class_code_system",
    "Encounter.serviceProvider.extension.url": "constants.functional_unit_extension",
    "Patient.identifier.type.coding.system": "constants.patient_identifier_type_system",
    "Patient.link.type": "always so",
    "Organization.identifier.type.coding.system": (
        "constants.organization_identifier_type_system"
    ),
}
"""Elements that no field fills, and where each comes from."""

_ALSO: Mapping[str, str] = {
    f"{kind}.{slot.also}": slot.name
    for kind in ResourceType
    for slot in SLOTS[kind]
    if slot.also
}
"""Elements that a field with a value fills besides its own."""


@dataclass(frozen=True, slots=True)
class Line:
    """One element of a resource, or one field without an element, and where it comes from.

    `cells` are the columns and their values; `rule` is in words, `place` is its line in the
    mapping file.
    """

    element: str
    value: Any
    cells: Mapping[str, str | None]
    rule: str
    place: str

    def __str__(self) -> str:
        shown = {c: "NULL" if v is None else repr(v) for c, v in self.cells.items()}
        cells = ", ".join(f"{column} = {cell}" for column, cell in shown.items())
        values = self.value if isinstance(self.value, list) else [self.value]
        value = "" if self.value is None else f" = {', '.join(map(written, values))}"
        rule = "; ".join(filter(None, (cells, self.rule)))
        origin = "   ".join(filter(None, (rule, self.place)))
        return f"  {self.element}{value}\n      ← {origin}"

    def number_in(self, file: Path) -> int:
        """Return the number of the line in a file, 0 if `place` is in another file."""
        name, line, _ = (self.place or "::").rsplit(":", 2)
        return int(line) if Path(name) == file else 0


class ElementOrigin(NamedTuple):
    """Where an element comes from: the rule in words, its field, and its place in the file."""

    rule: str = ""
    traced: TracedField | None = None
    mark: Mark | None = None

    @property
    def place(self) -> str:
        """The place in the mapping file as text, "" for none."""
        return str(self.mark or "")


@dataclass(frozen=True, slots=True)
class TriedRow:
    """A row, what clients would get of it, and the value of each of its fields.

    `outcome` is a resource, a RowFault, or the word `hidden` or `removed`. Values are masked in
    the slots of `masked`, and in cells that may be no codes.
    """

    file: MappingFile
    row: SourceRow
    outcome: Any
    traced: Sequence[TracedField]
    masked: Set[str]

    @classmethod
    def of(
        cls, file: MappingFile, row: SourceRow, masked: Set[str] = frozenset()
    ) -> Self:
        """Map a row as the service does, and trace each field."""
        section = row.section
        traced = trace(section, row.columns, row.cells, row.items)
        mapped: Any = RowMapper(section, row.columns)(row.cells, row.items)
        if isinstance(mapped, EncounterRecord) and mapped.status in UNSERVED:
            mapped = mapped.status
        elif not isinstance(mapped, RowFault):
            mapped = as_resource(file.mapping, section.resource_type, mapped)
        return cls(file, row, mapped, traced, masked)

    @property
    def kind(self) -> ResourceType:
        """The type of the resource."""
        return self.row.section.resource_type

    @property
    def unserved(self) -> str | None:
        """The word `hidden` or `removed` for a row that no client gets, else None."""
        return self.outcome if isinstance(self.outcome, str) else None

    @property
    def resource(self) -> dict[str, Any] | None:
        """The resource with its masks, None where there is none."""
        if not isinstance(self.outcome, dict):
            return None
        shown = self._masked(self.outcome, "") if self.masked else self.outcome
        return dict(shown)

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Every fault of the row, of which a search reports the first only."""
        if not isinstance(self.outcome, RowFault):
            return ()
        # Of an item that is left out, faults do not matter.
        faults = [m.fault for m in self.traced if m.fault and m.is_included]
        findings = []
        for fault in dict.fromkeys([*faults, self.outcome]):
            marks = [traced.field.mark for traced in self.named(fault.field)]
            mark = (marks or [self.row.section.mark])[0]
            element = element_of(self.kind, fault)
            findings.append(Finding.at(mark, fault.rule, element, fault.column))
        return tuple(findings)

    def named(self, name: str) -> list[TracedField]:
        """Return the fields of a name."""
        return [traced for traced in self.traced if traced.name == name]

    def as_text(self) -> Iterator[str]:
        """Yield the faults, the elements and the fields without a value, in lines for people."""
        if self.resource is not None:
            yield "Where each element is from:"
        else:
            if self.unserved:
                yield f"the row is {self.unserved}: no client gets it"
            yield from map(str, self.faults)
            yield "\nWhat its fields contain:"
        yield from map(str, self.elements())
        if empty := [*map(str, self.empty())]:
            yield "\nFields without a value:"
            yield from empty

    def elements(self) -> Iterator[Line]:
        """Yield the elements of the resource; without a resource, the values of the fields."""
        resource = self.resource
        for path, value in leaves(resource or {}):
            if path != "resourceType":
                yield self._line(path, value, self.origin(path))
        for traced in self.traced if resource is None else ():
            if traced.is_included and traced.fault:
                rule = f"invalid: {traced.fault.rule}"
                origin = ElementOrigin(rule, traced, traced.field.mark)
                yield self._line(traced.element, None, origin)
            elif traced.is_included and traced.value not in (None, ()):
                value = MASK if self._is_masked(traced) else _plain(traced.value)
                yield self._line(traced.element, value, self.origin_of(traced))

    def empty(self) -> Iterator[Line]:
        """Yield the fields that read a column and have no value in the resource, and why."""
        for traced in self.traced:
            has_value = bool(traced.fault) or traced.value not in (None, ())
            if not traced.cells or (traced.is_included and has_value):
                continue
            condition = traced.item.only_if if traced.item else None
            reason = "read as no value" if traced.is_filled else ""
            if condition and not traced.counts:
                reason = f"the item is left out: only_if {condition.column}"
            elif has_value:
                reason = "the item is left out: no other field has a value"
            origin = ElementOrigin(reason, traced, traced.field.mark)
            yield self._line(traced.element, None, origin)

    def origin(self, path: str) -> ElementOrigin:
        """Return where the element at a path (`name[0].family`) comes from, or would come."""
        inside = unnumbered(path)
        whole = f"{self.kind}.{inside}"
        for fixed, rule in _FIXED.items():
            if is_below(whole, fixed):
                section, _, name = rule.partition(".")
                node = find(self.file.root, (section, name)) if name else None
                return ElementOrigin(rule, mark=None if node is None else node.mark)
        also = {name for above, name in _ALSO.items() if is_below(whole, above)}
        for traced in self.traced:
            if traced.name in also and traced.value:
                return self.origin_of(traced)
        making = [traced for traced in self.traced if _makes(traced, path, inside)]
        if making:
            # The nearest one, which has a value rather than none.
            near = max(
                making, key=lambda m: (len(m.element), bool(m.value), m.is_filled)
            )
            return self.origin_of(near)
        # Where several fields make an element together, the first that makes anything.
        parts = [m for m in self.traced if is_below(unnumbered(m.element), inside)]
        filled = [part for part in parts if part.value]
        return self.origin_of((filled or parts)[0]) if parts else ElementOrigin()

    def origin_of(self, traced: TracedField) -> ElementOrigin:
        """Return in words how a field reads its cells, and its place in the mapping file."""
        field, mark = traced.field, traced.field.mark
        rule = ""
        if field.constant is not None:
            rule = "a constant"
        elif field.codes is not None:
            rule = f"codes.{field.codes.name}"
            code, value = entry_of(field, traced.cells[0][1])
            if value is not None:
                rule += f": {code or 'otherwise'} → {value}"
                mark = self.file.code_mark(field.codes.name, code)
        elif field.time is not None:
            rule = _time_rule(traced)
        elif field.split:
            rule = f"split at {field.split!r}"
        elif field.prefix:
            rule = f"after the prefix {field.prefix}"
        return ElementOrigin(rule, traced, mark)

    def _masked(self, value: Any, path: str) -> Any:
        """Return a part of the resource, with a mask for what identifies a person."""
        if isinstance(value, dict):
            return {
                key: self._masked(below, f"{path}.{key}" if path else key)
                for key, below in value.items()
            }
        if isinstance(value, list):
            return [
                self._masked(below, f"{path}[{number}]")
                for number, below in enumerate(value)
            ]
        return MASK if self._is_masked(self.origin(path).traced) else value

    def _is_masked(self, traced: TracedField | None) -> bool:
        """Whether the value of a field is masked; a constant never is."""
        if traced is None or traced.field.constant is not None:
            return False
        return f"{self.kind}.{traced.name}" in self.masked

    def _line(self, element: str, value: Any, origin: ElementOrigin) -> Line:
        """Return the line of an element, with the cells of the field that it comes from."""
        cells: dict[str, str | None] = {}
        if origin.traced:
            for column, cell in origin.traced.cells:
                cells[column] = self._cell(origin.traced, cell)
        return Line(
            f"{self.kind}.{element}",
            value,
            cells=cells,
            rule=origin.rule,
            place=origin.place,
        )

    def _cell(self, traced: TracedField, cell: object) -> str | None:
        """Return the text of a cell or a mask, None for NULL."""
        if cell is None:
            return None
        is_hidden = self._is_masked(traced) or _may_be_anything(traced, cell)
        return MASK if self.masked and is_hidden else cell_text(cell)


def _may_be_anything(traced: TracedField, cell: object) -> bool:
    """Whether a cell may be a text about a person (decision 16).

    Without a code table that is a cell with a fault; else one that is too long for a code.
    """
    codes = traced.field.codes
    if codes is None:
        return traced.fault is not None
    text = cell_text(cell)
    return text not in codes.table and len(text) > LONGEST_CODE


def masked_cells(section: ResourceMapping, row: FoundRow) -> Iterator[str | None]:
    """Yield the cells of a row for the integrator's screen; None is NULL.

    What identifies a person but for dates is masked, and so is what no field reads.
    """
    traced = trace(section, row.columns, row.cells, {})
    for column, cell in zip(row.columns, row.cells, strict=True):
        fields = [slot for slot in traced if column in slot.field.columns]
        is_hidden = not fields or any(
            f"{section.resource_type}.{slot.name}" in PERSONAL_TEXTS
            or _may_be_anything(slot, cell)
            for slot in fields
        )
        if cell is None:
            yield None
        else:
            yield MASK if is_hidden else cell_text(cell)


def as_resource(mapping: SourceMapping, kind: ResourceType, record: Any) -> Any:
    """Return the resource of a record, as clients read it."""
    schema = SCHEMAS[kind](mapping.constants)
    return orjson.loads(orjson.dumps(schema.dump(record)))


def element_of(kind: ResourceType, fault: RowFault) -> str:
    """Return the FHIR element of a fault."""
    return element((kind.lower(), "fields", *fault.field.split(".")))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a resource with its path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from leaves(below, f"{path}[{number}]")
    else:
        yield path, value


def written(value: Any) -> str:
    """Return a value of a resource as the text that a person writes for it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def cell_text(cell: object) -> str:
    """Return a cell as text: a list with commas, bytes in hexadecimal."""
    try:
        if isinstance(cell, list):
            return ", ".join(as_text(item) for item in cell if item is not None)
        return cell.hex() if type(cell) is bytes else as_text(cell)
    except ValueError:
        return f"a value of type {type(cell).__name__}"


def entry_of(field: FieldMapping, cell: object) -> tuple[str | None, str | None]:
    """Return the entry of a code table that a cell goes by, and its value.

    The code is None for `otherwise`, the value None where there is no such entry.
    """
    assert field.codes is not None, "only coded fields have entries"
    code = plain_text(cell)
    if code in field.codes.table and code not in field.absent | {""}:
        return code, field.codes.table[code]
    return None, field.codes.otherwise


def is_below(path: str, above: str) -> bool:
    """Whether a path is that of an element, or of something inside it."""
    return path == above or path.startswith((f"{above}.", f"{above}["))


def unnumbered(path: str) -> str:
    """Return a path without the numbers of list items."""
    return re.sub(r"\[\d+\]", "", path)


def _time_rule(traced: TracedField) -> str:
    """Return in words how a time is read: its format, its time of day, its zones."""
    rule = traced.field.time
    assert rule is not None, "only times have such a rule"
    parts = [f"read as {rule.format}"] if rule.format else []
    if rule.at is not None:
        parts.append(f"at {rule.at:%H:%M}")
    if traced.field.slot != "birth_date":
        has_offset = traced.has_offset
        parts.append("by its own offset" if has_offset else f"in {rule.zone.key}")
        if has_offset or rule.written.key != rule.zone.key:
            parts.append(f"written in {rule.written.key}")
    return ", ".join(parts)


def _makes(traced: TracedField, path: str, inside: str) -> bool:
    """Whether a field fills the element at a path; `inside` is the path without numbers."""
    if "[" in traced.element:
        return traced.is_included and is_below(path, traced.element)
    return is_below(inside, traced.element)


def _plain(value: Any) -> Any:
    """Return the value of a field as a resource would have it."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return as_text(value) if isinstance(value, (bool, date)) else str(value)
