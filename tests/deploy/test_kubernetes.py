"""deploy/kubernetes and deploy/chart: Kubernetes takes them, and their parts fit each other."""

import ipaddress
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from app.config import PREFIX
from tests.certificates import certify
from tests.deploy.files import (
    CHART,
    KUBERNETES,
    container,
    env_file,
    manifest,
    most_bytes,
)
from tests.deploy.proxies import NGINX, Proxy, echoing
from tests.live import HOST, ROOT, free_ports, listens, wait_until

MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
FILES = sorted(f for f in KUBERNETES.rglob("*.yaml") if f.stem != "kustomization")
VERSIONS = ("1.27", "1.32")
SCRIPT = KUBERNETES / "generate.py"
GENERATE = runpy.run_path(str(SCRIPT))
KUBECTL, HELM = shutil.which("kubectl"), GENERATE["helm"]()
NAME = "encounters"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}


def check_schema(objects: Iterable[Any]) -> None:
    for each in objects:
        for version in VERSIONS:
            assert kubernetes_validate.validate(each, version, strict=True) == version


# ---- the plain manifests


def test_each_manifest_is_applied_and_fits_its_schema() -> None:
    check_schema(yaml.safe_load(file.read_text("utf-8")) for file in FILES)
    plain = {file.name for file in FILES if file.parent == KUBERNETES}
    assert set(manifest("kustomization")["resources"]) == plain


def test_chart_and_image_have_the_version_of_the_product() -> None:
    for file, text in GENERATE["versioned"]().items():
        assert file.read_text("utf-8") == text, "run: make manifests"


def test_all_of_them_mean_the_same_pods() -> None:
    pods, budget = manifest("statefulset"), manifest("poddisruptionbudget")
    assert pods["spec"]["template"]["metadata"]["labels"] == LABELS
    for selector in (pods["spec"]["selector"], budget["spec"]["selector"]):
        assert selector["matchLabels"] == LABELS
    assert manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"] == LABELS
    assert manifest("service")["spec"]["selector"] == LABELS
    assert pods["spec"]["serviceName"] == manifest("service")["metadata"]["name"]
    assert pods["spec"]["replicas"] > budget["spec"]["maxUnavailable"]
    # Prometheus finds them, and the port: annotations would give its job another name.
    told = (ROOT / "deploy" / "monitoring" / "scrape-kubernetes.yaml").read_text()
    (job,) = yaml.safe_load(told)["scrape_configs"]
    kept = {
        rule["source_labels"][0].removeprefix("__meta_kubernetes_pod_"): rule["regex"]
        for rule in job["relabel_configs"]
        if rule.get("action") == "keep"
    }
    name, port = "label_app_kubernetes_io_name", "container_port_name"
    assert kept == {name: NAME, port: "operations"}
    assert "annotations" not in pods["spec"]["template"]["metadata"]


def test_what_no_policy_allows_is_refused() -> None:
    denied = manifest("defaultdeny")["spec"]
    assert denied == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    policy = manifest("networkpolicy")["spec"]
    (proxy, monitoring) = policy["ingress"]
    assert [port["port"] for port in proxy["ports"]] == [8000]
    assert [port["port"] for port in monitoring["ports"]] == [9000]
    peers = [peer for rule in policy["ingress"] for peer in rule["from"]]
    peers += [peer for rule in policy["egress"] for peer in rule["to"]]
    for peer in peers:
        # Pods by their labels, or one address: never a whole namespace or network.
        if "ipBlock" in peer:
            assert ipaddress.ip_network(peer["ipBlock"]["cidr"]).num_addresses == 1
        else:
            assert peer["podSelector"]["matchLabels"]
            assert peer["namespaceSelector"]["matchLabels"]
    assert all(rule["ports"] for rule in policy["ingress"] + policy["egress"])


