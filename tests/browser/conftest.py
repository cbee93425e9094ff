"""A browser whose pages fail their test when they misbehave, the explorer, the workbench."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from demo.hospital import fill
from tests.demo.running import Demo
from tests.hospital_http import serving
from tests.live import ROOT
from toolkit.workbench import Workbench, create_workbench

OpenPage = Callable[..., Page]

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
    # What a page asks of another host is a finding, and never leaves this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
NARROW: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
DARK: dict[str, Any] = {**WIDE, "color_scheme": "dark"}
NO_SCRIPT: dict[str, Any] = {**WIDE, "java_script_enabled": False}

REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("Content Security Policy:", event.effectiveDirective, event.blockedURI));
"""

# Five seconds, Playwright's own limit, are too few on a busy machine.
expect.set_options(timeout=30_000)


@contextmanager
def visiting(
    browser: Browser, *origins: str, **options: Any
) -> Iterator[tuple[Page, list[str]]]:
    """Open an empty page; yield it, and what it does and may not.

    `origins` are all that it may send requests to: the first is the base of relative addresses.
    The findings are complete once the block has ended.
    """
    findings: list[str] = []
    context = browser.new_context(base_url=origins[0], **{**WIDE, **options})

    def on_request(url: str) -> None:
        parts = urlsplit(url)
        is_remote = parts.scheme in {"http", "https", "ws", "wss"}
        if is_remote and f"{parts.scheme}://{parts.netloc}" not in origins:
            findings.append(f"request: {url}")

    def on_console(text: str) -> None:
        if "Content Security Policy" in text:
            findings.append(f"policy: {text}")

    context.add_init_script(REPORT_VIOLATIONS)
    context.on("request", lambda request: on_request(request.url))
    context.on("console", lambda message: on_console(message.text))
    context.on("weberror", lambda error: findings.append(f"script: {error.error}"))
    try:
        yield context.new_page(), findings
    finally:
        # An answer of each page: events on their way arrive before it.
        for page in context.pages:
            page.evaluate("0")
        context.close()


def inaccessible(page: Page) -> list[str]:
    """Return what axe-core calls serious or critical on a page: rule, place and reason."""
    page.evaluate((Path(__file__).parent / "axe" / "axe.min.js").read_text("utf-8"))
    # Rules of WCAG 2.2 that are off by default.
    options = {"rules": {"target-size": {"enabled": True}}}
    result = page.evaluate("(options) => axe.run(options)", options)
    return [
        f"{violation['id']} at {node['target']}: {node['failureSummary']}"
        for violation in result["violations"]
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]


def look(page: Page, has_script: bool = True) -> None:
    """Hold a page to the width of its window, and to WCAG: axe needs scripts."""
    page.wait_for_load_state()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if has_script:
        assert inaccessible(page) == []


def tab_to(page: Page, target: Locator, presses: int = 100) -> None:
    """Press Tab until an element has the focus; fail if it never has."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        if target.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError(f"{presses} times Tab do not reach {target}.")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*ARGUMENTS]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open pages: `open_page(origin, *more_origins, **options of the context)`."""
    all_findings: list[list[str]] = []
    with ExitStack() as pages:

        def open_one(*origins: str, **options: Any) -> Page:
            page, findings = pages.enter_context(visiting(browser, *origins, **options))
            all_findings.append(findings)
            return page

        yield open_one
    assert [finding for findings in all_findings for finding in findings] == []


@pytest.fixture
def explore(open_page: OpenPage, demo: Demo) -> OpenPage:
    """Log in to the demo's explorer: `explore(**options of the context)`."""

    def begin(**options: Any) -> Page:
        page = open_page(demo.explorer, demo.issuer, **options)
        page.goto("/")
        log_in(page)
        return page

    return begin


def log_in(page: Page) -> None:
    """Log in through the login page of the demo's token server."""
    page.locator("main .button").click()
    page.get_by_label("Name").fill("camille")
    page.get_by_role("button").click()
    expect(page.locator("#q")).to_be_visible()


class Bench(NamedTuple):
    """A mapping file in the workbench; its source is an SQLite file of this test."""

    file: Path
    database: Path
    address: str


@pytest.fixture(scope="session")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's hospital, to be copied."""
    path = tmp_path_factory.mktemp("hospital") / "pas.sqlite"
    fill(f"sqlite:///{path}", stays=1000, seed=1)
    return path


@pytest.fixture
def bench(
    tmp_path: Path, hospital: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    """Serve the workbench on a copy of the demo's mapping."""
    shutil.copytree(ROOT / "mappings", tmp_path / "mappings")
    database = Path(shutil.copy(hospital, tmp_path))
    monkeypatch.setenv("PAS_URL", f"sqlite:///{database}")
    file = tmp_path / "mappings" / "demo" / "demo.yaml"
    workbench = Workbench(file, os.environ)
    with serving(create_workbench(workbench)) as origin:
        yield Bench(file, database, f"{origin}/?token={workbench.token}")


@pytest.fixture
def work(open_page: OpenPage, bench: Bench) -> OpenPage:
    """Open the workbench: `work(**options of the context)`."""

    def begin(**options: Any) -> Page:
        page = open_page(bench.address.partition("/?")[0], **options)
        page.goto(bench.address)
        return page

    return begin


def element(page: Page, name: str) -> Locator:
    """Return the line of an element of the workbench's resource."""
    return page.locator("#panel-resource tr[data-line]").filter(
        has=page.get_by_role("cell", name=name, exact=True)
    )
