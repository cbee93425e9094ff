"""Decision 19: parts of resources, formats, entity tags and conditional reads."""

import json
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path

import pytest

from app.error_responses import CONTENT_TYPE
from app.fhir.summary import TABLES
from tests.app.answers import body, refused
from tests.serving import relations

SUBSETTED = {"system": "http://hl7.org/fhir/v3/ObservationValue", "code": "SUBSETTED"}
COVERED = (
    "    last_updated: {from: changed, time_zone: UTC}\n  search: [_id, patient, date",
    "    last_updated: {from: changed, time_zone: UTC, covers: all}\n"
    "  search: [_id, patient, date",
)
WHOLE = {
    *("resourceType", "id", "identifier", "status", "subject", "period"),
    *("serviceProvider", "class"),
}
XML = "application/fhir+xml"
ELEMENTS = Path(__file__).parents[1] / "stu3/summary-mandatory-modifier-elements.json"


def with_(path, parameter):
    """Return the path with one more parameter."""
    return f"{path}{'&' if '?' in path else '?'}{parameter}"


def test_a_cut_resource_carries_the_tag_and_a_whole_one_does_not(served):
    least = {"resourceType", "id", "status"}
    for shown, elements in (
        ("_summary=true", WHOLE - {"period", "serviceProvider"}),
        ("_summary=text", least),
        ("_elements=period,id,resourceType", {*least, "period"}),
        ("_elements=subject,class", {*least, "subject", "class"}),
    ):
        resource = body(served.get(f"Encounter/1?{shown}"))
        assert resource.keys() == elements | {"meta"}
        assert resource["meta"]["tag"] == [SUBSETTED]
        (entry,) = body(served.get(f"Encounter?_id=1&{shown}"))["entry"]
        assert entry["resource"] == resource
    whole = body(served.get("Encounter/1"))
    every = ",".join(sorted(WHOLE - {"resourceType"}))
    for shown in ("_summary=false", "_summary=data", f"_elements={every}"):
        assert body(served.get(f"Encounter/1?{shown}")) == whole


def test_modifiers_stay_with_elements_and_meta_with_the_tag(served):
    merged = body(served.get("Patient/7?_elements=gender"))
    assert merged["active"] is False
    assert merged["link"][0]["type"] == "replaced-by"
    assert "name" not in merged
    cut = body(served.get("Encounter/23?_elements=status"))
    whole = body(served.get("Encounter/23"))
    assert cut["meta"] == {**whole["meta"], "tag": [SUBSETTED]}


def test_a_summary_of_count_is_a_total_alone(served):
    counted = served.search("Encounter", {"patient": "6", "_summary": "count"})
    assert counted["total"] == served.search("Encounter", {"patient": "6"})["total"]
    assert "entry" not in counted
    assert relations(counted) == ["self"]
    assert served.follow(counted, "self") == counted


def test_followed_pages_are_cut_alike(served):
    params = {"patient": "6", "_count": "4", "_elements": "subject"}
    first = served.search("Encounter", params)
    second = served.follow(first, "next")
    for page in (first, second, served.follow(second, "previous")):
        for entry in page["entry"]:
            assert "period" not in entry["resource"]
            assert entry["resource"]["meta"]["tag"] == [SUBSETTED]


def test_what_cannot_be_cut_is_412(served):
    for path in ("Encounter/1", "Encounter"):
        answer = served.get(f"{path}?_summary=true&_elements=status")
        assert answer.status_code == 412
    answer = served.get("Patient?_id=1&_elements=status")
    text = refused(answer, 412, "value", "_elements")
    assert "use elements of Patient (STU3): active, address, animal, " in text
    refused(served.get("metadata?_summary=foo"), 412, "value", "_summary")
    body(served.get("metadata?_summary=true"))


@pytest.mark.parametrize("resource_type", TABLES)
def test_the_tables_of_elements_are_those_of_stu3(resource_type):
    expected = json.loads(ELEMENTS.read_text("utf-8"))[resource_type]

    def top(column):
        names = [name.removeprefix(f"{resource_type}.") for name in expected[column]]
        return [name.removesuffix("[x]") for name in names if "." not in name]

    table = TABLES[resource_type]
    assert list(table.all) == top("all_top_level")
    assert list(table.summary) == top("summary")
    assert list(table.mandatory) == top("mandatory_top_level")
    assert list(table.modifier) == top("modifier")


