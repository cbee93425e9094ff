"""The tables of keys in docs/bring, written from the schema."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from adapters.contract import ResourceType
from adapters.mapping.schema import all_definitions
from adapters.mapping.slots import LISTS


class KeyTable(NamedTuple):
    """A table of keys: of definitions of the schema, and of what is below single keys.

    `labels` has a name for each definition, where a column tells which of them have a key.
    `without` are keys that another table has. `page` is the name of its page in docs/bring.
    """

    heading: str
    definitions: Mapping[str, str]
    labels: str = ""
    below: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    without: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    page: str = "keys"


_VALUES = {
    "Text": "texts",
    "Reference": "references",
    "Parts": "given names",
    "Date": "days",
    "Time": "times",
    "Updated": "times",
}
_ITEMS = {
    f"Patient{listed.name.title()}Item": listed.name
    for listed in LISTS[ResourceType.PATIENT]
}
_OF_EVERY_SOURCE = (
    *("timeout_seconds", "count_timeout_seconds"),
    *("connections", "wait_seconds", "time_zone"),
)
_SEARCHES = ("Identifier", "Patient", "Text", "Date", "Token")

KEYS: Mapping[str, KeyTable] = {
    "file-keys": KeyTable(
        "key | holds",
        {"File": ""},
        below={
            "local_times.": ("LocalTimes",),
            "constants.": ("Constants",),
            "source.": ("SqlSource",),
            "codes.NAME.": ("CodeTable",),
            "known.": ("Known",),
        },
    ),
    "section-keys": KeyTable("key | holds", {"EncounterSection": ""}),
    **{
        f"{kind.lower()}-fields": KeyTable("key | becomes", {f"{kind}Fields": ""})
        for kind in ResourceType
    },
    "value-keys": KeyTable("key | for | holds", _VALUES, labels="for"),
    "item-keys": KeyTable(
        "key | of | holds", _ITEMS, labels="of", last=("only_if", "rows", "key")
    ),
    "http-source-keys": KeyTable(
        "key | holds",
        {"HttpSource": ""},
        below={"auth.": ("Auth",)},
        without=_OF_EVERY_SOURCE,
        page="http-keys",
    ),
    "http-section-keys": KeyTable(
        "key | holds",
        {"EncounterHttpSection": ""},
        below={
            "list.": ("List",),
            "search.NAME.": tuple(f"{name}Search" for name in _SEARCHES),
        },
        without=("fields", "requires", "source"),
        page="http-keys",
    ),
    "profile-keys": KeyTable("key | holds", {"ProfileFile": ""}),
    "test-keys": KeyTable("key of a test | holds", {"Test": ""}, page="test"),
}
"""The tables of keys in docs/bring, by the names of their marks."""


def keys(name: str) -> str:
    """Return a table of keys, from the schema."""
    table = KEYS[name]
    lines = [f"| {table.heading} |", re.sub("[a-z ]+", "---", f"|{table.heading}|")]
    for key in _keys_of(table):
        lines.append(_row(key, "", table.definitions, has_labels=bool(table.labels)))
        for before, definitions in table.below.items():
            if before.partition(".")[0] == key:
                below = dict.fromkeys(definitions, "")
                names = dict.fromkeys(k for d in below for k in _properties(d))
                lines += [_row(k, before, below, has_labels=False) for k in names]
    return "".join(f"{line}\n" for line in lines)


def _keys_of(table: KeyTable) -> list[str]:
    names = dict.fromkeys(k for d in table.definitions for k in _properties(d))
    shown = [k for k in names if k not in (*table.last, *table.without)]
    return [*shown, *table.last]


def _row(
    key: str, before: str, definitions: Mapping[str, str], *, has_labels: bool
) -> str:
    """Return the row of a key; the first definition that has it describes it."""
    having = [name for name in definitions if key in _properties(name)]
    text = _properties(having[0])[key]["description"]
    if all(key in all_definitions()[name].get("required", ()) for name in having):
        first, stop, others = text.partition(". ")
        text = f"{first} (required){stop}{others}"
    cells = [f"`{before}{key}`"]
    if has_labels:
        labels = dict.fromkeys(definitions[name] for name in having)
        cells.append("all" if len(having) == len(definitions) else ", ".join(labels))
    return f"| {' | '.join([*cells, text])} |"


def _properties(name: str) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = all_definitions()[name]["properties"]
    return properties
