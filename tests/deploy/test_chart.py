"""deploy/chart: helm and Kubernetes take it, and the plain manifests are rendered from it."""

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.config import PREFIX, Settings
from tests.app.changing import SEAL_KEYS
from tests.deploy.test_compose import env_file
from tests.deploy.test_kubernetes import MAPPING, check_explorer, check_schema
from tests.live import ROOT

CHART = ROOT / "deploy" / "chart"
SCRIPT = ROOT / "deploy" / "kubernetes" / "generate.py"
EXAMPLE = yaml.safe_load((CHART / "example.yaml").read_text("utf-8"))
HELM = runpy.run_path(str(SCRIPT))["helm"]()

pytestmark = pytest.mark.skipif(
    HELM is None, reason="helm is not installed here: .ci/helm builds it where Go is"
)


def helm(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run helm on the chart, with the mapping of group A."""
    named = ["pas"] if command == "template" else []
    return subprocess.run(
        [
            *(str(HELM), command, *named, str(CHART), "--namespace", "hospital"),
            *("--set-file", f"mapping={MAPPING}", *arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def rendered(*arguments: str) -> Iterator[Any]:
    """Yield the objects of a release that is called `pas`."""
    done = helm("template", "--values", str(CHART / "example.yaml"), *arguments)
    assert done.returncode == 0, done.stderr
    yield from filter(None, yaml.safe_load_all(done.stdout))


def one(kind: str, *arguments: str, name: str = "pas") -> Any:
    (found,) = [
        each
        for each in rendered(*arguments)
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


def test_helm_finds_nothing_to_mend() -> None:
    done = helm("lint", "--strict", "--values", str(CHART / "example.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubernetes_takes_what_it_renders() -> None:
    objects = list(rendered("--set", "image.pullSecrets[0].name=registry"))
    check_schema(objects)
    assert all(each["metadata"]["name"].startswith("pas") for each in objects)
    assert "explorer" not in str(objects).lower()
    kinds = {"ConfigMap", "Ingress", "NetworkPolicy", "PodDisruptionBudget", "Service"}
    assert {each["kind"] for each in objects} == kinds | {"StatefulSet"}


def test_the_plain_manifests_are_rendered_from_it() -> None:
    command = [sys.executable, str(SCRIPT), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: make manifests"
    (proxies,) = EXAMPLE["trustedProxies"]
    settings = {**EXAMPLE["settings"], f"{PREFIX}TRUSTED_PROXIES": proxies}
    assert env_file(ROOT / "deploy" / "kubernetes" / "settings.env") == settings


EXPLORER = ("--set", "explorer.host=explorer.example.org")


def test_the_explorer_is_rendered_where_it_has_a_host() -> None:
    objects = list(rendered(*EXPLORER))
    check_schema(objects)
    (settings,) = [e for e in objects if e["metadata"]["name"] == "pas-settings"]
    check_explorer(objects, settings["data"], "pas")


@pytest.mark.parametrize("more", [(), EXPLORER], ids=len)
def test_the_settings_start(tmp_path: Path, more: tuple[str, ...]) -> None:
    settings = one("ConfigMap", *more, name="pas-settings")["data"]
    mapping = one("ConfigMap", name="pas-mapping")["data"]["hospital.yaml"]
    assert mapping == MAPPING.read_text("utf-8")
    settings |= {
        "ENCOUNTERS_REDIS_URL": "redis://127.0.0.1/0",
        "ENCOUNTERS_SEAL_KEYS": SEAL_KEYS[0],
        "ENCOUNTERS_AUDIT": str(tmp_path / "audit.jsonl"),
        "ENCOUNTERS_AUDIT_KEY": "k" * 44,
        "ENCOUNTERS_MAPPING": __file__,
    }
    assert Settings.from_environ(settings).base_url.endswith("/fhir/v3")


def test_a_new_mapping_is_a_new_pod() -> None:
    def pod(*arguments: str) -> Any:
        return one("StatefulSet", *arguments)["spec"]["template"]

    assert pod() != pod("--set-file", f"mapping={__file__}")
    assert pod() != pod("--set-string", "settings.ENCOUNTERS_THREADS=17")


def test_values_reach_the_pod() -> None:
    digest = f"sha256:{'0' * 64}"
    (container,) = one("StatefulSet", "--set", f"image.digest={digest}")["spec"][
        "template"
    ]["spec"]["containers"]
    assert container["image"] == f"registry.example.org/encounters@{digest}"
    name, unverified = f"{PREFIX}UNVERIFIED_TLS", "unverifiedTls={redis,http}"
    assert name not in one("ConfigMap", name="pas-settings")["data"]
    settings = one("ConfigMap", "--set", unverified, name="pas-settings")["data"]
    assert settings[name] == "redis,http"


REFUSED = (
    ("/trustedProxies", "--set trustedProxies={10.244.0.0/16}"),
    ("/trustedProxies", "--set trustedProxies={::/0}"),
    ("/networkPolicy/proxies", "--set-json networkPolicy.proxies=[{}]"),
    ("AUDIT_KEY", "--set-string settings.ENCOUNTERS_AUDIT_KEY=k"),
    ("EXPLORER_BIND", "--set-string settings.ENCOUNTERS_EXPLORER_BIND=0.0.0.0:8003"),
    ("CLIENT_SECRET", "--set-string settings.ENCOUNTERS_EXPLORER_CLIENT_SECRET=s"),
    ("/unverifiedTls/0", "--set unverifiedTls={all}"),
    ("/image/digest", "--set image.digest=latest"),
    ("mapping", "--set-file mapping=/dev/null"),
    ("'replica'", "--set replica=3"),
)
"""What helm's message names, and the arguments."""


def test_values_that_would_be_unsafe_are_refused() -> None:
    assert "/host" in helm("template").stderr, "no values"
    for named, arguments in REFUSED:
        example = ("--values", str(CHART / "example.yaml"))
        done = helm("template", *example, *arguments.split())
        assert done.returncode != 0, arguments
        assert named in done.stderr, arguments


def test_what_is_left_out_is_not_rendered() -> None:
    off = "ingress.enabled=false,networkPolicy.defaultDeny=false,configMaps=false"
    kinds = [each["kind"] for each in rendered("--set", off)]
    assert sorted(kinds) == [
        *("NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"),
    ]
    plain = one("Ingress", "--set", "ingress.clientCertificates=false")
    assert not [a for a in plain["metadata"]["annotations"] if "auth-tls" in a]
