"""What tests have looked at: fields, entries of code tables, search parameters, sort keys."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from adapters.contract import SortKey
from adapters.mapping.model import FieldMapping, ItemMapping, Mark, ResourceMapping
from adapters.mapping.slots import LINES, LISTS, SLOTS
from adapters.mapping.trace import Made
from app.tools.origins import code_of
from app.tools.report import Finding, Severity
from app.tools.sections import MappingFile

KINDS = ("field", "code", "search parameter", "sort key")
"""What can be covered."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing of a mapping file that a test can touch."""

    kind: str
    key: tuple[object, ...]
    mark: Mark
    element: str
    source: str
    text: str

    def finding(self, severity: Severity) -> Finding:
        """Return the finding that says that no test touched it."""
        mark = self.mark
        place = (mark.file, mark.line, mark.column)
        text = f"no test touches {self.text}"
        return Finding(*place, text, self.element, self.source, severity)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the tests of one mapping have touched so far."""

    touched: set[tuple[object, ...]] = dataclasses.field(default_factory=set)

    def made(self, made: Made) -> None:
        """Count a field that an expectation looks at, and the code that it read."""
        self.touched.add(_field_key(made.field))
        if made.fault is None and made.cells:
            self.code(made.field, made.cells[0][1])

    def code(self, field: FieldMapping, cell: object) -> None:
        """Count the entry of a code table that a cell goes by."""
        codes = field.codes
        if codes is not None:
            code = code_of(field, cell)
            self.touched.add((codes.name, code if code in codes.table else None))

    def parameter(self, section: ResourceMapping, name: str) -> None:
        """Count a search parameter of a section."""
        self.touched.add((id(section), "search", name))

    def sort(self, section: ResourceMapping, key: SortKey) -> None:
        """Count the order of a search."""
        self.touched.add((id(section), "sort", key))

    def gaps(self, file: MappingFile) -> list[Target]:
        """Return what no test touched, in the order of the file."""
        found = [t for t in targets(file) if t.key not in self.touched]
        return sorted(found, key=lambda t: (t.mark.file, t.mark.line, t.mark.column))


def targets(file: MappingFile) -> Iterable[Target]:
    """Return everything of a mapping file that tests can touch, each thing once.

    A constant of the whole file is one field, however many sections have it.
    """
    return {target.key: target for target in _targets(file)}.values()


def _targets(file: MappingFile) -> Iterator[Target]:
    tables: dict[str, None] = {}
    for section in file.mapping.sections:
        of_source = file.of_source(section)
        for element, made in _fields(section):
            path = f"{section.resource_type}.{element}"
            columns, text = ", ".join(made.columns), f"this field{of_source}"
            yield Target("field", _field_key(made), made.mark, path, columns, text)
            if made.codes is not None:
                tables[made.codes.name] = None
        yield from _questions(file, section)
    for name in tables:
        yield from _codes(file, name)


def _field_key(field: FieldMapping) -> tuple[object, ...]:
    return ("field", field.mark)


def _fields(section: ResourceMapping) -> Iterator[tuple[str, FieldMapping]]:
    for slot in SLOTS[section.resource_type]:
        if slot.record in section.fields:
            yield slot.element, section.fields[slot.record]
    for listed in LISTS[section.resource_type]:
        for item in section.items.get(listed.name, ()):
            for slot in listed.slots:
                if _is_written(item, slot.record):
                    element = f"{listed.element}.{slot.element}"
                    yield element, item.fields[slot.record]
            yield from ((f"{listed.element}.{LINES.element}", f) for f in item.lines)


def _is_written(item: ItemMapping, slot: str) -> bool:
    """Whether the file says it, rather than what is known of the identifier's type."""
    return slot in item.fields and item.fields[slot].mark != item.mark


def _questions(file: MappingFile, section: ResourceMapping) -> Iterator[Target]:
    title, of_source = str(section.resource_type), file.of_source(section)
    for name in section.parameters:
        mark = file.listed_mark(section, "search", name)
        key = (id(section), "search", name)
        text = f"the search parameter '{name}'{of_source}"
        yield Target("search parameter", key, mark, title, "", text)
    for sort in section.sorts:
        mark = file.listed_mark(section, "sort", sort)
        key = (id(section), "sort", sort)
        text = f"the sort key '{sort}'{of_source}"
        yield Target("sort key", key, mark, title, "", text)


def _codes(file: MappingFile, name: str) -> Iterator[Target]:
    codes = file.mapping.codes[name]
    entries: dict[str | None, str] = dict(codes.table.items())
    if codes.otherwise is not None:
        entries[None] = codes.otherwise
    for code, made in entries.items():
        mark, shown = file.code_mark(name, code), code or "otherwise"
        title = f"codes.{name}"
        yield Target("code", (name, code), mark, title, "", f"{shown} → {made}")
