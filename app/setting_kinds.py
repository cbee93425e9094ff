"""The kinds of values that a setting can have, and how each is read from its text.

A reader raises ValueError and leaves the words to its kind, so that no fault quotes a
value: it may be a secret.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

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


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its name, the values it takes, and the reader of its text."""

    name: str
    takes: str
    read: Callable[[str], object]


def whole(low: int, high: int) -> Kind:
    """A whole number from `low` to `high`."""

    def read(text: str) -> int:
        _require(_WHOLE.fullmatch(text) is not None)
        _require(low <= int(text) <= high)
        return int(text)

    return Kind("whole number", f"{low} to {high}", read)


def whole_or_off(low: int, high: int) -> Kind:
    """A whole number from `low` to `high`, or none at all."""
    number = whole(low, high)

    def read(text: str) -> object:
        return None if text.lower() == "off" else number.read(text)

    return Kind(number.name, f"{number.takes}, or off", read)


def decimal(low: float, high: float) -> Kind:
    """A number from `low` to `high`, with up to three decimals."""

    def read(text: str) -> float:
        _require(_DECIMAL.fullmatch(text) is not None)
        _require(low <= float(text) <= high)
        return float(text)

    return Kind("number", f"{low} to {high}", read)


def one_of(choices: type[StrEnum]) -> Kind:
    """One word of a closed list."""
    return Kind("word", " or ".join(choices), lambda text: choices(text.lower()))


def flag() -> Kind:
    """Yes or no."""
    return Kind("flag", "true or false", lambda text: _FLAGS[text.lower()])


def word() -> Kind:
    """A text without blanks, compared as it stands."""
    return Kind("text", "printable ASCII without blanks", _read_word)


def text_file() -> Kind:
    """The path of a file that is there."""
    return Kind("path", "a file that can be read", _read_path)


def base_url() -> Kind:
    """The address that links start with."""
    takes = f"https (http for a loopback host), ending in {BASE_PATH}, without query"
    return Kind("URL", takes, _read_base_url)


def outward_url() -> Kind:
    """An address of the identity provider."""
    takes = "https (http for a loopback host), without user name and fragment"
    return Kind("URL", takes, _read_outward_url)


def redis_url() -> Kind:
    """Where Redis is."""
    return Kind(
        "URL",
        "redis://, rediss://, unix:// or redis+sentinel://h:1,h:2/master",
        _read_redis_url,
    )


def seal_keys() -> Kind:
    """Keys that seal what is kept in Redis."""
    takes = "one or more Fernet keys, separated by a blank or a comma"
    return Kind("keys", takes, _read_seal_keys)


def scope_table() -> Kind:
    """Which technical scopes a functional one stands for."""
    return Kind("table", "A=B C D; E=F", _read_scope_table)


def audit_target() -> Kind:
    """Where audit events go."""
    takes = f"{AUDIT_OFF}, {AUDIT_STDOUT} or the path of a file that can be written"
    return Kind("path", takes, _read_audit_target)


def digest_key() -> Kind:
    """A key of digests."""
    takes = "32 to 64 characters of printable ASCII without blanks"
    return Kind("key", takes, _read_digest_key)


def networks() -> Kind:
    """Addresses and networks."""
    takes = "addresses or CIDR networks, separated by a blank or a comma"
    return Kind("list", takes, _read_networks)


def listen() -> Kind:
    """Where the service listens."""
    return Kind("address", "host:port", _read_listen)


def is_loopback(host: str | None) -> bool:
    """Tell whether a host name or address is this machine itself."""
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_FLAGS = {"true": True, "false": False}


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def _read_word(text: str) -> str:
    _require(_WORD.fullmatch(text) is not None)
    return text


def _read_path(text: str) -> Path:
    path = Path(text)
    _require(path.is_file())
    return path


def _split(text: str) -> SplitResult:
    parts = urlsplit(_read_word(text))
    _require(bool(parts.hostname) and parts.port != 0)
    _require(parts.username is None and "#" not in text)
    return parts


def _read_outward_url(text: str) -> str:
    parts = _split(text)
    _require(
        parts.scheme == "https"
        or (parts.scheme == "http" and is_loopback(parts.hostname))
    )
    return text


def _read_base_url(text: str) -> str:
    _require(text.endswith(BASE_PATH) and "?" not in text)
    return _read_outward_url(text)


def _read_redis_url(text: str) -> str:
    if is_sentinel(_read_word(text)):
        SentinelAddress.read(text)
        return text
    parts = urlsplit(text)
    if parts.scheme == "unix":
        _require(len(parts.path) > 1)
    else:
        _require(parts.scheme in {"redis", "rediss"})
        _require(bool(parts.hostname) and parts.port != 0)
    return text


def _read_seal_keys(text: str) -> tuple[str, ...]:
    keys = tuple(key for key in _SEPARATORS.split(text) if key)
    _require(bool(keys))
    for key in keys:
        Fernet(key)
    return keys


def _read_scope_table(text: str) -> Mapping[str, frozenset[str]]:
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


def _read_audit_target(text: str) -> str:
    if text not in {AUDIT_OFF, AUDIT_STDOUT}:
        path = Path(text)
        _require(path.is_absolute() and not path.is_dir())
        _require(os.access(path if path.exists() else path.parent, os.W_OK))
    return text


def _read_digest_key(text: str) -> str:
    _require(32 <= len(_read_word(text)) <= 64)
    return text


def _read_networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part) for part in _SEPARATORS.split(text) if part)


def _read_listen(text: str) -> str:
    parts = urlsplit(f"//{_read_word(text)}")
    _require(bool(parts.hostname and parts.port) and parts.netloc == text)
    _require(parts.username is None)
    return text
