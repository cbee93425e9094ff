"""A certificate for this machine that only we vouch for, as long as a test wants it."""

from datetime import timedelta
from pathlib import Path

from tests.certificates import signed
from tests.live import HOST


def certificate_for(directory: Path, days: float = 1) -> Path:
    """Write a key and a certificate of our own for this machine; return the latter.

    It is good from a hundred days ago, for so many days more.
    """
    file = directory / "cert.pem"
    certificate, key = signed(HOST, timedelta(days=100), timedelta(days=days))
    file.write_bytes(certificate)
    (directory / "key.pem").write_bytes(key)
    return file
