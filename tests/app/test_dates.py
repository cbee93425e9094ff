"""Decision 5: what `date` compares, zones and prefixes."""

from dataclasses import replace

import pytest

from adapters.contract import ParameterCapability, Prefix, ResourceType
from adapters.memory import MemoryAdapter
from tests.app.answers import refused
from tests.serving import ids
from toolkit.contract.hospital import EDGES, PARIS

PREFIXES = ("eq", "ne", "gt", "lt", "ge", "le")
FOUND = (
    *("2024", "2024-03", "2024-03-14", "eq2024-03-14", "eq2024-03-14T08:15"),
    *("ne2024-03-15", "gt2024-03-13", "gt2024-03-14T08:14", "ge2024-03-14"),
    *("lt2024-03-15", "le2024-03-14", "le2024-03-14T08:15:00"),
    *("2024-01,2024-03", "2024-03-14T07:15:00Z"),
)
MISSED = (
    *("2024-03-13", "2023", "ne2024", "ne2024-03-14", "gt2024-03-14", "gt2024-03"),
    *("gt2024-03-14T08:15", "ge2024-03-15", "ge2024-03-14T08:15:01", "lt2024-03-14"),
    *("le2024-03-13", "le2024-03-14T08:14"),
)


def test_dates_compare_the_start_as_precisely_as_the_value_is(served):
    """Decision 5; all of the truth table: toolkit/contract.

    DATE-01 DATE-05 DATE-09 DATE-10 DATE-17.
    """
    # Stay 1 starts on 2024-03-14 at 08:15 and ends that day; 23 has an end alone, 26 neither.
    for values, expected in ((FOUND, ["1"]), (MISSED, [])):
        for value in values:
            params = {"_id": "1,23,26", "date": value}
            for sort in ("-date", "_lastUpdated"):
                bundle = served.search("Encounter", {**params, "_sort": sort})
                assert ids(bundle) == expected, value
                assert bundle["total"] == len(expected)


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
