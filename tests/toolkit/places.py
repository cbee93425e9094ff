"""Where things stand in the demo's mapping file, whatever lines come before them."""

import re
from pathlib import Path

MAPPINGS = Path(__file__).parents[2] / "mappings"
DEMO = MAPPINGS / "demo" / "demo.yaml"


def located(text: str) -> str:
    """Return a text with line and column of each @snippet@ in its place."""
    return re.sub("@([^@]+)@", _place, text)


def _place(found: re.Match[str]) -> str:
    text = DEMO.read_text("utf-8")
    before = text[: text.index(found.group(1))]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{line}:{column}"
