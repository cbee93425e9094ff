"""What `make audit` says of licences, and what the bill of materials names."""

import json
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.live import ROOT

LOCKS = [
    # Drivers that the image's alone names are not installed here, to say what they are under.
    str(ROOT / f"requirements{part}.lock")
    for part in ("", "-tracing", "-test")
]
HASH = "    --hash=sha256:"
Capture = pytest.CaptureFixture[str]


check_licences: Callable[..., int] = runpy.run_path(str(ROOT / ".ci/licences.py"))[
    "main"
]


def locked(file: Path, *packages: str) -> Path:
    hashes = f"{HASH}{'a' * 64} \\\n{HASH}{'b' * 64}"
    file.write_text("".join(f"{each} \\\n{hashes}\n" for each in packages))
    return file


def distribution(folder: Path, name: str, version: str, *lines: str) -> None:
    """Write what an installed package says of itself."""
    place = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    place.mkdir(parents=True, exist_ok=True)
    head = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
    (place / "METADATA").write_text(head + "".join(f"{line}\n" for line in lines))


def test_the_licence_of_every_locked_package_is_allowed(capsys: Capture) -> None:
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
    capsys: Capture,
    licence: str,
    fault: str,
) -> None:
    distribution(tmp_path, "made-up", "1.0", licence)
    monkeypatch.syspath_prepend(tmp_path)
    lock = locked(tmp_path / "requirements.lock", "made-up==1.0")
    assert check_licences([str(lock)]) == bool(fault)
    assert fault in capsys.readouterr().out


# ---- bills of materials


def bill(out: Path, *arguments: object, status: int = 0, path: str = "") -> Any:
    """Write a bill of materials; return it, once it fits the schema."""
    command = [sys.executable, str(ROOT / ".ci" / "sbom.py"), *map(str, arguments)]
    environ = {"PYTHONPATH": path, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(
        [*command, str(out)], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    text = out.read_text("utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    return json.loads(text)


def licences_in(component: Any) -> list[str]:
    return [
        each.get("expression") or each["license"].get("id") or each["license"]["name"]
        for each in component.get("licenses", ())
    ]


def by_purl(bom: Any) -> dict[str, Any]:
    return {component["purl"]: component for component in bom["components"]}


def test_the_bill_of_a_wheel_names_what_is_locked(tmp_path: Path) -> None:
    content, site = tmp_path / "content", tmp_path / "site"
    distribution(
        *(content, "encounters", "1.0", "License-Expression: Apache-2.0"),
        *("Requires-Dist: made-up>=1", "Requires-Dist: second; extra == 'more'"),
    )
    wheel = tmp_path / "encounters-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for part in content.rglob("METADATA"):
            archive.write(part, part.relative_to(content))
    distribution(site, "made-up", "1.0", "License: BSD License", "Requires-Dist: x")
    distribution(site, "second", "2.0", "License-Expression: MIT OR Apache-2.0")
    lock = locked(tmp_path / "requirements.lock", "made-up==1.1", "second==2.0")
    bom = bill(tmp_path / "bom.json", wheel, lock, path=str(site))
    ours = bom["metadata"]["component"]
    assert (ours["purl"], licences_in(ours)) == (
        *("pkg:pypi/encounters@1.0", ["Apache-2.0"]),
    )
    assert len(ours["hashes"][0]["content"]) == 64
    packages = by_purl(bom)
    # What is locked counts, not what happens to be installed.
    assert set(packages) == {"pkg:pypi/made-up@1.1", "pkg:pypi/second@2.0"}
    assert licences_in(packages["pkg:pypi/made-up@1.1"]) == ["BSD"]
    assert licences_in(packages["pkg:pypi/second@2.0"]) == ["MIT OR Apache-2.0"]
    hashes = {h["content"] for h in packages["pkg:pypi/second@2.0"]["hashes"]}
    assert hashes == {"a" * 64, "b" * 64}
    (direct,) = [d for d in bom["dependencies"] if d["ref"] == ours["bom-ref"]]
    assert set(direct["dependsOn"]) == set(packages)
    again = bill(tmp_path / "again.json", wheel, lock, path=str(site))
    assert again == bom
    # A package without a licence is told.
    locked(lock, "not-installed==3.0")
    bom = bill(tmp_path / "bom.json", wheel, lock, status=1)
    (component,) = bom["components"]
    assert component["properties"] == [{"name": "licence", "value": "unknown"}]
