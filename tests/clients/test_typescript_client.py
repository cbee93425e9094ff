"""The package for TypeScript, packed and installed, against the fault server: behaviour.yaml."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.clients.cases import CASES, COMPLETE, PAGE_SIZE, SERVED_CASES, Case
from tests.clients.fault_server import Answer, FaultServer, Page, serving
from tests.clients.hospital import filled
from tests.clients.programs import TYPESCRIPT_DRIVER
from tests.clients.running import javascript_program, output
from tests.clients.sql_service import SqlService

pytestmark = pytest.mark.system

Search = Mapping[str, Any]
Run = Callable[[list[Search]], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return what runs searches in a program that has installed the package."""
    folder = javascript_program(tmp_path_factory.mktemp("typescript"))
    sources = folder.parent / "sources"
    (folder / "main.ts").write_text(TYPESCRIPT_DRIVER, "utf-8")
    types = sources / "node_modules" / "@types"
    compiler = sources / "node_modules" / ".bin" / "tsc"
    options = ["--strict", "--target", "ES2022", "--module", "NodeNext"]
    options += ["--typeRoots", str(types), "--types", "node"]
    output([compiler, *options, "main.ts"], folder)

    def run_searches(searches: list[Search]) -> list[dict[str, Any]]:
        (folder / "searches.json").write_text(json.dumps(searches))
        results: list[dict[str, Any]] = json.loads(output(["node", "main.js"], folder))
        return results

    return run_searches


def options(served: FaultServer | SqlService, *, timeout: float = 60) -> Search:
    """Return the options of a client that hardly waits."""
    environ = served.environ()
    return {
        "base": environ["BASE"],
        "tokenUrl": environ["TOKEN_URL"],
        "clientId": environ["CLIENT_ID"],
        "clientSecret": environ["CLIENT_SECRET"],
        "timeoutSeconds": timeout,
        "retry": {"firstWaitSeconds": 0.01},
    }


@pytest.fixture
def served() -> Iterator[FaultServer]:
    """Return a fault server without faults, with 25 stays."""
    with serving(FaultServer(filled(25))) as server:
        yield server


def test_an_iterator_behaves_as_the_table_says(run: Run) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(case.service())) for case in CASES]
        searches = [
            {"options": options(served, timeout=case.timeout)}
            for case, served in zip(CASES, servers, strict=True)
        ]
        results = run(searches)
    for case, served, result in zip(CASES, servers, results, strict=True):
        assert result["error"] == case.error, case.name
        assert case.iterator_requests in (None, len(served.requests)), case.name
        assert served.tokens == case.tokens, case.name
        if case.error is None:
            assert sorted(set(result["ids"])) == case.ids, case.name
            assert result["invalidRows"] == len(case.invalid), case.name
            assert result["total"] == (25 if served.counting else None), case.name
            assert result["isComplete"] == (case.exit == COMPLETE), case.name


@pytest.mark.parametrize("case", SERVED_CASES, ids=lambda case: case.name)
def test_the_service_itself_is_read_as_the_table_says(
    case: Case, run: Run, service: SqlService
) -> None:
    service.open_case(case)
    parameters = {"_count": PAGE_SIZE, "_sort": "date"}
    (result,) = run([{"options": options(service), "parameters": parameters}])
    assert result["error"] == case.error
    assert case.iterator_requests in (None, len(service.requests))
    if case.error is None:
        assert sorted(result["ids"]) == case.ids
        assert result["isComplete"]


def test_parameters_are_posted_as_they_are(run: Run, served: FaultServer) -> None:
    parameters = {"date": "ge2024-03-30T08:15:00+01:00", "name:exact": "Noël & é=1"}
    (result,) = run([{"options": options(served), "parameters": parameters}])
    assert len(result["ids"]) == 25
    assert served.requests[0].startswith("POST ")
    assert served.searches["s1"] == {
        **parameters,
        "_count": "100",
        "type": "Encounter",
    }


def test_the_other_host_of_a_link_gets_no_request(run: Run) -> None:
    with serving(FaultServer(filled(1))) as other:

        def lead_away(page: dict[str, object], _: FaultServer) -> None:
            link = {"relation": "next", "url": f"{other.base}/Bundle?_id=s1"}
            page["link"] = [link]

        faults = {1: Page(lead_away)}
        with serving(FaultServer(filled(3), faults)) as served:
            (result,) = run([{"options": options(served)}])
    assert result["error"] == "Refused"
    assert other.requests == []


def test_errors_name_host_and_status_and_quote_nothing(run: Run) -> None:
    faults = {1: Answer(503, "0"), 2: Answer(403)}
    with serving(FaultServer(filled(1), faults)) as served:
        search = {"options": options(served), "parameters": {"name": "Martin"}}
        (result,) = run([search])
    text = result["message"] + "".join(result["retries"])
    assert f"127.0.0.1:{served.port}: status 403, processing" in text
    assert f"127.0.0.1:{served.port}: status 503" in text
    for value in ("Martin", "token-1", served.environ()["CLIENT_SECRET"], "No."):
        assert value not in text


def test_patients_are_read_with_their_stays(run: Run, served: FaultServer) -> None:
    (found,) = run([{"options": options(served), "patient": "100"}])
    assert found["ids"] == ["1", "2"]
    (missing,) = run([{"options": options(served), "patient": "99"}])
    assert missing["error"] == "NotFound"
    # Several patients: the fault server does not compare identifiers.
    several = {"identifier": "urn:oid:1.2|7"}
    (refused,) = run([{"options": options(served), "patient": several}])
    assert refused["error"] == "Refused"