def test_a_pod_is_probed_on_the_operations_port() -> None:
    ports = {p["name"]: p["containerPort"] for p in container()["ports"]}
    assert ports == {"http": 8000, "operations": 9000}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container()[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == ("/live", "operations")


def check_explorer(objects: Iterable[Any], settings: dict[str, str]) -> None:
    """Check that the proxy reaches the explorer where its settings say that it is."""
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    port = int(settings[f"{PREFIX}EXPLORER_BIND"].rpartition(":")[2])
    (only,) = by_name["StatefulSet", NAME]["spec"]["template"]["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in only["ports"]}
    assert ports == {"http": 8000, "operations": 9000, "explorer": port}
    services = by_name["Service", NAME]["spec"]["ports"]
    assert "explorer" in {e["targetPort"] for e in services if e["name"] == "explorer"}
    proxy, monitoring = by_name["NetworkPolicy", NAME]["spec"]["ingress"]
    assert [each["port"] for each in proxy["ports"]] == [8000, port]
    assert [each["port"] for each in monitoring["ports"]] == [9000]
    ingress = by_name["Ingress", f"{NAME}-explorer"]
    assert not [a for a in ingress["metadata"]["annotations"] if "auth-tls" in a]
    (rule,) = ingress["spec"]["rules"]
    assert f"https://{rule['host']}" == settings[f"{PREFIX}EXPLORER_URL"]
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]
    (path,) = rule["http"]["paths"]
    service = path["backend"]["service"]
    assert service == {"name": NAME, "port": {"name": "explorer"}}


@pytest.mark.system
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed here")
@pytest.mark.parametrize("explorer", [False, True], ids=["", "with the explorer"])
def test_what_is_applied_is_whole(tmp_path: Path, explorer: bool) -> None:
    folder = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, folder)
    shutil.copy(MAPPING, folder / "hospital.yaml")
    if explorer:
        file = folder / "kustomization.yaml"
        off = file.read_text("utf-8")
        assert "\n# components: [explorer]\n" in off
        file.write_text(off.replace("# components:", "components:"), "utf-8")
    command = [str(KUBECTL), "kustomize", str(folder)]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    applied = list(yaml.safe_load_all(built.stdout))
    check_schema(applied)
    assert {each["metadata"]["namespace"] for each in applied} == {NAME}
    (pods,) = [json.dumps(e) for e in applied if e["kind"] == "StatefulSet"]
    assert f"registry.example.org/encounters:{GENERATE['version']()}" in pods
    maps = [each for each in applied if each["kind"] == "ConfigMap"]
    assert len(maps) == 2
    assert all(f'"{each["metadata"]["name"]}"' in pods for each in maps)
    told = {name: text for each in maps for name, text in each["data"].items()}
    assert told["hospital.yaml"] == MAPPING.read_text("utf-8")
    assert (f"{PREFIX}EXPLORER_BIND" in told) is explorer
    if explorer:
        check_explorer(applied, told)


# ---- the chart


def needs_helm(test: Any) -> Any:
    """Mark a test of what helm renders."""
    reason = "helm is not installed here: .ci/helm builds it where Go is"
    return pytest.mark.system(pytest.mark.skipif(HELM is None, reason=reason)(test))


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
        timeout=120,
    )


EXAMPLE = ("--values", str(CHART / "example.yaml"))


