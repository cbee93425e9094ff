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
    """One thing of a mapping file that a test can touch: `name`, among those of `group`."""

    kind: str
    key: tuple[object, ...]
    mark: Mark
    group: str
    name: str

    def finding(self, severity: Severity) -> Finding:
        """Return the finding that says that no test touches it."""
        return _finding(self.mark, f"{self.kind} {self.name}", self.group, severity)


def together(targets: Iterable[Target], severity: Severity) -> Iterator[Finding]:
    """Yield one finding for all of a group, at the place of the first: for people."""
    groups: dict[tuple[str, str], list[Target]] = {}
    for target in targets:
        groups.setdefault((target.kind, target.group), []).append(target)
    for (kind, group), found in groups.items():
        names = ", ".join(dict.fromkeys(target.name for target in found))
        said = f"{kind}{'s' * (len(found) > 1)} {names}"
        yield _finding(found[0].mark, said, group, severity)


def _finding(mark: Mark, what: str, group: str, severity: Severity) -> Finding:
    text = f"no test touches the {what}"
    return Finding(mark.file, mark.line, mark.column, text, group, severity=severity)


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
        self.touched.add(_search_key(section, name))

    def sort(self, section: ResourceMapping, key: SortKey) -> None:
        """Count the order that a search asks for."""
        self.touched.add(_sort_key(section, key))

    def gaps(self, file: MappingFile) -> list[Target]:
        """Return what no test touched, in the order of the file."""
        found = [t for t in targets(file) if t.key not in self.touched]
        return sorted(found, key=lambda t: (t.mark.file, t.mark.line, t.mark.column))


def targets(file: MappingFile) -> Iterable[Target]:
    """Return everything that a mapping file says and tests can touch, each thing once.

    What a file says that this one extends is for the tests beside that one. A constant
    of the whole file is one field, however many sections have it.
    """
    own = file.root.mark.file
    found = (target for target in _targets(file) if target.mark.file == own)
    return {target.key: target for target in found}.values()


def _targets(file: MappingFile) -> Iterator[Target]:
    tables: dict[str, None] = {}
    for section in file.mapping.sections:
        group = f"{section.resource_type}{file.of_source(section)}"
        for element, field in _fields(section):
            yield Target("field", _field_key(field), field.mark, group, element)
            if field.codes is not None:
                tables[field.codes.name] = None
        yield from _questions(file, section, group)
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


def _questions(
    file: MappingFile, section: ResourceMapping, group: str
) -> Iterator[Target]:
    offered = file.offered(section.resource_type)
    for name in (name for name in section.parameters if name in offered):
        mark = file.listed_mark(section, "search", name)
        yield Target("search parameter", _search_key(section, name), mark, group, name)
    for sort in section.sorts if "_sort" in offered else ():
        mark = file.listed_mark(section, "sort", sort)
        yield Target("sort key", _sort_key(section, sort), mark, group, sort)


def _search_key(section: ResourceMapping, name: str) -> tuple[object, ...]:
    return (id(section), "search", name)


def _sort_key(section: ResourceMapping, key: SortKey) -> tuple[object, ...]:
    return (id(section), "sort", key)


def _codes(file: MappingFile, name: str) -> Iterator[Target]:
    codes = file.mapping.codes[name]
    entries: list[str | None] = [*codes.table]
    if codes.otherwise is not None:
        entries.append(None)
    for code in entries:
        mark, shown = file.code_mark(name, code), code or "otherwise"
        yield Target("code", (name, code), mark, f"codes.{name}", shown)
