"""The page of the mapping: every trap has a test that is there, or a reason for none."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
import responses

from adapters.contract import EncounterRecord
from adapters.mapping.examples import example_lines
from adapters.mapping.load import load_mapping
from adapters.testing.harness import STAY
from app import create_app
from tests.app import provider
from tests.app.answers import pages
from tests.docs.pages import blocks, section
from tests.gnuhealth.odd import SERVED
from tests.gnuhealth.samples import HERE, MAPPING, README, Sample
from tests.redis_server import RedisServer
from tests.serving import Served

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

TRAPS = section(README.read_text("utf-8"), "Traps")
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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_each_trap_has_a_test_or_a_reason(row: list[str]) -> None:
    trap, answer, test = row
    assert trap
    assert answer
    assert test.removeprefix("none: ") if test.startswith("none: ") else test in TESTS


def test_each_test_answers_a_trap_or_holds_a_figure() -> None:
    named = {row[2] for row in ROWS}
    own = {
        f"test_gnuhealth_{of}" for of in ("page", "figures", "indexes", "check", "diff")
    }
    for file in HERE.glob("test_*.py"):
        if file.stem not in own:
            there = re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.M)
            assert set(there) - named <= {"test_each_table_is_read_by_id"}, file.stem


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """Return the mapping file of a hospital, as the README writes it."""
    (block,) = blocks(README.read_text("utf-8"), "yaml")
    (tmp_path / MAPPING.name).write_bytes(MAPPING.read_bytes())
    (file := tmp_path / "hospital.yaml").write_text(block.text, "utf-8")
    return file


def test_a_hospital_extends_the_mapping(odd_sample: Sample, extended: Path) -> None:
    adapter = odd_sample.open(extended)
    assert list(adapter.check()) == []
    stay = adapter.read(STAY, "inp-9002")
    adapter.close()
    assert isinstance(stay, EncounterRecord)
    assert stay.status == "finished"
    assert stay.start
    assert stay.start.isoformat() == "2026-01-01T07:00:00-03:00"


def test_a_hospital_that_extends_the_mapping_serves_no_identifier_of_an_example(
    odd_sample: Sample,
    extended: Path,
    redis_server: RedisServer,
    keys: responses.RequestsMock,
) -> None:
    mapping = load_mapping(extended, {"PAS_URL": odd_sample.url})
    assert EXAMPLES.search(repr(load_mapping(MAPPING, {"PAS_URL": odd_sample.url})))
    assert EXAMPLES.findall(repr(mapping)) == []
    assert list(example_lines(extended)) == []
    settings = provider.settings(extended, REDIS_URL=redis_server.url)
    with closing(odd_sample.open(extended)) as adapter:
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
