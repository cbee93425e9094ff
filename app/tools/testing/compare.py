"""What is expected of a resource, path by path, and what it is instead."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from adapters.mapping.model import Mark
from adapters.mapping.nodes import Items, Node, Scalar, Table
from adapters.mapping.problems import did_you_mean


class Compared(NamedTuple):
    """One path of an expectation; `text` says how the resource differs, "" when it does not."""

    path: str
    mark: Mark
    text: str = ""


def compare(expected: Node, found: Any, path: str = "") -> Iterator[Compared]:
    """Yield each path that is expected, with what is wrong at it.

    Keys that are not expected do not count; the items of a list do, all of them.
    """
    match expected:
        case Scalar():
            yield Compared(path, expected.mark, _unlike(expected.text, found))
        case Table() if isinstance(found, dict):
            for key, below in expected.entries.items():
                inner = f"{path}.{key}" if path else key
                if key in found:
                    yield from compare(below, found[key], inner)
                elif near := did_you_mean(key, found):
                    text = f"there is no '{key}'{near}"
                    yield Compared(inner, expected.keys[key], text)
                else:
                    yield from _missing(below, inner)
        case Items() if isinstance(found, list):
            yield from _items(expected, found, path)
        case _:
            text = f"expected {_shown(expected)}, and it is {_described(found)}"
            yield Compared(path, expected.mark, text)


def _items(expected: Items, found: list[Any], path: str) -> Iterator[Compared]:
    if len(found) != len(expected.items):
        text = f"expected {_counted(len(expected.items))}, and there are {len(found)}"
        yield Compared(path, expected.mark, text)
    for number, below in enumerate(expected.items[: len(found)]):
        yield from compare(below, found[number], f"{path}[{number}]")


def _missing(expected: Node, path: str) -> Iterator[Compared]:
    """Yield each value that is expected where there is nothing at all."""
    match expected:
        case Table(entries=entries) if entries:
            for key, below in entries.items():
                yield from _missing(below, f"{path}.{key}")
        case Items(items=items) if items:
            for number, below in enumerate(items):
                yield from _missing(below, f"{path}[{number}]")
        case _:
            text = f"expected {_shown(expected)}, and there is none"
            yield Compared(path, expected.mark, text)


def holds(found: Any, path: str) -> bool:
    """Tell whether a resource has anything at a path; items of lists need no number."""
    nodes = [found]
    for key in path.split("."):
        name, _, number = key.partition("[")
        nodes = [node[name] for node in _flat(nodes) if name in node]
        if number:
            at = int(number.rstrip("]"))
            nodes = [n[at] for n in nodes if isinstance(n, list) and at < len(n)]
    return bool(nodes)


def leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a resource with its path."""
    if isinstance(found, dict):
        for key, below in found.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    elif isinstance(found, list):
        for number, below in enumerate(found):
            yield from leaves(below, f"{path}[{number}]")
    else:
        yield path, found


def written(value: Any) -> str:
    """Return a value of a resource as the text that a person writes for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _flat(nodes: list[Any]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        if isinstance(node, list):
            yield from _flat(node)
        elif isinstance(node, dict):
            yield node


def _unlike(expected: str, found: Any) -> str:
    if isinstance(found, dict | list):
        return f"expected '{expected}', and it is {_described(found)}"
    text = written(found)
    return "" if text == expected else f"expected '{expected}', and it is '{text}'"


def _shown(node: Node) -> str:
    match node:
        case Scalar():
            return f"'{node.text}'"
        case Items():
            return "a list"
        case Table():
            return "keys and values"


def _described(found: Any) -> str:
    if isinstance(found, dict):
        return f"keys and values: {', '.join(found)}"
    if isinstance(found, list):
        return f"a list of {len(found)}: write [ … ]"
    return f"'{written(found)}'"


def _counted(number: int) -> str:
    return f"{number} item" if number == 1 else f"{number} items"
