"""deploy/compose is whole: the file fits its schema, the settings start, Redis takes its own."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from app.config import PREFIX, SETTINGS, Settings
from demo.processes import redis_server as server_program
from tests.app.changing import SEAL_KEYS
from tests.live import HOST, ROOT, free_ports, listens, wait_until

COMPOSE = ROOT / "deploy" / "compose"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTANCES = ("encounters-1", "encounters-2")

OPERATORS_OWN = {"hospital", "tls", "secrets"}
"""What the guide has its reader put there."""


def composed() -> Any:
    return yaml.safe_load((COMPOSE / "compose.yaml").read_text("utf-8"))


def env_file(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


def test_it_fits_the_schema_of_compose_files() -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    command += [
        "--builtin-schema",
        "vendor.compose-spec",
        str(COMPOSE / "compose.yaml"),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("name", INSTANCES)
def test_each_instance_runs_as_the_image_is_made_for(name: str) -> None:
    service = composed()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "ports" not in service, "only the proxy is reached from outside"
    # What a stop takes (docs/operators.md): requests under way.
    assert int(service["stop_grace_period"].removesuffix("s")) > 30
    # Each has a state of its own, where the image expects it.
    state = f"state-{name[-1]}:/var/lib/encounters"
    assert state in service["volumes"]
    assert "ENCOUNTERS_STATE_DIRECTORY=/var/lib/encounters" in DOCKERFILE


def test_what_is_mounted_is_there() -> None:
    for service in composed()["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                path = COMPOSE / source
                assert path.exists() or path.name in OPERATORS_OWN, volume
            else:
                assert source in composed()["volumes"]


def test_only_the_proxy_and_what_looks_on_can_be_reached() -> None:
    open_ports = {
        name: service["ports"]
        for name, service in composed()["services"].items()
        if "ports" in service
    }
    assert open_ports.pop("proxy") == ["443:443"]
    assert all(p.startswith(f"{HOST}:") for ports in open_ports.values() for p in ports)
    assert composed()["services"]["redis"]["networks"] == ["store"]
    assert composed()["networks"]["store"]["internal"] is True


def test_the_settings_start(tmp_path: Path) -> None:
    service = composed()["services"]["encounters-1"]
    given = env_file(COMPOSE / "settings.env") | service["environment"]
    known = {s.name for s in SETTINGS} | {
        f"{s.name}_FILE" for s in SETTINGS if s.secret
    }
    assert {name for name in given if name.startswith(PREFIX)} == set(given) <= known
    for name, value in (("seal_keys", SEAL_KEYS[0]), ("audit_key", "k" * 44)):
        (tmp_path / name).write_text(value)
        given[f"{PREFIX}{name.upper()}_FILE"] = str(tmp_path / name)
    given |= {f"{PREFIX}MAPPING": __file__, f"{PREFIX}AUDIT": str(tmp_path / "audit")}
    settings = Settings.from_environ(given)
    front = composed()["services"]["proxy"]["networks"]["front"]
    assert [str(n) for n in settings.trusted_proxies] == [f"{front['ipv4_address']}/32"]


def test_the_proxy_knows_every_instance() -> None:
    text = (COMPOSE / "nginx.conf").read_text("utf-8")
    first = re.findall(r"server ([\d.]+):8000 max_fails=1", text)
    last = re.findall(r"server ([\d.]+):8000 backup max_fails=0", text)
    services = composed()["services"]
    fronts = [services[name]["networks"]["front"] for name in INSTANCES]
    assert first == last == [front["ipv4_address"] for front in fronts]
    assert len(re.findall(r"^ *server .*:8000", text, re.MULTILINE)) == 4
    keepalive = re.findall(r"keepalive_timeout (\d+)s", text)
    assert keepalive == ["60"], "less than the 75 of app/server/config.py"


def test_prometheus_looks_at_every_instance() -> None:
    told = yaml.safe_load((COMPOSE / "prometheus.yaml").read_text("utf-8"))
    (job,) = told["scrape_configs"]
    (targets,) = job["static_configs"]
    assert targets["targets"] == [f"{name}:9000" for name in INSTANCES]


def test_redis_drops_no_page_and_survives_a_restart(tmp_path: Path) -> None:
    shipped = (COMPOSE / "redis.conf").read_text("utf-8")
    assert "dir /data\n" in shipped
    (tmp_path / "redis.conf").write_text(shipped.replace("/data", str(tmp_path)))
    port, log = free_ports(), tmp_path / "log"
    command = [str(server_program()), str(tmp_path / "redis.conf")]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--bind", HOST], stdout=file, stderr=file
        )
    try:
        wait_until(lambda: listens(port), log)
        with redis.Redis(port=port) as client:
            told = client.config_get("*")
            assert told["maxmemory-policy"] == "noeviction"
            assert int(told["maxmemory"]) > 0
            assert (told["appendonly"], told["save"]) == ("yes", "")
    finally:
        process.terminate()
        process.wait(60)
