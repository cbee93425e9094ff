"""Stays without a time to sort by: their pages come out of an index in its order, too."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from adapters.contract import (
    Bound,
    Group,
    Position,
    SearchQuery,
    Sort,
    SortKey,
)
from adapters.mapping.load import load_mapping
from adapters.sql.adapter import Section, open_section
from adapters.sql.engine import Database
from adapters.testing.harness import NEWEST_FIRST, STAY, token
from tests.demo.conftest import MAPPING
from tests.demo.filled import Filled
from tests.demo.plans import Plan, plan_of
from tests.sets import SERVERS

COLUMNS = {SortKey.DATE: "date_entree", SortKey.LAST_UPDATED: "maj_utc"}
MIDDLE = Position(Group.UNKEYED, None, 1000)
WAYS: Mapping[str, Mapping[str, Any]] = {
    "from the seam": {"after": Bound()},
    "after one": {"after": MIDDLE},
    "before one": {"before": MIDDLE},
    "from the end": {"from_end": True},
}
UNIT = token("service-provider._extension", "0123")


@pytest.fixture
def opened(hospital: Filled) -> Iterator[tuple[Database, Section]]:
    """Return the stays of the hospital, and the database that has them."""
    database = Database(hospital.url, 5, 1)
    mapping = load_mapping(MAPPING, {"PAS_URL": hospital.url})
    yield database, open_section(database, mapping, STAY)
    database.close()


def plan_of_page(opened: tuple[Database, Section], query: SearchQuery) -> Plan:
    """Return how the database reads the stays of a page that have no time."""
    database, section = opened
    (plan,) = (
        plan_of(database, section.page(segment, condition, query.count + 1))
        for segment, condition in section.segments(query)
        if segment.group is Group.UNKEYED
    )
    return plan


# SQLite keeps times as texts, where '' is none: such rows are sorted.
@pytest.mark.parametrize("hospital", ["postgresql", *SERVERS], indirect=True)
@pytest.mark.parametrize("key", COLUMNS)
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("way", WAYS)
def test_no_page_sorts_the_stays_without_a_time(
    opened: tuple[Database, Section], key: SortKey, descending: bool, way: str
) -> None:
    query = SearchQuery(STAY, (), Sort(key, descending), 100, **WAYS[way])
    plan = plan_of_page(opened, query)
    assert (plan.sorts, plan.scans) == (False, ())
    assert COLUMNS[key] in plan.lookups[0]


@pytest.mark.parametrize("hospital", ["postgresql", *SERVERS], indirect=True)
@pytest.mark.parametrize("way", WAYS)
def test_no_page_of_a_unit_does(opened: tuple[Database, Section], way: str) -> None:
    query = SearchQuery(STAY, (UNIT,), NEWEST_FIRST, 100, **WAYS[way])
    plan = plan_of_page(opened, query)
    assert (plan.sorts, plan.scans) == (False, ())
    assert "uf_courante" in plan.lookups[0]
    assert "date_entree" in plan.lookups[0]
