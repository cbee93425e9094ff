"""The names that docs/change/compatibility.md promises to keep: those of now and those promised.

    python -m tests.compatibility

adds what is new to the lists in tests/promised, and removes nothing. A release does so; with
`--check` nothing is written, and exit status 1 says that a list lacks something.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from adapters.mapping.schema import editor_schema
from app.config import SETTINGS
from app.paging import READ
from tests.docs.pages import operators, section, table

LISTS = Path(__file__).parent / "promised"


def settings() -> Iterator[str]:
    """Yield the names of settings, and of those that a file can hold."""
    for setting in SETTINGS:
        yield setting.name
        if setting.secret:
            yield f"{setting.name}_FILE"


def metrics() -> Iterator[str]:
    """Yield the names of metrics, and of each with each of its labels.

    They are read off the table of docs/run/probes.md, which tests compare with the code.
    """
    page = operators()
    for name, _, labels in table(section(page, "Probes"), "Metric"):
        yield name
        yield from (f"{name} {label}" for label in labels.split(", ") if label)


def mapping_keys() -> Iterator[str]:
    """Yield the path of each key that a mapping file may have; `*` is any name or entry."""
    schema = editor_schema()
    yield from _keys(schema, schema["definitions"], (), frozenset())


NAMES: Mapping[str, Callable[[], Iterator[str]]] = {
    "settings": settings,
    "metrics": metrics,
    "mapping-keys": mapping_keys,
    "page-formats": lambda: map(str, READ),
}
"""What is promised, by the names of the lists."""


def promised(name: str) -> set[str]:
    """Return what a list holds."""
    file = LISTS / f"{name}.txt"
    return set(file.read_text("utf-8").splitlines()) if file.exists() else set()


def _keys(
    node: Mapping[str, Any],
    definitions: Mapping[str, Any],
    path: tuple[str, ...],
    within: frozenset[str],
) -> Iterator[str]:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name not in within:
            inner = definitions[name]
            yield from _keys(inner, definitions, path, within | {name})
    ways = [node[keyword] for keyword in ("then", "else") if keyword in node]
    for keyword in ("allOf", "anyOf", "oneOf"):
        ways += node.get(keyword, ())
    for way in ways:
        yield from _keys(way, definitions, path, within)
    for key, value in node.get("properties", {}).items():
        # A key that is named to be refused is none.
        if value.get("not") != {}:
            yield ".".join((*path, key))
            yield from _keys(value, definitions, (*path, key), within)
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            yield from _keys(node[keyword], definitions, (*path, "*"), within)


def main(arguments: list[str]) -> int:
    """Add what is new to the lists, or say that something is."""
    status = 0
    for name, names in NAMES.items():
        known = promised(name)
        new = set(names()) - known
        if new and "--check" in arguments:
            print(f"tests/promised/{name}.txt lacks {', '.join(sorted(new))}")
            status = 1
        elif new:
            text = "".join(f"{each}\n" for each in sorted(known | new))
            (LISTS / f"{name}.txt").write_text(text, "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
