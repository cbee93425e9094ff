"""Decision 36: stays by other words for a patient, and by a patient's identifier."""

import pytest

from tests.adapters.emptied import traced
from tests.app.answers import pages, refused
from tests.app.conftest import MakeService
from tests.serving import BASE_URL, Served, ids, link
from toolkit.contract.hospital import IPP_SYSTEM, Hospital, PatientRow, StayRow

EVERY = ("_count", "100")


@pytest.mark.parametrize(
    ("name", "value", "patients"),
    [
        ("subject", "Patient/4", "4"),
        ("subject", f"7,{BASE_URL}/Patient/2", "7,2"),
        ("subject:Patient", "4", "4"),
        ("patient:Patient", "Patient/4,8", "4,8"),
        ("subject", "Group/1", None),
        ("patient:Patient", "Group/4", None),
        ("subject", "http://other.example/Patient/4", None),
        ("patient.identifier", f"{IPP_SYSTEM}|4", "4"),
        ("patient.identifier", f"{IPP_SYSTEM}|7", "7"),
        ("patient.identifier", "0042", "12"),
        ("patient.identifier", f"{IPP_SYSTEM}|4,{IPP_SYSTEM}|2", "4,2"),
        ("patient.identifier", f"urn:oid:9.9|4,{IPP_SYSTEM}|", "1,2,3,4,5,6,7,8,9,14"),
        ("patient.identifier", "no-such-number", None),
    ],
)
def test_stays_of_the_same_patients(
    served: Served, name: str, value: str, patients: str | None
) -> None:
    wanted = {"patient": patients} if patients else {"_id": "987654"}
    expected = served.search("Encounter", [*wanted.items(), EVERY])
    bundle = served.search("Encounter", [(name, value), EVERY])
    assert ids(bundle) == ids(expected)
    assert bundle["total"] == expected["total"]


def test_all_spellings_hold_together_and_on_every_page(served: Served) -> None:
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


def test_the_first_search_requires_its_scope(served: Served) -> None:
    sent = [("patient.identifier", f"{IPP_SYSTEM}|5"), ("_count", "2")]
    page = served.as_client("one").search("Encounter", sent)
    reduced = served.as_client("one", "ENCOUNTER_SEARCH PATIENT_READ")
    for answer in (
        reduced.post("Encounter/_search", sent),
        *(reduced.get(link(page, relation)) for relation in ("self", "next")),
    ):
        text = refused(answer, 403, "processing", "Authorization")
        assert "PATIENT_SEARCH" in text


def test_groups_offer_none_of_them(groups: dict[str, Served]) -> None:
    for served in groups.values():
        for name in ("subject", "patient.identifier", "service-provider"):
            answer = served.post("Encounter/_search", {name: "1"})
            refused(answer, 400, "not-supported", name)


def test_a_hundred_patients_are_searched_in_one_statement_more_and_one_more_is_422(
    make_service: MakeService,
) -> None:
    shared = "urn:oid:1.2.5"
    patients = tuple(PatientRow(n, numbers=(("N", shared),)) for n in range(1, 102))
    stays = tuple(StayRow(n, n) for n in range(1, 102))
    hundred = Hospital(stays, patients[:100])
    with traced() as statements:
        served = make_service(hospital=hundred)
        sent = {"patient.identifier": f"{shared}|N", "_count": "100"}
        served.search("Encounter", sent)
        counts = []
        by_id = {"patient": ",".join(map(str, range(1, 101))), "_count": "100"}
        for parameters in (by_id, sent):
            statements.clear()
            bundle = served.search("Encounter", parameters)
            assert (len(ids(bundle)), bundle["total"]) == (100, 100)
            counts.append(sum("SELECT" in text for text in statements))
    # The patients, and their numbers in a table of their own.
    assert counts[1] == counts[0] + 2
    more = make_service(hospital=Hospital(stays, patients))
    answer = more.post("Encounter/_search", sent)
    refused(answer, 422, "too-costly", "patient.identifier")
