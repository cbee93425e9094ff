"""Positions go through the store as they are, with their source and its instant."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from adapters.contract import Group, Position
from app.stored import WRITTEN, Direction, Start, pack_target, unpack_target

MOMENT = datetime(2024, 3, 14, 9, 0, 0, 1, UTC)


@pytest.mark.parametrize(
    "position",
    [
        None,
        Position(Group.KEYED, "2024-03-14 10:00:00.000001", 42),
        Position(Group.KEYED, "2024-03-14 10:00:00.000001", 42, MOMENT, 3),
        Position(Group.KEYED, MOMENT, "a", MOMENT),
        Position(Group.KEYED, date(2024, 3, 14), Decimal("4.20"), MOMENT, 1),
        Position(Group.UNKEYED, None, UUID(int=1), None, 2),
    ],
    ids=str,
)
def test_positions_come_back(position: Position | None) -> None:
    start = Start(3, Direction.BEFORE, position)
    packed = pack_target("page", start, WRITTEN)
    assert unpack_target(packed) == ("page", start)
