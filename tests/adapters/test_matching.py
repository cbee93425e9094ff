"""Where rows stand to cursors and to the instants of other sources, in Python."""

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.contract import Bound, Group, Position, Sort, SortKey
from adapters.matching import follows, precedes

UNKEYED = Position(Group.UNKEYED, None, "9")


def at(hour: int, id: str = "1") -> Position:
    return Position(Group.KEYED, datetime(2024, 3, 14, hour, tzinfo=UTC), id)


@pytest.mark.parametrize(
    ("here", "mark", "descending", "after", "before"),
    [
        (at(2), at(1), False, True, False),
        (at(2), at(1), True, False, True),
        (at(1, "2"), at(1, "1"), False, True, False),
        (at(1), at(1), False, False, False),
        (UNKEYED, at(1), False, True, False),
        (UNKEYED, at(1), True, True, False),
        (at(2), Bound(at(1).key), False, True, False),  # type: ignore[arg-type]
        (at(1), Bound(at(1).key, included=True), False, True, True),  # type: ignore[arg-type]
        (at(1), Bound(at(1).key), False, False, False),  # type: ignore[arg-type]
        (UNKEYED, Bound(at(1).key), True, True, False),  # type: ignore[arg-type]
        (at(1), Bound(), False, False, True),
        (UNKEYED, Bound(), False, True, False),
    ],
)
def test_rows_and_cursors(
    here: Position, mark: Any, descending: bool, after: bool, before: bool
) -> None:
    sort = Sort(SortKey.DATE, descending)
    assert follows(here, mark, sort) is after
    assert precedes(here, mark, sort) is before
