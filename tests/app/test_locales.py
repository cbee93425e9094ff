"""Every command prints, and a refused mapping shows its finding, whatever the locale."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import BESIDE, cli
from tests.app.provider import environ
from tests.live import ROOT

pytestmark = pytest.mark.system

LOCALEDEF = shutil.which("localedef")
FINDING = "prénom"
MAPPING = f"mapping: 1\n{FINDING}: 1\n"


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return the variables of each locale, by its name."""
    folder = tmp_path_factory.mktemp("locales")
    command = [str(LOCALEDEF), "-i", "fr_FR", "-f", "ISO-8859-15"]
    subprocess.run([*command, str(folder / "fr_FR@euro")], check=True)
    return {
        "fr_FR@euro": {"LOCPATH": str(folder), "LC_ALL": "fr_FR@euro"},
        "POSIX": {"LC_ALL": "POSIX"},
        "POSIX, no UTF-8 mode": {
            **{"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        },
        "ascii": {"PYTHONIOENCODING": "ascii"},
    }


def run(variables: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run a command; return its exit status and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape")


@pytest.mark.skipif(LOCALEDEF is None, reason="localedef is not installed here")
def test_every_command_prints(
    tmp_path: Path, locales: dict[str, dict[str, str]]
) -> None:
    mapping = tmp_path / "hôpital.yaml"
    mapping.write_text(MAPPING, "utf-8")
    helps = [(name, "--help") for name in (*cli.commands, *BESIDE)]
    for name, variables in locales.items():
        variables = {**environ(mapping), **variables}
        for arguments in helps:
            status, text = run(variables, *arguments)
            assert (status, "Traceback" in text) == (0, False), (name, arguments, text)
        for arguments in (("mapping", "check", str(mapping)), ("serve",)):
            status, text = run(variables, *arguments)
            assert status in {1, 2}, (name, arguments, text)
            assert "Traceback" not in text, (name, arguments, text)
            assert ":2:1: " in text, (name, arguments, text)
            shown = (FINDING, FINDING.replace("é", "\\xe9"))
            assert any(word in text for word in shown), (name, arguments, text)
