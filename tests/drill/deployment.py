"""What deploy/compose is, in real processes here: two instances behind nginx, and the rest.

PostgreSQL, a Redis of the caller's, a provider that publishes keys, and nginx with the
configuration that is shipped. Each instance is a process group of its own, to be killed as a
machine that fails.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from joserfc.jwk import Key
from werkzeug.wrappers import Request, Response

from tests.app import provider
from tests.app.server.running import SERVE, Answered, fetch
from tests.databases import postgresql
from tests.deploy.proxies import nginx
from tests.drill.clients import TRIES, Client, Work, work_of
from tests.drill.ledger import Ledger
from tests.hospital_http import answer, serving
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, free_ports
from tests.redis_server import RedisServer, started_redis
from tests.sentinels import until
from toolkit.contract.hospital import EDGES

KEY_SET_SECONDS = 10


class Instance:
    """One instance of the service: `encounters serve` with all its processes."""

    def __init__(self, number: int, environ: dict[str, str], log: Path) -> None:
        self.port = free_ports(2)
        self.name = f"encounters-{number}"
        self.release = ROOT
        self.log = log
        self._environ = environ | {
            "ENCOUNTERS_BIND": f"{HOST}:{self.port}",
            "ENCOUNTERS_OPERATIONS_BIND": f"{HOST}:{self.port + 1}",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start its release, and wait until it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *SERVE],
                cwd=self.release,
                env=self._environ | {"PYTHONPATH": str(self.release)},
                stderr=log,
                start_new_session=True,
            )
        until(lambda: self.metadata() is not None)

    def operations(self, path: str) -> Answered:
        """Ask on the operations port."""
        return fetch(f"http://{HOST}:{self.port + 1}{path}", {}, 30)

    def metadata(self) -> Any:
        """Return the CapabilityStatement, None where nobody answers."""
        url = f"http://{HOST}:{self.port}/fhir/v3/metadata"
        found = fetch(url, {"X-Forwarded-Proto": "https"}, 30)
        return found.json if found.status == 200 else None

    def serves(self, name: str) -> bool:
        """Whether the mapping of this name is served."""
        found = self.metadata()
        return bool(found and found["implementation"]["description"] == name)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the first process."""
        assert self._process is not None
        self._process.send_signal(number)

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes."""
        assert self._process is not None
        return psutil.Process(self._process.pid).children()

    def kill(self) -> None:
        """End all its processes at once, as when a machine fails."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)

    def drain(self) -> int:
        """Stop it as an operator does; return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(60)

    def restart(self, release: Path | None = None) -> None:
        """Stop it as an operator does, and start it again, as another release if one is named."""
        assert self.drain() == 0
        self.release = release or self.release
        self.start()

    def remove(self) -> None:
        """End it, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.drain()


class Keys:
    """A provider: it signs with one key, and publishes some."""

    def __init__(self, stack: ExitStack) -> None:
        self._signer: Key = provider.rsa("first")
        self._published = [self._signer]
        self.url = stack.enter_context(serving(self._application))

    @Request.application
    def _application(self, _request: Request) -> Response:
        return answer(provider.key_set(*self._published))

    def publish(self, *keys: Key) -> None:
        """From now on these are the keys."""
        self._published = [*keys]

    def sign_with(self, key: Key) -> None:
        """From now on tokens are signed with another key."""
        self._signer = key

    def token(self, client: str) -> str:
        """Return a new token of a client."""
        return provider.sign(self._signer, client_id=client)


class Deployment:
    """All of it, running; leaving the stack ends it. `changes` are of the proxy's file."""

    def __init__(
        self,
        stack: ExitStack,
        directory: Path,
        redis_url: str,
        *changes: tuple[str, str],
    ) -> None:
        self.directory = directory
        self.keys = Keys(stack)
        self.database = stack.enter_context(postgresql())
        url = self.database.get_uri(driver="psycopg")
        Tables(url, EDGES).close()
        self.mapping = directory / "hospital.yaml"
        text = mapping_text(EDGES, url).replace("connections: 2", "connections: 8")
        self.mapping.write_text(text, "utf-8")
        self.port = free_ports()
        self.audit = directory / "audit.jsonl"
        environ = os.environ | provider.environ(
            self.mapping,
            BASE_URL=f"https://{HOST}:{self.port}/fhir/v3",
            KEY_SET_URL=self.keys.url,
            KEY_SET_SECONDS=str(KEY_SET_SECONDS),
            REDIS_URL=redis_url,
            TRUSTED_PROXIES=HOST,
            AUDIT=str(self.audit),
            AUDIT_KEY="k" * 44,
            ADDRESS_REQUESTS_PER_MINUTE="off",
            CLIENT_REQUESTS_PER_MINUTE="off",
        )
        self.instances = [
            Instance(number, environ, directory / f"encounters-{number}.log")
            for number in (1, 2)
        ]
        for instance in self.instances:
            stack.callback(instance.remove)
            instance.start()
        # All clients of a drill have one address.
        more = (
            ("limit_conn connections 256", "limit_conn connections 10000"),
            ("rate=1000r/s", "rate=100000r/s"),
        )
        ports = [instance.port for instance in self.instances]
        changed = nginx(directory, ports, *more, *changes, port=self.port)
        self.proxy = stack.enter_context(changed)
        self.trusted = self.proxy.trust()

    def work(self) -> Work:
        """Return what clients do, with what is returned while nothing is broken."""
        (client,) = self.clients(1, Ledger())
        return work_of(client)

    def clients(self, count: int, ledger: Ledger, tries: int = TRIES) -> list[Client]:
        """Return clients with tokens of the provider's key."""
        return [
            Client(number, self.port, self.trusted, self.keys.token, ledger, tries)
            for number in range(count)
        ]

    def waiting(self) -> int:
        """Return how many statements wait for a lock in the database."""
        with psycopg.connect(self.database.get_uri(), autocommit=True) as connection:
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            return len(connection.execute(waits).fetchall())

    def reload(
        self, name: str, change: Callable[[str], str] = lambda text: text
    ) -> None:
        """Change the mapping file, and have both instances load it."""
        lines = self.mapping.read_text("utf-8").splitlines()
        named = [f"name: {name}" if line[:6] == "name: " else line for line in lines]
        self.mapping.write_text(change("\n".join(named)), "utf-8")
        before = [each for instance in self.instances for each in instance.workers()]
        for instance in self.instances:
            instance.signal(signal.SIGHUP)
        for instance in self.instances:
            until(lambda instance=instance: instance.serves(name))
        until(lambda: not any(each.is_running() for each in before))


@contextmanager
def deployed(
    directory: Path, *changes: tuple[str, str]
) -> Iterator[tuple[Deployment, RedisServer]]:
    """Run a deployment with a Redis of its own."""
    with ExitStack() as stack:
        redis = stack.enter_context(started_redis())
        yield Deployment(stack, directory, redis.url, *changes), redis
