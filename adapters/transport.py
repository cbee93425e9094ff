"""Which connections to hospital systems cross a network without verified TLS.

Verified means that the client checks the certificate of the server: without that, whoever
is on the way can read and change what it sends. Connections within this machine (loopback,
unix sockets, files) need no TLS.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from adapters.mapping.model import Mark, OAuth2, SourceConfig, SourceMapping

WITHOUT_TLS = "the connection to another machine has no verified TLS"


class Exposed(NamedTuple):
    """A connection without verified TLS: where the file has it, its kind (sql, http), a remedy."""

    mark: Mark
    kind: str
    remedy: str


def is_loopback(host: str | None) -> bool:
    """Return whether a host name or address is this machine itself."""
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_plain(url: str) -> bool:
    """Return whether an address leads to another machine by HTTP without TLS."""
    parts = urlsplit(url)
    return parts.scheme != "https" and not is_loopback(parts.hostname)


def exposed_sources(mapping: SourceMapping) -> Iterator[Exposed]:
    """Yield the connections of a mapping that lack verified TLS.

    A custom adapter is not checked: only its class knows how it connects.
    """
    for source in mapping.sources.values():
        if source.kind == "sql" and (options := _missing_options(source.url)):
            remedy = f"write {options} into its address"
            yield Exposed(source.mark, source.kind, remedy)
        if source.kind == "http" and any(map(is_plain, _addresses(source))):
            yield Exposed(source.mark, source.kind, "use https:// addresses")


def _addresses(source: SourceConfig) -> Iterator[str]:
    """Yield the addresses that an HTTP source is sent requests and credentials at."""
    yield source.url
    if source.http and isinstance(source.http.auth, OAuth2):
        yield source.http.auth.token_url


def _missing_options(url: str) -> str:
    """Return the options that the address of a database lacks, "" where none."""
    # Imported when needed: it loads the driver of the database.
    from sqlalchemy.engine import make_url

    from adapters.sql.dialects import dialect_of

    address = make_url(url)
    dialect = dialect_of(address)
    try:
        transport = dialect.transport(address)
    except (AttributeError, OSError, TypeError, ValueError):
        # The driver refuses the address, or cannot read a file that it names: it
        # connects to nobody.
        return ""
    if transport.is_verified or all(map(is_loopback, transport.hosts)):
        return ""
    return dialect.verifying
