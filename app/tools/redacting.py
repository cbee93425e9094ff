"""Stand-ins for what identifies a person: equal for equal values, useless without a key.

The cells are replaced and the row is mapped again, so that resource and cells agree. A
stand-in has the shape of its value, digit for digit and letter for letter: the row
keeps its faults. Other values give other stand-ins. Whoever has the key can go back;
whoever has not cannot try all birth dates, as with a plain digest.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from string import ascii_lowercase, ascii_uppercase, digits
from types import MappingProxyType

from adapters.contract import ResourceType
from adapters.mapping.items import item_columns
from adapters.mapping.model import FieldMapping, ItemMapping, ResourceMapping
from adapters.mapping.values import as_text
from adapters.rows import SourceRow

_ROUNDS = 10
_FURTHEST_DAYS = 180
_SMALL = "àâäçéèêëîïôöùûüÿ"
_ALPHABETS = (digits, ascii_lowercase, ascii_uppercase, _SMALL, _SMALL.upper())
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

_PERSONS: Mapping[ResourceType, frozenset[str]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: frozenset({"id", "visit_number", "patient_id"}),
        ResourceType.PATIENT: frozenset({"id", "replaced_by"}),
        ResourceType.ORGANIZATION: frozenset(),
    }
)
"""The slots that tell whose row it is."""

_DAYS: Mapping[ResourceType, frozenset[str]] = MappingProxyType(
    {
        ResourceType.ENCOUNTER: frozenset(),
        ResourceType.PATIENT: frozenset({"birth_date", "deceased_at"}),
        ResourceType.ORGANIZATION: frozenset(),
    }
)
"""The slots whose days tell who it is: they are shifted."""

_OF_ITEMS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "identifiers": frozenset({"value"}),
        "names": frozenset({"family", "given", "text"}),
        "telecoms": frozenset({"value"}),
        "addresses": frozenset({"city", "postal_code"}),
    }
)
"""Likewise inside the lists of a patient; lines of an address always are."""

StandIn = Callable[[object], object]


def redacted(row: SourceRow, key: bytes) -> SourceRow:
    """Return a row with stand-ins in place of what identifies a person.

    Times of a stay, codes, units and organizations stay as they are.
    """
    own, by_item = _stand_ins(row.section, Scrambler(key))
    items = {
        item: tuple(_replaced(item_columns(item), each, by_item[item]) for each in rows)
        for item, rows in row.items.items()
    }
    return replace(row, cells=_replaced(row.columns, row.cells, own), items=items)


def _replaced(
    columns: Sequence[str], cells: Sequence[object], by_column: Mapping[str, StandIn]
) -> tuple[object, ...]:
    return tuple(
        by_column[column](cell) if column in by_column else cell
        for column, cell in zip(columns, cells, strict=True)
    )


def _stand_ins(
    section: ResourceMapping, scrambler: "Scrambler"
) -> tuple[dict[str, StandIn], dict[ItemMapping, dict[str, StandIn]]]:
    """Return what replaces the cells of each column, of the row and of items."""
    kind = section.resource_type
    own: dict[str, StandIn] = {}
    for slot, field in section.fields.items():
        if slot in _DAYS[kind] and field.columns:
            own[field.columns[0]] = _shifter(scrambler, field)
        elif slot in _PERSONS[kind]:
            own |= _texts(scrambler, field)
    by_item: dict[ItemMapping, dict[str, StandIn]] = {}
    for item in (item for items in section.items.values() for item in items):
        found = _item(scrambler, item) if kind is ResourceType.PATIENT else {}
        if item.rows is None:
            own |= found
        else:
            by_item[item] = found | ({item.key: scrambler.cell} if item.key else {})
    return own, by_item


def _item(scrambler: "Scrambler", item: ItemMapping) -> dict[str, StandIn]:
    found: dict[str, StandIn] = {}
    for slot, field in item.fields.items():
        if slot in _OF_ITEMS[item.slot]:
            found |= _texts(scrambler, field)
    for line in item.lines:
        found |= _texts(scrambler, line)
    return found


def _texts(scrambler: "Scrambler", field: FieldMapping) -> dict[str, StandIn]:
    def stand_in(cell: object) -> object:
        return cell if _text(cell) in field.absent else scrambler.cell(cell)

    return dict.fromkeys(field.columns, stand_in)


def _text(cell: object) -> str:
    try:
        return as_text(cell)
    except ValueError:
        return ""


def _shifter(scrambler: "Scrambler", field: FieldMapping) -> StandIn:
    form = field.time.format if field.time else None

    def shifted(cell: object) -> object:
        if cell is None or _text(cell) in field.absent | {""}:
            return cell
        try:
            return scrambler.shifted(cell, form)
        except (ValueError, OverflowError):
            return scrambler.cell(cell)  # it is a fault, and stays one

    return shifted


class Scrambler:
    """Values → stand-ins of the same shape, one to one, by a key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def cell(self, cell: object) -> object:
        """Return the stand-in of an id, an identifier, a name, an address."""
        if cell is None or isinstance(cell, bool):
            return cell
        if isinstance(cell, int):
            return int(self.text(str(cell)))
        if isinstance(cell, list):
            return [self.cell(one) for one in cell]
        text = cell if isinstance(cell, str) else _text(cell)
        return self.text(text)

    def text(self, text: str) -> str:
        """Return the stand-in of a text: a Feistel network over the signs that vary."""
        text = "".join(self._known(sign, at, text) for at, sign in enumerate(text))
        alphabets = tuple(_alphabets(text))
        half = len(text) // 2
        sides = [(text[:half], alphabets[:half]), (text[half:], alphabets[half:])]
        numbers = [_number(signs, of) for signs, of in sides]
        for round_ in range(_ROUNDS):
            turned, other = round_ % 2, 1 - round_ % 2
            drawn = self._drawn(f"{round_}.{numbers[other]}.{_shape(alphabets)}")
            size = _size(sides[turned][1])
            numbers[turned] = (numbers[turned] + drawn) % size
        return "".join(
            _signs(number, signs, of)
            for number, (signs, of) in zip(numbers, sides, strict=True)
        )

    def _known(self, sign: str, at: int, text: str) -> str:
        """Return a sign, or a letter in place of one from a script without an alphabet."""
        if not sign.isalnum() or any(sign in of for of in _ALPHABETS):
            return sign
        return ascii_lowercase[self._drawn(f"{at}:{text}") % len(ascii_lowercase)]

    def shifted(self, cell: object, form: str | None) -> object:
        """Return a day, or a time, some days earlier or later; ValueError for none."""
        if isinstance(cell, date):
            return cell + self._days(cell.isoformat())
        text = _text(cell)
        if form is not None:
            read = datetime.strptime(text, form)  # noqa: DTZ007 - as the cell is
            return (read + self._days(read.isoformat())).strftime(form)
        read = datetime.fromisoformat(text)
        moved = (read + self._days(read.isoformat())).isoformat(sep=text[10:11] or "T")
        return moved[:10] if _ISO_DAY.fullmatch(text) else moved

    def _days(self, text: str) -> timedelta:
        drawn = self._drawn(text[:10]) % (2 * _FURTHEST_DAYS) - _FURTHEST_DAYS
        return timedelta(days=drawn + (drawn >= 0))

    def _drawn(self, text: str) -> int:
        digest = hmac.digest(self._key, text.encode(errors="replace"), hashlib.sha256)
        return int.from_bytes(digest)


def _alphabets(text: str) -> Iterator[str]:
    """Yield for each sign those that may stand for it, "" for one that stays.

    Zeros in front stay, and what follows them never becomes one: a number keeps its
    length, also where it is no text.
    """
    leading = True
    for sign in text:
        of = next((each for each in _ALPHABETS if sign in each), "")
        if leading and of == digits:
            of = "" if sign == "0" else digits[1:]
            leading = sign == "0"
        yield of


def _number(signs: str, alphabets: Sequence[str]) -> int:
    number = 0
    for sign, of in zip(signs, alphabets, strict=True):
        if of:
            number = number * len(of) + of.index(sign)
    return number


def _signs(number: int, signs: str, alphabets: Sequence[str]) -> str:
    made: list[str] = []
    for sign, of in zip(reversed(signs), reversed(alphabets), strict=True):
        if of:
            number, at = divmod(number, len(of))
        made.append(of[at] if of else sign)
    return "".join(reversed(made))


def _size(alphabets: Sequence[str]) -> int:
    size = 1
    for of in filter(None, alphabets):
        size *= len(of)
    return size


def _shape(alphabets: Sequence[str]) -> str:
    return "/".join(map(str, map(len, alphabets)))
