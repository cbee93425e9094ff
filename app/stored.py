"""What is kept of a search between its pages: the question and the positions.

Never an answer. The question is kept as the client put it, and is read again for each
page; a position is kept in the source's full precision (decisions 11 and 12).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import orjson

from adapters.contract import Group, Key, Position, ResourceType
from app.forms import Pairs

FORMAT = 2
"""The version of what is written; another one is read as gone."""


class FormatError(ValueError):
    """What was kept was written by another version."""


class Direction(StrEnum):
    """On which side of its position a page lies."""

    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a page starts: beside a position, or without one at an end of the list.

    `index` is the page's number, the first is 1.
    """

    index: int = 1
    direction: Direction = Direction.AFTER
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class StoredSearch:
    """The question of a walk: who asked what, and how many rows matched.

    `born` is in seconds since 1970.
    """

    client: str
    resource_type: ResourceType
    pairs: Pairs
    lenient: bool
    total: int
    fingerprint: str
    born: int


def pack_page(search: StoredSearch, start: Start) -> bytes:
    """Write a page's question and start."""
    return orjson.dumps(
        [
            FORMAT,
            search.client,
            search.resource_type,
            search.pairs,
            search.lenient,
            search.total,
            search.fingerprint,
            search.born,
            _start(start),
        ]
    )


def unpack_page(raw: bytes) -> tuple[StoredSearch, Start]:
    """Read what `pack_page` wrote. Raises FormatError."""
    values: list[Any] = orjson.loads(raw)
    if values[0] != FORMAT:
        raise FormatError(f"format {values[0]} is not {FORMAT}")
    client, kind, pairs, lenient, total, fingerprint, born, start = values[1:]
    question = tuple((name, text) for name, text in pairs)
    search = StoredSearch(
        client, ResourceType(kind), question, lenient, total, fingerprint, born
    )
    return search, _read_start(start)


def pack_target(page_id: str, start: Start) -> bytes:
    """Write where a link leads."""
    return orjson.dumps([page_id, _start(start)])


def unpack_target(raw: bytes) -> tuple[str, Start]:
    """Read what `pack_target` wrote."""
    page_id, start = orjson.loads(raw)
    return page_id, _read_start(start)


def _start(start: Start) -> list[Any]:
    at = start.position
    if at is None:
        return [start.index, start.direction, None]
    keys = [_pack_key(key) for key in (at.key, at.id, at.moment)]
    return [start.index, start.direction, [at.group, *keys, at.source]]


def _read_start(values: list[Any]) -> Start:
    index, direction, place = values
    if place is None:
        return Start(index, Direction(direction))
    group, key, id, packed, source = place
    moment = datetime.fromisoformat(packed[1]) if packed else None
    position = Position(Group(group), _read_key(key), _read_key(id), moment, source)
    return Start(index, Direction(direction), position)


# JSON keeps text, numbers and null as they are; these types need to say what they are.
_READ: Mapping[str, Callable[[str], Key]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "Decimal": Decimal,
    "UUID": UUID,
}


def _pack_key(key: Key) -> Any:
    name = type(key).__name__
    if name not in _READ:
        return key
    return [name, key.isoformat() if isinstance(key, date) else str(key)]


def _read_key(packed: Any) -> Key:
    if isinstance(packed, list):
        name, text = packed
        return _READ[name](text)
    key: Key = packed
    return key
