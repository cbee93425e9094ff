"""Decision 8 and every search parameter, compared with a model of the hospital."""

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlencode

import pytest

from adapters.contract import (
    Criterion,
    ResourceType,
    Sort,
    SortKey,
    StringMatch,
)
from adapters.memory import MemoryAdapter
from tests.app.answers import body, pages, refused
from tests.app.conftest import MakeService
from tests.hospital_sql import covering_changes, mapping_text
from tests.serving import BASE_URL, Served, ids, issues
from toolkit.contract.harness import (
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    dates,
    ids_of,
    patient,
    text,
    token,
)
from toolkit.contract.hospital import (
    EDGES,
    FINESS_SYSTEM,
    IPP_SYSTEM,
    TIES,
    UNIT_URL,
    VISIT_SYSTEMS,
)


def _ids_in_order(served: Served, kind: str, params: Mapping[str, str]) -> list[str]:
    first = served.search(kind, {**params, "_count": "100"})
    return [id for page in pages(served, first) for id in ids(page)]


@pytest.mark.parametrize(
    ("sort", "path"),
    [
        (f"{sign}{key}", path)
        for key, path in (
            ("date", ("period", "start")),
            ("_lastUpdated", ("meta", "lastUpdated")),
        )
        for sign in ("", "-")
    ],
)
def test_stays_are_sorted_by_the_key_then_by_id(
    served: Served, sort: str, path: tuple[str, str]
) -> None:
    """Decision 8: rows without the key come last in both directions.

    SRCH-20 SRCH-21.
    """
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


def test_the_id_is_a_sort_key_and_can_be_named_as_the_last(served: Served) -> None:
    """Decision 36."""
    everything = _ids_in_order(served, "Encounter", {})
    for sign in ("", "-"):
        by_id = _ids_in_order(served, "Encounter", {"_sort": f"{sign}_id"})
        assert by_id == sorted(everything, key=int, reverse=bool(sign))
        for key in ("date", "_lastUpdated"):
            named = _ids_in_order(
                served, "Encounter", {"_sort": f"{sign}{key},{sign}_id"}
            )
            assert named == _ids_in_order(served, "Encounter", {"_sort": sign + key})


def test_the_newest_stay_comes_first_by_default(served: Served) -> None:
    """Decision 8: other resources are in the order of their ids."""
    for kind, sort, some in (
        ("Encounter", "-date", {}),
        ("Patient", "_id", {"name:contains": "a"}),
        ("Organization", "_id", {"name:contains": "a"}),
    ):
        default = _ids_in_order(served, kind, some)
        assert default == _ids_in_order(served, kind, {**some, "_sort": sort}) != []


Question = tuple[str, str, Criterion]
"""A parameter, its value over HTTP, and the criterion for the model."""

STATUS = "http://hl7.org/fhir/encounter-status"
UNIT = "service-provider._extension"


H1 = VISIT_SYSTEMS["H1"]


EXACT, CONTAINS = StringMatch.EXACT, StringMatch.CONTAINS

QUESTIONS: Mapping[ResourceType, tuple[Question, ...]] = {
    STAY: (
        ("patient", f"1,{BASE_URL}/Patient/4,Patient/7", patient("1", "4", "7")),
        ("date", "ne2024-03", dates("ne2024-03")),
        ("date", "gt2024-03-14T09:00", dates("gt2024-03-14T09:00")),
        ("date", "2024-02,2024-05-02,gt2024", dates("2024-02", "2024-05-02", "gt2024")),
        (
            *("identifier", f"{H1}|000123,V1,|123"),
            token("identifier", f"{H1}|000123", "V1", "|123"),
        ),
        ("status", f"{STATUS}|planned", token("status", "planned")),
        ("class", "UNK,AMB", token("class", "UNK", "AMB")),
        (UNIT, f"{UNIT_URL}|_,{UNIT_URL}|É", token(UNIT, "_", "É")),
        ("_id", "1,2,26,37,70,74", token("_id", "1", "2", "26", "37", "70", "74")),
    ),
    PATIENT: (
        ("name", "martin", text("name", "martin")),
        ("name:contains", "TOUR", text("name", "TOUR", match=CONTAINS)),
        ("family:exact", "Martin", text("family", "Martin", match=EXACT)),
        ("given", "paul", text("given", "paul")),
        ("birthdate", "ne1970-01-01", dates("ne1970-01-01", parameter="birthdate")),
        ("gender", "male,unknown", token("gender", "male", "unknown")),
        (
            *("identifier", f"{IPP_SYSTEM}|8,0042"),
            token("identifier", f"{IPP_SYSTEM}|8", "0042"),
        ),
    ),
    ORGANIZATION: (
        ("name", "hopital", text("name", "hopital")),
        ("name:contains", "an", text("name", "an", match=CONTAINS)),
        ("identifier", f"{FINESS_SYSTEM}|", token("identifier", f"{FINESS_SYSTEM}|")),
        ("_id", "H1,h2,042", token("_id", "H1", "h2", "042")),
    ),
}


