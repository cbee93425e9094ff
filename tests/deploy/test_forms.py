"""Compose and Kubernetes run the service alike: its rights, limits, settings and secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.mapping.load import load_mapping
from app.config import PREFIX, SETTINGS, Settings
from tests.app.changing import SEAL_KEYS
from tests.deploy.files import (
    COMPOSE,
    INSTANCES,
    KUBERNETES,
    composed,
    container,
    env_file,
    front,
    manifest,
    most_bytes,
    most_tasks,
    pod,
)
from tests.live import ROOT

MAPPING = ROOT / "mappings" / "group-a" / "group-a.yaml"
SECRETS = {
    "redis_url": "rediss://redis.redis.svc:6379/0",
    "seal_keys": SEAL_KEYS[0],
    "audit_key": "k" * 44,
    "pas_url": "https://pas.example.org/api",
    "pas_key": "k",
}


@dataclass(frozen=True)
class Form:
    """A way to run the service; `environ` names the files of secrets."""

    is_read_only: bool
    dropped: list[str]
    may_gain_rights: bool
    megabytes: int
    seconds_to_stop: int
    settings: Mapping[str, str]
    environ: Mapping[str, str]
    explorer: Mapping[str, str]


def compose(instance: str) -> Form:
    service = composed()["services"][instance]
    return Form(
        is_read_only=service["read_only"],
        dropped=service["cap_drop"],
        may_gain_rights="no-new-privileges:true" not in service["security_opt"],
        megabytes={"1g": 1024}[service["mem_limit"]],
        seconds_to_stop=int(service["stop_grace_period"].removesuffix("s")),
        settings=env_file(COMPOSE / "settings.env"),
        environ=service["environment"],
        explorer=env_file(COMPOSE / "explorer.env"),
    )


def kubernetes() -> Form:
    rights = container()["securityContext"]
    _, waiting = container()["lifecycle"]["preStop"]["exec"]["command"]
    memory = container()["resources"]["limits"]["memory"]
    return Form(
        is_read_only=rights["readOnlyRootFilesystem"],
        dropped=rights["capabilities"]["drop"],
        may_gain_rights=rights["allowPrivilegeEscalation"],
        megabytes=int(memory.removesuffix("Mi")),
        seconds_to_stop=pod()["terminationGracePeriodSeconds"] - int(waiting),
        settings=env_file(KUBERNETES / "settings.env"),
        environ={each["name"]: each["value"] for each in container()["env"]},
        explorer=env_file(KUBERNETES / "explorer" / "explorer.env"),
    )


FORMS = {**{name: compose(name) for name in INSTANCES}, "kubernetes": kubernetes()}
EACH = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@EACH
def test_it_may_do_nothing_that_it_need_not(form: Form) -> None:
    assert form.is_read_only
    assert form.dropped == ["ALL"]
    assert form.may_gain_rights is False


@EACH
def test_its_limits_are_those_of_its_workers(form: Form) -> None:
    workers = int(form.settings[f"{PREFIX}WORKERS"])
    assert form.megabytes >= most_bytes(workers) // 1024**2
    # What a stop takes (docs/run/capacity.md): requests under way.
    assert form.seconds_to_stop >= 30


def test_a_cgroup_of_compose_counts_all_threads() -> None:
    settings = env_file(COMPOSE / "settings.env")
    numbers = (int(settings[f"{PREFIX}{name}"]) for name in ("WORKERS", "THREADS"))
    needed = most_tasks(*numbers)
    for name in INSTANCES:
        assert composed()["services"][name]["pids_limit"] >= needed


def test_a_pod_is_not_root_and_writes_to_its_volumes_alone() -> None:
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["securityContext"]["runAsNonRoot"] is True
    user = f"USER {pod()['securityContext']['runAsUser']}:"
    assert user in (ROOT / "Dockerfile").read_text("utf-8")
    mounts = container()["volumeMounts"]
    writable = {m["mountPath"]: m["name"] for m in mounts if "readOnly" not in m}
    assert writable.keys() == {"/tmp", "/dev/shm", "/var/log/encounters"}
    # Audit events outlive the pod.
    audit = env_file(KUBERNETES / "settings.env")[f"{PREFIX}AUDIT"]
    spec = manifest("statefulset")["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == writable[str(Path(audit).parent)]
    assert set(spec["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


@EACH
@pytest.mark.parametrize("with_explorer", [False, True], ids=["", "explorer"])
def test_the_settings_start_with_secrets_in_files(
    tmp_path: Path, form: Form, with_explorer: bool
) -> None:
    environ = {**form.settings, **form.environ}
    if with_explorer:
        environ |= form.explorer
    known = {s.name for s in SETTINGS} | {f"{s.name}_FILE" for s in SETTINGS}
    assert {name for name in environ if name.startswith(PREFIX)} <= known
    # A file: the environment of a process can be read in /proc.
    assert not {s.name for s in SETTINGS if s.secret} & environ.keys()
    for name, place in environ.items():
        if name.endswith("_FILE"):
            assert place.startswith("/run/secrets/")
            file = tmp_path / Path(place).name
            file.write_text(SECRETS[file.name])
            environ[name] = str(file)
    environ[f"{PREFIX}MAPPING"] = __file__
    environ[f"{PREFIX}AUDIT"] = str(tmp_path / "audit.jsonl")
    settings = Settings.from_environ(environ)
    assert settings.base_url.endswith("/fhir/v3")
    assert (settings.explorer_bind is not None) is with_explorer
    # The proxies alone, and not the network of all pods.
    assert all(n.num_addresses <= 256 for n in settings.trusted_proxies)
    if form.environ.keys() >= {"PAS_URL_FILE"}:
        assert load_mapping(MAPPING, environ).source.url == SECRETS["pas_url"]
    else:
        proxies = [str(network) for network in settings.trusted_proxies]
        assert proxies == [f"{front('proxy')}/32"]


def test_the_explorer_is_off_unless_its_files_are_named() -> None:
    plain = [COMPOSE / "compose.yaml", COMPOSE / "settings.env"]
    plain += [KUBERNETES / "settings.env", *KUBERNETES.glob("*.yaml")]
    plain.remove(KUBERNETES / "kustomization.yaml")
    for file in plain:
        assert "explorer" not in file.read_text("utf-8").lower(), file
    assert "components" not in manifest("kustomization")
    assert "COMPOSE_FILE" not in env_file(COMPOSE / ".env")
