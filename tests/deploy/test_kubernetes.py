"""deploy/kubernetes fits the schemas of Kubernetes, and its parts fit each other."""

import ipaddress
import json
import runpy
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from adapters.mapping.load import load_mapping
from app.config import PREFIX, SETTINGS, Settings
from tests.app.changing import SEAL_KEYS
from tests.deploy.test_compose import env_file
from tests.live import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
FILES = sorted(each for each in FOLDER.rglob("*.yaml") if each.stem != "kustomization")
VERSIONS = ("1.27", "1.32")
KUBECTL = shutil.which("kubectl")
GENERATE = runpy.run_path(str(FOLDER / "generate.py"))
NAME = "encounters"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}


def manifest(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))


def pod() -> Any:
    return manifest("statefulset")["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


def check_schema(objects: Iterable[Any]) -> None:
    for each in objects:
        for version in VERSIONS:
            assert kubernetes_validate.validate(each, version, strict=True) == version


def test_each_manifest_is_applied_and_fits_its_schema() -> None:
    check_schema(yaml.safe_load(file.read_text("utf-8")) for file in FILES)
    plain = {file.name for file in FILES if file.parent == FOLDER}
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


def test_audit_events_are_on_a_volume_that_outlives_the_pod() -> None:
    settings = env_file(FOLDER / "settings.env")
    audit = str(Path(settings[f"{PREFIX}AUDIT"]).parent)
    mounts = {m["mountPath"]: m["name"] for m in container()["volumeMounts"]}
    spec = manifest("statefulset")["spec"]
    claims = {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
    assert mounts[audit] in claims
    assert set(spec["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


def test_a_pod_is_probed_on_the_operations_port_and_has_time_to_stop() -> None:
    ports = {p["name"]: p["containerPort"] for p in container()["ports"]}
    assert ports == {"http": 8000, "operations": 9000}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container()[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == ("/live", "operations")
    (_, before) = container()["lifecycle"]["preStop"]["exec"]["command"]
    # 30 seconds for requests under way.
    assert pod()["terminationGracePeriodSeconds"] >= int(before) + 30


def test_a_pod_may_do_nothing_that_it_need_not() -> None:
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["securityContext"]["runAsNonRoot"] is True
    user = f"USER {pod()['securityContext']['runAsUser']}:"
    assert user in (ROOT / "Dockerfile").read_text("utf-8")
    own = container()["securityContext"]
    assert own["readOnlyRootFilesystem"] is True
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}
    writable = {
        m["mountPath"] for m in container()["volumeMounts"] if "readOnly" not in m
    }
    assert writable == {"/tmp", "/dev/shm", "/var/log/encounters"}


@pytest.mark.parametrize("more", [(), ("explorer/explorer.env",)], ids=len)
def test_the_settings_start_with_secrets_in_files(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    assert not [file for file in FILES if "kind: Secret" in file.read_text("utf-8")]
    given = env_file(FOLDER / "settings.env")
    for name in more:
        given |= env_file(FOLDER / name)
    texts = {
        "redis_url": "rediss://redis.redis.svc:6379/0",
        "seal_keys": SEAL_KEYS[0],
        "audit_key": "k" * 44,
        "pas_url": "https://pas.example.org/api",
        "pas_key": "k",
    }
    files = {each["name"]: Path(each["value"]) for each in container()["env"]}
    # A file: the environment of a process can be read in /proc.
    assert all(name.endswith("_FILE") for name in files)
    assert all(str(file).startswith("/run/secrets/") for file in files.values())
    assert {file.name for file in files.values()} == set(texts)
    for name, file in files.items():
        (tmp_path / file.name).write_text(texts[file.name])
        given[name] = str(tmp_path / file.name)
    assert load_mapping(MAPPING, given).source.url == texts["pas_url"]
    known = {s.name for s in SETTINGS} | {f"{s.name}_FILE" for s in SETTINGS}
    assert {name for name in given if name.startswith(PREFIX)} <= known
    given[f"{PREFIX}MAPPING"] = __file__
    given[f"{PREFIX}AUDIT"] = str(tmp_path / "audit.jsonl")
    settings = Settings.from_environ(given)
    assert settings.base_url.endswith("/fhir/v3")
    assert (settings.explorer_bind is not None) is bool(more)
    # Pods of the ingress alone, not the network of all pods.
    assert all(n.num_addresses <= 256 for n in settings.trusted_proxies)


def check_explorer(
    objects: Iterable[Any], settings: dict[str, str], name: str = NAME
) -> None:
    """Check that the proxy reaches the explorer where its settings say that it is."""
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    port = int(settings[f"{PREFIX}EXPLORER_BIND"].rpartition(":")[2])
    (only,) = by_name["StatefulSet", name]["spec"]["template"]["spec"]["containers"]
    ports = {each["name"]: each["containerPort"] for each in only["ports"]}
    assert ports == {"http": 8000, "operations": 9000, "explorer": port}
    services = by_name["Service", name]["spec"]["ports"]
    assert "explorer" in {e["targetPort"] for e in services if e["name"] == "explorer"}
    proxy, monitoring = by_name["NetworkPolicy", name]["spec"]["ingress"]
    assert [each["port"] for each in proxy["ports"]] == [8000, port]
    assert [each["port"] for each in monitoring["ports"]] == [9000]
    ingress = by_name["Ingress", f"{name}-explorer"]
    assert not [a for a in ingress["metadata"]["annotations"] if "auth-tls" in a]
    (rule,) = ingress["spec"]["rules"]
    assert f"https://{rule['host']}" == settings[f"{PREFIX}EXPLORER_URL"]
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]
    (path,) = rule["http"]["paths"]
    service = path["backend"]["service"]
    assert service == {"name": name, "port": {"name": "explorer"}}


def test_the_explorer_is_off() -> None:
    plain = [file for file in FILES if file.parent == FOLDER]
    for file in (*plain, FOLDER / "settings.env"):
        assert "explorer" not in file.read_text("utf-8").lower(), file
    assert "components" not in manifest("kustomization")


@pytest.mark.system
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed here")
@pytest.mark.parametrize("explorer", [False, True], ids=["", "with the explorer"])
def test_what_is_applied_is_whole(tmp_path: Path, explorer: bool) -> None:
    folder = tmp_path / "kubernetes"
    shutil.copytree(FOLDER, folder)
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
