"""The guide of docs/bring, followed to the letter."""

import pytest

from tests.docs.following import follow
from tests.docs.pages import BRING, GUIDE, every_block

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Return what the commands of the page print."""
    return follow(GUIDE, tmp_path_factory.mktemp("guide"))


def test_each_command_prints_what_the_page_says(typed):
    wrong = [
        f"{each.page.name}:{each.block.line} printed\n{each.was}"
        for each in typed
        if each.shown != each.was
    ]
    assert not wrong, "\n".join([*wrong, "run: python -m tests.docs.update"])


def test_the_page_in_french_has_the_blocks_of_the_page_in_english():
    english, french = (
        [block.text for block in every_block(page.read_text("utf-8"))]
        for page in (GUIDE[0], BRING / "index.fr.md")
    )
    assert french == english
