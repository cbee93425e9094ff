"""mappings/fhir-r4 on a FHIR R4 server of somebody else, live or as it was recorded."""

import json
import re
import shutil
from copy import deepcopy

import pytest
import yaml

from adapters.contract import SourceDataError
from adapters.mapping.load import load_mapping
from tests.fhir_r4.recorded import (
    H1,
    HOSPITAL,
    Upstream,
    compare_all,
    drafted,
    load,
    opened,
    real_server,
)
from tests.hospital_http import serving
from tests.toolkit.live_hospital import checked
from toolkit.contract.harness import ORGANIZATION, PATIENT, STAY, ask

HAS_JAVA = shutil.which("java") and shutil.which("mvn")


def test_all_that_was_recorded_of_a_real_server_is_equal():
    upstream = Upstream(load())
    with serving(upstream) as url, opened(f"{url}/fhir") as adapter:
        compare_all(adapter)
        drafted(f"{url}/fhir")
    assert upstream.requests == upstream.answers.keys()


@pytest.mark.extended
@pytest.mark.skipif(not HAS_JAVA, reason="Java and Maven")
def test_a_real_server_is_equal_and_has_no_error(tmp_path, monkeypatch, capsys):
    file = tmp_path / "hospital.yaml"
    file.write_text(HOSPITAL, encoding="utf-8")
    with real_server() as url, opened(url) as adapter:
        compare_all(adapter)
        monkeypatch.setenv("FHIR_URL", url)
        for finding in checked(file, capsys):
            assert not re.search(" is wrong|does not filter", finding["text"])
        # A server compares "ge" with the whole stay: the start has to be bound by "sa".
        bounds = (
            'encounter: {search: {date: {ge: "date=ge{value:%Y-%m-%dT%H:%M:%S%:z}",'
            ' lt: "date=lt{value:%Y-%m-%dT%H:%M:%S%:z}"}}}\n'
        )
        file.write_text(HOSPITAL + bounds, encoding="utf-8")
        texts = [finding["text"] for finding in checked(file, capsys)]
        assert any("'date' does not filter" in text for text in texts)


def test_a_draft_is_the_base_with_what_the_server_says(tmp_path, monkeypatch):
    file = tmp_path / "new.yaml"
    with serving(Upstream(load())) as url:
        status, text = drafted(f"{url}/fhir")
        monkeypatch.setenv("R4_URL", f"{url}/fhir")
        _, hidden = drafted("env:R4_URL")
    assert status == 0
    file.write_text(text, encoding="utf-8")
    field = load_mapping(file, {}).resources[STAY].fields["visit_number"]
    assert field.columns == (f"identifier[?system=='{H1}'].value | [0]",)
    # All that is not in the CapabilityStatement is a question.
    assert yaml.safe_load(text)["source"]["url"] == f"{url}/fhir"
    for line in text.splitlines():
        is_guess = re.match(r"name:|time_zone:|    visit_number", line)
        assert is_guess is None or "  # ? " in line
    assert re.search(r"# \? clients see .*urn:oid:1\.2\.250\.1\.999\.2 \(\d+\)", text)
    # An address of the environment is hidden.
    assert yaml.safe_load(hidden)["source"]["url"] == {"env": "R4_URL"}
    assert url not in hidden


INTERACTION = [{"code": "read"}, {"code": "search-type"}]
OFFERED = {
    "Encounter": ("patient", "date", "status", "class"),
    "Patient": ("name", "family", "given", "birthdate", "gender"),
}
RESOURCES = [
    {
        "type": kind,
        "interaction": INTERACTION,
        "searchParam": [{"name": name} for name in names],
    }
    for kind, names in OFFERED.items()
]
REST = {"mode": "server", "searchParam": [{"name": "_id"}], "resource": RESOURCES}
STATEMENT = {"fhirVersion": "4.0.1", "rest": [REST]}


@pytest.mark.parametrize("organization", [None, "read", "search-type"])
def test_a_draft_takes_away_what_the_server_has_not(tmp_path, organization):
    """The server requires credentials, but for its statement."""
    statement = deepcopy(STATEMENT)
    if organization:
        code = {"type": "Organization", "interaction": [{"code": organization}]}
        statement["rest"][0]["resource"].append(code)
    answers = {"/fhir/metadata": [200, json.dumps(statement)]}
    with serving(Upstream(answers, otherwise=401)) as url:
        status, text = drafted(f"{url}/fhir")
    assert status == 0
    file = tmp_path / "new.yaml"
    file.write_text(text, encoding="utf-8")
    resources = load_mapping(file, {}).resources
    assert "# ? which system do visit numbers have?" in text
    assert {*resources[STAY].parameters} == {"_id", *OFFERED["Encounter"]}
    assert "identifier" not in resources[PATIENT].parameters
    assert (ORGANIZATION in resources) is bool(organization)
    if organization:
        is_listed = resources[ORGANIZATION].http.list is not None
        assert is_listed is (organization == "search-type")
    else:
        assert "organization_id" not in resources[STAY].fields


def test_another_address_is_no_fhir_server(capsys):
    for status, text, reason in (
        (200, '{"fhirVersion": "3.0.1"}', "version 4"),
        (200, "no JSON", "JSON"),
        (404, "{}", "version 4"),
        (200, '{"fhirVersion": "4.0.1"}', "Encounter"),
    ):
        with serving(Upstream({"/fhir/metadata": [status, text]})) as url:
            assert drafted(f"{url}/fhir") == (2, "")
        error = capsys.readouterr().err
        assert reason in error
        assert "docs/bring/guide-http.md" in error


def test_an_answer_that_is_no_bundle_is_no_empty_list():
    answers = {key: [200, '{"resourceType": "Basic"}'] for key in load()}
    with (
        serving(Upstream(answers)) as url,
        opened(f"{url}/fhir") as adapter,
        pytest.raises(SourceDataError, match="total"),
    ):
        adapter.search(ask(of=STAY, count=20))
