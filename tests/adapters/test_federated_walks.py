"""Walks through two hospitals as one while their stays come, change and go."""

from collections.abc import Iterator
from typing import Any

import pytest

from adapters.memory import MemoryRow
from tests.adapters.changeable import Changeable
from tests.adapters.group import PREFIXES, Group, open_group, served
from tests.adapters.sql.test_keyset import PLACE, walk
from tests.databases import NewDatabase
from toolkit.contract.harness import ask, token
from toolkit.contract.hospital import Hospital, Ids, StayRow

NO_HOUR = "2024-03-31 02:30:00"


def _lives(number: int) -> tuple[int, int]:
    """Return the hospital of a stay or patient, and its number there; these collide."""
    return number % 2, (number + 1) // 2


def _own(row: StayRow) -> StayRow:
    """Return a stay as its hospital numbers it; instants know of no hour that never is."""
    place, number = _lives(row.id)
    began = "2024-03-14 10:00:01" if place and row.began == NO_HOUR else row.began
    return row._replace(id=number, began=began)


class GroupOpened(Changeable):
    """A group as the walks of one hospital know it; even numbers live in the north."""

    def __init__(self, group: Group) -> None:
        hospital: Any = Combined(group)
        super().__init__(
            hospital, group.adapter, group.model, self._put_stay, self._delete_stay
        )
        self.group = group

    def _put_stay(self, row: StayRow) -> None:
        self.group.tables[_lives(row.id)[0]].put_stay(_own(row))

    def _delete_stay(self, number: int) -> None:
        place, own = _lives(number)
        self.group.tables[place].delete_stay(own)

    def id(self, number: int) -> str:
        """Return the id of a row as clients see it."""
        place, own = _lives(number)
        return PREFIXES[place] + self.group.hospitals[place].ids.text(own)


class Combined:
    """What walks ask of a hospital: the rows of both."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def stay(self, row: StayRow) -> MemoryRow:
        """Return a stay as the group should serve it."""
        place, _ = _lives(row.id)
        return served(PREFIXES[place], self._group.hospitals[place].stay(_own(row)))


@pytest.fixture
def opened(
    tmp_path_factory: pytest.TempPathFactory, new_postgresql: NewDatabase
) -> Iterator[GroupOpened]:
    """Return two hospitals without stays: SQLite with texts, PostgreSQL with instants."""
    directory = tmp_path_factory.mktemp("group")
    urls = (f"sqlite:///{directory / 'north.db'}", new_postgresql("unicode"))
    hospital = Hospital(patients=PLACE, ids=Ids.NUMBERS)
    group = open_group((hospital, hospital), directory, urls)
    yield GroupOpened(group)
    group.close()


def test_steady_stays_are_returned_exactly_once(opened: GroupOpened) -> None:
    walk(opened)
    explained = opened.adapter.explain(ask(token("identifier", "SECRET-1")))
    # Of a source with two statements each has its label.
    assert explained.startswith(
        "-- north\n-- 1 of 2: rows with a time to sort by\nSELECT"
    )
    assert "\n-- south\nSELECT" in explained
    assert "SECRET-1" not in explained
    assert list(opened.adapter.check()) == []
