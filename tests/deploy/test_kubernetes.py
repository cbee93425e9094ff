"""deploy/kubernetes and deploy/chart: Kubernetes takes them, and their parts fit each other."""

import ipaddress
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from app.config import PREFIX
from tests.deploy.files import KUBERNETES, container, env_file, manifest, most_bytes
from tests.deploy.proxies import NEEDS_NGINX, Proxy, echoing, running_whole
from tests.live import HOST, ROOT, free_ports

CHART = ROOT / "deploy" / "chart"
MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
SCRIPT = KUBERNETES / "generate.py"
GENERATE = runpy.run_path(str(SCRIPT))
KUBECTL, HELM = shutil.which("kubectl"), GENERATE["helm"]()
NAME = "encounters"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}


def check_schema(objects):
    # What kubernetes-validate knows: nothing of OpenShift, Gateway API and Prometheus.
    foreign = re.compile(r"openshift|gateway|monitoring")
    for each in objects:
        for version in ("1.27", "1.32"):
            if not foreign.search(each["apiVersion"]):
                assert kubernetes_validate.validate(each, version, strict=True)


# ---- the plain manifests


def test_each_manifest_is_applied_and_fits_its_schema():
    files = [f for f in KUBERNETES.rglob("*.yaml") if f.stem != "kustomization"]
    check_schema(yaml.safe_load(file.read_text("utf-8")) for file in files)
    plain = {file.name for file in files if file.parent == KUBERNETES}
    assert set(manifest("kustomization")["resources"]) == plain
    # The explorer is another component.
    assert "components" not in manifest("kustomization")
    for file in (KUBERNETES / "settings.env", *(KUBERNETES / name for name in plain)):
        assert "explorer" not in file.read_text("utf-8").lower(), file


def test_chart_and_image_have_the_version_of_the_product():
    for file, text in GENERATE["versioned"]().items():
        assert file.read_text("utf-8") == text, "run: make manifests"


def test_all_of_them_mean_the_same_pods():
    pods, budget = manifest("statefulset"), manifest("poddisruptionbudget")
    assert pods["spec"]["template"]["metadata"]["labels"] == LABELS
    for selector in (pods["spec"]["selector"], budget["spec"]["selector"]):
        assert selector["matchLabels"] == LABELS
    assert manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"] == LABELS
    assert manifest("service")["spec"]["selector"] == LABELS
    assert pods["spec"]["serviceName"] == manifest("service")["metadata"]["name"]
    assert pods["spec"]["replicas"] > budget["spec"]["maxUnavailable"]
    # Prometheus finds them by name, and the port.
    scrape = ROOT / "deploy" / "monitoring" / "scrape-kubernetes.yaml"
    (job,) = yaml.safe_load(scrape.read_text("utf-8"))["scrape_configs"]
    rules = [r["regex"] for r in job["relabel_configs"] if r.get("action") == "keep"]
    assert sorted(rules) == [NAME, "operations"]


def test_what_no_policy_allows_is_refused():
    denied = manifest("defaultdeny")["spec"]
    assert denied == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    policy = manifest("networkpolicy")["spec"]
    ports = [[port["port"] for port in rule["ports"]] for rule in policy["ingress"]]
    assert ports == [[8000], [9000]]
    peers = [peer for rule in policy["ingress"] for peer in rule["from"]]
    peers += [peer for rule in policy["egress"] for peer in rule["to"]]
    for peer in peers:
        # Pods by their labels, or one address: never a whole namespace or network.
        if "ipBlock" in peer:
            assert ipaddress.ip_network(peer["ipBlock"]["cidr"]).num_addresses == 1
        else:
            assert peer["podSelector"]["matchLabels"]
            assert peer["namespaceSelector"]["matchLabels"]
    assert all(rule["ports"] for rule in policy["egress"])


def test_a_pod_is_probed_on_the_operations_port():
    ports = {p["name"]: p["containerPort"] for p in container()["ports"]}
    assert ports == {"http": 8000, "operations": 9000}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        request = container()[probe]["httpGet"]
        assert (request["path"], request["port"]) == ("/live", "operations")


