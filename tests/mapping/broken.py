"""Broken mapping files, and what `encounters mapping check` prints of them.

bad.yaml has the files: a `text`, or one of the `bases` changed by a `diff` ("---" between two
places). said.txt is what is printed: each line that a person has to mend, and no other.
"""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import yaml

from app.cli import main

HERE = Path(__file__).parent
SAID = HERE / "said.txt"

_TABLE: dict[str, Any] = yaml.safe_load((HERE / "bad.yaml").read_text("utf-8"))
FILES: dict[str, dict[str, Any]] = _TABLE["files"]


def write_all(folder: Path) -> None:
    """Write the files, and those that they extend."""
    (folder / "bases").mkdir()
    for base in (HERE / "bases").iterdir():
        (folder / "bases" / base.name).write_bytes(base.read_bytes())
    for name, file in FILES.items():
        text = _text(file).replace("\n", file.get("newline", "\n"))
        data = text.encode(file.get("encoding", "utf-8"))
        (folder / f"{name}.yaml").write_bytes(data)


def _text(file: dict[str, Any]) -> str:
    if "text" in file:
        return str(file["text"])
    text = str(_TABLE["bases"][file.get("base", "database")])
    for place in re.split("^---\n", file.get("diff", ""), flags=re.MULTILINE):
        lines = place.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert not old or text.count(old) == 1, old
        text = text.replace(old, new) if old else text
    return text


def checked(*options: str) -> dict[str, str]:
    """Return what is printed of each file of the working directory; each fails."""
    printed = {}
    for name in FILES:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(["mapping", "check", *options, f"{name}.yaml"]) == 1, name
        printed[name] = out.getvalue()
    return printed


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
