"""Rows that a person wrote as YAML, and where the elements of a resource come from.

Every value is the text that was written, as in a mapping file; a column that is left out
is NULL, and one that the mapping does not name is refused.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from adapters.contract import ResourceType, SourceDataError
from adapters.http.client import at
from adapters.inspection import SourceRow
from adapters.mapping.lineage import TracedField
from adapters.mapping.load import path_of
from adapters.mapping.model import (
    CodeTable,
    FieldMapping,
    ItemMapping,
    Mark,
    ResourceMapping,
)
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.row_mapper import item_columns, known_columns, own_columns
from adapters.mapping.slots import LINES, LISTS, SLOTS, Kind
from adapters.mapping.values import as_text
from adapters.mapping.yaml import Items, Node, Scalar, Table, find, plain
from app.cli.check import MappingFile

Cells: TypeAlias = Mapping[str, Any]

_TRUTH: Mapping[str, object] = {"true": True, "false": False, "1": 1, "0": 0}
"""What a column of a true-or-false field without a code table holds."""


def read_row(section: ResourceMapping, written: Table, items: Node | None) -> SourceRow:
    """Return a written row as the source would give it.

    Raises MappingError with every column that the mapping does not name, and every value
    that is none.
    """
    columns = own_columns(section)
    if section.http is not None:
        return _http_row(section, columns, written, items)
    cells = read_cells(section, written)
    below = {
        item: [tuple(map(row.get, item_columns(item))) for row in rows]
        for item, rows in read_items(section, items).items()
    }
    return SourceRow(section, columns, tuple(map(cells.get, columns)), below)


def read_cells(section: ResourceMapping, written: Table) -> Cells:
    """Return the cells of a written row by column; raises MappingError."""
    flags = flag_columns(section)
    cells = _cells(written, known_columns(section))
    return {c: _TRUTH.get(v, v) if c in flags else v for c, v in cells.items()}


def read_items(
    section: ResourceMapping, items: Node | None
) -> Mapping[ItemMapping, tuple[Cells, ...]]:
    """Return the written rows of each item that has a SELECT of its own.

    They stand by the name of the list (`identifiers`), with the number of the item in it
    where several have one (`identifiers.2`). Raises MappingError.
    """
    if items is None:
        return {}
    if not isinstance(items, Table):
        raise _error(items, "expected lists and their rows here: {telecoms: [{…}]}")
    by_name = dict(_named_items(section))
    problems, cells = [], {}
    for name, node in items.entries.items():
        if name not in by_name:
            numbered = [known for known in by_name if known.startswith(f"{name}.")]
            near = "" if numbered else did_you_mean(name, by_name)
            use = ", ".join(numbered or by_name) or "none, the section has no such item"
            text = f"no items of their own SELECT are called '{name}'{near or f': use {use}'}"
            problems.append(MappingProblem(items.keys[name], "", text))
            continue
        known = known_item_columns(by_name[name])
        try:
            cells[by_name[name]] = tuple(_cells(row, known) for row in rows_of(node))
        except MappingError as error:
            problems += error.problems
    if problems:
        raise MappingError(problems)
    return cells


def rows_of(node: Node) -> tuple[Table, ...]:
    """Return the rows of a written list; raises MappingError."""
    if not isinstance(node, Items):
        raise _error(node, "expected a list of rows here: [{…}, {…}]")
    wrong = [item for item in node.items if not isinstance(item, Table)]
    if wrong:
        text = "expected columns and values here"
        raise MappingError(MappingProblem(item.mark, "", text) for item in wrong)
    return tuple(item for item in node.items if isinstance(item, Table))


def known_item_columns(item: ItemMapping) -> tuple[str, ...]:
    """Return every column of an item's own rows that the mapping names."""
    fields = (*item.fields.values(), *item.lines)
    searched = [field.search_column for field in fields if field.search_column]
    return tuple(dict.fromkeys((*item_columns(item), *searched)))


def flag_columns(section: ResourceMapping) -> frozenset[str]:
    """Return the columns of true-or-false fields that no code table translates."""
    return frozenset(
        column
        for slot in SLOTS[section.resource_type]
        if slot.kind is Kind.FLAG
        and (field := section.fields.get(slot.record)) is not None
        and field.codes is None
        for column in field.columns
    )


def _named_items(section: ResourceMapping) -> Iterator[tuple[str, ItemMapping]]:
    for listed in LISTS[section.resource_type]:
        items = section.items.get(listed.name, ())
        numbered = [(n, item) for n, item in enumerate(items, 1) if item.rows]
        for number, item in numbered:
            suffix = f".{number}" if len(numbered) > 1 else ""
            yield f"{listed.name}{suffix}", item


