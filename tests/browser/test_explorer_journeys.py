"""Journeys of people through the explorer, as the demo serves it."""

import csv
import io
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import responses
from playwright.sync_api import Browser, Page, expect

from explorer.failures import ADVICE
from tests import serving
from tests.app import provider
from tests.browser.conftest import OpenPage, Serve
from tests.browser.visits import (
    EMERGENCY_STAY,
    log_in,
    open_tab,
    overflow,
    search_emergencies,
    weighed,
)
from tests.browser.watching import (
    DARK,
    NARROW,
    NO_SCRIPT,
    WIDE,
    Kind,
    tab_to,
    visiting,
)
from tests.docs.running import Demo
from tests.redis_server import RedisServer
from toolkit.contract.hospital import EDGES

Axe = Callable[[Page], None]
Explore = Callable[..., Page]

VIEWS = {"light": WIDE, "dark": DARK, "narrow": NARROW, "no-script": NO_SCRIPT}


@pytest.fixture
def look(axe: Axe) -> Callable[[Page, str], None]:
    """Hold a page to WCAG, and to the width of its window: `look(page, view)`."""

    def check(page: Page, view: str) -> None:
        assert overflow(page) <= 0
        if view != "no-script":
            axe(page)

    return check


def ids(page: Page) -> list[str]:
    """Return the first cells of the table of a result."""
    return page.locator("tbody tr td:first-child").all_inner_texts()


# --------------------------------------------------------------------------- the demo


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_can_be_used(
    explore: Explore, look: Callable[[Page, str], None], view: str
) -> None:
    page = explore(**VIEWS[view])
    heading = page.get_by_role("heading", level=1)
    look(page, view)
    search_emergencies(page)
    assert ids(page) == [EMERGENCY_STAY]
    assert "158" not in page.url
    look(page, view)
    shown = {
        "Timeline": page.get_by_role("group", name="1 stays"),
        "JSON": page.get_by_text('"searchset"'),
        "Request": page.get_by_role("heading", name="Python"),
    }
    for tab, content in shown.items():
        open_tab(page, tab)
        expect(content.first).to_be_visible()
        look(page, view)
    # A stay leads to its patient, and back to all stays.
    open_tab(page, "Table")
    page.get_by_role("link", name=EMERGENCY_STAY).click()
    expect(heading).to_have_text(f"Stay {EMERGENCY_STAY}")
    look(page, view)
    page.locator("dd").get_by_role("link", name="158").click()
    expect(heading).to_have_text("Patient 158")
    look(page, view)
    page.get_by_role("button", name="Stays of this patient").click()
    expect(page.locator("svg a").first).to_be_visible()
    assert len(ids(page)) == page.locator("svg a").count() > 5
    look(page, view)
    for words in ("Patients", "Hospitals"):
        page.get_by_role("link", name=words).click()
        expect(heading).to_have_text(f"Search {words.lower()}")
        look(page, view)
        page.get_by_label("Id", exact=True).fill("2")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("cell", name="2", exact=True).get_by_role("link").click()
        expect(page.get_by_role("heading", name="Elements")).to_be_visible()
        look(page, view)
    # An error is named beside the form.
    page.goto("/search/Encounter")
    field = page.get_by_label("Start of the stay (1)", exact=True)
    field.fill("2024-13")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert")).to_contain_text(ADVICE[412])
    expect(field).to_have_value("2024-13")
    look(page, view)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    look(page, view)


def test_pages_go_on_and_back(explore: Explore) -> None:
    page = explore()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("link", name="Next page")).to_be_visible()
    first = ids(page)
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("tbody")).not_to_contain_text(first[0])
    second = ids(page)
    assert len(first) == len(second) == 10
    assert set(first).isdisjoint(second)
    page.get_by_role("link", name="Previous page").click()
    expect(page.locator("tbody")).to_contain_text(first[0])
    assert ids(page) == first


def test_a_page_is_downloaded_as_csv(explore: Explore) -> None:
    page = explore()
    search_emergencies(page)
    page.get_by_text("Columns and CSV").click()
    for box in page.get_by_role("checkbox").all():
        box.uncheck()
    page.get_by_label("Class").check()
    page.get_by_role("button", name="Show these columns").click()
    expect(page.get_by_role("columnheader")).to_have_text(["Class"])
    page.get_by_text("Columns and CSV").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download this page as CSV").click()
    text = Path(download.value.path()).read_text("utf-8-sig")
    assert list(csv.reader(io.StringIO(text))) == [["Class"], ["emergency"]]


def test_a_request_is_copied_for_a_colleague(explore: Explore) -> None:
    page = explore(permissions=["clipboard-read", "clipboard-write"])
    search_emergencies(page)
    open_tab(page, "Request")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("pre").first.inner_text()
    assert "class=EMER" in copied
    assert "eyJ" not in copied, "an access token"


def test_json_is_folded_and_its_links_are_followed(explore: Explore) -> None:
    page = explore()
    page.get_by_role("button", name="Search").click()
    open_tab(page, "JSON")
    reference = page.locator(".json a", has_text="Patient/").first
    expect(reference).not_to_be_visible()
    page.get_by_text(re.compile(r"^Encounter/\d+$")).first.click()
    page.locator("summary", has_text='"subject"').first.click()
    expect(reference).to_be_visible()
    reference.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Patient")


