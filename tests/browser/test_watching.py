"""The harness itself: each guard fires on a page that breaks its rule, and on no other."""

import pytest
from flask import Flask
from playwright.sync_api import Browser

from tests.browser.conftest import Serve
from tests.browser.watching import Kind, accessibility_findings, tab_to, visiting

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'"
FRAME = "<!doctype html><html lang=en><title>Page</title><main><h1>Page</h1>{}</main></html>"
ELSEWHERE = "<img src=http://elsewhere.example/pixel.png alt=pixel>"
PAGES = {
    "other-origin": ("", ELSEWHERE, {Kind.OTHER_ORIGIN}),
    "image-by-policy": (POLICY, ELSEWHERE, {Kind.OTHER_ORIGIN, Kind.POLICY}),
    "inline-style": (POLICY, "<p style='color: red'>red</p>", {Kind.POLICY}),
    "inline-script": (POLICY, "<script>document.title = 1</script>", {Kind.POLICY}),
    "error": (POLICY, "<script src=/error.js></script>", {Kind.SCRIPT}),
    "good": (POLICY, "<a href='/good'>Again</a> <button>Go</button>", set()),
    "unreadable": ("", "<p style='color: #ddd'>pale</p><input>", set()),
}


@pytest.fixture
def origin(serve: Serve) -> str:
    application = Flask("bad")

    @application.get("/<name>")
    def page(name: str) -> tuple[str, dict[str, str]]:
        if name == "error.js":
            return "missing();", {"Content-Type": "text/javascript"}
        policy, content, _ = PAGES.get(name, ("", "", set()))
        headers = {"Content-Security-Policy": policy} if policy else {}
        return FRAME.format(content), headers

    return serve(application)


def test_a_page_that_breaks_a_rule_is_a_finding(browser: Browser, origin: str) -> None:
    for name, (_, _, kinds) in PAGES.items():
        with visiting(browser, origin) as (page, findings):
            page.goto(f"/{name}")
        assert {finding.kind for finding in findings} == kinds, name


def test_axe_and_the_keyboard_find_what_people_cannot_use(
    browser: Browser, origin: str
) -> None:
    with visiting(browser, origin) as (page, _):
        page.goto("/unreadable")
        found = " ".join(accessibility_findings(page))
        assert "color-contrast" in found
        assert "label" in found
        page.goto("/good")
        assert accessibility_findings(page) == []
        tab_to(page, page.get_by_role("button"))
        with pytest.raises(AssertionError):
            tab_to(page, page.get_by_role("heading"), presses=5)
