"""A package of a hospital's own, installed once beside this project as its author would."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live import ROOT

collect_ignore = ["kestrel"]
"""Its tests run as its author runs them, where it is installed."""

SOURCE = ROOT / "tests" / "own" / "kestrel"
PROJECT = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "wsgi.py")
WINGS = ("adapters", "mappings", "toolkit")
"""What an adapter stands on, and the suite; the web is not needed to test one."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Where packages are installed, and the author's working directory."""

    site: Path
    work: Path

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the package's tests in a process that sees nothing of this working copy."""
        environ = {
            key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ
        }
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(
            command,
            cwd=self.work,
            env={**environ, "PYTHONPATH": str(self.site)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.fixture(scope="session")
def kestrel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return the package, installed with the wings of this project."""
    directory = tmp_path_factory.mktemp("own")
    site, work, project = (directory / n for n in ("site", "kestrel", "project"))
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, work, ignore=skip)
    project.mkdir()
    for name in PROJECT:
        shutil.copy(ROOT / name, project)
    for name in WINGS:
        shutil.copytree(ROOT / name, project / name, ignore=skip)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pip += ["install", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(site), str(project), str(work)], check=True)
    return Installed(site, work)
