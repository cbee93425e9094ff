"""The kit that `encounters kit` writes, run by Bruno and by httpyac against the demo."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from app.search.parser import PRESENTATION
from demo.issuer import DEFAULT_CLIENT
from demo.state import deployment
from tests.clients.running import install_npm, output
from tests.demo.running import started
from tests.live import ROOT

TOOLS = ("@usebruno/cli@4.1.0", "httpyac@6.16.7")


@dataclass(frozen=True)
class Kit:
    """A kit, and the variables that a client fills in."""

    directory: Path
    variables: Mapping[str, str]
    secret: str


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the programs that run a kit."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    directory = tmp_path_factory.mktemp("tools")
    install_npm(directory, *TOOLS)
    return directory / "node_modules" / ".bin"


@pytest.fixture(scope="module", params=["", "a", "b"], ids=["full", "a", "b"])
def kit(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kit]:
    """Run the demo of a group, and write its kit with the service's own environment."""
    root = tmp_path_factory.mktemp("demo")
    with started(root / "data", root / "log", group=request.param) as demo:
        environ = demo.child("app.server").environ()
        command = [sys.executable, "-m", "app.cli", "kit", "--out", root / "kit"]
        output(command, ROOT, **environ)
        variables = {"client_id": DEFAULT_CLIENT}
        place = deployment(request.param).directory(root / "data")
        yield Kit(root / "kit", variables, place.client_secret().read_text())


def test_bruno_runs_it(kit: Kit, tools: Path, tmp_path: Path) -> None:
    variables = {**kit.variables, "client_secret": kit.secret}
    options = [f"--env-var={name}={text}" for name, text in variables.items()]
    report = tmp_path / "report.json"
    command = [tools / "bru", "run", "--env=deployment", f"--reporter-json={report}"]
    output([*command, *options], kit.directory / "bruno")
    (results,) = json.loads(report.read_text("utf-8"))
    requests = list((kit.directory / "bruno").glob("*.bru"))
    assert results["summary"]["passedRequests"] == len(requests) > 20
    assert results["summary"]["passedAssertions"] == len(requests)
    assert searched(kit) <= set(_sent(results["results"]))


def searched(kit: Kit) -> set[tuple[str, str]]:
    """Return each search parameter of the deployment's description, by path."""
    paths = json.loads((kit.directory / "openapi.json").read_text("utf-8"))["paths"]
    return {
        (path, name)
        for path, operations in paths.items()
        if path.endswith("/_search")
        for name in _schema(operations["post"])["properties"]
        if name not in PRESENTATION
    }


def _schema(operation: Any) -> Any:
    (content,) = operation["requestBody"]["content"].values()
    return content["schema"]


def _sent(results: Any) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the requests that were answered with 200, by path."""
    for each in results:
        request, status = each["request"], each["response"]["status"]
        _, found, path = request["url"].partition("/fhir/v3")
        if found and status == 200:
            yield from ((path, name) for name, _ in parse_qsl(request.get("data", "")))


def test_an_http_parser_runs_it(kit: Kit, tools: Path) -> None:
    file = kit.directory / "http-client.env.json"
    written = json.loads(file.read_text("utf-8"))["deployment"]
    text = json.dumps({"deployment": {**written, **kit.variables}})
    file.write_text(text, "utf-8")
    options = ["--all", "--env", "deployment", "--json"]
    options += ["--var", f"client_secret={kit.secret}"]
    command = [tools / "httpyac", "send", "requests.http", *options]
    printed = output(command, kit.directory)
    summary = json.loads(printed)["summary"]
    requests = (kit.directory / "requests.http").read_text("utf-8").count("### ")
    assert summary["successRequests"] == summary["totalRequests"] == requests
    assert summary["successTests"] == summary["totalTests"] == requests
