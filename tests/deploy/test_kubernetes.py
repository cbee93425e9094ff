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
FILES = sorted(each for each in FOLDER.rglob("*.yaml") if each.stem != "kustomization")
VERSIONS = ("1.27", "1.32")
KUBECTL = shutil.which("kubectl")
GENERATE = runpy.run_path(str(FOLDER / "generate.py"))
VERSION = GENERATE["version"]()
NAME = "encounters"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME}


def manifest(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))


def pod() -> Any:
    return manifest("statefulset")["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(FOLDER)) for f in FILES])
def test_each_manifest_fits_its_schema(file: Path, version: str) -> None:
    told = yaml.safe_load(file.read_text("utf-8"))
    assert kubernetes_validate.validate(told, version, strict=True) == version


def test_the_kustomization_has_every_manifest() -> None:
    plain = {file.name for file in FILES if file.parent == FOLDER}
    assert set(manifest("kustomization")["resources"]) == plain


def test_chart_and_image_have_the_version_of_the_product() -> None:
    for file, text in GENERATE["versioned"]().items():
        assert file.read_text("utf-8") == text, "run: make manifests"


def test_all_of_them_mean_the_same_pods() -> None:
    pods, budget = manifest("statefulset"), manifest("poddisruptionbudget")
    assert pods["spec"]["selector"]["matchLabels"] == LABELS
    assert pods["spec"]["template"]["metadata"]["labels"] == LABELS
    assert budget["spec"]["selector"]["matchLabels"] == LABELS
    assert manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"] == LABELS
    assert manifest("service")["spec"]["selector"] == LABELS
    assert pods["spec"]["serviceName"] == manifest("service")["metadata"]["name"]
    assert pods["spec"]["replicas"] > budget["spec"]["maxUnavailable"]


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
    audit = Path(settings[f"{PREFIX}AUDIT"]).parent
    (volume,) = [
        m["name"] for m in container()["volumeMounts"] if m["mountPath"] == str(audit)
    ]
    spec = manifest("statefulset")["spec"]
    assert volume in {c["metadata"]["name"] for c in spec["volumeClaimTemplates"]}
    kept = spec["persistentVolumeClaimRetentionPolicy"]
    assert set(kept.values()) == {"Retain"}


def test_probes_ask_the_operations_port() -> None:
    ports = {p["name"]: p["containerPort"] for p in container()["ports"]}
    assert ports == {"http": 8000, "operations": 9000}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container()[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == ("/live", "operations")


def test_prometheus_finds_the_pods_and_their_port() -> None:
    told = (ROOT / "deploy" / "monitoring" / "scrape-kubernetes.yaml").read_text()
    (job,) = yaml.safe_load(told)["scrape_configs"]
    kept = {
        rule["source_labels"][0].removeprefix("__meta_kubernetes_pod_"): rule["regex"]
        for rule in job["relabel_configs"]
        if rule.get("action") == "keep"
    }
    assert kept == {
        "label_app_kubernetes_io_name": NAME,
        "container_port_name": "operations",
    }
    metadata = manifest("statefulset")["spec"]["template"]["metadata"]
    assert "annotations" not in metadata, "they would give the job another name"


def test_a_stop_has_the_time_that_it_takes() -> None:
    (_, before) = container()["lifecycle"]["preStop"]["exec"]["command"]
    # 30 seconds for requests under way.
    assert pod()["terminationGracePeriodSeconds"] >= int(before) + 30


def test_a_pod_may_do_nothing_that_it_need_not() -> None:
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert f"USER {pod()['securityContext']['runAsUser']}:" in (
        ROOT / "Dockerfile"
    ).read_text("utf-8")
    own = container()["securityContext"]
    assert own["readOnlyRootFilesystem"] is True
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}
    writable = {
        m["mountPath"] for m in container()["volumeMounts"] if "readOnly" not in m
    }
    assert writable == {
        *("/tmp", "/dev/shm", "/var/lib/encounters", "/var/log/encounters")
    }


def test_secrets_are_named_and_not_there() -> None:
    assert not [file for file in FILES if "kind: Secret" in file.read_text("utf-8")]
    for given in container()["env"]:
        # A file: the environment of a process can be read in /proc.
        assert given["name"].endswith("_FILE")
        assert given["value"].startswith("/run/secrets/")


@pytest.mark.parametrize("more", [(), ("explorer/explorer.env",)], ids=len)
def test_the_settings_start(tmp_path: Path, more: tuple[str, ...]) -> None:
    given = env_file(FOLDER / "settings.env")
    for name in more:
        given |= env_file(FOLDER / name)
    files = {
        e["name"]: Path(e["value"]).name for e in container()["env"] if "value" in e
    }
    texts = {
        "redis_url": "rediss://redis.redis.svc:6379/0",
        "seal_keys": SEAL_KEYS[0],
        "audit_key": "k" * 44,
        "audit_chain_key": "c" * 44,
        "pas_url": "https://pas.example.org/api",
        "pas_key": "k",
    }
    assert set(files.values()) == set(texts)
    for name, file in files.items():
        (tmp_path / file).write_text(texts[file])
        given[name] = str(tmp_path / file)
    mapping = load_mapping(ROOT / "mappings" / "group-a" / "group-a.yaml", given)
    assert mapping.source.url == texts["pas_url"]
    known = {s.name for s in SETTINGS} | {
        f"{s.name}_FILE" for s in SETTINGS if s.secret
    }
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
    (target,) = [
        each["targetPort"]
        for each in by_name["Service", name]["spec"]["ports"]
        if each["name"] == "explorer"
    ]
    assert target == "explorer"
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
    for file in FILES:
        if file.parent == FOLDER:
            assert "explorer" not in file.read_text("utf-8").lower(), file
    assert "EXPLORER" not in (FOLDER / "settings.env").read_text("utf-8")
    assert "components" not in manifest("kustomization")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed here")
@pytest.mark.parametrize("explorer", [False, True], ids=["", "with the explorer"])
def test_what_is_applied_is_whole(tmp_path: Path, explorer: bool) -> None:
    folder = tmp_path / "kubernetes"
    shutil.copytree(FOLDER, folder)
    if explorer:
        file = folder / "kustomization.yaml"
        off = file.read_text("utf-8")
        assert "\n# components: [explorer]\n" in off
        file.write_text(off.replace("# components:", "components:"), "utf-8")
    mapping = ROOT / "mappings" / "group-a" / "group-a.yaml"
    shutil.copy(mapping, folder / "hospital.yaml")
    built = subprocess.run(
        [str(KUBECTL), "kustomize", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    applied = {
        (d["kind"], d["metadata"]["name"]): d for d in yaml.safe_load_all(built.stdout)
    }
    for each in applied.values():
        kubernetes_validate.validate(each, VERSIONS[0], strict=True)
        assert each["metadata"]["namespace"] == "encounters"
    maps = {name for kind, name in applied if kind == "ConfigMap"}
    told = json.dumps(applied["StatefulSet", "encounters"])
    assert len(maps) == 2
    assert all(f'"{name}"' in told for name in maps)
    (text,) = [
        d["data"]["hospital.yaml"]
        for d in applied.values()
        if "hospital.yaml" in d.get("data", ())
    ]
    assert text == mapping.read_text("utf-8")
    assert f"registry.example.org/encounters:{VERSION}" in told
    (settings,) = [
        d["data"] for d in applied.values() if f"{PREFIX}BASE_URL" in d.get("data", ())
    ]
    assert (f"{PREFIX}EXPLORER_BIND" in settings) is explorer
    if explorer:
        check_explorer(applied.values(), settings)
