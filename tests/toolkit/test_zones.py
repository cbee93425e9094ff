"""Times of which nothing says by whose clock they are written."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.mapping.load import load_mapping
from adapters.mapping.model import ResourceMapping
from adapters.mapping.slots import places_of
from toolkit.checks.rows import unknown_zone

NOW = datetime(2025, 7, 1, 10, 0, tzinfo=UTC)
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
    return [one.element for p in places for one in unknown_zone(p, "", lambda: [value])]


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
