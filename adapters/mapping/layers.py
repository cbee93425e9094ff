"""A mapping file that extends another: a vendor's base, and what a hospital does differently.

Keys are laid over those of the base, table by table; what the file says replaces what the
base says. A value (`{from: …}`), a list, and a way to do something (`auth`, `paging`) is
replaced whole; the entries of `sources` of a section are told apart by their prefix.
`without` takes away what the base says. Every node keeps the place in the file that says
it, so that a problem is told there.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from adapters.mapping.elements import SECTIONS
from adapters.mapping.kept import Reader, from_disk, is_there
from adapters.mapping.model import Mark
from adapters.mapping.nodes import Items, KeyPath, Node, Scalar, Table
from adapters.mapping.problems import (
    MappingError,
    MappingProblem,
    did_you_mean,
    nearest,
    one_of,
)
from adapters.mapping.text import parse_file

VERSION = "1"
"""The version of the format that this service reads."""

MOST_LAYERS = 5

_WAYS = ("auth", "error", "paging")
"""Tables that say how one thing is done: half of one way and half of another is neither."""

Layers: TypeAlias = tuple[Table, tuple[MappingProblem, ...]]


def read_layers(path: str | Path, read: Reader = from_disk) -> Layers:
    """Return the nodes of a file laid over those that it extends, and what is wrong there.

    Raises MappingError for a file that cannot be read, a base that is not there, and
    files that extend each other.
    """
    return _read(Path(path), (), read)


def _read(path: Path, above: tuple[Path, ...], read: Reader) -> Layers:
    own, refused = parse_file(path, read)
    _check_version(own)
    if unclear := tuple(_unclear(own)):
        raise MappingError([*refused, *unclear])
    extended = own.entries.get("extend")
    if not isinstance(extended, Scalar):
        return own, refused
    base_path = path.parent / extended.text
    if refusal := _refusal(base_path, (*above, path), read):
        wrong = MappingProblem(extended.mark, "extend", refusal)
        raise MappingError([*refused, wrong])
    base, problems = _read(base_path, (*above, path), read)
    kept, missing = _without(base, own)
    # What else is taken away may rest on what was meant: none of it is.
    return _over(base if missing else kept, own, ()), (*refused, *problems, *missing)


def _check_version(root: Table) -> None:
    """Refuse another version before anything else: its keys may mean other things."""
    version = root.entries.get("mapping")
    if isinstance(version, Scalar) and version.text != VERSION:
        text = f"version '{version.text}' of the format is not known: this service reads {VERSION}"
        raise MappingError([MappingProblem(version.mark, "mapping", text)])


def _unclear(own: Table) -> Iterator[MappingProblem]:
    """Yield why it is not known what a file extends: what it lacks cannot be told then."""
    extended = own.entries.get("extend")
    if extended is not None and not isinstance(extended, Scalar):
        yield MappingProblem(extended.mark, "extend", "expected a text here")
    meant = next((key for key in own.entries if nearest(key, ["extend"])), "")
    if meant not in ("", "extend"):
        text = one_of(meant, ["extend"], "a key here")
        yield MappingProblem(own.keys[meant], meant, text)
    elif extended is None and "without" in own.entries:
        text = "'without' is only for a file that extends another (extend: …)"
        yield MappingProblem(own.keys["without"], "without", text)


def _refusal(base: Path, above: tuple[Path, ...], read: Reader) -> str:
    if base.resolve() in {path.resolve() for path in above}:
        return "these files extend each other"
    if len(above) > MOST_LAYERS:
        return f"more than {MOST_LAYERS} files extend each other"
    if not is_there(base, read):
        near = did_you_mean(base.name, (p.name for p in base.parent.glob("*.yaml")))
        return f"there is no file {base}{near}"
    return ""


def _over(base: Table, own: Table, path: KeyPath) -> Table:
    """Return the keys of `own` laid over those of `base`."""
    entries, keys = dict(base.entries), dict(base.keys)
    for one, other in (("source", "sources"), ("sources", "source")):
        if not path and one in own.entries:
            entries.pop(other, None)
    for key, node in own.entries.items():
        entries[key] = _laid(entries.get(key), node, (*path, key))
        keys[key] = own.keys[key]
    return Table(
        own.mark, MappingProxyType(entries), MappingProxyType(keys), base.taken
    )


def _laid(base: Node | None, own: Node, path: KeyPath) -> Node:
    if isinstance(base, Table) and isinstance(own, Table):
        return own if _is_whole(base, own, path) else _over(base, own, path)
    if isinstance(base, Items) and isinstance(own, Items) and _is_sources(path):
        return _entries(base, own, path)
    return own


def _is_whole(base: Table, own: Table, path: KeyPath) -> bool:
    if "fields" in path:
        return path[-1] != "fields"
    if _is_section(path):
        return "sources" in own.entries and "sources" not in base.entries
    if path[0] in ("source", "sources"):
        return path[-1] in _WAYS or _kind(own) not in (_kind(base), None)
    return path[-1] in _WAYS or path[-2:-1] == ("search",)


def _is_section(path: KeyPath) -> bool:
    return len(path) == 1 and path[0] in SECTIONS


def _is_sources(path: KeyPath) -> bool:
    return _is_section(path[:-1]) and path[-1] == "sources"


def _kind(source: Table) -> str | None:
    return _text(source, "kind")


def _text(node: Node, key: str) -> str | None:
    found = node.entries.get(key) if isinstance(node, Table) else None
    return found.text if isinstance(found, Scalar) else None


def _entries(base: Items, own: Items, path: KeyPath) -> Items:
    """Return the entries of both; those with the same prefix are one."""
    by_prefix = {
        _text(node, "prefix") or index: node for index, node in enumerate(base.items)
    }
    for index, node in enumerate(own.items):
        key = _text(node, "prefix") or len(base.items) + index
        by_prefix[key] = _laid(by_prefix.get(key), node, (*path, key))
    return replace(own, items=tuple(by_prefix.values()))


def _without(base: Table, own: Table) -> tuple[Table, tuple[MappingProblem, ...]]:
    """Return the base without what the file takes away, and what was not there."""
    taken = own.entries.get("without")
    problems = []
    for named in taken.items if isinstance(taken, Items) else ():
        if not isinstance(named, Scalar):
            continue
        kept = _cut(base, named.text, named.mark)
        if kept is None:
            text = f"the file that this one extends has no '{named.text}'"
            near = did_you_mean(named.text, _paths(base))
            problems.append(MappingProblem(named.mark, "without", text + near))
        base = kept or base
    return base, tuple(problems)


def _cut(node: Node, path: str, by: Mark) -> Any:
    """Return the node without what stands at a path with dots, None when nothing does."""
    for key, below in _steps(node):
        if key == path:
            return _with(node, key, None, by)
        rest = path[len(key) + 1 :]
        if path.startswith(f"{key}.") and (kept := _cut(below, rest, by)):
            return _with(node, key, kept, by)
    return None


def _steps(node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node, Table):
        yield from node.entries.items()
    if isinstance(node, Items):
        for item in node.items:
            if prefix := _text(item, "prefix"):
                yield prefix, item


def _with(node: Node, key: str, new: Node | None, by: Mark) -> Node:
    if isinstance(node, Items):
        items = ((_text(item, "prefix"), item) for item in node.items)
        kept = (new if prefix == key else item for prefix, item in items)
        return replace(node, items=tuple(item for item in kept if item))
    assert isinstance(node, Table)
    entries = {k: new if k == key else v for k, v in node.entries.items()}
    taken = node.taken if new else {**node.taken, key: by}
    return replace(node, entries={k: v for k, v in entries.items() if v}, taken=taken)


def _paths(node: Node, before: str = "") -> Iterator[str]:
    for key, below in _steps(node):
        yield f"{before}{key}"
        yield from _paths(below, f"{before}{key}.")
