"""The entries of a page. Those of stays are written as text, at half the cost.

Stays differ in their values and hardly in their shape. So a record of marks is dumped by
the schema, once for each shape: what a stay is as JSON is that text with the stay's own
values in place of the marks.
"""

import re
import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import orjson
from marshmallow import Schema

from adapters.contract import EncounterRecord, Record
from app.schemas.bundle import match_entries
from app.schemas.datatypes import Element
from app.schemas.summary import Summary, cut

_FEW = 6
"""Up to so many records, one by one is as fast."""

_CUTS, _FORMS = 4, 2048
"""How many sets of elements are known, which clients choose, and how many forms of each.

A hospital makes some forty forms, of 2 KB.
"""

_SHARED = ("status", "class_code", "visit_number_system", "organization_id")
"""What many stays have in common: it belongs to the form of a stay. All else is its own."""

_TIMES = ("start", "end", "last_updated")
_OWN = tuple(name for name in EncounterRecord._fields if name not in _SHARED)
_shared_of, _own_of = (
    itemgetter(*map(EncounterRecord._fields.index, names)) for names in (_SHARED, _OWN)
)

_Shape: TypeAlias = tuple[str | bool | None, ...]
"""The values of `_SHARED`, then whether there is one, for each of `_OWN`."""


class Entries:
    """Writes records of one type as entries; `base_url` ends in `/fhir/v3`."""

    def __init__(self, schema: Schema, base_url: str) -> None:
        self._schema = schema
        self._base_url = base_url

    def written(
        self, records: Sequence[Record], summary: Summary, elements: Collection[str]
    ) -> Sequence[bytes]:
        """Return the entries as JSON, in their order, cut as asked for."""
        resources: Sequence[Element] = self._schema.dump(records, many=True)
        if elements or summary is not Summary.FALSE:
            resources = [cut(each, summary, elements) for each in resources]
        entries = match_entries(self._base_url, resources)
        return [orjson.dumps(entries)[1:-1]] if entries else []


class EncounterEntries(Entries):
    """Writes stays. No value of a record may be more than a text or a time in its JSON."""

    def __init__(self, schema: Schema, base_url: str) -> None:
        super().__init__(schema, base_url)
        # At random: no constant of a deployment holds one.
        token, year_1 = secrets.token_hex(16), datetime.min.replace(tzinfo=UTC)
        past = year_1 + timedelta(microseconds=secrets.randbelow(10**15))
        self._marks = tuple(
            past + timedelta(seconds=at) if name in _TIMES else f"{token}{at:02}"
            for at, name in enumerate(_OWN)
        )
        self._places = {_texts([mark])[0]: at for at, mark in enumerate(self._marks)}
        self._any_mark = re.compile(b"(%s)" % b"|".join(map(re.escape, self._places)))
        self._forms = lru_cache(_CUTS)(self._empty_forms)

    def written(
        self, records: Sequence[Any], summary: Summary, elements: Collection[str]
    ) -> Sequence[bytes]:
        """Return the entries as JSON, in their order, cut as asked for."""
        if len(records) <= _FEW:
            return super().written(records, summary, elements)
        columns = tuple(zip(*records, strict=True))
        own = _own_of(columns)
        there = (repeat(True) if all(each) else map(bool, each) for each in own)
        shapes = zip(*_shared_of(columns), *there, strict=False)
        texts = zip(*map(_texts, own), strict=True)
        forms = self._forms(summary, tuple(elements))
        return [
            forms[shape].filled(row) for shape, row in zip(shapes, texts, strict=False)
        ]

    def _empty_forms(self, summary: Summary, elements: tuple[str, ...]) -> "_Forms":
        return _Forms(partial(self._form, summary, elements))

    def _form(
        self, summary: Summary, elements: tuple[str, ...], shape: _Shape
    ) -> "_Form":
        there = shape[len(_SHARED) :]
        told: dict[str, Any] = dict(zip(_SHARED, shape, strict=False))
        for name, mark, is_there in zip(_OWN, self._marks, there, strict=True):
            told[name] = mark if is_there else None
        record = EncounterRecord(**told)
        (entry,) = super().written([record], summary, elements)
        first, *others = self._any_mark.split(entry)
        literals = (first, *others[1::2])
        order = [len(_OWN)]
        for number, found in enumerate(others[::2], order[0] + 1):
            order += self._places[found], number
        return _Form(literals, itemgetter(*order))


class _Form(NamedTuple):
    """A stay as JSON but for its own values.

    `literals` are what stands between the values; `pick` takes from the texts
    of the values, the literals behind them, what the stay is joined of.
    """

    literals: tuple[bytes, ...]
    pick: "itemgetter[Any]"

    def filled(self, texts: tuple[bytes, ...]) -> bytes:
        """Return the stay of these texts."""
        return b"".join(self.pick(texts + self.literals))


class _Forms(dict[_Shape, _Form]):
    """The forms that were needed so far."""

    def __init__(self, make: Callable[[_Shape], _Form]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, shape: _Shape) -> _Form:
        if len(self) >= _FORMS:
            self.clear()
        form = self[shape] = self._make(shape)
        return form


def _texts(column: Sequence[object]) -> Sequence[bytes]:
    """Return values as they stand in JSON between quotes, nothing for none."""
    if not all(column):
        column = [value or "" for value in column]
    written = orjson.dumps(column)
    if b"\\" in written:
        # A quote may be one of a value.
        return [orjson.dumps(value)[1:-1] for value in column]
    return written[2:-2].split(b'","')
