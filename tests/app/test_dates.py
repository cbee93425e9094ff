"""Decision 5: what `date` compares, in both readings, and dates as intervals."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from adapters.contract import ParameterCapability, Prefix, ResourceType
from adapters.mapping.model import DateReading
from adapters.memory import MemoryAdapter
from tests.app.answers import refused
from tests.serving import Served, ids
from toolkit.contract.hospital import EDGES, PARIS, Hospital, StayRow
from toolkit.contract.suite import TABLE

ROWS = TABLE["rows"]
CASES: tuple[str, ...] = tuple(dict.fromkeys(row["period_case"] for row in ROWS))
"""The stays of the truth table; their ids count from 1."""

PREFIXES = ("eq", "ne", "gt", "lt", "ge", "le")
COLUMNS = {DateReading.START: "start_only", DateReading.PERIOD: "literal"}


def _stay(id: int, case: str) -> StayRow:
    period = next(row["period"] for row in ROWS if row["period_case"] == case)
    return StayRow(
        id,
        began=_clock(period.get("start"), "00:00:00"),
        ended=_clock(period.get("end"), "23:59:59.999999"),
    )


def _clock(text: str | None, time: str) -> str | None:
    """Return a time of the table as the hospital's own clock shows it."""
    if text is None:
        return None
    if "T" not in text:
        return f"{text} {time}"
    return str(datetime.fromisoformat(text).astimezone(PARIS).replace(tzinfo=None))


@pytest.fixture(params=DateReading)
def reading(request, make_service):
    """Return a service on the stays of the truth table, and how it reads `date`."""
    stays = tuple(_stay(id, case) for id, case in enumerate(CASES, 1))
    hospital = Hospital(stays, date_reading=request.param)
    return make_service(hospital=hospital), request.param


def _cases(served: Served, value: str) -> set[str]:
    bundle = served.search("Encounter", {"date": value, "_count": "100"})
    assert bundle["total"] == len(ids(bundle))
    return {CASES[int(id) - 1] for id in ids(bundle)}


def test_dates_follow_the_truth_table(reading):
    """Decision 5. DATE-01 DATE-05 DATE-09 DATE-10 DATE-15 DATE-17."""
    # Zone-less values of the table are at +01:00, which Paris is at until 31 March.
    served, of_start = reading[0], reading[1] is DateReading.START
    # The start of a stay is an instant (spec 2.1), never a whole day.
    whole_days = {"date-only-day"} if of_start else set()
    values = {row["value"] for row in ROWS if row["value"][:2] in PREFIXES}
    for value in sorted(values):
        rows: list[dict[str, Any]] = [row for row in ROWS if row["value"] == value]
        assert len(rows) == len(CASES)
        expected = {row["period_case"] for row in rows if row[COLUMNS[reading[1]]]}
        found = _cases(served, value)
        assert found - whole_days == expected - whole_days, value
        if value.startswith("eq"):
            assert _cases(served, value[2:]) == found
        if of_start:
            # A stay without a start matches no date filter.
            assert not [n for n in found if n.startswith(("no-start", "empty"))]
    if of_start:
        search = {"date": "ne1999", "_count": "100"}
        by_start = ids(served.search("Encounter", search))
        search["_sort"] = "_lastUpdated"
        by_change = ids(served.search("Encounter", search))
        assert sorted(by_change) == sorted(by_start) != []


def test_values_are_instants_in_the_deployments_zone_or_with_an_offset(served):
    """Decision 5. DATE-13."""
    for written, instant in (
        ("2024-03-14T08:15:00", "2024-03-14T07:15:00Z"),
        ("2024-05-01T10:00", "2024-05-01T09:00+01:00"),
    ):
        local, other = (
            ids(served.search("Encounter", {"date": value}))
            for value in (written, instant)
        )
        assert local == other != []
    # Stay 2 starts at midnight in Paris, an hour before midnight in UTC.
    for value, found in (
        ("ge2024-03-14T00:00:00+01:00", ["2"]),
        ("ge2024-03-13T23:00:00Z", ["2"]),
        ("ge2024-03-14T00:00:00Z", []),
        ("gt2024-03-13T23:00:00Z", []),
    ):
        params = {"_id": "2", "date": value}
        assert ids(served.search("Encounter", params)) == found


def test_the_clock_changes_with_the_zone(served):
    night = {"patient": "3", "date": "2024-10-27"}
    assert sorted(ids(served.search("Encounter", night))) == ["30", "31", "32"]
    hour = {"patient": "3", "date": "2024-10-27T02:30:00"}
    assert ids(served.search("Encounter", hour)) == ["30"]


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_groups_take_all_six_prefixes(served, groups, group):
    for prefix in ("", *PREFIXES):
        params = {"date": f"{prefix}2024-03-14", "_count": "100"}
        expected = ids(served.search("Encounter", params))
        assert ids(groups[group].search("Encounter", params)) == expected != []


class Narrow(MemoryAdapter):
    """A hospital system that compares dates with two prefixes."""

    @property
    def capabilities(self):
        every = super().capabilities
        stays = every[ResourceType.ENCOUNTER]
        able = ParameterCapability(prefixes=frozenset({Prefix.EQ, Prefix.GE}))
        dates = replace(stays, parameters={**stays.parameters, "date": able})
        return {**every, ResourceType.ENCOUNTER: dates}


def test_a_prefix_that_the_source_cannot_answer_is_a_bad_value(make_service):
    served = make_service(adapter=Narrow(EDGES.records(), time_zone=PARIS))
    for value in ("2024-05-01", "ge2024-05-01"):
        assert "60" in ids(served.search("Encounter", {"date": value, "_count": "100"}))
    answer = served.post("Encounter/_search", {"date": "ne2024-05-01"})
    text = refused(answer, 412, "value", "date")
    assert "'ne2024-05-01': " in text
    assert text.endswith(" eq, ge.")
