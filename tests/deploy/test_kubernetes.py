"""deploy/kubernetes fits the schemas of Kubernetes, and its parts fit each other."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from app.config import PREFIX, SETTINGS, Settings
from tests.app.changing import SEAL_KEYS
from tests.deploy.test_compose import env_file
from tests.live import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
FILES = sorted(set(FOLDER.glob("*.yaml")) - {FOLDER / "kustomization.yaml"})
VERSIONS = ("1.27", "1.32")
KUBECTL = shutil.which("kubectl")
LABELS = {"app.kubernetes.io/name": "encounters"}


def manifest(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))


def pod() -> Any:
    return manifest("deployment")["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_each_manifest_fits_its_schema(file: Path, version: str) -> None:
    told = yaml.safe_load(file.read_text("utf-8"))
    assert kubernetes_validate.validate(told, version, strict=True) == version


def test_the_kustomization_has_every_manifest() -> None:
    assert set(manifest("kustomization")["resources"]) == {f.name for f in FILES}


def test_all_of_them_mean_the_same_pods() -> None:
    deployment, budget = manifest("deployment"), manifest("poddisruptionbudget")
    assert deployment["spec"]["selector"]["matchLabels"] == LABELS
    assert deployment["spec"]["template"]["metadata"]["labels"] == LABELS
    assert budget["spec"]["selector"]["matchLabels"] == LABELS
    assert manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"] == LABELS
    assert manifest("service")["spec"]["selector"] == LABELS
    assert deployment["spec"]["replicas"] > budget["spec"]["maxUnavailable"]


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
    (name,) = LABELS.values()
    assert kept == {
        "label_app_kubernetes_io_name": name,
        "container_port_name": "operations",
    }
    metadata = manifest("deployment")["spec"]["template"]["metadata"]
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
    assert writable == {"/tmp", "/dev/shm", "/var/lib/encounters"}


def test_secrets_are_named_and_not_there() -> None:
    assert not [file for file in FILES if "kind: Secret" in file.read_text("utf-8")]
    for given in container()["env"]:
        secret = "valueFrom" in given or given["name"].endswith("_FILE")
        assert secret, given["name"]


def test_the_settings_start(tmp_path: Path) -> None:
    given = env_file(FOLDER / "settings.env")
    files = {
        e["name"]: Path(e["value"]).name for e in container()["env"] if "value" in e
    }
    texts = {
        "redis_url": "rediss://redis.redis.svc:6379/0",
        "seal_keys": SEAL_KEYS[0],
        "audit_key": "k" * 44,
    }
    assert set(files.values()) == set(texts)
    for name, file in files.items():
        (tmp_path / file).write_text(texts[file])
        given[name] = str(tmp_path / file)
    known = {s.name for s in SETTINGS} | {
        f"{s.name}_FILE" for s in SETTINGS if s.secret
    }
    assert {name for name in given if name.startswith(PREFIX)} <= known
    given[f"{PREFIX}MAPPING"] = __file__
    assert Settings.from_environ(given).base_url.endswith("/fhir/v3")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed here")
def test_what_is_applied_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "kubernetes"
    shutil.copytree(FOLDER, folder)
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
    told = json.dumps(applied["Deployment", "encounters"])
    assert len(maps) == 2
    assert all(f'"{name}"' in told for name in maps)
    (text,) = [
        d["data"]["hospital.yaml"]
        for d in applied.values()
        if "hospital.yaml" in d.get("data", ())
    ]
    assert text == mapping.read_text("utf-8")
    assert "registry.example.org/encounters:0.1.0" in told
