"""Cells of a row → values: one class for each kind of slot.

A page is converted column by column, which costs a fraction of converting it cell by cell.
Both ways give the same values and raise for the same cells.

Cleaning is the same for every field: texts lose trailing blanks; the empty text and the
texts under `absent` are no value. What is not text becomes the text a person would write
(42, not 42.0). In texts for people a control character becomes a blank; in ids,
identifiers and functional units it is a fault, because a changed identifier is another.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from adapters.mapping.binary import BinaryForm, text_of
from adapters.mapping.births import read_birth
from adapters.mapping.model import CodeTable, FieldMapping
from adapters.mapping.slots import FHIR_ID, SlotKind
from adapters.mapping.times import (
    ORIGIN,
    day_bases,
    join_parts,
    moments,
    presence,
    to_instant,
)
from adapters.mapping.values import Memo, as_text, quoted

_NOTHING = type(None)


class Converter(ABC):
    """Makes values of the cells of one field.

    A cell is a pair where the field reads two columns.
    """

    @abstractmethod
    def one(self, cell: Any) -> Any:
        """Return the value of a cell; raises ValueError with the rule that it breaks."""

    def column(self, cells: Sequence[Any]) -> list[Any]:
        """Return the values of cells; raises ValueError if any cell breaks a rule."""
        return list(map(self.one, cells))


def converter_of(field: FieldMapping, kind: SlotKind) -> Converter:
    """Return the converter of a field that reads columns."""
    if field.codes is not None:
        return Codes(field, field.codes, kind)
    return _CONVERTERS[kind](field)


def constant_of(field: FieldMapping, kind: SlotKind) -> Any:
    """Return the value of a field that is a constant."""
    return _target(f"{field.prefix}{field.constant}", kind)


def _target(text: str, kind: SlotKind) -> Any:
    """Return the value that a constant or a code of the mapping stands for."""
    if kind is SlotKind.FLAG:
        return text == "true"
    return (text,) if kind is SlotKind.PARTS else text


# ----------------------------------------------------------------------------- texts


def _clean(cell: object, absent: Collection[str]) -> str | None:
    """Return the cleaned text of a cell, None for no value."""
    if cell is None:
        return None
    text = cell.rstrip() if type(cell) is str else as_text(cell)
    return None if not text or text in absent else text


_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""What a FHIR string or JSON cannot hold (STU3 datatypes, string)."""

_TEXT_OR_NONE = frozenset({str, _NOTHING})


class Text(Converter):
    """A text for people."""

    def __init__(self, field: FieldMapping) -> None:
        self.absent = field.absent

    def one(self, cell: Any) -> str | None:
        """Return the cleaned text of a cell."""
        text = _clean(cell, self.absent)
        if text is None or text.isprintable():
            return text
        return self.unprintable(text)

    def column(self, cells: Sequence[Any]) -> list[str | None]:
        """Return the cleaned texts of cells."""
        if _TEXT_OR_NONE.issuperset(map(type, cells)):
            texts = [cell.rstrip() or None if cell else None for cell in cells]
            is_plain = "".join(filter(None, texts)).isprintable()
            if is_plain and self.absent.isdisjoint(texts):
                return texts
        return super().column(cells)

    def unprintable(self, text: str) -> str | None:
        """Return a text that holds more than letters, signs and blanks."""
        return _FORBIDDEN.sub(" ", text).rstrip() or None


class ExactText(Text):
    """An identifying text, or bytes where the field says how they are written."""

    def __init__(self, field: FieldMapping) -> None:
        super().__init__(field)
        self.form = field.form

    def one(self, cell: Any) -> str | None:
        """Return the cleaned text of a cell."""
        if self.form and type(cell) is bytes:
            cell = text_of(cell, self.form)
        return super().one(cell)

    def unprintable(self, text: str) -> str:
        """Return the text unchanged; raises ValueError for a control character."""
        if _FORBIDDEN.search(text):
            raise ValueError("contains a control character")
        return text


class Id(Converter):
    """A FHIR id."""

    def __init__(self, field: FieldMapping) -> None:
        self.absent = field.absent
        self.prefix = field.prefix
        self.strip = field.strip
        self.is_plain = not (field.absent or field.prefix or field.strip)
        self.form = field.form or BinaryForm.HEX

    def one(self, cell: Any) -> str | None:
        """Return the id of a cell."""
        if self.is_plain and type(cell) is int:
            return str(cell)
        if type(cell) is bytes:
            cell = text_of(cell, self.form)
        elif type(cell) is float and not cell.is_integer():
            raise ValueError(
                "a number with a fraction: an id is a whole number or a text"
            )
        text = _clean(cell, self.absent)
        if text is None:
            return None
        if not text.startswith(self.strip):
            raise ValueError(f"does not begin with {self.strip}")
        id = self.prefix + text.removeprefix(self.strip)
        if FHIR_ID.fullmatch(id):
            return id
        raise ValueError("not a FHIR id: up to 64 letters, digits, '-' and '.'")

    def column(self, cells: Sequence[Any]) -> list[str | None]:
        """Return the ids of cells."""
        if not self.is_plain:
            return super().column(cells)
        if {int}.issuperset(map(type, cells)):
            return list(map(str, cells))
        one = self.one
        fits = FHIR_ID.fullmatch
        return [
            cell if type(cell) is str and fits(cell) else one(cell) for cell in cells
        ]


