"""Journeys of people through the explorer, as the demo serves it."""

import re
import sqlite3
from contextlib import closing
from functools import partial

import pytest
from playwright.sync_api import expect

from explorer.failures import TEXTS
from tests.browser.conftest import (
    DARK,
    NARROW,
    NO_SCRIPT,
    WIDE,
    log_in,
    look,
    tab_to,
)

pytestmark = pytest.mark.extended

PATIENT, IPP = "Grégoire Antoinette", "00000158"
"""Patient 158 of the demo's hospital, who has ten stays."""

VIEWS = {"light": WIDE, "dark": DARK, "narrow": NARROW, "no-script": NO_SCRIPT}


def search(page):
    page.get_by_role("button", name="Search", exact=True).click()


@pytest.mark.parametrize(
    "view",
    [
        pytest.param("light", marks=pytest.mark.system),
        "dark",
        "narrow",
        pytest.param("no-script", marks=pytest.mark.system),
    ],
)
def test_every_page_can_be_used(explore, view):
    page = explore(**VIEWS[view])
    look_at = partial(look, page, has_script=view != "no-script")
    heading = page.get_by_role("heading", level=1)
    look_at()
    page.goto("/search/Encounter")
    page.get_by_label("Patient number (IPP)").fill(IPP)
    page.get_by_label("Emergency").check()
    page.get_by_label("from Admission").fill("2024-01-01")
    page.get_by_label("to Admission").fill("2024-12-31")
    search(page)
    expect(heading).to_have_text("1 stay")
    look_at()
    page.get_by_text("Export", exact=True).first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    assert "158" not in download.value.suggested_filename
    views = page.get_by_role("navigation", name="Views of the result")
    for tab, shown in (
        ("Timeline", page.get_by_role("group", name="Timeline")),
        ("JSON", page.get_by_text('"searchset"')),
        ("Table", page.locator(".results")),
    ):
        views.get_by_role("link", name=tab, exact=True).click()
        expect(shown.locator("visible=true").first).to_be_visible()
        look_at()
    # A stay leads to its patient, who has all stays.
    page.locator(".results .c-visit a").click()
    expect(heading).to_have_text("Emergency of 7 May 2024")
    look_at()
    page.locator(".banner").get_by_role("link", name=PATIENT).click()
    expect(heading).to_have_text(PATIENT)
    expect(page.locator("svg a").locator("visible=true").first).to_be_visible()
    expect(page.locator(".results .c-visit a")).to_have_count(10)
    look_at()
    page.get_by_role("button", name="Show in full").click()
    expect(page.locator(".banner")).to_contain_text(IPP)
    page.locator(".banner dd a").click()
    look_at()
    page.get_by_role("link", name="Patients", exact=True).click()
    expect(heading).to_have_text("Search patients")
    look_at()
    # An error is named at its field.
    page.goto("/search/Encounter")
    page.get_by_label("Patient number (IPP)").fill("Grégoire")
    search(page)
    expect(page.get_by_role("alert")).to_contain_text("looks like a name")
    look_at()
    page.get_by_role("button", name="Search “Grégoire” as a name").click()
    expect(heading).to_have_text(re.compile("patient"))
    look_at()
    # Nothing is there: one condition after the other is tried.
    page.goto("/search/Encounter")
    page.get_by_label("Patient number (IPP)").fill(IPP)
    page.get_by_label("Planned").check()
    page.get_by_label("Emergency").check()
    search(page)
    expect(heading).to_have_text("No stays")
    look_at()
    page.get_by_role("button", name="Which condition excludes most?").click()
    expect(page.get_by_role("heading", name="Widen the search")).to_be_visible()
    look_at()
    page.goto("/reason")
    expect(page.get_by_label("Reason", exact=True)).to_be_visible()
    look_at()
    # What is searched without a session waits for the login.
    page.goto("/search/Encounter")
    page.get_by_label("Finished").check()
    cookie = {"name": "explorer", "value": "ended", "url": page.url}
    page.context.add_cookies([cookie])
    search(page)
    expect(page.get_by_text("Your session has expired")).to_be_visible()
    look_at()
    log_in(page)
    expect(page.get_by_label("Finished")).to_be_checked()
    page.locator(".me summary").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    look_at()


def test_a_french_ward_is_printed(explore):
    page = explore(locale="fr-FR")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Rechercher un patient ou un séjour")
    page.wait_for_load_state()
    page.locator("#q").press_sequentially("grégoire antoinette")
    expect(page.locator("#read")).to_contain_text("Lu comme")
    page.get_by_label("Présents dans une UF").fill("0123")
    page.get_by_role("button", name="Ouvrir").click()
    expect(heading).to_have_text(re.compile(r"\d+ séjours"))
    expect(page.locator(".chips")).to_contain_text("0123 Urgences")
    look(page)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1032, "height": 720})  # A4 within its margins
    assert page.locator(".wide").evaluate("(e) => e.scrollWidth") <= 1032
    expect(page.get_by_text(re.compile("^Imprimé le"))).to_be_visible()
    expect(page.locator("body > header")).not_to_be_visible()
    expect(page.locator(".bar")).not_to_be_visible()


def test_everything_works_with_the_keyboard_alone(open_page, demo):
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
    # A menu is closed by Escape.
    page.goto("/")
    tab_to(page, page.get_by_role("button", name="In hospital now"))
    page.keyboard.press("Enter")
    expect(heading).to_have_text(re.compile("stays"))
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


def test_a_slow_search_shows_progress_is_cancelled_and_ends(explore, demo):
    page = explore()
    page.goto("/search/Encounter")
    page.get_by_label("Finished").check()
    progress = page.locator("#progress")
    (database,) = demo.directory.glob("*.sqlite")
    with closing(sqlite3.connect(database, isolation_level=None)) as source:
        source.execute("BEGIN EXCLUSIVE")
        search(page)
        expect(progress).to_be_visible()
        look(page)
        page.get_by_role("button", name="Cancel").click()
        expect(progress).not_to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("Search stays")
        search(page)
        expect(page.get_by_role("alert")).to_contain_text(TEXTS[503][1], timeout=60_000)
        look(page)
    # An explorer that is away does not take the form away.
    page.goto("/search/Encounter")
    page.get_by_label("Finished").check()
    page.route("**/search/*", lambda route: route.abort())
    search(page)
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Finished")).to_be_checked()
    page.unroute_all()
    search(page)
    expect(page.get_by_role("link", name="Timeline")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
