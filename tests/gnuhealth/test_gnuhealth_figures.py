"""How many rows there are, how many are served, and why not the others: the README's table."""

import re

import pytest

from adapters.contract import Adapter, EncounterRecord
from adapters.testing.harness import ask, token
from tests.docs.pages import section, table
from tests.gnuhealth.samples import README, Sample, own_ids

REGISTRATION = "FROM gnuhealth_inpatient_registration"
APPOINTMENT = "FROM gnuhealth_appointment a"
EVALUATION = "FROM gnuhealth_patient_evaluation e"
_MISSED = "('user_cancelled', 'center_cancelled', 'no_show')"

COUNTED = {
    "rows of gnuhealth_inpatient_registration": REGISTRATION,
    "cancelled": f"{REGISTRATION} WHERE state = 'cancelled'",
    "rows of gnuhealth_appointment": APPOINTMENT,
    "free slots, without a patient": f"{APPOINTMENT} WHERE patient IS NULL",
    "cancelled or missed": f"{APPOINTMENT} WHERE state IN {_MISSED}",
    "evaluated, and so served as the evaluation": f"{APPOINTMENT} WHERE a.id IN"
    " (SELECT appointment FROM gnuhealth_patient_evaluation)",
    "rows of gnuhealth_patient_evaluation": EVALUATION,
    "made during a stay, and so part of it": f"{EVALUATION}"
    " WHERE inpatient_registration_code IS NOT NULL",
}
"""What the README counts, and how."""

SERVED = {
    "served as inp-": "inp-",
    "served as app-": "app-",
    "served as eva-": "eva-",
}

FIGURES = section(README.read_text("utf-8"), "Figures")


def written(sample: Sample) -> dict[str, int]:
    """Return the column of one database."""
    column = 1 + ["SQLite", "PostgreSQL"].index(sample.name)
    rows = table(FIGURES, "What")
    return {row[0].replace("*", ""): int(row[column].replace(",", "")) for row in rows}


def test_figures_are_those_of_the_tables(sample: Sample) -> None:
    figures = written(sample)
    for what, query in COUNTED.items():
        assert figures.pop(what) == sample.number(f"SELECT COUNT(*) {query}"), what
    assert set(figures) == {*SERVED, "rows of all three", "served"}


def test_figures_are_those_of_the_service(
    sample: Sample, health: Adapter, stays: dict[str, EncounterRecord]
) -> None:
    figures = written(sample)
    for what, prefix in SERVED.items():
        assert figures[what] == len(own_ids(stays, prefix)), what
    assert figures["served"] == len(stays) == health.count(ask())


def test_nothing_is_left_unexplained(sample: Sample) -> None:
    figures = list(written(sample).items())
    assert figures[-2][0] == "rows of all three"
    rows = [n for what, n in figures if what.startswith("rows of gnuhealth")]
    assert figures[-2][1] == sum(rows)
    left = 0
    for what, number in figures[:-2]:
        left = number if what.startswith("rows") else left - number
        if what.startswith("served"):
            assert left == 0, what


def test_same_rows_are_left_out_as_in_the_tables(
    sample: Sample, stays: dict[str, EncounterRecord]
) -> None:
    held = "SELECT id FROM gnuhealth_"
    assert own_ids(stays, "inp-") == sample.texts(
        f"{held}inpatient_registration WHERE state <> 'cancelled'"
    )
    assert own_ids(stays, "eva-") == sample.texts(
        f"{held}patient_evaluation WHERE inpatient_registration_code IS NULL"
    )
    assert own_ids(stays, "app-") == sample.texts(
        f"{held}appointment WHERE patient IS NOT NULL AND state NOT IN {_MISSED}"
        " AND id NOT IN (SELECT appointment FROM gnuhealth_patient_evaluation"
        " WHERE appointment IS NOT NULL)"
    )


@pytest.mark.parametrize("status", ["planned", "in-progress", "finished"])
def test_figures_by_status(
    health: Adapter, stays: dict[str, EncounterRecord], status: str
) -> None:
    (row,) = [r for r in table(FIGURES, "Status") if r[0] == status]
    counted = [
        sum(s.status == status and id.startswith(prefix) for id, s in stays.items())
        for prefix in SERVED.values()
    ]
    assert [int(cell) for cell in row[1:]] == [*counted, sum(counted)]
    assert health.count(ask(token("status", status))) == sum(counted)


def test_the_databases_differ_by_one_stay(sample: Sample) -> None:
    # Admitted at 00:51 in Paris, when the program's day is still UTC's: refused, cancelled.
    last = sample.rows(
        f"SELECT id, state, hospitalization_date {REGISTRATION} ORDER BY id DESC"
    )[0]
    number, state, admitted = last
    assert (number, state) == {
        "SQLite": (501, "free"),
        "PostgreSQL": (502, "cancelled"),
    }[sample.name]
    if sample.name == "PostgreSQL":
        assert re.match(r"2026-11-20 23:51:55", str(admitted))