def etag(served, path):
    """Return the ETag of a resource."""
    return str(served.get(path).headers["ETag"])


def test_an_etag_is_a_digest_of_the_body(hospital):
    served = hospital.served
    before = etag(served, "Encounter/2")
    assert before not in (
        etag(served, "Encounter/4"),
        etag(served, "Encounter/2?_summary=true"),
    )
    hospital.put(2, state="E")
    changed = served.get("Encounter/2", If_None_Match=before)
    assert body(changed)["status"] == "in-progress"
    hospital.put(2)
    assert etag(served, "Encounter/2") == before


def test_if_none_match(served):
    """Decision 19. READ-10."""
    tag = etag(served, "Encounter/1")
    for condition in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        answer = served.get("Encounter/1", If_None_Match=condition)
        assert (answer.status_code, answer.headers["ETag"]) == (304, tag)
    assert served.get("Encounter/1", If_None_Match='W/"x"').status_code == 200
    # A condition hides no error.
    for path, status in (("987", 404), ("51", 410), ("37", 500)):
        for condition in ({"If_None_Match": "*"}, {"If_Match": "*"}):
            assert served.get(f"Encounter/{path}", **condition).status_code == status


def test_if_match_holds_for_any_resource_and_for_no_etag(served):
    """Decision 19: an ETag is weak here (RFC 9110, 13.1.1)."""
    for condition in (etag(served, "Encounter/1"), "x"):
        answer = served.get("Encounter/1", If_Match=condition)
        assert "*" in refused(answer, 412, "conflict", "If-Match")
    assert body(served.get("Encounter/1", If_Match="*"))["id"] == "1"


def test_there_is_no_version_id(served):
    """Decision 19. READ-03 READ-12."""
    assert body(served.get("Encounter/23"))["meta"].keys() == {"lastUpdated"}
    answer = served.get("Encounter/23/_history/1")
    assert "History is not supported" in refused(answer, 404, "not-found")


@pytest.fixture
def covered(make_service):
    """Return a service whose mapping vouches for the time of the last change."""
    return make_service(COVERED)


def test_last_modified_only_where_the_mapping_vouches_for_it(served, covered):
    """Decision 19."""
    assert "lastUpdated" in body(served.get("Encounter/23"))["meta"]
    assert "Last-Modified" not in served.get("Encounter/23").headers
    answer = covered.get("Encounter/23")
    changed = datetime.fromisoformat(body(answer)["meta"]["lastUpdated"])
    modified = parsedate_to_datetime(answer.headers["Last-Modified"])
    assert modified == changed.replace(microsecond=0)
    for path in ("Encounter/26", "Patient/12"):
        assert "Last-Modified" not in covered.get(path).headers
    (rest,) = body(covered.get("metadata"))["rest"]
    offered = {each["type"]: each["conditionalRead"] for each in rest["resource"]}
    assert offered["Encounter"] == "full-support"


def test_if_modified_since_and_if_unmodified_since(served, covered):
    """Decision 19: without Last-Modified a time is no condition. READ-11."""
    path, future = "Encounter/23", "Fri, 01 Jan 2100 00:00:00 GMT"
    header = covered.get(path).headers["Last-Modified"]
    before = parsedate_to_datetime(header) - timedelta(seconds=1)
    earlier = format_datetime(before, usegmt=True)
    for condition, status in (
        ({"If_Modified_Since": header}, 304),
        ({"If_Modified_Since": future}, 304),
        ({"If_Modified_Since": earlier}, 200),
        # The ETag is the finer of the two and wins (RFC 9110, 13.2.2); so does If-Match.
        ({"If_Modified_Since": header, "If_None_Match": '"x"'}, 200),
        ({"If_Unmodified_Since": header}, 200),
        ({"If_Unmodified_Since": earlier, "If_Match": "*"}, 200),
    ):
        assert covered.get(path, **condition).status_code == status, condition
    answer = covered.get(path, If_Unmodified_Since=earlier)
    refused(answer, 412, "conflict", "If-Unmodified-Since")
    assert served.get(path, If_Modified_Since=future).status_code == 200


