"""deploy/chart: helm and Kubernetes take it, and the plain manifests are rendered from it."""

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from app.config import PREFIX, Settings
from tests.app.changing import SEAL_KEYS
from tests.deploy.test_compose import env_file
from tests.deploy.test_kubernetes import VERSIONS, check_explorer
from tests.live import ROOT

CHART = ROOT / "deploy" / "chart"
SCRIPT = ROOT / "deploy" / "kubernetes" / "generate.py"
MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
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


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_what_it_renders(version: str) -> None:
    objects = list(rendered("--set", "image.pullSecrets[0].name=registry"))
    for each in objects:
        assert kubernetes_validate.validate(each, version, strict=True) == version
        assert each["metadata"]["name"].startswith("pas")
    assert {each["kind"] for each in objects} == {
        *("ConfigMap", "Ingress", "NetworkPolicy", "PodDisruptionBudget"),
        *("Service", "StatefulSet"),
    }


def test_the_plain_manifests_are_rendered_from_it() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: make manifests"


def test_the_plain_settings_are_those_of_the_example() -> None:
    (proxies,) = EXAMPLE["trustedProxies"]
    settings = {**EXAMPLE["settings"], f"{PREFIX}TRUSTED_PROXIES": proxies}
    assert env_file(ROOT / "deploy" / "kubernetes" / "settings.env") == settings


EXPLORER = ("--set", "explorer.host=explorer.example.org")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_explorer_is_rendered_where_it_has_a_host(version: str) -> None:
    objects = list(rendered(*EXPLORER))
    for each in objects:
        assert kubernetes_validate.validate(each, version, strict=True) == version
    (settings,) = [e for e in objects if e["metadata"]["name"] == "pas-settings"]
    check_explorer(objects, settings["data"], "pas")
    assert not [e for e in rendered() if "explorer" in str(e).lower()]


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

    assert pod() == pod()
    assert pod() != pod("--set-file", f"mapping={__file__}")
    assert pod() != pod("--set-string", "settings.ENCOUNTERS_THREADS=17")


def test_an_image_is_pinned_by_its_digest() -> None:
    digest = f"sha256:{'0' * 64}"
    pod = one("StatefulSet", "--set", f"image.digest={digest}")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["image"] == f"registry.example.org/encounters@{digest}"


def test_unverified_tls_is_a_value_of_its_own() -> None:
    def data(*arguments: str) -> Any:
        return one("ConfigMap", *arguments, name="pas-settings")["data"]

    setting = f"{PREFIX}UNVERIFIED_TLS"
    assert setting not in data()
    assert data("--set", "unverifiedTls={redis,http}")[setting] == "redis,http"


REFUSED = {
    "no values": ("/host", []),
    "all pods are trusted": (
        "/trustedProxies",
        ["--set", "trustedProxies={10.244.0.0/16}"],
    ),
    "everybody is trusted": ("/trustedProxies", ["--set", "trustedProxies={::/0}"]),
    "anybody may connect": (
        "/networkPolicy/proxies",
        ["--set-json", "networkPolicy.proxies=[{}]"],
    ),
    "a secret among the settings": (
        "ENCOUNTERS_AUDIT_KEY",
        ["--set-string", "settings.ENCOUNTERS_AUDIT_KEY=k"],
    ),
    "an address of the explorer among the settings": (
        "ENCOUNTERS_EXPLORER_BIND",
        ["--set-string", "settings.ENCOUNTERS_EXPLORER_BIND=0.0.0.0:8003"],
    ),
    "a secret of the explorer among the settings": (
        "ENCOUNTERS_EXPLORER_CLIENT_SECRET",
        ["--set-string", "settings.ENCOUNTERS_EXPLORER_CLIENT_SECRET=s"],
    ),
    "any connection without TLS": (
        "/unverifiedTls/0",
        ["--set", "unverifiedTls={all}"],
    ),
    "a tag for a digest": ("/image/digest", ["--set", "image.digest=latest"]),
    "no mapping": ("mapping", ["--set-file", "mapping=/dev/null"]),
    "a misspelt value": ("'replica'", ["--set", "replica=3"]),
}
"""The value that helm's message names, and the arguments."""


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_would_be_unsafe_are_refused(name: str) -> None:
    value, arguments = REFUSED[name]
    example = ["--values", str(CHART / "example.yaml")] if arguments else []
    done = helm("template", *example, *arguments)
    assert done.returncode != 0
    assert value in done.stderr


def test_what_is_left_out_is_not_rendered() -> None:
    off = "ingress.enabled=false,networkPolicy.defaultDeny=false,configMaps=false"
    kinds = [each["kind"] for each in rendered("--set", off)]
    assert sorted(kinds) == [
        *("NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"),
    ]
    plain = one("Ingress", "--set", "ingress.clientCertificates=false")
    assert not [a for a in plain["metadata"]["annotations"] if "auth-tls" in a]
