"""Decision 5: what `date` compares, in both readings, and dates as intervals."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import responses

from adapters.contract import (
    Capabilities,
    ParameterCapability,
    Prefix,
    ResourceType,
)
from adapters.mapping.model import DateReading
from adapters.memory import MemoryAdapter
from adapters.testing.hospital import EDGES, PARIS, Hospital, StayRow
from adapters.testing.suite import TABLE
from app import create_app
from app.search.dates import parse_date
from tests.app import provider
from tests.app.answers import body, refused
from tests.app.changing import Changing
from tests.hospital_sql import mapping_text
from tests.redis_server import RedisServer
from tests.serving import BASE_URL, Served, ids, issues, serve

ROWS = TABLE["rows"]

CASES: tuple[str, ...] = tuple(dict.fromkeys(row["period_case"] for row in ROWS))
"""The stays of the truth table; their ids count from 1."""

VALUES = tuple(dict.fromkeys(row["value"] for row in ROWS))

PREFIXES = ("eq", "ne", "gt", "lt", "ge", "le")

SUPPORTED = tuple(value for value in VALUES if value[:2] in PREFIXES)

COLUMNS: Mapping[DateReading, str] = {
    DateReading.START: "start_only",
    DateReading.PERIOD: "literal",
}


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


@pytest.fixture(scope="module")
def services(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[DateReading, Served]:
    """Return services on the stays of the truth table, one for each reading."""
    stays = tuple(_stay(id, case) for id, case in enumerate(CASES, 1))
    return {
        reading: serve(
            Hospital(stays, date_reading=reading),
            tmp_path_factory.mktemp(reading),
            redis_server.url,
        )
        for reading in DateReading
    }


@pytest.fixture
def readings(
    services: Mapping[DateReading, Served], keys: responses.RequestsMock
) -> Mapping[DateReading, Served]:
    """Return the services of both readings, their provider at hand."""
    return services


def _cases(served: Served, value: str) -> set[str]:
    bundle = served.search("Encounter", {"date": value, "_count": "100"})
    assert bundle["total"] == len(ids(bundle))
    return {CASES[int(id) - 1] for id in ids(bundle)}


def _expected(value: str, column: str) -> set[str]:
    rows: list[dict[str, Any]] = [row for row in ROWS if row["value"] == value]
    assert len(rows) == len(CASES)
    return {row["period_case"] for row in rows if row[column]}


@pytest.mark.parametrize("reading", DateReading)
@pytest.mark.parametrize("value", SUPPORTED)
def test_dates_follow_the_truth_table(
    readings: Mapping[DateReading, Served], reading: DateReading, value: str
) -> None:
    """Decision 5."""
    # Zone-less values of the table are at +01:00, which Paris is at until 31 March.
    found, expected = (
        _cases(readings[reading], value),
        _expected(value, COLUMNS[reading]),
    )
    # The start of a stay is an instant (spec 2.1), never a whole day.
    whole_days = {"date-only-day"} if reading is DateReading.START else set()
    assert found - whole_days == expected - whole_days
    if value.startswith("eq"):
        assert _cases(readings[reading], value[2:]) == found
    if reading is DateReading.START:
        # A stay without a start matches no date filter.
        assert not {name for name in found if name.startswith(("no-start", "empty"))}


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2024-03-14T08:15:00", "2024-03-14T07:15:00Z"),
        ("2024-05-01T10:00", "2024-05-01T08:00Z"),
        ("2024-05-01T10:00", "2024-05-01T09:00%2B01:00"),
    ],
)
def test_a_value_without_offset_is_in_the_deployments_zone(
    served: Served, written: str, instant: str
) -> None:
    """Decision 5."""
    local, utc = (
        ids(body(served.get(f"Encounter?date={value}"))) for value in (written, instant)
    )
    assert local == utc != []


def test_a_value_with_an_offset_compares_instants(served: Served) -> None:
    """Decision 5."""
    # Stay 2 starts at midnight in Paris, an hour before midnight in UTC.
    for value, found in (
        ("ge2024-03-14T00:00:00+01:00", ["2"]),
        ("ge2024-03-13T23:00:00Z", ["2"]),
        ("ge2024-03-14T00:00:00Z", []),
        ("gt2024-03-13T23:00:00Z", []),
    ):
        params = {"_id": "2", "date": value}
        assert ids(served.search("Encounter", params)) == found


def test_a_local_day_is_not_a_day_in_utc(served: Served) -> None:
    """Decision 5."""
    local = served.search("Encounter", {"date": "2024-03-14", "patient": "1"})
    assert {"1", "2", "5", "7"} <= set(ids(local))
    assert not {"3", "4", "6"} & set(ids(local))


def test_the_clock_changes_with_the_zone(served: Served) -> None:
    """Decision 5."""
    night = {"patient": "3", "date": "2024-10-27"}
    assert sorted(ids(served.search("Encounter", night))) == ["30", "31", "32"]
    hour = {"patient": "3", "date": "2024-10-27T02:30:00"}
    assert ids(served.search("Encounter", hour)) == ["30"]


@pytest.mark.parametrize(
    ("ended", "offset"), [("02:10:00", "+01:00"), ("02:55:00", "+02:00")]
)
def test_a_stay_may_end_in_the_second_pass_of_the_repeated_hour(
    hospital: Changing, ended: str, offset: str
) -> None:
    hospital.put(90, "2024-10-27 02:50:00", ended=f"2024-10-27 {ended}")
    period = {
        "start": "2024-10-27T02:50:00+02:00",
        "end": f"2024-10-27T{ended}{offset}",
    }
    assert body(hospital.served.get("Encounter/90"))["period"] == period
    bundle = hospital.served.search("Encounter", {"date": "2024-10-27"})
    assert (bundle["total"], ids(bundle), issues(bundle)) == (1, ["90"], [])
    assert bundle["entry"][0]["resource"]["period"] == period


@pytest.mark.parametrize("group", ["group-a", "group-b"])
@pytest.mark.parametrize("prefix", ["", *PREFIXES])
def test_groups_take_all_six_prefixes(
    served: Served, groups: Mapping[str, Served], group: str, prefix: str
) -> None:
    """Decision 5."""
    params = {"date": f"{prefix}2024-03-14", "_count": "100"}
    found = ids(groups[group].search("Encounter", params))
    assert found == ids(served.search("Encounter", params)) != []


class Narrow(MemoryAdapter):
    """A hospital system that compares dates with two prefixes."""

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities, dates with two prefixes."""
        every = super().capabilities
        able = ParameterCapability(prefixes=frozenset({Prefix.EQ, Prefix.GE}))
        stays = every[ResourceType.ENCOUNTER]
        dates = replace(stays, parameters={**stays.parameters, "date": able})
        return {**every, ResourceType.ENCOUNTER: dates}


