"""`encounters kit`: requests for what a deployment offers, and nothing secret."""

import json
from pathlib import Path

import pytest

from app.cli import main
from tests.hospital_sql import mapping_text
from toolkit.contract.hospital import EDGES

SETTINGS = {
    "ENCOUNTERS_BASE_URL": "https://encounters.example.org/fhir/v3",
    "ENCOUNTERS_TOKEN_URL": "https://login.example.org/oauth/token",
    "ENCOUNTERS_AUDIENCE": "https://encounters.example.org/",
    "ENCOUNTERS_SEAL_KEYS": "a-secret-of-the-deployment",
}


@pytest.mark.parametrize("profile", ["full", "group-a", "group-b"])
def test_it_has_what_the_profile_offers_and_no_secret(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of the database is not needed."""
    mapping, out = tmp_path / "hospital.yaml", tmp_path / "kit"
    text = mapping_text(EDGES).replace("profile: full", f"profile: {profile}")
    mapping.write_text(text, "utf-8")
    monkeypatch.delenv("PAS_URL", raising=False)
    for name, value in {**SETTINGS, "ENCOUNTERS_MAPPING": str(mapping)}.items():
        monkeypatch.setenv(name, value)
    assert main(["kit", "--out", str(out)]) == 0
    files = {
        str(file.relative_to(out)): file.read_text("utf-8")
        for file in out.rglob("*")
        if file.is_file()
    }
    numbered = sorted(name for name in files if name.endswith(".bru") and " " in name)
    requests = [name.partition(" ")[2].removesuffix(".bru") for name in numbered]

    always = {"Encounter patient", "Encounter read", "Patient name", "422 no criterion"}
    assert always <= set(requests)
    for request in ("Encounter status", "next page", "Organization name"):
        assert (request in requests) is (profile == "full")
    statuses = {int(name[:3]) for name in requests if name[:3].isdigit()}
    assert statuses == {400, 401, 404, 405, 406, 412, 415, 422}

    lines = files["requests.http"].splitlines()
    titles = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert titles == requests

    variables = json.loads(files["http-client.env.json"])["deployment"]
    names = {"base": "BASE_URL", "token_url": "TOKEN_URL", "audience": "AUDIENCE"}
    for variable, name in names.items():
        assert variables[variable] == SETTINGS[f"ENCOUNTERS_{name}"]
    for variable, value in variables.items():
        line = f"  {variable}: {value}\n"
        assert line in files["bruno/environments/deployment.bru"]
    assert SETTINGS["ENCOUNTERS_TOKEN_URL"] in files["openapi.json"]

    everything = "".join(files.values())
    assert SETTINGS["ENCOUNTERS_SEAL_KEYS"] not in everything
    assert "{{client_secret}}" in everything


def test_without_a_mapping_it_names_the_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("ENCOUNTERS_MAPPING", raising=False)
    assert main(["kit", "--out", str(tmp_path)]) == 2
    assert "ENCOUNTERS_MAPPING" in capsys.readouterr().err
