"""Two instances behind the shipped nginx are stopped and killed, while clients work."""

import signal
from contextlib import ExitStack
from threading import Event, Thread

import pytest
import requests

from tests.app import provider
from tests.app.server.running import keys, running_as, service_environ
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


class Traffic:
    """What clients met that walk through searches again and again, repeating no request."""

    def __init__(self, base_url, certificates):
        self.base_url, self.certificates = base_url, certificates
        self.requests, self.failed, self.walks = 0, [], [[] for _ in range(CLIENTS)]
        self.ending = Event()

    def meanwhile(self):
        """Wait until so many more requests were answered."""
        enough = self.requests + MEANWHILE
        log = self.certificates / "hospital.yaml"
        wait_until(lambda: self.requests >= enough, log)

    def work(self, number):
        """Walk as one client; a walk that is not answered to its end is left out."""
        search = SEARCHES[number % len(SEARCHES)]
        with requests.Session() as session:
            session.trust_env = False
            session.verify = str(self.certificates / "encounters.pem")
            files = (self.certificates / f"clients.{kind}" for kind in ("pem", "key"))
            session.cert = tuple(map(str, files))
            token = provider.bearer(provider.sign(client_id=f"client-{number}"))
            session.headers["Authorization"] = token
            while not self.ending.is_set():
                url, form, walk = f"{self.base_url}/Encounter/_search", search, []
                while page := self.ask(session, url, form):
                    walk += ids(page)
                    if "next" not in relations(page):
                        self.walks[number].append(walk)
                        break
                    url, form = link(page, "next"), None

    def ask(self, session, url, form):
        method = "POST" if form else "GET"
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


class Instance:
    """One instance of the service, which can be stopped and started again."""

    def __init__(self, *how):
        self.how, self.stack = how, ExitStack()
        self.start()

    def start(self):
        """Start it, and wait until it is ready."""
        self.service = self.stack.enter_context(running_as(*self.how))
        self.service.until(lambda: self.service.operations("/ready").status == 200)

    def stop(self):
        """Stop it as an operator does: it ends with status 0."""
        self.stack.close()


@pytest.fixture
def deployment(tmp_path, redis_server, new_postgresql):
    """Run it with 8 clients; fail if a walk had other stays than when nothing happened."""
    url = new_postgresql("unicode")
    Tables(url, EDGES).close()
    mapping, port, first = tmp_path / "hospital.yaml", free_ports(), free_ports(4)
    mapping.write_text(mapping_text(EDGES, url), "utf-8")
    traffic = Traffic(f"https://{HOST}:{port}/fhir/v3", tmp_path)
    with ExitStack() as stack:
        settings = {
            "BASE_URL": traffic.base_url,
            "KEY_SET_URL": f"{stack.enter_context(serving(keys))}/keys",
            "REDIS_URL": redis_server.url,
            "SEAL_KEYS": "x" * 43 + "=",
            "ADDRESS_REQUESTS_PER_MINUTE": "off",
            "CLIENT_REQUESTS_PER_MINUTE": "off",
        }
        instances, ports = [], [first, first + 2]
        for at in ports:
            directory = tmp_path / f"instance-{at}"
            directory.mkdir()
            environ = service_environ(mapping, at, **settings)
            instances.append(Instance(directory, environ, at))
            stack.callback(instances[-1].stop)
        # All clients have one address.
        limits = (
            ("limit_conn connections 256", "limit_conn connections 10000"),
            ("rate=1000r/s", "rate=100000r/s"),
        )
        stack.enter_context(nginx(tmp_path, ports, *limits, port=port))
        for number in range(CLIENTS):
            thread = Thread(target=traffic.work, args=(number,))
            thread.start()
            stack.callback(thread.join)
        stack.callback(traffic.ending.set)
        traffic.meanwhile()
        yield instances, traffic
        traffic.meanwhile()
    for first, *others in traffic.walks:
        assert others
        assert all(walk == first for walk in others)


def test_a_planned_stop_loses_no_response(deployment, tmp_path):
    """A rolling restart, and a reload of both at once."""
    instances, traffic = deployment
    for instance in instances:
        instance.stop()
        traffic.meanwhile()
        instance.start()
        traffic.meanwhile()
    mapping = tmp_path / "hospital.yaml"
    text = mapping.read_text("utf-8")
    mapping.write_text(text.replace("Tiny hospital", "Renamed"), "utf-8")
    for instance in instances:
        instance.service.reload()
    traffic.meanwhile()
    assert traffic.failed == []


def test_an_instance_that_is_killed_loses_only_what_it_was_answering(deployment):
    """The proxy goes on with the other one; a request in flight may be lost."""
    (killed, _), traffic = deployment
    for worker in killed.service.workers():
        worker.send_signal(signal.SIGKILL)
    traffic.meanwhile()
    before = len(traffic.failed)
    traffic.meanwhile()
    assert set(traffic.failed) <= {LOST, 502, 503}
    assert len(traffic.failed) == before
