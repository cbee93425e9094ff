"""The page of the mapping, and traps.md: every trap has a test, or a reason for none."""

import json
import re
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
from tests.docs.pages import blocks, section, table
from tests.gnuhealth.odd import SERVED
from tests.gnuhealth.samples import HERE, MAPPING, README, Sample, own_ids
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

RECORD = (HERE / "traps.md").read_text("utf-8")
TRAPS = section(RECORD, "Traps")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TRAPS.splitlines()
    if line.startswith("| ") and not line.startswith("| Trap |")
]
TESTS = {
    name
    for file in HERE.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)
}


def test_each_trap_has_a_test_or_a_reason() -> None:
    for trap, answer, test in ROWS:
        assert trap
        assert answer
        assert test.removeprefix("none: ") != test or test in TESTS, test


SERVED_AS = {f"served as {prefix}": prefix for prefix in ("inp-", "app-", "eva-")}
FIGURES = section(RECORD, "Figures")
REGISTRATION = "FROM gnuhealth_inpatient_registration"
APPOINTMENT = "FROM gnuhealth_appointment"
EVALUATION = "FROM gnuhealth_patient_evaluation"
EVALUATED = f"(SELECT appointment {EVALUATION} WHERE appointment IS NOT NULL)"
MISSED = "('user_cancelled', 'center_cancelled', 'no_show')"
COUNTED = {
    "rows of gnuhealth_inpatient_registration": REGISTRATION,
    "cancelled": f"{REGISTRATION} WHERE state = 'cancelled'",
    "rows of gnuhealth_appointment": APPOINTMENT,
    "free slots, without a patient": f"{APPOINTMENT} WHERE patient IS NULL",
    "cancelled or missed": f"{APPOINTMENT} WHERE state IN {MISSED}",
    "evaluated, and so served as the evaluation": f"{APPOINTMENT} WHERE id IN {EVALUATED}",
    "rows of gnuhealth_patient_evaluation": EVALUATION,
    "made during a stay, and so part of it": f"{EVALUATION}"
    " WHERE inpatient_registration_code IS NOT NULL",
}
"""What the record counts, and how."""
LEFT = {
    "inp-": f"{REGISTRATION} WHERE state <> 'cancelled'",
    "eva-": f"{EVALUATION} WHERE inpatient_registration_code IS NULL",
    "app-": f"{APPOINTMENT} WHERE patient IS NOT NULL AND state NOT IN {MISSED}"
    f" AND id NOT IN {EVALUATED}",
}
"""The rows that are served."""


def test_figures_are_those_of_the_tables_and_of_the_service(
    sample: Sample, health: Adapter, stays: dict[str, EncounterRecord]
) -> None:
    column = 1 + ["SQLite", "PostgreSQL"].index(sample.name)
    rows = [[cell.replace("*", "") for cell in row] for row in table(FIGURES, "What")]
    figures = {row[0]: int(row[column].replace(",", "")) for row in rows}
    assert figures.keys() == {*COUNTED, *SERVED_AS, "rows of all three", "served"}
    for what, query in COUNTED.items():
        assert figures[what] == sample.number(f"SELECT COUNT(*) {query}"), what
    for what, prefix in SERVED_AS.items():
        ids = own_ids(stays, prefix)
        assert ids == sample.texts(f"SELECT id {LEFT[prefix]}")
        assert figures[what] == len(ids), what
    assert figures["served"] == len(stays) == health.count(ask())
    # Nothing is left unexplained.
    counts = [n for what, n in figures.items() if what.startswith("rows of gnuhealth")]
    assert figures["rows of all three"] == sum(counts)
    left = 0
    for what, number in list(figures.items())[:-2]:
        left = number if what.startswith("rows") else left - number
        assert left == 0 or not what.startswith("served"), what
    for status, *cells in table(FIGURES, "Status"):
        number = health.count(ask(token("status", status)))
        of_each = [
            sum(s.status == status and id.startswith(prefix) for id, s in stays.items())
            for prefix in SERVED_AS.values()
        ]
        assert [int(cell) for cell in cells] == [*of_each, number]
        assert sum(of_each) == number
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
