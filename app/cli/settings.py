"""`encounters settings`: every setting of a deployment, its origin, and every fault.

With `--first` it prints a file of settings to fill in.

The service refuses to start for the same faults. Secrets and the variables that the
mapping names are never shown.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from adapters.mapping.document import (
    VariableError,
    read_layers,
    variable,
    variables_in,
)
from adapters.mapping.problems import MappingError
from app.config import PREFIX, SETTINGS, Entry, Need, SettingOrigin, read_settings
from app.console import FINDINGS, FINE, aligned, print_json

_HIDDEN, _AT_FAULT = "(hidden)", "at fault"


def run(*, as_json: bool, first: bool) -> int:
    """Print every setting and every fault, or a first file of settings."""
    if first:
        print(*_first_file(), sep="\n")
        return FINE
    reading = read_settings(os.environ)
    variables = _mapping_variables(reading.values.get("mapping"))
    missing = dict(_variable_faults(variables))
    faults = [*reading.faults, *missing.values()]
    if as_json:
        print_json(
            {
                "settings": [_as_json(entry) for entry in reading.entries],
                "mapping": {name: name not in missing for name in variables},
                "faults": faults,
            }
        )
    else:
        table = [*map(_row, reading.entries)]
        for name in variables:
            if name in missing:
                table.append((name, SettingOrigin.NOWHERE, _AT_FAULT))
            elif os.environ.get(f"{name}_FILE"):
                table.append((name, SettingOrigin.FILE, _HIDDEN))
            else:
                table.append((name, SettingOrigin.ENVIRONMENT, _HIDDEN))
        print(*aligned(table), *faults, sep="\n")
        if os.environ.get("GUNICORN_CMD_ARGS"):
            print("note: GUNICORN_CMD_ARGS overrides workers, threads and bind")
    return FINDINGS if faults else FINE


def _first_file() -> Iterator[str]:
    """Yield the lines of a file of settings to fill in."""
    yield "# Fill this in, then run `encounters settings`. docs/run/settings.md has all settings."
    for need in (Need.REQUIRED, Need.PRODUCTION):
        yield f"\n# {need}"
        for setting in SETTINGS:
            if setting.need is need:
                yield f"\n# {setting.sentence} ({setting.kind.name}: {setting.kind.takes})"
                name = f"{setting.name}_FILE" if setting.secret else setting.name
                yield f"{name}={setting.first or ''}"
    mapping = Path(os.environ.get(f"{PREFIX}MAPPING", ""))
    variables = _mapping_variables(mapping if mapping.is_file() else None)
    yield "\n# Variables of the mapping: NAME_FILE is the path of a file with the value"
    yield from (f"{name}_FILE=/etc/encounters/{name.lower()}" for name in variables)


def _mapping_variables(mapping: Path | None) -> tuple[str, ...]:
    """Return the variables that the mapping names; `mapping check` reports its faults."""
    if mapping is None:
        return ()
    try:
        return tuple(dict.fromkeys(variables_in(read_layers(mapping))))
    except MappingError:
        return ()


def _variable_faults(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            if not variable(name, os.environ):
                yield name, f"{name} is missing: the mapping names it."
        except VariableError as error:
            yield name, f"{error}."


def _row(entry: Entry) -> tuple[str, str, str]:
    value = entry.text or ""
    if not value and entry.origin is SettingOrigin.DEFAULT:
        value = "none"
    if entry.fault:
        value = _AT_FAULT
    elif entry.setting.secret and value:
        value = _HIDDEN
    return entry.setting.name, entry.origin, value


def _as_json(entry: Entry) -> dict[str, object]:
    setting = entry.setting
    return {
        "name": setting.name,
        "from": entry.origin,
        "value": None if setting.secret else entry.text or None,
        "secret": setting.secret,
        "fault": entry.fault or None,
    }
