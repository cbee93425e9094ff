"""deploy/compose is whole: its files fit each other, its scripts work, Redis takes its own."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
import requests
import yaml

from app.config import PREFIX
from demo.processes import redis_server as server_program
from tests.deploy.files import (
    COMPOSE,
    INSTANCES,
    OPERATORS_OWN,
    composed,
    env_file,
    front,
)
from tests.deploy.proxies import NGINX, around, echoing
from tests.live import HOST, ROOT, free_ports, listens, wait_until


@pytest.mark.system
def test_it_fits_the_schema_of_compose_files() -> None:
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.compose-spec"]
    files = [str(COMPOSE / name) for name in ("compose.yaml", "explorer.yaml")]
    checked = subprocess.run([*command, *files], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


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
    services, networks = composed()["services"], composed()["networks"]
    ports = {name: each["ports"] for name, each in services.items() if "ports" in each}
    assert ports.pop("proxy") == ["443:443"]
    assert all(p.startswith(f"{HOST}:") for some in ports.values() for p in some)
    for name, network in (
        ("redis", "store"),
        ("prometheus", "monitoring"),
        ("grafana", "monitoring"),
    ):
        assert services[name]["networks"] == [network]
        assert name not in ports
        assert networks[network]["internal"] is True
    assert "front" not in services["monitoring-proxy"]["networks"]
    assert "monitoring" not in services["proxy"]["networks"]


def test_every_image_is_pinned_by_a_digest_that_must_be_set() -> None:
    pins = env_file(COMPOSE / ".env")
    for name, service in composed()["services"].items():
        if name not in INSTANCES:
            form = r"\$\{([A-Z]+)_IMAGE\}@\$\{\1_DIGEST:\?run \.\./pin\}"
            pinned = re.fullmatch(form, service["image"])
            assert pinned, name
            assert f"{pinned[1]}_IMAGE" in pins
    for name in pins:
        digest = pins[name.replace("_IMAGE", "_DIGEST")]
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest), name


DIGEST = f"sha256:{'5' * 64}"
ANSWER = f"""[ "${{image#docker://}}" != "$UNKNOWN" ] || exit 1
echo "${{ANSWER:-{DIGEST}}}"
"""
TOOLS = {
    "docker": f'[ "$2" != version ] || exit 0; image=${{@: -1}}\n{ANSWER}',
    "skopeo": f"image=${{@: -1}}\n{ANSWER}",
    "crane": f"image=$2\n{ANSWER}",
}
"""Stand-ins of the tools: no registry is asked."""


@pytest.mark.parametrize("tool", [*TOOLS, ""])
def test_the_script_pins_every_image_or_writes_nothing(
    tmp_path: Path, tool: str
) -> None:
    deploy, commands = tmp_path / "deploy", tmp_path / "bin"
    (deploy / "compose").mkdir(parents=True)
    commands.mkdir()
    shutil.copy(ROOT / "deploy" / "pin", deploy)
    for name in ("bash", "dirname", "mktemp", "rm", "cat"):
        (commands / name).symlink_to(str(shutil.which(name)))
    if tool:
        (commands / tool).write_text(f"#!{shutil.which('bash')}\n{TOOLS[tool]}")
        (commands / tool).chmod(0o755)
    shipped, file = COMPOSE / ".env", deploy / "compose" / ".env"
    shutil.copy(shipped, file)
    pins = env_file(shipped)

    def pin(*images: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(deploy / "pin"), *images],
            env={"PATH": str(commands), **environ},
            capture_output=True,
            text=True,
        )

    for environ in ({"UNKNOWN": pins["REDIS_IMAGE"]}, {"ANSWER": "latest"}):
        done = pin(**environ)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr
        assert [each.name for each in file.parent.iterdir()] == [".env"]
        assert file.read_text() == shipped.read_text()
    if tool:
        assert pin().returncode == 0
        for name, text in env_file(file).items():
            assert text == (DIGEST if name.endswith("_DIGEST") else pins[name])
        assert pin("registry.example.org/encounters:1.0.0").stdout == f"{DIGEST}\n"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """Return the folder of secrets that the script writes, in a copy of deploy/compose."""
    ignored = shutil.ignore_patterns(*OPERATORS_OWN)
    shutil.copytree(COMPOSE, tmp_path / "compose", ignore=ignored)
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


def upstreams(name: str) -> list[str]:
    """Return the servers behind a proxy: each first, and again when all others fail."""
    text = (COMPOSE / name).read_text("utf-8")
    first = re.findall(r"server ([\d.]+:\d+) max_fails=1", text)
    assert first == re.findall(r"server ([\d.]+:\d+) backup max_fails=0", text)
    return first


def test_proxy_and_prometheus_know_every_instance() -> None:
    told = yaml.safe_load((COMPOSE / "prometheus.yaml").read_text("utf-8"))
    (targets,) = told["scrape_configs"][0]["static_configs"]
    assert targets["targets"] == [f"{name}:9000" for name in INSTANCES]
    places = [f"{front(name)}:8000" for name in INSTANCES]
    assert upstreams("nginx.conf") == places
    text = (COMPOSE / "nginx.conf").read_text("utf-8")
    keepalive = re.findall(r"keepalive_timeout (\d+)s", text)
    assert keepalive == ["60"], "less than the 75 of app/server/config.py"


def test_the_proxy_serves_the_explorer_once_its_file_is_named() -> None:
    added = composed("explorer")["services"]
    settings = env_file(COMPOSE / "explorer.env")
    assert set(added) == {*INSTANCES, "proxy"}
    for name in INSTANCES:
        assert added[name] == {"env_file": ["explorer.env"]}
    # Read after that of clients, which remains the default and defines what both use.
    volumes = composed()["services"]["proxy"]["volumes"] + added["proxy"]["volumes"]
    mounted = [each for each in volumes if "conf.d" in each]
    assert mounted == [
        "./nginx.conf:/etc/nginx/conf.d/default.conf:ro",
        "./explorer.conf:/etc/nginx/conf.d/explorer.conf:ro",
    ]
    address = urlsplit(settings[f"{PREFIX}EXPLORER_URL"])
    text = (COMPOSE / "explorer.conf").read_text("utf-8")
    assert f"listen {address.port} ssl;" in text
    assert f"server_name {address.hostname};" in text
    assert added["proxy"]["ports"] == [f"{address.port}:{address.port}"]
    port = settings[f"{PREFIX}EXPLORER_BIND"].rpartition(":")[2]
    assert upstreams("explorer.conf") == [f"{front(n)}:{port}" for n in INSTANCES]


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
@pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")
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
