"""The parts of the pages that are made, not written: what stands there, from its source."""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from app.setting_kinds import Setting
from app.setting_table import SETTINGS
from tests.docs.commands import run_page
from tests.docs.pages import README, blocks
from tests.docs.running import Demo
from tests.live import ROOT

FAULTY_MAPPING = """\
mapping: 1
name: Example
profile: ful
time_zon: Europe/Paris
source: {kind: sql, url: {env: PAS_URL}}
"""

_STAMP = re.compile(r"\b[a-z2-7]{32}\b")

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
    """Return the table of settings, from `app.setting_table`."""
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
    return f"```console\n$ {command}\n{refused.stderr}```\n"


def first_answer(demo: Demo, directory: Path) -> str:
    """Return the answer to the search of the README, with the ids of some earlier one."""
    answer = run_page(README, demo, directory)[0].body
    shown = answer.replace(demo.base_url, "http://127.0.0.1:8000/fhir/v3")
    pretty = json.dumps(json.loads(shown), indent=2, ensure_ascii=False)
    return f"```json\n{_with_ids(pretty)}\n```\n"


def _with_ids(answer: str) -> str:
    """Return an answer whose ids and cursors, drawn anew each time, are the page's."""
    page = "".join(block.text for block in blocks(README.read_text("utf-8"), "json"))
    drawn = dict.fromkeys(_STAMP.findall(answer))
    shown = dict.fromkeys(_STAMP.findall(page))
    if len(drawn) != len(shown):
        return answer
    for own, theirs in zip(drawn, shown, strict=True):
        answer = answer.replace(own, theirs)
    return answer