@pytest.mark.system
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed here")
@pytest.mark.parametrize("explorer", [False, True], ids=["", "with the explorer"])
def test_what_is_applied_is_whole(tmp_path, explorer):
    folder = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, folder)
    shutil.copy(MAPPING, folder / "hospital.yaml")
    if explorer:
        file = folder / "kustomization.yaml"
        text = file.read_text("utf-8")
        assert "\n# components: [explorer]\n" in text
        file.write_text(text.replace("# components:", "components:"), "utf-8")
    command = [KUBECTL, "kustomize", folder]
    applied = [*yaml.safe_load_all(subprocess.check_output(command, text=True))]
    check_schema(applied)
    assert {each["metadata"]["namespace"] for each in applied} == {NAME}
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in applied}
    pods = by_name["StatefulSet", NAME]
    assert f"registry.example.org/encounters:{GENERATE['version']()}" in str(pods)
    maps = {name: each for (kind, name), each in by_name.items() if kind == "ConfigMap"}
    assert len(maps) == 2
    assert all(f"'{name}'" in str(pods) for name in maps)
    data = {name: text for each in maps.values() for name, text in each["data"].items()}
    assert data["hospital.yaml"] == MAPPING.read_text("utf-8")
    assert (f"{PREFIX}EXPLORER_BIND" in data) is explorer
    if explorer:
        # The proxy reaches the explorer where its settings say that it is.
        port = int(data[f"{PREFIX}EXPLORER_BIND"].rpartition(":")[2])
        (only,) = pods["spec"]["template"]["spec"]["containers"]
        ports = {each["name"]: each["containerPort"] for each in only["ports"]}
        assert ports["explorer"] == port
        services = by_name["Service", NAME]["spec"]["ports"]
        assert "explorer" in [each["targetPort"] for each in services]
        proxy, _ = by_name["NetworkPolicy", NAME]["spec"]["ingress"]
        assert [each["port"] for each in proxy["ports"]] == [8000, port]
        ingress = by_name["Ingress", f"{NAME}-explorer"]
        assert "auth-tls" not in str(ingress["metadata"]["annotations"])
        (rule,) = ingress["spec"]["rules"]
        assert f"https://{rule['host']}" == data[f"{PREFIX}EXPLORER_URL"]
        assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]


# ---- the chart


def needs_helm(test):
    """Mark a test of what helm renders."""
    reason = "helm is not installed here: .ci/helm builds it where Go is"
    return pytest.mark.system(pytest.mark.skipif(HELM is None, reason=reason)(test))


EXAMPLE = ("--values", str(CHART / "example.yaml"))


