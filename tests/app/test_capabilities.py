"""The CapabilityStatement is kept: what it lists works, what it leaves out is refused."""

from collections.abc import Mapping
from typing import Any

import pytest

from adapters.testing.hospital import UNIT_URL
from app.parameters import SEARCH_PARAMETERS
from tests.app.answers import body, refused
from tests.docs.pages import DOCS, section, table
from tests.serving import Served, ids, link

PROFILES = ("full", "group-a", "group-b")

SAMPLES: Mapping[tuple[str, str], tuple[str, str]] = {
    # A value for every parameter of the table, and a resource that it finds.
    ("Encounter", "_id"): ("60", "60"),
    ("Encounter", "patient"): ("Patient/4", "60"),
    ("Encounter", "date"): ("2024-05-01", "60"),
    ("Encounter", "identifier"): ("V1", "1"),
    ("Encounter", "status"): ("in-progress", "22"),
    ("Encounter", "class"): ("AMB", "65"),
    ("Encounter", "service-provider._extension"): (f"{UNIT_URL}|0123", "6"),
    ("Patient", "_id"): ("3", "3"),
    ("Patient", "name"): ("martin", "3"),
    ("Patient", "family"): ("latour", "3"),
    ("Patient", "given"): ("eleonore", "3"),
    ("Patient", "birthdate"): ("2000-02-29", "3"),
    ("Patient", "gender"): ("female", "3"),
    ("Patient", "identifier"): ("0042", "12"),
    ("Organization", "_id"): ("H1", "H1"),
    ("Organization", "name"): ("hopital", "H1"),
    ("Organization", "identifier"): ("750000001", "H1"),
}
READABLE = {"Encounter": "1", "Patient": "1", "Organization": "H1"}

# The table of spec 4.1, the columns "Available on group A" and "Available on group B".
IN_GROUPS = {
    "patient": True,
    "date": True,
    "identifier": False,
    "status": False,
    "service-provider._extension": False,
    "class": False,
    "_sort": False,
    "_id": True,
    "_count": True,
}
VALUES = {
    **{
        name: value
        for (kind, name), (value, _) in SAMPLES.items()
        if kind == "Encounter"
    },
    "_sort": "date",
    "_count": "5",
}


def test_the_cells_here_are_those_of_the_spec() -> None:
    spec = section((DOCS / "spec.md").read_text("utf-8"), "4.1 Search encounters")
    for column in (2, 3):
        told = {row[0]: row[column] for row in table(spec, "Parameter")}
        assert {name: says != "no" for name, says in told.items()} == IN_GROUPS


@pytest.fixture(params=PROFILES)
def deployment(
    request: pytest.FixtureRequest, served: Served, groups: Mapping[str, Served]
) -> Served:
    """Return the service as each profile offers it."""
    return served if request.param == "full" else groups[request.param]


def _resources(served: Served) -> dict[str, Any]:
    (rest,) = body(served.get("metadata"))["rest"]
    return {each["type"]: each for each in rest["resource"]}


def _interactions(listed: Any) -> set[str]:
    return {each["code"] for each in listed["interaction"]}


def _parameters(listed: Any) -> set[str]:
    return {each["name"] for each in listed.get("searchParam", ())}


def test_there_is_a_sample_of_every_parameter_of_the_table() -> None:
    table = {
        (str(kind), name)
        for kind in SEARCH_PARAMETERS
        for name in SEARCH_PARAMETERS[kind]
    }
    assert set(SAMPLES) == table


def test_every_parameter_that_is_listed_finds_what_it_should(
    deployment: Served,
) -> None:
    called = 0
    for kind, listed in _resources(deployment).items():
        for name in _parameters(listed):
            value, id = SAMPLES[kind, name]
            wide = {"_count": "100", name: value}
            for bundle in (
                deployment.search(kind, wide),
                body(deployment.get(f"{kind}?{name}={value}&_count=100")),
            ):
                assert id in ids(bundle), (kind, name)
                assert bundle["total"] < 30, "the parameter was not a filter"
            called += 1
    assert called >= 5


def test_every_parameter_that_is_not_listed_is_refused(deployment: Served) -> None:
    listed = _resources(deployment)
    for (kind, name), (value, _) in SAMPLES.items():
        if name in _parameters(listed[kind]):
            continue
        for answer in (
            deployment.post(f"{kind}/_search", {name: value}),
            deployment.get(f"{kind}?{name}={value}"),
        ):
            if "search-type" in _interactions(listed[kind]):
                refused(answer, 400, "not-supported", name)
            else:
                refused(answer, 404, "not-found")


