"""The files of what was recorded: the exchanges of each case, one a line."""

import json
from pathlib import Path
from typing import Any, TypeAlias

Exchanges: TypeAlias = dict[str, list[Any]]
DIRECTORY = Path(__file__).parent / "recorded"


def recorded(deployment: str) -> Exchanges:
    """Return what was recorded of each case of a deployment."""
    exchanges: Exchanges = json.loads(_file(deployment).read_text("utf-8"))
    return exchanges


def keep(deployment: str, exchanges: Exchanges) -> None:
    """Write what was answered in each case of a deployment."""
    cases = []
    for name, case in exchanges.items():
        lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in case)
        cases.append(f"{json.dumps(name, ensure_ascii=False)}: [\n{lines}\n]")
    text = ",\n".join(cases)
    _file(deployment).write_text(f"{{\n{text}\n}}\n", "utf-8")


def _file(deployment: str) -> Path:
    return DIRECTORY / f"{deployment}.json"
