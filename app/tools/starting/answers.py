"""Saved answers of an HTTP API: where their rows stand, and what fields the rows have."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from app.tools.report import CannotRunError

_TOTAL = re.compile(r"total|nombre|count|number", re.IGNORECASE)
_DEEPEST = 4

Cells = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """One answer: its rows by paths of fields, and the paths of rows and total in it.

    `total` is "" where nothing looks like one. `lists` are the paths of lists in a row,
    each with the rows of the answer that its elements stand in, and the elements.
    """

    name: str
    rows_path: str
    total: str
    rows: tuple[Cells, ...]
    lists: Mapping[str, tuple[tuple[int, Cells], ...]]

    @property
    def fields(self) -> tuple[str, ...]:
        """The paths of all fields, in the order in which they come."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))


def read_answer(file: Path) -> SavedAnswer:
    """Return what stands in a file; raises CannotRunError where it is no list of rows."""
    try:
        answer = orjson.loads(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise CannotRunError(f"{file} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise CannotRunError(f"{file} is not JSON: is it the answer itself?") from error
    found = {path: rows for path, rows in _lists(answer) if _are_rows(rows)}
    if not found:
        text = f"{file} has no list of rows: save the answer of a search, not of one id"
        raise CannotRunError(text)
    path = max(found, key=lambda path: len(found[path]))
    lists = dict.fromkeys(p for row in found[path] for p, _ in _lists(row))
    elements = {name: tuple(_elements(found[path], name)) for name in lists}
    rows = _without_holders([dict(_flat(row)) for row in found[path]], lists)
    return SavedAnswer(file.stem, path, _total(answer, len(rows)), rows, elements)


def _elements(rows: Sequence[Any], path: str) -> Iterator[tuple[int, Cells]]:
    """Yield the objects in a list of each row, with the number of the row."""
    for number, row in enumerate(rows):
        for name, of in _lists(row):
            if name == path:
                yield from ((number, dict(_flat(e))) for e in of if isinstance(e, dict))


def _without_holders(rows: Sequence[Cells], lists: Iterable[str]) -> tuple[Cells, ...]:
    """Return rows without the nulls that stand where other rows have an object or a list."""
    paths = {path for row in rows for path in row}
    holders = {path[:at] for path in paths for at, c in enumerate(path) if c == "."}
    holders |= set(lists)
    return tuple(
        {path: v for path, v in row.items() if v is not None or path not in holders}
        for row in rows
    )


def _are_rows(rows: list[Any]) -> bool:
    return bool(rows) and all(isinstance(row, dict) for row in rows)


def _lists(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield each list outside of other lists with its path, "." for the answer itself."""
    if isinstance(value, list):
        yield path or ".", value
    elif isinstance(value, dict) and depth < _DEEPEST:
        for key, of in value.items():
            yield from _lists(of, f"{path}.{key}".strip("."), depth + 1)


def _flat(row: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each field of a row with its path; one with a dot in its name has none."""
    for key, value in row.items():
        if "." in key or isinstance(value, list):
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _total(answer: Any, rows: int) -> str:
    """Return the path of a number that is not smaller than that of the rows."""
    found = [
        path
        for path, value in (_flat(answer) if isinstance(answer, dict) else ())
        if isinstance(value, int) and not isinstance(value, bool) and value >= rows
    ]
    named = [path for path in found if _TOTAL.search(path)]
    return next(iter(named or found), "")
