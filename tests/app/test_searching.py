"""Decision 8: the order of matches; searches without a total."""

from datetime import datetime

import pytest

from tests.app.answers import pages, refused
from tests.hospital_sql import covering_changes, mapping_text
from tests.serving import ids
from toolkit.contract.hospital import EDGES, TIES


def _ids_in_order(served, kind, params):
    first = served.search(kind, {**params, "_count": "100"})
    return [id for page in pages(served, first) for id in ids(page)]


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(
    ("key", "path"),
    [("date", ("period", "start")), ("_lastUpdated", ("meta", "lastUpdated"))],
)
def test_stays_are_sorted_by_the_key_then_by_id(served, sign, key, path):
    """Decision 8: rows without the key come last in both directions. SRCH-20 SRCH-21."""
    sort = f"{sign}{key}"
    params = {"_sort": sort, "_count": "100"}
    bundle = served.search("Encounter", params)
    assert ids(served.search("Encounter", params)) == ids(bundle)
    entries = [each for each in bundle["entry"] if each["search"]["mode"] == "match"]
    keys = [each["resource"].get(path[0], {}).get(path[1]) for each in entries]
    known = [datetime.fromisoformat(key) for key in keys if key]
    assert known == sorted(known, reverse=sort.startswith("-"))
    assert len(set(known)) > 5
    assert not any(keys[len(known) :])
    assert len(keys) > len(known)
    ordered = _ids_in_order(served, "Encounter", {"patient": "5", "_sort": sort})
    ties = sorted((tie.id for tie in TIES), reverse=sort.startswith("-"))
    assert [int(id) for id in ordered if int(id) in ties] == ties


def test_the_id_is_a_sort_key_and_can_be_named_as_the_last(served):
    """Decision 36."""
    everything = _ids_in_order(served, "Encounter", {})
    for sign in ("", "-"):
        by_id = _ids_in_order(served, "Encounter", {"_sort": f"{sign}_id"})
        assert by_id == sorted(everything, key=int, reverse=bool(sign))
        named = _ids_in_order(served, "Encounter", {"_sort": f"{sign}date,{sign}_id"})
        assert named == _ids_in_order(served, "Encounter", {"_sort": f"{sign}date"})


def test_the_newest_stay_comes_first_by_default(served):
    """Decision 8: other resources are in the order of their ids."""
    for kind, sort, some in (
        ("Encounter", "-date", {}),
        ("Patient", "_id", {"name:contains": "a"}),
        ("Organization", "_id", {"name:contains": "a"}),
    ):
        default = _ids_in_order(served, kind, some)
        assert default == _ids_in_order(served, kind, {**some, "_sort": sort}) != []


def test_a_window_of_last_changes_is_paged_in_their_order(make_service):
    """Decision 28."""
    _, _, text = mapping_text(EDGES).partition("\nencounter:")
    section, _, _ = text.partition("\npatient:")
    served = make_service((section, covering_changes(section)))
    window = (("_lastUpdated", "ge2024-03-20"), ("_lastUpdated", "lt2024-03-21"))
    for sort, expected in (("_lastUpdated", 1), ("-_lastUpdated", -1)):
        first = served.search("Encounter", (*window, ("_sort", sort), ("_count", "2")))
        assert first["total"] == 3
        walked = [id for page in pages(served, first) for id in ids(page)]
        assert walked == ["25", "23", "24"][::expected]
    refused(
        served.get("Patient?_lastUpdated=2024"), 400, "not-supported", "_lastUpdated"
    )
    refused(served.get("Encounter?_lastUpdated=ap2024"), 412, "value", "_lastUpdated")


def test_a_search_without_a_count_has_no_total(served, groups):
    """Decision 13: nor has any of its pages."""
    query = {"_count": "5", "status": "finished"}
    counted = served.search("Encounter", query)
    uncounted = served.search("Encounter", {**query, "_total": "none"})
    assert "total" in counted
    walks = [[*pages(served, first)] for first in (counted, uncounted)]
    assert [ids(page) for page in walks[0]] == [ids(page) for page in walks[1]]
    assert not any("total" in page for page in walks[1])
    accurate = served.search("Encounter", {**query, "_total": "accurate"})
    assert accurate["total"] == counted["total"]
    refused(served.get("Encounter?_total=estimate"), 412, "value", "_total")
    refused(served.get("Encounter?_total=none&_summary=count"), 412, "value", "_total")
    for group in groups.values():
        refused(group.get("Encounter?_total=none"), 400, "not-supported", "_total")