def rendered(values: str = "", *arguments: str) -> list[Any]:
    """Return the objects of a release that is called `pas`."""
    done = helm("template", *EXAMPLE, "--set", values, *arguments)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def one(kind: str, values: str = "", *arguments: str, name: str = "pas") -> Any:
    (found,) = [
        each
        for each in rendered(values, *arguments)
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


@needs_helm
def test_kubernetes_takes_what_it_renders() -> None:
    objects = rendered("image.pullSecrets[0].name=registry")
    check_schema(objects)
    assert all(each["metadata"]["name"].startswith("pas") for each in objects)
    assert "explorer" not in str(objects).lower()
    kinds = {"ConfigMap", "Ingress", "NetworkPolicy", "PodDisruptionBudget", "Service"}
    assert {each["kind"] for each in objects} == kinds | {"StatefulSet"}


@needs_helm
def test_the_plain_manifests_are_rendered_from_it() -> None:
    command = [sys.executable, str(SCRIPT), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: make manifests"
    example = yaml.safe_load((CHART / "example.yaml").read_text("utf-8"))
    (proxies,) = example["trustedProxies"]
    settings = {**example["settings"], f"{PREFIX}TRUSTED_PROXIES": proxies}
    assert env_file(KUBERNETES / "settings.env") == settings


DIGEST = f"sha256:{'0' * 64}"
PROXY = f"proxy.enabled=true,proxy.image.digest={DIGEST}"
BY_GATEWAY = "ingress.enabled=false,gateway.enabled=true,gateway.parentRefs[0].name=g"
BY_ROUTE = "ingress.enabled=false,route.enabled=true"
TLS = "proxy.tls=true,proxy.clientCertificates=true"
CHOSEN = (
    ("nodeSelector.disk=fast", "StatefulSet", '"nodeSelector": {"disk": "fast"}'),
    ("priorityClassName=x", "StatefulSet", '"priorityClassName": "x"'),
    ("tolerations[0].key=x", "StatefulSet", '"tolerations": [{"key": "x"}]'),
    ("podAnnotations.note=x", "StatefulSet", '"note": "x"'),
    ("podLabels.team=x", "StatefulSet", '"team": "x"'),
    ("service.annotations.note=x", "Service", '"note": "x"'),
    (
        "extraEnv[0].name=TNS_ADMIN,extraEnv[0].value=/opt/wallet",
        *("StatefulSet", '{"name": "TNS_ADMIN", "value": "/opt/wallet"}'),
    ),
    (
        "extraVolumes[0].name=wallet,extraVolumes[0].secret.secretName=wallet,"
        "extraVolumeMounts[0].name=wallet,extraVolumeMounts[0].mountPath=/opt/wallet",
        *("StatefulSet", '{"name": "wallet", "secret": {"secretName": "wallet"}}'),
    ),
    (
        "serviceAccount.create=true,serviceAccount.name=reader",
        *("StatefulSet", '"serviceAccountName": "reader"'),
    ),
    (f"image.digest={DIGEST}", "StatefulSet", f"encounters@{DIGEST}"),
    ("image.pullPolicy=Always", "StatefulSet", '"imagePullPolicy": "Always"'),
    (
        f"{PROXY},ingress.className=traefik,ingress.annotations.note=x",
        *("Ingress", '"annotations": {"note": "x"}'),
    ),
    (f"{PROXY},{BY_GATEWAY}", "HTTPRoute", '"value": "/fhir/v3"'),
    (f"{PROXY},{BY_GATEWAY},{TLS}", "TLSRoute", '[{"name": "pas", "port": 443}]'),
    (f"{PROXY},{BY_ROUTE}", "Route", '"insecureEdgeTerminationPolicy": "None"'),
    (f"{PROXY},{BY_ROUTE},{TLS}", "Route", '"tls": {"termination": "passthrough"}'),
    ("podMonitor.enabled=true", "PodMonitor", '"port": "operations"'),
)
"""Values that deployments choose, and what an object of a kind then holds."""


@needs_helm
@pytest.mark.parametrize(("values", "kind", "part"), CHOSEN, ids=lambda each: each[:50])
def test_what_deployments_choose_is_rendered(values: str, kind: str, part: str) -> None:
    linted = helm("lint", "--strict", *EXAMPLE, "--set", values)
    assert linted.returncode == 0, linted.stdout
    objects = rendered(values)
    # What kubernetes-validate knows: nothing of OpenShift, Gateway API and Prometheus.
    foreign = re.compile(r"openshift|gateway|monitoring")
    check_schema(each for each in objects if not foreign.search(each["apiVersion"]))
    (chosen,) = [
        each
        for each in objects
        if (each["kind"], each["metadata"]["name"]) == (kind, "pas")
    ]
    assert part in json.dumps(chosen, sort_keys=True)


@needs_helm
def test_openshift_chooses_the_user() -> None:
    ids = ("runAsUser", "runAsGroup", "fsGroup")
    values = ",".join(f"podSecurityContext.{name}=null" for name in ids)
    context = one("StatefulSet", values)["spec"]["template"]["spec"]["securityContext"]
    assert context["runAsNonRoot"] is True
    assert not context.keys() & set(ids)


@needs_helm
def test_values_reach_the_pod() -> None:
    def pods(*values: str) -> Any:
        return one("StatefulSet", *values)["spec"]["template"]

    # A new mapping or setting is a new pod.
    assert pods() != pods("", "--set-file", f"mapping={__file__}")
    assert pods() != pods("", "--set-string", "settings.ENCOUNTERS_THREADS=17")
    for workers in (2, 4):
        more = ("--set-string", f"settings.ENCOUNTERS_WORKERS={workers}")
        (only,) = pods("", *more)["spec"]["containers"]
        memory = f"{most_bytes(workers) // 1024**2}Mi"
        assert only["resources"]["limits"]["memory"] == memory
    for values, text in (("", None), ("unverifiedTls={redis,http}", "redis,http")):
        settings = one("ConfigMap", values, name="pas-settings")["data"]
        assert settings.get(f"{PREFIX}UNVERIFIED_TLS") == text


@needs_helm
def test_what_is_left_out_is_not_rendered() -> None:
    off = "ingress.enabled=false,networkPolicy.defaultDeny=false,configMaps=false"
    kinds = [each["kind"] for each in rendered(off)]
    assert sorted(kinds) == [
        *("NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"),
    ]
    plain = one("Ingress", "ingress.clientCertificates=false")
    assert not [a for a in plain["metadata"]["annotations"] if "auth-tls" in a]


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
        f"--set proxy.enabled=true,proxy.tls=true,proxy.image.digest={DIGEST}",
    ),
    ("'pullpolicy'", "--set image.pullpolicy=Always"),
    ("'nodeselector'", "--set nodeselector.a=b"),
)
"""What helm's message names, and the arguments."""


