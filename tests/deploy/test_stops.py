"""Two instances behind the shipped nginx are stopped and killed, while clients work."""

import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest
import requests

from tests.app import provider
from tests.app.server.running import Running, keys, running_as, service_environ
from tests.deploy.proxies import NEEDS_NGINX, nginx
from tests.hospital_http import serving
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, free_ports, wait_until
from tests.serving import ids, link, relations
from toolkit.contract.hospital import EDGES

pytestmark = [pytest.mark.system, NEEDS_NGINX]

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
class Deployment:
    """Instances behind a proxy, and what the clients met that work meanwhile."""

    base_url: str
    mapping: Path
    certificates: Path
    services: list[Running] = field(default_factory=list)
    requests: int = 0
    failed: list[int] = field(default_factory=list)

    def meanwhile(self):
        """Wait until so many more requests were answered."""
        enough = self.requests + MEANWHILE
        wait_until(lambda: self.requests >= enough, self.mapping)

    def walk_until(self, ending, number):
        """Walk through a search again and again, repeating no request; return all walks."""
        walks = []
        with requests.Session() as session:
            session.trust_env = False
            session.verify = str(self.certificates / "encounters.pem")
            files = (self.certificates / f"clients.{kind}" for kind in ("pem", "key"))
            session.cert = tuple(map(str, files))
            token = provider.bearer(provider.sign(client_id=f"client-{number}"))
            session.headers["Authorization"] = token
            search = SEARCHES[number % len(SEARCHES)]
            url = f"{self.base_url}/Encounter/_search"
            while not ending.is_set():
                walk, page = [], self._ask(session, "POST", url, search)
                while page:
                    walk += ids(page)
                    if "next" not in relations(page):
                        walks.append(walk)
                        break
                    page = self._ask(session, "GET", link(page, "next"))
        return walks

    def _ask(self, session, method, url, form=None):
        try:
            response = session.request(method, url, data=form, timeout=60)
            status = response.status_code
        except requests.RequestException:
            status = LOST
        self.requests += 1
        if status == 200:
            return response.json()
        self.failed.append(status)
        return None


@pytest.fixture
def deployment(tmp_path, redis_server, new_postgresql):
    """Run it with 8 clients; fail if a walk had other stays than when nothing happened."""
    url = new_postgresql("unicode")
    Tables(url, EDGES).close()
    mapping, port = tmp_path / "hospital.yaml", free_ports()
    mapping.write_text(mapping_text(EDGES, url), "utf-8")
    deployment = Deployment(f"https://{HOST}:{port}/fhir/v3", mapping, tmp_path)
    walks, ending = {}, Event()
    with ExitStack() as stack:
        settings = {
            "BASE_URL": deployment.base_url,
            "KEY_SET_URL": f"{stack.enter_context(serving(keys))}/keys",
            "REDIS_URL": redis_server.url,
            "SEAL_KEYS": "x" * 43 + "=",
            "ADDRESS_REQUESTS_PER_MINUTE": "off",
            "CLIENT_REQUESTS_PER_MINUTE": "off",
        }
        first = free_ports(4)
        ports = [first, first + 2]
        stops = []

        def start(number):
            """Start an instance, and wait until it is ready; what it returns stops it."""
            environ = service_environ(mapping, ports[number], **settings)
            directory = tmp_path / f"instance-{number}"
            directory.mkdir(exist_ok=True)
            stop = stack.enter_context(ExitStack())
            service = stop.enter_context(running_as(directory, environ, ports[number]))
            service.until(lambda: service.operations("/ready").status == 200)
            return service, stop

        def restart(number):
            stops[number].close()
            deployment.meanwhile()
            deployment.services[number], stops[number] = start(number)

        deployment.restart = restart
        for number in range(2):
            service, stop = start(number)
            deployment.services.append(service)
            stops.append(stop)
        # All clients have one address.
        limits = (
            ("limit_conn connections 256", "limit_conn connections 10000"),
            ("rate=1000r/s", "rate=100000r/s"),
        )
        stack.enter_context(nginx(tmp_path, ports, *limits, port=port))

        def work(number):
            walks[number] = deployment.walk_until(ending, number)

        for number in range(CLIENTS):
            thread = Thread(target=work, args=(number,))
            thread.start()
            stack.callback(thread.join)
        stack.callback(ending.set)
        deployment.meanwhile()
        yield deployment
        deployment.meanwhile()
    assert len(walks) == CLIENTS
    for client in walks.values():
        assert len(client) > 2
        assert all(walk == client[0] for walk in client)


def test_a_planned_stop_loses_no_response(deployment):
    """A rolling restart, and a reload of both at once."""
    for number in range(2):
        deployment.restart(number)
        deployment.meanwhile()
    text = deployment.mapping.read_text("utf-8")
    deployment.mapping.write_text(text.replace("Tiny hospital", "Renamed"), "utf-8")
    for service in deployment.services:
        service.reload()
    deployment.meanwhile()
    assert deployment.failed == []


def test_an_instance_that_is_killed_loses_only_what_it_was_answering(deployment):
    """The proxy goes on with the other one; a request in flight may be lost."""
    for worker in deployment.services[0].workers():
        worker.send_signal(signal.SIGKILL)
    deployment.meanwhile()
    before = len(deployment.failed)
    deployment.meanwhile()
    assert set(deployment.failed) <= {LOST, 502, 503}
    assert len(deployment.failed) == before
