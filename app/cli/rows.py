"""Rows that a person wrote as YAML, as the source would return them.

Every value is the text that was written, as in a mapping file; a column that is left out
is NULL. What is wrong with a row is added to a list of problems: a column that the mapping
does not name, and a value that no cell can hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from adapters.contract import SourceDataError
from adapters.http.adapter import open_section
from adapters.inspection import SourceRow
from adapters.mapping.model import ItemMapping, ResourceMapping
from adapters.mapping.problems import MappingProblem, did_you_mean
from adapters.mapping.row_mapper import item_columns, known_columns, own_columns
from adapters.mapping.slots import Kind, places_of
from adapters.mapping.yaml import Items, Node, Scalar, Table, plain
from app.cli.check import MappingFile

Cells: TypeAlias = Mapping[str, Any]
Problems: TypeAlias = list[MappingProblem]
ItemRows: TypeAlias = Mapping[ItemMapping, Sequence[Sequence[object]]]

_TRUTH: Mapping[str, object] = {"true": True, "false": False, "1": 1, "0": 0}
"""What a column of a true-or-false field without a code table holds."""


def read_row(
    file: MappingFile,
    section: ResourceMapping,
    written: Table,
    items: Node | None,
    problems: Problems,
) -> SourceRow:
    """Return a written row; without meaning where it adds to the problems."""
    columns, below = own_columns(section), read_items(section, items, problems)
    if section.http is None:
        cells = read_cells(section, written, problems)
        of_items = {
            item: [tuple(map(row.get, item_columns(item))) for row in rows]
            for item, rows in below.items()
        }
        return SourceRow(section, columns, tuple(map(cells.get, columns)), of_items)
    opened = open_section(file.source_of(section), section.resource_type)
    try:
        own, lists = opened.cells(plain(written))
    except SourceDataError as error:
        problems.append(MappingProblem(written.mark, "", str(error)))
        return SourceRow(section, columns, (None,) * len(columns), {})
    cells = _with_flags(section, dict(zip(columns, own, strict=True)))
    return SourceRow(section, columns, tuple(cells.values()), lists)


def read_cells(section: ResourceMapping, written: Table, problems: Problems) -> Cells:
    """Return the cells of a written row by column."""
    problems += _refused(written, known_columns(section))
    return _with_flags(section, plain(written))


def read_items(
    section: ResourceMapping, items: Node | None, problems: Problems
) -> Mapping[ItemMapping, Sequence[Cells]]:
    """Return the written rows of each item that has a SELECT of its own.

    They stand by the name of the list (`identifiers`), with the number of the item in it
    where several have one (`identifiers.2`).
    """
    if not isinstance(items, Table):
        if items is not None:
            text = "expected lists and their rows here: {telecoms: [{…}]}"
            problems.append(MappingProblem(items.mark, "", text))
        return {}
    by_name, cells = dict(_named_items(section)), {}
    for name, node in items.entries.items():
        if item := by_name.get(name):
            rows = rows_of(node, problems)
            for row in rows:
                problems += _refused(row, known_item_columns(item))
            cells[item] = [plain(row) for row in rows]
        else:
            use = ", ".join(by_name) or "none, the section has no such item"
            text = f"no items of their own SELECT are called '{name}': use {use}"
            problems.append(MappingProblem(items.keys[name], "", text))
    return cells


def rows_of(node: Node, problems: Problems) -> Sequence[Table]:
    """Return the rows of a written list."""
    if not isinstance(node, Items):
        text = "expected a list of rows here: [{…}, {…}]"
        problems.append(MappingProblem(node.mark, "", text))
        return ()
    rows = [item for item in node.items if isinstance(item, Table)]
    problems += (
        MappingProblem(item.mark, "", "expected columns and values here")
        for item in node.items
        if not isinstance(item, Table)
    )
    return rows


def known_item_columns(item: ItemMapping) -> Sequence[str]:
    """Return every column of an item's own rows that the mapping names."""
    fields = (*item.fields.values(), *item.lines)
    searched = [field.search_column for field in fields if field.search_column]
    return tuple(dict.fromkeys((*item_columns(item), *searched)))


def is_below(path: str, above: str) -> bool:
    """Whether a path is that of an element, or of something inside it."""
    return path == above or path.startswith((f"{above}.", f"{above}["))


def _with_flags(section: ResourceMapping, cells: Cells) -> Cells:
    """Return cells by column; those of true-or-false fields without a code table are such."""
    flags = {
        column
        for place in places_of(section)
        if place.kind is Kind.FLAG and place.field.codes is None
        for column in place.field.columns
        if isinstance(cells.get(column), str)
    }
    return {**cells, **{flag: _TRUTH.get(cells[flag], cells[flag]) for flag in flags}}


def _named_items(section: ResourceMapping) -> Iterator[tuple[str, ItemMapping]]:
    for name, items in section.items.items():
        numbered = [(n, item) for n, item in enumerate(items, 1) if item.rows]
        for number, item in numbered:
            yield f"{name}.{number}" if len(numbered) > 1 else name, item


def _refused(row: Table, known: Sequence[str]) -> Iterator[MappingProblem]:
    """Yield a problem for each cell of a column that the mapping does not name."""
    for column, node in row.entries.items():
        if column not in known:
            near = did_you_mean(column, known) or ": leave it out"
            text = f"the mapping names no '{column}'{near}"
            yield MappingProblem(row.keys[column], "", text)
        elif not isinstance(node, Scalar):
            yield MappingProblem(node.mark, "", f"expected one text for '{column}'")