def _cells(written: Table, known: Sequence[str]) -> dict[str, str]:
    problems, cells = [], {}
    for column, node in written.entries.items():
        if column not in known:
            near = did_you_mean(column, known)
            text = f"the mapping names no column '{column}'{near or ': leave it out'}"
            problems.append(MappingProblem(written.keys[column], "", text))
        elif isinstance(node, Scalar):
            cells[column] = node.text
        else:
            text = f"expected one text for the column '{column}'"
            problems.append(MappingProblem(node.mark, "", text))
    if problems:
        raise MappingError(problems)
    return cells


def _error(node: Node, text: str) -> MappingError:
    return MappingError([MappingProblem(node.mark, "", text)])


def _http_row(
    section: ResourceMapping, columns: Sequence[str], written: Table, items: Node | None
) -> SourceRow:
    if items is not None:
        raise _error(items, "an HTTP row holds its own lists: write them in 'given'")
    lists = [item for of in section.items.values() for item in of if item.rows]
    known = [*columns, *(item.rows or "" for item in lists)]
    for item in lists:
        known += [_joined(item.rows or "", column) for column in item_columns(item)]
    if problems := tuple(_unknown_paths(written, known, "")):
        raise MappingError(problems)
    answer, flags = plain(written), flag_columns(section)
    try:
        cells = [at(answer, path_of(column)) for column in columns]
        below = {
            item: [
                tuple(at(row, path_of(column)) for column in item_columns(item))
                for row in _list_at(answer, item.rows or "")
            ]
            for item in lists
        }
    except SourceDataError as error:
        raise _error(written, str(error)) from error
    row = tuple(
        _TRUTH.get(cell, cell) if column in flags and isinstance(cell, str) else cell
        for column, cell in zip(columns, cells, strict=True)
    )
    return SourceRow(section, tuple(columns), row, below)


def _joined(rows: str, column: str) -> str:
    return rows if column == "." else f"{rows}.{column}"


def _list_at(answer: Any, path: str) -> Sequence[Any]:
    rows = at(answer, path_of(path))
    if rows is not None and not isinstance(rows, list):
        raise SourceDataError(f"expected a list at '{path}'")
    return rows or ()


def _unknown_paths(
    node: Node, known: Sequence[str], path: str
) -> Iterator[MappingProblem]:
    """Yield a problem for each value at a path that the mapping does not name."""
    if isinstance(node, Scalar):
        if path not in known:
            hint = ": leave out what the answer has as null" * (node.text == "null")
            text = f"expected keys and values at '{path}'{hint}"
            yield MappingProblem(node.mark, "", text)
    elif isinstance(node, Items):
        for item in node.items:
            yield from _unknown_paths(item, known, path)
    elif isinstance(node, Table):
        for key, below in node.entries.items():
            inner = f"{path}.{key}" if path else key
            if any(name == inner or name.startswith(f"{inner}.") for name in known):
                yield from _unknown_paths(below, known, inner)
            else:
                near = did_you_mean(inner, known)
                text = f"the mapping names no value '{inner}'{near}"
                yield MappingProblem(node.keys[key], "", text)


_FIXED: Mapping[ResourceType, Mapping[str, str]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: {
            "resourceType": "",
            "identifier.use": "always so",
            "identifier.type.coding.system": "constants.identifier_type_system",
            "identifier.type.coding.version": "constants.identifier_type_version",
            "identifier.type.coding.display": "constants.identifier_type_display",
            "identifier.type.coding.code": "always so",
            "class.display": "the label of the code",
            "class.system": "constants.class_code_system",
            "serviceProvider.extension.url": "constants.functional_unit_extension",
        },
        ResourceType.PATIENT: {
            "resourceType": "",
            "identifier.type.coding.system": "constants.patient_identifier_type_system",
            "link.type": "always so",
        },
        ResourceType.ORGANIZATION: {
            "resourceType": "",
            "identifier.type.coding.system": "constants.organization_identifier_type_system",
        },
    }
)
"""Elements that no field makes, and what does."""

