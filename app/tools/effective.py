"""`encounters settings`: what a deployment is set up with, where each value is from."""

import argparse
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from app.setting_kinds import PREFIX
from app.setting_table import SETTINGS
from app.setting_values import Given, Origin, look_up
from app.settings import faults_of
from app.tools.report import FINDINGS, FINE, print_json

HIDDEN = "(hidden)"

_OVERRIDES = "GUNICORN_CMD_ARGS"
OURS = frozenset({"SHARED_DIRECTORY", "REDACT_KEY"})
"""Names under the prefix for the processes that `serve` starts, and for a tool."""


def run(options: argparse.Namespace) -> int:
    """Print every setting and what is wrong; the start would refuse the same."""
    given = [look_up(setting, os.environ) for setting in SETTINGS]
    faults, unknown = faults_of(given), dict(left_alone(os.environ))
    if options.json:
        told = [_as_json(each) for each in given]
        print_json({"settings": told, "faults": faults, "left_alone": list(unknown)})
    else:
        _print(given)
        for text in (*faults, *unknown.values(), *_overriding(os.environ)):
            print(text)
    return FINDINGS if faults else FINE


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


def _print(given: list[Given]) -> None:
    rows = [(each.setting.name, _shown(each), each.origin) for each in given]
    wide, longest = max(len(row[0]) for row in rows), max(len(o) for o in Origin)
    for name, shown, origin in rows:
        print(f"{name:{wide}}  {origin:{longest}}  {shown}".rstrip())


def _shown(given: Given) -> str:
    if given.fault:
        return "at fault"
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
