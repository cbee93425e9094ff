"""Journeys of people through the explorer, as the demo serves it."""

import csv
import io
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import responses
from playwright.sync_api import Page, Route, expect

from explorer.failures import TEXTS
from tests import serving
from tests.app import provider
from tests.browser.conftest import OpenPage, Serve
from tests.browser.visits import (
    EMERGENCY,
    IPP,
    PATIENT,
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
    tab_to,
)
from tests.demo.running import Demo
from tests.explorer.conftest import AUTHORIZE, CLIENT_ID, answer
from tests.redis_server import RedisServer
from toolkit.contract.hospital import EDGES

pytestmark = pytest.mark.extended

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


def visits(page: Page) -> list[str]:
    """Return the visit numbers of a table of stays."""
    return page.locator(".results .c-visit a").all_inner_texts()


# --------------------------------------------------------------------------- the demo


@pytest.mark.parametrize(
    "view",
    [
        pytest.param("light", marks=pytest.mark.system),
        "dark",
        "narrow",
        pytest.param("no-script", marks=pytest.mark.system),
    ],
)
def test_every_page_can_be_used(
    explore: Explore, look: Callable[[Page, str], None], view: str
) -> None:
    page = explore(**VIEWS[view])
    heading = page.get_by_role("heading", level=1)
    look(page, view)
    search_emergencies(page)
    assert visits(page) == [EMERGENCY]
    assert "158" not in page.url
    look(page, view)
    shown = {
        "Timeline": page.get_by_role("group", name="Timeline").locator("visible=true"),
        "JSON": page.get_by_text('"searchset"'),
    }
    for tab, content in shown.items():
        open_tab(page, tab)
        expect(content.first).to_be_visible()
        look(page, view)
    # A stay leads to its patient, who has all stays.
    open_tab(page, "Table")
    page.get_by_role("link", name=EMERGENCY).click()
    expect(heading).to_have_text("Emergency of 7 May 2024")
    look(page, view)
    page.locator(".banner").get_by_role("link", name=PATIENT).click()
    expect(heading).to_have_text(PATIENT)
    assert PATIENT in page.title()
    expect(page.locator("svg a").locator("visible=true").first).to_be_visible()
    assert len(visits(page)) == 10
    look(page, view)
    page.get_by_role("button", name="Show in full").click()
    expect(page.locator(".banner")).to_contain_text(IPP)
    page.locator(".banner dd a").click()
    look(page, view)
    page.get_by_role("link", name="Patients", exact=True).click()
    expect(heading).to_have_text("Search patients")
    look(page, view)
    page.get_by_label("Name", exact=True).fill("c")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator(".results .who").first.click()
    expect(page.get_by_role("heading", name="For IT")).to_be_visible()
    look(page, view)
    # An error is named at its field.
    page.goto("/search/Encounter")
    page.get_by_label("Patient number (IPP)").fill("Grégoire")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("looks like a name")
    look(page, view)
    page.get_by_role("button", name="Search “Grégoire” as a name").click()
    expect(heading).to_have_text(re.compile("patient"))
    look(page, view)
    # Nothing is there: one condition after the other is tried.
    page.goto("/search/Encounter")
    page.get_by_label("Patient number (IPP)").fill(IPP)
    page.get_by_label("Planned").check()
    page.get_by_label("Emergency").check()
    page.get_by_role("button", name="Search", exact=True).click()
    expect(heading).to_have_text("No stays")
    look(page, view)
    page.get_by_role("button", name="Which condition excludes most?").click()
    expect(page.get_by_role("heading", name="Widen the search")).to_be_visible()
    look(page, view)
    page.locator(".me summary").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    look(page, view)


