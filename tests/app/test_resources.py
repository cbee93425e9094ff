"""What STU3 requires of resources and Bundles, on every stay of the edge cases."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.testing.hospital import EDGES
from tests.app.answers import body, pages
from tests.serving import BASE_URL, Served, issues

ACT_CODE = "http://hl7.org/fhir/v3/ActCode"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
OID = re.compile(r"urn:oid:[0-2](\.(0|[1-9]\d*))+")
R4_ONLY = {
    *("serviceType", "reasonCode", "reasonReference", "basedOn", "supportedProfile"),
    *("physicalType", "source"),
}


@pytest.fixture
def bundles(served: Served) -> list[Any]:
    """Return every page of every stay, and of some patients and organizations."""
    return [
        page
        for kind, params in (
            ("Encounter", {"_count": "20", "_sort": "date"}),
            ("Patient", {"name:contains": "a", "_count": "3"}),
            ("Organization", {"name:contains": "a"}),
        )
        for page in pages(served, served.search(kind, params))
    ]


@pytest.fixture
def stays(bundles: list[Any]) -> list[Any]:
    """Return every stay that is served."""
    resources = [entry["resource"] for page in bundles for entry in page["entry"]]
    stays = [each for each in resources if each["resourceType"] == "Encounter"]
    assert len(stays) > 60
    return stays


def _nodes(value: Any) -> Iterator[tuple[str, Any]]:
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for name, child in children:
        yield str(name), child
        if isinstance(child, dict | list):
            yield from _nodes(child)


def test_bundles_have_type_total_and_links(bundles: list[Any]) -> None:
    for bundle in bundles:
        # In the order of spec 2.5.
        parts = ["resourceType", "id", "type", "total", "link", "entry"]
        assert list(bundle) == parts
        assert bundle["type"] == "searchset"
        assert bundle["total"] >= 0
        relations = [each["relation"] for each in bundle["link"]]
        assert relations.count("self") == 1
        assert set(relations) <= {"self", "previous", "next"}
        assert all(each.keys() == {"relation", "url"} for each in bundle["link"])
    totals = {bundle["total"] for bundle in bundles if "Encounter/" in str(bundle)}
    assert len(totals) == 1


def test_entries_have_absolute_addresses_that_occur_once(bundles: list[Any]) -> None:
    for bundle in bundles:
        urls = Counter(entry["fullUrl"] for entry in bundle["entry"])
        assert max(urls.values()) == 1
        for entry in bundle["entry"]:
            resource = entry["resource"]
            if entry["search"]["mode"] == "match":
                path = f"{resource['resourceType']}/{resource['id']}"
                assert entry["fullUrl"] == f"{BASE_URL}/{path}"
            else:
                assert entry["search"]["mode"] == "outcome"
                assert resource["resourceType"] == "OperationOutcome"
                assert entry["fullUrl"].startswith("urn:uuid:")


def test_a_result_holds_no_error_and_its_total_counts_matches_alone(
    served: Served, bundles: list[Any]
) -> None:
    severities = {issue["severity"] for bundle in bundles for issue in issues(bundle)}
    assert severities
    assert not {"error", "fatal"} & severities
    plain, lenient = (
        served.search("Encounter", params, Prefer="handling=lenient")
        for params in ({"patient": "2"}, {"patient": "2", "foo": "1"})
    )
    assert len(lenient["entry"]) == len(plain["entry"]) + 1
    assert lenient["total"] == plain["total"] == 2


def test_nothing_is_null_or_empty_and_nothing_is_of_r4(bundles: list[Any]) -> None:
    for name, node in _nodes(bundles):
        assert node is not None
        assert node not in ("", [], {}), name
        assert name not in R4_ONLY


def test_references_have_no_type_and_extensions_one_value(bundles: list[Any]) -> None:
    nodes = [*(each for bundle in bundles for each in _nodes(bundle))]
    references = [n for _, n in nodes if isinstance(n, dict) and "reference" in n]
    assert references
    assert all("type" not in node for node in references)
    lists = [node for name, node in nodes if name == "extension"]
    assert lists
    for extensions in lists:
        assert all(each.keys() == {"url", "valueString"} for each in extensions)


def test_stays_have_one_of_three_states_and_one_class(stays: list[Any]) -> None:
    states = {stay["status"] for stay in stays}
    assert states == {"planned", "in-progress", "finished"}
    classes = [stay["class"] for stay in stays if "class" in stay]
    assert len(classes) > 60
    for coding in classes:
        assert coding.keys() == {"code", "display", "system"}
        assert coding["system"] == ACT_CODE


def test_visit_numbers_are_official_and_their_systems_oids(stays: list[Any]) -> None:
    numbers = [number for stay in stays for number in stay.get("identifier", ())]
    assert {"000123", "123", "O'B", '"'} <= {number["value"] for number in numbers}
    for number in numbers:
        assert number["use"] == "official"
        assert isinstance(number["value"], str)
        assert OID.fullmatch(number.get("system", "urn:oid:1.2"))
    assert any("system" in number for number in numbers)


def test_times_have_seconds_and_an_offset_and_are_in_order(stays: list[Any]) -> None:
    periods = {stay["id"]: stay["period"] for stay in stays if "period" in stay}
    for period in periods.values():
        assert all(TIME.fullmatch(time) for time in period.values())
    # The hour that happens twice, and both sides of the clock change.
    assert periods["30"] == {
        "start": "2024-10-27T02:30:00+02:00",
        "end": "2024-10-27T02:45:00+02:00",
    }
    assert periods["33"] == {
        "start": "2024-03-31T01:59:59+01:00",
        "end": "2024-03-31T03:30:00+02:00",
    }
    # An open stay has no end.
    assert periods["22"].keys() == {"start"}
    assert periods["23"].keys() == {"end"}
    assert "26" not in periods


def test_every_row_is_found_as_it_is_read_or_reported(
    served: Served, stays: list[Any]
) -> None:
    for stay in stays:
        assert body(served.get(f"Encounter/{stay['id']}")) == stay
    concealed = {row.id for row in EDGES.stays if row.state in ("A", "X")}
    invalid = {row.id for row in EDGES.stays} - concealed
    invalid -= {int(stay["id"]) for stay in stays}
    assert invalid
    for id in invalid:
        assert served.get(f"Encounter/{id}").status_code == 500
