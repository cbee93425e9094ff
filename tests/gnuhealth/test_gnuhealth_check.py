"""`encounters mapping check --live` on the samples: nothing is wrong but what the README says."""

import json

import pytest

from app.cli import main
from tests.databases import NewDatabase
from tests.docs.pages import blocks, section
from tests.gnuhealth.samples import MAPPING, README, Sample, postgresql_sample

ADVISED, _ = blocks(section(README.read_text("utf-8"), "Indexes"), "sql")


def _looked(
    sample: Sample, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, str]]:
    monkeypatch.setenv("PAS_URL", sample.url)
    main(["mapping", "check", "--live", "--json", str(MAPPING)])
    told = capsys.readouterr()
    assert told.err == ""
    found: list[dict[str, str]] = json.loads(told.out)["findings"]
    return found


def test_only_indexes_are_missing(
    sample: Sample, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _looked(sample, capsys, monkeypatch)
    others = [
        (one["element"], one["text"])
        for one in found
        if one["severity"] != "note" and one["element"]
        if not ("no index" in one["text"] or "is slow" in one["text"])
    ]
    # Some rows of the samples are dated after they were made, and none of their medical
    # records is linked to a person.
    left = [one for one in others if "changed in the future" not in one[1]]
    assert [element for element, text in left if text.startswith("none of 200")] == [
        "Patient.identifier"
    ]
    assert len(left) == 1
    told = [one["text"] for one in found if one["source"].endswith("admission_type")]
    assert "codes.admission names no 'maternity' (138 rows)" in told[0]


def test_the_advised_indexes_are_seen(
    new_postgresql: NewDatabase,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is left is what the README says that these leave: the stays of a patient.

    What is suggested for columns that it does not name makes their findings disappear.
    """
    sample = postgresql_sample(new_postgresql)
    assert {"Encounter.period.start", "Encounter.meta.lastUpdated"} < _missed(
        _looked(sample, capsys, monkeypatch)
    )
    sample.run(ADVISED.text)
    found = _looked(sample, capsys, monkeypatch)
    assert _missed(found) == {"Patient.birthDate", "Patient.identifier.value"}
    assert "Encounter.subject" in {o["element"] for o in found if "slow" in o["text"]}
    suggested = [o["remedy"] for o in found if o["remedy"].startswith("CREATE INDEX")]
    sample.run("".join(suggested))
    found = _looked(sample, capsys, monkeypatch)
    assert not [o for o in found if o["remedy"].startswith("CREATE INDEX")]


def _missed(found: list[dict[str, str]]) -> set[str]:
    """Return the elements of which an index is missed."""
    return {
        one["element"]
        for one in found
        if one["severity"] == "warning" and "no index" in one["text"]
    }
