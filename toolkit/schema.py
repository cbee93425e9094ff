"""`encounters mapping schema`: JSON Schema, so that an editor completes and checks.

What a key holds is said once, in the tables of the guide (`mappings/README.md`), and
stands here as the description that an editor shows.
"""

import re
from collections.abc import Mapping
from importlib import resources

from adapters.mapping.schema import Node, mapping_schema
from adapters.mapping.slots import SECTIONS
from app.console import FINE, print_json

_FILE, _SECTION = "### The file", "### A section: encounter, patient, organization"
_API, _API_SECTION = (
    "### Keys of an HTTP source",
    "### Keys of a section of an HTTP source",
)
_OF_MAPPINGS: tuple[tuple[str, str, str], ...] = (
    (_FILE, "", "File"),
    (_FILE, "local_times.", "LocalTimes"),
    (_FILE, "known.", "Known"),
    (_FILE, "constants.", "Constants"),
    (_FILE, "source.", "SqlSource"),
    (_FILE, "codes.NAME.", "CodeTable"),
    (_SECTION, "", r"\w+Section(Several|Entry)?"),
    *((f"### Fields of {key}", "", f"{kind}Fields") for key, kind in SECTIONS.items()),
    ("### One value", "", "Text|Reference|Parts|Date|Time|Updated"),
    ("### Items of lists", "", r"\w+Item\d*"),
    (_API, "", "HttpSource"),
    (_API, "auth.", "Auth"),
    (_API_SECTION, "", r"\w+HttpSection(Entry)?"),
    ("### Keys of a class of your own", "", "OwnSource"),
    (_API_SECTION, "list.", "List"),
    (_API_SECTION, "search.NAME.", r"\w+Search"),
)
"""Tables of keys in the guide: the heading, and what stands before the keys there.

The last are the names of the definitions that have the keys.
"""


def run() -> int:
    """Print the schema of mapping files."""
    print_json(schema_of_mappings())
    return FINE


def schema_of_mappings() -> Node:
    """Return the schema of mapping files, each key with what the guide says of it."""
    guide = (resources.files("mappings") / "README.md").read_text(encoding="utf-8")
    schema = mapping_schema()
    definitions = {"": schema, **schema["definitions"]}
    for heading, before, names in _OF_MAPPINGS:
        texts = _texts(guide, heading, before)
        for name, definition in definitions.items():
            if re.fullmatch(names, name.removeprefix("Extending")):
                properties = definition.get("properties", {})
                for key in properties.keys() & texts.keys():
                    node = properties[key]
                    # A reference stands alone in draft 7, or else hides what is beside it.
                    alone = {"allOf": [node]} if "$ref" in node else node
                    properties[key] = {"description": texts[key], **alone}
    return schema


def _texts(guide: str, heading: str, before: str) -> Mapping[str, str]:
    """Return what the tables under a heading say of each key, without links."""
    _, _, after = guide.partition(f"\n{heading}\n")
    part = re.split(r"\n#+ ", after, maxsplit=1)[0]
    row = rf"^\| `{re.escape(before)}([^`.]+)` \|(?:.* \|)? (.*) \|$"
    return {
        key: re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text.strip())
        for key, text in re.findall(row, part, re.MULTILINE)
    }