@pytest.mark.parametrize("profile", ["full", "group-a", "group-b"])
def test_a_prefix_that_the_source_cannot_answer_is_a_bad_value(
    redis_server: RedisServer,
    tmp_path: Path,
    keys: responses.RequestsMock,
    profile: str,
) -> None:
    """Decision 5."""
    file = tmp_path / "mapping.yaml"
    mapping = mapping_text(EDGES, "sqlite:///none.db")
    file.write_text(mapping.replace("profile: full", f"profile: {profile}"), "utf-8")
    settings = provider.settings(file, REDIS_URL=redis_server.url, BASE_URL=BASE_URL)
    app = create_app(settings, Narrow(EDGES.records(), time_zone=PARIS))
    served = Served(app).as_client("client-1")
    for value in ("2024-05-01", "eq2024-05-01", "ge2024-05-01"):
        assert "60" in ids(served.search("Encounter", {"date": value, "_count": "100"}))
    for prefix in ("ne", "gt", "lt", "le"):
        answer = served.post("Encounter/_search", {"date": f"{prefix}2024-05-01"})
        text = refused(answer, 412, "value", "date")
        assert f"'{prefix}2024-05-01': " in text
        assert f"'{prefix}'" in text
        assert text.endswith("can answer eq, ge.")


@pytest.mark.parametrize("reading", DateReading)
@pytest.mark.parametrize("prefix", ["sa", "eb", "ap"])
def test_sa_eb_and_ap_are_bad_values(
    readings: Mapping[DateReading, Served], reading: DateReading, prefix: str
) -> None:
    """Decision 5."""
    answer = readings[reading].post("Encounter/_search", {"date": f"{prefix}2019-03"})
    text = refused(answer, 412, "value", "date")
    assert f"'{prefix}' is not supported" in text
    assert "eq, ne, gt, lt, ge, le" in text


