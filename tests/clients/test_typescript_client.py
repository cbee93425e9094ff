"""The package for TypeScript, packed and installed: behaviour.yaml."""

import json
import shutil
from pathlib import Path

import pytest

from tests.clients.cases import CASES, PARAMETERS
from tests.clients.running import javascript_program, output
from tests.clients.service import status
from toolkit.contract.hospital import IPP_SYSTEM

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the package and the driver, compiled."""
    folder = javascript_program(tmp_path_factory.mktemp("typescript"))
    modules = folder.parent / "sources" / "node_modules"
    shutil.copy(Path(__file__).with_name("driver.ts"), folder)
    options = ["--strict", "--target", "ES2022", "--module", "NodeNext"]
    options += ["--typeRoots", modules / "@types", "--types", "node"]
    output([modules / ".bin" / "tsc", *options, "driver.ts"], folder)
    return folder


@pytest.fixture
def run(folder, service):
    """Return what runs a search of a client that hardly waits."""

    def run(timeout=60, **search):
        environ = service.environ()
        options = {
            "base": environ["BASE"],
            "tokenUrl": environ["TOKEN_URL"],
            "clientId": environ["CLIENT_ID"],
            "clientSecret": environ["CLIENT_SECRET"],
            "timeoutSeconds": timeout,
            "retry": {"firstWaitSeconds": 0.01},
        }
        (folder / "search.json").write_text(json.dumps({"options": options, **search}))
        return json.loads(output(["node", "driver.js"], folder))

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_iterator_behaves_as_the_table_says(case, run, service):
    case.begin(service)
    result = run(case.timeout, parameters=PARAMETERS)
    case.assert_iterated(
        service, result["error"], result["ids"], result.get("search", {})
    )


def test_parameters_are_posted_as_they_are(run, served):
    parameters = {"_lastUpdated": "ge2024-03-30T08:15:00+01:00", "identifier": "é & =1"}
    result = run(parameters=parameters)
    assert result["ids"] == []
    assert served.requests[0].startswith("POST ")
    assert served.forms == [{**parameters, "_count": "100"}]


def test_errors_name_host_and_status_and_quote_nothing(run, served):
    served.faults = {1: status(503, "0"), 2: status(403)}
    result = run(parameters={"identifier": "Martin"})
    text = result["message"] + "".join(result["retries"])
    assert f"{served.host}: status 403, processing" in text
    assert f"{served.host}: status 503" in text
    for value in ("Martin", "eyJ", served.environ()["CLIENT_SECRET"], "No."):
        assert value not in text


def test_patients_are_read_with_their_stays(run, served):
    found = run(patient="100")
    assert sorted(found["ids"]) == ["1", "2"]
    missing = run(patient="99")
    assert missing["error"] == "NotFound"
    several = {"identifier": f"{IPP_SYSTEM}|100,{IPP_SYSTEM}|101"}
    refused = run(patient=several)
    assert refused["error"] == "Refused"
