"""`encounters mapping preview`: a row, its resource, and where each element comes from.

With `--redact` what identifies a person is masked: in the cells, in the resource, and in
every line of the preview. The row itself is mapped as it is, so its faults stay.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from adapters.contract import (
    AdapterError,
    GoneError,
    NotFoundError,
    ResourceType,
    RowFault,
    SourceUnavailableError,
)
from adapters.inspection import SourceRow, find_row
from adapters.mapping.lineage import TracedField
from adapters.mapping.problems import MappingError
from adapters.mapping.slots import SECTIONS
from adapters.mapping.values import LONGEST_CODE, as_text
from adapters.mapping.yaml import Table, parse_file
from app.cli.check import (
    FINDINGS,
    FINE,
    CannotRunError,
    Finding,
    MappingFile,
    NoSectionError,
    print_json,
)
from app.cli.rows import MappedRow, Origin, element_of, in_words, leaves, read_row

MASK = "***"

_PERSONAL = frozenset(
    {
        *("Encounter.id", "Encounter.visit_number", "Encounter.patient_id"),
        *("Patient.id", "Patient.replaced_by"),
        *("Patient.birth_date", "Patient.deceased_at"),
        *("Patient.identifiers.value", "Patient.telecoms.value"),
        *("Patient.names.family", "Patient.names.given", "Patient.names.text"),
        *("Patient.addresses.lines", "Patient.addresses.city"),
        "Patient.addresses.postal_code",
    }
)
"""The slots that tell whose row it is. Times of a stay, codes and units are shown."""

_UNSERVED = {
    "hidden": "the row is hidden: it is never served, and reading it returns 404",
    "removed": "the row is removed: no search finds it, and reading it returns 410",
}

_USAGE = (
    "--live takes --id, which row, as clients see its id; --source is for --row, since "
    "such an id tells its source"
)


def run(options: SimpleNamespace) -> int:
    """Preview one row and return the exit status: 1 for a row that is a fault."""
    kind = SECTIONS[options.of]
    if options.live is not bool(options.id) or (options.live and options.source):
        raise CannotRunError(_USAGE)
    try:
        file, row = (_live if options.live else _written)(options, kind)
    except (MappingError, NoSectionError) as error:
        raise CannotRunError(str(error)) from error
    preview = Preview(MappedRow.of(file, row), is_redacted=options.redact)
    if options.json:
        print_json(preview.as_json())
    else:
        print("\n".join(preview.as_text()))
    return FINDINGS if preview.faults else FINE


def _written(
    options: SimpleNamespace, kind: ResourceType
) -> tuple[MappingFile, SourceRow]:
    """Return the row that a file holds."""
    file = MappingFile.open(options.file)
    root, problems = parse_file(Path(options.row))
    if problems:
        raise MappingError(problems)
    section = file.section(kind, options.source)
    cells = {k: v for k, v in root.entries.items() if k != "given_items"}
    row = Table(root.mark, cells, root.keys)
    return file, read_row(file, section, row, root.entries.get("given_items"))


def _live(
    options: SimpleNamespace, kind: ResourceType
) -> tuple[MappingFile, SourceRow]:
    """Return the row that the source holds."""
    file = MappingFile.open(options.file, os.environ)
    sections = file.sections(kind) or (file.section(kind),)
    try:
        return file, find_row(file.mapping, kind, options.id)
    except (NotFoundError, GoneError) as error:
        prefixes = sorted({s.fields["id"].prefix for s in sections})
        is_of_none = not options.id.startswith(tuple(prefixes))
        why = f": its ids begin with {' or '.join(prefixes)}" if is_of_none else ""
        raise CannotRunError(f"the source has no such {options.of}{why}") from error
    except SourceUnavailableError as error:
        raise CannotRunError(f"the source does not answer: {error}") from error
    except AdapterError as error:
        raise CannotRunError(f"the source cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Line:
    """One element of the preview, or one field that gave none.

    `cells` are the columns and what they hold; `rule` is in words, `place` the line of
    the mapping file that says so.
    """

    element: str
    value: Any
    cells: dict[str, str | None]
    rule: str
    place: str

    def __str__(self) -> str:
        cells = ", ".join(
            f"{column} = {'NULL' if cell is None else repr(cell)}"
            for column, cell in self.cells.items()
        )
        values = self.value if isinstance(self.value, list) else [self.value]
        value = "" if self.value is None else f" = {', '.join(map(in_words, values))}"
        rule = "; ".join(part for part in (cells, self.rule) if part)
        origin = "   ".join(part for part in (rule, self.place) if part)
        return f"  {self.element}{value}\n      ← {origin}"


class Preview:
    """A row, what it becomes, and where each element comes from."""

    def __init__(self, row: MappedRow, *, is_redacted: bool) -> None:
        self._row = row
        self._kind = row.section.resource_type
        self._is_redacted = is_redacted
        is_served = isinstance(row.outcome, dict)
        self._resource = self._masked(row.outcome, "") if is_served else None
        self._unserved = row.outcome if isinstance(row.outcome, str) else None
        self.faults = tuple(self._faults())

    def as_text(self) -> Iterator[str]:
        """Yield the preview for people."""
        if self._resource is not None:
            yield orjson.dumps(self._resource, option=orjson.OPT_INDENT_2).decode()
            yield "\nWhere each element is from:"
        elif self._unserved:
            yield _UNSERVED[self._unserved]
        else:
            yield from map(str, self.faults)
            yield "\nWhat its fields hold:"
        yield from map(str, self._lines())
        empty = tuple(self._empty())
        if empty:
            yield "\nFields that give nothing:"
        yield from map(str, empty)

    def as_json(self) -> dict[str, object]:
        """Return the preview for machines."""
        return {
            "resource": self._resource,
            "unserved": self._unserved,
            "faults": [asdict(fault) for fault in self.faults],
            "elements": [asdict(line) for line in self._lines()],
            "empty": [asdict(line) for line in self._empty()],
        }

    def _masked(self, value: Any, path: str) -> Any:
        """Return a part of the resource, with a mask for what identifies a person."""
        if isinstance(value, dict):
            return {
                key: self._masked(below, f"{path}.{key}" if path else key)
                for key, below in value.items()
            }
        if isinstance(value, list):
            return [self._masked(b, f"{path}[{n}]") for n, b in enumerate(value)]
        return MASK if self._is_masked(self._row.origin(path).traced) else value

    def _is_masked(self, traced: TracedField | None) -> bool:
        if traced is None or traced.field.constant is not None:
            return False
        return self._is_redacted and f"{self._kind}.{traced.name}" in _PERSONAL

    def _faults(self) -> Iterator[Finding]:
        """Yield every fault of the row: a search reports the first alone."""
        if not isinstance(self._row.outcome, RowFault):
            return
        # Nobody reads the other columns of an item that is left out.
        faults = [m.fault for m in self._row.traced if m.fault and m.is_included]
        for fault in dict.fromkeys([*faults, self._row.outcome]):
            makers = (m.field.mark for m in self._row.traced if m.name == fault.field)
            mark = next(makers, self._row.section.mark)
            element = element_of(self._kind, fault)
            yield Finding.at(mark, fault.rule, element, fault.column)

    def _lines(self) -> Iterator[Line]:
        """Yield what there is of the resource, or else what each field holds."""
        for path, value in leaves(self._resource or {}):
            if path != "resourceType":
                yield self._line(path, value, self._row.origin(path))
        shown = () if self._resource else self._row.traced
        for traced in (traced for traced in shown if traced.is_included):
            origin = self._row.origin_of(traced)
            if traced.fault is not None:
                origin = Origin(
                    f"a fault: {traced.fault.rule}", traced, traced.field.mark
                )
                yield self._line(traced.element, None, origin)
            elif traced.value not in (None, ()):
                value = MASK if self._is_masked(traced) else _plain(traced.value)
                yield self._line(traced.element, value, origin)

    def _empty(self) -> Iterator[Line]:
        """Yield the fields that give nothing, and why."""
        for traced in self._row.traced:
            is_nothing = traced.fault is None and traced.value in (None, ())
            if not traced.cells or (traced.is_included and not is_nothing):
                continue
            condition = traced.item.only_if if traced.item else None
            reason = "stands for no value" if traced.is_filled else ""
            if condition and not traced.counts:
                reason = f"the item is left out: only_if {condition.column}"
            elif not traced.is_included and traced.value not in (None, ()):
                reason = "the item is left out: nothing else in it"
            origin = Origin(reason, traced, traced.field.mark)
            yield self._line(traced.element, None, origin)

    def _line(self, element: str, value: Any, origin: Origin) -> Line:
        traced = origin.traced
        cells = {c: self._cell(traced, v) for c, v in traced.cells} if traced else {}
        return Line(f"{self._kind}.{element}", value, cells, origin.rule, origin.place)

    def _cell(self, traced: TracedField, cell: object) -> str | None:
        if cell is None:
            return None
        if self._is_masked(traced):
            return MASK
        try:
            if isinstance(cell, list) and not traced.fault:
                text = ", ".join(as_text(one) for one in cell if one is not None)
            else:
                text = as_text(cell)
        except ValueError:
            return f"a value of type {type(cell).__name__}"
        codes = traced.field.codes
        # A fault, and a text that is too long for a code, may be anything (decision 16).
        is_code = codes is not None and (
            text in codes.table or len(text) <= LONGEST_CODE
        )
        is_known = is_code or (codes is None and traced.fault is None)
        return text if is_known or not self._is_redacted else MASK


def _plain(value: Any) -> Any:
    """Return what a field makes as a resource would write it."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return as_text(value) if isinstance(value, (bool, date)) else str(value)
