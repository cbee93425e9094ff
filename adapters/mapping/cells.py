"""Cells of a row become values: one reader for each field, compiled once.

Cleaning, the same for every field: texts lose trailing blanks; the empty text and the
texts under `absent` are no value. What is not text becomes the text a person would
write (42, not 42.0). In texts for people a control character becomes a blank; in ids,
identifiers and functional units it is a fault, because a changed identifier is another.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeAlias

from adapters.contract import RowFault
from adapters.mapping.checks import FHIR_ID
from adapters.mapping.model import CodeTable, FieldMapping
from adapters.mapping.slots import Kind
from adapters.mapping.time_rule import TimeRule
from adapters.mapping.times import join_parts, read_day, to_instant
from adapters.mapping.values import PLAIN, as_text, as_they_come, presence, quoted

Row: TypeAlias = Sequence[object]
Reader: TypeAlias = Callable[[Row], Any]

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""What a FHIR string or JSON cannot hold (STU3 datatypes, string)."""


class CellError(Exception):
    """A cell that its field cannot take."""

    def __init__(self, fault: RowFault) -> None:
        super().__init__(fault)
        self.fault = fault


class Cell:
    """A field of the mapping, and where its columns stand in a row."""

    __slots__ = ("column", "field", "indexes", "name")

    def __init__(
        self, field: FieldMapping, name: str, positions: Mapping[str, int]
    ) -> None:
        self.field = field
        self.name = name
        self.column = ", ".join(field.columns)
        self.indexes = tuple(positions[column] for column in field.columns)

    def error(self, rule: str) -> CellError:
        """Return the error that says which rule the cell breaks."""
        return CellError(self.fault(rule))

    def fault(self, rule: str) -> RowFault:
        """Return the fault of a row whose cell breaks a rule."""
        return RowFault(self.name, self.column, rule)


def compile_cell(cell: Cell, kind: Kind) -> Reader:
    """Return the function that reads the cell from a row; it raises CellError."""
    field = cell.field
    if field.constant is not None:
        return _constant(field.prefix + field.constant, kind)
    if field.codes is not None:
        return _coded(cell, field.codes, kind)
    return _COMPILERS[kind](cell)


def _constant(text: str, kind: Kind) -> Reader:
    made: Any = text
    if kind is Kind.FLAG:
        made = text == "true"
    elif kind is Kind.PARTS:
        made = (text,)
    return lambda _: made


def _cleaner(cell: Cell) -> Callable[[Row], str | None]:
    """Return the function that reads a cell as cleaned text, None for no value."""
    (index,) = cell.indexes
    nothing = cell.field.absent | {""}

    def clean(row: Row) -> str | None:
        value = row[index]
        if value is None:
            return None
        try:
            text = value.rstrip() if type(value) is str else as_text(value)
        except ValueError as error:
            raise cell.error(str(error)) from error
        return None if text in nothing else text

    return clean


def _text(cell: Cell) -> Reader:
    clean = _cleaner(cell)

    def read(row: Row) -> str | None:
        text = clean(row)
        if text is None or text.isprintable():
            return text
        return _FORBIDDEN.sub(" ", text).rstrip() or None

    return read


def _exact(cell: Cell) -> Reader:
    clean = _cleaner(cell)

    def read(row: Row) -> str | None:
        text = clean(row)
        if text is None or text.isprintable() or not _FORBIDDEN.search(text):
            return text
        raise cell.error("holds a control character")

    return read


def _id(cell: Cell) -> Reader:
    clean = _cleaner(cell)
    fits = FHIR_ID.fullmatch
    (index,) = cell.indexes
    prefix = cell.field.prefix
    plain = not cell.field.absent and not prefix

    def read(row: Row) -> str | None:
        value = row[index]
        if plain and type(value) is str and fits(value):
            return value
        if plain and type(value) is int:
            return str(value)
        text = clean(row)
        if text is None or fits(text := prefix + text):
            return text
        raise cell.error("not a FHIR id: up to 64 letters, digits, '-' and '.'")

    return read


def _parts(cell: Cell) -> Reader:
    # A column may hold a list: each of its values is read as one that stands alone.
    text_of = _text(Cell(cell.field, cell.name, dict.fromkeys(cell.field.columns, 0)))
    split = cell.field.split
    (index,) = cell.indexes

    def read(row: Row) -> tuple[str, ...]:
        value = row[index]
        several = value if isinstance(value, list) else [value]
        texts = [text for one in several if (text := text_of((one,))) is not None]
        if split is None:
            return tuple(texts)
        cuts = (cut.strip() for text in texts for cut in text.split(split))
        return tuple(cut for cut in cuts if cut)

    return read


def _coded(cell: Cell, codes: CodeTable, kind: Kind) -> Reader:
    clean = _cleaner(cell)
    made = {code: _constant(text, kind)(()) for code, text in codes.table.items()}
    other = None if codes.otherwise is None else _constant(codes.otherwise, kind)(())
    nothing = () if kind is Kind.PARTS and other is None else other
    (index,) = cell.indexes
    known = {} if cell.field.absent else as_they_come(made)

    def read(row: Row) -> Any:
        value = row[index]
        if type(value) in PLAIN and value in known:
            return known[value]
        text = clean(row)
        if text is None:
            return nothing
        if text in made:
            return made[text]
        if other is None:
            raise cell.error(f"no entry for {quoted(text)} in codes.{codes.name}")
        return other

    return read


_FLAGS: Mapping[object, bool] = MappingProxyType(
    {0: False, 1: True, b"\x00": False, b"\x01": True}
)


def _flag(cell: Cell) -> Reader:
    (index,) = cell.indexes
    nothing = cell.field.absent | {""}

    def read(row: Row) -> bool | None:
        value = row[index]
        if value is None:
            return None
        if isinstance(value, (int, float, Decimal, bytes)) and value in _FLAGS:
            return _FLAGS[value]
        if isinstance(value, str) and value.rstrip() in nothing:
            return None
        raise cell.error("not true or false: name a code table (codes: …)")

    return read


def time_reader(cell: Cell, read: Callable[[object, TimeRule], Any]) -> Reader:
    """Return a reader for times that makes of them what `read` does.

    A datetime without sentinels takes the short way.
    """
    rule = cell.field.time
    assert rule is not None, "the loader gives every time a rule"
    index, *more = cell.indexes
    present = presence(cell.field.absent)
    plain = not cell.field.absent and not more

    def value_of(row: Row) -> object:
        value = present(row[index])
        if value is None or not more:
            return value
        return join_parts(value, present(row[more[0]]), rule)

    def read_cell(row: Row) -> Any:
        value = row[index]
        try:
            if not plain or type(value) is not datetime:
                value = value_of(row)
            return None if value is None else read(value, rule)
        except ValueError as error:
            raise cell.error(str(error)) from error

    return read_cell


_COMPILERS: Mapping[Kind, Callable[[Cell], Reader]] = MappingProxyType(
    {
        Kind.ID: _id,
        Kind.EXACT: _exact,
        Kind.TEXT: _text,
        Kind.PARTS: _parts,
        Kind.SYSTEM: _exact,
        Kind.CODE: _exact,
        Kind.TIME: lambda cell: time_reader(cell, to_instant),
        Kind.DATE: lambda cell: time_reader(cell, read_day),
        Kind.FLAG: _flag,
    }
)
