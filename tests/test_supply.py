"""What `make audit` says: licences that are allowed, weaknesses that are known or not asked."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live import ROOT

LOCKS = sorted(str(lock) for lock in ROOT.glob("requirements*.lock"))


def run(script: str, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_licence_of_every_locked_package_is_allowed() -> None:
    assert len(LOCKS) == 3
    status, said = run("licences.py", *LOCKS)
    assert status == 0, said
    assert "flask" in said
    assert "opentelemetry-sdk" in said


@pytest.mark.parametrize(
    ("licence", "fault"),
    [
        ("License-Expression: MIT AND (Apache-2.0 OR BSD-3-Clause)", ""),
        ("Classifier: License :: OSI Approved :: MIT License", ""),
        ("License: MIT", ""),
        ("License-Expression: MIT AND AGPL-3.0-only", "AGPL-3.0-only"),
        ("License: Proprietary", "Proprietary"),
        ("Summary: none", "tells no licence"),
    ],
)
def test_another_licence_is_told(tmp_path: Path, licence: str, fault: str) -> None:
    package = tmp_path / "made_up-1.0.dist-info"
    package.mkdir()
    told = f"Metadata-Version: 2.4\nName: made-up\nVersion: 1.0\n{licence}\n"
    (package / "METADATA").write_text(told)
    lock = tmp_path / "requirements.lock"
    lock.write_text("made-up==1.0 \\\n    --hash=sha256:0\n")
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "licences.py"), str(lock)],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (1 if fault else 0), done.stderr
    assert fault in done.stdout


def package(**more: Any) -> dict[str, Any]:
    return {"name": "made-up", "version": "1.0", "vulns": [], **more}


WEAK = package(vulns=[{"id": "PYSEC-1", "fix_versions": ["1.1"]}])
SKIPPED = {"name": "unknown", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([package()], 0, "1 packages asked about, 0 have some"),
        ([package(), WEAK], 1, "made-up 1.0: PYSEC-1, mended in: 1.1"),
        ([WEAK, SKIPPED], 1, "UNKNOWN: the database told nothing of unknown"),
        ([package(), SKIPPED], 3, "UNKNOWN: the database told nothing of unknown"),
        ([], 3, "UNKNOWN: the database told nothing of any"),
        (None, 3, "UNKNOWN: the database told nothing of any"),
    ],
    ids=["none", "one", "one and unknown", "unknown", "empty", "away"],
)
def test_what_could_not_be_asked_about_is_not_fine(
    tmp_path: Path, packages: list[Any] | None, status: int, said: str
) -> None:
    answer = tmp_path / "answer"
    told = "" if packages is None else json.dumps({"dependencies": packages})
    answer.write_text(told)
    ended, shown = run("weaknesses.py", str(answer))
    assert (ended, said in shown) == (status, True), shown
