"""Decision 17, where a test names no other: status codes; invalid rows, class systems."""

import logging

import pytest

from tests.app.answers import body, messages, pages, refused
from tests.serving import ids, issues
from toolkit.contract.hospital import EDGES, VISIT_SYSTEMS

LOCAL_SYSTEM = "https://example.org/fhir/CodeSystem/stay-kinds"
ACT_CODE = "http://hl7.org/fhir/v3/ActCode"

STATES = "'A': 'hidden', 'X': 'removed'"
FAULTY = {
    # id: what is wrong with its row, and on which column
    37: ("status", "state"),
    40: ("patient_id", "patient_id"),
    41: ("visit_number_system", "hospital"),
    35: ("start", "began"),
}


@pytest.mark.parametrize("id", FAULTY)
def test_a_row_that_cannot_be_mapped_is_reported_and_counted(served, caplog, id):
    """Decision 16: the operator finds the reference in the log, the same each time."""
    caplog.set_level(logging.INFO)
    found = served.search("Encounter", {"_id": f"{id},1", "_sort": "date"})
    assert (found["total"], ids(found)) == (2, ["1"])
    assert messages(found) == [("warning", "exception", None)]
    (text,) = [issue["diagnostics"] for issue in issues(found)]
    assert f"Encounter/{id} " in text
    assert "state" not in text
    (logged,) = [data for data in _logged(caplog) if "reference" in data]
    assert logged["reference"] in text
    assert (logged["field"], logged["column"]) == FAULTY[id]
    assert logged["rule"]
    row = next(stay for stay in EDGES.stays if stay.id == id)
    # The log names the place; a code may be quoted, a value of the row never is.
    for value in (row.visit, row.began, row.ended):
        assert not value or value not in caplog.text + str(_logged(caplog))
    (again,) = issues(served.search("Encounter", {"_id": str(id)}))
    assert again["diagnostics"] == text
    answer = served.get(f"Encounter/{id}")
    assert "X-Request-Id" in refused(answer, 500, "exception")
    (failed,) = [data for data in _logged(caplog) if "fault" in data]
    assert (failed["fault"]["field"], failed["fault"]["column"]) == FAULTY[id]


def _logged(caplog):
    return [getattr(record, "data", {}) for record in caplog.records]


def test_invalid_rows_keep_their_place(served):
    """Decision 16."""
    found = served.search("Encounter", {"identifier": "Z1"})
    assert (found["total"], ids(found)) == (2, [])
    assert messages(found) == [("warning", "exception", None)] * 2
    first = served.search("Encounter", {"date": "2024-03-14", "_count": "3"})
    every = list(pages(served, first))
    faults = sum(len(issues(page)) for page in every)
    assert sum(len(ids(page)) for page in every) + faults == first["total"]
    assert faults >= 4


def test_what_else_is_empty_is_left_out(served):
    """Decision 16."""
    bare = body(served.get("Encounter/26"))
    assert bare.keys() == {
        *("resourceType", "id", "status", "subject", "class", "serviceProvider")
    }


def test_a_mapping_may_require_more(make_service):
    """Decision 16."""
    served = make_service(
        ("  search: [_id, patient,", "  requires: [start]\n  search: [_id, patient,")
    )
    refused(served.get("Encounter/26"), 500, "exception")
    found = served.search("Encounter", {"_id": "1,26"})
    assert (found["total"], ids(found)) == (2, ["1"])
    assert messages(found) == [("warning", "exception", None)]


def test_hidden_reads_as_what_never_was(served):
    hidden, never = served.get("Encounter/50"), served.get("Encounter/987654")
    refused(hidden, 404, "not-found")
    assert hidden.get_data() == never.get_data()
    assert served.search("Encounter", {"_id": "50"})["total"] == 0


def test_removed_is_gone_and_absent_from_searches(served):
    """Decision 17. READ-05."""
    for id in (51, 52):
        refused(served.get(f"Encounter/{id}"), 410, "not-found")
    assert served.search("Encounter", {"_id": "51,52"})["total"] == 0
    assert ids(served.search("Encounter", {"identifier": "V1"})) == ["1"]
    # Nor are codes that no table names guessed.
    for status in ("planned", "in-progress", "finished"):
        found = ids(served.search("Encounter", {"status": status, "_count": "100"}))
        assert not {"50", "51", "52", "37", "38", "39"} & set(found)
        assert found


def test_unless_the_mapping_says_otherwise(make_service):
    served = make_service((STATES + "}", STATES + "}, otherwise: in-progress"))
    for id in (37, 38, 39):
        assert body(served.get(f"Encounter/{id}"))["status"] == "in-progress"
    # Every code that no table names, and none; and those that are meant by name.
    found = ids(served.search("Encounter", {"status": "in-progress"}))
    assert {"22", "37", "38", "39"} <= set(found)
    refused(served.get("Encounter/50"), 404, "not-found")


@pytest.mark.parametrize(("otherwise", "status"), [("hidden", 404), ("removed", 410)])
def test_otherwise_may_hide(make_service, otherwise, status):
    served = make_service((STATES + "}", STATES + f"}}, otherwise: {otherwise}"))
    refused(served.get("Encounter/37"), status, "not-found")
    found = served.search("Encounter", {"_id": "37,38,39,1"})
    assert (found["total"], ids(found), issues(found)) == (1, ["1"], [])


def _systems(served):
    """Return the system that each class code is shown with, as far as there are any."""
    found = served.search("Encounter", {"_count": "100", "_sort": "date"})
    page = [each["resource"] for each in found["entry"]]
    codings = [each["class"] for each in page if "class" in each]
    return {coding["code"]: coding["system"] for coding in codings}


def test_codes_have_the_system_of_the_deployment(served, make_service):
    """Decision 18: the mapping may name another for REC and UNK."""
    codes = ("IMP", "AMB", "REC", "UNK")
    assert _systems(served) == dict.fromkeys(codes, ACT_CODE)
    one = f"class_code_system: {LOCAL_SYSTEM!r}"
    two = f"class_systems: {{REC: {LOCAL_SYSTEM!r}, UNK: {LOCAL_SYSTEM!r}}}"
    for constant, local in ((one, codes), (two, ("REC", "UNK"))):
        own = make_service(("constants: {", f"constants: {{{constant}, "))
        expected = {
            **dict.fromkeys(codes, ACT_CODE),
            **dict.fromkeys(local, LOCAL_SYSTEM),
        }
        assert _systems(own) == expected
        assert ids(own.search("Encounter", {"class": f"{LOCAL_SYSTEM}|REC"})) == ["27"]
        assert own.search("Encounter", {"class": f"{ACT_CODE}|REC"})["total"] == 0
    every = own.search("Encounter", {"class": f"{LOCAL_SYSTEM}|"})["total"]
    assert every == own.search("Encounter", {"class": "REC,UNK"})["total"]


def test_identifiers_keep_the_system_of_their_hospital(served):
    """Decision 18."""
    for id, hospital in ((70, "H1"), (71, "H2")):
        (number,) = body(served.get(f"Encounter/{id}"))["identifier"]
        assert number["system"] == VISIT_SYSTEMS[hospital]
