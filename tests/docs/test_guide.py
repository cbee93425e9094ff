"""docs/bring/guide.md, followed to the letter."""

import pytest

from tests.docs.following import Typed, follow
from tests.docs.pages import GUIDE


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> list[Typed]:
    """Return what the commands of the page print."""
    return follow(GUIDE, tmp_path_factory.mktemp("guide"))


def test_each_command_prints_what_the_page_says(typed: list[Typed]) -> None:
    wrong = [
        f"{GUIDE.name}:{each.block.line} printed\n{each.was}"
        for each in typed
        if each.shown != each.was
    ]
    assert not wrong, "\n".join([*wrong, "run: python -m tests.docs.update"])
