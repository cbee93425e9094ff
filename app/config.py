"""The settings of a deployment: one line each, read from environment variables.

The fields of `Settings` are the only list of settings. Parser, `encounters settings`
and the table in docs/run/settings.md are derived from it. A secret can also be given as
NAME_FILE, the path of a file that holds it.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import parse_qsl, urlsplit

import jmespath
from cryptography.fernet import Fernet

from adapters.lifetime import LIFETIME_SECONDS
from adapters.transport import is_loopback, is_plain
from app.redis_client import SentinelAddress, is_exposed, is_sentinel

PREFIX = "ENCOUNTERS_"
BASE_PATH = "/fhir/v3"
"""The version of the interface is in the path (spec 9)."""

AUDIT_OFF, AUDIT_STDOUT, AUDIT_SYSLOG = "off", "stdout", "syslog://"
DEFAULT_SCOPE_CLAIMS = (
    "scope; scp; permissions; scope == `null` && scp == `null` && roles"
)
"""Roles count in an application's own token alone, which has no scopes (decision 37): those
of a person never give an application more than its scopes.
"""
DEFAULT_SCOPES = (
    "PATIENT_GAM_SEARCH=ORGANIZATION_READ PATIENT_READ PATIENT_SEARCH "
    "ENCOUNTER_READ ENCOUNTER_SEARCH"
)

Network: TypeAlias = IPv4Network | IPv6Network


class Link(StrEnum):
    """A connection that crosses a network only with verified TLS."""

    DATABASE = "database"
    HTTP = "http"
    REDIS = "redis"
    PROVIDER = "provider"


class SettingsError(Exception):
    """Invalid settings; `faults` has one sentence for each, without its value."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of setting: its name, the values it takes, and the function that reads one.

    `read` raises ValueError, KeyError or OSError; their messages may quote a secret.
    """

    name: str
    takes: str
    read: Callable[[str], Any]


def _kind(name: str, takes: str) -> Callable[[Callable[[str], object]], Kind]:
    """Make a kind of a function."""
    return partial(Kind, name, takes)


def _number(
    name: str, convert: Callable[[str], float], low: float, high: float
) -> Kind:
    @_kind(name, f"{low} to {high}")
    def number(text: str) -> float:
        value = convert(text)
        _require(low <= value <= high)
        return value

    return number


_whole = partial(_number, "whole number", int)
_decimal = partial(_number, "number", float)


@_kind("whole number", "1 to 100000000, or off")
def _rate(text: str) -> int | None:
    return None if text.lower() == "off" else _whole(1, 100_000_000).read(text)


def _one_of(*words: str) -> Kind:
    @_kind("word", " or ".join(words))
    def word(text: str) -> str:
        _require(text.lower() in words)
        return text.lower()

    return word


@_kind("flag", "true or false")
def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_BLANKS_OR_COMMAS = re.compile(r"[\s,]+")
_SCOPE = re.compile(r"[A-Za-z0-9_.:/-]+")
_WORD = re.compile(r"[!-~]{1,500}")
_REDIS_DATABASE = re.compile(r"(/[0-9]{0,9})?")


def _require(condition: object) -> None:
    if not condition:
        raise ValueError


@_kind("text", "text without blanks")
def _word(text: str) -> str:
    _require(_WORD.fullmatch(text))
    return text


@_kind("path", "a readable file")
def _readable_file(text: str) -> Path:
    path = Path(text)
    _require(path.is_file() and os.access(path, os.R_OK))
    return path


@_kind("URL", "https, or http on loopback")
def _web_url(text: str) -> str:
    """Accept http too: `_conflicts` says where it is allowed."""
    parts = urlsplit(_word.read(text))
    _require(parts.hostname and parts.port != 0)
    _require(parts.username is None and "#" not in text)
    _require(parts.scheme in {"http", "https"})
    return text


@_kind("URL", f"https, or http on loopback, ending in {BASE_PATH}")
def _base_url(text: str) -> str:
    _require(text.endswith(BASE_PATH) and "?" not in text)
    _require(not is_plain(_web_url.read(text)))
    return text


@_kind("URL", "redis://, rediss://, unix:// or redis+sentinel://")
def _redis_url(text: str) -> str:
    if is_sentinel(_word.read(text)):
        SentinelAddress.read(text)
        return text
    parts = urlsplit(text)
    if parts.scheme == "unix":
        _require(len(parts.path) > 1)
    else:
        _require(parts.scheme in {"redis", "rediss"})
        _require(parts.hostname and parts.port != 0)
        # A password with an unquoted '/' would end up in the path.
        _require(_REDIS_DATABASE.fullmatch(parts.path))
    # Options that locate Redis; its timeouts are the service's business.
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in {"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"}:
            _require(parts.scheme == "rediss")
            _readable_file.read(value)
        elif name == "db":
            _require(value.isascii() and value.isdigit())
        else:
            _require(name in {"username", "password"})
    return text


@_kind("keys", "Fernet keys, separated by blanks")
def _fernet_keys(text: str) -> tuple[str, ...]:
    keys = tuple(filter(None, _BLANKS_OR_COMMAS.split(text)))
    _require(keys)
    for key in keys:
        Fernet(key)
    return keys


@_kind("list", "JMESPath, separated by semicolons")
def _claims(text: str) -> tuple[str, ...]:
    expressions = tuple(filter(None, map(str.strip, text.split(";"))))
    _require(expressions)
    for expression in expressions:
        jmespath.compile(expression)
    return expressions


@_kind("table", "A=B C D; E=F")
def _scope_table(text: str) -> Mapping[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for entry in filter(str.strip, text.split(";")):
        name, _, granted = entry.partition("=")
        scopes = frozenset(granted.split())
        _require(scopes and name.strip() not in table)
        _require(all(map(_SCOPE.fullmatch, {name.strip(), *scopes})))
        table[name.strip()] = scopes
    _require(table)
    return table


def is_null_device(status: os.stat_result) -> bool:
    """Return whether a file is /dev/null, under whatever name."""
    is_device = stat.S_ISCHR(status.st_mode)
    return is_device and status.st_rdev == os.stat(os.devnull).st_rdev


@_kind("path", "off, stdout, syslog://127.0.0.1:port, or a file")
def _audit_target(text: str) -> str:
    """Refuse a file that would drop events without an error; `app.audit` checks stdout."""
    if text.startswith(AUDIT_SYSLOG):
        # In clear: the daemon of this machine sends them on with TLS.
        host, _, port = text.removeprefix(AUDIT_SYSLOG).rpartition(":")
        _require(is_loopback(host) and 0 < int(port) < 65536)
    elif text not in {AUDIT_OFF, AUDIT_STDOUT}:
        path = Path(text)
        _require(path.is_absolute() and not path.is_dir())
        _require(os.access(path if path.exists() else path.parent, os.W_OK))
        if path.exists():
            _require(not path.is_fifo() and not path.is_socket())
            _require(not is_null_device(path.stat()))
    return text


def audit_file(target: str) -> Path | None:
    """Return the file that a target of audit events names, None for another target."""
    if target in {AUDIT_OFF, AUDIT_STDOUT} or target.startswith(AUDIT_SYSLOG):
        return None
    return Path(target)


@_kind("key", "32 to 64 ASCII characters without blanks")
def _digest_key(text: str) -> str:
    _require(32 <= len(_word.read(text)) <= 64)
    return text


@_kind("text", "scopes, separated by blanks")
def _scope_names(text: str) -> str:
    return text


@_kind("list", "addresses or networks (CIDR), separated by blanks")
def _networks(text: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, filter(None, _BLANKS_OR_COMMAS.split(text))))


@_kind("list", f"{', '.join(Link)}, separated by blanks")
def _links(text: str) -> frozenset[Link]:
    return frozenset(map(Link, filter(None, _BLANKS_OR_COMMAS.split(text.lower()))))


@_kind("address", "host:port or unix:/path")
def _address(text: str) -> str:
    if text.startswith("unix:"):
        _require(Path(text.removeprefix("unix:")).is_absolute())
        return text
    parts = urlsplit(f"//{_word.read(text)}")
    _require(parts.hostname and parts.port and parts.netloc == text)
    _require(parts.username is None)
    return text


class Need(StrEnum):
    """Who has to think of a setting."""

    REQUIRED = "Required"
    PRODUCTION = "Wanted in production"
    OTHER = "The rest"


class Setting(NamedTuple):
    """One environment variable and the field of `Settings` that it becomes.

    `first` is its value in the file that `encounters settings --first` prints; for a secret
    that is the path of a file.
    """

    field: str
    kind: Kind
    sentence: str
    default: str | None
    required: bool
    secret: bool
    first: str | None

    @property
    def name(self) -> str:
        """The name of the variable."""
        return PREFIX + self.field.upper()

    @property
    def need(self) -> Need:
        """Who has to think of it."""
        if self.required:
            return Need.REQUIRED
        return Need.OTHER if self.first is None else Need.PRODUCTION


_REQUIRED = object()


def _setting(
    sentence: str,
    default: object = None,
    *,
    secret: bool = False,
    first: str | None = None,
) -> Any:
    """Declare a setting. Without a default it is None where it is not set."""
    required = default is _REQUIRED
    columns = {
        "sentence": sentence,
        "default": None if required else default,
        "required": required,
        "secret": secret,
        "first": first,
    }
    return field(repr=not secret, metadata=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The valid settings of one deployment."""

    base_url: Annotated[str, _base_url] = _setting(
        "The public address of the service. All links start with it.", _REQUIRED
    )
    issuer: Annotated[str, _word] = _setting(
        "The `iss` of access tokens. Its metadata has the provider's addresses.",
        _REQUIRED,
    )
    audience: Annotated[str, _word] = _setting("The `aud` of access tokens.", _REQUIRED)
    token_url: Annotated[str | None, _web_url] = _setting(
        "The token endpoint that discovery and OpenAPI show to clients.", first=""
    )
    key_set_url: Annotated[str | None, _web_url] = _setting(
        "The provider's key set (JWKS). Default: from the metadata."
    )
    key_set_seconds: Annotated[int, _whole(10, 86400)] = _setting(
        "Seconds between two fetches of the key set.", "300"
    )
    key_set_retry_seconds: Annotated[int, _whole(1, 300)] = _setting(
        "Minimum seconds between fetches for unknown keys.", "10"
    )
    introspection_url: Annotated[str | None, _web_url] = _setting(
        "The introspection endpoint (RFC 7662). Default: from the metadata."
    )
    introspection_client_id: Annotated[str | None, _word] = _setting(
        "Client id for introspection of opaque tokens; enables it."
    )
    introspection_client_secret: Annotated[str | None, _word] = _setting(
        "Client secret for introspection. Required with the client id.",
        secret=True,
    )
    identity_timeout_seconds: Annotated[float, _decimal(0.1, 30)] = _setting(
        "Timeout of requests to the identity provider.", "2"
    )
    leeway_seconds: Annotated[int, _whole(0, 300)] = _setting(
        "Accepted difference between the provider's clock and ours.",
        "30",
    )
    scope_claims: Annotated[tuple[str, ...], _claims] = _setting(
        "Claims that list scopes. All are combined.", DEFAULT_SCOPE_CLAIMS
    )
    client_claims: Annotated[tuple[str, ...], _claims] = _setting(
        "Claims that name the client. The first that a token has counts.",
        "client_id; azp; appid; sub",
    )
    scopes: Annotated[Mapping[str, frozenset[str]], _scope_table] = _setting(
        "Technical scopes that each functional scope grants.", DEFAULT_SCOPES
    )
    open_metadata: bool = _setting(
        "Serve `/metadata`, `/openapi.json` and discovery without a token.", "true"
    )
    mapping: Annotated[Path, _readable_file] = _setting(
        "The mapping file of the hospital system.",
        _REQUIRED,
        first="/etc/encounters/hospital.yaml",
    )
    redis_url: Annotated[str, _redis_url] = _setting(
        "The Redis that stores the pages of searches.",
        _REQUIRED,
        secret=True,
        first="/etc/encounters/redis_url",
    )
    seal_keys: Annotated[tuple[str, ...], _fernet_keys] = _setting(
        "Encryption keys of stored searches: the first encrypts, all decrypt.",
        _REQUIRED,
        secret=True,
        first="/etc/encounters/seal_keys",
    )
    page_idle_minutes: Annotated[int, _whole(1, 1440)] = _setting(
        "Lifetime of a stored page after its last use.", "30"
    )
    page_life_minutes: Annotated[int, _whole(1, 1440)] = _setting(
        "Maximum lifetime of a stored page.", "480"
    )
    max_body_bytes: Annotated[int, _whole(1024, 1048576)] = _setting(
        "Maximum size of a request body.", "65536"
    )
    request_seconds: Annotated[int, _whole(1, 300)] = _setting(
        "Maximum wait for a free thread, then 503.", "10"
    )
    audit: Annotated[str, _audit_target] = _setting(
        "Where audit events are written, one for each response.",
        AUDIT_OFF,
        first="/var/log/encounters/audit.jsonl",
    )
    audit_key: Annotated[str | None, _digest_key] = _setting(
        "Key of the digests in audit events. Required with `ENCOUNTERS_AUDIT`.",
        secret=True,
        first="/etc/encounters/audit_key",
    )
    audit_patients: Literal["digest", "clear"] = _setting(
        "Write patients into audit events as digests or in clear.", "digest"
    )
    audit_failure: Literal["refuse", "count"] = _setting(
        "If an event cannot be written: 503, or respond and count it.",
        "refuse",
    )
    audit_addresses: bool = _setting(
        "Write network addresses of clients into audit events.", "true"
    )
    client_requests_per_minute: Annotated[int | None, _rate] = _setting(
        "Maximum requests per minute of one client.", "60000"
    )
    address_requests_per_minute: Annotated[int | None, _rate] = _setting(
        "Maximum requests per minute of one address without a verified token.",
        "6000",
    )
    plain_http: Literal["refuse", "loopback"] = _setting(
        "Refuse requests without HTTPS, or accept those from this machine.",
        "refuse",
    )
    trusted_proxies: Annotated[tuple[Network, ...], _networks] = _setting(
        "Proxies whose `X-Forwarded-Proto` and `X-Forwarded-For` are trusted.",
        "",
        first="127.0.0.1",
    )
    unverified_tls: Annotated[frozenset[Link], _links] = _setting(
        "Connections that need no verified TLS.", ""
    )
    bind: Annotated[str, _address] = _setting(
        "The address that serves clients.", "127.0.0.1:8000", first="127.0.0.1:8000"
    )
    operations_bind: Annotated[str | None, _address] = _setting(
        "The address of `/live`, `/ready` and `/metrics`. Default: none.",
        first="127.0.0.1:9000",
    )
    explorer_bind: Annotated[str | None, _address] = _setting(
        "The address that serves the explorer. Default: no explorer."
    )
    explorer_url: Annotated[str | None, _web_url] = _setting(
        "Public address of the explorer, without a path. Required except on loopback."
    )
    explorer_client_id: Annotated[str | None, _word] = _setting(
        "Client id of the explorer, which requires it."
    )
    explorer_client_secret: Annotated[str | None, _word] = _setting(
        "Client secret of the explorer. Default: a public client.",
        secret=True,
    )
    explorer_scope: Annotated[str, _scope_names] = _setting(
        "Scopes that a login requests.",
        "openid PATIENT_GAM_SEARCH",
    )
    explorer_idle_minutes: Annotated[int, _whole(1, 1440)] = _setting(
        "Log a person out after this time without use.", "15"
    )
    explorer_reason: bool = _setting(
        "Require a reason from each person, for the audit.", "false"
    )
    explorer_export_rows: Annotated[int, _whole(0, 1_000_000)] = _setting(
        "Maximum rows of an export. 0: no exports.",
        "10000",
    )
    explorer_export_scope: Annotated[str | None, _word] = _setting(
        "Scope that an export requires. Default: none."
    )
    connection_lifetime_seconds: Annotated[int, _whole(5, 3600)] = _setting(
        "Maximum age of a connection to a source, Redis or the provider.",
        str(LIFETIME_SECONDS),
    )
    watch_seconds: Annotated[int, _whole(5, 3600)] = _setting(
        "Seconds between two checks for `/ready`.", "60"
    )
    workers: Annotated[int, _whole(1, 64)] = _setting(
        "Number of processes.", "2", first="2"
    )
    threads: Annotated[int, _whole(1, 128)] = _setting(
        "Threads of each process: more than a source has connections.",
        "16",
        first="16",
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "Minimum level of log lines.", "info"
    )
    tracing: bool = _setting(
        "Send spans (OpenTelemetry). Requires the extra `tracing`.", "false"
    )

    @property
    def audit_file(self) -> Path | None:
        """The file of audit events, None if they go elsewhere or nowhere."""
        return audit_file(self.audit)

    def allows_provider(self, url: str) -> bool:
        """Return whether an address that the provider publishes may be called."""
        is_waived = Link.PROVIDER in self.unverified_tls
        return _is_web_url(url) and (is_waived or not is_plain(url))

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Read every setting, or raise SettingsError with every fault at once."""
        reading = read_settings(environ)
        if reading.faults:
            raise SettingsError(reading.faults)
        return cls(**reading.values)


def _kind_of(hint: Any) -> Kind:
    """Return the kind that the type of a field names."""
    if hint is bool:
        return _flag
    if get_origin(hint) is Literal:
        return _one_of(*get_args(hint))
    kind: Kind = hint.__metadata__[0]
    return kind


_TYPES = get_type_hints(Settings, include_extras=True)
SETTINGS: tuple[Setting, ...] = tuple(
    Setting(item.name, _kind_of(_TYPES[item.name]), **item.metadata)
    for item in fields(Settings)
)


class SettingOrigin(StrEnum):
    """Where the text of a setting comes from."""

    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"
    NOWHERE = "not set"


@dataclass(frozen=True, slots=True)
class Entry:
    """What an environment contains for a setting; a fault never quotes its text."""

    setting: Setting
    origin: SettingOrigin
    text: str | None = field(default=None, repr=False)
    value: Any = field(default=None, repr=False)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """All settings of an environment: entries, valid values, and every fault."""

    entries: tuple[Entry, ...]
    values: dict[str, Any] = field(repr=False)
    faults: tuple[str, ...]


def read_settings(environ: Mapping[str, str]) -> Reading:
    """Read all settings. An unknown name of our prefix is a fault."""
    entries = tuple(_entry(setting, environ) for setting in SETTINGS)
    values = {e.setting.field: e.value for e in entries if not e.fault}
    faults = [e.fault for e in entries if e.fault]
    faults += _unknown_names(environ)
    conflicts = _conflicts(Settings(**_HARMLESS | values))
    faults += (f"{PREFIX}{name} {text}" for name, text in conflicts)
    return Reading(entries, values, tuple(faults))


_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT)|_PORT(_|$)")
"""Variables that Kubernetes adds for a Service whose name begins with "encounters"."""


def _unknown_names(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a fault for each variable of our prefix that is no setting."""
    names = [setting.name for setting in SETTINGS]
    names += [f"{setting.name}_FILE" for setting in SETTINGS if setting.secret]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in names:
            if similar := get_close_matches(name, names, n=1, cutoff=0.85):
                yield f"{name} is not a setting: did you mean {similar[0]}?"
            elif not _SERVICE_LINK.search(name):
                yield f"{name} is not a setting: `encounters settings` lists all."


