"""Rows that a person wrote as YAML, what they become, and what makes each element.

Every value is the text that was written, as in a mapping file; a column that is left out
is NULL, and one that the mapping does not name is refused.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import orjson

from adapters.contract import EncounterRecord, ResourceType, RowFault, SourceDataError
from adapters.http.adapter import open_section
from adapters.inspection import SourceRow
from adapters.mapping.lineage import TracedField, trace
from adapters.mapping.model import (
    CodeTable,
    FieldMapping,
    ItemMapping,
    Mark,
    ResourceMapping,
)
from adapters.mapping.paths import Expression, first_keys, path_of
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.row_mapper import (
    RowMapper,
    item_columns,
    known_columns,
    own_columns,
)
from adapters.mapping.slots import (
    LINES,
    LISTS,
    SLOTS,
    UNSERVED,
    Kind,
    element,
    places_of,
)
from adapters.mapping.values import as_text
from adapters.mapping.yaml import Items, Node, Scalar, Table, find, plain
from app.cli.check import MappingFile
from app.fhir.resources import resource_schemas

Cells: TypeAlias = Mapping[str, Any]

_TRUTH: Mapping[str, object] = {"true": True, "false": False, "1": 1, "0": 0}
"""What a column of a true-or-false field without a code table holds."""


@contextmanager
def collected(problems: list[MappingProblem]) -> Iterator[None]:
    """Add the problems of a MappingError that is raised inside to `problems`."""
    try:
        yield
    except MappingError as error:
        problems += error.problems


def refuse(problems: Iterable[MappingProblem]) -> None:
    """Raise MappingError if there are problems."""
    if every := tuple(problems):
        raise MappingError(every)


def read_row(
    file: MappingFile, section: ResourceMapping, written: Table, items: Node | None
) -> SourceRow:
    """Return a written row as the source would give it.

    Raises MappingError with every column that the mapping does not name, and every value
    that is none.
    """
    columns = own_columns(section)
    if section.http is not None:
        cells, below = _read_nested(file, section, written, items)
    else:
        cells = read_cells(section, written)
        below = {
            item: [tuple(map(row.get, item_columns(item))) for row in rows]
            for item, rows in read_items(section, items).items()
        }
    return SourceRow(section, columns, tuple(map(cells.get, columns)), below)


def read_cells(section: ResourceMapping, written: Table) -> Cells:
    """Return the cells of a written row by column; raises MappingError."""
    refuse(_unknown(written, known_columns(section)))
    return _with_flags(section, plain(written).items())


def read_items(
    section: ResourceMapping, items: Node | None
) -> Mapping[ItemMapping, Sequence[Cells]]:
    """Return the written rows of each item that has a SELECT of its own.

    They stand by the name of the list (`identifiers`), with the number of the item in it
    where several have one (`identifiers.2`). Raises MappingError.
    """
    if items is None:
        return {}
    if not isinstance(items, Table):
        raise _error(
            items.mark, "expected lists and their rows here: {telecoms: [{…}]}"
        )
    by_name = dict(_named_items(section))
    problems: list[MappingProblem] = []
    cells = {}
    for name, node in items.entries.items():
        with collected(problems):
            if name not in by_name:
                raise _error(items.keys[name], _unknown_item(name, by_name))
            item, rows = by_name[name], rows_of(node)
            known = known_item_columns(item)
            refuse(fault for row in rows for fault in _unknown(row, known))
            cells[item] = [plain(row) for row in rows]
    refuse(problems)
    return cells


def rows_of(node: Node) -> Sequence[Table]:
    """Return the rows of a written list; raises MappingError."""
    if not isinstance(node, Items):
        raise _error(node.mark, "expected a list of rows here: [{…}, {…}]")
    wrong = [item for item in node.items if not isinstance(item, Table)]
    text = "expected columns and values here"
    refuse(MappingProblem(item.mark, "", text) for item in wrong)
    return [item for item in node.items if isinstance(item, Table)]


def known_item_columns(item: ItemMapping) -> Sequence[str]:
    """Return every column of an item's own rows that the mapping names."""
    fields = (*item.fields.values(), *item.lines)
    searched = [field.search_column for field in fields if field.search_column]
    return tuple(dict.fromkeys((*item_columns(item), *searched)))


def _with_flags(section: ResourceMapping, cells: Iterable[tuple[str, Any]]) -> Cells:
    """Return cells by column; those of true-or-false fields without a code table are such."""
    flags = {
        column
        for place in places_of(section)
        if place.kind is Kind.FLAG and place.field.codes is None
        for column in place.field.columns
    }
    return {
        column: _TRUTH.get(cell, cell)
        if column in flags and isinstance(cell, str)
        else cell
        for column, cell in cells
    }