_STAY = ResourceType.ENCOUNTER
_ASSIGNER = "identifier.assigner"
"""An element of stays that the field organization_id makes besides its own."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What makes one element; `rule` is in words, `mark` the line that says so."""

    rule: str
    traced: TracedField | None = None
    mark: Mark | None = None

    @property
    def columns(self) -> str:
        """The columns that the element comes from, "" for none."""
        return ", ".join(self.traced.field.columns) if self.traced else ""


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of the elements of one resource."""

    file: MappingFile
    kind: ResourceType
    traced: Sequence[TracedField]

    def of(self, path: str) -> Origin:
        """Return what makes, or would make, the element at a path (`name[0].family`)."""
        element = unnumbered(path)
        for fixed, rule in _FIXED[self.kind].items():
            if is_below(element, fixed):
                return self._fixed(rule)
        for traced in self.traced:
            if traced.name == "replaced_by" and traced.value and element == "active":
                rule = "a patient who was merged into another is not active"
                return Origin(rule, traced, rule_of(self.file, traced)[1])
            is_house = traced.name == "organization_id" and self.kind is _STAY
            if is_house and is_below(element, _ASSIGNER):
                return self._origin(traced)
        making = [traced for traced in self.traced if _makes(traced, path, element)]
        if making:
            return self._origin(max(making, key=_nearness))
        # Where several fields make an element together, the first that makes anything.
        inside = [m for m in self.traced if is_below(unnumbered(m.element), element)]
        inside.sort(key=lambda m: not m.value)
        return self._origin(inside[0]) if inside else Origin("")

    def _fixed(self, rule: str) -> Origin:
        """Return the line of a constant, or say that it has its default value."""
        section, _, name = rule.partition(".")
        node = find(self.file.root, (section, name)) if name else None
        if not name or node:
            return Origin(rule, mark=node.mark if node else None)
        return Origin(f"{rule}, as nothing else is said")

    def _origin(self, traced: TracedField) -> Origin:
        rule, mark = rule_of(self.file, traced)
        return Origin(rule, traced, mark)


def elements_of(kind: ResourceType) -> tuple[str, ...]:
    """Return every element of a resource type that this service can make."""
    elements = [slot.element for slot in SLOTS[kind]]
    for listed in LISTS[kind]:
        elements += [
            f"{listed.element}.{slot.element}" for slot in (*listed.slots, LINES)
        ]
    elements += _FIXED[kind]
    elements += [_ASSIGNER] if kind is _STAY else []
    whole = [e[: dot.start()] for e in elements for dot in re.finditer(r"\.", e)]
    return tuple(dict.fromkeys((*elements, *whole)))


def rule_of(file: MappingFile, traced: TracedField) -> tuple[str, Mark]:
    """Return in words what a field does with its cells, and the line that says so."""
    field = traced.field
    if field.constant is not None:
        return "a constant", field.mark
    if field.codes is not None:
        return _code_rule(file, traced, field.codes)
    if field.time is not None:
        return _time_rule(traced), field.mark
    if field.split:
        return f"split at {field.split!r}", field.mark
    return f"after the prefix {field.prefix}" if field.prefix else "", field.mark


def code_of(field: FieldMapping, cell: object) -> str | None:
    """Return the source code that a cell holds for a field, None for no value."""
    try:
        text = "" if cell is None else as_text(cell)
    except ValueError:
        return None
    return None if text in field.absent | {""} else text


def _code_rule(
    file: MappingFile, traced: TracedField, codes: CodeTable
) -> tuple[str, Mark]:
    name, code = f"codes.{codes.name}", code_of(traced.field, traced.cells[0][1])
    if code is not None and code in codes.table:
        rule = f"{name}: {code} → {codes.table[code]}"
        return rule, file.code_mark(codes.name, code)
    if codes.otherwise is not None:
        rule = f"{name}: otherwise → {codes.otherwise}"
        return rule, file.code_mark(codes.name, None)
    return name, traced.field.mark


def _time_rule(traced: TracedField) -> str:
    rule = traced.field.time
    assert rule is not None, "only times have such a rule"
    parts = [f"read as {rule.format}"] if rule.format else []
    if rule.at is not None:
        parts.append(f"at {rule.at:%H:%M}")
    if traced.field.slot != "birth_date":
        parts.append(
            "by its own offset" if traced.has_offset else f"in {rule.zone.key}"
        )
        if traced.has_offset or rule.written.key != rule.zone.key:
            parts.append(f"written in {rule.written.key}")
    return ", ".join(parts)


def _nearness(traced: TracedField) -> tuple[int, bool, bool]:
    """Return the rank of a field that makes an element: an exact one with a value is highest."""
    return len(traced.element), bool(traced.value), traced.is_filled


def _makes(traced: TracedField, path: str, element: str) -> bool:
    if "[" in traced.element:
        return traced.is_included and is_below(path, traced.element)
    return is_below(element, traced.element)


def unnumbered(path: str) -> str:
    """Return a path without the numbers of list items."""
    return re.sub(r"\[\d+\]", "", path)


def is_below(path: str, element: str) -> bool:
    """Whether a path is that of an element, or of something inside it."""
    return path == element or path.startswith((f"{element}.", f"{element}["))
