"""Broken mapping files: what each is said to be wrong with, and where a person mends it.

bad.yaml has them all. A file is a `text`, or one of the `bases` changed by a `diff` ("---"
between two places). `mend` names the lines to mend, of this file or as file:line of another:
the first if it says nothing. `says` is what `encounters mapping check` prints.
"""

import re
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
TABLE = HERE / "bad.yaml"

_TABLE: dict[str, Any] = yaml.safe_load(TABLE.read_text("utf-8"))
FILES: dict[str, dict[str, Any]] = _TABLE["files"]


def write_all(folder: Path) -> None:
    """Write the files, and those that they extend."""
    (folder / "bases").mkdir()
    for base in (HERE / "bases").iterdir():
        (folder / "bases" / base.name).write_bytes(base.read_bytes())
    for name, said in FILES.items():
        text = _text(said).replace("\n", said.get("newline", "\n"))
        data = text.encode(said.get("encoding", "utf-8"))
        (folder / f"{name}.yaml").write_bytes(data)


def _text(said: dict[str, Any]) -> str:
    if "text" in said:
        return str(said["text"])
    text = str(_TABLE["bases"][said.get("base", "database")])
    for place in re.split("^---\n", said.get("diff", ""), flags=re.MULTILINE):
        lines = place.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert not old or text.count(old) == 1, old
        text = text.replace(old, new) if old else text
    return text


def to_mend(name: str) -> set[str]:
    """Return file:line of each line to mend."""
    named = str(FILES[name].get("mend", 1)).split(", ")
    return {each if ":" in each else f"{name}.yaml:{each}" for each in named}


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
