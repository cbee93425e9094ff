"""All pages: their links lead somewhere, and the project speaks of itself alone."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, pages, section
from tests.live import ROOT

HEADINGS = ["Context", "Decision", "Status", "Consequences"]
RECORDS = sorted(p for p in (DOCS / "decisions").glob("*.md") if p.name != "README.md")

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = _CODE.sub("", page.read_text("utf-8"))
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in _anchors(target.read_text("utf-8")), link


def _anchors(text: str) -> set[str]:
    titles = _HEADING.findall(_CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", t).lower().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_are_named_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    if page.name == "CHANGELOG.md" or "\nSuperseded" in text:
        return  # they speak of what was
    for name in re.findall(
        r"`((?:app|adapters|tests|mappings|docs|demo)/[^`\s]*)`", text
    ):
        assert (ROOT / name).exists() or "<" in name, name


def test_each_page_can_be_reached_from_the_readme() -> None:
    seen, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = _LINK.findall(page.read_text("utf-8"))
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links]
        left += [target for target in targets if target.is_file()]
    assert set(pages()) <= seen


@pytest.mark.parametrize("record", RECORDS, ids=lambda p: p.stem)
def test_decisions_have_the_five_headings(record: Path) -> None:
    text = record.read_text("utf-8")
    assert re.findall(r"^# .+$", text, re.MULTILINE) == [text.splitlines()[0]]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    assert section(text, "Status").strip().startswith(("Accepted", "Superseded"))


def test_decisions_that_the_code_names_are_written_down() -> None:
    decided = (DOCS / "decisions.md").read_text("utf-8")
    numbers = {int(n) for n in re.findall(r"^(\d+)\. ", decided, re.MULTILINE)}
    assert numbers == {*range(1, 34)}
    for folder in ("app", "adapters"):
        for file in (ROOT / folder).rglob("*.py"):
            named = re.findall(r"decisions? (\d+)", file.read_text("utf-8"))
            assert {int(n) for n in named} <= numbers, file
