"""The settings of a deployment, read once from environment variables.

`SETTINGS` says what each one is. A secret can also be given as NAME_FILE, the path of
a file that holds it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeAlias

from app.setting_choices import AuditFailure, AuditPatients, LogLevel, PlainHttp
from app.setting_kinds import PREFIX, Setting
from app.setting_readers import AUDIT_OFF, Network
from app.setting_table import SETTINGS
from app.setting_values import Given, look_up

__all__ = [
    "SETTINGS",
    "AuditFailure",
    "AuditPatients",
    "LogLevel",
    "PlainHttp",
    "Setting",
    "Settings",
    "SettingsError",
]


_TRACING = "opentelemetry.exporter.otlp.proto.http"


class SettingsError(Exception):
    """Settings that cannot be started with: every fault, a sentence each."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked settings of one deployment; `SETTINGS` says what each is for."""

    base_url: str
    issuer: str
    audience: str
    key_set_url: str | None
    key_set_seconds: int
    key_set_retry_seconds: int
    introspection_url: str | None
    introspection_client_id: str | None
    introspection_client_secret: str | None = field(repr=False)
    identity_timeout_seconds: float
    leeway_seconds: int
    scopes: Mapping[str, frozenset[str]]
    open_metadata: bool
    mapping: Path
    redis_url: str = field(repr=False)
    seal_keys: tuple[str, ...] = field(repr=False)
    page_idle_minutes: int
    page_life_minutes: int
    max_body_bytes: int
    request_seconds: int
    audit: str
    audit_key: str | None = field(repr=False)
    audit_patients: AuditPatients
    audit_failure: AuditFailure
    audit_addresses: bool
    client_requests_per_minute: int | None
    address_requests_per_minute: int | None
    plain_http: PlainHttp
    trusted_proxies: tuple[Network, ...]
    bind: str
    operations_bind: str | None
    watch_seconds: int
    workers: int
    threads: int
    log_level: LogLevel
    tracing: bool

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Read every setting, or raise SettingsError with every fault at once."""
        given = [look_up(setting, environ) for setting in SETTINGS]
        if faults := faults_of(given):
            raise SettingsError(faults)
        return cls(**_values(given))


_Values: TypeAlias = dict[str, Any]


def faults_of(given: Iterable[Given]) -> tuple[str, ...]:
    """Return what is wrong with settings, each by itself and with one another."""
    looked_up = tuple(given)
    values = _values(looked_up)
    apart = [each.fault for each in looked_up if each.fault]
    return (*apart, *(text for check in _CHECKS for text in check(values)))


def _values(given: Iterable[Given]) -> _Values:
    return {each.setting.field: each.value for each in given if not each.fault}


def _check_key_source(values: _Values) -> list[str]:
    if values.get("key_set_url", "?") or values.get("introspection_url", "?"):
        return []
    return [
        f"{PREFIX}KEY_SET_URL is missing: it can be left out only where "
        f"{PREFIX}INTROSPECTION_URL is given."
    ]


def _check_introspection(values: _Values) -> list[str]:
    needed = ("introspection_client_id", "introspection_client_secret")
    wanted = values.get("introspection_url", "?")
    return [
        f"{PREFIX}{name.upper()} is missing: {PREFIX}INTROSPECTION_URL needs it."
        for name in needed
        if wanted and values.get(name, "?") is None
    ]


def _check_page_life(values: _Values) -> list[str]:
    if values.get("page_idle_minutes", 0) <= values.get("page_life_minutes", 1440):
        return []
    return [f"{PREFIX}PAGE_IDLE_MINUTES is longer than {PREFIX}PAGE_LIFE_MINUTES."]


def _check_audit(values: _Values) -> list[str]:
    wanted = values.get("audit", AUDIT_OFF) != AUDIT_OFF
    if not wanted or values.get("audit_key", "?"):
        return []
    return [f"{PREFIX}AUDIT_KEY is missing: {PREFIX}AUDIT needs it."]


def _check_addresses(values: _Values) -> list[str]:
    if values.get("operations_bind") != values.get("bind", "?"):
        return []
    return [
        f"{PREFIX}OPERATIONS_BIND needs a port of its own, not that of {PREFIX}BIND."
    ]


def _check_tracing(values: _Values) -> list[str]:
    if not values.get("tracing") or _has_tracing():
        return []
    return [
        f"{PREFIX}TRACING needs the extra 'tracing', which is not installed: see "
        "docs/operators.md."
    ]


def _has_tracing() -> bool:
    try:
        return find_spec(_TRACING) is not None
    except ModuleNotFoundError:
        return False


def _check_plain_http(values: _Values) -> list[str]:
    refused = values.get("plain_http") is PlainHttp.REFUSE
    if not (refused and values.get("base_url", "").startswith("http://")):
        return []
    return [f"{PREFIX}BASE_URL is plain HTTP, which {PREFIX}PLAIN_HTTP refuses."]


_CHECKS: tuple[Callable[[_Values], list[str]], ...] = (
    _check_key_source,
    _check_introspection,
    _check_page_life,
    _check_audit,
    _check_addresses,
    _check_tracing,
    _check_plain_http,
)