def _named_items(section: ResourceMapping) -> Iterator[tuple[str, ItemMapping]]:
    for name, items in section.items.items():
        numbered = [(n, item) for n, item in enumerate(items, 1) if item.rows]
        for number, item in numbered:
            yield f"{name}.{number}" if len(numbered) > 1 else name, item


def _unknown_item(name: str, known: Iterable[str]) -> str:
    numbered = [each for each in known if each.startswith(f"{name}.")]
    near = "" if numbered else did_you_mean(name, known)
    use = ", ".join(numbered or known) or "none, the section has no such item"
    return f"no items of their own SELECT are called '{name}'{near or f': use {use}'}"


def _read_nested(
    file: MappingFile, section: ResourceMapping, written: Table, items: Node | None
) -> tuple[Cells, Mapping[ItemMapping, Sequence[Sequence[object]]]]:
    """Return the cells of a row of an HTTP API by path, and the rows of its lists."""
    if items is not None:
        text = "an HTTP row holds its own lists: write them in 'given'"
        raise _error(items.mark, text)
    refuse(_unknown(written, *_paths(section)))
    opened = open_section(file.source_of(section), section.resource_type)
    try:
        cells, below = opened.cells(plain(written))
    except SourceDataError as error:
        raise _error(written.mark, str(error)) from error
    columns = own_columns(section)
    return _with_flags(section, zip(columns, cells, strict=True)), below


def _paths(section: ResourceMapping) -> tuple[Sequence[str], Collection[str]]:
    """Return the paths that a section reads, and those below which an expression reads."""
    columns = [(column, "") for column in own_columns(section)]
    for item in (item for of in section.items.values() for item in of if item.rows):
        columns.append((item.rows or "", ""))
        columns += [(column, f"{item.rows}.") for column in item_columns(item)]
    read = [(path_of(column), above) for column, above in columns]
    free = (
        f"{above}{key}"
        for path, above in read
        if isinstance(path, Expression)
        for key in first_keys(path)
    )
    return [f"{above}{column}" for column, above in columns if column != "."], {*free}


def _unknown(
    node: Node,
    known: Sequence[str],
    free: Collection[str] | None = None,
    path: str = "",
) -> Iterator[MappingProblem]:
    """Yield a problem for each value at a column or path that the mapping does not name.

    `free` are paths of a nested row below which anything may stand, None for a flat row.
    """
    if isinstance(node, Scalar):
        hint = ": leave out what the answer has as null" * (node.text == "null")
        text = f"expected keys and values at '{path}'{hint}"
        problem = MappingProblem(node.mark, "", text)
        yield from () if path in known else (problem,)
    elif path and free is None:
        yield MappingProblem(node.mark, "", f"expected one text for '{path}'")
    elif isinstance(node, Items):
        for item in node.items:
            yield from _unknown(item, known, free, path)
    else:
        for key, below in node.entries.items():
            inner = f"{path}.{key}" if path else key
            if inner in (free or ()):
                continue
            if any(is_below(name, inner) for name in known):
                yield from _unknown(below, known, free, inner)
            else:
                near = did_you_mean(inner, known) or ": leave it out"
                text = f"the mapping names no '{inner}'{near}"
                yield MappingProblem(node.keys[key], "", text)


def _error(mark: Mark, text: str) -> MappingError:
    return MappingError([MappingProblem(mark, "", text)])


# ------------------------------------------------------------------ what a row becomes

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
"""Elements that no field makes, and what does."""

_ASSIGNER = "Encounter.identifier.assigner"
"""An element that the field organization_id makes besides its own."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What makes one element; `rule` is in words, `mark` the line that says so."""

    rule: str
    traced: TracedField | None = None
    mark: Mark | None = None

    @property
    def place(self) -> str:
        """The line that says so, "" for none."""
        return str(self.mark) if self.mark else ""


