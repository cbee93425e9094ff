"""Live checks of the samples: only indexes are missing."""

import json

import pytest

from app.cli import main
from tests.databases import NewDatabase
from tests.gnuhealth.samples import (
    MAPPING,
    Sample,
    postgresql_sample,
)
from toolkit.confirm import UNCONFIRMED

INSIDE = "gnuhealth_patient_evaluation (appointment)"
"""What only a subquery of the appointments compares."""


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
        if not ("no index" in one["text"] or " slow" in one["text"])
        if one["topic"] != UNCONFIRMED
    ]
    # Some rows of the samples are dated after they were made, and none of their medical
    # records is linked to a person.
    left = [one for one in others if "in the future" not in one[1]]
    assert [element for element, text in left if text.startswith("none of 200")] == [
        "Patient.identifier"
    ]
    assert len(left) == 1, left
    told = [one["text"] for one in found if one["source"].endswith("admission_type")]
    assert "'maternity' (138 rows)" in told[0]


def test_the_suggested_indexes_suffice(
    new_postgresql: NewDatabase,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = postgresql_sample(new_postgresql)
    before = _looked(sample, capsys, monkeypatch)
    assert {"Encounter.period.start", "Encounter.meta.lastUpdated"} < _missed(before)
    assert INSIDE in "\n".join(_suggested(before))
    sample.run("\n".join(_suggested(before)))
    found = _looked(sample, capsys, monkeypatch)
    assert not _missed(found)
    assert not _suggested(found)


def _suggested(found: list[dict[str, str]]) -> list[str]:
    """Return the indexes that are suggested, each once and whole."""
    remedies = {one["remedy"] for one in found}
    return sorted(each for each in remedies if each.startswith("CREATE INDEX"))


def _missed(found: list[dict[str, str]]) -> set[str]:
    """Return the elements of which an index is missed."""
    return {
        one["element"]
        for one in found
        if one["severity"] == "warning" and "no index" in one["text"]
    }
