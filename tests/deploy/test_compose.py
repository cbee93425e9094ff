"""deploy/compose is whole: the file fits its schema, the settings start, Redis takes its own."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
import requests
import yaml

from app.config import PREFIX, SETTINGS, Settings
from demo.processes import redis_server as server_program
from tests.deploy.peak import most_bytes, most_tasks
from tests.deploy.proxies import NGINX, around, echoing
from tests.live import HOST, ROOT, free_ports, listens, wait_until

COMPOSE = ROOT / "deploy" / "compose"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTANCES = ("encounters-1", "encounters-2")

OPERATORS_OWN = {"hospital", "tls", "secrets"}
"""What the guide has its reader put there."""

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")


def composed() -> Any:
    return yaml.safe_load((COMPOSE / "compose.yaml").read_text("utf-8"))


def env_file(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


REDIS = env_file(COMPOSE / ".env")["REDIS_IMAGE"]


@pytest.mark.system
def test_it_fits_the_schema_of_compose_files() -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.compose-spec"]
    files = [str(COMPOSE / name) for name in ("compose.yaml", "explorer.yaml")]
    checked = subprocess.run([*command, *files], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_instance_runs_as_the_image_is_made_for() -> None:
    for name in INSTANCES:
        service = composed()["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        settings = env_file(COMPOSE / "settings.env")
        workers, threads = (
            int(settings[f"{PREFIX}{n}"]) for n in ("WORKERS", "THREADS")
        )
        assert service["pids_limit"] >= most_tasks(workers, threads)
        assert service["mem_limit"] == "1g"
        assert most_bytes(workers) < 1024**3
        # What a stop takes (docs/run/capacity.md): requests under way.
        assert int(service["stop_grace_period"].removesuffix("s")) > 30


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


def test_prometheus_and_grafana_are_on_an_internal_network_alone() -> None:
    services, networks = composed()["services"], composed()["networks"]
    for name in ("prometheus", "grafana"):
        assert services[name]["networks"] == ["monitoring"]
        assert "ports" not in services[name]
    assert networks["monitoring"]["internal"] is True
    assert "front" not in services["monitoring-proxy"]["networks"]
    assert "monitoring" not in services["proxy"]["networks"]


def test_every_image_is_pinned_by_a_digest_that_must_be_set() -> None:
    pins = env_file(COMPOSE / ".env")
    others = {n: s for n, s in composed()["services"].items() if n not in INSTANCES}
    named = set()
    for name, service in others.items():
        form = r"\$\{([A-Z]+)_IMAGE\}@\$\{([A-Z]+)_DIGEST:\?run \.\./pin\}"
        pinned = re.fullmatch(form, service["image"])
        assert pinned, name
        assert pinned[1] == pinned[2]
        named.add(pinned[1])
    assert {f"{name}_IMAGE" for name in named} <= set(pins)
    for name, value in pins.items():
        if name.endswith("_DIGEST"):
            assert re.fullmatch(r"sha256:[0-9a-f]{64}", value), name
        else:
            assert f"{name.removesuffix('_IMAGE')}_DIGEST" in pins
            assert re.fullmatch(r"[a-z/]+:[\w.-]+", value), name


def digest_of(image: str) -> str:
    """Return a digest that the stand-in of a tool answers for an image."""
    return f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"


TOOLS = {
    "docker": '[ "$2" = version ] || exec hashed "${@: -1}"',
    "skopeo": 'image=${@: -1}; exec hashed "${image#docker://}"',
    "crane": 'exec hashed "${@: -1}"',
}
"""What each tool does with its arguments here: no registry is asked."""

HASHED = """[ "$1" != "$UNKNOWN" ] || exit 1
echo "sha256:$(printf %s "$1" | sha256sum | cut -d ' ' -f 1)"
"""

Pin = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def pin(tmp_path: Path) -> Pin:
    """Run a copy of `deploy/pin` where one tool is installed."""
    copy, commands = tmp_path / "deploy", tmp_path / "bin"
    (copy / "compose").mkdir(parents=True)
    commands.mkdir()
    shutil.copy(ROOT / "deploy" / "pin", copy)
    shutil.copy(COMPOSE / ".env", copy / "compose")
    for name in ("bash", "dirname", "mktemp", "rm", "cat", "cut", "sha256sum"):
        (commands / name).symlink_to(str(shutil.which(name)))

    def run(
        tool: str, *images: str, unknown: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        for name, text in {"hashed": HASHED, tool: TOOLS.get(tool, "exit 1")}.items():
            (commands / name).write_text(f"#!{shutil.which('bash')}\n{text}\n")
            (commands / name).chmod(0o755)
        return subprocess.run(
            [str(copy / "pin"), *images],
            env={"PATH": str(commands), "UNKNOWN": unknown},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.system
def test_the_script_writes_the_digest_of_every_image(pin: Pin, tmp_path: Path) -> None:
    before, file = env_file(COMPOSE / ".env"), tmp_path / "deploy" / "compose" / ".env"
    images = {name: before[name] for name in before if name.endswith("_IMAGE")}
    digests = {
        name.replace("_IMAGE", "_DIGEST"): digest_of(image)
        for name, image in images.items()
    }
    # What one has written the next one reads.
    for tool in TOOLS:
        done = pin(tool)
        assert done.returncode == 0, done.stderr
        assert env_file(file) == images | digests
        (tmp_path / "bin" / tool).unlink()
    assert "\n#" in file.read_text()
    image = "registry.example.org/encounters:1.0.0"
    assert pin("crane", image).stdout.strip() == digest_of(image)


def test_where_one_digest_is_missing_nothing_is_written(
    pin: Pin, tmp_path: Path
) -> None:
    folder = tmp_path / "deploy" / "compose"
    for tool, unknown in (("crane", REDIS), ("skopeo", REDIS), ("none", "")):
        done = pin(tool, unknown=unknown)
        assert done.returncode != 0
        assert done.stderr
        (tmp_path / "bin" / tool).unlink()
    # Nor where a tool answers something that is none.
    (tmp_path / "bin" / "cut").unlink()
    (tmp_path / "bin" / "cut").symlink_to(str(shutil.which("true")))
    done = pin("crane", REDIS)
    assert (done.returncode, done.stdout) == (1, "")
    assert [file.name for file in folder.iterdir()] == [".env"]
    assert (folder / ".env").read_text() == (COMPOSE / ".env").read_text()


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """Return the folder of secrets that the script writes, in a copy of deploy/compose."""
    shutil.copytree(
        COMPOSE, tmp_path / "compose", ignore=shutil.ignore_patterns(*OPERATORS_OWN)
    )
    script = tmp_path / "compose" / "secrets.sh"
    subprocess.run([str(script)], check=True, capture_output=True)
    return tmp_path / "compose" / "secrets"


def test_the_script_writes_every_secret_that_compose_names(secrets: Path) -> None:
    named = {Path(each["file"]).name for each in composed()["secrets"].values()}
    own = {"hospital", "hospital.env"}
    assert {file.name for file in secrets.iterdir()} == named | own
    texts = {name: (secrets / name).read_text() for name in named}
    assert len(set(texts.values())) == len(named)
    for name in named:
        assert (secrets / name).stat().st_mode & 0o777 == 0o400
        if os.geteuid() == 0:
            owner = {"redis_accounts": 999, "grafana_password": 472}.get(name, 10001)
            assert (secrets / name).stat().st_uid == owner
    grafana = composed()["services"]["grafana"]
    place = grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]
    assert place == f"/run/secrets/{grafana['secrets'][0]}"
    assert len(texts["grafana_password"]) == 64
    # Run again, it changes none.
    subprocess.run([str(secrets.parent / "secrets.sh")], check=True)
    assert {name: (secrets / name).read_text() for name in named} == texts


def start(tmp_path: Path, secrets: Path, more: dict[str, str]) -> dict[str, str]:
    """Return the environment of an instance, with files of this machine."""
    service = composed()["services"]["encounters-1"]
    given = env_file(COMPOSE / "settings.env") | service["environment"] | more
    known = {s.name for s in SETTINGS} | {f"{s.name}_FILE" for s in SETTINGS}
    assert {name for name in given if name.startswith(PREFIX)} == set(given) <= known
    mounted = {f"/run/secrets/{name}": secrets / name for name in service["secrets"]}
    given = {name: str(mounted.get(value, value)) for name, value in given.items()}
    return given | {
        f"{PREFIX}MAPPING": __file__,
        f"{PREFIX}AUDIT": str(tmp_path / "audit"),
    }


def test_the_settings_start(tmp_path: Path, secrets: Path) -> None:
    settings = Settings.from_environ(start(tmp_path, secrets, {}))
    assert settings.explorer_bind is None
    front = composed()["services"]["proxy"]["networks"]["front"]
    assert [str(n) for n in settings.trusted_proxies] == [f"{front['ipv4_address']}/32"]


def test_proxy_and_prometheus_know_every_instance() -> None:
    told = yaml.safe_load((COMPOSE / "prometheus.yaml").read_text("utf-8"))
    (targets,) = told["scrape_configs"][0]["static_configs"]
    assert targets["targets"] == [f"{name}:9000" for name in INSTANCES]
    text = (COMPOSE / "nginx.conf").read_text("utf-8")
    first = re.findall(r"server ([\d.]+):8000 max_fails=1", text)
    last = re.findall(r"server ([\d.]+):8000 backup max_fails=0", text)
    services = composed()["services"]
    fronts = [services[name]["networks"]["front"] for name in INSTANCES]
    assert first == last == [front["ipv4_address"] for front in fronts]
    assert len(re.findall(r"^ *server .*:8000", text, re.MULTILINE)) == 4
    keepalive = re.findall(r"keepalive_timeout (\d+)s", text)
    assert keepalive == ["60"], "less than the 75 of app/server/config.py"


def explorer() -> Any:
    """Return what explorer.yaml adds to each service."""
    return yaml.safe_load((COMPOSE / "explorer.yaml").read_text("utf-8"))["services"]


def test_the_explorer_is_off_unless_its_file_is_named() -> None:
    for name in ("compose.yaml", "settings.env"):
        lines = (COMPOSE / name).read_text("utf-8").splitlines()
        assert not [each for each in lines if "explorer" in each.lower()], name
    assert "COMPOSE_FILE" not in env_file(COMPOSE / ".env")
    added = explorer()
    assert set(added) == {*INSTANCES, "proxy"}
    for name in INSTANCES:
        assert added[name] == {"env_file": ["explorer.env"]}
    (mounted,) = added["proxy"]["volumes"]
    # Read after that of clients, which remains the default and defines what both use.
    assert mounted == "./explorer.conf:/etc/nginx/conf.d/explorer.conf:ro"
    assert (
        "./nginx.conf:/etc/nginx/conf.d/default.conf:ro"
        in (composed()["services"]["proxy"]["volumes"])
    )


def test_the_proxy_serves_the_explorer_that_the_settings_start(
    tmp_path: Path, secrets: Path
) -> None:
    settings = Settings.from_environ(
        start(tmp_path, secrets, env_file(COMPOSE / "explorer.env"))
    )
    address = urlsplit(str(settings.explorer_url))
    assert settings.explorer_client_id
    text = (COMPOSE / "explorer.conf").read_text("utf-8")
    assert f"listen {address.port} ssl;" in text
    assert f"server_name {address.hostname};" in text
    assert explorer()["proxy"]["ports"] == [f"{address.port}:{address.port}"]
    upstreams = re.findall(r"server ([\d.]+:\d+) (?:max_fails=1|backup)", text)
    services = composed()["services"]
    fronts = [services[name]["networks"]["front"] for name in INSTANCES]
    port = str(settings.explorer_bind).rpartition(":")[2]
    assert upstreams == [f"{front['ipv4_address']}:{port}" for front in fronts] * 2


def test_people_meet_the_same_tls_and_limits_as_clients() -> None:
    words = ("ssl_c", "ssl_p", "ssl_s", "_time", "_log", "limit_", "client_", "large_")
    directive = re.compile(
        rf"^    (?!ssl_client|ssl_cert)\w*(?:{'|'.join(words)}).*$", re.M
    )
    clients, people = (
        directive.findall(
            (COMPOSE / name).read_text("utf-8").partition("\nserver {")[2]
        )
        for name in ("nginx.conf", "explorer.conf")
    )
    # Of a session that began without a certificate the other server knows nothing.
    assert people.count("    ssl_session_cache shared:explorer_tls:10m;") == 1
    assert [each.replace(":explorer_tls:", ":tls:") for each in people] == clients
    assert len(people) > 15


@pytest.mark.system
def test_redis_has_a_password_drops_no_page_and_survives_a_restart(
    tmp_path: Path, secrets: Path
) -> None:
    shipped = (COMPOSE / "redis.conf").read_text("utf-8")
    assert "dir /data\n" in shipped
    moved = shipped.replace("/data", str(tmp_path))
    (tmp_path / "redis.conf").write_text(moved.replace("/run/secrets", str(secrets)))
    assert f"{secrets}/redis_accounts" in (tmp_path / "redis.conf").read_text()
    port, log = free_ports(), tmp_path / "log"
    command = [str(server_program()), str(tmp_path / "redis.conf")]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--bind", HOST], stdout=file, stderr=file
        )
    try:
        wait_until(lambda: listens(port), log)
        with redis.Redis(port=port) as nobody, pytest.raises(redis.AuthenticationError):
            nobody.ping()
        url = (secrets / "redis_url").read_text().strip()
        assert "@redis:6379/" in url
        with redis.Redis.from_url(url.replace("redis:6379", f"{HOST}:{port}")) as ours:
            assert ours.set("page", b"1", ex=60)
            assert ours.eval("return redis.call('GET', KEYS[1])", 1, "page") == b"1"
            told = ours.info("memory")
            assert told["maxmemory_policy"] == "noeviction"
            assert told["maxmemory"] == 512 * 1024**2
            assert ours.info("persistence")["aof_enabled"] == 1
            with pytest.raises(redis.exceptions.NoPermissionError):
                ours.config_get("*")
    finally:
        process.terminate()
        process.wait(60)
    assert re.search(r'^save ""$', shipped, re.MULTILINE)


@pytest.mark.system
@needs_nginx
def test_monitoring_is_reached_through_its_proxy(tmp_path: Path) -> None:
    text = (COMPOSE / "monitoring.conf").read_text("utf-8")
    ports = {"grafana:3000": 3000, "prometheus:9090": 9090}
    with ExitStack() as stack:
        places = {}
        for service, shipped in ports.items():
            behind, before = free_ports(), free_ports()
            stack.enter_context(echoing(behind))
            assert f"listen {shipped};" in text
            text = text.replace(service, f"{HOST}:{behind}")
            text = text.replace(f"listen {shipped};", f"listen {HOST}:{before};")
            places[service] = before
        conf = tmp_path / "nginx.conf"
        conf.write_text(around(tmp_path, text))
        command = [str(NGINX), "-c", str(conf), "-e", str(tmp_path / "error.log")]
        process = subprocess.Popen(command)
        stack.callback(lambda: (process.terminate(), process.wait(60)))
        for before in places.values():
            wait_until(lambda port=before: listens(port), conf)
            answer = requests.get(f"http://{HOST}:{before}/api/live", timeout=60)
            assert answer.status_code == 200
            assert answer.json()["Host"] == f"{HOST}:{before}"
