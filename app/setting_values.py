"""One setting of a deployment: the text that was given for it, where from, its value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from app.setting_kinds import Setting


class Origin(StrEnum):
    """Where the text of a setting is from."""

    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"
    NOWHERE = "not given"


@dataclass(frozen=True, slots=True)
class Given:
    """A setting as a deployment has it; with a `fault` there is no value to go by."""

    setting: Setting
    origin: Origin
    text: str = field(default="", repr=False)
    value: object = field(default=None, repr=False)
    fault: str = ""


def look_up(setting: Setting, environ: Mapping[str, str]) -> Given:
    """Return what was given for a setting; its fault never quotes it."""
    # An empty variable is one that was not given: compose files write them so.
    # Variables that no row names are let be: clusters add some under our prefix.
    name = setting.name
    text = environ.get(name, "").strip()
    path = environ.get(f"{name}_FILE", "").strip() if setting.secret else ""
    if text and path:
        fault = f"{name} and {name}_FILE are both given."
        return Given(setting, Origin.ENVIRONMENT, fault=fault)
    if path:
        return _from_file(setting, Path(path))
    if text:
        return _read(setting, Origin.ENVIRONMENT, text)
    return _left_out(setting)


def _from_file(setting: Setting, path: Path) -> Given:
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, ValueError):
        fault = f"{setting.name}_FILE names no file to be read."
        return Given(setting, Origin.FILE, fault=fault)
    return _read(setting, Origin.FILE, text) if text else _left_out(setting)


def _left_out(setting: Setting) -> Given:
    if setting.default is not None:
        return _read(setting, Origin.DEFAULT, setting.default)
    missing = f"{setting.name} is missing: {setting.sentence}"
    return Given(setting, Origin.NOWHERE, fault=missing if setting.required else "")


def _read(setting: Setting, origin: Origin, text: str) -> Given:
    try:
        return Given(setting, origin, text, setting.kind.read(text))
    except (ValueError, KeyError, OSError):
        takes, kind = setting.kind.takes, setting.kind.name
        fault = f"{setting.name} cannot be read: expected {takes} ({kind})."
        return Given(setting, origin, fault=fault)
