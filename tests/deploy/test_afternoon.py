"""deploy/README.md is followed, to group A served by two instances behind nginx.

Where the guide says `docker`, its compose file is read and the image run without an engine
(`tests.deploy.containers`); all else is done as it stands there.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from demo.http import KEY_VARIABLE
from demo.processes import redis_server as server_program
from tests.app import provider
from tests.app.operations.running import keys
from tests.certificates import certify
from tests.deploy import containers
from tests.deploy.containers import Container
from tests.deploy.proxies import NGINX, nginx_conf
from tests.deploy.test_compose import INSTANCES, env_file
from tests.deploy.test_proxy import Proxy, asked
from tests.docs.pages import section
from tests.hospital_http import serving
from tests.live import HOST, ROOT, free_ports, listens, wait_until
from tests.sentinels import begin

MISSING = [*containers.MISSING, *([] if NGINX else ["nginx"])]

pytestmark = [
    pytest.mark.image,
    pytest.mark.skipif(
        bool(MISSING), reason=f"no builder here: {', '.join(MISSING)} not installed"
    ),
]

GUIDE = (ROOT / "deploy" / "README.md").read_text("utf-8")
PAS_KEY = "k-1"


def commands() -> list[str]:
    """Return what the guide has typed for one machine, up to the start."""
    typed = re.findall(r"^ +\$ (.*)$", section(GUIDE, "One machine"), re.MULTILINE)
    end = next(i for i, line in enumerate(typed) if line.startswith("docker compose"))
    return typed[:end]


class Machine:
    """The machine of the guide: a copy of what it needs, in `deploy/compose` of it."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self._stack, self._directory = stack, directory
        for name in ("deploy", "mappings"):
            shutil.copytree(ROOT / name, directory / name)
        self.here = directory / "deploy" / "compose"
        self.image = containers.build("localhost/encounters")
        self._root = stack.enter_context(containers.mounted(self.image))
        self._started: list[Container] = []

    def type(self, command: str) -> None:
        """Do what stands in the guide."""
        if command.startswith("docker run"):
            *_, arguments = command.partition("encounters:local ")
            self.tool(arguments.split())
            return
        # What is edited by hand is written below.
        command = command.replace("&& editor secrets/hospital.env", "")
        subprocess.run(["bash", "-euc", command], cwd=self.here, check=True)

    def tool(self, arguments: list[str]) -> None:
        """Run a tool of the image on the mapping."""
        mounts = {self.here / "hospital": "/etc/encounters"}
        container = self._container("tool", {}, mounts, arguments)
        container.start()
        assert container.ends() == 0, container.log.read_text()

    def edit(self, name: str, **values: str) -> None:
        """Give settings of a file other values, or new ones."""
        given = env_file(self.here / name) | values
        text = "".join(f"{key}={value}\n" for key, value in given.items())
        (self.here / name).write_text(text)

    def compose_up(self, redis: str) -> list[int]:
        """Start both instances as the compose file says; return their ports."""
        told = yaml.safe_load((self.here / "compose.yaml").read_text("utf-8"))
        ports = []
        for name in INSTANCES:
            service, port = told["services"][name], free_ports(2)
            environ: dict[str, str] = {}
            for file in service["env_file"]:
                environ |= env_file(self.here / file)
            environ |= service["environment"]
            # They share the network of this machine, and not one of their own.
            environ["ENCOUNTERS_REDIS_URL"] = redis
            environ["ENCOUNTERS_BIND"] = f"{HOST}:{port}"
            environ["ENCOUNTERS_OPERATIONS_BIND"] = f"{HOST}:{port + 1}"
            container = self._container(name, environ, self._mounts(told, service))
            container.start()
            self._started.append(container)
            ports.append(port)
        for port, container in zip(ports, self._started, strict=True):
            wait_until(lambda port=port: listens(port), container.log, 60)  # type: ignore[misc]
        return ports

    def _mounts(self, told: Any, service: Any) -> dict[Path, str]:
        mounts = {}
        for secret in service["secrets"]:
            mounts[self.here / told["secrets"][secret]["file"]] = (
                f"/run/secrets/{secret}"
            )
        for volume in service["volumes"]:
            source, place, *_ = volume.split(":")
            if source.startswith("."):
                mounts[self.here / source] = place
            else:
                kept = self._directory / source
                kept.mkdir(exist_ok=True)
                os.chown(kept, 10001, 10001)
                mounts[kept] = f"{place}:rw"
        return mounts

    def _container(
        self,
        name: str,
        environ: dict[str, str],
        mounts: dict[Path, str],
        arguments: list[str] | None = None,
    ) -> Container:
        bundle = self._directory / f"bundle-{name}"
        bundle.mkdir(exist_ok=True)
        told = containers.specification(
            self.image, self._root, environ, mounts, arguments or ()
        )
        container = Container(bundle, f"{name}-{os.getpid()}", told)
        self._stack.callback(container.remove)
        return container


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Follow the guide; yield the proxy that clients reach."""
    directory = tmp_path_factory.mktemp("machine")
    directory.chmod(0o755)
    with ExitStack() as stack:
        machine = Machine(stack, directory)
        for command in commands():
            machine.type(command)
        key_set = stack.enter_context(serving(keys))
        port, pas, redis = free_ports(), free_ports(), free_ports()
        machine.edit(
            "settings.env",
            ENCOUNTERS_BASE_URL=f"https://{HOST}:{port}/fhir/v3",
            ENCOUNTERS_ISSUER=provider.ISSUER,
            ENCOUNTERS_AUDIENCE=provider.AUDIENCE,
            ENCOUNTERS_KEY_SET_URL=f"{key_set}/keys",
            ENCOUNTERS_TRUSTED_PROXIES=HOST,
        )
        machine.edit(
            "secrets/hospital.env", PAS_URL=f"http://{HOST}:{pas}", PAS_KEY=PAS_KEY
        )
        tls = machine.here / "tls"
        for name in ("encounters", "clients"):
            certify(tls, name)
        environ = os.environ | {KEY_VARIABLE: PAS_KEY}
        hospital = [sys.executable, "-m", "demo.http", "--no-paging"]
        begin(stack, *hospital, "--port", str(pas), cwd=ROOT, env=environ)
        conf = (machine.here / "redis.conf").read_text()
        (directory / "redis.conf").write_text(conf.replace("/data", str(directory)))
        program = str(server_program())
        begin(stack, program, str(directory / "redis.conf"), "--port", str(redis))
        wait_until(
            lambda: listens(pas) and listens(redis), directory / "redis.conf", 60
        )
        ports = machine.compose_up(f"redis://{HOST}:{redis}/0")
        (tls / "nginx.conf").write_text(nginx_conf(tls, port, ports))
        begin(stack, str(NGINX), "-c", str(tls / "nginx.conf"), "-e", str(tls / "e"))
        wait_until(lambda: listens(port), tls / "nginx.conf", 60)
        yield Proxy(port, tls)


def test_group_a_is_served(proxy: Proxy) -> None:
    token = {"Authorization": provider.bearer(provider.sign())}
    told = asked(proxy, "clients", "/fhir/v3/metadata")
    assert told.status == 200
    assert json.loads(told.body)["implementation"]["description"] == "Group A"
    for _ in range(4):
        found = asked(proxy, "clients", "/fhir/v3/Encounter?patient=Patient/158", token)
        assert found.status == 200, found.body
        bundle = json.loads(found.body)
        assert bundle["total"] == 10
        (link,) = bundle["link"]
        # Whichever instance made the page, both have it.
        again = asked(
            proxy,
            "clients",
            urlsplit(link["url"])._replace(scheme="", netloc="").geturl(),
            token,
        )
        assert json.loads(again.body)["total"] == 10


def test_the_events_of_both_are_in_one_file(proxy: Proxy) -> None:
    machine = proxy.directory.parent.parent.parent
    events = (machine / "audit" / "audit.jsonl").read_text().splitlines()
    assert len(events) >= 9
    assert all(json.loads(e)["resourceType"] == "AuditEvent" for e in events)


def test_the_guide_types_what_is_done_here() -> None:
    programs = {command.split()[0] for command in commands()}
    assert programs == {"mkdir", "cp", "docker", "openssl", "install", "chown"}
