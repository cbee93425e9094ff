"""What `make audit` says of licences and weaknesses, and what bills of materials name."""

import json
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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


def main_of(script: str) -> Callable[..., int]:
    found: Callable[..., int] = runpy.run_path(str(ROOT / ".ci" / script))["main"]
    return found


check_licences, tell_weaknesses = main_of("licences.py"), main_of("weaknesses.py")
look_up = main_of("osv.py")


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


def package(**more: Any) -> dict[str, Any]:
    return {"name": "made-up", "version": "1.0", "vulns": [], **more}


WEAK = package(vulns=[{"id": "PYSEC-1", "fix_versions": ["1.1"]}])
SKIPPED = {"name": "unknown", "skip_reason": "not found"}


NOTHING = "UNKNOWN: the database told nothing of"


def test_what_could_not_be_asked_about_is_not_fine(
    tmp_path: Path, capsys: Capture
) -> None:
    answer = tmp_path / "answer"
    for packages, status, said in (
        ([package()], 0, "1 packages asked about, 0 have some"),
        ([package(), WEAK], 1, "made-up 1.0: PYSEC-1, mended in: 1.1"),
        ([WEAK, SKIPPED], 1, f"{NOTHING} unknown"),
        ([package(), SKIPPED], 3, f"{NOTHING} unknown"),
        ([], 3, f"{NOTHING} any"),
        (None, 3, f"{NOTHING} any"),
    ):
        told = "" if packages is None else json.dumps({"dependencies": packages})
        answer.write_text(told)
        assert tell_weaknesses(answer) == status
        assert said in capsys.readouterr().out


# ---- an export of the OSV database


def exported(file: Path, *records: dict[str, Any], days: int = 1) -> Path:
    """Write an export whose newest record is so many days old."""
    with zipfile.ZipFile(file, "w") as archive:
        for number, record in enumerate(records):
            modified = datetime.now(UTC) - timedelta(days=days + number)
            dated = {
                "id": f"PYSEC-{number}",
                "modified": f"{modified:%Y-%m-%dT%H:%M:%SZ}",
            }
            archive.writestr(f"PYSEC-{number}.json", json.dumps(dated | record))
    return file


def affected(*events: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return a record of the package `made_up`, with the events of its range."""
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}]
    of_it = {"package": {"ecosystem": "PyPI", "name": "made_up"}, "ranges": ranges}
    return {"affected": [of_it | more]}


FROM_THE_FIRST = {"introduced": "0"}


NPM, OTHER = {"ecosystem": "npm", "name": "x"}, {"ecosystem": "PyPI", "name": "x"}
WITHDRAWN = {"withdrawn": "2024-01-01T00:00:00Z"}


def test_a_weakness_concerns_the_versions_of_its_ranges(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    lock = locked(tmp_path / "requirements.lock", "Made-Up==1.9")
    other = affected(FROM_THE_FIRST, package=OTHER)
    for record, weak in (
        (affected(FROM_THE_FIRST), True),
        (affected(FROM_THE_FIRST, {"fixed": "1.10"}), True),
        (affected(FROM_THE_FIRST, {"fixed": "1.9"}), False),
        (affected({"introduced": "1.10"}), False),
        (affected(FROM_THE_FIRST, {"last_affected": "1.9"}), True),
        (affected(FROM_THE_FIRST, {"last_affected": "1.8"}), False),
        # Events in any order, of two ranges in one.
        (affected({"fixed": "1.2"}, {"introduced": "1.9"}, FROM_THE_FIRST), True),
        (affected({"introduced": "unreadable"}), True),
        (affected({"introduced": "2"}, versions=["1.9"]), True),
        (affected(FROM_THE_FIRST) | WITHDRAWN, False),
        (affected(FROM_THE_FIRST, package=NPM), False),
    ):
        file = exported(tmp_path / "all.zip", record, other)
        assert look_up(file, answer, [lock]) == 0
        assert tell_weaknesses(answer) == int(weak), record


def test_the_age_of_the_database_is_told_and_what_is_none_is_unknown(
    tmp_path: Path, capsys: Capture
) -> None:
    file, answer = tmp_path / "all.zip", tmp_path / "answer"
    lock = locked(tmp_path / "requirements.lock", "made-up==1.0")
    record = affected({"introduced": "2"})
    for days, status in ((0, 0), (30, 0), (31, 3)):
        exported(file, record, record, days=days)
        assert look_up(file, answer, [lock]) == status
        said = capsys.readouterr().out
        assert "2 records" in said
        assert f" {days} days old" in said
    for content in (None, b"no archive", b""):
        file.unlink()
        if content:
            file.write_bytes(content)
        elif content is not None:
            exported(file, affected(FROM_THE_FIRST, package=NPM))
        answer.write_text("")
        assert look_up(file, answer, []) == 3
        assert tell_weaknesses(answer) == 3
        file.touch()


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
    bom = bill(tmp_path / "bom.json", "wheel", wheel, lock, path=str(site))
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
    again = bill(tmp_path / "again.json", "wheel", wheel, lock, path=str(site))
    assert again == bom
    # A package without a licence is told.
    locked(lock, "not-installed==3.0")
    bom = bill(tmp_path / "bom.json", "wheel", wheel, lock, status=1)
    (component,) = bom["components"]
    assert component["properties"] == [{"name": "licence", "value": "unknown"}]


STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u1

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""


MACHINE_READABLE = "License: LGPL-2.1\nLicense: GPL-2+\n"
COMMON = "/usr/share/common-licenses"
REFERENCES = f"Their texts: `{COMMON}/GPL-2', and {COMMON}/LGPL-2.1.\n"


@pytest.mark.parametrize(
    ("copyright", "of_debian", "licences"),
    [
        (MACHINE_READABLE, True, ["GPL-2+", "LGPL-2.1"]),
        (REFERENCES, False, ["GPL-2", "LGPL-2.1"]),
        ("Copy it as you like.", False, ["in its text"]),
    ],
)
def test_the_bill_of_an_image_names_all_that_is_in_it(
    tmp_path: Path, copyright: str, of_debian: bool, licences: list[str]
) -> None:
    root = tmp_path / "root"
    place = root / "opt/encounters/lib/python3.12/site-packages"
    asked = "Requires-Dist: made-up"
    distribution(place, "encounters", "1.0", "License-Expression: Apache-2.0", asked)
    distribution(place, "made-up", "1.1", "License: MIT")
    (root / "opt/encounters/pyvenv.cfg").write_text("version = 3.12.4\n")
    documents = root / "usr/share/doc/libc6"
    documents.mkdir(parents=True)
    (documents / "copyright").write_text(copyright)
    for name, text in {
        "var/lib/dpkg/status": STATUS,
        "etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
        **({"usr/bin/python3": ""} if of_debian else {}),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    bom = bill(tmp_path / "bom.json", "image", root)
    assert bom["metadata"]["component"]["type"] == "container"
    packages = by_purl(bom)
    libc = "pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=amd64&distro=debian-12"
    python = [] if of_debian else ["pkg:generic/python@3.12.4"]
    assert sorted(packages) == sorted(
        ["pkg:pypi/encounters@1.0", "pkg:pypi/made-up@1.1", libc, *python]
    )
    assert sorted(licences_in(packages[libc])) == licences
    depends = {d["ref"]: d.get("dependsOn", []) for d in bom["dependencies"]}
    assert depends["pkg:pypi/encounters@1.0"] == ["pkg:pypi/made-up@1.1"]
