"""Every key and secret is replaced, as docs/run/security/keys.md says, while clients go on.

Clients repeat nothing: a response that is lost or refused counts.
"""

import argparse
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import orjson

from app.fhir.audit_event import UNREADABLE, read_event
from tests.app import provider
from tests.certificates import certify
from tests.drill.clients import TOKEN_REQUESTS, Client, running
from tests.drill.deployment import KEY_SET_SECONDS, Deployment, audit_key, seal_key
from tests.drill.hospital import made_up, work
from tests.drill.ledger import Ledger
from tests.live import HOST
from tests.redis_server import RedisServer
from tests.sentinels import until

OPAQUE = 4
"""Each client of so many has opaque tokens."""

AWAY = frozenset({503})


def drill(directory: Path, options: argparse.Namespace) -> Iterator[str]:
    """Replace one after the other; yield each fault."""
    hospital, ledger = made_up(), Ledger()
    with ExitStack() as stack:
        # Also where it is interrupted.
        stack.callback(lambda: print(ledger.table(), flush=True))
        redis = RedisServer()
        stack.callback(redis.remove)
        redis.start()
        with redis.client() as accounts:
            accounts.acl_setuser("drill", True, passwords="+first", **ALL)
        url = f"{redis.url}?username=drill&password="
        deployment = Deployment(stack, directory, hospital, f"{url}first")
        clients = deployment.clients(options.workers, ledger)
        for client in clients[::OPAQUE]:
            client.take_tokens(deployment.introspection.token)
        rotations = Rotations(deployment, redis, clients)
        mixture = work(hospital)
        ledger.begin("nothing", busy_share=0)
        with running([partial(each.work_until, work=mixture) for each in clients]):
            rotations.until_all_have(1)
            for name, rotate, promised in rotations.kinds:
                ledger.begin(name, promised, busy_share=0)
                rotate()
                rotations.until_all_have(1)
        yield from ledger.faults()
        yield from rotations.faults()


ALL = {"keys": ["*"], "categories": ["+@all"], "reset": False}


class Rotations:
    """The rotations by their names, each with the errors that it may cause."""

    def __init__(
        self, deployment: Deployment, redis: RedisServer, clients: list[Client]
    ) -> None:
        self._deployment, self._redis, self._clients = deployment, redis, clients
        self._reloads = 0
        never = frozenset[int]()
        # A proxy that is reloaded closes connections that are idle, while a request may
        # be on its way on one: a client repeats it (RFC 9112, 9.3.1).
        lost = frozenset({0})
        self.kinds: tuple[tuple[str, Callable[[], None], frozenset[int]], ...] = (
            ("the key of pages", self._seal_keys, never),
            ("the key of audit digests", self._audit_key, never),
            ("the database account, by a second one", self._account, never),
            ("its password, the account stays", self._password, AWAY),
            ("the password of Redis", self._redis_password, never),
            ("the client secret of introspection", self._client_secret, never),
            ("the keys of tokens", self._token_keys, never),
            ("the certificate of the proxy", self._certificate, lost),
            ("the certificate of clients", self._client_certificate, lost),
        )

    def faults(self) -> Iterator[str]:
        """Yield what was not as it must be, apart from responses."""
        if self._deployment.introspection.refused:
            yield "introspection was refused"
        try:
            for line in self._deployment.audit.read_bytes().splitlines():
                read_event(orjson.loads(line))
        except UNREADABLE:
            yield "an audit event is not whole"

    def until_all_have(self, done: int) -> None:
        """Wait until each client has done so many things more."""
        # What is under way began before.
        enough = [(client, client.done + 1 + done) for client in self._clients]
        until(lambda: all(client.done >= least for client, least in enough))

    def _replace(self, name: str, text: str) -> None:
        self._deployment.write_secret(name, text)
        self._reloads += 1
        self._deployment.reload(f"Rotation {self._reloads}")
        self.until_all_have(1)

    def _seal_keys(self) -> None:
        old, new = self._deployment.read_secret("SEAL_KEYS"), seal_key()
        for keys in (f"{old} {new}", f"{new} {old}", new):
            # Before the last, walks that the old key has kept come to their end.
            self._replace("SEAL_KEYS", keys)

    def _audit_key(self) -> None:
        self._replace("AUDIT_KEY", audit_key())

    def _account(self) -> None:
        database = self._deployment.database
        self._replace("PAS_URL", database.account("second", "second"))
        assert not database.sessions("first")
        database.execute("DROP ROLE first")

    def _password(self) -> None:
        self._replace("PAS_URL", self._deployment.database.account("second", "third"))

    def _redis_password(self) -> None:
        with self._redis.client() as client:
            client.acl_setuser("drill", True, passwords="+second", **ALL)
            url = self._deployment.read_secret("REDIS_URL")
            self._replace("REDIS_URL", url.replace("first", "second"))
            client.acl_setuser("drill", True, passwords="-first", **ALL)

    def _client_secret(self) -> None:
        introspection = self._deployment.introspection
        introspection.secrets.add("second-secret")
        self._replace("INTROSPECTION_CLIENT_SECRET", "second-secret")
        introspection.secrets.remove("first-secret")

    def _token_keys(self) -> None:
        keys, new, old = (
            self._deployment.keys,
            provider.rsa("second"),
            provider.rsa("first"),
        )
        keys.publish(new, old)
        time.sleep(KEY_SET_SECONDS)
        keys.sign_with(new)
        self.until_all_have(TOKEN_REQUESTS)
        keys.publish(new)
        time.sleep(KEY_SET_SECONDS)

    def _certificate(self) -> None:
        proxy = self._deployment.proxy
        # Under another name: of two that vouch for themselves OpenSSL tries the first.
        certify(proxy.directory, "renewed")
        file = proxy.directory / "encounters.pem"
        self._deployment.trusted.load_verify_locations(file.with_stem("renewed"))
        for kind in ("pem", "key"):
            renewed = proxy.directory / f"renewed.{kind}"
            renewed.replace(proxy.directory / f"encounters.{kind}")
        proxy.reload()
        place = HOST, self._deployment.port
        until(lambda: ssl.get_server_certificate(place) == file.read_text())

    def _client_certificate(self) -> None:
        proxy = self._deployment.proxy
        trusted, old = proxy.directory / "clients.pem", proxy.directory / "old.pem"
        old.write_text(trusted.read_text())
        certify(proxy.directory, "new")
        new = proxy.directory / "new.pem"
        trusted.write_text(old.read_text() + new.read_text())
        proxy.reload()
        self.until_all_have(1)
        self._deployment.trusted.load_cert_chain(new, new.with_suffix(".key"))
        self.until_all_have(1)
        trusted.write_text(new.read_text())
        proxy.reload()
