"""`make run GROUP=…`, for real: a client's whole journey through each group.

Everything here is a process of its own, on ports that nobody has.
"""

import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.demo.running import (
    PORTS,
    STOP_SECONDS,
    Demo,
    get,
    make,
    offline_token,
    pasted,
    refused,
    started,
)
from tests.live import free_ports
from tests.serving import ids, issues, link, relations
from tests.validity.client import check_response

GROUPS = ("a", "b")
NOT_OFFERED = {
    ("Encounter", "identifier"): "000000007",
    ("Encounter", "status"): "finished",
    ("Encounter", "service-provider._extension"): "https://example.org/|0123",
    ("Encounter", "class"): "EMER",
    ("Encounter", "_sort"): "date",
    ("Patient", "family"): "martin",
    ("Patient", "given"): "anne",
    ("Patient", "birthdate"): "1970-01-01",
    ("Patient", "gender"): "female",
    ("Patient", "identifier"): "1",
    ("Patient", "_sort"): "_id",
}
OFFERED = {"Encounter": "_id, patient, date, _count,", "Patient": "_id, name, _count,"}


@dataclass(frozen=True)
class Served:
    """A group that is up, and a token for it."""

    group: str
    demo: Demo
    token: str

    def post(self, kind: str, params: Mapping[str, str]) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            url = f"{self.demo.base_url}/{kind}/_search"
            headers = {"Authorization": f"Bearer {self.token}"}
            return check_response(
                session.post(url, data=params, headers=headers, timeout=60)
            )

    def search(self, kind: str, params: Mapping[str, str]) -> Any:
        answer = self.post(kind, params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str) -> requests.Response:
        """GET a path below the base, or a link."""
        url = path if path.startswith("http") else f"{self.demo.base_url}/{path}"
        return get(url, self.token)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("groups") / "demo"


@pytest.fixture(scope="module")
def groups(root: Path) -> Iterator[Mapping[str, Served]]:
    """Both groups, up at the same time in one directory."""
    root.parent.mkdir(exist_ok=True)
    with (
        started(root, root.with_suffix(".a.log"), group="a") as a,
        started(root, root.with_suffix(".b.log"), group="b") as b,
    ):
        yield {
            group: Served(group, demo, offline_token(root, "--group", group))
            for group, demo in (("a", a), ("b", b))
        }


@pytest.fixture(params=GROUPS)
def served(request: pytest.FixtureRequest, groups: Mapping[str, Served]) -> Served:
    return groups[request.param]


def refusal(answer: requests.Response, status: int, code: str) -> str:
    """Hold an answer to its status and its one issue; return the text."""
    assert answer.status_code == status, answer.text
    (issue,) = answer.json()["issue"]
    assert (issue["severity"], issue["code"]) == ("error", code)
    return str(issue["diagnostics"])


def test_the_printed_lines_work_as_they_are(served: Served) -> None:
    page, refusal, stay = pasted(served.demo)
    assert (len(ids(page)), relations(page)) == (5, ["self"])
    assert refusal["issue"][0]["code"] == "not-supported"
    assert (stay["resourceType"], stay["id"]) == ("Encounter", ids(page)[0])
    said = served.demo.said()
    assert f"as group {served.group.upper()} is offered it" in said
    assert f"token --group {served.group} --directory" in said


def test_the_statement_is_that_of_the_group(served: Served) -> None:
    statement = served.get("metadata").json()
    assert f"Group {served.group.upper()}" in str(statement)
    (rest,) = statement["rest"]
    listed = {
        each["type"]: {p["name"] for p in each.get("searchParam", ())}
        for each in rest["resource"]
    }
    assert listed["Encounter"] == {"_id", "patient", "date"}
    assert listed["Patient"] == {"_id", "name"}
    assert listed["Organization"] == set()


def test_from_a_name_to_the_stays_of_a_patient(served: Served) -> None:
    patients = served.search("Patient", {"name": "martin", "_count": "100"})
    assert patients["total"] == len(ids(patients)) > 0
    for id in ids(patients):
        stays = served.search("Encounter", {"patient": f"Patient/{id}"})
        if ids(stays):
            break
    stay = served.get(f"Encounter/{ids(stays)[0]}").json()
    subject = stay["subject"]["reference"]
    assert served.get(subject).json()["resourceType"] == "Patient"
    house = served.get(stay["serviceProvider"]["reference"]).json()
    assert house["resourceType"] == "Organization"


def test_one_page_and_the_newest_first(served: Served) -> None:
    found = served.search("Encounter", {"_count": "100", "date": "lt2025-01-01"})
    starts = [
        entry["resource"]["period"]["start"]
        for entry in found["entry"]
        if entry["search"]["mode"] == "match"
    ]
    assert starts == sorted(starts, reverse=True)
    assert found["total"] > 100 >= len(starts) > 90
    assert "incomplete" in {issue["code"] for issue in issues(found)}
    assert relations(found) == ["self"]
    assert link(found, "self") == f"{served.demo.base_url}/Bundle?_id={found['id']}"
    again = served.get(link(found, "self")).json()
    assert (again["id"], ids(again), relations(again)) == (
        found["id"],
        ids(found),
        ["self"],
    )


