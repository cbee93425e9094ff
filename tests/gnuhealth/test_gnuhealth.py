"""Stays, patients and institutions of two installations of GNU Health."""

import json
import re
from contextlib import closing

import pytest

from adapters.contract import EncounterRecord, GoneError, NotFoundError
from adapters.mapping.examples import example_lines
from adapters.mapping.load import load_mapping
from app.cli import main
from tests.docs.pages import BRING, blocks, section
from tests.gnuhealth.odd import ODD
from tests.gnuhealth.samples import (
    EVERY,
    MAPPING,
    SERVED,
    Sample,
    served_rows,
    unpacked,
)
from toolkit.confirm import UNCONFIRMED
from toolkit.contract.harness import STAY, ask, ids_of, token

PAGE = section((BRING / "extend.md").read_text("utf-8"), "GNU Health 5.0")
EXAMPLES = re.compile(r"urn:oid:1\.2\.250\.1\.999|//(?:[\w-]+\.)*example\.org\b")
"""Identifiers of examples; e-mail addresses of the sample are none."""


@pytest.fixture(params=["sqlite", "postgresql"])
def sample(request, tmp_path):
    if request.param == "sqlite":
        return Sample(tmp_path)
    return Sample(request.getfixturevalue("new_postgresql")("unicode"))


def test_every_row_is_served_as_it_was_reviewed(sample):
    reviewed = json.loads(unpacked(SERVED.name))
    assert served_rows(sample) == reviewed[f"{sample.name}, as installed"]
    sample.run(ODD)
    assert served_rows(sample) == reviewed[f"{sample.name}, with odd rows"]


def test_what_another_row_serves_is_gone(tmp_path):
    """Evaluated appointments are gone, and what a stay holds is not a stay of its own."""
    sample = Sample(tmp_path)
    sample.run(ODD)
    with closing(sample.open()) as odd:
        assert list(odd.check()) == []
        for id, error in {
            "inp-9003": GoneError,
            "app-9004": GoneError,
            "app-9005": GoneError,
            "app-9006": GoneError,
            "eva-9004": NotFoundError,
            # An id without the prefix of its table.
            "9004": NotFoundError,
        }.items():
            with pytest.raises(error):
                odd.read(STAY, id)
        # Two appointments may have one visit number.
        found = odd.search(ask(token("identifier", "APP 2026/3")))
        assert {*ids_of(found)} == {"app-3", "app-9003"}


def test_ends_that_were_only_expected_are_left_out_if_the_page_is_followed(tmp_path):
    sample, file = Sample(tmp_path), tmp_path / "mapping.yaml"
    old, new = re.findall(r"`(r\.state IN [^`]*)`", PAGE)
    text = MAPPING.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")
    usual, strict = [], []
    for ends, mapping in ((usual, MAPPING), (strict, file)):
        with closing(sample.open(mapping)) as adapter:
            rows = adapter.search(ask(count=EVERY)).rows
            ends += [(row.id, row.end) for row in rows]
    assert [id for id, _ in usual] == [id for id, _ in strict]
    lost = {*usual} - {*strict}
    assert len(lost) == 37
    assert all(id.startswith("inp-") and end for id, end in lost)


def test_a_hospital_that_extends_the_mapping_keeps_no_identifier_of_an_example(
    tmp_path,
):
    """The mapping file of a hospital, as the page writes it."""
    sample, file = Sample(tmp_path), tmp_path / "hospital.yaml"
    sample.run(ODD)
    (block,) = blocks(PAGE, "yaml")
    (tmp_path / MAPPING.name).write_bytes(MAPPING.read_bytes())
    file.write_text(block.text, "utf-8")
    assert EXAMPLES.search(repr(load_mapping(MAPPING, {"PAS_URL": sample.url})))
    assert not EXAMPLES.search(repr(load_mapping(file, {"PAS_URL": sample.url})))
    assert list(example_lines(file)) == []
    with closing(sample.open(file)) as adapter:
        assert list(adapter.check()) == []
        stay = adapter.read(STAY, "inp-9002")
    assert isinstance(stay, EncounterRecord)
    assert stay.start.isoformat() == "2026-01-01T07:00:00-03:00"


def test_check_live_misses_only_indexes_and_those_that_it_suggests_suffice(
    new_postgresql, capsys, monkeypatch
):
    sample = Sample(new_postgresql("unicode"))
    monkeypatch.setenv("PAS_URL", sample.url)

    def findings():
        main(["mapping", "check", "--live", "--json", str(MAPPING)])
        return json.loads(capsys.readouterr().out)["findings"]

    def indexes(found):
        remedies = {one["remedy"] for one in found}
        return sorted(each for each in remedies if each.startswith("CREATE INDEX"))

    before = findings()
    others = [
        one["element"]
        for one in before
        if one["severity"] != "note" and one["element"] and one["topic"] != UNCONFIRMED
        # Some rows of the samples are dated after they were made.
        if not re.search("no index| slow|in the future", one["text"])
    ]
    # None of the medical records is linked to a person.
    assert others == ["Patient.identifier"]
    missed = {one["element"] for one in before if "no index" in one["text"]}
    assert {"Encounter.period.start", "Encounter.meta.lastUpdated"} < missed
    # Only a subquery of the appointments compares this one.
    assert "gnuhealth_patient_evaluation (appointment)" in "\n".join(indexes(before))
    sample.run("\n".join(indexes(before)))
    after = findings()
    assert not any("no index" in one["text"] for one in after)
    assert indexes(after) == []