def test_a_french_ward_is_printed(explore: Explore, axe: Axe) -> None:
    """From a name to the list of a ward, in French, on paper."""
    page = explore(locale="fr-FR", **WIDE)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Rechercher un patient ou un séjour")
    page.wait_for_load_state()
    page.locator("#q").press_sequentially("grégoire antoinette")
    expect(page.locator("#read")).to_contain_text("Lu comme")
    page.locator("#q").fill("antoinette gregoire")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=PATIENT).click()
    expect(heading).to_have_text(PATIENT)
    expect(page.locator(".banner")).to_contain_text(re.compile(r"\d\d/\d\d/19\d\d"))
    axe(page)
    page.get_by_role("link", name="Demo hospital").click()
    page.get_by_label("Présents dans une UF").fill("0123")
    page.get_by_role("button", name="Ouvrir").click()
    expect(heading).to_have_text(re.compile(r"\d+ séjours"))
    expect(page.locator(".chips")).to_contain_text("0123 Urgences")
    assert page.locator(".results tbody tr small").first.inner_text().startswith("né")
    axe(page)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1032, "height": 720})  # A4 within its margins
    assert page.locator(".wide").evaluate("(e) => e.scrollWidth") <= 1032
    expect(page.get_by_text(re.compile("^Imprimé le"))).to_be_visible()
    expect(page.locator("body > header")).not_to_be_visible()
    expect(page.locator(".bar")).not_to_be_visible()
    assert len(page.pdf()) > 1000
    page.emulate_media(media="screen")
    page.get_by_role("link", name="English").click()
    expect(heading).to_have_text(re.compile(r"\d+ stays"))


@pytest.mark.system
@pytest.mark.parametrize("view", ["light", "no-script"])
def test_a_result_is_exported_and_shown_whole(explore: Explore, view: str) -> None:
    page = explore(**VIEWS[view])
    page.get_by_role("button", name="In hospital now").click()
    page.get_by_text("Export", exact=True).first.click()
    page.get_by_role("button", name=re.compile("Print all")).click()
    expect(page.locator(".pager")).to_contain_text(re.compile(r"1–(\d+) of \1"))
    page.get_by_text("Columns", exact=True).click()
    for box in page.get_by_role("checkbox").all():
        box.uncheck()
    page.get_by_label("Type", exact=True).check()
    page.get_by_role("button", name="Apply").click()
    heads = ["Patient", "Type"]
    expect(page.get_by_role("columnheader")).to_have_text(heads)
    page.get_by_text("Export", exact=True).first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    assert "Patient" not in download.value.suggested_filename
    text = Path(download.value.path()).read_text("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["Patient", "Born", "Type"]
    total = page.get_by_role("heading", level=1).inner_text().split()[0]
    assert len(rows) == int(total) + 1


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
    expect(heading).to_have_text("Find a patient or a stay")
    page.wait_for_load_state()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    # The box has a key of its own; a new page begins at its heading, which is read out.
    page.keyboard.press("/")
    page.keyboard.type(IPP)
    page.keyboard.press("Enter")
    expect(heading).to_have_text("1 patient")
    expect(heading).to_be_focused()
    tab_to(page, page.get_by_role("link", name=PATIENT))
    page.keyboard.press("Enter")
    expect(heading).to_have_text(PATIENT)
    # Arrows go from bar to bar.
    bars = page.locator("svg a[aria-label]").locator("visible=true")
    tab_to(page, bars.first)
    page.keyboard.press("ArrowRight")
    expect(bars.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(heading).to_have_text(re.compile(" of "))
    # Tabs of a result, and a menu that Escape closes.
    page.goto("/")
    tab_to(page, page.get_by_role("button", name="In hospital now"))
    page.keyboard.press("Enter")
    expect(heading).to_have_text(re.compile("stays"))
    expect(heading).to_be_focused()
    for tab in ("Timeline", "JSON", "Table"):
        tab_to(page, page.get_by_role("link", name=tab, exact=True))
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name=tab, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
        expect(heading).to_be_focused()
    menu = page.locator(".bar summary").first
    tab_to(page, menu)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Ward")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Ward")).not_to_be_visible()
    expect(menu).to_be_focused()
    # The arrows go through the stays, over the end of the page.
    page.locator(".c-visit a").last.click()
    expect(page.locator(".crumbs")).to_contain_text("10 of")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".crumbs")).to_contain_text("11 of")
    tab_to(page, page.locator(".me summary"))
    page.keyboard.press("Enter")
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


