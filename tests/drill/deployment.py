"""What deploy/compose is, in real processes here: two instances behind nginx, and the rest.

PostgreSQL, a Redis of the caller's, a provider that publishes keys and introspects tokens, and
nginx with the configuration that is shipped. Each instance is a process group of its own, to be
killed as a machine that fails. Every secret is in a file.
"""

import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
import sqlalchemy as sa
from cryptography.fernet import Fernet
from joserfc.jwk import Key
from werkzeug.wrappers import Request, Response

from tests.app import provider
from tests.databases import postgresql
from tests.deploy.proxies import nginx
from tests.drill.clients import TRIES, Client
from tests.drill.ledger import Ledger
from tests.hospital_http import answer, serving
from tests.hospital_sql import Tables, mapping_text
from tests.live import HOST, ROOT, free_ports, listens
from tests.redis_server import RedisServer
from tests.sentinels import until
from tests.server.running import SERVE
from toolkit.contract.hospital import Hospital

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

    def version(self) -> str:
        """Return the release that answers."""
        _, body = self.status("/fhir/v3/metadata", self.port)
        return str(json.loads(body)["software"]["version"])

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


class Introspection:
    """What the provider says of opaque tokens, to who has one of its client secrets."""

    def __init__(self, stack: ExitStack, secret: str) -> None:
        self.secrets = {secret}
        self.refused = 0
        self._clients: dict[str, str] = {}
        self.url = stack.enter_context(serving(self._application)) + "/introspect"

    def token(self, client: str) -> str:
        """Return a new token of a client."""
        token = secrets.token_urlsafe()
        self._clients[token] = client
        return token

    @Request.application
    def _application(self, request: Request) -> Response:
        credentials = request.authorization
        if credentials is None or credentials.password not in self.secrets:
            self.refused += 1
            return Response(status=401)
        client = self._clients.get(request.form["token"])
        claims = provider.claims(client_id=client)
        return answer({"active": client is not None, **claims})


class Database:
    """PostgreSQL with the tables of a hospital, and accounts that read them by a password."""

    def __init__(self, stack: ExitStack, hospital: Hospital) -> None:
        self.server = stack.enter_context(postgresql())
        self.url = self.server.get_uri(driver="psycopg")
        Tables(self.url, hospital).close()
        # Everybody else is let in without one.
        rules = self.server.pgdata / "pg_hba.conf"
        rules.write_text(f"local all +readers scram-sha-256\n{rules.read_text()}")
        self.execute("CREATE ROLE readers")
        self.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO readers")
        self.execute("SELECT pg_reload_conf()")

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as the administrator; return its rows."""
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def waiting(self) -> int:
        """Return how many statements wait for a lock."""
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return len(self.execute(waits))

    def sessions(self, account: str) -> int:
        """Return how many connections an account has."""
        found = "SELECT 1 FROM pg_stat_activity WHERE usename = '{account}'"
        return len(self.execute(found.format(account=account)))

    def account(self, name: str, password: str) -> str:
        """Make an account, or set its password; return the address that has both."""
        exists = self.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'")
        verb = "ALTER" if exists else "CREATE"
        self.execute(f"{verb} ROLE {name} LOGIN PASSWORD '{password}'")
        self.execute(f"GRANT readers TO {name}")
        url = sa.make_url(self.url).set(username=name, password=password)
        return url.render_as_string(hide_password=False)


class Deployment:
    """All of it, running; leaving the stack ends it. `changes` are of the proxy's file."""

    def __init__(
        self,
        stack: ExitStack,
        directory: Path,
        hospital: Hospital,
        redis_url: str,
        *changes: tuple[str, str],
    ) -> None:
        self.directory = directory
        self.keys = Keys(stack, directory / "provider")
        self.introspection = Introspection(stack, "first-secret")
        self.mapping = directory / "hospital.yaml"
        text = mapping_text(hospital).replace("connections: 2", "connections: 8")
        self.mapping.write_text(text, "utf-8")
        self.database = Database(stack, hospital)
        self.port = free_ports()
        self.secrets = directory / "secrets"
        self.secrets.mkdir()
        self.write_secret("SEAL_KEYS", seal_key())
        self.write_secret("AUDIT_KEY", audit_key())
        self.write_secret("REDIS_URL", redis_url)
        self.write_secret("INTROSPECTION_CLIENT_SECRET", "first-secret")
        self.write_secret("PAS_URL", self.database.account("first", "first"))
        files = {f"{each.name}_FILE": str(each) for each in self.secrets.iterdir()}
        self.audit = directory / "audit.jsonl"
        environ = os.environ | {
            "PAS_URL_FILE": files.pop("PAS_URL_FILE"),
            **provider.environ(
                self.mapping,
                BASE_URL=f"https://{HOST}:{self.port}/fhir/v3",
                KEY_SET_URL=self.keys.url,
                KEY_SET_SECONDS=str(KEY_SET_SECONDS),
                INTROSPECTION_URL=self.introspection.url,
                INTROSPECTION_CLIENT_ID="drill",
                SEAL_KEYS=None,
                TRUSTED_PROXIES=HOST,
                AUDIT=str(self.audit),
                ADDRESS_REQUESTS_PER_MINUTE="off",
                CLIENT_REQUESTS_PER_MINUTE="off",
                **{**files, "REDIS_URL": None},
            ),
        }
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

    def clients(self, count: int, ledger: Ledger, tries: int = TRIES) -> list[Client]:
        """Return clients with tokens of the provider's key."""
        return [
            Client(number, self.port, self.trusted, self.keys.token, ledger, tries)
            for number in range(count)
        ]

    def write_secret(self, name: str, text: str) -> None:
        """Set what the file of a secret holds."""
        (self.secrets / name).write_text(text)

    def read_secret(self, name: str) -> str:
        """Return what the file of a secret holds."""
        return (self.secrets / name).read_text()

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
    directory: Path, hospital: Hospital, *changes: tuple[str, str]
) -> Iterator[tuple[Deployment, RedisServer]]:
    """Run a deployment with a Redis of its own."""
    with ExitStack() as stack:
        redis = RedisServer()
        stack.callback(redis.remove)
        redis.start()
        yield Deployment(stack, directory, hospital, redis.url, *changes), redis


def seal_key() -> str:
    """Return a new key that encrypts pages."""
    return Fernet.generate_key().decode()


def audit_key() -> str:
    """Return a new key of audit events."""
    return b64encode(secrets.token_bytes(32)).decode()
