"""What labels of a hospital's own tables say of FHIR codes."""

import pytest

from toolkit.checks.labels import (
    CANCELLED,
    contradicts,
    holds_people,
    is_audit,
    is_mark,
    says,
)


@pytest.mark.parametrize(
    ("slot", "label", "codes"),
    [
        ("gender", "FEMALE", {"female"}),
        ("gender", "Männlich", {"male"}),
        ("gender", "F", {"female"}),
        # A man or, in Spanish, a woman.
        ("gender", "M", set()),
        ("gender", "Male to female", {"male", "female"}),
        ("gender", "not male", set()),
        ("class", "Hospitalisation complète", {"IMP"}),
        ("class", "Hospitalisation de jour", {"IMP", "AMB"}),
        ("class", "Emergency Room and Inpatient Visit", {"EMER", "IMP"}),
        ("class", "Pré-hospitalisation", set()),
        ("class", "Female ward", set()),
        ("status", "En cours", {"in-progress"}),
        ("status", "Sortie prévue", {"finished", "planned"}),
        ("status", "Annulé par le patient", {CANCELLED}),
        ("status", "Registration completed", set()),
        ("status", "Patient discharged", {"finished"}),
        ("status", "The patient has been discharged from our hospital", set()),
        ("functional_unit", "Female", set()),
    ],
)
def test_what_a_label_says(slot: str, label: str, codes: set[str]) -> None:
    assert says(slot, label) == codes


@pytest.mark.parametrize(
    ("word", "code", "is_wrong"),
    [
        ("male", "female", True),
        ("male", "male", False),
        ("male", "unknown", False),
        ("unknown", "male", True),
        ("finished", "hidden", False),
        (CANCELLED, "finished", True),
        (CANCELLED, "removed", False),
        ("IMP", "EMER", True),
        ("REC", "AMB", False),
    ],
)
def test_what_a_label_contradicts(word: str, code: str, is_wrong: bool) -> None:
    assert contradicts(word, code) is is_wrong


@pytest.mark.parametrize(
    ("column", "is_of_audit", "marks_rows"),
    [
        ("updated_at", True, False),
        ("LAST_MODIFIED_ON", True, False),
        ("dateCreation", True, False),
        ("date_maj", True, False),
        ("closed_at", False, False),
        ("discharge_updated", False, False),
        ("last_date", False, False),
        ("date_voided", False, True),
        ("cancel_reason", False, True),
        ("drain_removed_at", False, False),
    ],
)
def test_what_the_whole_name_of_a_column_says(
    column: str, is_of_audit: bool, marks_rows: bool
) -> None:
    assert (is_audit(column), is_mark(column)) == (is_of_audit, marks_rows)


@pytest.mark.parametrize(
    ("table", "is_of_people"),
    [
        ("doctors", True),
        ("dokter", True),
        ("staff_record", True),
        ("nurse_stations", False),
        ("nursery", False),
        ("medications", False),
        ("patient_rooms", False),
    ],
)
def test_what_the_whole_name_of_a_table_says(table: str, is_of_people: bool) -> None:
    assert holds_people(table) is is_of_people