def test_a_read_returns_the_resource_of_its_address(served):
    """HEAD returns the headers alone (STU3 http, read; decision 19). READ-01 READ-13."""
    for path in ("Encounter/9223372036854775807", "Patient/12", "Organization/h2"):
        get, head = served.get(path), served.send("HEAD", path)
        assert f"{body(get)['resourceType']}/{body(get)['id']}" == path
        for name in ("ETag", "Content-Length", "Content-Type"):
            assert head.headers[name] == get.headers[name]
        assert (head.status_code, head.get_data()) == (200, b"")
    assert served.send("HEAD", "Encounter/1/_history/1").status_code == 404


def test_what_is_no_id_is_not_found(served):
    """STU3 datatypes, id. READ-07."""
    for id in ("a%2Fb", "%00"):
        refused(served.get(f"Encounter/{id}"), 404, "not-found")
    for id in ("a" * 65, "a%20b", "%C3%A9", "_x", "_history", "$everything"):
        text = refused(served.get(f"Encounter/{id}"), 404, "not-found")
        assert "an id is 1 to 64 of A-Z" in text


ACCEPTED = (
    *("application/fhir+json", "application/json", "application/json+fhir"),
    *("text/json", "*/*", "application/*", ""),
    "Application/FHIR+JSON; charset=utf-8",
    f"{XML}, application/fhir+json;q=0.1",
    "application/json;q=0, */*",
    "application/fhir+json; fhirVersion=4.0, application/json; fhirVersion=3.0",
    *(f"application/fhir+json; fhirVersion={v}" for v in ("3.0.1", "3.0.2")),
)
REFUSED = (
    *(XML, "text/html", "application/fhir+json;q=0", "*/*;q=0"),
    "application/fhir+json;q=0, */*",
    "application/fhir+json; fhirVersion=4.0",
    'application/fhir+json; fhirVersion="3.0.3", text/html',
)
FORMATS = (
    ("json", 200),
    ("application/json", 200),
    # A + that nobody escaped is a frequent mistake.
    ("application/fhir+json", 200),
    ("application/fhir%2Bjson;fhirVersion=3.0", 200),
    ("application/fhir%2Bjson;%20fhirVersion=4.0", 406),
    ("xml", 406),
)


@pytest.mark.parametrize("path", ["Encounter/1", "Encounter?_id=1", "metadata"])
def test_responses_are_fhir_json_to_all_who_accept_it(served, path):
    """STU3 http, content types; decision 27. `_format` wins over `Accept`.

    HTTP-01 HTTP-02 HTTP-03 HTTP-04 CAP-08.
    """
    for accept in ACCEPTED:
        headers = {"Accept": accept} if accept else {}
        answer = served.send("GET", path, headers=headers)
        assert answer.status_code == 200, accept
        assert answer.headers["Content-Type"] == CONTENT_TYPE
    for accept in REFUSED:
        answer = served.send("GET", path, headers={"Accept": accept})
        refused(answer, 406, "not-supported", "Accept")
    for format, status in FORMATS:
        headers = {"Accept": XML if status == 200 else "application/fhir+json"}
        answer = served.send("GET", with_(path, f"_format={format}"), headers=headers)
        assert answer.status_code == status
        assert answer.headers["Content-Type"] == CONTENT_TYPE


def test_letters_are_utf_8_and_length_is_in_bytes(served):
    """STU3 http. HTTP-09."""
    for path in ("Patient/3", "Organization?name=coeur"):
        answer = served.get(path)
        data = answer.get_data()
        assert int(answer.headers["Content-Length"]) == len(data) > len(data.decode())


def test_pretty_is_the_same_on_more_lines(served):
    """STU3 http; errors too."""
    for path in ("Encounter/1", "Encounter?date=x"):
        plain, pretty = served.get(path), served.get(with_(path, "_pretty=true"))
        assert plain.text.count("\n") == 0
        assert pretty.text.count("\n") > 5
        if path == "Encounter/1":
            assert json.loads(plain.text) == json.loads(pretty.text)
    form = served.post("Encounter/_search", {"date": "x", "_pretty": "true"})
    assert form.text.count("\n") > 5