def _entry(setting: Setting, environ: Mapping[str, str]) -> Entry:
    """Read a setting from its variable or the file that it names, else its default."""
    name = setting.name
    kind = setting.kind
    origin = SettingOrigin.ENVIRONMENT
    # Compose files write a variable that is not set as an empty one.
    text = environ.get(name, "").strip()
    path = environ.get(f"{name}_FILE", "").strip() if setting.secret else ""
    if text and path:
        fault = f"{name} and {name}_FILE are both set."
        return Entry(setting, origin, fault=fault)
    if path:
        origin = SettingOrigin.FILE
        try:
            text = Path(path).read_text(encoding="utf-8-sig").strip()
        except (OSError, ValueError):
            fault = f"{name}_FILE is not a readable file."
            return Entry(setting, origin, fault=fault)
    if not text and setting.default is None:
        missing = f"{name} is missing: {setting.sentence}" if setting.required else ""
        return Entry(setting, SettingOrigin.NOWHERE, fault=missing)
    if not text:
        text = setting.default or ""
        origin = SettingOrigin.DEFAULT
    try:
        return Entry(setting, origin, text=text, value=kind.read(text))
    except (ValueError, KeyError, OSError):
        fault = f"{name} cannot be read: expected {kind.takes} ({kind.name})."
        return Entry(setting, origin, fault=fault)


