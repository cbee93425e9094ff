"""Decision 36: stays by other words for a patient, and what `_include` adds to a page."""

import pytest

from tests.adapters.emptied import traced
from tests.app.answers import body, messages, pages, refused
from tests.serving import BASE_URL, ids, link
from toolkit.contract.hospital import (
    IPP_SYSTEM,
    Hospital,
    OrganizationRow,
    PatientRow,
    StayRow,
)

EVERY = ("_count", "100")
PATIENT = ("_include", "Encounter:patient")
SUBJECT = ("_include", "Encounter:subject")
HOSPITAL = ("_include", "Encounter:service-provider")


def included(bundle):
    """Return the resources beside the matches."""
    return [e["resource"] for e in bundle["entry"] if e["search"]["mode"] == "include"]


def references(bundle, element):
    """Return the references of the matches."""
    stays = [e["resource"] for e in bundle["entry"] if e["search"]["mode"] == "match"]
    return {s[element]["reference"] for s in stays if "reference" in s.get(element, {})}


@pytest.mark.parametrize(
    ("includes", "elements"),
    [
        ([SUBJECT, PATIENT], ["subject"]),
        ([PATIENT, HOSPITAL, HOSPITAL], ["subject", "serviceProvider"]),
    ],
)
def test_each_page_has_what_its_stays_refer_to_once(served, includes, elements):
    """The total and the size of a page count matches; links lead on with the includes."""
    sent = [("_count", "20"), ("date", "ge1999")]
    plain = [*pages(served, served.search("Encounter", sent))]
    walk = [*pages(served, served.search("Encounter", [*sent, *includes]))]
    assert [ids(page) for page in walk] == [ids(page) for page in plain]
    assert [page["total"] for page in walk] == [page["total"] for page in plain]
    assert len(walk) > 2
    for page in (*walk, served.follow(walk[-1], "previous")):
        wanted = set().union(*(references(page, element) for element in elements))
        names = [f"{r['resourceType']}/{r['id']}" for r in included(page)]
        assert sorted(names) == sorted(wanted)
        modes = [e["search"]["mode"] for e in page["entry"]]
        assert modes == sorted(modes, key=["match", "include", "outcome"].index)
    for entry in page["entry"]:
        if entry["search"]["mode"] == "include":
            assert entry["resource"] == body(served.get(entry["fullUrl"]))


def test_matches_are_cut_and_includes_are_whole(served):
    sent = [("_id", "1"), PATIENT]
    (whole,) = included(served.search("Encounter", sent))
    bundle = served.search("Encounter", [*sent, ("_elements", "status")])
    assert included(bundle) == [whole]
    assert "period" not in bundle["entry"][0]["resource"]


@pytest.mark.parametrize(
    ("parameter", "scope"),
    [
        (PATIENT, "PATIENT_READ"),
        (HOSPITAL, "ORGANIZATION_READ"),
        (("patient.identifier", f"{IPP_SYSTEM}|5"), "PATIENT_SEARCH"),
    ],
)
def test_a_page_requires_every_scope_of_its_search(served, parameter, scope):
    sent = [("_count", "2"), parameter]
    page = served.as_client("one").search("Encounter", sent)
    others = {"ENCOUNTER_SEARCH", "PATIENT_SEARCH", "PATIENT_READ", "ORGANIZATION_READ"}
    reduced = served.as_client("one", " ".join(others - {scope}))
    for answer in (
        reduced.post("Encounter/_search", sent),
        *(reduced.get(link(page, relation)) for relation in ("self", "next")),
    ):
        assert scope in refused(answer, 403, "processing", "Authorization")
    if parameter[0] == "_include":
        counted = reduced.search("Encounter", [*sent, ("_summary", "count")])
        assert counted["total"] == page["total"]


