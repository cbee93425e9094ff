"""Times of which nothing says by whose clock they are written."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.contract import EncounterRecord
from adapters.mapping.load import load_mapping
from adapters.mapping.model import ResourceMapping
from adapters.mapping.slots import places_of
from toolkit.checks import plausibility
from toolkit.checks.engine import hidden_zone

NOW = datetime(2025, 7, 1, 10, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
OFTEN = timedelta(minutes=5)
FILE = """\
mapping: 1
name: Zones
profile: full
time_zone: Europe/Paris
source: {kind: sql, url: "sqlite://"SOURCE}
encounter:
  rows: SELECT id, patient, changed FROM stays
  fields:
    id: {from: id}
    patient_id: {from: patient}
    status: finished
    last_updated: {from: changedFIELD}
"""

Section = Callable[..., ResourceMapping]


@pytest.fixture
def section(tmp_path: Path) -> Section:
    """Return a section whose source and last change say what they are given."""

    def load(source: str = "", field: str = "") -> ResourceMapping:
        file = tmp_path / "mapping.yaml"
        file.write_text(FILE.replace("SOURCE", source).replace("FIELD", field), "utf-8")
        (found,) = load_mapping(file, {}).resources.values()
        return found

    return load


def doubts(section: ResourceMapping, value: object = None) -> list[str]:
    """Return the elements of which nothing says by whose clock they are written."""
    places = places_of(section)
    return [one.element for p in places for one in hidden_zone(p, "", lambda: [value])]


@pytest.mark.parametrize(
    ("source", "field", "hidden"),
    [
        ("", "", True),
        ("", ', format: "%d/%m/%Y %H:%M:%S"', True),
        ("", ', format: "%d/%m/%Y %H:%M:%S%z"', False),
        ("", ", time_zone: Europe/Paris", False),
        (", time_zone: UTC", "", False),
    ],
)
def test_the_zone_of_a_last_change_is_said_by_the_field_or_its_source(
    section: Section, source: str, field: str, hidden: bool
) -> None:
    expected = ["Encounter.meta.lastUpdated"] * hidden
    assert doubts(section(source, field)) == expected


@pytest.mark.parametrize(
    ("value", "said"),
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
def test_a_value_may_say_its_own_offset(
    section: Section, value: object, said: bool
) -> None:
    assert (doubts(section(), value) == []) is said


@pytest.mark.parametrize(("early", "told"), [(30, True), (20, True), (19, False)])
def test_stays_that_were_changed_before_they_began_are_a_doubt(
    section: Section, early: int, told: bool
) -> None:
    """Whatever zone the file names for the last change, it is not that of the column."""
    stays = [
        EncounterRecord(
            str(n),
            "finished",
            "1",
            start=NOW - n * HOUR,
            last_updated=changed - n * HOUR,
        )
        for n, changed in enumerate([NOW - HOUR] * early + [NOW] * (30 - early))
    ]
    zoned = section("", ", time_zone: Europe/Paris")
    texts = [finding.text for finding in plausibility.doubts(zoned, stays, {}, NOW)]
    assert any("before they began" in text for text in texts) is told


@pytest.mark.parametrize(
    ("ago", "apart", "field", "told"),
    [
        (2 * HOUR + timedelta(minutes=3), OFTEN, "", True),
        (2 * HOUR, OFTEN, "", True),
        (2 * HOUR - timedelta(minutes=1), OFTEN, "", False),
        (2 * HOUR + timedelta(minutes=15), OFTEN, "", False),
        (2 * HOUR + timedelta(minutes=3), OFTEN, ", time_zone: UTC", False),
        # Where changes are rare it is so by chance.
        (2 * HOUR + timedelta(minutes=3), HOUR, "", False),
    ],
)
def test_a_newest_change_as_far_off_as_the_zone_is_a_doubt(
    section: Section, ago: timedelta, apart: timedelta, field: str, told: bool
) -> None:
    stays = [
        EncounterRecord(str(n), "finished", "1", last_updated=NOW - ago - n * apart)
        for n in range(30)
    ]
    texts = [
        seen.text for seen in plausibility.doubts(section("", field), stays, {}, NOW)
    ]
    assert any("as far as the zone is from UTC" in text for text in texts) is told
