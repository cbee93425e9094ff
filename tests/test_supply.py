"""What `make audit` says: licences that are allowed, weaknesses that are known or not asked."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live import ROOT

LOCKS = [
    # Drivers that the image's alone names are not installed here, to say what they are under.
    str(ROOT / f"requirements{part}.lock")
    for part in ("", "-tracing", "-test")
]


def main_of(script: str) -> Callable[[Any], int]:
    found: Callable[[Any], int] = runpy.run_path(str(ROOT / ".ci" / script))["main"]
    return found


check_licences, tell_weaknesses = main_of("licences.py"), main_of("weaknesses.py")


def test_the_licence_of_every_locked_package_is_allowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, said = check_licences(LOCKS), capsys.readouterr().out
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
def test_another_licence_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    licence: str,
    fault: str,
) -> None:
    package = tmp_path / "made_up-1.0.dist-info"
    package.mkdir()
    told = f"Metadata-Version: 2.4\nName: made-up\nVersion: 1.0\n{licence}\n"
    (package / "METADATA").write_text(told)
    monkeypatch.syspath_prepend(tmp_path)
    lock = tmp_path / "requirements.lock"
    lock.write_text("made-up==1.0 \\\n    --hash=sha256:0\n")
    assert check_licences([str(lock)]) == bool(fault)
    assert fault in capsys.readouterr().out


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
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    packages: list[Any] | None,
    status: int,
    said: str,
) -> None:
    answer = tmp_path / "answer"
    told = "" if packages is None else json.dumps({"dependencies": packages})
    answer.write_text(told)
    assert tell_weaknesses(answer) == status
    assert said in capsys.readouterr().out
