"""The parts of the pages that are made, not written: what stands there, from its source."""

import subprocess
import sys
import tempfile
from pathlib import Path

from app.config import SETTINGS, Setting
from tests.live import ROOT

FAULTY_MAPPING = """\
mapping: 1
name: Example
profile: ful
time_zon: Europe/Paris
source: {kind: sql, url: {env: PAS_URL}}
"""

_SETTINGS = """\
| Variable | Type | Takes | Default | Secret | What it is |
|---|---|---|---|---|---|
"""

_MINIMAL = {
    "BASE_URL": "https://encounters.example.org/fhir/v3",
    "ISSUER": "https://auth.example.org/",
    "AUDIENCE": "https://encounters.example.org/",
    "KEY_SET_URL": "https://auth.example.org/.well-known/jwks.json",
    "MAPPING": "hospital.yaml",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "SEAL_KEYS": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
}


def settings_table() -> str:
    """Return the table of settings, from `app.config`."""
    return _SETTINGS + "".join(map(_setting, SETTINGS))


def _setting(setting: Setting) -> str:
    default = "required" if setting.required else "–"
    if setting.default is not None:
        default = f"`{setting.default}`" if setting.default else "none"
    secret = "yes" if setting.secret else "no"
    kind = setting.kind
    told = (kind.name, kind.takes, default, secret, setting.sentence)
    cells = (f"`{setting.name}`", *told)
    return f"| {' | '.join(cells)} |\n"


def refused_settings() -> str:
    """Return what `encounters serve` says when nothing is set."""
    return _transcript("encounters serve", {})


def refused_mapping() -> str:
    """Return what `encounters serve` says of a faulty mapping."""
    environ = {f"ENCOUNTERS_{name}": value for name, value in _MINIMAL.items()}
    return _transcript("encounters serve", environ)


def _transcript(command: str, environ: dict[str, str]) -> str:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "hospital.yaml").write_text(FAULTY_MAPPING)
        refused = subprocess.run(
            [sys.executable, "-m", "app.cli", *command.split()[1:]],
            cwd=directory,
            env={**environ, "PAS_URL": "sqlite:///pas.db", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert refused.returncode == 2, refused.stderr
    # gunicorn logs its start, with the time of day.
    lines = refused.stderr.splitlines(keepends=True)
    shown = "".join(line for line in lines if not line.startswith("{"))
    return f"```console\n$ {command}\n{shown}```\n"
