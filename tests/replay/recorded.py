"""The files of what was recorded: resources and sets of headers stand once in each."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tests.replay.exchange import Tables

Exchanges: TypeAlias = dict[str, list[Any]]
DIRECTORY = Path(__file__).parent / "recorded"
LIKE = {"postgresql": "sqlite", "mariadb": "sqlite"}
"""Deployments that answer as another does: their files hold what differs, and names."""


def recorded(deployment: str) -> tuple[Exchanges, Tables]:
    """Return what was recorded of each case of a deployment, and what that refers to."""
    kept = json.loads(_file(deployment).read_text("utf-8"))
    tables = Tables(kept["resources"], kept["headers"])
    base, others = _base(deployment)
    same = {name: base[name] for name in kept["same"]}
    resources = {**others.resources, **tables.resources}
    headers = {**others.headers, **tables.headers}
    return {**same, **kept["cases"]}, Tables(resources, headers)


def asks(deployment: str) -> dict[str, list[Any]]:
    """Return the requests of each case of a deployment."""
    exchanges, _ = recorded(deployment)
    return {name: [each["ask"] for each in told] for name, told in exchanges.items()}


def keep(deployment: str, tables: Tables, exchanges: Exchanges) -> None:
    """Write what was told of each case of a deployment."""
    base, _ = _base(deployment)
    same = [name for name, told in exchanges.items() if is_same(told, base.get(name))]
    own = {name: told for name, told in exchanges.items() if name not in same}
    text = "\n".join(_lines(tables.used(own), own, same))
    DIRECTORY.mkdir(exist_ok=True)
    _file(deployment).write_text(text + "\n", "utf-8")


def is_same(one: Any, other: Any) -> bool:
    """Return whether two exchanges are the same, the order of keys included."""
    return json.dumps(one) == json.dumps(other)


def _base(deployment: str) -> tuple[Exchanges, Tables]:
    return recorded(LIKE[deployment]) if deployment in LIKE else ({}, Tables())


def _file(deployment: str) -> Path:
    return DIRECTORY / f"{deployment}.json"


def _lines(tables: Tables, exchanges: Exchanges, same: list[str]) -> list[str]:
    """Return the lines of a file: one for each resource, header set and exchange."""
    lines = ["{", '"same": [', *_separated([_json(name) for name in same])]
    lines += ["],", '"headers": {', *_entries(tables.headers)]
    lines += ["},", '"resources": {', *_entries(tables.resources)]
    lines += ["},", '"cases": {']
    for number, (name, told) in enumerate(exchanges.items()):
        lines += [f"{_json(name)}: [", *_separated([_json(each) for each in told])]
        lines.append("]," if number < len(exchanges) - 1 else "]")
    return [*lines, "}", "}"]


def _entries(entries: Mapping[str, Any]) -> list[str]:
    return _separated(
        [f"{_json(name)}: {_json(each)}" for name, each in entries.items()]
    )


def _separated(lines: list[str]) -> list[str]:
    return [*(f"{line}," for line in lines[:-1]), *lines[-1:]]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
