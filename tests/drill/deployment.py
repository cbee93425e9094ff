"""What deploy/compose is, in real processes here: two instances behind nginx, and the rest.

PostgreSQL, Redis behind three sentinels, a provider that publishes keys, and nginx with the
configuration that is shipped. Each instance is a process group of its own, to be killed as
a machine that fails.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from cryptography.fernet import Fernet
from joserfc.jwk import Key

from adapters.testing.hospital import Hospital
from tests.app import provider
from tests.databases import postgresql
from tests.deploy.proxies import nginx
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, free_ports, listens
from tests.sentinels import Watched, until
from tests.server.running import SERVE

KEY_SET_SECONDS = 10


class Instance:
    """One instance of the service: `encounters serve` with all its processes."""

    def __init__(self, number: int, environ: dict[str, str], log: Path) -> None:
        self.port = free_ports(2)
        self.name = f"encounters-{number}"
        self._environ = environ | {
            "ENCOUNTERS_BIND": f"{HOST}:{self.port}",
            "ENCOUNTERS_OPERATIONS_BIND": f"{HOST}:{self.port + 1}",
        }
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *SERVE],
                cwd=ROOT,
                env=self._environ,
                stderr=log,
                start_new_session=True,
            )
        until(lambda: self.status("/fhir/v3/metadata", self.port)[0] == 200)

    def status(self, path: str, port: int) -> tuple[int, bytes]:
        """Ask it directly; the status is 0 where nobody answers."""
        connection = http.client.HTTPConnection(HOST, port, timeout=30)
        try:
            connection.request("GET", path, headers={"X-Forwarded-Proto": "https"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def serves(self, name: str) -> bool:
        """Whether the mapping of this name is served."""
        status, body = self.status("/fhir/v3/metadata", self.port)
        return (
            status == 200 and json.loads(body)["implementation"]["description"] == name
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the first process."""
        assert self._process is not None
        self._process.send_signal(number)

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

    def remove(self) -> None:
        """End it, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.drain()


class Keys:
    """A provider: it signs with one key, and publishes some in a file that is served."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        directory.mkdir()
        self._file = directory / "keys.json"
        self._signer = provider.rsa("first")
        self.publish(self._signer)
        port = free_ports()
        process = subprocess.Popen(
            [sys.executable, "-m", "http.server", "--bind", HOST, str(port)],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(process.wait, 60)
        stack.callback(process.terminate)
        until(lambda: listens(port))
        self.url = f"http://{HOST}:{port}/{self._file.name}"

    def publish(self, *keys: Key) -> None:
        """From now on these are the keys."""
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(provider.key_set(*keys)))
        new.rename(self._file)

    def sign_with(self, key: Key) -> None:
        """From now on tokens are signed with another key."""
        self._signer = key

    def token(self, client: str) -> str:
        """Return a new token of a client."""
        return provider.sign(self._signer, client_id=client)


class Deployment:
    """All of it, running; leaving the stack ends it."""

    def __init__(self, stack: ExitStack, directory: Path, hospital: Hospital) -> None:
        self.redis = Watched(stack, directory)
        self.keys = Keys(stack, directory / "provider")
        self.mapping = directory / "hospital.yaml"
        text = mapping_text(hospital).replace("connections: 2", "connections: 6")
        self.mapping.write_text(text, "utf-8")
        url = stack.enter_context(postgresql()).get_uri(driver="psycopg")
        Tables(url, hospital).close()
        self.port = free_ports()
        environ = os.environ | {
            **provider.environ(
                self.mapping,
                BASE_URL=f"https://{HOST}:{self.port}/fhir/v3",
                KEY_SET_URL=self.keys.url,
                KEY_SET_SECONDS=str(KEY_SET_SECONDS),
                REDIS_URL=self.redis.url,
                SEAL_KEYS=Fernet.generate_key().decode(),
                TRUSTED_PROXIES=HOST,
                AUDIT=str(directory / "audit.jsonl"),
                AUDIT_KEY="k" * 44,
            ),
            "PAS_URL": url,
        }
        self.instances = [
            Instance(number, environ, directory / f"encounters-{number}.log")
            for number in (1, 2)
        ]
        for instance in self.instances:
            stack.callback(instance.remove)
            instance.start()
        # All clients of a drill have one address.
        more = ("limit_conn connections 256", "limit_conn connections 10000")
        ports = [instance.port for instance in self.instances]
        proxy = stack.enter_context(nginx(directory, ports, more, port=self.port))
        self.trusted = proxy.trust()

    def reload(
        self, name: str, change: Callable[[str], str] = lambda text: text
    ) -> None:
        """Change the mapping file, and have both instances load it."""
        lines = self.mapping.read_text("utf-8").splitlines()
        named = [f"name: {name}" if line[:6] == "name: " else line for line in lines]
        self.mapping.write_text(change("\n".join(named)), "utf-8")
        for instance in self.instances:
            instance.signal(signal.SIGHUP)
        for instance in self.instances:
            until(lambda instance=instance: instance.serves(name))
