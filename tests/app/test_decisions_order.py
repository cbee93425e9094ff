"""Decision 8: the order of results."""

from collections.abc import Mapping

import pytest

from adapters.testing.stays import TIES
from tests.app.answers import body, pages, refused
from tests.serving import Served, ids


def _ids_in_order(served: Served, kind: str, params: Mapping[str, str]) -> list[str]:
    first = served.search(kind, {**params, "_count": "100"})
    return [id for page in pages(served, first) for id in ids(page)]


def _keys(served: Served, params: Mapping[str, str], *path: str) -> list[str | None]:
    bundle = served.search("Encounter", {**params, "_count": "100"})
    found = []
    for entry in bundle["entry"]:
        value = entry["resource"] if entry["search"]["mode"] == "match" else None
        for name in path:
            value = (value or {}).get(name)
        if entry["search"]["mode"] == "match":
            found.append(value)
    return found


@pytest.mark.parametrize("sort", ["date", "-date"])
def test_08_stays_are_sorted_by_their_start(served: Served, sort: str) -> None:
    # One offset from April to October: texts sort as the times do.
    params = {"date": "2024-05,2024-06,2024-07", "_sort": sort}
    keys = _keys(served, params, "period", "start")
    assert keys == sorted(keys, key=str, reverse=sort == "-date")
    assert len(set(keys)) > 8


@pytest.mark.parametrize("sort", ["_lastUpdated", "-_lastUpdated"])
def test_08_stays_are_sorted_by_their_last_change(served: Served, sort: str) -> None:
    keys = [key for key in _keys(served, {"_sort": sort}, "meta", "lastUpdated") if key]
    assert keys == sorted(keys, reverse=sort == "-_lastUpdated")
    assert len(set(keys)) > 5


def test_08_the_newest_stay_comes_first_when_nothing_is_said(served: Served) -> None:
    default = _ids_in_order(served, "Encounter", {})
    assert default == _ids_in_order(served, "Encounter", {"_sort": "-date"})


@pytest.mark.parametrize("sort", ["date", "-date", "_lastUpdated", "-_lastUpdated"])
def test_08_the_id_is_the_last_key_in_the_direction_of_the_sort(
    served: Served, sort: str
) -> None:
    found = _ids_in_order(served, "Encounter", {"patient": "5", "_sort": sort})
    ties = sorted((tie.id for tie in TIES), reverse=sort.startswith("-"))
    assert [int(id) for id in found if int(id) in ties] == ties


@pytest.mark.parametrize("sort", ["date", "-date", "_lastUpdated", "-_lastUpdated"])
def test_08_rows_without_the_key_come_last_in_both_directions(
    served: Served, sort: str
) -> None:
    path = ("period", "start") if sort.endswith("date") else ("meta", "lastUpdated")
    keys = _keys(served, {"_sort": sort}, *path)
    known = [key is not None for key in keys]
    assert known == sorted(known, reverse=True)
    assert True in known
    assert False in known


@pytest.mark.parametrize("kind", ["Patient", "Organization"])
def test_08_other_resources_are_sorted_by_id(served: Served, kind: str) -> None:
    some = {"name:contains": "a"}
    default = _ids_in_order(served, kind, some)
    order = (lambda id: (int(id),)) if kind == "Patient" else (lambda id: id)
    assert default == sorted(default, key=order) != []
    assert default == _ids_in_order(served, kind, {**some, "_sort": "_id"})
    assert default[::-1] == _ids_in_order(served, kind, {**some, "_sort": "-_id"})
    changed = _ids_in_order(served, kind, {**some, "_sort": "-_lastUpdated"})
    assert sorted(changed) == sorted(default)


@pytest.mark.parametrize(
    ("kind", "sort"),
    [
        ("Encounter", "date,_lastUpdated"),
        ("Encounter", "_id"),
        ("Encounter", "--date"),
        ("Encounter", "-"),
        ("Patient", "date"),
        ("Patient", "name"),
        ("Organization", "-name"),
    ],
)
def test_08_one_key_of_the_list_and_no_other(
    served: Served, kind: str, sort: str
) -> None:
    answer = served.post(f"{kind}/_search", {"_id": "1", "_sort": sort})
    refused(answer, 412, "value", "_sort")


def test_08_a_sort_is_given_once(served: Served) -> None:
    pairs = [("_sort", "date"), ("_sort", "_lastUpdated")]
    refused(served.post("Encounter/_search", pairs), 412, "value", "_sort")
    body(served.post("Encounter/_search", pairs[:1]))
