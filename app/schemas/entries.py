"""The entries of a page. Those of stays are written as text, at half the cost.

Stays differ in their values and hardly in their shape. So the schema dumps a record of
marks, once for each shape, and its JSON is a template: every stay of that shape is the same
text with its own values in place of the marks.
"""

import re
import secrets
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
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

_TEMPLATES = 2048
"""How many are kept, of 1 KB each: those used last.

A source needs some hundred, of whatever hospitals, for each set of elements asked for.
"""

_CODES = ("status", "class_code")
"""They belong to the shape: they are few, and a class is more than a text in FHIR."""

_TIMES = ("start", "end", "last_updated")
_VALUES = tuple(name for name in EncounterRecord._fields if name not in _CODES)
_codes_of, _values_of = (
    itemgetter(*map(EncounterRecord._fields.index, names))
    for names in (_CODES, _VALUES)
)

_Shape: TypeAlias = tuple[str | bool | None, ...]
"""The codes of a stay, then for each of `_VALUES` whether there is one."""


class Entries:
    """Writes records of one type as entries; `base_url` ends in `/fhir/v3`."""

    def __init__(self, schema: Schema, base_url: str) -> None:
        self._schema = schema
        self._base_url = base_url

    def written(
        self, records: Sequence[Record], summary: Summary, elements: Collection[str]
    ) -> Sequence[bytes]:
        """Return the entries as JSON, in their order, cut as asked for.

        An item may hold several of them, with commas between.
        """
        resources: Sequence[Element] = self._schema.dump(records, many=True)
        if elements or summary is not Summary.FALSE:
            resources = [cut(each, summary, elements) for each in resources]
        entries = match_entries(self._base_url, resources)
        return [orjson.dumps(entries)[1:-1]] if entries else []


class EncounterEntries(Entries):
    """Writes stays. No value of one may be more than a text or a time in its JSON."""

    def __init__(self, schema: Schema, base_url: str) -> None:
        super().__init__(schema, base_url)
        # At random: no constant of a deployment holds one.
        token, year_1 = secrets.token_hex(16), datetime.min.replace(tzinfo=UTC)
        past = year_1 + timedelta(microseconds=secrets.randbelow(10**15))
        self._marks = tuple(
            past + timedelta(seconds=at) if name in _TIMES else f"{token}{at:02}"
            for at, name in enumerate(_VALUES)
        )
        self._places = {_texts([mark])[0]: at for at, mark in enumerate(self._marks)}
        self._any_mark = re.compile(b"|".join(map(re.escape, self._places)))
        self._template = lru_cache(_TEMPLATES)(self._new_template)

    def written(
        self, records: Sequence[Any], summary: Summary, elements: Collection[str]
    ) -> Sequence[bytes]:
        """Return the entries as JSON, in their order, cut as asked for."""
        if len(records) <= _FEW:
            return super().written(records, summary, elements)
        columns = tuple(zip(*records, strict=True))
        values = _values_of(columns)
        there = (repeat(True) if all(each) else map(bool, each) for each in values)
        shapes = zip(*_codes_of(columns), *there, strict=False)
        asked = repeat(summary), repeat(frozenset(elements))
        templates = map(self._template, *asked, shapes)
        texts = zip(*map(_texts, values), strict=True)
        return [
            text % pick(row) for (text, pick), row in zip(templates, texts, strict=True)
        ]

    def _new_template(
        self, summary: Summary, elements: Collection[str], shape: _Shape
    ) -> "_Template":
        told: dict[str, Any] = dict(zip(_CODES, shape, strict=False))
        there = shape[len(_CODES) :]
        for name, mark, is_there in zip(_VALUES, self._marks, there, strict=True):
            told[name] = mark if is_there else None
        record = EncounterRecord(**told)
        (entry,) = super().written([record], summary, elements)
        marks = self._any_mark.findall(entry)
        text = self._any_mark.sub(b"%b", entry.replace(b"%", b"%%"))
        # The id is there twice: `pick` has two places or more, and answers a tuple.
        return _Template(text, itemgetter(*(self._places[mark] for mark in marks)))


class _Template(NamedTuple):
    """The JSON of a stay with `%b` for each value, which `pick` takes from all of them."""

    text: bytes
    pick: "itemgetter[Any]"


_JSON_TEXT = re.compile(rb'"((?:[^"\\]|\\.)*)"')


def _texts(column: Sequence[object]) -> Sequence[bytes]:
    """Return texts and times as they stand in JSON between quotes, nothing for none."""
    if not all(column):
        column = [value or "" for value in column]
    written = orjson.dumps(column)
    if b"\\" in written:
        # A quote may be one of a value.
        return _JSON_TEXT.findall(written)
    return written[2:-2].split(b'","')
