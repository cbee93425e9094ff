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
from tests.deploy.files import COMPOSE, INSTANCES, OPERATORS_OWN, composed, env_file
from tests.deploy.proxies import NEEDS_NGINX, echoing, running
from tests.live import HOST, ROOT, free_ports, listens, wait_until

SERVICES = composed()["services"]


@pytest.mark.system
def test_it_fits_the_schema_of_compose_files():
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.compose-spec"]
    files = [COMPOSE / name for name in ("compose.yaml", "explorer.yaml")]
    subprocess.run([*command, *files], check=True)


def test_what_is_mounted_is_there():
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                path = COMPOSE / source
                assert path.exists() or path.name in OPERATORS_OWN, volume
            else:
                assert source in composed()["volumes"]


def test_only_the_proxy_and_what_looks_on_can_be_reached():
    networks = composed()["networks"]
    ports = {name: each["ports"] for name, each in SERVICES.items() if "ports" in each}
    assert ports.pop("proxy") == ["443:443"]
    assert all(p.startswith(f"{HOST}:") for some in ports.values() for p in some)
    for name, network in (
        ("redis", "store"),
        ("prometheus", "monitoring"),
        ("grafana", "monitoring"),
    ):
        assert SERVICES[name]["networks"] == [network]
        assert name not in ports
        assert networks[network]["internal"] is True
    assert "front" not in SERVICES["monitoring-proxy"]["networks"]
    assert "monitoring" not in SERVICES["proxy"]["networks"]


def test_every_image_is_pinned_by_a_digest_that_must_be_set():
    pins = env_file(COMPOSE / ".env")
    for name, service in SERVICES.items():
        if name not in INSTANCES:
            form = r"\$\{([A-Z]+)_IMAGE\}@\$\{\1_DIGEST:\?run \.\./pin\}"
            pinned = re.fullmatch(form, service["image"])
            assert pinned, name
            assert f"{pinned[1]}_IMAGE" in pins
    for name in pins:
        digest = pins[name.replace("_IMAGE", "_DIGEST")]
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest), name


DIGEST = f"sha256:{'5' * 64}"


@pytest.mark.parametrize("tool", ["docker", "skopeo", "crane", ""])
def test_the_script_pins_every_image_or_writes_nothing(tmp_path, tool):
    commands, file = tmp_path / "bin", tmp_path / "compose" / ".env"
    commands.mkdir()
    file.parent.mkdir()
    shutil.copy(ROOT / "deploy" / "pin", tmp_path)
    for name in ("bash", "dirname", "mktemp", "rm", "cat"):
        (commands / name).symlink_to(shutil.which(name))
    if tool:
        # No registry is asked.
        answer = '[ "$2" != version ] || exit 0\neval image=\\${$#}\n'
        answer += '[ "${image#docker://}" != "$UNKNOWN" ] || exit 1\necho "$ANSWER"\n'
        (commands / tool).write_text(f"#!/bin/sh\n{answer}")
        (commands / tool).chmod(0o755)
    shutil.copy(COMPOSE / ".env", file)
    pins = env_file(file)

    def pin(*images, answer=DIGEST, unknown=""):
        environ = {"PATH": str(commands), "ANSWER": answer, "UNKNOWN": unknown}
        command = [tmp_path / "pin", *images]
        return subprocess.run(command, env=environ, capture_output=True, text=True)

    for done in (pin(unknown=pins["REDIS_IMAGE"]), pin(answer="latest")):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr
        assert [each.name for each in file.parent.iterdir()] == [".env"]
        assert env_file(file) == pins
    if tool:
        assert pin().returncode == 0
        for name, text in env_file(file).items():
            assert text == (DIGEST if name.endswith("_DIGEST") else pins[name])
        assert pin("registry.example.org/encounters:1.0.0").stdout == f"{DIGEST}\n"


@pytest.fixture
def secrets(tmp_path):
    """Return the folder of secrets that the script writes, in a copy of deploy/compose."""
    ignored = shutil.ignore_patterns(*OPERATORS_OWN)
    shutil.copytree(COMPOSE, tmp_path / "compose", ignore=ignored)
    subprocess.run([tmp_path / "compose" / "secrets.sh"], check=True)
    return tmp_path / "compose" / "secrets"


def test_the_script_writes_every_secret_that_compose_names(secrets):
    named = {Path(each["file"]).name for each in composed()["secrets"].values()}
    assert {f.name for f in secrets.iterdir()} == named | {"hospital", "hospital.env"}
    texts = {name: (secrets / name).read_text() for name in named}
    assert len(set(texts.values())) == len(named)
    for name in named:
        status = (secrets / name).stat()
        assert status.st_mode & 0o777 == 0o400
        if os.geteuid() == 0:
            owner = {"redis_accounts": 999, "grafana_password": 472}.get(name, 10001)
            assert status.st_uid == owner
    grafana = SERVICES["grafana"]
    place = grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]
    assert place == f"/run/secrets/{grafana['secrets'][0]}"
    assert len(texts["grafana_password"]) == 64
    # Run again, it changes none.
    subprocess.run([secrets.parent / "secrets.sh"], check=True)
    assert {name: (secrets / name).read_text() for name in named} == texts


