"""Rows that a person wrote as YAML → rows of a source, misspelt columns refused.

Every value is the text that was written, as in a mapping file. A column that is left
out is NULL.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from adapters.contract import SourceDataError
from adapters.http.answers import at
from adapters.mapping.http_build import path_of
from adapters.mapping.items import item_columns, known_columns, own_columns
from adapters.mapping.model import ItemMapping, ResourceMapping
from adapters.mapping.nodes import Items, Node, Scalar, Table, plain
from adapters.mapping.problems import MappingError, MappingProblem, did_you_mean
from adapters.mapping.slots import LISTS, SLOTS, Kind
from adapters.rows import SourceRow

Cells: TypeAlias = Mapping[str, Any]

_TRUTH: Mapping[str, object] = {"true": True, "false": False, "1": 1, "0": 0}
"""What a column of a true-or-false field without a code table holds."""


def known_item_columns(item: ItemMapping) -> tuple[str, ...]:
    """Return every column of an item's own rows that the mapping names."""
    fields = (*item.fields.values(), *item.lines)
    searched = [field.search_column for field in fields if field.search_column]
    return tuple(dict.fromkeys((*item_columns(item), *searched)))


def read_row(section: ResourceMapping, given: Table, items: Node | None) -> SourceRow:
    """Return a written row as the source would give it.

    Raises MappingError with every column that the mapping does not name, and every value
    that is none.
    """
    columns = own_columns(section)
    if section.http is not None:
        return _http_row(section, columns, given, items)
    cells = read_cells(section, given)
    extras = read_items(section, items)
    row = tuple(cells.get(column) for column in columns)
    below = {
        item: tuple(
            tuple(cells.get(column) for column in item_columns(item)) for cells in rows
        )
        for item, rows in extras.items()
    }
    return SourceRow(section, columns, row, below)


def read_cells(section: ResourceMapping, given: Table) -> Cells:
    """Return the cells of a written row by column; raises MappingError."""
    known, flags = known_columns(section), flag_columns(section)
    return _cells(given, known, section.rows, flags)


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
        raise _refused(items, "expected lists and their rows here: {telecoms: [{…}]}")
    named = dict(_named_items(section))
    problems, found = [], {}
    for name, node in items.entries.items():
        if name not in named:
            near = _several(name, named) or did_you_mean(name, named) or _offer(named)
            text = f"no items of their own SELECT are called '{name}'{near}"
            problems.append(MappingProblem(items.keys[name], "", text))
            continue
        try:
            item = named[name]
            known, rows = known_item_columns(item), item.rows or ""
            found[item] = tuple(_cells(row, known, rows) for row in rows_of(node))
        except MappingError as error:
            problems += error.problems
    if problems:
        raise MappingError(problems)
    return found


def rows_of(node: Node) -> tuple[Table, ...]:
    """Return the rows of a written list; raises MappingError."""
    if not isinstance(node, Items):
        raise _refused(node, "expected a list of rows here: [{…}, {…}]")
    wrong = [item for item in node.items if not isinstance(item, Table)]
    if wrong:
        raise MappingError(
            MappingProblem(item.mark, "", "expected columns and values here")
            for item in wrong
        )
    return tuple(item for item in node.items if isinstance(item, Table))


def flag_columns(section: ResourceMapping) -> frozenset[str]:
    """Return the columns of true-or-false fields that no code table translates."""
    flags = {s.record for s in SLOTS[section.resource_type] if s.kind is Kind.FLAG}
    return frozenset(
        column
        for slot, field in section.fields.items()
        if slot in flags and field.codes is None
        for column in field.columns
    )


def _named_items(section: ResourceMapping) -> Iterator[tuple[str, ItemMapping]]:
    for listed in LISTS[section.resource_type]:
        items = section.items.get(listed.name, ())
        own = [(n, item) for n, item in enumerate(items, 1) if item.rows]
        if len(own) == 1:
            yield listed.name, own[0][1]
        else:
            yield from ((f"{listed.name}.{n}", item) for n, item in own)


def _several(name: str, named: Iterable[str]) -> str:
    numbered = [own for own in named if own.startswith(f"{name}.")]
    return f": several have one, use {', '.join(numbered)}" if numbered else ""


def _offer(named: Mapping[str, object]) -> str:
    return f": use {', '.join(named)}" if named else ": the section has none"


def _cells(
    given: Table, known: Sequence[str], rows: str, flags: frozenset[str] = frozenset()
) -> Cells:
    problems = []
    returned = re.split(r"\bFROM\b", rows, maxsplit=1, flags=re.IGNORECASE)[0]
    for column, node in given.entries.items():
        if column not in known:
            text = f"the mapping names no column '{column}'"
            text += did_you_mean(column, known)
            if re.search(rf"\b{re.escape(column)}\b(?!\.)", returned):
                text = (
                    f"no field reads '{column}', though the SELECT has it: leave it out"
                )
            problems.append(MappingProblem(given.keys[column], "", text))
        elif not isinstance(node, Scalar):
            text = f"expected one text for the column '{column}'"
            problems.append(MappingProblem(node.mark, "", text))
    if problems:
        raise MappingError(problems)
    return {
        column: _TRUTH.get(node.text, node.text) if column in flags else node.text
        for column, node in given.entries.items()
        if isinstance(node, Scalar)
    }


def _refused(node: Node, text: str) -> MappingError:
    return MappingError([MappingProblem(node.mark, "", text)])


# ------------------------------------------------------------------ HTTP answers


def _http_row(
    section: ResourceMapping, columns: tuple[str, ...], given: Table, items: Node | None
) -> SourceRow:
    if items is not None:
        raise _refused(items, "an HTTP row holds its own lists: write them in 'given'")
    problems = list(_unknown_paths(given, tuple(_known_paths(section)), ""))
    if problems:
        raise MappingError(problems)
    answer, flags = plain(given), flag_columns(section)
    try:
        cells = tuple(_at(answer, column, column in flags) for column in columns)
    except SourceDataError as error:
        raise _refused(given, str(error)) from error
    below = {
        item: tuple(
            tuple(_at(each, column) for column in item_columns(item))
            for each in _list_at(answer, item.rows, given)
        )
        for items in section.items.values()
        for item in items
        if item.rows
    }
    return SourceRow(section, columns, cells, below)


def _at(answer: Any, path: str, is_flag: bool = False) -> Any:
    found = at(answer, path_of(path))
    return _TRUTH.get(found, found) if is_flag and isinstance(found, str) else found


def _list_at(answer: Any, path: str, given: Table) -> Sequence[Any]:
    found = at(answer, path_of(path))
    if found is None or isinstance(found, list):
        return found or ()
    raise _refused(given, f"expected a list at '{path}'")


def _known_paths(section: ResourceMapping) -> Iterator[str]:
    yield from own_columns(section)
    for item in (item for items in section.items.values() for item in items):
        if item.rows:
            yield item.rows
            yield from (
                item.rows if column == "." else f"{item.rows}.{column}"
                for column in item_columns(item)
            )


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
                text = f"the mapping names no value '{inner}'"
                text += did_you_mean(inner, known)
                yield MappingProblem(node.keys[key], "", text)
