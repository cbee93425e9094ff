"""Decisions 13 and 15: totals, and groups whose results have no further pages."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import responses

from adapters.testing.stays import EDGES
from tests.app.answers import refused, told
from tests.app.changing import NEWEST_FIRST, Changing
from tests.hospital_sql import mapping_text
from tests.redis_server import RedisServer
from tests.serving import Served, ids, relations, serve

SLOW = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900000)
    SELECT s.stay_id, s.patient_id, s.state, s.kind, s.began, s.ended, s.visit,
           s.hospital, s.unit, s.changed
    FROM stays s, (SELECT MAX(i) AS most FROM n) WHERE most > 0
"""
"""Stays that take the database a few tenths of a second to find."""


# -------------------------------------------------------------------- decision 13


def test_13_the_total_is_counted_once_and_kept(hospital: Changing) -> None:
    first = hospital.served.search("Encounter", {"_count": "7"})
    hospital.put(90, "2024-05-01 10:00:00")
    hospital.delete(26, 27)
    second = hospital.served.follow(first, "next")
    totals = [
        bundle["total"]
        for bundle in (
            first,
            second,
            hospital.served.follow(first, "self"),
            hospital.served.follow(second, "previous"),
        )
    ]
    assert totals == [len(NEWEST_FIRST)] * 4
    assert hospital.served.search("Encounter")["total"] == len(NEWEST_FIRST) - 1


def test_13_a_page_that_has_grown_holds_no_more_than_its_total(
    hospital: Changing,
) -> None:
    first = hospital.served.search("Encounter", {"date": "2024-05-03"})
    assert first["total"] == len(ids(first)) == 2
    hospital.put(90, "2024-05-03 10:00:00")
    again = hospital.served.follow(first, "self")
    assert (again["total"], len(ids(again))) == (3, 3)


@pytest.fixture
def slow(
    redis_server: RedisServer, tmp_path: Path, keys: responses.RequestsMock
) -> Served:
    """Return a service that has the time for pages and not for counts."""
    head, rows, rest = _cut(mapping_text(EDGES, f"sqlite:///{tmp_path / 'pas.db'}"))
    budgets = "timeout_seconds: 60, count_timeout_seconds: 0.1"
    quick = head.replace("connections: 2", budgets)
    text = quick + SLOW + rest
    assert rows in mapping_text(EDGES)
    return serve(EDGES, tmp_path, redis_server.url, mapping=text)


def _cut(mapping: str) -> tuple[str, str, str]:
    """Return what is before, in and after the SELECT of stays."""
    head, opening, rest = mapping.partition("encounter:\n  rows: |\n")
    rows, fields, rest = rest.partition("  fields:\n    id: {from: stay_id}")
    return head + opening, rows, fields + rest


def test_13_a_page_that_is_not_full_is_not_counted(slow: Served) -> None:
    found = slow.search("Encounter", {"date": "2024-05-01", "_count": "1"})
    assert (found["total"], ids(found), relations(found)) == (1, ["60"], ["self"])


def test_13_a_count_over_budget_says_how_to_narrow_the_search(slow: Served) -> None:
    for params in ({"_count": "1", "date": "2024-05"}, {"_summary": "count"}):
        answer = slow.post("Encounter/_search", params)
        text = refused(answer, 422, "too-costly")
        assert "patient" in text
        assert "date" in text


# -------------------------------------------------------------------- decision 15


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_15_groups_have_a_self_link_that_works_and_no_other(
    groups: Mapping[str, Served], group: str
) -> None:
    served = groups[group]
    for params in ({}, {"_count": "3"}, {"patient": "2"}, {"patient": "999"}):
        found = served.search("Encounter", params)
        assert relations(found) == ["self"]
        again = served.follow(found, "self")
        assert (again["id"], ids(again)) == (found["id"], ids(found))


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_15_their_total_counts_all_and_they_say_that_more_matched(
    groups: Mapping[str, Served], served: Served, group: str
) -> None:
    params = {"patient": "6", "_count": "3"}
    found = groups[group].search("Encounter", params)
    assert found["total"] == served.search("Encounter", params)["total"] > 3
    assert len(ids(found)) == 3
    assert told(found) == [("information", "incomplete", None)]
    assert told(groups[group].follow(found, "self")) == told(found)
    whole = groups[group].search("Encounter", {"patient": "6", "_count": "100"})
    assert told(whole) == []


def test_15_a_cursor_made_up_for_a_group_finds_nothing(
    groups: Mapping[str, Served],
) -> None:
    found = groups["group-a"].search("Encounter", {"_count": "3"})
    made_up = f"Bundle?_id={found['id']}&_index=2&_searchAfter={'a' * 32}"
    refused(groups["group-a"].get(made_up), 404, "not-found")
