"""`encounters settings`: what a deployment is set up with, where each value is from."""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from adapters.mapping.layers import read_layers
from adapters.mapping.nodes import Items, Node, Scalar, Table
from adapters.mapping.problems import MappingError
from adapters.mapping.secrets import variable
from app.setting_kinds import PREFIX
from app.setting_table import SETTINGS
from app.setting_values import Given, Origin, look_up
from app.settings import faults_of
from app.tools.report import FINDINGS, FINE, print_json

HIDDEN = "(hidden)"
_AT_FAULT = "at fault"
_MISSING = "is missing: the mapping names it."

_OVERRIDES = "GUNICORN_CMD_ARGS"
OURS = frozenset({"SHARED_DIRECTORY", "REDACT_KEY"})
"""Names under the prefix for the processes that `serve` starts, and for a tool."""


def run(options: argparse.Namespace) -> int:
    """Print every setting and what is wrong; the start would refuse the same."""
    given = [look_up(setting, os.environ) for setting in SETTINGS]
    unknown, named = dict(left_alone(os.environ)), named_by_mapping(given)
    missing = [name for name in named if not variable(name, os.environ)]
    faults = (*faults_of(given), *(f"{name} {_MISSING}" for name in missing))
    if options.json:
        others = {name: name not in missing for name in named}
        told = {"settings": [_as_json(each) for each in given], "mapping": others}
        print_json({**told, "faults": faults, "left_alone": list(unknown)})
    else:
        _print([*map(_row, given), *(_named_row(name, missing) for name in named)])
        for text in (*faults, *unknown.values(), *_overriding(os.environ)):
            print(text)
    return FINDINGS if faults else FINE


def named_by_mapping(given: Iterable[Given]) -> tuple[str, ...]:
    """Return the variables that the mapping file names; `mapping check` tells its faults."""
    try:
        files = (g.value for g in given if g.setting.field == "mapping")
        roots = [read_layers(file)[0] for file in files if isinstance(file, Path)]
    except MappingError:
        return ()
    return tuple(dict.fromkeys(name for root in roots for name in _variables(root)))


def _variables(node: Node) -> Iterator[str]:
    match node:
        case Table(entries={"env": Scalar(text=name), **others}) if not others:
            yield name
        case Table(entries=entries):
            for below in entries.values():
                yield from _variables(below)
        case Items(items=items):
            for below in items:
                yield from _variables(below)


def left_alone(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable under our prefix that is no setting, and a sentence on it."""
    names = [setting.name for setting in SETTINGS]
    files = [f"{setting.name}_FILE" for setting in SETTINGS if setting.secret]
    known = {*names, *files, *(f"{PREFIX}{name}" for name in OURS)}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, [*names, *files], n=1, cutoff=0.85)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield name, f"note: {name} is no setting and is left alone{meant}"


def _overriding(environ: Mapping[str, str]) -> Iterator[str]:
    if environ.get(_OVERRIDES):
        yield f"note: {_OVERRIDES} is given: what it says of workers, threads or bind wins"


def _print(rows: list[tuple[str, str, str]]) -> None:
    wide, longest = max(len(row[0]) for row in rows), max(len(o) for o in Origin)
    for name, origin, shown in rows:
        print(f"{name:{wide}}  {origin:{longest}}  {shown}".rstrip())


def _row(given: Given) -> tuple[str, str, str]:
    return given.setting.name, given.origin, _shown(given)


def _named_row(name: str, missing: list[str]) -> tuple[str, str, str]:
    if name in missing:
        return name, Origin.NOWHERE, _AT_FAULT
    return name, Origin.ENVIRONMENT, HIDDEN


def _shown(given: Given) -> str:
    if given.fault:
        return _AT_FAULT
    if given.setting.secret and given.text:
        return HIDDEN
    return given.text or ("none" if given.origin is Origin.DEFAULT else "")


def _as_json(given: Given) -> dict[str, object]:
    setting = given.setting
    is_shown = bool(given.text) and not setting.secret
    return {
        "name": setting.name,
        "from": given.origin,
        "value": given.text if is_shown else None,
        "secret": setting.secret,
        "fault": given.fault or None,
    }