def test_everything_works_with_the_keyboard_alone(
    open_page: OpenPage, demo: Demo
) -> None:
    page = open_page(demo.explorer, demo.issuer)
    page.goto("/")
    tab_to(page, page.get_by_role("link", name="Log in"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.press("Enter")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Search stays")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    tab_to(page, page.get_by_label("Patient", exact=True))
    page.keyboard.type("158")
    page.keyboard.press("Enter")
    # The new page begins at its heading: what changed is read out.
    expect(heading).to_have_text("10 stays")
    expect(heading).to_be_focused()
    for tab in ("Timeline", "JSON", "Request", "Table"):
        tab_to(page, page.get_by_role("link", name=tab, exact=True))
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name=tab, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
        expect(heading).to_be_focused()
    tab_to(page, page.get_by_role("link", name=EMERGENCY_STAY))
    page.keyboard.press("Enter")
    expect(heading).to_have_text(f"Stay {EMERGENCY_STAY}")
    tab_to(page, page.get_by_role("button", name="Log out"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Log in")).to_be_visible()


def test_the_first_page_is_small(open_page: OpenPage, demo: Demo) -> None:
    page = open_page(demo.explorer, demo.issuer)
    sizes = weighed(page)
    log_in(page)
    assert len(sizes) >= 4
    assert 0 < sum(sizes.values()) < 60_000


# ------------------------------------------- a service that can be broken from outside


@contextmanager
def away(database: Path) -> Iterator[None]:
    """Let a hospital's SQLite file answer nobody."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


@pytest.fixture
def settings() -> dict[str, str]:
    """Return settings of the service, for tests to change."""
    return {}


@pytest.fixture
def identity_provider() -> Iterator[responses.RequestsMock]:
    """Publish the keys of an identity provider."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        serving.publish_keys(mock)
        yield mock


@pytest.fixture
def local(
    tmp_path: Path,
    redis_server: RedisServer,
    serve: Serve,
    identity_provider: responses.RequestsMock,
    settings: dict[str, str],
) -> str:
    """Serve the explorer of a hospital in `tmp_path`; people paste tokens."""
    chosen = {
        "EXPLORER_BIND": "127.0.0.1:8003",
        "PLAIN_HTTP": "loopback",
        "LEEWAY_SECONDS": "0",
        **settings,
    }
    served = serving.serve(EDGES, tmp_path, redis_server.url, **chosen)
    return serve(serving.explorer_of(served))


def paste(page: Page, **claims: Any) -> None:
    """Log in with an access token."""
    page.goto("/login")
    page.get_by_label("Access token").fill(provider.sign(client_id="me", **claims))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Search stays")


def search(page: Page) -> None:
    """Search the stays of a patient."""
    page.get_by_label("Patient", exact=True).fill("1")
    page.get_by_role("button", name="Search").click()


def test_a_token_that_has_ended_leads_to_the_login(
    open_page: OpenPage, local: str, look: Callable[[Page, str], None]
) -> None:
    page = open_page(local)
    paste(page, exp=int(time.time()) + 15)
    search(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("22 stays")
    # The result is stored; a stay is read from the service.
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="Elements")).to_be_visible()
    deadline = time.monotonic() + 120
    while not page.get_by_text(ADVICE[401]).count():
        assert time.monotonic() < deadline
        page.reload()
    look(page, "light")
    page.get_by_role("link", name="Log in").click()
    expect(page.get_by_label("Access token")).to_be_visible()


def test_a_source_that_is_away_says_to_try_again(
    open_page: OpenPage, local: str, tmp_path: Path, axe: Axe
) -> None:
    page = open_page(local)
    paste(page)
    with away(tmp_path / "pas.db"):
        search(page)
        expect(page.get_by_role("alert")).to_contain_text(ADVICE[503], timeout=60_000)
        axe(page)


def test_attributes_hold_no_javascript(browser: Browser, local: str) -> None:
    """htmx would make a function of a filter: it refuses before the policy is needed."""
    with visiting(browser, local) as (page, findings):
        page.goto("/login")
        page.evaluate(
            "document.body.insertAdjacentHTML('beforeend',"
            " '<p hx-get=/login hx-trigger=click[true]>Filtered</p>');"
            "htmx.process(document.body)"
        )
        with page.expect_event("pageerror"):
            page.get_by_text("Filtered").click()
    assert {finding.kind for finding in findings} == {Kind.SCRIPT}


def test_an_explorer_that_is_away_says_so(open_page: OpenPage, local: str) -> None:
    page = open_page(local)
    paste(page)
    page.context.set_offline(True)
    search(page)
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Patient", exact=True)).to_have_value("1")
    page.context.set_offline(False)
    search(page)
    expect(page.get_by_role("link", name="Timeline")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("settings", [{"EXPLORER_REASON": "true"}])
def test_a_reason_is_required_first(
    open_page: OpenPage, local: str, look: Callable[[Page, str], None]
) -> None:
    page, view = open_page(local, **NARROW), "narrow"
    page.goto("/login")
    look(page, view)
    page.get_by_label("Access token").fill(provider.sign(client_id="me"))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_label("Reason")).to_be_visible()
    look(page, view)
    page.get_by_label("Reason").fill("ward round")
    page.get_by_role("button", name="Continue").click()
    search(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("22 stays")


def test_a_slow_search_shows_progress_and_is_cancelled(
    open_page: OpenPage, local: str, tmp_path: Path, axe: Axe
) -> None:
    page = open_page(local)
    paste(page)
    progress = page.get_by_role("status")
    expect(progress).not_to_be_visible()
    with away(tmp_path / "pas.db"):
        search(page)
        expect(progress).to_be_visible()
        axe(page)
        page.get_by_role("button", name="Cancel").click()
        expect(progress).not_to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Search stays")
        expect(page.get_by_label("Patient", exact=True)).to_have_value("1")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("link", name="Timeline")).to_be_visible()
