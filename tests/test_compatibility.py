"""What docs/change/compatibility.md promises is still there: names may be added, none may go."""

import pytest

from tests.compatibility import NAMES, promised

DEPTHS = {
    "mapping-keys": (
        *("time_zone", "encounter.fields.start.from", "codes.*"),
        "encounter.list.paging.first",
    ),
    "metrics": ("encounters_request_seconds status",),
    "settings": ("ENCOUNTERS_SEAL_KEYS_FILE",),
}
"""Names at every depth are among them."""


@pytest.mark.parametrize("name", NAMES)
def test_what_was_promised_is_still_there(name: str) -> None:
    names = promised(name)
    assert names
    gone = names - set(NAMES[name]())
    assert not gone, (
        "a name that was promised is gone: see docs/change/compatibility.md"
    )
    for key in DEPTHS.get(name, ()):
        assert any(each == key or each.startswith(f"{key}.") for each in names), key
