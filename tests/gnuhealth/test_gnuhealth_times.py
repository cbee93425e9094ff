"""Times of GNU Health: UTC that does not say so, and days that are Paris's."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from adapters.contract import Adapter, EncounterRecord, Sort, SortKey
from adapters.testing.harness import ask, dates, ids_of, patient
from tests.gnuhealth.samples import EVERY, Sample

Stays = dict[str, EncounterRecord]


def test_times_are_utc(health: Adapter, stays: Stays) -> None:
    # 00:30 and 01:30 in UTC: half past two in Paris, twice.
    for id, start in (
        ("inp-1", "2025-10-26T02:30:00+02:00"),
        ("inp-2", "2025-10-26T02:30:00+01:00"),
    ):
        began = stays[id].start
        assert began is not None
        assert began.isoformat() == start
    first = dates("2025-10-26T02:30:00+02:00")
    assert "inp-1" in ids_of(health.search(ask(first)))
    assert "inp-2" not in ids_of(health.search(ask(first)))


def test_zone_of_the_file_is_that_of_the_company(sample: Sample, stays: Stays) -> None:
    (zone,) = sample.texts("SELECT timezone FROM company_company")
    for stay in stays.values():
        assert stay.start
        local = stay.start.astimezone(ZoneInfo(zone))
        assert stay.start.utcoffset() == local.utcoffset()


def test_a_day_is_that_of_paris(health: Adapter, stays: Stays) -> None:
    # 23:30 in UTC on the last day of 2025.
    assert stays["inp-3"].start == datetime(2025, 12, 31, 23, 30, tzinfo=UTC)
    assert "inp-3" in ids_of(health.search(ask(dates("2026-01-01"))))
    assert "inp-3" not in ids_of(health.search(ask(dates("2025"), count=EVERY)))


def test_every_prefix_compares_starts(health: Adapter, stays: Stays) -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    starts = {id: stay.start for id, stay in stays.items() if stay.start}
    for prefix, holds in (
        ("lt", lambda start: start < day),
        ("ge", lambda start: start >= day),
    ):
        found = health.search(ask(dates(f"{prefix}2026-01-01T00:00:00Z"), count=EVERY))
        assert set(ids_of(found)) == {id for id in starts if holds(starts[id])}


def test_appointment_without_a_date_comes_last_and_matches_no_date(
    odd: Adapter,
) -> None:
    for descending in (True, False):
        page = odd.search(ask(sort=Sort(SortKey.DATE, descending), count=EVERY))
        assert ids_of(page)[-1] == "app-9001"
    found = ids_of(odd.search(ask(dates("ne2025-01-01"), patient("2"))))
    assert found
    assert "app-9001" not in found


def test_who_was_received_began_then(sample: Sample, stays: Stays) -> None:
    rows = sample.rows(
        "SELECT id, checked_in_date FROM gnuhealth_appointment"
        " WHERE checked_in_date IS NOT NULL AND state = 'checked_in'"
    )
    served = {f"app-{id}": str(at) for id, at in rows if f"app-{id}" in stays}
    assert served
    for id, at in served.items():
        assert stays[id].start == datetime.fromisoformat(at).replace(tzinfo=UTC)


def test_untouched_rows_are_not_newest(sample: Sample, health: Adapter) -> None:
    never = sample.texts(
        "SELECT id FROM gnuhealth_inpatient_registration WHERE write_date IS NULL"
    )
    newest = Sort(SortKey.LAST_UPDATED, descending=True)
    first = ids_of(health.search(ask(sort=newest, count=len(never))))
    assert len(never) == 26
    assert set(first) != {f"inp-{id}" for id in never}