def helm(command, *arguments):
    """Run helm on the chart, with the mapping of group A."""
    named = ["pas"] if command == "template" else []
    return subprocess.run(
        [
            *(HELM, command, *named, CHART, "--namespace", "hospital"),
            *("--set-file", f"mapping={MAPPING}", *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


def rendered(values="", *arguments):
    """Return the objects of a release that is called `pas`, by kind and name."""
    done = helm("template", *EXAMPLE, "--set", values, *arguments)
    assert done.returncode == 0, done.stderr
    objects = [each for each in yaml.safe_load_all(done.stdout) if each]
    check_schema(objects)
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


@needs_helm
def test_the_plain_manifests_are_rendered_from_it():
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
    ("image.pullSecrets[0].name=x", "StatefulSet", '"imagePullSecrets": [{"name": "x"'),
    ("image.pullPolicy=Always", "StatefulSet", '"imagePullPolicy": "Always"'),
    (f"image.digest={DIGEST}", "StatefulSet", f"encounters@{DIGEST}"),
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
    ("service.annotations.note=x", "Service", '"note": "x"'),
    ("podMonitor.enabled=true", "PodMonitor", '"port": "operations"'),
)
"""Values that deployments choose, and what an object of a kind then holds."""
EXPOSED = (
    ("ingress.className=traefik,ingress.annotations.note=x", "Ingress", '"note": "x"'),
    (BY_GATEWAY, "HTTPRoute", '"value": "/fhir/v3"'),
    (f"{BY_GATEWAY},{TLS}", "TLSRoute", '[{"name": "pas", "port": 443}]'),
    (BY_ROUTE, "Route", '"insecureEdgeTerminationPolicy": "None"'),
    (f"{BY_ROUTE},{TLS}", "Route", '"tls": {"termination": "passthrough"}'),
)
"""Ways to reach the proxy of a pod."""


@needs_helm
def test_what_deployments_choose_is_rendered():
    choices = [[",".join(row[0] for row in CHOSEN), *CHOSEN]]
    choices += [[f"{PROXY},{row[0]}", row] for row in EXPOSED]
    for values, *rows in choices:
        linted = helm("lint", "--strict", *EXAMPLE, "--set", values)
        assert linted.returncode == 0, linted.stdout
        objects = rendered(values)
        for _, kind, part in rows:
            assert part in json.dumps(objects[kind, "pas"], sort_keys=True)


@needs_helm
def test_values_reach_the_pod():
    def pod(*values):
        return rendered(*values)["StatefulSet", "pas"]["spec"]["template"]

    # A new mapping or setting is a new pod.
    assert pod() != pod("", "--set-file", f"mapping={__file__}")
    assert pod() != pod("", "--set-string", "settings.ENCOUNTERS_THREADS=17")
    more = ("--set-string", "settings.ENCOUNTERS_WORKERS=4")
    (only,) = pod("", *more)["spec"]["containers"]
    assert only["resources"]["limits"]["memory"] == f"{most_bytes(4) // 1024**2}Mi"
    settings = rendered("unverifiedTls={redis,http}")["ConfigMap", "pas-settings"]
    assert settings["data"][f"{PREFIX}UNVERIFIED_TLS"] == "redis,http"
    # OpenShift chooses the user.
    ids = ("runAsUser", "runAsGroup", "fsGroup")
    values = ",".join(f"podSecurityContext.{name}=null" for name in ids)
    context = pod(values)["spec"]["securityContext"]
    assert context["runAsNonRoot"] is True
    assert not context.keys() & set(ids)


@needs_helm
def test_what_is_left_out_is_not_rendered():
    off = "ingress.enabled=false,networkPolicy.defaultDeny=false,configMaps=false"
    kinds = {"NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"}
    assert {kind for kind, _ in rendered(off)} == kinds
    plain = rendered("ingress.clientCertificates=false")["Ingress", "pas"]
    assert "auth-tls" not in str(plain["metadata"]["annotations"])


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
    ("proxy.tls", f"--set {PROXY},proxy.tls=true"),
)
"""What helm's message names, and the arguments."""


@needs_helm
def test_values_that_would_be_unsafe_are_refused():
    assert "/host" in helm("template").stderr, "no values"
    for named, arguments in REFUSED:
        done = helm("template", *EXAMPLE, *arguments.split())
        assert done.returncode != 0, arguments
        assert named in done.stderr, arguments


@needs_helm
@NEEDS_NGINX
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_proxy_of_a_pod_serves_for_any_user_id(tmp_path, tls):
    behind, before = free_ports(), free_ports()
    chosen = f"proxy.tls={str(tls).lower()},proxy.clientCertificates=true"
    values = f"{PROXY},ingress.enabled=false,{chosen},trustedProxies={{127.0.0.2/32}}"
    text = rendered(values)["ConfigMap", "pas-proxy"]["data"]["nginx.conf"]
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
    user = {}
    if os.geteuid() == 0:
        user = {"user": 1000650000, "group": 0, "extra_groups": []}
        for folder in tmp_path.parents:
            if folder.stat().st_uid == 0 and folder != Path("/"):
                folder.chmod(folder.stat().st_mode | 0o011)
    with echoing(behind), running_whole(tmp_path, text, before, **user):
        if tls:
            proxy = Proxy(before, tmp_path)
            headers = json.loads(proxy.ask("/fhir/v3/metadata").body)
            assert headers["X-Forwarded-Proto"] == "https"
            assert proxy.ask("/fhir/v3/metadata", client=None).status == 400
            return
        forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "9.9.9.9"}
        for address, proto, client in (
            ("127.0.0.2", "https", "9.9.9.9"),
            ("127.0.0.3", "http", "127.0.0.3"),
        ):
            with closing(HTTPConnection(HOST, before, 60, (address, 0))) as asking:
                asking.request("GET", "/fhir/v3/metadata", headers=forwarded)
                headers = json.loads(asking.getresponse().read())
            assert headers["X-Forwarded-Proto"] == proto
            assert headers["X-Forwarded-For"] == client
