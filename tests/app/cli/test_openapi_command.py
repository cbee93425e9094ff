"""`encounters openapi`: what the deployment serves, without its database."""

import json
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from adapters.mapping.profile import PROFILES
from adapters.testing.hospital import EDGES
from app.cli import main
from tests.hospital_sql import mapping_text
from tests.live import ROOT
from tests.redis_server import RedisServer
from tests.serving import BASE_URL, serve

TOKEN_URL = "https://login.example.org/oauth/token"
MAPPINGS = (
    "demo/demo",
    "gnuhealth/gnuhealth-5.0",
    "group-a/group-a",
    "group-b/group-b",
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure a deployment without the variables that its mapping names."""
    for name in ("PAS_URL", "PAS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENCOUNTERS_BASE_URL", BASE_URL)
    monkeypatch.setenv("ENCOUNTERS_TOKEN_URL", TOKEN_URL)


def printed(capsys: Capture, monkeypatch: pytest.MonkeyPatch, file: Path) -> Any:
    monkeypatch.setenv("ENCOUNTERS_MAPPING", str(file))
    assert main(["openapi"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", MAPPINGS)
def test_shipped_mappings_need_no_address(
    name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = printed(capsys, monkeypatch, ROOT / "mappings" / f"{name}.yaml")
    validate(description)
    assert description["servers"] == [{"url": BASE_URL}]
    (scheme,) = description["components"]["securitySchemes"].values()
    assert scheme["flows"]["clientCredentials"]["tokenUrl"] == TOKEN_URL


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("url", [None, "postgresql://nobody@127.0.0.1:1/none"])
def test_it_prints_what_the_deployment_serves(
    profile: str,
    url: str | None,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    redis_server: RedisServer,
    tmp_path: Path,
) -> None:
    service = serve(
        EDGES, tmp_path, redis_server.url, profile=profile, TOKEN_URL=TOKEN_URL
    )
    file = tmp_path / "without-address.yaml"
    text = mapping_text(EDGES).replace("profile: full", f"profile: {profile}")
    file.write_text(text, "utf-8")
    if url:
        monkeypatch.setenv("PAS_URL", url)
    served = service.get("openapi.json", Authorization="").get_json()
    assert printed(capsys, monkeypatch, file) == served


def test_secrets_of_an_api_are_not_needed(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (ROOT / "mappings/group-a/group-a.yaml").read_text("utf-8")
    headers = "headers: {X-Cle-Api: {env: PAS_KEY}}"
    auth = (
        "auth: {oauth2: {token_url: {env: PAS_TOKEN_URL}, client_id: {env: PAS_CLIENT},"
        " client_secret: {env: PAS_SECRET}}}"
    )
    assert headers in text
    file = tmp_path / "mapping.yaml"
    file.write_text(text.replace(headers, auth), "utf-8")
    assert "/Encounter" in printed(capsys, monkeypatch, file)["paths"]


def test_settings_at_fault_are_named(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENCOUNTERS_MAPPING", raising=False)
    monkeypatch.setenv("ENCOUNTERS_BASE_URL", "nonsense")
    assert main(["openapi"]) == 2
    told = capsys.readouterr().err
    assert "ENCOUNTERS_MAPPING" in told
    assert "ENCOUNTERS_BASE_URL" in told
    assert "ENCOUNTERS_SEAL_KEYS" not in told


def test_a_mapping_at_fault_is_reported(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "mapping.yaml"
    file.write_text(mapping_text(EDGES).replace("sort: [date", "sort: [dates"), "utf-8")
    monkeypatch.setenv("ENCOUNTERS_MAPPING", str(file))
    assert main(["openapi"]) == 2
    assert "'dates' is not a sort key" in capsys.readouterr().err