@pytest.fixture(scope="module")
def model() -> MemoryAdapter:
    """Return the hospital as it should be searched."""
    return EDGES.model()


def _expected(
    model: MemoryAdapter,
    kind: ResourceType,
    questions: tuple[Question, ...],
    sort: str | None,
) -> tuple[int, list[str], int]:
    """Return the total, the ids in order, and how many rows cannot be shown."""
    order = (
        Sort(SortKey(sort.removeprefix("-")), sort.startswith("-")) if sort else None
    )
    query = ask(*(criterion for *_, criterion in questions), of=kind, sort=order)
    found = ids_of(model.search(query))
    shown = [id for id in found if not id.startswith("!")]
    return model.count(query), shown, len(found) - len(shown)


def _returned(
    served: Served, kind: ResourceType, params: list[tuple[str, str]]
) -> tuple[int, list[str], int]:
    every = list(pages(served, served.search(kind, [*params, ("_count", "40")])))
    shown = [id for page in every for id in ids(page)]
    return every[0]["total"], shown, sum(len(issues(page)) for page in every)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_parameters_find_what_the_model_finds(
    served: Served, model: MemoryAdapter, kind: ResourceType
) -> None:
    """Alone, by GET and POST, in every order, and together with the next parameter."""
    questions = QUESTIONS[kind]
    sorts = ("date" if kind is STAY else "_id", "_lastUpdated")
    for question, other in zip(questions, (*questions[1:], questions[0]), strict=True):
        total, shown, _ = alone = _expected(model, kind, (question,), None)
        assert 0 < total < model.count(ask(of=kind))
        params = [question[:2]]
        assert _returned(served, kind, params) == alone
        got = body(served.get(f"{kind}?{urlencode([*params, ('_count', '100')])}"))
        assert (ids(got), got["total"]) == (shown, total)
        for sort in (*sorts, *(f"-{key}" for key in sorts)):
            expected = _expected(model, kind, (question,), sort)
            assert _returned(served, kind, [*params, ("_sort", sort)]) == expected
        both = (question, other)
        expected = _expected(model, kind, both, None)
        assert _returned(served, kind, [each[:2] for each in both]) == expected


def test_all_at_once(served: Served, model: MemoryAdapter) -> None:
    asked = (
        ("patient", "1", patient("1")),
        ("date", "ge2024-03-14", dates("ge2024-03-14")),
        ("date", "lt2024-03-15", dates("lt2024-03-15")),
        ("status", "finished", token("status", "finished")),
        ("class", "IMP", token("class", "IMP")),
        ("identifier", "V1,v1", token("identifier", "V1", "v1")),
        ("_id", "1,2,3", token("_id", "1", "2", "3")),
    )
    params = [(name, value) for name, value, _ in asked]
    assert _returned(served, STAY, params) == _expected(model, STAY, asked, None)
    assert ids(served.search(STAY, params)) == ["1", "2"]


def test_a_window_of_last_changes_is_paged_in_their_order(
    make_service: MakeService,
) -> None:
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


def test_a_search_without_a_count_has_no_total(
    served: Served, groups: Mapping[str, Served]
) -> None:
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