def test_what_is_missing_or_cannot_be_shown_is_a_message(make_service):
    stays = (StayRow(1, 1), StayRow(2, 99), StayRow(3, 98, hospital="H2"))
    hospital = Hospital(stays, (PatientRow(1),), (OrganizationRow("H1", ""),))
    served = make_service(hospital=hospital)
    bundle = served.search("Encounter", [PATIENT, HOSPITAL])
    assert len(ids(bundle)) == bundle["total"] == 3
    assert [each["id"] for each in included(bundle)] == ["1"]
    assert messages(bundle) == [
        ("warning", "exception", None),
        *[("warning", "not-found", None)] * 3,
    ]
    texts = " ".join(i["diagnostics"] for i in bundle["entry"][-1]["resource"]["issue"])
    for reference in ("Organization/H1", "Patient/99", "Patient/98", "Organization/H2"):
        assert reference in texts


def test_one_statement_for_each_type(make_service):
    both, counts = [PATIENT, HOSPITAL], []
    with traced() as statements:
        served = make_service()
        # The first search of each type reads its columns.
        served.search("Encounter", both)
        for includes in ([], [PATIENT, SUBJECT], both):
            statements.clear()
            served.search("Encounter", [EVERY, *includes])
            counts.append(sum("SELECT" in text for text in statements))
    # The numbers of patients are in a table that the mapping reads for all at once.
    assert counts == [counts[0], counts[0] + 2, counts[0] + 3]


# Stays by other words for a patient


@pytest.mark.parametrize(
    ("name", "value", "patients"),
    [
        ("subject", f"7,{BASE_URL}/Patient/2", "7,2"),
        ("patient:Patient", "Patient/4,8", "4,8"),
        ("subject", "Group/1", None),
        ("patient:Patient", "Group/4", None),
        ("patient.identifier", "0042", "12"),
        ("patient.identifier", f"{IPP_SYSTEM}|4,{IPP_SYSTEM}|7", "4,7"),
        ("patient.identifier", f"{IPP_SYSTEM}|", "1,2,3,4,5,6,7,8,9,14"),
        ("patient.identifier", "no-such-number", None),
    ],
)
def test_stays_of_the_same_patients(served, name, value, patients):
    wanted = {"patient": patients} if patients else {"_id": "987654"}
    expected = served.search("Encounter", [*wanted.items(), EVERY])
    bundle = served.search("Encounter", [(name, value), EVERY])
    assert ids(bundle) == ids(expected)
    assert bundle["total"] == expected["total"]


def test_all_spellings_hold_together_and_on_every_page(served):
    both = [("patient.identifier", f"{IPP_SYSTEM}|{id}") for id in (4, 2)]
    assert ids(served.search("Encounter", both)) == []
    mixed = [("patient", "4,6"), ("subject", "4,5"), ("patient.identifier", "4")]
    four = served.search("Encounter", {"patient": "4"})
    assert ids(served.search("Encounter", mixed)) == ids(four)
    sent = [("patient.identifier", f"{IPP_SYSTEM}|5"), ("patient", "5,1")]
    walk = [*pages(served, served.search("Encounter", [*sent, ("_count", "4")]))]
    whole = served.search("Encounter", {"patient": "5", "_count": "100"})
    assert [id for page in walk for id in ids(page)] == ids(whole)
    assert len(walk) > 2


def test_groups_offer_none_of_them(groups):
    for served in groups.values():
        for name in ("subject", "patient.identifier", "service-provider"):
            answer = served.post("Encounter/_search", {name: "1"})
            refused(answer, 400, "not-supported", name)


def test_a_hundred_patients_are_found_and_one_more_is_422(make_service):
    shared = "urn:oid:1.2.5"
    patients = tuple(PatientRow(n, numbers=(("N", shared),)) for n in range(1, 102))
    stays = tuple(StayRow(n, n) for n in range(1, 102))
    sent = [("patient.identifier", f"{shared}|N"), EVERY]
    served = make_service(hospital=Hospital(stays, patients[:100]))
    bundle = served.search("Encounter", sent)
    assert (len(ids(bundle)), bundle["total"]) == (100, 100)
    more = make_service(hospital=Hospital(stays, patients))
    answer = more.post("Encounter/_search", sent)
    refused(answer, 422, "too-costly", "patient.identifier")
