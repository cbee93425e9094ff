"""A custom adapter under the contract suite, and served."""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import responses

from adapters import open_adapter
from adapters.mapping.load import load_mapping
from adapters.mapping.model import DateReading
from adapters.memory import FaultyRow
from tests.docs.pages import CHANGE, blocks
from tests.serving import ids, publish_keys, serve
from toolkit.contract import Hospital, Ids, Opened
from toolkit.contract.hospital import EDGES
from toolkit.contract.suite import *  # noqa: F403

(BLOCK,) = blocks((CHANGE / "own-adapter.md").read_text("utf-8"), "yaml")
MAPPING = BLOCK.text
COLUMNS = {
    "visit": "stay_id",
    "phase": "state",
    "person": "patient_id",
    "house": "hospital",
    "departed": "ended",
}
"""The suite's names of Kestrel's columns."""


def held(hospital):
    """Return the hospital without what instants cannot hold: clock times that never were."""
    stays = [(row, hospital.stay(row)) for row in hospital.stays]
    return replace(
        hospital,
        stays=tuple(
            row
            for row, stay in stays
            if not (isinstance(stay, FaultyRow) and stay.fault.rule == "never")
        ),
    )


def fill(hospital, file):
    """Write a file of Kestrel."""
    stored, merged = (
        hospital.ids.stored,
        {p.id: p.replaced_by for p in hospital.patients},
    )

    def id(number):
        return None if number is None else stored(number)

    def micros(instant):
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return instant and (instant - epoch) // timedelta(microseconds=1)

    visits = []
    for row in hospital.stays:
        stay = hospital.stay(row)
        record = stay.record if isinstance(stay, FaultyRow) else stay
        person = id(merged.get(row.patient) or row.patient)
        times = [micros(t) for t in (record.start, record.end, record.last_updated)]
        visit = (stored(row.id), person, row.state, row.kind, *times[:2])
        visits.append((*visit, row.visit, row.hospital, row.unit, times[2]))
    kind = "INTEGER" if hospital.ids is Ids.NUMBERS else "TEXT"
    with sqlite3.connect(file) as connection:
        connection.executescript(
            f"CREATE TABLE persons (person {kind} PRIMARY KEY, merged {kind});"
            f"CREATE TABLE visits (visit {kind} PRIMARY KEY, person {kind}, phase TEXT,"
            "  kind TEXT, arrived INTEGER, departed INTEGER, number TEXT, house TEXT,"
            "  ward TEXT, touched INTEGER);"
        )
        persons = [(stored(one), id(survivor)) for one, survivor in merged.items()]
        connection.executemany("INSERT INTO persons VALUES (?, ?)", persons)
        marks = ", ".join("?" * 10)
        connection.executemany(f"INSERT INTO visits VALUES ({marks})", visits)
    connection.close()


@pytest.fixture(scope="module", autouse=True)
def installed():
    """Let the class be imported by its name, as if its package was installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        yield


@pytest.fixture(scope="module")
def open_hospital(tmp_path_factory):
    """Return a function that fills a file and opens the adapter on it."""
    opened = []

    def open_file(hospital):
        if hospital.date_reading is DateReading.PERIOD or hospital.ids is Ids.UUIDS:
            pytest.skip("Kestrel compares starts, and has no UUIDs")
        directory = tmp_path_factory.mktemp("kestrel")
        file, mapping = directory / "visits.db", directory / "mapping.yaml"
        fill(held(hospital), file)
        mapping.write_text(MAPPING, encoding="utf-8")
        adapter = open_adapter(load_mapping(mapping, {"KESTREL_FILE": str(file)}))
        opened.append(adapter)
        return Opened(held(hospital), adapter, columns=COLUMNS)

    yield open_file
    for adapter in opened:
        adapter.close()


def test_stays_are_served_and_an_outage_is_503(tmp_path, redis_server, monkeypatch):
    file = tmp_path / "kestrel.db"
    fill(held(EDGES), file)
    monkeypatch.setenv("KESTREL_FILE", str(file))
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        publish_keys(mock)
        served = serve(Hospital(), tmp_path, redis_server.url, mapping=MAPPING)
        query = {"patient": "Patient/7", "_sort": "date", "_count": "1"}
        page = served.search("Encounter", query)
        assert (page["total"], ids(page)) == (2, ["90"])
        following = served.follow(page, "next")
        assert ids(following) == ["91"]
        assert ids(served.follow(following, "previous")) == ["90"]
        stay = served.get("Encounter/90").get_json(force=True)
        assert stay["period"] == {"start": "2024-07-01T10:00:00+02:00"}
        assert stay["subject"] == {"reference": "Patient/8"}
        file.unlink()
        response = served.get("Encounter/90")
        assert response.status_code == 503
        assert file.name not in response.get_data(as_text=True)
