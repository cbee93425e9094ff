"""Where each element of a resource comes from: the field, its cells, the rule."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.mapping.model import CodeTable, FieldMapping, Mark
from adapters.mapping.nodes import find
from adapters.mapping.slots import LINES, LISTS, SLOTS
from adapters.mapping.trace import Made
from adapters.mapping.values import as_text
from app.tools.sections import MappingFile

_NUMBERS = re.compile(r"\[\d+\]")

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

_ALSO: Mapping[ResourceType, Mapping[str, str]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: {"identifier.assigner": "organization_id"},
        ResourceType.PATIENT: {},
        ResourceType.ORGANIZATION: {},
    }
)
"""Elements that a field makes besides its own."""

_MERGED = "a patient who was merged into another is not active"


@dataclass(frozen=True, slots=True)
class Origin:
    """What made one element; `rule` is in words, `mark` the line that says so."""

    rule: str
    made: Made | None = None
    mark: Mark | None = None

    @property
    def columns(self) -> str:
        """The columns that the element comes from, "" for none."""
        return ", ".join(self.made.field.columns) if self.made else ""


class Origins:
    """The origins of the elements of one resource."""

    def __init__(
        self, file: MappingFile, kind: ResourceType, made: Sequence[Made]
    ) -> None:
        self._file = file
        self._kind = kind
        self._made = made

    def of(self, path: str) -> Origin:
        """Return what makes, or would make, the element at a path (`name[0].family`)."""
        plain = unnumbered(path)
        fixed = _FIXED[self._kind]
        for element, rule in fixed.items():
            if is_below(plain, element):
                return self._fixed(rule)
        merged = self._named("replaced_by")
        if plain == "active" and merged and merged.value:
            return self._origin(merged, _MERGED)
        for element, name in _ALSO[self._kind].items():
            also = self._named(name)
            if also and is_below(plain, element):
                return self._origin(also)
        found = [made for made in self._made if _makes(made, path, plain)]
        if found:
            return self._origin(max(found, key=_nearness))
        # What several fields make together is told by the first that makes anything.
        inside = [m for m in self._made if is_below(unnumbered(m.element), plain)]
        if not inside:
            return Origin("")
        return self._origin(next((m for m in inside if m.value), inside[0]))

    def _fixed(self, rule: str) -> Origin:
        """Return the line of a constant, or say that the file leaves it as it is."""
        section, _, name = rule.partition(".")
        if not name:
            return Origin(rule)
        found = find(self._file.root, (section, name))
        said = rule if found else f"{rule}, as nothing else is said"
        return Origin(said, mark=found.mark if found else None)

    def _named(self, name: str) -> Made | None:
        return next((made for made in self._made if made.name == name), None)

    def _origin(self, made: Made, rule: str = "") -> Origin:
        rule_, mark = rule_of(self._file, made)
        return Origin(rule or rule_, made, mark)


def elements_of(kind: ResourceType) -> tuple[str, ...]:
    """Return every element of a resource type that this service can make."""
    made = [slot.element for slot in SLOTS[kind]]
    for listed in LISTS[kind]:
        made += [f"{listed.element}.{slot.element}" for slot in (*listed.slots, LINES)]
    made += [*_FIXED[kind], *_ALSO[kind]]
    whole = [".".join(e.split(".")[: n + 1]) for e in made for n in range(e.count("."))]
    return tuple(dict.fromkeys((*made, *whole)))


def rule_of(file: MappingFile, made: Made) -> tuple[str, Mark]:
    """Return in words what a field does with its cells, and the line that says so."""
    field = made.field
    if field.constant is not None:
        return "a constant", field.mark
    if field.codes is not None:
        return _code_rule(file, made, field, field.codes)
    if field.time is not None:
        return _time_rule(made), field.mark
    if field.split:
        return f"split at {field.split!r}", field.mark
    return f"after the prefix {field.prefix}" if field.prefix else "", field.mark


def code_of(field: FieldMapping, cell: object) -> str | None:
    """Return the source code that a cell holds for a field, None for no value."""
    if cell is None:
        return None
    try:
        text = as_text(cell)
    except ValueError:
        return None
    return None if text in field.absent | {""} else text


def _code_rule(
    file: MappingFile, made: Made, field: FieldMapping, codes: CodeTable
) -> tuple[str, Mark]:
    code = code_of(field, made.cells[0][1])
    if code is not None and code in codes.table:
        rule = f"codes.{codes.name}: {code} → {codes.table[code]}"
        return rule, file.code_mark(codes.name, code)
    if codes.otherwise is not None:
        rule = f"codes.{codes.name}: otherwise → {codes.otherwise}"
        return rule, file.code_mark(codes.name, None)
    return f"codes.{codes.name}", field.mark


def _time_rule(made: Made) -> str:
    rule = made.field.time
    assert rule is not None, "asked for times alone"
    said = [f"read as {rule.format}"] if rule.format else []
    if rule.at is not None:
        said.append(f"at {rule.at:%H:%M}")
    if made.field.slot != "birth_date":
        said.append("by its own offset" if made.has_offset else f"in {rule.zone.key}")
        if made.has_offset or rule.written.key != rule.zone.key:
            said.append(f"written in {rule.written.key}")
    return ", ".join(said)


def _makes(made: Made, path: str, plain: str) -> bool:
    if "[" in made.element:
        return made.kept and is_below(path, made.element)
    return is_below(plain, made.element)


def _nearness(made: Made) -> tuple[int, bool, bool]:
    return len(made.element), bool(made.value), made.is_filled


def unnumbered(path: str) -> str:
    """Return a path without the numbers of list items."""
    return _NUMBERS.sub("", path)


def is_below(path: str, element: str) -> bool:
    """Whether a path is that of an element, or of something inside it."""
    return path == element or path.startswith((f"{element}.", f"{element}["))
