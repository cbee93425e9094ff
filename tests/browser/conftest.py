"""A browser, pages that fail their test when they misbehave, and a server for pages of tests."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from flask import Flask
from playwright.sync_api import Browser, Page, expect, sync_playwright
from werkzeug.serving import make_server

from tests.browser.visits import log_in
from tests.browser.watching import (
    ARGUMENTS,
    CHROMIUM,
    Finding,
    accessibility_findings,
    visiting,
)
from tests.demo.running import Demo
from tests.explorer.conftest import identity_provider  # noqa: F401 - a fixture

OpenPage = Callable[..., Page]
Serve = Callable[[Flask], str]

# Five seconds, Playwright's own limit, are too few on a busy machine.
expect.set_options(timeout=30_000)


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
    """Open pages: `open_page(origin, *more_origins, **options of the context)`.

    The test fails at its end when one asked another origin, violated its policy or had an error.
    """
    findings: list[list[Finding]] = []
    with ExitStack() as pages:

        def open_one(*origins: str, **options: Any) -> Page:
            page, of_page = pages.enter_context(visiting(browser, *origins, **options))
            findings.append(of_page)
            return page

        yield open_one
    assert [each for of_page in findings for each in of_page] == []


@pytest.fixture
def explore(open_page: OpenPage, demo: Demo) -> Callable[..., Page]:
    """Log in to the demo's explorer: `explore(name, **options of the context)`."""

    def begin(name: str = "camille", **options: Any) -> Page:
        page = open_page(demo.explorer, demo.issuer, **options)
        log_in(page, name)
        return page

    return begin


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], None]:
    """Fail on what axe-core calls serious or critical: `axe(page)`."""

    def check(page: Page) -> None:
        assert accessibility_findings(page) == []

    return check


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve a Flask application of the test's own; return its origin."""
    with ExitStack() as servers:

        def start(application: Flask) -> str:
            server = make_server("127.0.0.1", 0, application, threaded=True)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            servers.callback(server.server_close)
            servers.callback(thread.join)
            servers.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}"

        yield start
