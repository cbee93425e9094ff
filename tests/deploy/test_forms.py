"""Compose and Kubernetes run the service alike: its rights, limits, settings and secrets."""

import re
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
    manifest,
    most_bytes,
    most_tasks,
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
POD = manifest("statefulset")["spec"]["template"]["spec"]


def test_it_may_do_nothing_that_it_need_not():
    rights = container()["securityContext"]
    assert rights["readOnlyRootFilesystem"] is True
    assert rights["capabilities"]["drop"] == ["ALL"]
    assert rights["allowPrivilegeEscalation"] is False
    for name in INSTANCES:
        service = composed()["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]


def test_its_limits_are_those_of_its_workers():
    numbers = [
        {name: int(settings[f"{PREFIX}{name}"]) for name in ("WORKERS", "THREADS")}
        for settings in map(env_file, FILES.values())
    ]
    assert numbers[0] == numbers[1]
    workers, threads = numbers[0].values()
    _, waiting = container()["lifecycle"]["preStop"]["exec"]["command"]
    memory = container()["resources"]["limits"]["memory"]
    assert int(memory.removesuffix("Mi")) * 1024**2 >= most_bytes(workers)
    # What a stop takes (docs/run/capacity.md): requests under way.
    assert POD["terminationGracePeriodSeconds"] - int(waiting) >= 30
    for name in INSTANCES:
        service = composed()["services"][name]
        assert service["mem_limit"] == "1g"
        assert most_bytes(workers) <= 1024**3
        assert int(service["stop_grace_period"].removesuffix("s")) >= 30
        # Its cgroup counts all threads.
        assert service["pids_limit"] >= most_tasks(workers, threads)


def test_a_pod_is_not_root_and_writes_to_its_volumes_alone():
    assert POD["automountServiceAccountToken"] is False
    assert POD["securityContext"]["runAsNonRoot"] is True
    user = f"USER {POD['securityContext']['runAsUser']}:"
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


FILES = {
    "compose": COMPOSE / "settings.env",
    "kubernetes": KUBERNETES / "settings.env",
}
EXPLORERS = {
    "compose": COMPOSE / "explorer.env",
    "kubernetes": KUBERNETES / "explorer" / "explorer.env",
}


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("with_explorer", [False, True], ids=["", "explorer"])
def test_the_settings_start_with_secrets_in_files(tmp_path, form, with_explorer):
    environ = env_file(FILES[form])
    services = composed()["services"]
    if form == "compose":
        environ |= services["encounters-1"]["environment"]
    else:
        environ |= {each["name"]: each["value"] for each in container()["env"]}
    if with_explorer:
        environ |= env_file(EXPLORERS[form])
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
    if form == "kubernetes":
        assert load_mapping(MAPPING, environ).source.url == SECRETS["pas_url"]
    else:
        address = services["proxy"]["networks"]["front"]["ipv4_address"]
        assert [str(n) for n in settings.trusted_proxies] == [f"{address}/32"]


def test_every_package_is_checked_by_its_hash_and_every_copied_file_is_named():
    text = re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text("utf-8"))
    installs = re.findall(r"pip (?:install|download)[^&\n]*", text)
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)
    first, *others = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = re.findall(r"^COPY (?!.*--from)(.+) \S+$", text, re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert first == "*"
    assert {line[1:] for line in others if line.startswith("!")} == names
    assert all((ROOT / name).exists() for name in names)
