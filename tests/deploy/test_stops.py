"""Two instances behind the shipped nginx are stopped and killed, while clients work."""

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from tests.app import provider
from tests.app.server.running import Running, keys, running_as, service_environ
from tests.databases import NewDatabase
from tests.deploy.proxies import NGINX, Proxy, nginx
from tests.hospital_http import serving
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, free_ports, wait_until
from tests.redis_server import RedisServer
from tests.serving import FORM, ids, link, relations
from toolkit.contract.hospital import EDGES

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed here"),
]

CLIENTS = 8
MEANWHILE = 150
"""So many requests are answered before and after each step."""

LOST = 0
"""The status that stands for an answer that never came, or was cut off."""

SEARCHES = (
    {"_sort": "date", "_count": "4"},
    {"_sort": "-_lastUpdated", "_count": "5"},
    {"patient": "5", "_count": "2"},
    {"status": "finished", "_sort": "date", "_count": "3"},
)


@dataclass
class Observed:
    """What the clients met: statuses that are not 200, and walks with other ids."""

    requests: int = 0
    failed: list[int] = field(default_factory=list)
    wrong: list[list[str]] = field(default_factory=list)


class Client:
    """Walks through one search again and again; repeats no request."""

    def __init__(self, number: int, proxy: Proxy, observed: Observed) -> None:
        self._search = SEARCHES[number % len(SEARCHES)]
        self._observed = observed
        token = provider.bearer(provider.sign(client_id=f"client-{number}"))
        self._headers = {"Authorization": token}
        self._connection = http.client.HTTPSConnection(
            HOST, proxy.port, timeout=60, context=proxy.trust()
        )
        self._expected = self._walk()

    def walk_until(self, ending: Event) -> None:
        """Walk until told to end."""
        while not ending.is_set():
            found = self._walk()
            if found is not None and found != self._expected:
                self._observed.wrong.append(found)
        self._connection.close()

    def _walk(self) -> list[str] | None:
        """Return the ids of all pages, None where a page was not answered."""
        form = urlencode(self._search)
        bundle = self._ask("POST", "/fhir/v3/Encounter/_search", form)
        found: list[str] = []
        while bundle:
            found += ids(bundle)
            if "next" not in relations(bundle):
                return found
            bundle = self._ask("GET", link(bundle, "next"))
        return None

    def _ask(self, method: str, url: str, form: str | None = None) -> Any:
        headers = {**self._headers, "Content-Type": FORM} if form else self._headers
        try:
            self._connection.request(method, url, form, headers)
            response = self._connection.getresponse()
            status, body = response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            status, body = LOST, b""
        self._observed.requests += 1
        if status != 200:
            self._observed.failed.append(status)
        return json.loads(body) if status == 200 else None


class Instance:
    """One instance of the service, which can be stopped and started again."""

    def __init__(self, directory: Path, environ: dict[str, str], port: int) -> None:
        directory.mkdir()
        self._begin = partial(running_as, directory, environ, port)
        self._stack = ExitStack()
        self.start()

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        service: Running = self._stack.enter_context(self._begin())
        service.until(lambda: service.operations("/ready").status == 200)
        self.service = service

    def drain(self) -> None:
        """Stop it as an operator does: it ends with status 0."""
        self._stack.close()


class Deployment(NamedTuple):
    """Two instances behind the proxy, and what clients meet that work meanwhile."""

    instances: list[Instance]
    mapping: Path
    observed: Observed

    def meanwhile(self) -> None:
        """Wait until so many more requests were answered."""
        enough = self.observed.requests + MEANWHILE
        wait_until(lambda: self.observed.requests >= enough, self.mapping)


@pytest.fixture
def deployment(
    tmp_path: Path, redis_server: RedisServer, new_postgresql: NewDatabase
) -> Iterator[Deployment]:
    """Run it with 8 clients; fail if a walk had other stays than when nothing happened."""
    url = new_postgresql("unicode")
    Tables(url, EDGES).close()
    mapping, observed, ending = tmp_path / "hospital.yaml", Observed(), Event()
    mapping.write_text(mapping_text(EDGES, url), "utf-8")
    with ExitStack() as stack:
        key_set = stack.enter_context(serving(keys))
        port, first = free_ports(), free_ports(4)
        ports = [first, first + 2]
        settings = {
            "BASE_URL": f"https://{HOST}:{port}/fhir/v3",
            "KEY_SET_URL": f"{key_set}/keys",
            "REDIS_URL": redis_server.url,
            "SEAL_KEYS": "x" * 43 + "=",
            "ADDRESS_REQUESTS_PER_MINUTE": "off",
            "CLIENT_REQUESTS_PER_MINUTE": "off",
        }
        instances = []
        for at in ports:
            environ = service_environ(mapping, at, **settings)
            instances.append(Instance(tmp_path / f"instance-{at}", environ, at))
            stack.callback(instances[-1].drain)
        # All clients have one address.
        limits = (
            ("limit_conn connections 256", "limit_conn connections 10000"),
            ("rate=1000r/s", "rate=100000r/s"),
        )
        proxy = stack.enter_context(nginx(tmp_path, ports, *limits, port=port))
        for number in range(CLIENTS):
            client = Client(number, proxy, observed)
            thread = Thread(target=client.walk_until, args=(ending,))
            thread.start()
            stack.callback(thread.join)
        stack.callback(ending.set)
        started = Deployment(instances, mapping, observed)
        started.meanwhile()
        yield started
        started.meanwhile()
    assert observed.wrong == []


def test_a_planned_stop_loses_no_response(deployment: Deployment) -> None:
    """A rolling restart, and a reload of both at once."""
    for instance in deployment.instances:
        instance.drain()
        deployment.meanwhile()
        instance.start()
        deployment.meanwhile()
    text = deployment.mapping.read_text("utf-8")
    deployment.mapping.write_text(text.replace("Tiny hospital", "Renamed"), "utf-8")
    for instance in deployment.instances:
        instance.service.reload()
    deployment.meanwhile()
    assert deployment.observed.failed == []


def test_an_instance_that_is_killed_loses_only_what_it_was_answering(
    deployment: Deployment,
) -> None:
    """The proxy goes on with the other one; a request in flight may be lost."""
    for worker in deployment.instances[0].service.workers():
        worker.send_signal(signal.SIGKILL)
    deployment.meanwhile()
    before = len(deployment.observed.failed)
    deployment.meanwhile()
    assert set(deployment.observed.failed) <= {LOST, 502, 503}
    assert len(deployment.observed.failed) == before
