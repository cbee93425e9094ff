"""A row, what it becomes, and where each element of that is from."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import orjson

from adapters.contract import RowFault
from adapters.mapping.problems import MappingProblem
from adapters.mapping.trace import Made, trace
from adapters.mapping.values import LONGEST_CODE, as_text, quoted
from adapters.rows import SourceRow
from app.tools.origins import Origin, Origins, rule_of
from app.tools.report import Finding
from app.tools.sections import MappingFile
from app.tools.testing.compare import leaves, written
from app.tools.testing.rows import element_of, outcome_of

_UNSERVED = {
    "hidden": "the row is hidden: it is never served, and reading it is answered 404",
    "removed": "the row is removed: no search finds it, and reading it is answered 410",
}


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


class Preview:
    """A row, what it becomes, and where each element is from."""

    def __init__(self, file: MappingFile, row: SourceRow, *, is_redacted: bool) -> None:
        self._file = file
        self._kind = row.section.resource_type
        self._section = row.section
        self._redacted = is_redacted
        self._made = trace(row.section, row.columns, row.cells, row.items)
        self._outcome = outcome_of(file, row)
        self._origins = Origins(file, self._kind, self._made)
        self.faults = tuple(self._faults())

    def told(self) -> Iterator[str]:
        """Yield the preview for people."""
        if isinstance(self._outcome, RowFault):
            yield from map(str, self.faults)
            yield "\nWhat its fields hold:"
        elif isinstance(self._outcome, str):
            yield _UNSERVED[self._outcome]
        else:
            yield orjson.dumps(self._outcome, option=orjson.OPT_INDENT_2).decode()
            yield "\nWhere each element is from:"
        for line in self._lines():
            yield from _told(line)
        empty = list(self._empty())
        if empty:
            yield "\nFields that give nothing:"
        for line in empty:
            yield from _told(line)

    def as_json(self) -> dict[str, object]:
        """Return the preview for machines."""
        made = isinstance(self._outcome, dict)
        return {
            "resource": self._outcome if made else None,
            "unserved": self._outcome if isinstance(self._outcome, str) else None,
            "faults": [asdict(fault) for fault in self.faults],
            "elements": [asdict(line) for line in self._lines()],
            "empty": [asdict(line) for line in self._empty()],
        }

    def _faults(self) -> Iterator[Finding]:
        """Yield every fault of the row: RowMapper tells the first alone."""
        if not isinstance(self._outcome, RowFault):
            return
        # Nobody reads the other columns of an item that is left out.
        of_cells = [m.fault for m in self._made if m.fault is not None and m.kept]
        for fault in dict.fromkeys([*of_cells, self._outcome]):
            makers = (m.field.mark for m in self._made if m.name == fault.field)
            mark = next(makers, self._section.mark)
            element = element_of(self._kind, fault)
            problem = MappingProblem(mark, element, fault.rule, fault.column)
            yield Finding.of(problem)

    def _lines(self) -> Iterator[Line]:
        if isinstance(self._outcome, dict):
            for path, value in leaves(self._outcome):
                if path != "resourceType":
                    yield self._line(path, value, self._origins.of(path))
            return
        for made in self._made:
            if not made.kept:
                continue
            if made.fault is not None:
                origin = Origin(f"a fault: {made.fault.rule}", made, made.field.mark)
                yield self._line(made.element, None, origin)
            elif made.value not in (None, ()):
                rule, mark = rule_of(self._file, made)
                value = _plain(made.value)
                yield self._line(made.element, value, Origin(rule, made, mark))

    def _empty(self) -> Iterator[Line]:
        for made in self._made:
            is_nothing = made.fault is None and made.value in (None, ())
            if made.cells and (is_nothing or not made.kept):
                yield self._line(made.element, None, self._nothing(made))

    def _nothing(self, made: Made) -> Origin:
        """Return why a field gives nothing."""
        mark = made.field.mark
        condition = made.item.only_if if made.item else None
        if condition and not made.counts:
            said = f"the item is left out: only_if {condition.column}"
            return Origin(said, made, mark)
        if not made.kept and made.value not in (None, ()):
            return Origin("the item is left out: nothing else in it", made, mark)
        if not made.is_filled:
            return Origin("", made, mark)
        return Origin("stands for no value", made, mark)

    def _line(self, element: str, value: Any, origin: Origin) -> Line:
        made, place = origin.made, str(origin.mark) if origin.mark else ""
        cells = {c: self._cell(made, cell) for c, cell in made.cells} if made else {}
        return Line(f"{self._kind}.{element}", value, cells, origin.rule, place)

    def _cell(self, made: Made | None, cell: object) -> str | None:
        if cell is None:
            return None
        try:
            if isinstance(cell, list) and made and not made.fault:
                text = ", ".join(as_text(one) for one in cell if one is not None)
            else:
                text = as_text(cell)
        except ValueError:
            return f"a value of type {type(cell).__name__}"
        return _shown(text, made) if self._redacted and made else text


def _shown(text: str, made: Made) -> str:
    """Return a cell that no stand-in took the place of, as far as a ticket may hold it."""
    codes = made.field.codes
    if codes is None:
        return "not shown: it is a fault" if made.fault else text
    # A text that is too long for a code may be anything (decision 16).
    is_code = text in codes.table or len(text) <= LONGEST_CODE
    return text if is_code else quoted(text)


def _plain(value: Any) -> Any:
    """Return what a field makes as a resource would write it."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, (bool, date)):
        return as_text(value)
    return str(value)


def _told(line: Line) -> Iterator[str]:
    cells = ", ".join(
        f"{column} = {'NULL' if cell is None else repr(cell)}"
        for column, cell in line.cells.items()
    )
    values = line.value if isinstance(line.value, list) else [line.value]
    shown = f" = {', '.join(map(written, values))}" if line.value is not None else ""
    yield f"  {line.element}{shown}"
    said = "; ".join(part for part in (cells, line.rule) if part)
    yield "      ← " + "   ".join(part for part in (said, line.place) if part)
