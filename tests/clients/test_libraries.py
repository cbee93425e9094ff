"""FHIR libraries and a generated client, as docs/call/libraries.md uses them, against the demo."""

import json
import shutil
from pathlib import Path

import pytest
import requests

from tests.clients.running import install_pip, output
from tests.docs.pages import CALL, blocks
from tests.npm import npm_install

pytestmark = pytest.mark.extended

IDS = ["809", "414", "385", "1787", "1643", "1606", "1570", "1449", "1436", "8"]
"""The stays of patient 158, the newest first: on three pages of four."""

FHIRPY = """
import json, os
from fhirpy import SyncFHIRClient
from fhirpy.base.searchset import Raw

token = "Bearer " + os.environ["TOKEN"]
client = SyncFHIRClient(os.environ["BASE"], authorization=token)
stays = client.resources("Encounter").search(Raw(patient="Patient/158")).limit(4)
print(json.dumps([stay["id"] for stay in stays.fetch_all()]))
"""

FHIR_KIT_CLIENT = """
import { Client } from "fhir-kit-client";

const client = new Client({ baseUrl: process.env.BASE });
client.bearerToken = process.env.TOKEN;
const searchParams = { patient: "158", _count: 4, _include: "Encounter:patient" };
const entries = [];
let page = await client.search({ resourceType: "Encounter", searchParams });
while (page) {
  entries.push(...page.entry);
  page = await client.nextPage({ bundle: page });
}
const stays = entries.filter((entry) => entry.search.mode === "match");
console.log(JSON.stringify(stays.map((entry) => entry.resource.id)));
"""

GENERATED = """
import json, os
from urllib.parse import parse_qsl, urlsplit
from client import ApiClient, BundleApi, Configuration, Encounter, EncounterApi

configuration = Configuration(host=os.environ["BASE"], access_token=os.environ["TOKEN"])
client = ApiClient(configuration)
pages = [EncounterApi(client).search_encounter(patient="Patient/158", count=4)]
while links := [link.url for link in pages[-1].link if link.relation == "next"]:
    query = dict(parse_qsl(urlsplit(links[0]).query))
    names = {"id": "_id", "index": "_index", "search_after": "_searchAfter"}
    arguments = {name: query[text] for name, text in names.items()}
    pages.append(BundleApi(client).read_page(**arguments))
assert isinstance(pages[0].entry[0].resource.actual_instance, Encounter)
print(json.dumps([json.loads(page.to_json()) for page in pages]))
"""


def test_a_library_for_python(access, tmp_path):
    python = install_pip(tmp_path / "venv", "fhirpy==2.3.1")
    (tmp_path / "main.py").write_text(FHIRPY)
    printed = output([python, "main.py"], tmp_path, PYTHONPATH="", **access)
    assert json.loads(printed) == IDS


def test_a_library_for_javascript(access, tmp_path):
    (tmp_path / "package.json").write_text("{}")
    npm_install(tmp_path, "fhir-kit-client@2.0.3")
    (tmp_path / "main.mjs").write_text(FHIR_KIT_CLIENT)
    assert json.loads(output(["node", "main.mjs"], tmp_path, **access)) == IDS


def test_the_library_for_java_runs_the_program_of_the_page(access, tmp_path):
    if shutil.which("mvn") is None:
        pytest.skip("Maven is not installed")
    shutil.copy(Path(__file__).with_name("pom.xml"), tmp_path)
    sources = tmp_path / "src" / "main" / "java"
    sources.mkdir(parents=True)
    (block,) = blocks((CALL / "libraries.md").read_text("utf-8"), "java")
    (sources / "Stays.java").write_text(block.text, "utf-8")
    goals = ["compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    try:
        output(["mvn", "--quiet", "--batch-mode", *goals], tmp_path)
    except AssertionError as error:
        if "Could not transfer" in str(error):
            pytest.skip(f"Maven fails: {str(error)[-300:]}")
        raise
    path = f"target/classes:{(tmp_path / 'classpath').read_text()}"
    printed = output(["java", "-cp", path, "Stays"], tmp_path, **access)
    first, *lines, error = printed.splitlines()
    assert (first, error) == ("10 stays", "410 not-found")
    assert [line.split()[0] for line in lines] == IDS


def test_a_generated_client_keeps_what_is_sent(access, tmp_path):
    python = install_pip(tmp_path / "venv", "openapi-generator-cli==7.10.0")
    headers = {"Authorization": f"Bearer {access['TOKEN']}"}
    description = requests.get(f"{access['BASE']}/openapi.json", timeout=60)
    (tmp_path / "openapi.json").write_text(description.text, "utf-8")
    options = ["-i", "openapi.json", "-o", "generated", "--package-name", "client"]
    generate = [python.with_name("openapi-generator-cli"), "generate", "-g", "python"]
    output([*generate, *options], tmp_path)
    install_pip(tmp_path / "venv", str(tmp_path / "generated"))
    (tmp_path / "main.py").write_text(GENERATED)
    printed = output([python, "main.py"], tmp_path, PYTHONPATH="", **access)
    entries = [entry for page in json.loads(printed) for entry in page["entry"]]
    assert [entry["resource"]["id"] for entry in entries] == IDS
    for entry in entries:
        sent = requests.get(entry["fullUrl"], headers=headers, timeout=60).json()
        assert entry["resource"] == sent
