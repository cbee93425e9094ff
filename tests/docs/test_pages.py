"""All pages: their links lead somewhere, and the project speaks of itself alone."""

import re

from tests.docs.pages import DECISIONS, pages
from tests.live import ROOT

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def test_links_lead_somewhere_and_each_page_is_linked() -> None:
    linked = {ROOT / "README.md"}
    for page in pages():
        text = _CODE.sub("", page.read_text("utf-8"))
        for link in _LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), (page, link)
            assert target.is_relative_to(ROOT), (page, link)
            if target != page:
                linked.add(target)
            if anchor:
                assert anchor in _anchors(target.read_text("utf-8")), (page, link)
    assert set(pages()) <= linked


def _anchors(text: str) -> set[str]:
    titles = _HEADING.findall(_CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", t).lower().replace(" ", "-") for t in titles}


def test_files_that_are_named_are_there() -> None:
    for page in pages():
        text = page.read_text("utf-8")
        for name in re.findall(
            r"`((?:app|adapters|tests|mappings|docs|demo)/[^`\s]*)`", text
        ):
            assert (ROOT / name).exists() or "<" in name, (page, name)


def test_decisions_that_the_code_names_are_written_down() -> None:
    decided = DECISIONS.read_text("utf-8")
    numbers = {int(n) for n in re.findall(r"^(\d+)\. ", decided, re.MULTILINE)}
    assert numbers >= {*range(1, 35)}
    for folder in ("app", "adapters", "toolkit", "explorer"):
        for file in (ROOT / folder).rglob("*.py"):
            named = re.findall(r"decisions? (\d+)", file.read_text("utf-8"))
            assert {int(n) for n in named} <= numbers, file
