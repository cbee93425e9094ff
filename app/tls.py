"""Connections to hospital systems have verified TLS, or the deployment allows others."""

from collections.abc import Iterator

from adapters.mapping.model import SourceMapping
from adapters.transport import WITHOUT_TLS, Exposed, exposed_sources
from app.config import PREFIX, Link, Settings, SettingsError

_LINKS = {"sql": Link.DATABASE, "http": Link.HTTP}


def require_verified_tls(settings: Settings, mapping: SourceMapping) -> None:
    """Raise SettingsError where a source lacks TLS that the settings do not waive."""
    refused = refused_sources(settings, mapping)
    faults = tuple(f"{e.mark}: {WITHOUT_TLS}: {remedy_of(e)}" for e in refused)
    if faults:
        raise SettingsError(faults)


def refused_sources(settings: Settings, mapping: SourceMapping) -> Iterator[Exposed]:
    """Yield the connections without verified TLS that the settings do not allow."""
    for exposed in exposed_sources(mapping):
        if _LINKS[exposed.kind] not in settings.unverified_tls:
            yield exposed


def remedy_of(exposed: Exposed) -> str:
    """Return what to do about a connection."""
    return f"{exposed.remedy}, or set {PREFIX}UNVERIFIED_TLS={_LINKS[exposed.kind]}"
