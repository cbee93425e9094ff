"""The page of the mapping: how many rows are served, and the file of a hospital."""

import json
import re
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
import responses

from adapters.contract import Adapter, EncounterRecord
from adapters.mapping.examples import example_lines
from adapters.mapping.load import load_mapping
from app import create_app
from tests.app import provider
from tests.app.answers import pages
from tests.docs.pages import blocks
from tests.gnuhealth.odd import SERVED
from tests.gnuhealth.samples import MAPPING, README, Sample, own_ids
from tests.redis_server import RedisServer
from tests.serving import Served
from toolkit.contract.harness import STAY, ask, token

EXAMPLES = re.compile(r"urn:oid:1\.2\.250\.1\.999|//(?:[\w-]+\.)*example\.org\b")
OWN = re.compile(r"urn:oid:2\.25\.\d+\.\d")
"""Identifiers of examples (e-mail addresses of the sample are none), and those of the README's
hospital."""
EVERY = {
    # One odd row has the state that the README adds.
    "Encounter": (885 + len(SERVED) + 1, {}),
    "Patient": (200, {"gender": "male,female,other,unknown"}),
    "Organization": (2, {"_id": "1,2"}),
}
"""How many there are of each resource, and a search that finds them all."""

REGISTRATION = "FROM gnuhealth_inpatient_registration"
APPOINTMENT = "FROM gnuhealth_appointment"
EVALUATION = "FROM gnuhealth_patient_evaluation"
EVALUATED = f"(SELECT appointment {EVALUATION} WHERE appointment IS NOT NULL)"
MISSED = "('user_cancelled', 'center_cancelled', 'no_show')"
REGISTERED = {"SQLite": (501, 45), "PostgreSQL": (502, 46)}
"""Rows of registrations, and those that are cancelled.

The stay that PostgreSQL has more was made at 00:51 in Paris, when GNU Health compares the day
in UTC with the local one: it refused to admit the patient, and the stay was cancelled.
"""
COUNTED = {
    APPOINTMENT: 501,
    f"{APPOINTMENT} WHERE patient IS NULL": 13,
    f"{APPOINTMENT} WHERE state IN {MISSED}": 139,
    f"{APPOINTMENT} WHERE id IN {EVALUATED}": 80,
    EVALUATION: 200,
    f"{EVALUATION} WHERE inpatient_registration_code IS NOT NULL": 40,
}
"""Rows of both samples."""
LEFT = {
    "inp-": f"{REGISTRATION} WHERE state <> 'cancelled'",
    "eva-": f"{EVALUATION} WHERE inpatient_registration_code IS NULL",
    "app-": f"{APPOINTMENT} WHERE patient IS NOT NULL AND state NOT IN {MISSED}"
    f" AND id NOT IN {EVALUATED}",
}
"""The rows that are served."""


SERVED_ROWS = {"inp-": 456, "app-": 269, "eva-": 160}
STATUSES = {
    "planned": {"inp-": 49, "app-": 31},
    "in-progress": {"inp-": 27, "app-": 41, "eva-": 40},
    "finished": {"inp-": 380, "app-": 197, "eva-": 120},
}


def test_every_row_is_served_or_left_out_for_a_reason(
    sample: Sample, health: Adapter, stays: dict[str, EncounterRecord]
) -> None:
    registered, cancelled = REGISTERED[sample.name]
    assert sample.number(f"SELECT COUNT(*) {REGISTRATION}") == registered
    assert registered - cancelled == SERVED_ROWS["inp-"]
    for query, number in COUNTED.items():
        assert sample.number(f"SELECT COUNT(*) {query}") == number, query
    for prefix, number in SERVED_ROWS.items():
        ids = own_ids(stays, prefix)
        assert ids == sample.texts(f"SELECT id {LEFT[prefix]}")
        assert len(ids) == number, prefix
    assert health.count(ask()) == len(stays) == sum(SERVED_ROWS.values())
    for status, numbers in STATUSES.items():
        counted = Counter(
            id.partition("-")[0] + "-" for id, s in stays.items() if s.status == status
        )
        assert counted == numbers
        assert health.count(ask(token("status", status))) == sum(numbers.values())
    # Admitted at 00:51 in Paris, when the program's day is still UTC's: refused, cancelled.
    last = f"SELECT id, state, hospitalization_date {REGISTRATION} ORDER BY id DESC"
    number, state, admitted = sample.rows(last)[0]
    if sample.name == "SQLite":
        assert (number, state) == (501, "free")
    else:
        assert (number, state) == (502, "cancelled")
        assert str(admitted).startswith("2026-11-20 23:51:55")


def test_a_hospital_that_extends_the_mapping_serves_no_identifier_of_an_example(
    odd_sample: Sample,
    tmp_path: Path,
    redis_server: RedisServer,
    keys: responses.RequestsMock,
) -> None:
    """The mapping file of a hospital, as the README writes it."""
    (block,) = blocks(README.read_text("utf-8"), "yaml")
    (tmp_path / MAPPING.name).write_bytes(MAPPING.read_bytes())
    (extended := tmp_path / "hospital.yaml").write_text(block.text, "utf-8")
    mapping = load_mapping(extended, {"PAS_URL": odd_sample.url})
    assert EXAMPLES.search(repr(load_mapping(MAPPING, {"PAS_URL": odd_sample.url})))
    assert EXAMPLES.findall(repr(mapping)) == []
    assert list(example_lines(extended)) == []
    settings = provider.settings(extended, REDIS_URL=redis_server.url)
    with closing(odd_sample.open(extended)) as adapter:
        assert list(adapter.check()) == []
        stay = adapter.read(STAY, "inp-9002")
        assert isinstance(stay, EncounterRecord)
        assert stay.start
        assert stay.start.isoformat() == "2026-01-01T07:00:00-03:00"
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PAS_URL", odd_sample.url)
            app = create_app(settings, adapter)
        served = Served(app).as_client("client-1")
        found: set[str] = set()
        for kind, (number, every) in EVERY.items():
            first = served.search(kind, {**every, "_count": "100"})
            texts = [
                json.dumps(entry["resource"])
                for page in pages(served, first)
                for entry in page["entry"]
                if entry["search"]["mode"] == "match"
            ]
            assert len(texts) == number
            assert [text for text in texts if EXAMPLES.search(text)] == []
            found.update(system for text in texts for system in OWN.findall(text))
    # The hospital's five systems take their place.
    assert found == {*OWN.findall(extended.read_text("utf-8"))}
    assert len(found) == 5
