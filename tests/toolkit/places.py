"""Shipped mapping files, and where things stand in the demo's, whatever lines come before."""

import re
from pathlib import Path

MAPPINGS = Path(__file__).parents[2] / "mappings"
DEMO = MAPPINGS / "demo" / "demo.yaml"
GROUP_A = MAPPINGS / "group-a" / "group-a.yaml"
GNU_HEALTH = MAPPINGS / "gnuhealth" / "gnuhealth-5.0.yaml"
SHIPPED = sorted(
    file
    for file in MAPPINGS.glob("*/*.yaml")
    if file.parent.name != "profiles" and not file.name.endswith(".test.yaml")
)


def located(text: str) -> str:
    """Return a text with line and column of each @snippet@ in its place."""

    def place(snippet: re.Match[str]) -> str:
        demo = DEMO.read_text("utf-8")
        before = demo[: demo.index(snippet[1])].split("\n")
        return f"{len(before)}:{len(before[-1]) + 1}"

    return re.sub("@([^@]+)@", place, text)
