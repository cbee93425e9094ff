"""A certificate for tests, which vouches for itself."""

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


def certify(directory: Path, name: str) -> Path:
    """Write a certificate for this machine and its key; return the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now, hour = datetime.now(UTC), timedelta(hours=1)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - hour)
        .not_valid_after(now + hour)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    clear = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / f"{name}.key").write_bytes(key.private_bytes(*clear))
    file = directory / f"{name}.pem"
    file.write_bytes(certificate.public_bytes(Encoding.PEM))
    return file
