"""All pages: what they name is there. `make lint` checks links between pages of docs/."""

import re
import subprocess

from tests.docs.pages import (
    CHANGE,
    DECISIONS,
    DOCS,
    blocks,
    section,
)
from tests.live import ROOT


def test_what_pages_name_and_link_is_there():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    folders = ("", "clients/python", "clients/typescript", "mappings", "deploy")
    pages = [page for folder in folders for page in (ROOT / folder).glob("*.md")]
    for page in [*pages, *DOCS.rglob("*.md")]:
        text = page.read_text("utf-8")
        code = "app|adapters|tests|mappings|docs|demo"
        for name in re.findall(rf"`((?:{code})/[^`\s]*)`", text):
            assert (ROOT / name).exists() or "<" in name, (page, name)
        assert {*re.findall(r"`make ([a-z-]+)", text)} <= {*targets}, page
        if not page.is_relative_to(DOCS):
            for link in re.findall(r"\]\(([^)#\s]+)", text):
                assert ":" in link or (page.parent / link).exists(), (page, link)


def test_decisions_that_the_code_names_are_written_down():
    decided = DECISIONS.read_text("utf-8")
    numbers = {int(n) for n in re.findall(r"^(\d+)\. ", decided, re.MULTILINE)}
    assert numbers >= {*range(1, 35)}
    for folder in ("app", "adapters", "toolkit", "explorer"):
        for file in (ROOT / folder).rglob("*.py"):
            named = re.findall(r"decisions? (\d+)", file.read_text("utf-8"))
            assert {int(n) for n in named} <= numbers, file


def test_the_pages_for_developers_fit_the_code():
    mapped = (CHANGE / "code.md").read_text("utf-8")
    mapped = section(mapped, "Architecture and import rules")
    for folder in ("app", "adapters"):
        for package in {file.parent for file in (ROOT / folder).glob("*/*.py")}:
            assert f"`{folder}/{package.name}/" in mapped
    (patch,) = blocks((CHANGE / "index.md").read_text("utf-8"), "diff")
    command = ["git", "apply", "--check", "-"]
    subprocess.run(command, input=patch.text, text=True, cwd=ROOT, check=True)
