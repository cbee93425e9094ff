"""Decision 9: patients, merged patients and organizations."""

from pathlib import Path

import pytest

from tests.app.answers import body, refused
from tests.serving import ids, relations
from toolkit.contract.hospital import (
    EDGES,
    FINESS_SYSTEM,
    IPP_SYSTEM,
    Hospital,
    OrganizationRow,
)

FULL = Path(__file__).parents[2] / "mappings" / "profiles" / "full.yaml"


PATIENTS = (
    # the start of a word, of any part of the name
    ("name=mart", "1 3"),
    ("name=artin", ""),
    ("name=de la", "2"),
    # without regard to case or accents
    ("name=éléonore", "3"),
    # family and given names apart; alternatives; together
    ("given=paul,ann", "1 7 8 12"),
    # :exact and :contains
    ("given:exact=Éléonore", "3"),
    ("family:contains=TOUR", "2 3"),
    ("birthdate=ge2000-01-01", "3 5"),
    ("gender=male&birthdate=1969", "9"),
    (f"identifier={IPP_SYSTEM}|3", "3"),
    ("_id=3,1,999", "1 3"),
)
ORGANIZATIONS = (
    ("_id=H1,h2", "H1 h2"),
    ("name=hopital", "H1 h2"),
    ("name:exact=HOPITAL DU NORD", "h2"),
    (f"identifier={FINESS_SYSTEM}|750000002", "H2"),
    ("identifier=750000002&name=hopital", ""),
)


def test_patients_and_organizations_are_searched(served):
    for kind, searches in (("Patient", PATIENTS), ("Organization", ORGANIZATIONS)):
        for params, found in searches:
            pairs = [tuple(each.split("=")) for each in params.split("&")]
            assert ids(served.search(kind, pairs)) == found.split(), params


def test_patients_are_counted_sorted_and_paged(served):
    first = served.search("Patient", {"name": "paul", "_count": "2", "_sort": "-_id"})
    assert (ids(first), first["total"]) == (["8", "7"], 3)
    assert ids(served.follow(first, "next")) == ["1"]


def test_a_search_for_all_patients_breaks_a_rule(served):
    """Decision 9: lenient handling of an unknown parameter does not lift it."""
    for params in ({}, {"_count": "5", "_sort": "_id"}, {"nom": "Martin"}):
        answer = served.post("Patient/_search", params, Prefer="handling=lenient")
        assert "birthdate" in refused(answer, 422, "business-rule")


def test_a_profile_may_allow_it(make_service, tmp_path):
    # The profile of this deployment lies beside its mapping file.
    full = FULL.read_text("utf-8")
    own = full.replace("unfiltered_search: false", "unfiltered_search: true")
    (tmp_path / "own.yaml").write_text(own.replace("profile: full", "profile: own"))
    open_to_all = make_service(profile="own.yaml")
    assert open_to_all.search("Patient")["total"] == len(EDGES.patients)


def test_a_merged_patients_old_id_still_reads(served):
    merged = body(served.get("Patient/7"))
    assert merged["active"] is False
    assert merged["link"] == [
        {"other": {"reference": "Patient/8"}, "type": "replaced-by"}
    ]
    assert "link" not in body(served.get("Patient/8"))
    assert body(served.get("Patient/8")).get("active") is not False


def test_stays_carry_the_survivor_and_both_ids_find_them(served):
    for value in ("7", "Patient/7", "8", "7,8"):
        found = served.search("Encounter", {"patient": value})
        assert ids(found) == ["91", "90"]
        subjects = [each["resource"]["subject"]["reference"] for each in found["entry"]]
        assert subjects == ["Patient/8", "Patient/8"]


def test_a_page_of_organizations_holds_100(make_service):
    many = tuple(OrganizationRow(f"O{n:03}", f"Site {n}") for n in range(101))
    served = make_service(hospital=Hospital(organizations=many))
    first = served.search("Organization")
    assert len(ids(first)) == 100
    assert ids(served.follow(first, "next")) == ["O100"]


@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_groups_find_and_read_patients_without_pages(groups, group):
    served = groups[group]
    assert ids(served.search("Patient", {"name": "mart"})) == ["1", "3"]
    few = served.search("Patient", {"name": "paul", "_count": "2"})
    assert (ids(few), few["total"], relations(few)) == (["1", "7"], 3, ["self"])
    assert body(served.get("Patient/7"))["active"] is False
    refused(served.post("Patient/_search", {}), 422, "business-rule")


def test_exact_is_refused_where_the_source_cannot(make_service):
    # Several given names in one column cannot be told apart by the database.
    served = make_service(("{from: given}", '{from: given, split: " "}'))
    answer = served.post("Patient/_search", {"given:exact": "Jean"})
    text = refused(answer, 400, "code-invalid", "given:exact")
    assert text.endswith(":contains.")
    assert ids(served.search("Patient", {"given": "paul"})) == ["1", "7", "8"]