def upstreams(text):
    """Return the servers behind a proxy: each first, and again when all others fail."""
    first = re.findall(r"server ([\d.]+:\d+) max_fails=1", text)
    assert first == re.findall(r"server ([\d.]+:\d+) backup max_fails=0", text)
    return first


def test_proxy_and_prometheus_know_every_instance():
    prometheus = yaml.safe_load((COMPOSE / "prometheus.yaml").read_text("utf-8"))
    (targets,) = prometheus["scrape_configs"][0]["static_configs"]
    assert targets["targets"] == [f"{name}:9000" for name in INSTANCES]
    fronts = [SERVICES[n]["networks"]["front"]["ipv4_address"] for n in INSTANCES]
    text = (COMPOSE / "nginx.conf").read_text("utf-8")
    assert upstreams(text) == [f"{front}:8000" for front in fronts]
    keepalive = re.findall(r"keepalive_timeout (\d+)s", text)
    assert keepalive == ["60"], "less than the 75 of app/server/config.py"


def test_the_proxy_serves_the_explorer_once_its_file_is_named():
    for file in ("compose.yaml", "settings.env"):
        assert "explorer" not in (COMPOSE / file).read_text("utf-8").lower()
    assert "COMPOSE_FILE" not in env_file(COMPOSE / ".env")
    added = composed("explorer")["services"]
    settings = env_file(COMPOSE / "explorer.env")
    assert set(added) == {*INSTANCES, "proxy"}
    for name in INSTANCES:
        assert added[name] == {"env_file": ["explorer.env"]}
    # Read after that of clients, which remains the default and defines what both use.
    volumes = SERVICES["proxy"]["volumes"] + added["proxy"]["volumes"]
    assert [each for each in volumes if "conf.d" in each] == [
        "./nginx.conf:/etc/nginx/conf.d/default.conf:ro",
        "./explorer.conf:/etc/nginx/conf.d/explorer.conf:ro",
    ]
    address = urlsplit(settings[f"{PREFIX}EXPLORER_URL"])
    text = (COMPOSE / "explorer.conf").read_text("utf-8")
    assert f"listen {address.port} ssl;" in text
    assert f"server_name {address.hostname};" in text
    assert added["proxy"]["ports"] == [f"{address.port}:{address.port}"]
    port = settings[f"{PREFIX}EXPLORER_BIND"].rpartition(":")[2]
    clients = upstreams((COMPOSE / "nginx.conf").read_text("utf-8"))
    assert upstreams(text) == [u.replace(":8000", f":{port}") for u in clients]


def test_people_meet_the_same_tls_and_limits_as_clients():
    words = "ssl_c|ssl_p|ssl_s|_time|_log|limit_|client_|large_"
    directive = re.compile(rf"^    (?!ssl_client|ssl_cert)\w*(?:{words}).*$", re.M)
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
def test_redis_has_a_password_drops_no_page_and_survives_a_restart(tmp_path, secrets):
    text = (COMPOSE / "redis.conf").read_text("utf-8")
    for placed, meant in (("/data", tmp_path), ("/run/secrets", secrets)):
        assert placed in text
        text = text.replace(placed, str(meant))
    conf, log, port = tmp_path / "redis.conf", tmp_path / "log", free_ports()
    conf.write_text(f"{text}\nport {port}\nbind {HOST}\nlogfile {log}\n")
    log.touch()
    process = subprocess.Popen([server_program(), conf])
    try:
        wait_until(lambda: listens(port), log)
        with redis.Redis(port=port) as nobody, pytest.raises(redis.AuthenticationError):
            nobody.ping()
        url = (secrets / "redis_url").read_text().strip()
        assert "@redis:6379/" in url
        with redis.Redis.from_url(url.replace("redis:6379", f"{HOST}:{port}")) as ours:
            assert ours.set("page", b"1", ex=60)
            assert ours.eval("return redis.call('GET', KEYS[1])", 1, "page") == b"1"
            memory = ours.info("memory")
            assert memory["maxmemory_policy"] == "noeviction"
            assert memory["maxmemory"] == 512 * 1024**2
            assert ours.info("persistence")["aof_enabled"] == 1
            with pytest.raises(redis.exceptions.NoPermissionError):
                ours.config_get("*")
    finally:
        process.terminate()
        process.wait(60)
    assert re.search(r'^save ""$', text, re.MULTILINE)


@pytest.mark.system
@NEEDS_NGINX
def test_monitoring_is_reached_through_its_proxy(tmp_path):
    text = (COMPOSE / "monitoring.conf").read_text("utf-8")
    with ExitStack() as stack:
        places = []
        for service, shipped in (("grafana:3000", 3000), ("prometheus:9090", 9090)):
            behind, before = free_ports(), free_ports()
            stack.enter_context(echoing(behind))
            assert f"listen {shipped};" in text
            text = text.replace(service, f"{HOST}:{behind}")
            text = text.replace(f"listen {shipped};", f"listen {HOST}:{before};")
            places.append(f"{HOST}:{before}")
        stack.enter_context(running(tmp_path, text, before))
        for place in places:
            answer = requests.get(f"http://{place}/api/live", timeout=60)
            assert answer.status_code == 200
            assert answer.json()["Host"] == place
