"""The FHIR side of the service: `create_app` joins its parts."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from adapters.contract import Adapter
    from adapters.mapping.model import SourceMapping
    from app.config import Settings


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
    from app.error_responses import handle_error
    from app.middleware import Requests
    from app.observability import count_connections, open_tracing
    from app.service import EXTENSION, Service
    from app.tls import require_verified_tls
    from app.views import register_views

    settings = settings or Settings.from_environ(os.environ)
    mapping = mapping or load_mapping(settings.mapping, os.environ)
    lifetime = settings.connection_lifetime_seconds
    adapter = adapter or open_adapter(mapping.with_lifetime(lifetime))
    require_verified_tls(settings, mapping)
    if settings.tracing:
        open_tracing()
    count_connections({n: s.connections for n, s in mapping.sources.items()})

    # The package's name: the log distinguishes Flask's own logger from ours by it.
    app = Flask("app", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    service = Service.open(settings, mapping, adapter)
    app.extensions[EXTENSION] = service
    app.register_error_handler(Exception, handle_error)
    register_views(app)
    trail = open_trail(settings, mapping=adapter.fingerprint, site=mapping.name)
    app.wsgi_app = Requests(  # type: ignore[method-assign] # as Flask documents it
        app.wsgi_app,
        service.transport,
        limit=service.limit,
        trail=trail,
        is_traced=settings.tracing,
    )
    return app
