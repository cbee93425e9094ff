"""Decision 19: parts of resources, entity tags, and reads on a condition."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest

from tests.app.answers import body, pages, raw, refused
from tests.app.changing import Changing
from tests.app.conftest import Mapped
from tests.serving import Served, ids, relations

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


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        ("_summary=true", WHOLE - {"period", "serviceProvider"}),
        ("_summary=text", {"resourceType", "id", "status"}),
        ("_elements=period", {"resourceType", "id", "status", "period"}),
        ("_elements=id", {"resourceType", "id", "status"}),
        (
            "_elements=period,id,resourceType",
            {"resourceType", "id", "status", "period"},
        ),
        (
            "_elements=subject,class",
            {"resourceType", "id", "status", "subject", "class"},
        ),
    ],
)
def test_19_a_cut_resource_carries_the_tag(
    served: Served, shown: str, kept: set[str]
) -> None:
    read = body(served.get(f"Encounter/1?{shown}"))
    assert read.keys() == kept | {"meta"}
    assert read["meta"]["tag"] == [SUBSETTED]
    (entry,) = body(served.get(f"Encounter?_id=1&{shown}"))["entry"]
    assert entry["resource"] == read


@pytest.mark.parametrize(
    "shown",
    [
        "_summary=false",
        "_summary=data",
        f"_elements={','.join(sorted(WHOLE - {'resourceType'}))}",
    ],
)
def test_19_a_whole_resource_does_not(served: Served, shown: str) -> None:
    assert body(served.get(f"Encounter/1?{shown}")) == body(served.get("Encounter/1"))


def test_19_modifiers_stay_with_elements(served: Served) -> None:
    merged = body(served.get("Patient/7?_elements=gender"))
    assert merged["active"] is False
    assert merged["link"][0]["type"] == "replaced-by"
    assert "name" not in merged


def test_19_a_summary_of_count_is_a_total_alone(served: Served) -> None:
    counted = served.search("Encounter", {"patient": "6", "_summary": "count"})
    assert counted["total"] == served.search("Encounter", {"patient": "6"})["total"]
    assert "entry" not in counted
    assert relations(counted) == ["self"]
    assert served.follow(counted, "self") == counted


@pytest.mark.parametrize(
    "shown", [{"_summary": "true"}, {"_elements": "subject"}], ids=str
)
def test_19_followed_pages_are_cut_alike(
    served: Served, shown: Mapping[str, str]
) -> None:
    first = served.search("Encounter", {"patient": "6", "_count": "4", **shown})
    walked = list(pages(served, first))
    walked += pages(served, walked[-1], "previous")
    assert len(walked) > 4
    for page in (*walked, served.follow(first, "self")):
        for entry in page["entry"]:
            assert "period" not in entry["resource"]
            assert entry["resource"]["meta"]["tag"] == [SUBSETTED]


def test_19_the_tag_joins_what_meta_holds(served: Served) -> None:
    cut = body(served.get("Encounter/23?_elements=status"))
    whole = body(served.get("Encounter/23"))
    assert cut["meta"] == {**whole["meta"], "tag": [SUBSETTED]}


@pytest.mark.parametrize("shown", ["", "_summary=true", "_elements=status,period"])
def test_19_a_page_shows_each_stay_as_a_read_does(served: Served, shown: str) -> None:
    """To the byte: a page of more than a few is written in another way."""
    answer = served.get(f"Encounter?_count=50&foo=1&{shown}", Prefer="handling=lenient")
    page = body(answer)
    stays = [each for each in page["entry"] if each["search"]["mode"] == "match"]
    assert len(stays) > 20
    for stay in stays:
        id = stay["resource"]["id"]
        read = served.get(f"Encounter/{id}?{shown}").text
        entry = (
            f'{{"fullUrl":"{stay["fullUrl"]}","resource":{read},'
            '"search":{"mode":"match"}}'
        )
        assert entry in answer.text
    assert page["entry"][-1]["search"]["mode"] == "outcome"
    pretty = served.get(
        f"Encounter?_count=50&foo=1&_pretty=true&{shown}", Prefer="handling=lenient"
    )
    assert [*body(pretty)["entry"]][:-1] == stays


@pytest.mark.parametrize(
    "query", ["_summary=true&_elements=status", "_elements=status,", "_elements=Status"]
)
def test_19_what_cannot_be_cut_is_refused(served: Served, query: str) -> None:
    for path in ("Encounter/1", "Encounter"):
        assert served.get(f"{path}?{query}").status_code == 412


def test_19_what_elements_there_are_is_told(served: Served) -> None:
    text = refused(
        served.get("Patient?_id=1&_elements=status"), 412, "value", "_elements"
    )
    assert "'status'" in text
    assert "name elements of Patient (STU3): active, address, animal, " in text


# ------------------------------------------------------------------- ETag, changes


def _tag(served: Served, path: str) -> str:
    return str(served.get(path).headers["ETag"])


def test_19_the_tag_of_an_entity_is_that_of_its_body(hospital: Changing) -> None:
    served = hospital.served
    before = _tag(served, "Encounter/2")
    assert _tag(served, "Encounter/2") == before
    assert _tag(served, "Encounter/4") != before
    assert _tag(served, "Encounter/2?_summary=true") != before
    hospital.put(2, state="E")
    assert _tag(served, "Encounter/2") != before
    hospital.put(2)
    assert _tag(served, "Encounter/2") == before


@pytest.mark.parametrize("path", ["Encounter/1", "Patient/1", "Organization/H1"])
def test_19_if_none_match(served: Served, path: str) -> None:
    tag = _tag(served, path)
    for given in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        answer = served.get(path, If_None_Match=given)
        assert answer.status_code == 304, given
        assert answer.headers["ETag"] == tag
        assert not answer.get_data()
    assert served.get(path, If_None_Match='W/"x"').status_code == 200


def test_19_what_changed_is_sent_again(hospital: Changing) -> None:
    tag = _tag(hospital.served, "Encounter/2")
    hospital.put(2, state="E")
    answer = hospital.served.get("Encounter/2", If_None_Match=tag)
    assert body(answer)["status"] == "in-progress"


@pytest.mark.parametrize("path", ["Encounter/987", "Encounter/51", "Encounter/37"])
def test_19_a_condition_hides_no_error(served: Served, path: str) -> None:
    assert served.get(path, If_None_Match="*").status_code in (404, 410, 500)


@pytest.mark.parametrize("given", ['"x"', 'W/"x"', "x"])
def test_19_if_match_is_no_way_to_a_resource_with_an_error(
    served: Served, given: str
) -> None:
    text = refused(
        served.get("Encounter/1", If_Match=given), 412, "conflict", "If-Match"
    )
    assert "*" in text


def test_19_a_weak_tag_is_no_match_and_any_resource_is(served: Served) -> None:
    tag = served.get("Encounter/1").headers["ETag"]
    for given in (tag, tag.removeprefix("W/")):
        refused(served.get("Encounter/1", If_Match=given), 412, "conflict", "If-Match")
    assert body(served.get("Encounter/1", If_Match="*"))["id"] == "1"
    refused(served.get("Encounter/987", If_Match="*"), 404, "not-found")


def test_19_unmodified_since_compares_with_the_last_change(mapped: Mapped) -> None:
    dated = mapped(COVERED)
    changed = dated.get("Encounter/23").headers["Last-Modified"]
    before = "Mon, 01 Jan 2001 00:00:00 GMT"
    assert dated.get("Encounter/23", If_Unmodified_Since=changed).status_code == 200
    answer = dated.get("Encounter/23", If_Unmodified_Since=before)
    refused(answer, 412, "conflict", "If-Unmodified-Since")
    both = dated.get("Encounter/23", If_Unmodified_Since=before, If_Match="*")
    assert both.status_code == 200


def test_19_there_is_no_version_id(served: Served) -> None:
    read = body(served.get("Encounter/23"))
    assert read["meta"].keys() == {"lastUpdated"}
    refused(served.get("Encounter/23/_history/1"), 404, "not-found")


def test_19_last_modified_only_where_the_mapping_vouches_for_it(
    served: Served, mapped: Mapped
) -> None:
    assert "lastUpdated" in body(served.get("Encounter/23"))["meta"]
    assert "Last-Modified" not in served.get("Encounter/23").headers
    covered = mapped(COVERED)
    changed = covered.get("Encounter/23")
    stamp = changed.headers["Last-Modified"]
    written = body(changed)["meta"]["lastUpdated"]
    assert parsedate_to_datetime(stamp) == _second(written)
    assert stamp.endswith("GMT")
    assert "Last-Modified" not in covered.get("Encounter/26").headers
    assert "Last-Modified" not in covered.get("Patient/12").headers


def _second(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(microsecond=0)


def test_19_if_modified_since(mapped: Mapped) -> None:
    served = mapped(COVERED)
    stamp = served.get("Encounter/23").headers["Last-Modified"]
    moment = parsedate_to_datetime(stamp)
    later, earlier = (
        format_datetime(moment + timedelta(seconds=s), usegmt=True) for s in (1, -1)
    )
    for given, status in ((stamp, 304), (later, 304), (earlier, 200)):
        answer = served.get("Encounter/23", If_Modified_Since=given)
        assert answer.status_code == status, given
    # The tag is the finer of the two, and wins (RFC 7232, 6).
    both = served.get("Encounter/23", If_Modified_Since=stamp, If_None_Match='"x"')
    assert both.status_code == 200


def test_19_without_it_the_time_alone_is_no_condition(served: Served) -> None:
    future = "Fri, 01 Jan 2100 00:00:00 GMT"
    answer = served.get("Encounter/23", If_Modified_Since=future)
    assert answer.status_code == 200


def test_19_head_answers_as_get_does_and_shows_nothing(served: Served) -> None:
    got: Any = served.get("Encounter/1")
    head = raw(served, "HEAD", "Encounter/1")
    assert head.status_code == 200
    assert head.headers["ETag"] == got.headers["ETag"]
    assert head.headers["Content-Length"] == got.headers["Content-Length"]
    assert ids(served.search("Encounter", {"_id": "1"})) == ["1"]


def test_19_the_statement_knows_what_summaries_there_are(served: Served) -> None:
    refused(served.get("metadata?_summary=foo"), 412, "value", "_summary")
    whole = body(served.get("metadata"))
    assert body(served.get("metadata?_summary=true")) == whole
