"""Rows that a person wrote as YAML, as the source would return them.

Every value is the text that was written, as in a mapping file; a column that is left out
is NULL. A column that the mapping does not name, and a value that no cell can hold, are a
MappingError.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from adapters.contract import SourceDataError
from adapters.http.adapter import open_section
from adapters.mapping.model import ItemMapping, Mark, ResourceMapping
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.row_mapper import item_columns, known_columns, own_columns
from adapters.mapping.slots import SlotKind, places_of
from adapters.mapping.yaml import Items, Node, Scalar, Table
from toolkit.console import MappingFile
from toolkit.source_rows import SourceRow

Cells: TypeAlias = Mapping[str, Any]

_TRUTH: Mapping[str, object] = {"true": True, "false": False, "1": 1, "0": 0}
"""What a column of a true-or-false field without a code table holds."""


def read_row(
    file: MappingFile, section: ResourceMapping, written: Table, items: Node | None
) -> SourceRow:
    """Return a written row, as the source of its section would return it.

    `items` are the written rows of the items that have a SELECT of their own.
    """
    columns, rows_of_items = own_columns(section), read_items(section, items)
    if section.http is None:
        cells_by_column = read_cells(section, written)
        cells = tuple(cells_by_column.get(column) for column in columns)
        cells_of_items = {
            item: [tuple(map(row.get, item_columns(item))) for row in rows]
            for item, rows in rows_of_items.items()
        }
        return SourceRow(section, columns, cells=cells, items=cells_of_items)
    opened = open_section(file.source_of(section), section.resource_type)
    try:
        # The functions of paths accept plain values only.
        values, lists = opened.cells(orjson.loads(orjson.dumps(written)))
    except SourceDataError as error:
        raise _refusal(written.mark, str(error)) from error
    by_column = _with_flags(section, dict(zip(columns, values, strict=True)))
    return SourceRow(section, columns, cells=tuple(by_column.values()), items=lists)


def read_cells(section: ResourceMapping, written: Table) -> Cells:
    """Return the cells of a written row by column."""
    return _with_flags(section, _cells(written, known_columns(section)))


def read_items(
    section: ResourceMapping, items: Node | None
) -> Mapping[ItemMapping, Sequence[Cells]]:
    """Return the written rows of each item that has a SELECT of its own.

    They stand by the name of the list (`identifiers`), with the number of the item in it
    where several have one (`identifiers.2`).
    """
    if items is None:
        return {}
    if not isinstance(items, Table):
        text = "expected lists and their rows here: {telecoms: [{…}]}"
        raise _refusal(items.mark, text)
    by_name = dict(_named_items(section))
    cells: dict[ItemMapping, Sequence[Cells]] = {}
    for name, node in items.items():
        if name not in by_name:
            names = ", ".join(by_name) or "none: no item of the section has a SELECT"
            text = f"no item with a SELECT is called '{name}': use {names}"
            raise _refusal(items.key_marks[name], text)
        item = by_name[name]
        columns = known_item_columns(item)
        cells[item] = [_cells(row, columns) for row in rows_of(node)]
    return cells


def rows_of(node: Node) -> Sequence[Table]:
    """Return the rows of a written list."""
    items = node if isinstance(node, Items) else (node,)
    rows = [item for item in items if isinstance(item, Table)]
    if not isinstance(node, Items) or len(rows) < len(items):
        raise _refusal(node.mark, "expected a list of rows here: [{…}, {…}]")
    return rows


def known_item_columns(item: ItemMapping) -> Sequence[str]:
    """Return every column of an item's own rows that the mapping names."""
    fields = (*item.fields.values(), *item.lines)
    searched = [field.search_column for field in fields if field.search_column]
    return tuple(dict.fromkeys((*item_columns(item), *searched)))


def _with_flags(section: ResourceMapping, cells: Cells) -> Cells:
    """Return cells with true and false for the texts of true-or-false fields.

    A field with a code table keeps its texts.
    """
    converted = dict(cells)
    for place in places_of(section):
        if place.kind is not SlotKind.FLAG or place.field.codes is not None:
            continue
        for column in place.field.columns:
            text = cells.get(column)
            if isinstance(text, str):
                converted[column] = _TRUTH.get(text, text)
    return converted


def _named_items(section: ResourceMapping) -> Iterator[tuple[str, ItemMapping]]:
    """Yield the items with a SELECT of their own, with the names that a test gives them."""
    for name, items in section.items.items():
        numbered = [(n, item) for n, item in enumerate(items, 1) if item.rows]
        for number, item in numbered:
            yield f"{name}.{number}" if len(numbered) > 1 else name, item


def _cells(row: Table, known: Sequence[str]) -> Cells:
    """Return the cells of columns that the mapping names."""
    problems = []
    for column, node in row.items():
        if column not in known:
            near = did_you_mean(column, known) or ": remove it"
            text = f"the mapping reads no column '{column}'{near}"
            problems.append(MappingProblem(row.key_marks[column], "", text))
        elif not isinstance(node, Scalar):
            text = f"expected one text for '{column}'"
            problems.append(MappingProblem(node.mark, "", text))
    if problems:
        raise MappingError(problems)
    return row.all_texts()


def _refusal(mark: Mark, text: str) -> MappingError:
    """Return the error of a written row at a place."""
    return MappingError([MappingProblem(mark, "", text)])
