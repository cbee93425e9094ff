"""`encounters kit`: requests for what a deployment offers, and nothing secret."""

import json
from pathlib import Path

import pytest

from adapters.testing.hospital import EDGES
from app.cli import main
from tests.hospital_sql import mapping_text

SETTINGS = {
    "ENCOUNTERS_BASE_URL": "https://encounters.example.org/fhir/v3",
    "ENCOUNTERS_TOKEN_URL": "https://login.example.org/oauth/token",
    "ENCOUNTERS_AUDIENCE": "https://encounters.example.org/",
    "ENCOUNTERS_SEAL_KEYS": "a-secret-of-the-deployment",
}


@pytest.fixture(params=["full", "group-a", "group-b"])
def profile(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Configure a deployment with each profile, without the address of its database."""
    file = tmp_path / "hospital.yaml"
    text = mapping_text(EDGES).replace("profile: full", f"profile: {request.param}")
    file.write_text(text, "utf-8")
    monkeypatch.delenv("PAS_URL", raising=False)
    settings = {**SETTINGS, "ENCOUNTERS_MAPPING": str(file)}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return str(request.param)


def written(out: Path) -> dict[str, str]:
    assert main(["kit", "--out", str(out)]) == 0
    files = (file for file in out.rglob("*") if file.is_file())
    return {str(f.relative_to(out)): f.read_text("utf-8") for f in files}


def test_it_has_what_the_profile_offers(profile: str, tmp_path: Path) -> None:
    files = written(tmp_path / "kit")
    names = {name.partition(" ")[2] for name in files if name.startswith("bruno/")}
    is_full = profile == "full"
    assert {"Encounter patient.bru", "Encounter read.bru", "Patient name.bru"} <= names
    assert ("Encounter status.bru" in names) is is_full
    assert ("next page.bru" in names) is is_full
    assert ("Organization name.bru" in names) is is_full
    assert "422 no criterion.bru" in names


def test_both_formats_have_the_same_requests(profile: str, tmp_path: Path) -> None:
    files = written(tmp_path / "kit")
    lines = files["requests.http"].splitlines()
    titles = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    numbered = sorted(name for name in files if name.endswith(".bru") and " " in name)
    assert titles == [n.partition(" ")[2].removesuffix(".bru") for n in numbered]


def test_its_variables_are_those_of_the_deployment(
    profile: str, tmp_path: Path
) -> None:
    files = written(tmp_path / "kit")
    variables = json.loads(files["http-client.env.json"])["deployment"]
    names = ("BASE_URL", "TOKEN_URL", "AUDIENCE")
    settings = [SETTINGS[f"ENCOUNTERS_{name}"] for name in names]
    assert [variables[n] for n in ("base", "token_url", "audience")] == settings
    for name, text in variables.items():
        assert f"  {name}: {text}\n" in files["bruno/environments/deployment.bru"]
    assert SETTINGS["ENCOUNTERS_TOKEN_URL"] in files["openapi.json"]


def test_each_error_of_a_client_has_a_request(profile: str, tmp_path: Path) -> None:
    names = [name.partition(" ")[2] for name in written(tmp_path / "kit")]
    statuses = {int(name[:3]) for name in names if name[:3].isdigit()}
    assert statuses == {400, 401, 404, 405, 406, 412, 415, 422}


def test_no_file_has_a_secret(profile: str, tmp_path: Path) -> None:
    text = "".join(written(tmp_path / "kit").values())
    assert SETTINGS["ENCOUNTERS_SEAL_KEYS"] not in text
    assert "{{client_secret}}" in text


def test_without_a_mapping_it_names_the_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("ENCOUNTERS_MAPPING", raising=False)
    assert main(["kit", "--out", str(tmp_path)]) == 2
    assert "ENCOUNTERS_MAPPING" in capsys.readouterr().err
