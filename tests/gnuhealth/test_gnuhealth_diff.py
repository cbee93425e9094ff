"""`mapping diff` and `mapping report` on the samples: their figures are those of plain SQL."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import EncounterRecord
from app.cli import main
from app.cli.report import rounded
from tests.gnuhealth.samples import MAPPING, Sample


@pytest.fixture(autouse=True)
def address(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAS_URL", sample.url)


def test_a_changed_status_table_changes_what_the_tables_say(
    sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = MAPPING.read_text("utf-8")
    new = tmp_path / "new.yaml"
    changes = (("no_show: removed", "no_show: finished"), ("done: finished, s", "s"))
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    new.write_text(text, "utf-8")
    status = main(["mapping", "diff", str(MAPPING), str(new), "--live", "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    cases: Counter[tuple[str, ...]] = Counter()
    for case in document["changes"]:
        cases[case["event"], case["column"], case["code"]] += case["stays"]
    absent = sample.number(
        "SELECT COUNT(*) FROM gnuhealth_appointment WHERE state = 'no_show'"
    )
    # Evaluations during a stay are part of it.
    done = sample.number(
        "SELECT COUNT(*) FROM gnuhealth_patient_evaluation e WHERE e.state = 'done' AND"
        " NOT EXISTS (SELECT 1 FROM gnuhealth_inpatient_registration r WHERE"
        " r.id = e.inpatient_registration_code AND r.state <> 'cancelled')"
    )
    assert (status, absent > 0, done > 0) == (1, True, True)
    assert cases == {
        ("appear", "app.state", "no_show"): absent,
        ("become invalid", "eva.state", "done"): done,
    }


def test_a_report_counts_the_stays_that_are_served(
    stays: dict[str, EncounterRecord], tmp_path: Path
) -> None:
    out = tmp_path / "report.json"
    arguments = ["--out", str(tmp_path / "report.html"), "--json", str(out)]
    assert main(["mapping", "report", str(MAPPING), "--live", *arguments]) == 0
    tables = json.loads(out.read_text("utf-8"))["tables"]
    assert tables["figures"]["stays"] == rounded(len(stays))
    statuses = Counter(stay.status for stay in stays.values())
    classes = Counter(stay.class_code for stay in stays.values())
    assert tables["status"] == {word: rounded(n) for word, n in statuses.items()}
    assert tables["class"] == {word: rounded(n) for word, n in classes.items()}
