"""The clients as processes: their commands, and what each needs."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.live import ROOT
from tests.npm import npm_install

CLIENTS = ROOT / "clients"
SETTINGS = (
    *("BASE", "TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET", "AUDIENCE", "SCOPE"),
    "TIMEOUT_SECONDS",
)


def output(command: Sequence[str | Path], directory: Path, **settings: str) -> str:
    """Run a program in a directory to its end; return what it prints."""
    # Into a file, as node ends before a pipe has taken everything.
    with tempfile.TemporaryFile("w+") as file:
        done = subprocess.run(
            [*map(str, command)],
            cwd=directory,
            env=environ(settings),
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=550,
            check=False,
        )
        file.seek(0)
        printed = file.read()
    assert done.returncode == 0, printed + done.stderr
    return printed


def environ(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a client with these settings and no others."""
    rest = {name: text for name, text in os.environ.items() if name not in SETTINGS}
    return {**rest, "PYTHONPATH": str(CLIENTS / "python"), **settings}


def javascript_program(folder: Path) -> Path:
    """Return a folder in which the package for TypeScript is installed, packed as a release is.

    The compiler is in `sources`. Skips the test without node, npm or a registry.
    """
    sources, target = folder / "sources", folder / "program"
    ignored = shutil.ignore_patterns("node_modules", "dist")
    shutil.copytree(CLIENTS / "typescript", sources, ignore=ignored)
    npm_install(sources)
    target.mkdir()
    output(["npm", "pack", f"--pack-destination={target}"], sources)
    (packed,) = target.glob("*.tgz")
    (target / "package.json").write_text('{"type": "module"}')
    npm_install(target, str(packed))
    return target


def install_pip(
    environment: Path, *packages: str, interpreter: str = sys.executable
) -> Path:
    """Return the interpreter of a new environment with packages.

    Skips the test where the registry cannot be reached.
    """
    subprocess.run([interpreter, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"pip fails: {done.stderr[-300:]}")
    return python


def copied(file: Path, state: str = "current") -> Mapping[tuple[str, str], Any]:
    """Return what a copy of `sync` holds in a state, by type and id."""
    with closing(sqlite3.connect(file)) as db:
        query = "SELECT type, id, body FROM resource WHERE state = ?"
        rows = db.execute(query, (state,)).fetchall()
    return {(kind, id): body and json.loads(body) for kind, id, body in rows}
