"""What people do on the pages of explorer and workbench, for tests and for pictures."""

from playwright.sync_api import Page, Request, expect

PATIENT, IPP = "Grégoire Antoinette", "00000158"
"""Patient 158 of the demo's hospital, who has ten stays."""

EMERGENCY = "000001153"
"""The visit number of the patient's emergency stay in the year 2024."""


def log_in(page: Page, name: str = "camille") -> None:
    """Log in to the explorer through the login page of the demo's token server."""
    page.goto("/")
    page.locator("main .button").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button").click()
    expect(page.locator("#q")).to_be_visible()


def search_emergencies(page: Page) -> None:
    """Search the emergency stays of patient 158 in the year 2024."""
    page.goto("/search/Encounter")
    page.get_by_label("Patient number (IPP)").fill(IPP)
    page.get_by_label("Emergency").check()
    page.get_by_label("from Admission").fill("2024-01-01")
    page.get_by_label("to Admission").fill("2024-12-31")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 stay")


def open_tab(page: Page, name: str) -> None:
    """Open one of the tabs of a result."""
    views = page.get_by_role("navigation", name="Views of the result")
    tab = views.get_by_role("link", name=name, exact=True)
    tab.click()
    expect(tab).to_have_attribute("aria-current", "page")


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than its window, with its styles."""
    page.wait_for_load_state()
    pixels: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return pixels


def weighed(page: Page) -> dict[str, int]:
    """Return the bytes of each script and style that a page loads from now on."""
    sizes: dict[str, int] = {}

    def take(request: Request) -> None:
        if "/static/" in request.url:
            sizes.setdefault(request.url, request.sizes()["responseBodySize"])

    page.on("requestfinished", take)
    return sizes
