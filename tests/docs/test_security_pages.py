"""docs/run/security: its threats have tests, its commands find a breach."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import responses
import yaml

from app.config import SETTINGS
from tests.docs.pages import RUN, blocks, table
from tests.live import ROOT
from tests.redis_server import RedisServer
from tests.serving import publish_keys, serve
from toolkit.contract.hospital import EDGES

FOLDER = RUN / "security"
PAGES = sorted(FOLDER.glob("*.md"))
THREATS = FOLDER / "threat-model.md"
KINDS = (
    *("Spoofing", "Tampering", "Repudiation", "Disclosure", "Denial of service"),
    "Elevation",
)

TESTS = yaml.safe_load((ROOT / "tests" / "docs" / "threats.yaml").read_text("utf-8"))
"""The tests that show a control: flow, kind of threat, file."""


def test_each_flow_has_tests_for_every_kind_of_threat() -> None:
    flows = {row[0].split(":")[0] for row in table(THREATS.read_text("utf-8"), "Flow")}
    assert flows == set(TESTS)
    for flow, kinds in TESTS.items():
        assert tuple(kinds) == KINDS, flow
        for kind, files in kinds.items():
            assert files, (flow, kind)
            for file, names in files.items():
                code = (ROOT / file).read_text("utf-8")
                assert all(f"def {name}(" in code for name in names), (file, names)


def test_every_secret_is_in_the_table() -> None:
    text = (FOLDER / "keys.md").read_text("utf-8")
    secrets = " ".join(row[0] for row in table(text, "Secret"))
    assert all(each.name in secrets for each in SETTINGS if each.secret)


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_the_commands_find_who_saw_whom(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """The blocks of the page, typed as they stand but for directories and the patient."""
    (tmp_path / "audit_key").write_text("a" * 44 + "\n")
    served = serve(
        EDGES,
        tmp_path,
        redis_server.url,
        AUDIT=str(tmp_path / "audit.jsonl"),
        AUDIT_KEY="a" * 44,
    )
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        ward, reporting = (served.as_client(name) for name in ("ward", "reporting"))
        ward.get("Patient/1")
        ward.get("Patient/12")
        old = tmp_path / "audit.jsonl.1.gz"
        old.write_bytes(gzip.compress((tmp_path / "audit.jsonl").read_bytes()))
        (tmp_path / "audit.jsonl").unlink()
        pages = [reporting.search("Encounter", {"_count": "5"})]
        pages.append(reporting.follow(pages[0], "next"))
        pages.append(reporting.search("Patient", {"_id": "3"}))
    shown = {
        entry["resource"].get("subject", {}).get("reference", "Patient/3")
        for page in pages
        for entry in page["entry"]
        if entry["search"]["mode"] == "match"
    }
    (tmp_path / "ids").write_text("".join(f"{n}\n" for n in range(100)))
    page = FOLDER / "breach.md"
    script = "\n".join(block.text for block in blocks(page.read_text("utf-8"), "sh"))
    for directory in ("/var/log/encounters", "/etc/encounters"):
        script = script.replace(directory, str(tmp_path))
    script = script.replace("/opt/encounters/bin/python", sys.executable)
    script = script.replace("Patient/170", "Patient/12")
    prelude = f'encounters() {{ {sys.executable} -m app.cli "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", prelude + script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    patients = (tmp_path / "patients").read_text().split()
    assert {f"Patient/{id}" for id in patients} == shown
    assert len(shown) > 2
    assert re.search(r"^ *3\t?.*reporting", done.stdout, re.MULTILINE)
    assert re.search(r" ward .* Patient/12 ", done.stdout)
