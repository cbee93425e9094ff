"""Packages of others from npm."""

import shutil
import subprocess
from pathlib import Path

import pytest


def npm_install(folder: Path, *packages: str) -> str:
    """Install packages, or those of the folder's package.json; return the path of node.

    Skips the test where npm or node is missing, or a package cannot be installed.
    """
    npm, node = shutil.which("npm"), shutil.which("node")
    if not (npm and node):
        pytest.skip("npm and node")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run(
        [*command, *packages],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"npm fails: {done.stderr[-300:]}")
    return node
