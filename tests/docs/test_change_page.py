"""docs/change/index.md: its patch fits the code, and the change is not made already."""

import subprocess

from tests.docs.pages import CHANGE, blocks
from tests.live import ROOT


def test_the_patch_of_the_first_page_fits() -> None:
    (patch,) = blocks((CHANGE / "index.md").read_text("utf-8"), "diff")
    done = subprocess.run(
        ("git", "apply", "--check", "-"),
        input=patch.text,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
