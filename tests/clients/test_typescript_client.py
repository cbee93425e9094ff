"""The package for TypeScript, packed and installed: behaviour.yaml."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.clients.cases import CASES, COMPLETE, PARAMETERS, Case
from tests.clients.programs import TYPESCRIPT_DRIVER
from tests.clients.running import javascript_program, output
from tests.clients.service import Answer, Service
from toolkit.contract.hospital import IPP_SYSTEM

pytestmark = pytest.mark.system

Search = Mapping[str, Any]
Run = Callable[[Search], dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return what runs a search in a program that has installed the package."""
    folder = javascript_program(tmp_path_factory.mktemp("typescript"))
    sources = folder.parent / "sources"
    (folder / "main.ts").write_text(TYPESCRIPT_DRIVER, "utf-8")
    types = sources / "node_modules" / "@types"
    compiler = sources / "node_modules" / ".bin" / "tsc"
    options = ["--strict", "--target", "ES2022", "--module", "NodeNext"]
    options += ["--typeRoots", str(types), "--types", "node"]
    output([compiler, *options, "main.ts"], folder)

    def run_search(search: Search) -> dict[str, Any]:
        (folder / "search.json").write_text(json.dumps(search))
        result: dict[str, Any] = json.loads(output(["node", "main.js"], folder))
        return result

    return run_search


def options(served: Service, *, timeout: float = 60) -> Search:
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_iterator_behaves_as_the_table_says(
    case: Case, run: Run, service: Service
) -> None:
    case.begin(service)
    result = run(
        {
            "options": options(service, timeout=case.timeout),
            "parameters": {**PARAMETERS},
        }
    )
    assert result["error"] == case.error
    assert case.iterator_requests in (None, len(service.requests))
    assert service.tokens == case.tokens
    if case.error is None:
        assert sorted(set(result["ids"])) == case.ids
        assert result["invalidRows"] == len(case.invalid)
        assert result["total"] == case.total
        assert result["isComplete"] == (case.exit == COMPLETE)


def test_parameters_are_posted_as_they_are(run: Run, served: Service) -> None:
    parameters = {"_lastUpdated": "ge2024-03-30T08:15:00+01:00", "identifier": "é & =1"}
    result = run({"options": options(served), "parameters": parameters})
    assert result["ids"] == []
    assert served.requests[0].startswith("POST ")
    assert served.forms == [{**parameters, "_count": "100"}]


def test_errors_name_host_and_status_and_quote_nothing(
    run: Run, served: Service
) -> None:
    served.faults = {1: Answer(503, "0"), 2: Answer(403)}
    search = {"options": options(served), "parameters": {"identifier": "Martin"}}
    result = run(search)
    text = result["message"] + "".join(result["retries"])
    assert f"127.0.0.1:{served.port}: status 403, processing" in text
    assert f"127.0.0.1:{served.port}: status 503" in text
    for value in ("Martin", "eyJ", served.environ()["CLIENT_SECRET"], "No."):
        assert value not in text


def test_patients_are_read_with_their_stays(run: Run, served: Service) -> None:
    found = run({"options": options(served), "patient": "100"})
    assert sorted(found["ids"]) == ["1", "2"]
    missing = run({"options": options(served), "patient": "99"})
    assert missing["error"] == "NotFound"
    several = {"identifier": f"{IPP_SYSTEM}|100,{IPP_SYSTEM}|101"}
    refused = run({"options": options(served), "patient": several})
    assert refused["error"] == "Refused"
