"""What docs/compatibility.md promises is still there: names may be added, none may go."""

import re

import pytest

from tests.compatibility import LISTS, NAMES, promised
from tests.docs.pages import DOCS

PAGE = (DOCS / "compatibility.md").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_what_was_promised_is_still_there(name: str) -> None:
    gone = promised(name) - set(NAMES[name]())
    assert promised(name)
    assert not gone, "a name that was promised is gone: see docs/compatibility.md"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("mapping-keys", "time_zone"),
        ("mapping-keys", "encounter.fields.start.from"),
        ("mapping-keys", "encounter.sources.*.list.paging.first"),
        ("mapping-keys", "codes.*"),
        ("metrics", "encounters_requests_total status"),
        ("settings", "ENCOUNTERS_SEAL_KEYS_FILE"),
    ],
)
def test_names_at_every_depth_are_among_them(name: str, key: str) -> None:
    assert any(each == key or each.startswith(f"{key}.") for each in promised(name))


def test_every_list_is_promised_by_the_page() -> None:
    assert {file.stem for file in LISTS.iterdir()} == set(NAMES)
    assert set(re.findall(r"tests/promised/([a-z-]+)\.txt", PAGE)) == set(NAMES)
