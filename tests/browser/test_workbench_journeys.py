"""Journeys of integrators through the workbench, on the demo's hospital."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import (
    DARK,
    NARROW,
    WIDE,
    Bench,
    element,
    look,
    tab_to,
)
from tests.live import ROOT

pytestmark = pytest.mark.extended

VIEWS = {"light": WIDE, "dark": DARK, "narrow": NARROW}
SLOW = 60_000
"""Milliseconds for a check of the whole source on a busy machine."""


def editor(page):
    """Return the text of the mapping file."""
    return page.get_by_role("textbox", name="Mapping file")


def type_at_the_end(page, text):
    """Type below the last line of the file."""
    editor(page).focus()
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.press("Home")
    page.keyboard.type(text)


def rows(page):
    """Return the buttons of the rows of the source."""
    return page.locator("#panel-rows [data-row]")


def show_values(page):
    """Unmask the values, and wait until the rows have them: a click on older ones is lost."""
    page.get_by_label("Show values of patients").check()
    column = page.locator("#panel-rows tbody tr").first.locator(
        "[data-column=sejour_id]"
    )
    expect(column).not_to_have_text("***", timeout=SLOW)


@pytest.mark.parametrize(
    "view", [pytest.param("light", marks=pytest.mark.system), "dark", "narrow"]
)
def test_a_row_is_shown_beside_its_rule_and_its_resource(work, view):
    page = work(**VIEWS[view])
    expect(rows(page)).to_have_count(20)
    # What identifies a patient is shown when somebody wants it; codes are shown at once.
    first = page.locator("#panel-rows tbody tr").first
    expect(first.locator("[data-column=num_venue]")).to_have_text("***")
    expect(first.locator("[data-column=etat]")).not_to_have_text("***")
    look(page)
    rows(page).first.click()
    expect(element(page, "status")).to_be_visible()
    show_values(page)
    look(page)
    page.get_by_role("button", name="Next rows").click()
    expect(page.get_by_role("button", name="Previous rows")).to_be_visible()
    page.get_by_role("button", name="Patients").click()
    expect(page.locator("#panel-rows th[data-column=fusion_vers]")).to_be_visible()


def test_an_element_marks_its_cell_and_its_line_and_they_mark_it(work):
    page = work()
    rows(page).first.click()
    status = element(page, "status")
    status.hover()
    expect(page.locator("#panel-rows td[data-column=etat]").first).to_have_class(
        re.compile("of-element")
    )
    line = page.locator(".cm-of-element")
    # The rule of a code is its line in the table.
    expect(line).to_have_text(re.compile("planned"))
    # The other way: from the column, and from the line.
    page.get_by_role("heading", level=1).hover()
    expect(line).to_have_count(0)
    page.locator("#panel-rows td[data-column=num_venue]").first.hover()
    expect(element(page, "identifier[0].value")).to_have_class("of-line")
    expect(status).not_to_have_class("of-line")
    status.hover()
    line.click()
    expect(status).to_have_class("of-line")
    # SQL within `rows`, above the line of the id, has its colours.
    element(page, "id").hover()
    expect(page.locator(".tok-keyword").first).to_have_text("SELECT")


def test_the_source_is_checked(work):
    page = work(permissions=["clipboard-read", "clipboard-write"], **NARROW)
    page.get_by_role("button", name="Findings").click()
    page.get_by_role("button", name="Save and check the source").click()
    copy = page.get_by_role("button", name="Copy", exact=True).first
    expect(copy).to_be_visible(timeout=SLOW)
    look(page)
    copy.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").strip()


def test_a_problem_stands_at_its_line_and_the_last_good_result_stays(work):
    page = work()
    rows(page).first.click()
    expect(element(page, "status")).to_be_visible()
    type_at_the_end(page, "nonsense: 1")
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    expect(page.locator(".cm-lintRange-error")).to_contain_text("nonsense")
    page.locator("#problems li").get_by_role("button").click()
    expect(page.locator(".cm-activeLine")).to_contain_text("nonsense")
    rows(page).nth(1).click()
    expect(page.locator("#panel-resource .notice")).to_be_visible()
    expect(element(page, "status")).to_be_visible()
    look(page)
    editor(page).focus()
    page.keyboard.press("Control+z")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(0)
    rows(page).first.click()
    expect(page.locator("#panel-resource .notice")).to_have_count(0)


def test_keys_are_completed_and_explained(work):
    page = work()
    type_at_the_end(page, "know")
    offered = page.locator(".cm-tooltip-autocomplete")
    expect(offered).to_contain_text("known")
    look(page)
    page.keyboard.press("Enter")
    expect(page.locator(".cm-activeLine")).to_have_text("known: ")
    page.keyboard.press("Control+Home")
    page.locator(".tok-propertyName", has_text="time_zone").first.hover()
    expect(page.locator(".cm-tooltip-hover .hover")).to_be_visible()


def test_the_file_is_saved_unless_it_was_changed_elsewhere(work, bench):
    page = work()
    type_at_the_end(page, "# mine")
    expect(page.locator("#state")).to_have_text("Changed, not saved")
    page.keyboard.press("Control+s")
    expect(page.locator("#state")).to_have_text("Saved")
    mine = bench.file.read_text("utf-8")
    assert mine.endswith("# mine")
    bench.file.write_text(f"{mine}\n# theirs\n", "utf-8")
    page.keyboard.type(" again")
    page.get_by_role("button", name="Save", exact=True).click()
    notice = page.get_by_role("alert").filter(has_text="changed elsewhere")
    expect(notice).to_be_visible()
    look(page)
    assert bench.file.read_text("utf-8").endswith("# theirs\n")
    page.get_by_role("button", name="Keep mine").click()
    expect(notice).not_to_be_visible()
    assert bench.file.read_text("utf-8").endswith("# mine again")


def test_a_slow_source_does_not_block_typing(work, bench):
    page = work()
    expect(rows(page)).to_have_count(20)
    with closing(sqlite3.connect(bench.database, isolation_level=None)) as source:
        source.execute("BEGIN EXCLUSIVE")
        page.get_by_role("button", name="Patients").click()
        waiting = page.locator("#panel-rows").get_by_role("button", name="Give up")
        expect(waiting).to_be_visible()
        look(page)
        type_at_the_end(page, "nonsense: 1")
        expect(page.locator(".cm-lint-marker-error")).to_be_visible()
        problem = page.locator("#panel-rows").get_by_role("alert")
        expect(problem).to_be_visible(timeout=SLOW)
        look(page)
        source.execute("ROLLBACK")
    page.get_by_role("button", name="Patients").click()
    expect(rows(page)).to_have_count(20)


def test_everything_is_reached_with_the_keyboard_and_panes_are_dragged(work):
    page = work()
    expect(rows(page)).to_have_count(20)
    tab_to(page, editor(page))
    width = page.locator("#left").evaluate("(pane) => pane.offsetWidth")
    tab_to(page, page.get_by_role("separator", name="Width of the mapping file"))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("separator").first).to_have_attribute("aria-valuenow", "52")
    assert page.locator("#left").evaluate("(pane) => pane.offsetWidth") > width
    height = page.get_by_role("separator", name="Height of the mapping file")
    box = height.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 200)
    page.mouse.up()
    moved = height.bounding_box()
    assert moved is not None
    assert moved["y"] < box["y"] - 150
    tab_to(page, rows(page).first)
    page.keyboard.press("Enter")
    expect(element(page, "status")).to_be_visible()
    tab_to(page, element(page, "status"))
    expect(page.locator(".cm-of-element")).to_have_text(re.compile("planned"))
    tab_to(page, page.get_by_role("button", name="Try a search"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Search", exact=True))
    page.keyboard.press("Enter")
    expect(page.locator("#panel-try pre").first).to_contain_text("SELECT")


@pytest.fixture
def from_nothing(hospital, tmp_path):
    """Start the command on a file that is not there."""
    database = Path(shutil.copy(hospital, tmp_path))
    file = tmp_path / "mine.yaml"
    command = [sys.executable, "-m", "app.cli", "workbench", str(file)]
    command += ["--from", f"sqlite:///{database}", "--stay", "sejour"]
    command += ["--patient", "patient", "--organization", "etablissement"]
    # The command opens no browser of its own here: `true` ends at once.
    environ = {k: v for k, v in os.environ.items() if k != "PAS_URL"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**environ, "BROWSER": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        printed = iter(process.stdout.readline, "")
        line = next(line for line in printed if "?token=" in line)
        yield Bench(file, database, re.findall(r"http://\S+", line)[0])
        process.terminate()


STATES = {
    **dict.fromkeys(("P", "PA"), "planned"),
    **dict.fromkeys(("E", "EC", "R"), "in-progress"),
    **dict.fromkeys(("S", "T", "F"), "finished"),
    **dict.fromkeys(("A", "AN"), "hidden"),
    **dict.fromkeys(("X", "SUP"), "removed"),
}
KINDS = {"URG": "EMER", "HC": "IMP", "EXT": "AMB"}
COLUMNS = {"visit_number": "num_venue", "start": "date_entree", "end": "date_sortie"}


@pytest.mark.system
def test_a_mapping_is_written_from_nothing_to_a_search_that_finds(
    open_page, from_nothing
):
    page = open_page(
        from_nothing.address.partition("/?")[0],
        permissions=["clipboard-read", "clipboard-write"],
    )
    page.goto(from_nothing.address)
    page.get_by_role("button", name="Open questions").click()
    questions = page.locator("#panel-questions li")
    expect(questions.first).to_be_visible()
    look(page)
    assert questions.count() > 10
    # The first question leads to its line.
    questions.first.get_by_role("button", name="line").click()
    expect(page.locator(".cm-activeLine")).to_contain_text("# ?")
    # Write which columns hold what, and whose the visit numbers are.
    text = from_nothing.file.read_text("utf-8").replace(
        "https://example.org/identifiers/visit", "urn:oid:1.2.250.1.999.1.2"
    )
    for slot, column in COLUMNS.items():
        text = text.replace(f"# …: {{from: {column}}}", f"{slot}: {{from: {column}}}")
    page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+v")
    expect(page.locator("#state")).to_have_text("Changed, not saved")
    # Choose the rest.
    question = questions.filter(has_text="which column is it")
    question.get_by_label("Column").select_option("etat")
    question.get_by_role("button", name="Use this column").click()
    expect(question).to_have_count(0)
    question = questions.filter(has_text="no column yet").first
    question.get_by_label("Field").select_option("class")
    question.get_by_label("Column").select_option("type_sejour")
    question.get_by_role("button", name="Add this field").click()
    for table, codes in (("status_sejour", STATES), ("class", KINDS)):
        page.get_by_role("button", name="Open questions").click()
        question = questions.filter(has_text=f"{table}:")
        question.get_by_role("button", name="Choose the codes").click()
        for code, word in codes.items():
            page.get_by_label(f"{code} becomes", exact=True).select_option(word)
        look(page)
        page.get_by_role("button", name="Write the table").click()
        expect(editor(page)).to_contain_text(f"{code}: {word}")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#state")).to_have_text("Saved")
    # What is searched is written in another editor.
    text = from_nothing.file.read_text("utf-8")
    text = text.replace("search: [_id, patient]", "search: [_id, patient, class]", 1)
    from_nothing.file.write_text(text, "utf-8")
    page.reload()
    show_values(page)
    good = page.locator("#panel-rows tbody tr").filter(has_text="a resource").first
    good.get_by_role("button").click()
    expect(element(page, "status")).to_be_visible()
    look(page)
    test = (
        "tests:\n  - {name: a stay, given: {sejour_id: x y}, expect_error: sejour_id}\n"
    )
    from_nothing.file.with_suffix(".test.yaml").write_text(test, "utf-8")
    page.get_by_role("button", name="Tests", exact=True).click()
    page.get_by_role("button", name="Save and run the tests").click()
    expect(page.locator("#panel-tests strong").first).to_have_text(
        "1 test passed", timeout=SLOW
    )
    page.get_by_role("button", name="Try a search").click()
    page.get_by_label("Search", exact=True).fill("Encounter?class=EMER&_count=1")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#panel-try pre").first).to_contain_text("SELECT")
    expect(page.locator("#panel-try pre").last).to_contain_text('"EMER"')
    look(page)