class Parts(Converter):
    """Several texts for people; a cell is a text or a list."""

    def __init__(self, field: FieldMapping) -> None:
        self.text = Text(field)
        self.split = field.split

    def one(self, cell: Any) -> tuple[str, ...]:
        """Return the texts of a cell."""
        parts = cell if isinstance(cell, list) else [cell]
        texts = [text for text in map(self.text.one, parts) if text is not None]
        if self.split is None:
            return tuple(texts)
        cuts = (cut.strip() for text in texts for cut in text.split(self.split))
        return tuple(cut for cut in cuts if cut)


# ------------------------------------------------------------------- codes and flags

_CODE_CELLS = frozenset({str, int, _NOTHING})
"""Cells that are remembered: no two of these types are equal, as 1, 1.0 and True are."""


class Codes(Converter):
    """What a code table has for the code of a cell: a code, a text, a flag or several texts."""

    def __init__(self, field: FieldMapping, codes: CodeTable, kind: SlotKind) -> None:
        self.absent = field.absent
        self.name = codes.name
        self.values = {
            code: _target(field.prefix + text, kind)
            for code, text in codes.table.items()
        }
        self.otherwise = None
        if codes.otherwise is not None:
            self.otherwise = _target(field.prefix + codes.otherwise, kind)
        # A cell without a code is one that no entry names.
        self.nothing = self.otherwise
        if kind is SlotKind.PARTS and self.otherwise is None:
            self.nothing = ()
        self._known = Memo(self.one, most=1000)

    def one(self, cell: Any) -> Any:
        """Return what the code of a cell stands for."""
        text = _clean(cell, self.absent)
        if text is None:
            return self.nothing
        if text in self.values:
            return self.values[text]
        if self.otherwise is None:
            raise ValueError(f"no entry for {quoted(text)} in codes.{self.name}")
        return self.otherwise

    def column(self, cells: Sequence[Any]) -> list[Any]:
        """Return what the codes of cells stand for."""
        if _CODE_CELLS.issuperset(map(type, cells)):
            return list(map(self._known.__getitem__, cells))
        return super().column(cells)


_FLAGS: Mapping[object, bool] = MappingProxyType(
    {0: False, 1: True, b"\x00": False, b"\x01": True}
)


class Flag(Converter):
    """True or false, without a code table."""

    def __init__(self, field: FieldMapping) -> None:
        self.nothing = field.absent | {""}

    def one(self, cell: Any) -> bool | None:
        """Return the truth of a cell."""
        if cell is None:
            return None
        if isinstance(cell, (int, float, Decimal, bytes)) and cell in _FLAGS:
            return _FLAGS[cell]
        if isinstance(cell, str) and cell.rstrip() in self.nothing:
            return None
        raise ValueError("not true or false: name a code table (codes: …)")


# ----------------------------------------------------------------------------- times


class _OfTime(Converter):
    """Reads one column of times, or two: a day and its time of day."""

    def __init__(self, field: FieldMapping) -> None:
        assert field.time is not None, "the loader gives every time a rule"
        self.rule = field.time
        self.has_parts = len(field.columns) > 1
        self.present = presence(field.absent)

    def value(self, cell: Any) -> object:
        """Return the time of a cell or of a pair of cells, None where the day is absent."""
        if not self.has_parts:
            return None if cell is None else self.present(cell)
        day, clock = map(self.present, cell)
        return None if day is None else join_parts(day, clock, self.rule)


class Birth(_OfTime):
    """A birth date: a day, or as text a year or a month."""

    def __init__(self, field: FieldMapping) -> None:
        super().__init__(field)
        self.absent = frozenset(at.date() for at in moments(field.absent))

    def one(self, cell: Any) -> date | str | None:
        """Return the birth date of a cell."""
        return self._read(cell, self._today())

    def column(self, cells: Sequence[Any]) -> list[Any]:
        """Return the birth dates of cells."""
        today = self._today()
        births: list[Any] = []
        for cell in cells:
            if type(cell) is date and cell <= today and cell not in self.absent:
                births.append(cell)
            else:
                births.append(self._read(cell, today))
        return births

    def _today(self) -> date:
        return datetime.now(self.rule.zone).date()

    def _read(self, cell: Any, today: date) -> date | str | None:
        value = self.value(cell)
        return None if value is None else read_birth(value, self.rule, today)


class Instant(_OfTime):
    """An instant."""

    def __init__(self, field: FieldMapping) -> None:
        super().__init__(field)
        self.bases = day_bases(self.rule.zone, self.rule.written)
        self.absent = moments(field.absent)

    def one(self, cell: Any) -> datetime | None:
        """Return the instant of a cell or a pair of cells."""
        value = self.value(cell)
        return None if value is None else to_instant(value, self.rule)

    def column(self, cells: Sequence[Any]) -> list[Any]:
        """Return the instants of cells."""
        if self.has_parts:
            return super().column(cells)
        instants: list[Any] = []
        for cell in cells:
            base = None
            if type(cell) is datetime and cell.tzinfo is None:
                base = self.bases[cell.toordinal()]
            if base is None or cell in self.absent:
                instants.append(self.one(cell))
            else:
                # Most times are read like this, without a change of the offset that day.
                instants.append(base + (cell - ORIGIN))
        return instants


_CONVERTERS: Mapping[SlotKind, Callable[[FieldMapping], Converter]] = MappingProxyType(
    {
        SlotKind.ID: Id,
        SlotKind.EXACT: ExactText,
        SlotKind.TEXT: Text,
        SlotKind.PARTS: Parts,
        SlotKind.SYSTEM: ExactText,
        SlotKind.CODE: ExactText,
        SlotKind.TIME: Instant,
        SlotKind.DATE: Birth,
        SlotKind.FLAG: Flag,
    }
)
