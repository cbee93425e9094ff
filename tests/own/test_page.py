"""docs/change/own-adapter.md: its mapping file is that of the package that the tests install."""

from tests.docs.pages import CHANGE, blocks
from tests.own.kestrel.tests.filled import MAPPING


def test_its_mapping_is_that_of_the_package() -> None:
    (shown,) = blocks((CHANGE / "own-adapter.md").read_text("utf-8"), "yaml")
    assert shown.text == MAPPING
