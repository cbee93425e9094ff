"""Broken mapping files: what each is said to be wrong with, and where a person mends it."""

import re
from pathlib import Path
from typing import Any

import yaml

BAD = Path(__file__).parent / "bad"
FILES = sorted(BAD.glob("*.yaml"))


def text_of(file: Path) -> str:
    """Return the text of a file, whatever encoding somebody saved it in."""
    data = file.read_bytes()
    encoding = "utf-16" if data[:2] == b"\xff\xfe" else "utf-8-sig"
    return data.decode(encoding, errors="replace")


def to_mend(file: Path) -> set[str]:
    """Return file:line of each line to mend, as the first line of the file says.

    `# mend 4, bases/vendor.yaml:7`: a line of this file, and one of another. What cannot
    have such a line is mended on its first.
    """
    first = text_of(file).partition("\n")[0]
    said = re.fullmatch(r"# mend (.+?)\r?", first)
    named = said[1].split(", ") if said else ["1"]
    return {name if ":" in name else f"{file.name}:{name}" for name in named}


def as_an_editor_reads(file: Path) -> Any:
    """Return the data of a file; raises YAMLError or UnicodeDecodeError as editors do."""
    return yaml.load(file.read_bytes(), Loader=_Editor)


class _Editor(yaml.SafeLoader):
    """Editors refuse a key that is there twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError("a key twice")
        return super().construct_mapping(node, deep)