@pytest.mark.parametrize("digits", ["0", "000", "000000", "0000000", "000000000"])
def test_a_fraction_of_a_second_has_as_many_digits_as_its_sender_writes(
    served: Served, digits: str
) -> None:
    """Decision 5."""
    whole = served.search(
        "Encounter", {"date": "ge2024-03-14T08:15:00", "_count": "100"}
    )
    asked = {"date": f"ge2024-03-14T08:15:00.{digits}", "_count": "100"}
    assert ids(served.search("Encounter", asked)) == ids(whole) != []


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("2024", "2023-12-31T23:00Z", "2024-12-31T23:00Z"),
        ("2024-02", "2024-01-31T23:00Z", "2024-02-29T23:00Z"),
        ("2024-03", "2024-02-29T23:00Z", "2024-03-31T22:00Z"),
        ("2024-12", "2024-11-30T23:00Z", "2024-12-31T23:00Z"),
        ("2024-03-31", "2024-03-30T23:00Z", "2024-03-31T22:00Z"),
        ("2024-03-14T10:05", "2024-03-14T09:05Z", "2024-03-14T09:06Z"),
        ("2024-03-14T10:05:07", "2024-03-14T09:05:07Z", "2024-03-14T09:05:08Z"),
        ("2024-03-14T10:05:00Z", "2024-03-14T10:05:00Z", "2024-03-14T10:05:01Z"),
        (
            "2024-03-14T10:05:07.25Z",
            "2024-03-14T10:05:07.250Z",
            "2024-03-14T10:05:07.260Z",
        ),
        (
            "2024-03-14T10:05:07.1234567-03:30",
            "2024-03-14T13:35:07.123456Z",
            "2024-03-14T13:35:07.123457Z",
        ),
        ("2024-03-14T10:05+14:00", "2024-03-13T20:05Z", "2024-03-13T20:06Z"),
        ("2024-03-14T10:05+05:59", "2024-03-14T04:06Z", "2024-03-14T04:07Z"),
        # Beyond what every zone can express a value is the end of the calendar: a midnight
        # of the zone, so that a source which compares whole days can be asked for it.
        ("0999-05-01", "1000-12-31T23:50:39Z", "1000-12-31T23:50:39Z"),
        ("1001", "1000-12-31T23:50:39Z", "1001-12-31T23:50:39Z"),
        ("9998-12-31", "9998-12-30T23:00Z", "9998-12-31T23:00Z"),
        ("9999-12-31T23:59:59", "9998-12-31T23:00Z", "9998-12-31T23:00Z"),
    ],
)
def test_a_date_is_as_long_as_it_is_precise(text: str, low: str, high: str) -> None:
    found = parse_date(text, PARIS)
    expected = (datetime.fromisoformat(low), datetime.fromisoformat(high))
    assert (found.low, found.high) == expected


def test_a_stay_without_a_start_matches_no_date_in_any_order(
    readings: Mapping[DateReading, Served],
) -> None:
    """Decision 5."""
    served = readings[DateReading.START]
    search = {"date": "ne1999", "_count": "100"}
    by_start = ids(served.search("Encounter", search))
    by_change = ids(served.search("Encounter", {**search, "_sort": "_lastUpdated"}))
    assert sorted(by_change) == sorted(by_start) != []
