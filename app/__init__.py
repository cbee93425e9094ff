"""The FHIR side of the service: `create_app` joins its parts."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from adapters.contract import Adapter
    from adapters.mapping.model import SourceMapping
    from app.config import Settings

PATH = "/fhir/v3"
"""The version of the interface is in the path (spec 9)."""


def create_app(
    settings: "Settings | None" = None,
    adapter: "Adapter | None" = None,
    *,
    mapping: "SourceMapping | None" = None,
) -> "Flask":
    """Return the service.

    Without `settings` they are read from the environment, without `mapping` its file is
    read; without `adapter` the mapping names the hospital system. Raises SettingsError,
    MappingError.
    """
    # Imported here: every command imports this package, and few of them serve requests.
    from flask import Flask

    from adapters import open_adapter
    from adapters.mapping.load import load_mapping
    from app.audit import open_trail
    from app.config import Settings
    from app.middleware import register_errors, register_transport
    from app.observability import (
        open_tracing,
        register_metrics,
        register_request_log,
        register_tracing,
    )
    from app.service import EXTENSION, Service
    from app.tls import require_verified_tls
    from app.views import register_views

    settings = settings or Settings.from_environ(os.environ)
    mapping = mapping or load_mapping(settings.mapping, os.environ)
    adapter = adapter or open_adapter(mapping)
    require_verified_tls(settings, mapping)

    # The package's name: the log distinguishes Flask's own logger from ours by it.
    app = Flask("app", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.extensions[EXTENSION] = Service.open(settings, mapping, adapter)

    # Flask calls what follows a view in reverse order. The audit trail comes first then:
    # a response that it puts in place of another needs the headers of every response.
    register_request_log(app)
    if settings.tracing:
        open_tracing()
        register_tracing(app)
    register_metrics(app, {n: s.connections for n, s in mapping.sources.items()})
    register_errors(app)
    register_transport(app, settings)
    if trail := open_trail(settings, mapping=adapter.fingerprint, site=mapping.name):
        app.after_request(trail.record)

    register_views(app)
    return app
