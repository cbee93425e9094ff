"""The deployments of the demo, and what each keeps between two starts.

Hospital, secrets and address are in one directory that only its owner can read, `.demo/`
by default; a group has a directory in it. Nothing here is fit for production: keys are
next to the data that they protect.
"""

import logging
import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.fernet import Fernet
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HOST = "127.0.0.1"
DEFAULT_ROOT = Path(".demo")
PROJECT = Path(__file__).resolve().parent.parent


class DemoError(Exception):
    """The demo cannot go on; the text is one sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class DemoDirectory:
    """The directory of a demo; `prepare` creates it, first use creates each secret.

    `command` is what starts the demo.
    """

    root: Path
    command: str = "make run"

    def prepare(self) -> None:
        """Create the directory, for its owner alone. Raises DemoError."""
        try:
            for folder in (*reversed(self.root.parents), self.root):
                if not folder.exists():
                    folder.mkdir(mode=0o700, exist_ok=True)
            self.lock.touch(mode=0o600)
        except OSError as error:
            raise DemoError(f"{self.root} cannot be used: {error.strerror}.") from error

    @property
    def lock(self) -> Path:
        """The file that a running demo locks."""
        return self.root / "lock"

    @property
    def audit_file(self) -> Path:
        """Where audit events are written."""
        return self.root / "audit.jsonl"

    def hospital(self, stays: int) -> Path:
        """Return the path of the database with so many stays."""
        return self.root / f"hospital-{stays}.sqlite"

    def log(self, name: str) -> Path:
        """Return the path of the log of one part of the demo."""
        return self.root / f"{name}.log"

    def client_secret(self) -> Path:
        """Return the file of the secret that all clients of the demo share."""
        return self._secret("client.secret", lambda: secrets.token_urlsafe(24))

    def seal_key(self) -> Path:
        """Return the file of the key that encrypts stored searches."""
        return self._secret("seal.key", lambda: Fernet.generate_key().decode())

    def audit_key(self) -> Path:
        """Return the file of the key of the digests in audit events."""
        return self._secret("audit.key", lambda: secrets.token_urlsafe(32))

    def pas_key(self) -> Path:
        """Return the file of the key of a hospital behind HTTP."""
        return self._secret("pas.key", lambda: secrets.token_urlsafe(24))

    def signing_key(self) -> RSAKey:
        """Return the key that signs tokens; its `kid` is its thumbprint (RFC 7638)."""
        file = self._secret(
            "signing.pem",
            lambda: RSAKey.generate_key(2048).as_pem(private=True).decode(),
        )
        key = RSAKey.import_key(file.read_text(), {"use": "sig", "alg": "RS256"})
        key.ensure_kid()
        return key

    def remember_issuer(self, url: str) -> None:
        """Keep the address of the token server, for tokens that are issued without it."""
        _write_private(self.root / "issuer", url)

    def issuer(self) -> str:
        """Return the address of the token server. Raises DemoError before the first start."""
        try:
            return (self.root / "issuer").read_text()
        except FileNotFoundError:
            raise DemoError(
                f"There is no demo in {self.root}: start it with '{self.command}' first."
            ) from None

    def _secret(self, name: str, create: Callable[[], str]) -> Path:
        file = self.root / name
        if not file.exists():
            _write_private(file, create())
        return file


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).replace(path)


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the demo serves: the whole service, or as group A or B is offered it.

    `real_mapping` is the mapping of a hospital that is not invented; the environment says where.
    """

    group: str = ""
    real_mapping: Path | None = None

    @property
    def over_http(self) -> bool:
        """Whether the hospital is reached over HTTP."""
        return self.group == "a"

    @property
    def name(self) -> str:
        """Its name under `mappings/`, and that of the directory of a group."""
        return f"group-{self.group}" if self.group else "demo"

    @property
    def mapping(self) -> Path:
        """Its mapping file."""
        return (
            self.real_mapping or PROJECT / "mappings" / self.name / f"{self.name}.yaml"
        )

    @property
    def command(self) -> str:
        """What starts it."""
        return f"make run GROUP={self.group}" if self.group else "make run"

    def directory(self, root: Path) -> DemoDirectory:
        """Return its directory."""
        return DemoDirectory(root / self.name if self.group else root, self.command)


def deployment(group: str, real_mapping: Path | None = None) -> Deployment:
    """Return the deployment of a group. Raises DemoError for an unknown group."""
    name = group.strip().lower()
    if name not in {"", "a", "b"}:
        text = "choose a or b, or none for the whole service"
        raise DemoError(f"There is no group {group!r}: {text}.")
    return Deployment(name, real_mapping)


def serve(app: "WSGIApplication", port: int, name: str) -> None:
    """Serve an application of the demo on loopback, 0 for a free port."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(HOST, port, app, threaded=True)
    print(f"{name} answers at http://{HOST}:{server.port}", flush=True)
    server.serve_forever()
