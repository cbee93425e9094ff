"""A search of a test: its parameters, and the rows that it searches in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from adapters.contract import ResourceType
from adapters.mapping.model import ResourceMapping
from adapters.mapping.nodes import Items, Node, Scalar, Table
from adapters.mapping.problems import MappingError, MappingProblem
from app.tools.given import Cells, read_cells, read_items, rows_of
from app.tools.sections import MappingFile, NoSectionError
from app.tools.testing.cases import Case

_LOOKS_ITSELF = (
    "an HTTP system looks for the rows itself: leave them out, and say expect_request"
)


@dataclass(frozen=True, slots=True)
class Searched:
    """What is asked, as a form says it, and the written rows by section and item."""

    pairs: tuple[tuple[str, str], ...]
    rows: Mapping[int, tuple[Cells, ...]]
    sections: tuple[tuple[ResourceMapping, tuple[Cells, ...]], ...]

    @property
    def names(self) -> frozenset[str]:
        """The names of the parameters."""
        return frozenset(name for name, _ in self.pairs)


@dataclass(slots=True)
class _Reader:
    """Reads the rows of one case, and collects what is wrong with them."""

    file: MappingFile
    problems: list[MappingProblem] = field(default_factory=list)
    rows: dict[int, tuple[Cells, ...]] = field(default_factory=dict)
    sections: list[tuple[ResourceMapping, tuple[Cells, ...]]] = field(
        default_factory=list
    )

    def given(self, node: Node, kind: ResourceType, source: str) -> None:
        """Read a list of rows, or one list for each source by its name."""
        if not isinstance(node, Table):
            self._section(node, self.file.section(kind, source))
            return
        for name, below in node.entries.items():
            try:
                self._section(below, self.file.section(kind, name))
            except NoSectionError as error:
                self.problems.append(MappingProblem(node.keys[name], "", str(error)))

    def items(self, node: Node, section: ResourceMapping) -> None:
        """Read the rows of items that have a SELECT of their own."""
        try:
            found = read_items(section, node)
        except MappingError as error:
            self.problems += error.problems
        else:
            self.rows |= {id(item): rows for item, rows in found.items()}

    def _section(self, node: Node, section: ResourceMapping) -> None:
        if section.http is not None:
            self.problems.append(MappingProblem(node.mark, "", _LOOKS_ITSELF))
            return
        cells = tuple(self._cells(node, section))
        self.rows[id(section)] = cells
        self.sections.append((section, cells))

    def _cells(self, node: Node, section: ResourceMapping) -> Iterator[Cells]:
        try:
            rows = rows_of(node)
        except MappingError as error:
            self.problems += error.problems
            return
        for row in rows:
            try:
                yield read_cells(section, row)
            except MappingError as error:
                self.problems += error.problems


def read_searched(file: MappingFile, case: Case) -> Searched:
    """Return the search of a case; raises MappingError with all that is wrong with it."""
    try:
        return _read(file, case)
    except NoSectionError as error:
        raise MappingError([case.problem("source", str(error))]) from error


def _read(file: MappingFile, case: Case) -> Searched:
    reader = _Reader(file)
    if not file.sections(case.kind):
        file.section(case.kind)
    if "given" in case.parts:
        reader.given(case.parts["given"], case.kind, case.source)
    own = tuple(reader.sections)
    if "given_items" in case.parts:
        section = file.section(case.kind, case.source)
        reader.items(case.parts["given_items"], section)
    if "given_patients" in case.parts:
        reader.given(case.parts["given_patients"], ResourceType.PATIENT, "")
    search = case.parts["search"]
    assert isinstance(search, Table)
    pairs = tuple(_pairs(search, reader.problems))
    if reader.problems:
        raise MappingError(reader.problems)
    return Searched(pairs, reader.rows, own)


def _pairs(search: Table, problems: list[MappingProblem]) -> Iterator[tuple[str, str]]:
    """Yield each parameter with its value; a list is the parameter several times."""
    for name, node in search.entries.items():
        for value in node.items if isinstance(node, Items) else (node,):
            if isinstance(value, Scalar):
                yield name, value.text
            else:
                text = f"expected a value of '{name}', or a list of values"
                problems.append(MappingProblem(value.mark, "", text))
