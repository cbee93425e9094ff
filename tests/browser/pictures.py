"""Take the pictures of the docs from a running demo: `python -m tests.browser.pictures`.

Look at each one afterwards: text that overflows, a table that cannot be read, a page whose
purpose is unclear are faults of the pages.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright
from werkzeug.serving import make_server

from tests.browser.visits import IPP, PATIENT, log_in
from tests.browser.watching import ARGUMENTS, CHROMIUM, DARK, visiting
from tests.demo.running import Demo, started
from tests.docs.pages import DOCS
from tests.live import HOST, ROOT
from toolkit.workbench import Workbench, create_workbench

PICTURES = DOCS / "pictures"
LOW = {"viewport": {"width": 1280, "height": 800}}


def main() -> None:
    """Take them all."""
    with (
        tempfile.TemporaryDirectory() as directory,
        started(Path(directory) / "demo", Path(directory) / "log", stays="") as demo,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*ARGUMENTS]
        )
        explore(browser, demo, LOW, "explorer-list", listed)
        explore(browser, demo, DARK | LOW, "explorer-{}-dark", patient)
        with (
            workbench(demo, Path(directory)) as (origin, path),
            visiting(browser, origin, **LOW) as (page, _),
        ):
            page.goto(path)
            map_a_row(page)
            take(page, "workbench")
        browser.close()


def explore(
    browser: Browser,
    demo: Demo,
    options: dict[str, object],
    name: str,
    *steps: Callable[[Page], None],
) -> None:
    """Log in, then take a picture after each step."""
    with visiting(browser, demo.explorer, demo.issuer, **options) as (page, _):
        log_in(page)
        for step in steps:
            step(page)
            take(page, name.format(step.__name__))


def take(page: Page, name: str) -> None:
    """Take one picture of what a window shows."""
    page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")


def listed(page: Page) -> None:
    """Show who is in the hospital now."""
    page.get_by_role("button", name="In hospital now").click()
    expect(page.locator(".results")).to_be_visible()


def patient(page: Page) -> None:
    """Show a patient with all stays."""
    page.locator("#q").fill(IPP)
    page.keyboard.press("Enter")
    page.get_by_role("link", name=PATIENT).click()
    expect(page.locator("#list")).to_be_visible()


@contextmanager
def workbench(demo: Demo, directory: Path) -> Iterator[tuple[str, str]]:
    """Serve the workbench on a copy of the demo's mapping; yield origin and path."""
    (database,) = demo.directory.glob("*.sqlite")
    os.environ["PAS_URL"] = f"sqlite:///{database}"
    shutil.copytree(ROOT / "mappings", directory / "mappings")
    file = directory / "mappings" / "demo" / "demo.yaml"
    bench = Workbench(file, os.environ)
    server = make_server(HOST, 0, create_workbench(bench), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{HOST}:{server.port}", f"/?token={bench.token}"
    server.shutdown()
    thread.join()
    server.server_close()


def map_a_row(page: Page) -> None:
    """Show codes, a row of the made-up hospital, and what makes the status of its resource."""
    page.get_by_role("button", name="Codes").click()
    expect(page.locator("#panel-codes table")).to_be_visible()
    page.get_by_label("Show values of patients").check()
    page.locator("#panel-rows [data-row]").nth(3).click()
    status = page.locator("#panel-resource tr[data-line]").filter(
        has=page.get_by_role("cell", name="status", exact=True)
    )
    status.hover()
    expect(page.locator(".cm-of-element")).to_be_visible()


if __name__ == "__main__":
    main()
