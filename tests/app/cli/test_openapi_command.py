"""`encounters openapi`: what the deployment serves, without its database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from adapters.mapping.profile import PROFILES
from app.cli import main
from tests.app.conftest import MakeService
from tests.hospital_sql import mapping_text
from tests.live import ROOT
from tests.serving import BASE_URL
from toolkit.contract.hospital import EDGES

TOKEN_URL = "https://login.example.org/oauth/token"
GROUP_A = ROOT / "mappings/group-a/group-a.yaml"
SHIPPED = (
    GROUP_A,
    ROOT / "mappings/demo/demo.yaml",
    ROOT / "mappings/gnuhealth/gnuhealth-5.0.yaml",
)
HEADERS = "headers: {X-Cle-Api: {env: PAS_KEY}}"
OAUTH2 = (
    "auth: {oauth2: {token_url: {env: PAS_TOKEN_URL}, client_id: {env: PAS_CLIENT},"
    " client_secret: {env: PAS_SECRET}}}"
)

Printed = Callable[[Path], Any]


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Printed:
    """Return what prints the description of a deployment without its mapping's variables."""
    for name in ("PAS_URL", "PAS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ENCOUNTERS_BASE_URL", BASE_URL)
    monkeypatch.setenv("ENCOUNTERS_TOKEN_URL", TOKEN_URL)

    def run(file: Path) -> Any:
        monkeypatch.setenv("ENCOUNTERS_MAPPING", str(file))
        assert main(["openapi"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_shipped_mappings_need_no_address_and_no_secret(
    printed: Printed, tmp_path: Path
) -> None:
    text = GROUP_A.read_text("utf-8")
    assert HEADERS in text
    (file := tmp_path / "oauth2.yaml").write_text(text.replace(HEADERS, OAUTH2))
    for mapping in (*SHIPPED, file):
        description = printed(mapping)
        validate(description)
        assert description["servers"] == [{"url": BASE_URL}]
        (scheme,) = description["components"]["securitySchemes"].values()
        assert scheme["flows"]["clientCredentials"]["tokenUrl"] == TOKEN_URL


@pytest.mark.parametrize("profile", PROFILES)
def test_it_prints_what_the_deployment_serves(
    profile: str,
    printed: Printed,
    monkeypatch: pytest.MonkeyPatch,
    make_service: MakeService,
    tmp_path: Path,
) -> None:
    service = make_service(profile=profile, TOKEN_URL=TOKEN_URL)
    served = service.get("openapi.json", Authorization="").get_json()
    file = tmp_path / "without-address.yaml"
    text = mapping_text(EDGES).replace("profile: full", f"profile: {profile}")
    file.write_text(text, "utf-8")
    assert printed(file) == served
    # Nobody is asked where there is an address.
    monkeypatch.setenv("PAS_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert printed(file) == served


def test_faults_of_settings_and_mapping_are_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ENCOUNTERS_MAPPING", raising=False)
    monkeypatch.setenv("ENCOUNTERS_BASE_URL", "nonsense")
    assert main(["openapi"]) == 2
    errors = capsys.readouterr().err
    assert "ENCOUNTERS_MAPPING" in errors
    assert "ENCOUNTERS_BASE_URL" in errors
    assert "ENCOUNTERS_SEAL_KEYS" not in errors
    file = tmp_path / "mapping.yaml"
    file.write_text(mapping_text(EDGES).replace("sort: [date", "sort: [dates"), "utf-8")
    monkeypatch.setenv("ENCOUNTERS_MAPPING", str(file))
    monkeypatch.setenv("ENCOUNTERS_BASE_URL", BASE_URL)
    assert main(["openapi"]) == 2
    assert "'dates' is not a sort key" in capsys.readouterr().err
