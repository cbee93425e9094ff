"""Stays, patients and institutions of two installations of GNU Health, on both databases.

Each row that is served is held to `served.json.xz`, which was reviewed when it was written:
`python -m tests.gnuhealth.record` writes it again. Read the difference of the texts.
"""

import json
import re
from collections import defaultdict
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import responses

from adapters.contract import (
    Adapter,
    EncounterRecord,
    GoneError,
    NotFoundError,
    PatientRecord,
    Sort,
    SortKey,
)
from adapters.mapping.examples import example_lines
from adapters.mapping.load import load_mapping
from app import create_app
from tests.app import provider
from tests.app.answers import pages
from tests.docs.pages import blocks
from tests.gnuhealth.conftest import NewSample
from tests.gnuhealth.odd import SERVED
from tests.gnuhealth.samples import (
    EVERY,
    MAPPING,
    PAGE,
    Sample,
    recorded,
    served_rows,
    stays_of,
)
from tests.redis_server import RedisServer
from tests.serving import Served
from toolkit.contract.harness import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    text,
    token,
    walk,
)

Stays = dict[str, EncounterRecord]
REGISTRATION = "FROM gnuhealth_inpatient_registration"
APPOINTMENT = "FROM gnuhealth_appointment"
EVALUATION = "FROM gnuhealth_patient_evaluation"
EVALUATED = f"(SELECT appointment {EVALUATION} WHERE appointment IS NOT NULL)"
MISSED = "('user_cancelled', 'center_cancelled', 'no_show')"
SERVED_IDS = {
    "inp-": f"{REGISTRATION} WHERE state <> 'cancelled'",
    "eva-": f"{EVALUATION} WHERE inpatient_registration_code IS NULL",
    "app-": f"{APPOINTMENT} WHERE patient IS NOT NULL AND state NOT IN {MISSED}"
    f" AND id NOT IN {EVALUATED}",
}
"""The rows that are served, by the prefix of their ids."""

EXAMPLES = re.compile(r"urn:oid:1\.2\.250\.1\.999|//(?:[\w-]+\.)*example\.org\b")
OWN = re.compile(r"urn:oid:2\.25\.\d+\.\d")
"""Identifiers of examples (e-mail addresses of the sample are none), and those of the page's
hospital."""
EVERYBODY = {
    # One odd row has the state that the page adds.
    "Encounter": (885 + len(SERVED) + 1, {}),
    "Patient": (200, {"gender": "male,female,other,unknown"}),
    "Organization": (2, {"_id": "1,2"}),
}
"""How many there are of each resource, and a search that finds them all."""


def test_every_row_is_served_as_it_was_reviewed(
    sample: Sample, health: Adapter, odd: Adapter, stays: Stays
) -> None:
    assert list(health.check()) == []
    for adapter, rows in ((health, "as installed"), (odd, "with odd rows")):
        assert served_rows(adapter) == recorded()[f"{sample.name}, {rows}"]
    ids = set()
    for prefix, table in SERVED_IDS.items():
        ids |= {f"{prefix}{number}" for number in sample.texts(f"SELECT id {table}")}
    assert stays.keys() == ids
    assert health.count(ask()) == len(ids)


def test_each_search_returns_what_has_the_value(health: Adapter, stays: Stays) -> None:
    """By status, class, unit, patient, visit number."""
    by_value: dict[tuple[str, str], set[str]] = defaultdict(set)
    for id, stay in stays.items():
        by_value["status", stay.status].add(id)
        by_value["class", str(stay.class_code)].add(id)
        if stay.functional_unit:
            by_value["service-provider._extension", stay.functional_unit].add(id)
    for (parameter, value), ids in by_value.items():
        query = ask(token(parameter, value), count=EVERY)
        assert stays_of(health, query).keys() == ids, value
        assert health.count(query) == len(ids), value
    for number in {str(stay.patient_id) for stay in stays.values()}:
        ids = {id for id, stay in stays.items() if stay.patient_id == number}
        assert stays_of(health, ask(patient(number), count=EVERY)).keys() == ids


@pytest.mark.parametrize("key", [SortKey.DATE, SortKey.LAST_UPDATED])
@pytest.mark.parametrize("descending", [True, False])
def test_times_of_two_precisions_keep_their_order_over_pages(
    health: Adapter, stays: Stays, key: SortKey, descending: bool
) -> None:
    query = ask(sort=Sort(key, descending), count=50)
    found = [id for page in walk(health, query) for id in ids_of(page)]
    assert sorted(found) == sorted(stays)
    slot = "start" if key is SortKey.DATE else "last_updated"
    times = [getattr(stays[id], slot) for id in found]
    assert times == sorted(times, reverse=descending)


