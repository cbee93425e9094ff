"""What `make audit` says of licences."""

import runpy

import pytest

from tests.live import ROOT

check_licences = runpy.run_path(str(ROOT / ".ci/licences.py"))["main"]


def test_the_licence_of_every_locked_package_is_allowed(capsys):
    # Drivers that the image's alone names are not installed here, to say what they are under.
    locks = [f"requirements{part}.lock" for part in ("", "-tracing", "-test")]
    status = check_licences([str(ROOT / lock) for lock in locks])
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert "flask" in printed
    assert "opentelemetry-sdk" in printed


@pytest.mark.parametrize(
    ("licence", "fault"),
    [
        ("License-Expression: MIT AND (Apache-2.0 OR BSD-3-Clause)", ""),
        ("Classifier: License :: OSI Approved :: MIT License", ""),
        ("License-Expression: MIT AND AGPL-3.0-only", "AGPL-3.0-only"),
        ("License: Proprietary", "Proprietary"),
        ("Summary: none", "tells no licence"),
    ],
)
def test_another_licence_is_reported(tmp_path, monkeypatch, capsys, licence, fault):
    package = tmp_path / "made_up-1.0.dist-info"
    package.mkdir()
    head = "Metadata-Version: 2.4\nName: made-up\nVersion: 1.0\n"
    (package / "METADATA").write_text(f"{head}{licence}\n")
    monkeypatch.syspath_prepend(tmp_path)
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"made-up==1.0 \\\n    --hash=sha256:{'a' * 64}\n")
    assert check_licences([str(lock)]) == bool(fault)
    assert fault in capsys.readouterr().out
