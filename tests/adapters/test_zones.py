"""Times of which nothing says by whose clock they are written."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.contract import EncounterRecord
from adapters.inspection import doubtful_times
from adapters.mapping.load import load_mapping

NOW = datetime(2025, 7, 1, 10, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
FILE = """\
mapping: 1
name: Zones
profile: full
time_zone: Europe/Paris
source: {kind: sql, url: "sqlite://"}
encounter:
  rows: SELECT id, patient, changed FROM stays
  fields:
    id: {from: id}
    patient_id: {from: patient}
    status: finished
    last_updated: {from: changedFIELD}
"""


@pytest.mark.parametrize(
    ("ago", "field", "told"),
    [
        (2 * HOUR + timedelta(minutes=3), "", True),
        (2 * HOUR, "", True),
        (2 * HOUR - timedelta(minutes=1), "", False),
        (2 * HOUR + timedelta(minutes=15), "", False),
        (2 * HOUR + timedelta(minutes=3), ", time_zone: UTC", False),
    ],
)
def test_a_newest_change_as_far_off_as_the_zone_is_a_doubt(
    tmp_path: Path, ago: timedelta, field: str, told: bool
) -> None:
    file = tmp_path / "mapping.yaml"
    file.write_text(FILE.replace("FIELD", field), "utf-8")
    (section,) = load_mapping(file, {}).resources.values()
    stays = [
        EncounterRecord(str(n), "finished", "1", last_updated=NOW - ago - n * HOUR)
        for n in range(30)
    ]
    texts = [seen.text for seen in doubtful_times(section, stays, {}, NOW)]
    assert any("as far as the zone is from UTC" in text for text in texts) is told