@dataclass(frozen=True, slots=True)
class MappedRow:
    """A row, what clients would get of it, and what each of its fields makes.

    `outcome` is a resource, a RowFault, or the word `hidden` or `removed`.
    """

    file: MappingFile
    section: ResourceMapping
    outcome: Any
    traced: Sequence[TracedField]

    @classmethod
    def of(cls, file: MappingFile, row: SourceRow) -> Self:
        """Map a row as the service does, and trace each field."""
        section = row.section
        traced = trace(section, row.columns, row.cells, row.items)
        mapped: Any = RowMapper(section, row.columns)(row.cells, row.items)
        if isinstance(mapped, EncounterRecord) and mapped.status in UNSERVED:
            mapped = mapped.status
        elif not isinstance(mapped, RowFault):
            schema = resource_schemas(file.mapping.constants)[section.resource_type]
            mapped = orjson.loads(orjson.dumps(schema.dump(mapped)))
        return cls(file, section, mapped, traced)

    def origin(self, path: str) -> Origin:
        """Return what makes, or would make, the element at a path (`name[0].family`)."""
        inside = unnumbered(path)
        whole = f"{self.section.resource_type}.{inside}"
        for fixed, rule in _FIXED.items():
            if is_below(whole, fixed):
                return self._fixed(rule)
        for traced in self.traced:
            if traced.name == "replaced_by" and traced.value and inside == "active":
                rule = "a patient who was merged into another is not active"
                return Origin(rule, traced, self.origin_of(traced).mark)
            if traced.name == "organization_id" and is_below(whole, _ASSIGNER):
                return self.origin_of(traced)
        making = [traced for traced in self.traced if _makes(traced, path, inside)]
        if making:
            return self.origin_of(max(making, key=_nearness))
        # Where several fields make an element together, the first that makes anything.
        parts = [m for m in self.traced if is_below(unnumbered(m.element), inside)]
        parts.sort(key=lambda m: not m.value)
        return self.origin_of(parts[0]) if parts else Origin("")

    def origin_of(self, traced: TracedField) -> Origin:
        """Return in words what a field does with its cells, and the line that says so."""
        field, rule = traced.field, ""
        if field.constant is not None:
            rule = "a constant"
        elif field.codes is not None:
            return self._coded(traced, field.codes)
        elif field.time is not None:
            rule = _time_rule(traced)
        elif field.split:
            rule = f"split at {field.split!r}"
        elif field.prefix:
            rule = f"after the prefix {field.prefix}"
        return Origin(rule, traced, field.mark)

    def _fixed(self, rule: str) -> Origin:
        """Return the line of a constant, or say that it has its default value."""
        section, _, name = rule.partition(".")
        node = find(self.file.root, (section, name)) if name else None
        if name and not node:
            rule = f"{rule}, as nothing else is said"
        return Origin(rule, mark=node.mark if node else None)

    def _coded(self, traced: TracedField, codes: CodeTable) -> Origin:
        name, code = f"codes.{codes.name}", code_of(traced.field, traced.cells[0][1])
        if code is not None and code in codes.table:
            rule = f"{name}: {code} → {codes.table[code]}"
        elif codes.otherwise is not None:
            code, rule = None, f"{name}: otherwise → {codes.otherwise}"
        else:
            return Origin(name, traced, traced.field.mark)
        return Origin(rule, traced, self.file.code_mark(codes.name, code))


def element_of(kind: ResourceType, fault: RowFault) -> str:
    """Return the FHIR element of a fault."""
    return element((kind.lower(), "fields", *fault.field.split(".")))


def elements_of(kind: ResourceType) -> tuple[str, ...]:
    """Return every element of a resource type that this service can make."""
    elements = [slot.element for slot in SLOTS[kind]]
    for listed in LISTS[kind]:
        slots = (*listed.slots, LINES)
        elements += [f"{listed.element}.{slot.element}" for slot in slots]
    above = f"{kind}."
    fixed = (each for each in (*_FIXED, _ASSIGNER) if each.startswith(above))
    elements += [each.removeprefix(above) for each in fixed]
    whole = [e[: dot.start()] for e in elements for dot in re.finditer(r"\.", e)]
    return tuple(dict.fromkeys((*elements, *whole)))


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


def in_words(value: Any) -> str:
    """Return a value of a resource as the text that a person writes for it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def code_of(field: FieldMapping, cell: object) -> str | None:
    """Return the source code that a cell holds for a field, None for no value."""
    try:
        text = "" if cell is None else as_text(cell)
    except ValueError:
        return None
    return None if text in field.absent | {""} else text


def _time_rule(traced: TracedField) -> str:
    rule = traced.field.time
    assert rule is not None, "only times have such a rule"
    parts = [f"read as {rule.format}"] if rule.format else []
    if rule.at is not None:
        parts.append(f"at {rule.at:%H:%M}")
    if traced.field.slot != "birth_date":
        own = traced.has_offset
        parts.append("by its own offset" if own else f"in {rule.zone.key}")
        if own or rule.written.key != rule.zone.key:
            parts.append(f"written in {rule.written.key}")
    return ", ".join(parts)


def _nearness(traced: TracedField) -> tuple[int, bool, bool]:
    """Return the rank of a field that makes an element: an exact one with a value is highest."""
    return len(traced.element), bool(traced.value), traced.is_filled


def _makes(traced: TracedField, path: str, inside: str) -> bool:
    if "[" in traced.element:
        return traced.is_included and is_below(path, traced.element)
    return is_below(inside, traced.element)


def unnumbered(path: str) -> str:
    """Return a path without the numbers of list items."""
    return re.sub(r"\[\d+\]", "", path)


def is_below(path: str, above: str) -> bool:
    """Whether a path is that of an element, or of something inside it."""
    return path == above or path.startswith((f"{above}.", f"{above}["))