@needs_helm
def test_values_that_would_be_unsafe_are_refused() -> None:
    assert "/host" in helm("template").stderr, "no values"
    for named, arguments in REFUSED:
        done = helm("template", *EXAMPLE, *arguments.split())
        assert done.returncode != 0, arguments
        assert named in done.stderr, arguments


@needs_helm
@pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_proxy_of_a_pod_serves_for_any_user_id(tmp_path: Path, tls: bool) -> None:
    behind, before = free_ports(), free_ports()
    chosen = f"proxy.tls={str(tls).lower()},proxy.clientCertificates=true"
    values = f"{PROXY},ingress.enabled=false,{chosen},trustedProxies={{127.0.0.2/32}}"
    text = one("ConfigMap", values, name="pas-proxy")["data"]["nginx.conf"]
    for name in ("encounters", "clients"):
        certify(tmp_path, name)
    for placed, meant in (
        ("/tmp/", f"{tmp_path}/"),
        ("/etc/nginx/tls/tls.crt", tmp_path / "encounters.pem"),
        ("/etc/nginx/tls/tls.key", tmp_path / "encounters.key"),
        ("/etc/nginx/clients/ca.crt", tmp_path / "clients.pem"),
        ("127.0.0.1:8000", f"{HOST}:{behind}"),
        ("listen 8443", f"listen {HOST}:{before}"),
        ("listen 8080", f"listen {HOST}:{before}"),
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
                for address, proto, client in (
                    ("127.0.0.2", "https", "9.9.9.9"),
                    ("127.0.0.3", "http", "127.0.0.3"),
                ):
                    asking = HTTPConnection(HOST, before, 60, (address, 0))
                    with closing(asking):
                        asking.request("GET", "/fhir/v3/metadata", headers=forwarded)
                        headers = json.loads(asking.getresponse().read())
                    assert headers["X-Forwarded-Proto"] == proto
                    assert headers["X-Forwarded-For"] == client
        finally:
            process.terminate()
            process.wait(60)
