"""What labels of a hospital's own tables say of FHIR codes."""

import pytest

from adapters.labels import CANCELLED, contradicts, says


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
