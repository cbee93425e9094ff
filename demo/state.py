"""What the demo keeps between two starts: its hospital, its secrets, its address.

All of it lives in one directory, `.demo/` unless told otherwise, that only its owner can
read; a group has one of its own in it. Nothing here is fit for production: keys lie
beside the data they protect.
"""

import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet
from joserfc.jwk import RSAKey

DEFAULT_ROOT = Path(".demo")

SOCKET_PATH_LIMIT = 100
"""A socket's address holds about 108 bytes on Linux and 104 on macOS."""


class DemoError(Exception):
    """The demo cannot go on; the text is one sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class DemoDirectory:
    """The demo's own directory; `root` is made by `prepare`, each file on first use.

    `command` is what starts the demo that it belongs to.
    """

    root: Path
    command: str = "make run"

    def prepare(self) -> None:
        """Make the directory, for its owner alone; DemoError where that cannot be."""
        try:
            for folder in reversed(self.root.parents):
                if not folder.exists():
                    folder.mkdir(mode=0o700, exist_ok=True)
            self.root.mkdir(mode=0o700, exist_ok=True)
            self.lock.touch(mode=0o600)
        except OSError as error:
            raise DemoError(f"{self.root} cannot be used: {error.strerror}.") from error

    @property
    def lock(self) -> Path:
        """The file that a running demo holds locked."""
        return self.root / "lock"

    @property
    def client_secret_file(self) -> Path:
        """Where the secret that every client of the demo shares is kept."""
        return self.root / "client.secret"

    @property
    def seal_key_file(self) -> Path:
        """Where the key that seals stored searches is kept."""
        return self.root / "seal.key"

    @property
    def audit_key_file(self) -> Path:
        """Where the key of the digests in audit events is kept."""
        return self.root / "audit.key"

    @property
    def audit_file(self) -> Path:
        """Where audit events are written."""
        return self.root / "audit.jsonl"

    def hospital(self, stays: int) -> Path:
        """Return the path of the database with so many stays; each size has its own."""
        return self.root / f"hospital-{stays}.sqlite"

    def log(self, name: str) -> Path:
        """Return the path of the log of one part of the demo."""
        return self.root / f"{name}.log"

    def client_secret(self) -> str:
        """Return the secret of the demo's clients, made on first use."""
        return _kept(self.client_secret_file, lambda: secrets.token_urlsafe(24))

    def seal_key(self) -> str:
        """Return the key that seals stored searches (Fernet), made on first use."""
        return _kept(self.seal_key_file, lambda: Fernet.generate_key().decode())

    def audit_key(self) -> str:
        """Return the key of the digests in audit events, made on first use."""
        return _kept(self.audit_key_file, lambda: secrets.token_urlsafe(32))

    def pas_key(self) -> str:
        """Return the key that a hospital behind HTTP asks for, made on first use."""
        return _kept(self.root / "pas.key", lambda: secrets.token_urlsafe(24))

    def signing_key(self) -> RSAKey:
        """Return the key that signs the demo's tokens, made on first use.

        Its `kid` is the thumbprint of RFC 7638, so that the same key has the same name.
        """
        pem = _kept(self.root / "signing.pem", _new_signing_key)
        key = RSAKey.import_key(pem, {"use": "sig", "alg": "RS256"})
        key.ensure_kid()
        return key

    @property
    def _issuer_file(self) -> Path:
        return self.root / "issuer"

    def remember_issuer(self, url: str) -> None:
        """Keep the address of the token server, for tokens that are made without it."""
        write_private(self._issuer_file, url)

    def issuer(self) -> str:
        """Return the address of the token server; DemoError before the first start."""
        try:
            return self._issuer_file.read_text()
        except FileNotFoundError:
            raise DemoError(
                f"There is no demo in {self.root}: start it with '{self.command}' first."
            ) from None

    def socket_directory(self) -> Path:
        """Return a private directory whose path is short enough for a socket in it."""
        if len(os.fsencode(self.root.resolve() / "redis.sock")) <= SOCKET_PATH_LIMIT:
            return self.root.resolve()
        return Path(tempfile.mkdtemp(prefix="encounters-"))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _kept(path: Path, make: Callable[[], str]) -> str:
    if not path.exists():
        write_private(path, make())
    return path.read_text()


def _new_signing_key() -> str:
    return RSAKey.generate_key(2048).as_pem(private=True).decode()