def test_a_bundle_has_no_further_page(served: Served) -> None:
    found = served.search("Encounter", {"_count": "3"})
    for cursor in ("_searchAfter", "_searchBefore"):
        url = f"Bundle?_id={found['id']}&_index=2&{cursor}={'a' * 32}"
        refusal(served.get(url), 404, "not-found")


@pytest.mark.parametrize(("kind", "name"), NOT_OFFERED)
def test_what_is_not_offered_is_refused_and_what_is_offered_said(
    served: Served, kind: str, name: str
) -> None:
    value = NOT_OFFERED[kind, name]
    said = refusal(served.post(kind, {name: value}), 400, "not-supported")
    assert f"'{name}' is not supported here" in said
    assert f"Offered are: {OFFERED[kind]}" in said


def test_one_date(served: Served) -> None:
    for value in ("2024-03-14,2024-03-15", ["ge2024-03-14", "lt2024-03-16"]):
        answer = served.post("Encounter", {"date": value})  # type: ignore[dict-item]
        assert "at most 1 value," in refusal(answer, 412, "value")
    for prefix in ("", "eq", "gt", "ge", "lt", "le"):
        assert served.search("Encounter", {"date": f"{prefix}2024"})["total"] > 10


def test_both_serve_the_same_hospital(groups: Mapping[str, Served]) -> None:
    a, b = (
        ids(groups[group].search("Encounter", {"date": "lt2025", "_count": "100"}))
        for group in GROUPS
    )
    assert a == b


def test_a_token_of_one_group_is_none_of_the_other(
    groups: Mapping[str, Served],
) -> None:
    answer = get(f"{groups['b'].demo.base_url}/Encounter/8", groups["a"].token)
    assert answer.status_code == 401


def test_a_group_started_twice_is_one_sentence(
    groups: Mapping[str, Served], root: Path
) -> None:
    status, said = refused(root, free_ports(PORTS), group="b")
    assert status == 1
    assert said.startswith(f"Another demo is running in {root / 'group-b'}: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("place", range(PORTS))
def test_a_port_in_use_is_one_sentence(
    groups: Mapping[str, Served], tmp_path: Path, place: int
) -> None:
    taken = groups["b"].demo.port
    status, said = refused(tmp_path / "demo", taken - place, group="a")
    assert status == 1
    assert said.startswith(f"Port {taken} cannot be used (")
    assert "'make run GROUP=a PORT=9000'" in said
    assert said.count("\n") == 1


def test_switching_on_one_port_keeps_what_each_holds(tmp_path: Path) -> None:
    root, port = tmp_path / "demo", free_ports(PORTS)
    kept: dict[str, Any] = {}
    for number, group in enumerate(("a", "b", "", "a")):
        began = time.monotonic()
        with started(root, tmp_path / f"{number}.log", port, group=group) as demo:
            took = time.monotonic() - began
            token = offline_token(root, "--group", group)
            if group not in kept:
                kept[group] = get(f"{demo.base_url}/Encounter?_count=3", token).json()
            else:
                again = get(link(kept[group], "self"), token).json()
                assert ids(again) == ids(kept[group])
                assert "Making a hospital" not in demo.said()
                assert took < 60
            assert demo.stop(signal.SIGINT) == 0


def test_when_the_hospital_ends_all_end_and_the_reason_is_said(tmp_path: Path) -> None:
    with started(tmp_path / "demo", tmp_path / "log", group="a") as demo:
        family = demo.family()
        demo.child("demo.http").kill()
        assert demo.process.wait(STOP_SECONDS) == 1
        demo.assert_gone(family)
    assert "The hospital's API stopped by itself" in demo.said()


def test_an_unknown_group_is_one_sentence(checkout: Path, tmp_path: Path) -> None:
    with make(checkout, free_ports(PORTS), tmp_path / "log", "GROUP=c") as demo:
        assert demo.process.wait(STOP_SECONDS) == 2
    said = [line for line in demo.said().splitlines() if not line.startswith("make")]
    assert said == [
        "There is no group 'c': choose a or b, or none for the whole service."
    ]
    assert not (checkout / ".demo").exists()


def test_more_stays_than_the_api_can_serve_is_one_sentence(tmp_path: Path) -> None:
    status, said = refused(tmp_path / "demo", free_ports(PORTS), "100001", "a")
    assert status == 1
    assert said == "A hospital behind an API has 100,000 stays at most here.\n"
    assert not (tmp_path / "demo").exists()
