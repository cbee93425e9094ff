"""A certificate for this machine that only we vouch for."""

from datetime import timedelta
from pathlib import Path

from tests.certificates import signed
from tests.live import HOST


def certificate_for(directory: Path) -> Path:
    """Write a key and a certificate of our own, good for today; return the latter."""
    file = directory / "cert.pem"
    certificate, key = signed(HOST, timedelta(days=1), timedelta(days=1))
    file.write_bytes(certificate)
    (directory / "key.pem").write_bytes(key)
    return file