def test_every_interaction_that_is_listed_works(deployment: Served) -> None:
    listed = _resources(deployment)
    assert set(listed) == {"Encounter", "Patient", "Organization", "Bundle"}
    for kind, id in READABLE.items():
        assert "read" in _interactions(listed[kind])
        assert body(deployment.get(f"{kind}/{id}"))["id"] == id
    for kind in ("Encounter", "Patient"):
        assert "search-type" in _interactions(listed[kind])
    assert _interactions(listed["Bundle"]) == {"search-type"}
    found = deployment.search("Encounter", {"_count": "1"})
    assert body(deployment.get(link(found, "self"))) == found


def test_reads_on_a_condition_are_as_it_says(deployment: Served) -> None:
    for kind, id in READABLE.items():
        # These mappings do not vouch for the time of the last change (decision 19).
        assert _resources(deployment)[kind]["conditionalRead"] == "not-match"
        tag = deployment.get(f"{kind}/{id}").headers["ETag"]
        assert deployment.get(f"{kind}/{id}", If_None_Match=tag).status_code == 304


@pytest.mark.parametrize("name", IN_GROUPS)
@pytest.mark.parametrize("group", ["group-a", "group-b"])
def test_groups_offer_what_the_table_of_the_spec_says(
    groups: Mapping[str, Served], group: str, name: str
) -> None:
    answer = groups[group].post("Encounter/_search", {name: VALUES[name]})
    if IN_GROUPS[name]:
        assert ids(body(answer))
    else:
        refused(answer, 400, "not-supported", name)


@pytest.mark.parametrize("name", IN_GROUPS)
def test_elsewhere_all_of_the_table_is_offered(served: Served, name: str) -> None:
    assert ids(served.search("Encounter", {name: VALUES[name]}))


def test_the_statement_tells_page_sizes_sorts_and_pages(
    served: Served, groups: Mapping[str, Served]
) -> None:
    def search_text(deployment: Served, kind: str) -> str:
        told = _resources(deployment)[kind]["interaction"]
        return str(next(i["documentation"] for i in told if i["code"] == "search-type"))

    full, group = (
        search_text(served, "Encounter"),
        search_text(groups["group-a"], "Encounter"),
    )
    assert "_count is 10 by default and 100 at most" in full
    assert "_count is 10 by default and 100 at most" in group
    assert "_count is 100 by default" in search_text(served, "Organization")
    assert "date, -date, _lastUpdated, -_lastUpdated" in full
    assert "by default -date." in full
    assert "by default _id." in search_text(served, "Patient")
    assert "_sort" not in group
    assert "Results come in the order -date." in group
    assert "exactly once" in full
    assert "first page only" in group
    assert (
        "self link"
        in _resources(groups["group-a"])["Bundle"]["interaction"][0]["documentation"]
    )


def test_the_statement_tells_what_every_search_takes(served: Served) -> None:
    (rest,) = body(served.get("metadata"))["rest"]
    for word in ("_search", "handling=lenient", "_summary", "_elements"):
        assert word in rest["documentation"]


def test_the_statement_tells_how_many_dates_a_group_takes(
    groups: Mapping[str, Served],
) -> None:
    for group in groups.values():
        assert _texts(group, "Encounter")["date"].endswith(" One value.")


def _texts(deployment: Served, kind: str) -> Mapping[str, str]:
    listed = _resources(deployment)[kind]["searchParam"]
    return {each["name"]: each["documentation"] for each in listed}


def test_the_statement_tells_what_each_parameter_takes(served: Served) -> None:
    stays, patients = _texts(served, "Encounter"), _texts(served, "Patient")
    assert stays["date"] == (
        "When the stay began. Prefixes eq, ne, gt, lt, ge, le. At most 10 values."
    )
    assert stays["_id"] == "Ids, comma-separated. At most 10 values."
    assert "At most" not in stays["status"]
    assert patients["name"].endswith("Modifiers :exact, :contains.")
    assert "Modifiers" not in stays["identifier"]
    text = refused(
        served.get("Patient?name:missing=true"), 400, "code-invalid", "name:missing"
    )
    assert text.endswith("':missing'; it takes :exact and :contains.")
