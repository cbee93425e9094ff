"""A row of a test → the resource or the fault that the service makes of it."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from adapters.contract import EncounterRecord, ResourceType, RowFault
from adapters.mapping.apply import RowMapper
from adapters.mapping.model import Mark, ResourceMapping
from adapters.mapping.nodes import Scalar, Table
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.slots import LISTS, SLOTS, UNSERVED
from adapters.mapping.trace import Made, trace
from adapters.rows import SourceRow
from app.schemas.resources import resource_schemas
from app.tools.given import read_row
from app.tools.origins import Origin, Origins, elements_of, is_below, unnumbered
from app.tools.report import Finding
from app.tools.sections import MappingFile, NoSectionError
from app.tools.testing.cases import Case
from app.tools.testing.compare import Compared, compare, holds
from app.tools.testing.coverage import Coverage


def outcome_of(file: MappingFile, row: SourceRow) -> Any:
    """Return what clients would get: a resource, a RowFault, or `hidden` or `removed`."""
    mapped = RowMapper(row.section, row.columns)(row.cells, row.items)
    if isinstance(mapped, RowFault):
        return mapped
    if isinstance(mapped, EncounterRecord) and mapped.status in UNSERVED:
        return mapped.status
    schema = resource_schemas(file.mapping.constants)[row.section.resource_type]
    return orjson.loads(orjson.dumps(schema.dump(mapped)))


def read_case_row(file: MappingFile, case: Case) -> SourceRow:
    """Return the row of a case; raises MappingError with all that is wrong with it."""
    given = case.parts["given"]
    assert isinstance(given, Table), "the shape of a case says so"
    problems = list(_unknown_elements(case))
    try:
        section = file.section(case.kind, case.source)
    except NoSectionError as error:
        raise MappingError([case.problem("source", str(error))]) from error
    try:
        row = read_row(section, given, case.parts.get("given_items"))
    except MappingError as error:
        problems += error.problems
    if problems:
        raise MappingError(problems)
    return row


def _unknown_elements(case: Case) -> Iterator[MappingProblem]:
    """Yield a problem for each path that is always absent: it is misspelt."""
    known = elements_of(case.kind)
    for path in case.texts("expect_absent"):
        wanted = unnumbered(path.text)
        if not any(is_below(wanted, element) for element in known):
            text = f"{case.kind} has no element '{wanted}' here"
            near = did_you_mean(wanted, known)
            yield MappingProblem(path.mark, "", text + near)


def run_row(
    file: MappingFile, case: Case, row: SourceRow, coverage: Coverage
) -> Iterator[Finding]:
    """Yield how the row of a case differs from what is expected of it."""
    made = trace(row.section, row.columns, row.cells, row.items)
    found = outcome_of(file, row)
    checks = _Checks(file, row.section, made, coverage)
    if "expect_error" in case.parts:
        yield from checks.fault(case, found)
    elif isinstance(found, RowFault):
        yield checks.unexpected(case, found)
    else:
        yield from checks.resource(case, found)


class _Checks:
    """What is expected of one row, held against what came of it."""

    def __init__(
        self,
        file: MappingFile,
        section: ResourceMapping,
        made: Iterable[Made],
        coverage: Coverage,
    ) -> None:
        self._kind = section.resource_type
        self._section = section
        self._made = tuple(made)
        self._origins = Origins(file, self._kind, self._made)
        self._coverage = coverage

    def fault(self, case: Case, found: Any) -> Iterator[Finding]:
        wanted, mark = case.text("expect_error"), case.parts["expect_error"].mark
        if not isinstance(found, RowFault):
            is_ = f"'{found}'" if isinstance(found, str) else "a resource"
            text = f"expected the fault '{wanted}', and the row is {is_}"
            yield _finding(mark, self._kind, "", text)
            return
        makers = [m for m in self._made if m.name == found.field]
        for made in makers:
            self._coverage.made(made)
        said = told(self._kind, found)
        if wanted not in said:
            text = f"expected the fault '{wanted}', and it is '{said}'"
            yield _finding(mark, self._kind, found.column, text)

    def unexpected(self, case: Case, fault: RowFault) -> Finding:
        expected = case.parts.get("expect") or case.parts["expect_absent"]
        at = next((m.field.mark for m in self._made if m.name == fault.field), None)
        where = f" ({at})" if at else ""
        text = f"the row is a fault{where}: {fault.rule}"
        return _finding(
            expected.mark, element_of(self._kind, fault), fault.column, text
        )

    def resource(self, case: Case, found: Any) -> Iterator[Finding]:
        expected = case.parts.get("expect")
        if isinstance(found, str) or isinstance(expected, Scalar):
            yield from self._unserved(case, found)
            return
        if expected is not None:
            for each in compare(expected, found):
                yield from self._compared(each)
        for path in case.texts("expect_absent"):
            yield from self._absent(path, found)

    def _unserved(self, case: Case, found: Any) -> Iterator[Finding]:
        for made in (m for m in self._made if m.name == "status"):
            self._coverage.made(made)
        expected = case.parts.get("expect")
        wanted = expected.text if isinstance(expected, Scalar) else "a resource"
        is_ = found if isinstance(found, str) else "a resource"
        if wanted != is_:
            mark = expected.mark if expected else case.mark
            text = f"expected {wanted}, and the row is {is_}"
            yield _finding(mark, self._kind, "", text)

    def _compared(self, each: Compared) -> Iterator[Finding]:
        origin = self._origins.of(each.path)
        if origin.made is not None:
            self._coverage.made(origin.made)
        if each.text:
            element = f"{self._kind}.{each.path}"
            text = f"{each.text}{_made_at(origin)}"
            yield _finding(each.mark, element, origin.columns, text)

    def _absent(self, path: Scalar, found: Any) -> Iterator[Finding]:
        for made in self._made:
            elements = (made.element, unnumbered(made.element))
            if made.is_filled and any(is_below(e, path.text) for e in elements):
                self._coverage.made(made)
        if holds(found, path.text):
            origin = self._origins.of(path.text)
            text = f"expected nothing here, and there is something{_made_at(origin)}"
            element = f"{self._kind}.{path.text}"
            yield _finding(path.mark, element, origin.columns, text)


def element_of(kind: ResourceType, fault: RowFault) -> str:
    """Return the FHIR element of a fault."""
    listed, _, name = fault.field.partition(".")
    for slot in SLOTS[kind]:
        if slot.name == fault.field:
            return f"{kind}.{slot.element}"
    for each in LISTS[kind]:
        if each.name == listed:
            inner = {slot.name: slot.element for slot in each.slots}
            return f"{kind}.{each.element}.{inner.get(name, name)}"
    return f"{kind}.{fault.field}"


def told(kind: ResourceType, fault: RowFault) -> str:
    """Return a fault as tools tell it."""
    element = element_of(kind, fault)
    made = f"{element} ← {fault.column}" if fault.column else element
    return f"{made}: {fault.rule}"


def _made_at(origin: Origin) -> str:
    rule = f"{origin.rule}, " if origin.rule else ""
    if origin.mark is None:
        return f" ({origin.rule})" if origin.rule else ""
    return f" ({rule}{origin.mark})"


def _finding(mark: Mark, element: str, source: str, text: str) -> Finding:
    return Finding(mark.file, mark.line, mark.column, text, element, source)
