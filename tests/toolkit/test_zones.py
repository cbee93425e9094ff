"""Which values say by themselves how far they are from UTC."""

from datetime import UTC, datetime

import pytest

from toolkit.checks.rows import has_offset

NOW = datetime(2025, 7, 1, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "has_one"),
    [
        ("2025-07-01T08:00:00Z", True),
        ("2025-07-01T08:00:00.125+02:00", True),
        ("2025-07-01 08:00:00-0300", True),
        ("2025-07-01 08:00:00", False),
        ("2025-07-01", False),
        (NOW, True),
        (NOW.replace(tzinfo=None), False),
        (None, False),
    ],
)
def test_a_value_may_have_an_offset(value: object, has_one: bool) -> None:
    assert has_offset(value) is has_one
