"""Packages of others from npm, whose servers are sources for tests."""

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
        [*command, *packages], capture_output=True, timeout=300, check=False
    )
    if done.returncode:
        pytest.skip("npm cannot install the package")
    return node
