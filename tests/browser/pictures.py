"""Take the pictures of the docs (`make pictures`).

Look at each one afterwards: text that overflows, a table that cannot be read, a page whose
purpose is unclear are faults of the pages.
"""

from playwright.sync_api import Page, expect

from tests.browser.conftest import DARK, element
from tests.docs.pages import DOCS

LOW = {"viewport": {"width": 1280, "height": 800}}


def take(page: Page, name: str) -> None:
    page.screenshot(path=DOCS / "pictures" / f"{name}.png", animations="disabled")


def test_who_is_in_the_hospital_now(explore):
    page = explore(**LOW)
    page.get_by_role("button", name="In hospital now").click()
    expect(page.locator(".results")).to_be_visible()
    take(page, "explorer-list")


def test_a_patient_with_all_stays(explore):
    page = explore(**DARK | LOW)
    page.locator("#q").fill("00000158")
    page.keyboard.press("Enter")
    page.locator(".results .who").first.click()
    expect(page.locator("#list")).to_be_visible()
    take(page, "explorer-patient-dark")


def test_a_row_and_what_makes_the_status_of_its_resource(work):
    page = work(**LOW)
    page.get_by_role("button", name="Codes").click()
    expect(page.locator("#panel-codes table")).to_be_visible()
    page.get_by_label("Show values of patients").check()
    page.locator("#panel-rows [data-row]").nth(3).click()
    element(page, "status").hover()
    expect(page.locator(".cm-of-element")).to_be_visible()
    take(page, "workbench")
