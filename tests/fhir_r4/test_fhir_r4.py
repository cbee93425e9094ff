"""mappings/fhir-r4 on a FHIR R4 server of somebody else, live or as it was recorded."""

import json
import re
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from adapters.contract import SourceDataError
from adapters.http.adapter import HttpAdapter
from adapters.mapping.load import load_mapping
from app.cli import main
from tests.fhir_r4 import recorded
from tests.fhir_r4.hospital import Json
from tests.fhir_r4.scenario import (
    BASE,
    H1,
    HOSPITAL,
    compare,
    compare_all,
    drafted,
    opened,
)
from tests.hospital_http import serving
from tests.toolkit.live_hospital import checked
from toolkit.contract.harness import (
    NEWEST_FIRST,
    ORGANIZATION,
    PATIENT,
    STAY,
    ask,
    token,
)

needs_java = pytest.mark.skipif(
    not (shutil.which("java") and shutil.which("mvn")), reason="Java and Maven"
)


def test_all_that_was_recorded_of_a_real_server_is_equal() -> None:
    replayer = recorded.Replayer(recorded.load())
    with serving(replayer) as url, opened(f"{url}/fhir") as adapter:
        compare_all(adapter)
        drafted(f"{url}/fhir")
    assert {*replayer.requests} == {*replayer.answers}


@pytest.mark.extended
@needs_java
def test_a_real_server_is_equal() -> None:
    with recorded.real_server() as url, opened(url) as adapter:
        compare_all(adapter)


@pytest.mark.extended
@needs_java
def test_check_live_has_no_error_on_a_real_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hospital.yaml"
    file.write_text(HOSPITAL, encoding="utf-8")
    with recorded.real_server() as url:
        monkeypatch.setenv("FHIR_URL", url)
        texts = [finding["text"] for finding in checked(file, capsys)]
        for fault in (" is wrong", "does not filter"):
            assert not any(fault in text for text in texts)
        # A server compares "ge" with the whole stay: the start has to be bound by "sa".
        text = HOSPITAL + (
            'encounter: {search: {date: {ge: "date=ge{value:%Y-%m-%dT%H:%M:%S%:z}",'
            ' lt: "date=lt{value:%Y-%m-%dT%H:%M:%S%:z}"}}}\n'
        )
        file.write_text(text, encoding="utf-8")
        texts = [finding["text"] for finding in checked(file, capsys)]
        assert any("'date' does not filter" in text for text in texts)


def test_a_draft_is_the_base_with_what_the_server_says(tmp_path: Path) -> None:
    with serving(recorded.Replayer(recorded.load())) as url:
        status, text = drafted(f"{url}/fhir")
        assert status == 0
        file = tmp_path / "new.yaml"
        file.write_text(text, encoding="utf-8")
        mapping = load_mapping(file, {})
        adapter = HttpAdapter(mapping)
        number = token("identifier", f"{H1}|000123")
        compare(adapter, STAY, (number,), NEWEST_FIRST)  # not of another system
        adapter.close()
    field = mapping.resources[STAY].fields["visit_number"]
    assert field.columns == (f"identifier[?system=='{H1}'].value | [0]",)
    # All that is not in the CapabilityStatement is a question.
    data = yaml.safe_load(text)
    assert data["source"]["url"] == f"{url}/fhir"
    for line in text.splitlines():
        is_guess = re.match(r"name:|time_zone:|    visit_number", line)
        assert is_guess is None or "  # ? " in line
    assert re.search(r"# \? clients see .*urn:oid:1\.2\.250\.1\.999\.2 \(\d+\)", text)


def test_a_draft_hides_an_address_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(recorded.Replayer(recorded.load())) as url:
        monkeypatch.setenv("R4_URL", f"{url}/fhir")
        _, text = drafted("env:R4_URL")
    assert yaml.safe_load(text)["source"]["url"] == {"env": "R4_URL"}
    assert url not in text


SMALL: Json = {
    "fhirVersion": "4.0.1",
    "rest": [
        {
            "mode": "server",
            "searchParam": [{"name": "_id"}],
            "resource": [
                {
                    "type": kind,
                    "interaction": [{"code": "read"}, {"code": "search-type"}],
                    "searchParam": [{"name": name} for name in names],
                }
                for kind, names in (
                    ("Encounter", ("patient", "date", "status", "class")),
                    ("Patient", ("name", "family", "given", "birthdate", "gender")),
                )
            ],
        }
    ],
}


@pytest.mark.parametrize("organization", [None, "read", "search-type"])
def test_a_draft_takes_away_what_the_server_has_not(
    tmp_path: Path, organization: str | None
) -> None:
    """The server does not let anybody read without credentials, but for its statement."""
    statement = deepcopy(SMALL)
    if organization:
        code = {"type": "Organization", "interaction": [{"code": organization}]}
        statement["rest"][0]["resource"].append(code)
    answers = {"/fhir/metadata": [200, json.dumps(statement)]}
    with serving(recorded.Replayer(answers, otherwise=401)) as url:
        status, text = drafted(f"{url}/fhir")
    assert status == 0
    file = tmp_path / "new.yaml"
    file.write_text(text, encoding="utf-8")
    resources = load_mapping(file, {}).resources
    assert "# ? which system do visit numbers have?" in text
    offered = {"_id", "patient", "date", "status", "class"}
    assert {*resources[STAY].parameters} == offered
    assert "identifier" not in resources[PATIENT].parameters
    assert (ORGANIZATION in resources) is bool(organization)
    if organization:
        http = resources[ORGANIZATION].http
        assert http is not None
        assert (http.list is not None) is (organization == "search-type")
    else:
        assert "organization_id" not in resources[STAY].fields


def test_another_address_is_no_fhir_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for status, text, reason in (
        (200, '{"fhirVersion": "3.0.1"}', "version 4"),
        (200, "[1]", "version 4"),
        (200, "no JSON", "JSON"),
        (404, "{}", "version 4"),
        (200, '{"fhirVersion": "4.0.1"}', "Encounter"),
    ):
        answers = {"/fhir/metadata": [status, text]}
        with serving(recorded.Replayer(answers)) as url:
            assert drafted(f"{url}/fhir") == (2, "")
        error = capsys.readouterr().err
        assert reason in error
        assert "docs/bring/guide-http.md" in error


def test_the_base_is_sound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FHIR_URL", "https://fhir.example.org/r4")
    assert main(["mapping", "check", str(BASE)]) == 0
    assert "warning" not in capsys.readouterr().out


def test_an_answer_that_is_no_bundle_is_no_empty_list() -> None:
    answers = {key: [200, '{"resourceType": "Basic"}'] for key in recorded.load()}
    replayer = recorded.Replayer(answers)
    with serving(replayer) as url, opened(f"{url}/fhir") as adapter:
        query = ask(of=STAY, count=20)
        with pytest.raises(SourceDataError, match="total"):
            adapter.search(query)
