"""How the text of a setting is read, kind by kind.

A reader raises ValueError, KeyError for a word that it does not know, or OSError for a
path that may not be followed, and leaves the words to its kind (`setting_kinds`), so that
no fault quotes a value: it may be a secret.
"""

import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, urlsplit

from cryptography.fernet import Fernet

from app.sentinels import SentinelAddress, is_sentinel

Network: TypeAlias = IPv4Network | IPv6Network

BASE_PATH = "/fhir/v3"
AUDIT_OFF, AUDIT_STDOUT = "off", "stdout"

_WORD = re.compile(r"[!-~]{1,500}")
_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,5}(\.[0-9]{1,3})?")
_SCOPE = re.compile(r"[A-Za-z0-9_.:/-]+")
_SEPARATORS = re.compile(r"[\s,]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_REDIS_PATH = re.compile(r"(/[0-9]{0,9})?")


def is_loopback(host: str | None) -> bool:
    """Tell whether a host name or address is this machine itself."""
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_FLAGS: Mapping[str, bool] = {"true": True, "false": False}


def read_whole(text: str) -> int:
    """Read a whole number."""
    _require(_WHOLE.fullmatch(text) is not None)
    return int(text)


def read_decimal(text: str) -> float:
    """Read a number with up to three decimals."""
    _require(_DECIMAL.fullmatch(text) is not None)
    return float(text)


def read_flag(text: str) -> bool:
    """Read true or false."""
    return _FLAGS[text.lower()]


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def read_word(text: str) -> str:
    """Read a text without blanks."""
    _require(_WORD.fullmatch(text) is not None)
    return text


def read_path(text: str) -> Path:
    """Read the path of a file that is there."""
    path = Path(text)
    _require(path.is_file() and os.access(path, os.R_OK))
    return path


def _split(text: str) -> SplitResult:
    parts = urlsplit(read_word(text))
    _require(bool(parts.hostname) and parts.port != 0)
    _require(parts.username is None and "#" not in text)
    return parts


def read_outward_url(text: str) -> str:
    """Read an address of the identity provider."""
    parts = _split(text)
    _require(
        parts.scheme == "https"
        or (parts.scheme == "http" and is_loopback(parts.hostname))
    )
    return text


def read_base_url(text: str) -> str:
    """Read the address that links start with."""
    _require(text.endswith(BASE_PATH) and "?" not in text)
    return read_outward_url(text)


def read_redis_url(text: str) -> str:
    """Read where Redis is."""
    if is_sentinel(read_word(text)):
        SentinelAddress.read(text)
        return text
    parts = urlsplit(text)
    if parts.scheme == "unix":
        _require(len(parts.path) > 1)
    else:
        _require(parts.scheme in {"redis", "rediss"})
        _require(bool(parts.hostname) and parts.port != 0)
        # A password with a '/' in it would leave a user for a host, and itself for a path.
        _require(_REDIS_PATH.fullmatch(parts.path) is not None)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        _require_redis_option(parts.scheme, name, value)
    return text


def _require_redis_option(scheme: str, name: str, value: str) -> None:
    """Let options pass that say where Redis is and who asks: time-outs are not for them."""
    match name:
        case "db":
            _require(_NUMBER.fullmatch(value) is not None)
        case "username" | "password":
            pass
        case "ssl_ca_certs" | "ssl_certfile" | "ssl_keyfile" if scheme == "rediss":
            read_path(value)
        case _:
            raise ValueError


def read_seal_keys(text: str) -> tuple[str, ...]:
    """Read the keys that seal what is kept."""
    keys = tuple(key for key in _SEPARATORS.split(text) if key)
    _require(bool(keys))
    for key in keys:
        Fernet(key)
    return keys


def read_scope_table(text: str) -> Mapping[str, frozenset[str]]:
    """Read which technical scopes a functional one stands for."""
    table: dict[str, frozenset[str]] = {}
    for entry in text.split(";"):
        if not entry.strip():
            continue
        name, equals, scopes = entry.partition("=")
        granted = frozenset(scopes.split())
        _require(bool(equals and granted) and name.strip() not in table)
        _require(all(_SCOPE.fullmatch(scope) for scope in {name.strip(), *granted}))
        table[name.strip()] = granted
    _require(bool(table))
    return table


def read_audit_target(text: str) -> str:
    """Read where audit events go."""
    if text not in {AUDIT_OFF, AUDIT_STDOUT}:
        path = Path(text)
        _require(path.is_absolute() and not path.is_dir())
        _require(os.access(path if path.exists() else path.parent, os.W_OK))
    return text


def read_digest_key(text: str) -> str:
    """Read a key of digests."""
    _require(32 <= len(read_word(text)) <= 64)
    return text


def read_networks(text: str) -> tuple[Network, ...]:
    """Read addresses and networks."""
    return tuple(ip_network(part) for part in _SEPARATORS.split(text) if part)


def read_listen(text: str) -> str:
    """Read where to listen."""
    parts = urlsplit(f"//{read_word(text)}")
    _require(bool(parts.hostname and parts.port) and parts.netloc == text)
    _require(parts.username is None)
    return text