# An https address of this machine is also a harmless name, key or secret.
_HARMLESS = dict.fromkeys((s.field for s in SETTINGS), "https://localhost") | {
    "audit": AUDIT_OFF,
    "page_idle_minutes": 1,
    "page_life_minutes": 1440,
    "plain_http": "loopback",
    "unverified_tls": frozenset(Link),
    "operations_bind": None,
    "explorer_bind": None,
    "tracing": False,
}
"""What an invalid setting counts as, so that it conflicts with no other."""


def _conflicts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the faults of settings with one another: the name of one, and a text."""
    if settings.audit != AUDIT_OFF and settings.audit_key is None:
        yield "AUDIT_KEY", f"is missing: {PREFIX}AUDIT requires it."
    if settings.page_idle_minutes > settings.page_life_minutes:
        yield "PAGE_IDLE_MINUTES", f"is longer than {PREFIX}PAGE_LIFE_MINUTES."
    if settings.tracing and find_spec("opentelemetry.sdk") is None:
        text = "requires the extra 'tracing', which is not installed."
        yield "TRACING", f"{text} See docs/run/logs.md, Traces."
    refuses = settings.plain_http == "refuse"
    if refuses and settings.base_url.startswith("http://"):
        yield "BASE_URL", f"is plain HTTP, which {PREFIX}PLAIN_HTTP refuses."
    ports = {_port(settings.bind)}
    for name in ("operations_bind", "explorer_bind"):
        port = _port(getattr(settings, name))
        if port and port in ports:
            yield name.upper(), "has the port of another address: choose a free one."
        ports.add(port)
    yield from _provider_conflicts(settings)
    if settings.explorer_bind:
        yield from _explorer_conflicts(settings, settings.explorer_bind)
    yield from _exposed(settings)


def _port(bind: str | None) -> str | None:
    """Return the port, or the whole address of a socket."""
    return bind if bind is None or bind.startswith("unix:") else bind.split(":")[-1]


def _provider_conflicts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what is missing of the identity provider's settings."""
    client_id = settings.introspection_client_id
    url = settings.introspection_url
    if url and client_id is None:
        yield "INTROSPECTION_CLIENT_ID", "is missing: introspection requires it."
    if (url or client_id) and settings.introspection_client_secret is None:
        yield "INTROSPECTION_CLIENT_SECRET", "is missing: introspection requires it."
    if _reads_metadata(settings) and not _is_web_url(settings.issuer):
        text = f"is missing: {PREFIX}ISSUER is not an address that has metadata."
        yield "KEY_SET_URL", text


