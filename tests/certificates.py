"""Certificates for tests, each vouching for itself."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.live import HOST


def certify(directory: Path, name: str) -> None:
    """Write a certificate that vouches for itself, and its key."""
    certificate, key = signed(name, timedelta(hours=1), timedelta(hours=1))
    (directory / f"{name}.pem").write_bytes(certificate)
    (directory / f"{name}.key").write_bytes(key)


def signed(name: str, before: timedelta, after: timedelta) -> tuple[bytes, bytes]:
    """Return a certificate for this machine, good from before now until after, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - before)
        .not_valid_after(now + after)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    clear = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), key.private_bytes(*clear)


def certificate_for(directory: Path, days: float = 1) -> Path:
    """Write `cert.pem`, good from a hundred days ago for so many days more, and `key.pem`."""
    certificate, key = signed(HOST, timedelta(days=100), timedelta(days=days))
    (directory / "cert.pem").write_bytes(certificate)
    (directory / "key.pem").write_bytes(key)
    return directory / "cert.pem"