@dataclass
class Local:
    """An explorer of this process, and its identity provider, which asks nobody."""

    origin: str
    provider: responses.RequestsMock

    @property
    def origins(self) -> tuple[str, str]:
        """The origins that its pages may call."""
        return self.origin, provider.ISSUER.rstrip("/")

    def log_in(self, page: Page, until: float | None = None) -> None:
        """Log in by the link of a page; the token is accepted `until` a time."""

        def authorize(route: Route) -> None:
            query = parse_qs(urlsplit(route.request.url).query)
            answer(self.provider, "camille", nonce=query["nonce"][0], until=until)
            done = f"{self.origin}/login/done?code=right&state={query['state'][0]}"
            route.fulfill(status=303, headers={"Location": done})

        page.route(f"{AUTHORIZE}*", authorize)
        page.locator("main .button").click()


@pytest.fixture
def settings() -> dict[str, str]:
    """Return settings of the service, for tests to change."""
    return {}


@pytest.fixture
def local(
    tmp_path: Path,
    redis_server: RedisServer,
    serve: Serve,
    identity_provider: responses.RequestsMock,
    settings: dict[str, str],
) -> Local:
    """Serve the explorer of a hospital in `tmp_path`, whose provider is not real."""
    chosen = {
        "EXPLORER_BIND": "127.0.0.1:8003",
        "EXPLORER_CLIENT_ID": CLIENT_ID,
        "PLAIN_HTTP": "loopback",
        "LEEWAY_SECONDS": "0",
        **settings,
    }
    served = serving.serve(EDGES, tmp_path, redis_server.url, **chosen)
    return Local(serve(serving.explorer_of(served)), identity_provider)


def begin(page: Page, local: Local) -> None:
    """Log in, and open the form of stays."""
    page.goto("/login")
    local.log_in(page)
    expect(page.locator("#q")).to_be_visible()
    page.goto("/search/Encounter")


def search(page: Page) -> None:
    """Search the stays of a ward."""
    page.get_by_label("Finished").check()
    page.get_by_role("button", name="Search", exact=True).click()


@pytest.mark.parametrize("settings", [{"EXPLORER_REASON": "true"}])
def test_a_token_that_has_ended_leads_to_the_login(
    open_page: OpenPage, local: Local, look: Callable[[Page, str], None]
) -> None:
    """A reason is asked for first; what was searched waits for the login."""
    page = open_page(*local.origins, **NARROW)
    page.goto("/login")
    look(page, "narrow")

    def give_a_reason() -> None:
        page.get_by_label("Reason", exact=True).fill("ward round")
        look(page, "narrow")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("banner").get_by_text("Log out")).to_have_count(1)

    local.log_in(page, until=time.time() + 15)
    give_a_reason()
    page.goto("/search/Encounter")
    search(page)
    # The result is stored; a stay is read from the service.
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="For IT")).to_be_visible()
    deadline = time.monotonic() + 120
    while not page.get_by_text("Your session has expired").count():
        assert time.monotonic() < deadline
        page.reload()
    look(page, "narrow")
    local.log_in(page)
    give_a_reason()
    expect(page.get_by_label("Finished")).to_be_checked()


def test_an_explorer_that_is_away_says_so(open_page: OpenPage, local: Local) -> None:
    page = open_page(*local.origins)
    begin(page, local)
    page.context.set_offline(True)
    search(page)
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Finished")).to_be_checked()
    page.context.set_offline(False)
    search(page)
    expect(page.get_by_role("link", name="Timeline")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_slow_search_shows_progress_is_cancelled_and_ends(
    open_page: OpenPage, local: Local, tmp_path: Path, axe: Axe
) -> None:
    page = open_page(*local.origins)
    begin(page, local)
    progress = page.locator("#progress")
    expect(progress).not_to_be_visible()
    with away(tmp_path / "pas.db"):
        search(page)
        expect(progress).to_be_visible()
        axe(page)
        page.get_by_role("button", name="Cancel").click()
        expect(progress).not_to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Search stays")
        expect(page.get_by_label("Finished")).to_be_checked()
        search(page)
        expect(page.get_by_role("alert")).to_contain_text(TEXTS[503][1], timeout=60_000)
        axe(page)
    search(page)
    expect(page.get_by_role("link", name="Timeline")).to_be_visible()
