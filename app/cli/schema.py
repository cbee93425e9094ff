"""`encounters mapping schema`: JSON Schema, so that an editor completes and checks.

What a key holds is said once, in the tables of the guide (`mappings/README.md`), and
stands here as the description that an editor shows.
"""

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from types import SimpleNamespace
from typing import Any, NamedTuple

from adapters.mapping.schema import Node, mapping_schema, profile_schema
from adapters.mapping.slots import SECTIONS
from app.cli.check import FINE, print_json


class _GuideTable(NamedTuple):
    """A table of keys in the guide: its heading, and what stands before the keys there.

    `definitions` are the names of those that have the keys, "" for the whole.
    """

    heading: str
    before: str
    definitions: str


_FILE, _SECTION = "### The file", "### A section: encounter, patient, organization"
_API, _API_SECTION = (
    "### Keys of an HTTP source",
    "### Keys of a section of an HTTP source",
)
_OF_MAPPINGS = (
    _GuideTable(_FILE, "", "File"),
    _GuideTable(_FILE, "local_times.", "LocalTimes"),
    _GuideTable(_FILE, "known.", "Known"),
    _GuideTable(_FILE, "constants.", "Constants"),
    _GuideTable(_FILE, "source.", "SqlSource"),
    _GuideTable(_FILE, "codes.NAME.", "CodeTable"),
    _GuideTable(_SECTION, "", r"\w+Section(Several|Entry)?"),
    *(
        _GuideTable(f"### Fields of {key}", "", f"{kind}Fields")
        for key, kind in SECTIONS.items()
    ),
    _GuideTable("### One value", "", "Text|Reference|Parts|Date|Time|Updated"),
    _GuideTable("### Items of lists", "", r"\w+Item\d*"),
    _GuideTable(_API, "", "HttpSource"),
    _GuideTable(_API, "auth.", "Auth"),
    _GuideTable(_API_SECTION, "", r"\w+HttpSection(Entry)?"),
    _GuideTable("### Keys of a class of your own", "", "OwnSource"),
    _GuideTable(_API_SECTION, "list.", "List"),
    _GuideTable(_API_SECTION, "search.NAME.", r"\w+Search"),
)
_OF_PROFILES = (_GuideTable("## Profiles", "", ""),)


def run(options: SimpleNamespace) -> int:
    """Print the schema of mapping files, or of profiles."""
    print_json(schema_of_profiles() if options.profile else schema_of_mappings())
    return FINE


def schema_of_mappings() -> Node:
    """Return the schema of mapping files, each key with what the guide says of it."""
    return _explained(mapping_schema(), _OF_MAPPINGS)


def schema_of_profiles() -> Node:
    """Return the schema of profile files, likewise."""
    return _explained(profile_schema(), _OF_PROFILES)


def _explained(schema: Node, places: Iterable[_GuideTable]) -> Node:
    guide = (resources.files("mappings") / "README.md").read_text(encoding="utf-8")
    tables = {"": schema, **schema["definitions"]}
    for place in places:
        texts = _texts(guide, place)
        for name, table in tables.items():
            if re.fullmatch(place.definitions, name.removeprefix("Extending")):
                _explain(table.get("properties", {}), texts)
    return schema


def _explain(properties: dict[str, Any], texts: Mapping[str, str]) -> None:
    for key in properties.keys() & texts.keys():
        node = properties[key]
        # A reference stands alone in draft 7: what is beside it would be overlooked.
        alone = {"allOf": [node]} if "$ref" in node else node
        properties[key] = {"description": texts[key], **alone}


def _texts(guide: str, place: _GuideTable) -> Mapping[str, str]:
    """Return what the tables under a heading say of each key."""
    _, _, after = guide.partition(f"\n{place.heading}\n")
    part = re.split(r"\n#+ ", after, maxsplit=1)[0]
    before = re.escape(place.before)
    rows = re.findall(rf"^\| `{before}([^`.]+)` \|(.*)\|$", part, re.MULTILINE)
    return {key: _plain(row) for key, row in rows}


def _plain(row: str) -> str:
    """Return the last cell of a row without its links."""
    text = row.rsplit(" | ", 1)[-1].strip()
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
