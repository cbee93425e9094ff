"""The guards of the pages: each fires on a page that breaks its rule, and on no other."""

import pytest
from flask import Flask

from tests.browser.conftest import inaccessible, tab_to, visiting
from tests.hospital_http import serving

BAD = """<img src=http://elsewhere.example/pixel.png alt=pixel><p style='color: #ddd'>pale</p>
<input><script src=/error.js></script>"""
GOOD = "<a href='/good'>Again</a> <button>Go</button>"
FRAME = "<!doctype html><html lang=en><title>Page</title><main><h1>Page</h1>{}</main></html>"
POLICY = "default-src 'none'; script-src 'self'; img-src 'self'"


def test_a_page_that_breaks_a_rule_is_a_finding(browser):
    pages = Flask("pages")
    strict = {"Content-Security-Policy": POLICY}
    pages.add_url_rule("/good", "good", lambda: (FRAME.format(GOOD), strict))
    pages.add_url_rule("/refused", "refused", lambda: (FRAME.format(BAD), strict))
    pages.add_url_rule("/shown", "shown", lambda: FRAME.format(BAD))
    script = ("missing();", {"Content-Type": "text/javascript"})
    pages.add_url_rule("/error.js", "script", lambda: script)
    findings: dict[str, list[str]] = {}
    unusable: dict[str, str] = {}
    with serving(pages) as origin:
        for name in ("good", "refused", "shown"):
            with visiting(browser, origin) as (page, findings[name]):
                page.goto(f"/{name}")
                unusable[name] = " ".join(inaccessible(page))
                if name == "good":
                    tab_to(page, page.get_by_role("button"))
                    with pytest.raises(AssertionError):
                        tab_to(page, page.get_by_role("heading"), presses=5)
    kinds = {name: {text.split(":")[0] for text in findings[name]} for name in findings}
    assert kinds["good"] == set()
    assert kinds["refused"] == {"request", "policy", "script"}
    assert kinds["shown"] == {"request", "script"}
    assert unusable["good"] == ""
    assert "color-contrast" in unusable["shown"]
    assert "label" in unusable["shown"]
