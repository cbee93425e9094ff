"""deploy/chart: helm and Kubernetes take it, and the plain manifests are rendered from it."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from requests.adapters import HTTPAdapter

from app.config import PREFIX
from tests.certificates import certify
from tests.deploy.peak import most_bytes
from tests.deploy.proxies import NGINX, Proxy, echoing
from tests.deploy.test_compose import env_file
from tests.deploy.test_kubernetes import MAPPING, check_schema
from tests.live import HOST as HERE
from tests.live import ROOT, free_ports, listens, wait_until

CHART = ROOT / "deploy" / "chart"
SCRIPT = ROOT / "deploy" / "kubernetes" / "generate.py"
EXAMPLE = yaml.safe_load((CHART / "example.yaml").read_text("utf-8"))
HELM = runpy.run_path(str(SCRIPT))["helm"]()

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        HELM is None,
        reason="helm is not installed here: .ci/helm builds it where Go is",
    ),
]


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


PROXY: dict[str, Any] = {"enabled": True, "image": {"digest": f"sha256:{'0' * 64}"}}
PARENTS = {"enabled": True, "parentRefs": [{"name": "gateway"}]}
NO_INGRESS = {"enabled": False}
LABELS = {"app.kubernetes.io/name": "encounters", "app.kubernetes.io/instance": "pas"}
HOST = EXAMPLE["host"]

VALUES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "scheduling": (
        {
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "hospital", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "clinical",
        },
        [],
    ),
    "labels": (
        {
            "annotations": {"reloader.stakater.com/auto": "true"},
            "podAnnotations": {"note": "x"},
            "podLabels": {"team": "x"},
            "service": {"annotations": {"note": "x"}},
        },
        [],
    ),
    "volumes": (
        {
            "extraEnv": [{"name": "TNS_ADMIN", "value": "/opt/wallet"}],
            "extraVolumes": [{"name": "wallet", "secret": {"secretName": "wallet"}}],
            "extraVolumeMounts": [{"name": "wallet", "mountPath": "/opt/wallet"}],
        },
        [],
    ),
    "account": ({"serviceAccount": {"create": True, "name": "reader"}}, []),
    "image": ({"image": {"pullPolicy": "Always", "pullSecrets": [{"name": "r"}]}}, []),
    "openshift": (
        {
            "podSecurityContext": dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup")),
            "ingress": NO_INGRESS,
            "proxy": PROXY,
            "route": {"enabled": True},
        },
        [
            {
                "apiVersion": "route.openshift.io/v1",
                "kind": "Route",
                "spec": {
                    "host": HOST,
                    "to": {"kind": "Service", "name": "pas"},
                    "port": {"targetPort": "http"},
                    "tls": {
                        "termination": "edge",
                        "insecureEdgeTerminationPolicy": "None",
                        "externalCertificate": {"name": "pas-tls"},
                    },
                },
            }
        ],
    ),
    "passthrough": (
        {
            "ingress": NO_INGRESS,
            "proxy": PROXY | {"tls": True, "clientCertificates": True},
            "route": {"enabled": True},
            "gateway": PARENTS,
        },
        [
            {
                "apiVersion": "route.openshift.io/v1",
                "kind": "Route",
                "spec": {
                    "host": HOST,
                    "to": {"kind": "Service", "name": "pas"},
                    "port": {"targetPort": "http"},
                    "tls": {"termination": "passthrough"},
                },
            },
            {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "TLSRoute",
                "spec": {
                    "parentRefs": [{"name": "gateway"}],
                    "hostnames": [HOST],
                    "rules": [{"backendRefs": [{"name": "pas", "port": 443}]}],
                },
            },
        ],
    ),
    "gateway": (
        {"ingress": NO_INGRESS, "proxy": PROXY, "gateway": PARENTS},
        [
            {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "HTTPRoute",
                "spec": {
                    "parentRefs": [{"name": "gateway"}],
                    "hostnames": [HOST],
                    "rules": [
                        {
                            "backendRefs": [{"name": "pas", "port": 80}],
                            "matches": [
                                {"path": {"type": "PathPrefix", "value": "/fhir/v3"}}
                            ],
                            "timeouts": {"request": "70s"},
                        }
                    ],
                },
            }
        ],
    ),
    "any ingress": (
        {
            "proxy": PROXY,
            "ingress": {"className": "traefik", "annotations": {"a": "b"}},
        },
        [],
    ),
    "monitor": (
        {"podMonitor": {"enabled": True, "labels": {"release": "x"}}},
        [
            {
                "apiVersion": "monitoring.coreos.com/v1",
                "kind": "PodMonitor",
                "spec": {
                    "jobLabel": "app.kubernetes.io/name",
                    "selector": {"matchLabels": LABELS},
                    "podMetricsEndpoints": [{"port": "operations", "interval": "30s"}],
                },
            }
        ],
    ),
}
"""Values that deployments choose, and the objects that kubernetes-validate does not know."""


@pytest.mark.parametrize("name", VALUES)
def test_what_deployments_choose_is_rendered(tmp_path: Path, name: str) -> None:
    values, others = VALUES[name]
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    more = ("--values", str(file))
    linted = helm("lint", "--strict", "--values", str(CHART / "example.yaml"), *more)
    assert linted.returncode == 0, linted.stdout
    objects = list(rendered(*more))
    foreign = [each for each in objects if "openshift" in each["apiVersion"]]
    foreign += [
        each for each in objects if re.search("gateway|monitoring", each["apiVersion"])
    ]
    check_schema([each for each in objects if each not in foreign])
    for each in foreign:
        assert each.pop("metadata")["name"] == "pas"
    assert foreign == others
    (pods,) = [each for each in objects if each["kind"] == "StatefulSet"]
    spec = json.dumps(pods["spec"]["template"]["spec"], sort_keys=True)
    for key, value in values.items():
        if key in {"nodeSelector", "tolerations", "affinity"}:
            assert pods["spec"]["template"]["spec"][key] == value
        if key.startswith("extra"):
            assert json.dumps(value[0], sort_keys=True) in spec
    if name == "openshift":
        assert not re.search('runAsUser|runAsGroup|fsGroup"', spec)
        assert '"runAsNonRoot": true' in spec
    if name == "any ingress":
        (ingress,) = [each for each in objects if each["kind"] == "Ingress"]
        assert ingress["metadata"]["annotations"] == {"a": "b"}


def test_the_limit_of_memory_follows_from_the_workers() -> None:
    for workers in (2, 4):
        more = ("--set-string", f"settings.ENCOUNTERS_WORKERS={workers}")
        pod = one("StatefulSet", *more)["spec"]["template"]["spec"]
        limit = pod["containers"][0]["resources"]["limits"]["memory"]
        assert limit == f"{most_bytes(workers) // 1024**2}Mi"


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_proxy_of_a_pod_serves_for_any_user_id(tmp_path: Path, tls: bool) -> None:
    behind, before = free_ports(), free_ports()
    chosen = f"proxy.tls={str(tls).lower()},proxy.clientCertificates=true"
    text = one(
        "ConfigMap",
        *("--set", f"proxy.enabled=true,ingress.enabled=false,{chosen}"),
        *("--set", f"proxy.image.digest={PROXY['image']['digest']}"),
        *("--set", "trustedProxies={127.0.0.2/32}"),
        name="pas-proxy",
    )["data"]["nginx.conf"]
    for name in ("encounters", "clients"):
        certify(tmp_path, name)
    for placed, meant in (
        ("/tmp/", f"{tmp_path}/"),
        ("/etc/nginx/tls/tls.crt", tmp_path / "encounters.pem"),
        ("/etc/nginx/tls/tls.key", tmp_path / "encounters.key"),
        ("/etc/nginx/clients/ca.crt", tmp_path / "clients.pem"),
        ("127.0.0.1:8000", f"{HERE}:{behind}"),
        ("listen 8443", f"listen {HERE}:{before}"),
        ("listen 8080", f"listen {HERE}:{before}"),
        # Opened by the path, it would be that of the user of this test.
        ("/dev/stdout", tmp_path / "access"),
        ("/dev/stderr", tmp_path / "errors"),
    ):
        text = text.replace(placed, str(meant))
    (tmp_path / "nginx.conf").write_text(text)
    command = [str(NGINX), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"]
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = {"user": 1000650000, "group": 0, "extra_groups": []}
        os.chown(tmp_path, 1000650000, 0)
        for file in tmp_path.iterdir():
            os.chown(file, 1000650000, 0)
        for folder in tmp_path.parents:
            if folder.stat().st_uid == 0 and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o011)
    errors = str(tmp_path / "errors")
    with echoing(behind):
        process = subprocess.Popen([*command, "-e", errors], **user)
        try:
            wait_until(lambda: listens(before), tmp_path / "nginx.conf")
            if tls:
                answer = Proxy(before, tmp_path).ask("/fhir/v3/metadata")
                headers = json.loads(answer.body)
                assert headers["X-Forwarded-Proto"] == "https"
                refused = Proxy(before, tmp_path).ask("/fhir/v3/metadata", client=None)
                assert refused.status == 400
            else:
                forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "9.9.9.9"}
                url = f"http://{HERE}:{before}/fhir/v3/metadata"
                for address, proto, client in (
                    ("127.0.0.2", "https", "9.9.9.9"),
                    ("127.0.0.3", "http", "127.0.0.3"),
                ):
                    with requests.Session() as session:
                        session.mount("http://", From(address))
                        headers = session.get(url, headers=forwarded, timeout=60).json()
                    assert headers["X-Forwarded-Proto"] == proto
                    assert headers["X-Forwarded-For"] == client
        finally:
            process.terminate()
            process.wait(60)


class From(HTTPAdapter):
    """Connects from an address of this machine."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, source_address=(self._address, 0))


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
    ("ENCOUNTERS_WORKER", "--set-string settings.ENCOUNTERS_WORKER=3"),
    ("proxy.enabled", "--set gateway.enabled=true"),
    (
        "proxy.tls",
        "--set proxy.enabled=true,proxy.tls=true,"
        f"proxy.image.digest={PROXY['image']['digest']}",
    ),
    ("'pullpolicy'", "--set image.pullpolicy=Always"),
    ("'nodeselector'", "--set nodeselector.a=b"),
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
