"""The harness itself: each guard fires on a page that breaks its rule, and on no other."""

import pytest
from flask import Flask
from playwright.sync_api import Browser

from tests.browser.conftest import OpenPage, Serve
from tests.browser.watching import (
    DARK,
    NARROW,
    NO_SCRIPT,
    Kind,
    accessibility_findings,
    tab_to,
    visiting,
)

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'"
FRAME = "<!doctype html><html lang=en><title>Page</title><main><h1>Page</h1>{}</main></html>"
ELSEWHERE = "<img src=http://elsewhere.example/pixel.png alt=pixel>"
BAD = {
    "other-origin": ("", ELSEWHERE, {Kind.OTHER_ORIGIN}),
    "image-by-policy": (POLICY, ELSEWHERE, {Kind.OTHER_ORIGIN, Kind.POLICY}),
    "inline-style": (POLICY, "<p style='color: red'>red</p>", {Kind.POLICY}),
    "inline-script": (POLICY, "<script>document.title = 1</script>", {Kind.POLICY}),
    "eval": (POLICY, "<script src=/eval.js></script>", {Kind.POLICY, Kind.SCRIPT}),
    "error": (POLICY, "<script src=/error.js></script>", {Kind.SCRIPT}),
}
SCRIPTS = {"eval.js": "new Function('return 1')();", "error.js": "missing();"}
GOOD = "<p><a href='/good?again'>Again</a> <button>Go</button></p>"
UNREADABLE = "<p style='color: #ddd; background: #fff'>pale</p><input>"


@pytest.fixture
def origin(serve: Serve) -> str:
    application = Flask("bad")

    @application.get("/<name>")
    def page(name: str) -> tuple[str, dict[str, str]]:
        if name in SCRIPTS:
            return SCRIPTS[name], {"Content-Type": "text/javascript"}
        policy, content, _ = BAD.get(name, ("", UNREADABLE, set()))
        if name == "good":
            policy, content = POLICY, GOOD
        headers = {"Content-Security-Policy": policy} if policy else {}
        return FRAME.format(content), headers

    return serve(application)


def test_a_page_that_breaks_a_rule_is_a_finding(browser: Browser, origin: str) -> None:
    for name, (_, _, kinds) in BAD.items():
        with visiting(browser, origin) as (page, findings):
            page.goto(f"/{name}")
        assert {finding.kind for finding in findings} == kinds, name
    # The policy holds without JavaScript, and another origin can be allowed.
    with visiting(browser, origin, **NO_SCRIPT) as (page, findings):
        page.goto("/inline-style")
    assert {finding.kind for finding in findings} == {Kind.POLICY}
    with visiting(browser, origin, "http://elsewhere.example") as (page, findings):
        page.goto("/other-origin")
    assert findings == []


def test_axe_tells_what_people_cannot_use(browser: Browser, origin: str) -> None:
    for options in (DARK, NARROW):
        with visiting(browser, origin, **options) as (page, _):
            page.goto("/unreadable")
            told = " ".join(accessibility_findings(page))
            page.goto("/good")
            assert accessibility_findings(page) == []
        assert "color-contrast" in told
        assert "label" in told


def test_tab_reaches_what_can_have_the_focus(open_page: OpenPage, origin: str) -> None:
    page = open_page(origin)
    page.goto("/good")
    tab_to(page, page.get_by_role("button"))
    with pytest.raises(AssertionError):
        tab_to(page, page.get_by_role("heading"), presses=5)