def test_no_visit_is_served_twice_and_none_is_lost(odd: Adapter) -> None:
    """Evaluated appointments are gone, and what a stay holds is not a stay of its own."""
    served = stays_of(odd, ask(patient("7"), count=EVERY)).keys()
    # One visit in all three tables; visits of a cancelled stay; two evaluations of one.
    assert {"inp-9004", "app-9003", "eva-9003", "eva-9006", "eva-9007"} <= served
    for id, error in {
        "inp-9003": GoneError,
        "app-9004": GoneError,
        "app-9005": GoneError,
        "app-9006": GoneError,
        "eva-9004": NotFoundError,
        # An id without the prefix of its table.
        "9004": NotFoundError,
    }.items():
        assert id not in served
        with pytest.raises(error):
            odd.read(STAY, id)
    # Visit numbers are compared whole, and two appointments may have one.
    for number, ids in {
        "INPAC100": {"inp-100"},
        "INPAC1000": {"inp-9004"},
        "APP 2026/3": {"app-3", "app-9003"},
    }.items():
        assert stays_of(odd, ask(token("identifier", number))).keys() == ids
    # An id is looked for in its own table alone.
    assert APPOINTMENT not in odd.explain(ask(token("_id", "eva-2")))


def test_merged_patients_and_names_are_found(odd: Adapter) -> None:
    """9 was merged into 5, and 5 into 2."""
    for id, survivor in (("9", "5"), ("5", "2")):
        merged = odd.read(PATIENT, id)
        assert isinstance(merged, PatientRecord)
        assert (merged.active, merged.replaced_by) == (False, survivor)
    found = stays_of(odd, ask(patient("5"), count=EVERY))
    assert {stay.patient_id for stay in found.values()} == {"2"}
    for id in ("2", "9"):
        assert stays_of(odd, ask(patient(id), count=EVERY)) == found
    for name, of, ids in (
        ("gerard", PATIENT, {"7", "22"}),
        ("epine noire", ORGANIZATION, {"1"}),
    ):
        parameter = "family" if of is PATIENT else "name"
        assert ids <= set(ids_of(odd.search(ask(text(parameter, name), of=of))))
    # Units are no institutions.
    with pytest.raises(NotFoundError):
        odd.read(ORGANIZATION, "11")


def test_days_are_those_of_the_company(health: Adapter) -> None:
    # 00:30 and 01:30 in UTC are half past two in Paris, twice.
    first = ids_of(health.search(ask(dates("2025-10-26T02:30:00+02:00"))))
    assert "inp-1" in first
    assert "inp-2" not in first
    # 23:30 in UTC on the last day of 2025.
    assert "inp-3" in ids_of(health.search(ask(dates("2026-01-01"))))
    assert "inp-3" not in ids_of(health.search(ask(dates("2025"), count=EVERY)))


def test_a_transfer_and_another_version_of_the_program(new_sample: NewSample) -> None:
    own = new_sample()
    adapter = own.open()
    # A transfer moves the whole stay to its new unit; the stamp keeps its microseconds.
    bed = own.number(
        "SELECT MIN(b.id) FROM gnuhealth_hospital_bed b"
        " JOIN gnuhealth_hospital_ward w ON w.id = b.ward"
        " JOIN gnuhealth_hospital_unit u ON u.id = w.unit WHERE u.code = 'CARD'"
    )
    own.run(
        f"UPDATE gnuhealth_inpatient_registration SET bed = {bed},"
        " write_date = '2026-11-20 23:51:55.996838' WHERE id = 1;"
    )
    moved = adapter.read(STAY, "inp-1")
    assert isinstance(moved, EncounterRecord)
    assert moved.functional_unit == "CARD"
    assert moved.last_updated == datetime(2026, 11, 20, 23, 51, 55, 996838, UTC)
    # Another version of the program has other columns: it is refused at the start.
    own.run("ALTER TABLE gnuhealth_patient RENAME COLUMN party TO name;")
    problems = [problem for problem in adapter.check() if problem.serious]
    adapter.close()
    assert len(problems) >= 4
    assert not any(problem.outage for problem in problems)


def test_some_ends_were_only_expected(
    sample: Sample, stays: Stays, tmp_path: Path
) -> None:
    late = sample.texts(
        f"SELECT id {REGISTRATION} WHERE state IN ('done', 'finished')"
        " AND discharge_date > COALESCE(write_date, create_date)"
    )
    # Who changed these rows last did so before their end came.
    assert len(late) == 37
    assert all(stays[f"inp-{id}"].end for id in late)
    # What the page tells a hospital that would rather have no end than such a one.
    old, new = re.findall(r"`(r\.state IN [^`]*)`", PAGE)
    text = MAPPING.read_text("utf-8")
    assert text.count(old) == 1
    file = tmp_path / "mapping.yaml"
    file.write_text(text.replace(old, new), "utf-8")
    adapter = sample.open(file)
    strict = stays_of(adapter, ask(count=EVERY))
    adapter.close()
    assert strict.keys() == stays.keys()
    lost = {id for id in stays if stays[id].end and not strict[id].end}
    assert lost == {f"inp-{id}" for id in late}


def test_a_hospital_that_extends_the_mapping_serves_no_identifier_of_an_example(
    odd_sample: Sample,
    tmp_path: Path,
    redis_server: RedisServer,
    keys: responses.RequestsMock,
) -> None:
    """The mapping file of a hospital, as the page writes it."""
    (block,) = blocks(PAGE, "yaml")
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
        for kind, (number, every) in EVERYBODY.items():
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
