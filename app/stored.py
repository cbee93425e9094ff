"""What is kept of a search between its pages: the question and the positions.

Never an answer. The question is kept as the client put it, and is read again for each
page; a position is kept in the source's full precision (decisions 11 and 12).

All that is kept is a JSON array that begins with the version of its format, whichever
comes after this one. While a deployment is upgraded, workers of two releases share one
Redis: so a release writes only what the release before it can read.

2   of a page; where a link leads has no version
3   of both
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

WRITTEN = 2
"""The format that this release writes."""

READ = frozenset({2, 3})
"""The formats that it reads: the one to come is read before any release writes it."""

_UNVERSIONED = 2


class FormatError(ValueError):
    """What was kept is of a format that this release does not read."""

    def __init__(self, version: object) -> None:
        super().__init__(f"format {version} is not one of {sorted(READ)}")
        self.version = version


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


def pack_page(search: StoredSearch, start: Start, version: int) -> bytes:
    """Write a page's question and start."""
    return orjson.dumps(
        [
            version,
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
    client, kind, pairs, lenient, total, fingerprint, born, start = _versioned(raw)
    question = tuple((name, text) for name, text in pairs)
    search = StoredSearch(
        client, ResourceType(kind), question, lenient, total, fingerprint, born
    )
    return search, _read_start(start)


def pack_target(page_id: str, start: Start, version: int) -> bytes:
    """Write where a link leads."""
    told = [page_id, _start(start)]
    return orjson.dumps(told if version == _UNVERSIONED else [version, *told])


def unpack_target(raw: bytes) -> tuple[str, Start]:
    """Read what `pack_target` wrote. Raises FormatError."""
    told = orjson.loads(raw)
    is_versioned = not isinstance(told[0], str)
    page_id, start = _versioned(raw) if is_versioned else told
    return page_id, _read_start(start)


def pack_place(start: Start) -> bytes:
    """Write a place, the same in every format: links to it are known by it."""
    return pack_target("", start, _UNVERSIONED)


def _versioned(raw: bytes) -> list[Any]:
    """Return what stands behind the version."""
    told: list[Any]
    version, *told = orjson.loads(raw)
    if version not in READ:
        raise FormatError(version)
    return told


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
