"""htmx, Pico and the editor under the policy of the pages: they work, and violate nothing."""

import secrets
from collections.abc import Callable

import pytest
from flask import Blueprint, Flask, request
from flask.typing import ResponseReturnValue
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage, Serve
from tests.browser.watching import DARK, NARROW, WIDE, Kind, tab_to, visiting
from tests.live import ROOT

VENDOR = ROOT / "app" / "ui" / "static" / "vendor"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{}'; "
    "connect-src 'self'; form-action 'self'; img-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
MAPPING = """\
encounter:
  rows: |
    -- all of them
    SELECT stay_id, patient_id
    FROM stay WHERE is_open = 1
  status: {from: state, fixed: true}
organization:
  rows: "SELECT finess FROM hospital"
patient:
  list: {rows: entry}
"""
HTML = """<!doctype html>
<html lang="en"><head><title>{name}</title>
<meta name="viewport" content="width=device-width">
<meta name="csp-nonce" content="{nonce}">
<meta name="htmx-config" content="includeIndicatorCSS: false">
<link rel="stylesheet" href="/vendor/pico.css">
<script src="/vendor/htmx.js" defer></script>
<script src="/{name}.js" type="module"></script></head>
<body><header><h1>{name}</h1></header><main>{main}</main></body></html>"""
FORM = """
<form hx-post="/answer" hx-target="#answer" action="/answer" method="post">
<label>Status <select name="status"><option>open</option></select></label>
<label>Day <input type="date" name="day"></label>
<label><input type="checkbox" name="all" checked> All</label>
<label>Number <input name="number" aria-invalid="true"></label>
<button>Search</button></form>
<details><summary>More</summary>Text</details>
<p><button id="filtered" hx-get="/answer" hx-target="#answer"
 hx-trigger="click[true]">Filtered</button></p>
<section id="answer" aria-live="polite"></section>"""
EDITOR_SCRIPT = """
import { EditorState, EditorView, Decoration, StateField, autocompletion, forceLinting,
  hoverTooltip, lintGutter, linter, mapping, setup } from "/vendor/editor.js";
const source = document.querySelector("#source");
const nonce = document.querySelector("meta[name=csp-nonce]").content;
const check = (view) => [{ from: 0, to: 9, severity: "error", message: "no time zone" }];
const marked = Decoration.set([Decoration.line({ class: "marked" }).range(0)]);
const extensions = [
  setup(nonce),
  mapping({ dialect: "postgresql", schema: { stay: ["stay_id", "patient_id"] } }),
  autocompletion(), lintGutter(), linter(check, { delay: 10 }),
  hoverTooltip((view, pos) => ({ pos, create: () => {
    const dom = document.createElement("div");
    dom.textContent = `about ${pos}`;
    return { dom };
  } })),
  EditorView.decorations.of(marked),
  EditorView.contentAttributes.of({ "aria-label": "Mapping file" }),
];
const state = EditorState.create({ doc: source.textContent, extensions });
window.view = new EditorView({ state, parent: source.parentElement });
source.remove();
"""


pages = Blueprint("pages", __name__)


@pages.get("/form")
def form() -> ResponseReturnValue:
    return under_policy("form", FORM)


@pages.get("/editor")
def editor() -> ResponseReturnValue:
    return under_policy("editor", f"<pre id=source>{MAPPING}</pre>")


def under_policy(name: str, main: str) -> ResponseReturnValue:
    nonce = secrets.token_urlsafe()
    html = HTML.format(name=name, main=main, nonce=nonce)
    return html, {"Content-Security-Policy": POLICY.format(nonce)}


@pages.get("/<name>.js")
def script(name: str) -> ResponseReturnValue:
    text = EDITOR_SCRIPT if name == "editor" else ""
    return text, {"Content-Type": "text/javascript"}


@pages.route("/answer", methods=["GET", "POST"])
def answer() -> ResponseReturnValue:
    return f"<p>Day {request.form.get('day')}</p>"


@pages.get("/vendor/<path:name>")
def vendored(name: str) -> ResponseReturnValue:
    file = VENDOR / name
    headers = {"Content-Type": TYPES[file.suffix]}
    compressed = file.with_name(f"{file.name}.gz")
    if not compressed.exists():
        return file.read_bytes(), headers
    return compressed.read_bytes(), {**headers, "Content-Encoding": "gzip"}


@pytest.fixture
def origin(serve: Serve) -> str:
    application = Flask("vendored")
    application.register_blueprint(pages)
    return serve(application)


@pytest.mark.parametrize(
    "options", [WIDE, DARK, NARROW], ids=["wide", "dark", "narrow"]
)
def test_a_form_is_sent_and_its_answer_swapped_in(
    open_page: OpenPage,
    origin: str,
    axe: Callable[[Page], None],
    options: dict[str, object],
) -> None:
    page = open_page(origin, **options)
    page.goto("/form")
    page.get_by_label("Day").fill("2026-01-31")
    tab_to(page, page.get_by_role("button", name="Search"))
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_have_text("Day 2026-01-31")
    assert page.url.endswith("/form")
    axe(page)


def test_attributes_hold_no_javascript(browser: Browser, origin: str) -> None:
    with visiting(browser, origin) as (page, findings):
        page.goto("/form")
        with page.expect_event("pageerror"):
            page.get_by_role("button", name="Filtered").click()
        assert page.locator("#answer").inner_text() == ""
    # Refused before the policy is.
    assert {finding.kind for finding in findings} == {Kind.SCRIPT}


@pytest.mark.parametrize("options", [WIDE, DARK], ids=["light", "dark"])
def test_the_editor_knows_mapping_files(
    open_page: OpenPage,
    origin: str,
    axe: Callable[[Page], None],
    options: dict[str, object],
) -> None:
    page = open_page(origin, **options)
    page.goto("/editor")
    keywords = page.locator(".tok-keyword")
    expect(keywords).to_have_text(["SELECT", "FROM", "WHERE", "SELECT", "FROM"])
    expect(page.locator(".tok-propertyName").first).to_have_text("encounter")
    expect(page.locator(".cm-lintRange-error")).to_have_text("encounter")
    expect(page.locator(".marked")).to_have_text("encounter:")
    # Its styles are in force: the gutter is beside the text.
    expect(page.locator(".cm-scroller")).to_have_css("display", "flex")
    axe(page)


def test_the_editor_completes_columns_of_the_source(
    open_page: OpenPage, origin: str
) -> None:
    page = open_page(origin)
    page.goto("/editor")
    page.get_by_text("is_open = 1").click()
    page.keyboard.press("End")
    page.keyboard.type(" AND stay.pat")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("patient_id")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+f")
    expect(page.get_by_role("textbox", name="Find")).to_be_focused()
    page.get_by_text("organization").hover()
    expect(page.locator(".cm-tooltip-hover")).to_contain_text("about")


def test_tab_leaves_the_editor(open_page: OpenPage, origin: str) -> None:
    page = open_page(origin)
    page.goto("/editor")
    text = page.get_by_role("textbox", name="Mapping file")
    tab_to(page, text)
    page.keyboard.press("Tab")
    expect(text).not_to_be_focused()