def _reads_metadata(settings: Settings) -> bool:
    """Return whether an address of the provider comes from the metadata of the issuer.

    `app.jwks.provider_addresses` decides the same way.
    """
    if settings.introspection_url:
        return False
    return not settings.key_set_url or settings.introspection_client_id is not None


def _is_web_url(text: str) -> bool:
    try:
        return bool(_web_url.read(text))
    except ValueError:
        return False


def _explorer_conflicts(settings: Settings, bind: str) -> Iterator[tuple[str, str]]:
    """Yield what the explorer lacks."""
    url = settings.explorer_url
    is_local = is_loopback(bind.rpartition(":")[0].strip("[]"))
    if url is None and not is_local:
        yield "EXPLORER_URL", f"is missing: {PREFIX}EXPLORER_BIND requires it."
    if url and (urlsplit(url).path.strip("/") or "?" in url):
        yield "EXPLORER_URL", "has a path: use only scheme, host and port."
    if url and is_plain(url):
        yield "EXPLORER_URL", "is plain HTTP: use https://."
    if settings.explorer_client_id is None:
        yield "EXPLORER_CLIENT_ID", f"is missing: {PREFIX}EXPLORER_BIND requires it."
    elif not _is_web_url(settings.issuer):
        text = f"requires the metadata of an https {PREFIX}ISSUER for logins."
        yield "EXPLORER_CLIENT_ID", text


def _exposed(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the addresses that cross a network without the TLS that they require."""
    exposed = []
    if is_exposed(settings.redis_url):
        exposed.append(("REDIS_URL", "rediss://", Link.REDIS))
    names = ["KEY_SET_URL", "INTROSPECTION_URL"]
    if _reads_metadata(settings) and _is_web_url(settings.issuer):
        names.append("ISSUER")
    for name in names:
        url = getattr(settings, name.lower())
        if url and is_plain(url):
            exposed.append((name, "https://", Link.PROVIDER))
    for name, scheme, link in exposed:
        if link not in settings.unverified_tls:
            waiver = f"use {scheme}, or set {PREFIX}UNVERIFIED_TLS={link}"
            yield name, f"is on another machine and has no TLS: {waiver}."
