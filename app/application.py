"""The parts of the service, joined."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import redis
from flask import Flask, Request, Response
from flask.sessions import NullSession, SessionInterface
from werkzeug.routing import MapAdapter

from adapters import open_adapter
from adapters.contract import Adapter
from adapters.mapping.load import load_mapping
from adapters.mapping.model import SourceMapping
from adapters.mapping.profile import profile_of
from app.auth import Authenticator
from app.capabilities import compute_offer
from app.operations.audit import open_trail, register_audit
from app.operations.logs import register_request_log
from app.operations.metrics import SourceCounts, register_metrics
from app.outcomes import register_errors
from app.paging import PageStore
from app.parameters import context_of
from app.schemas.resources import resource_entries, resource_schemas
from app.service import EXTENSION, Service
from app.settings import Settings
from app.stamps import derived_key
from app.throttle import Throttle
from app.timed_redis import connect
from app.transport import register_transport
from app.views import bundle, encounter, metadata, organization, patient
from app.views.addresses import Segment
from app.walks import Walks

_NO_HOST = "localhost"
"""Where routes would lead that redirect: there are none."""

PATH = "/fhir/v3"
"""The version of the interface is in the path (spec 9)."""


class _NoSessions(SessionInterface):
    """Nobody has a session: each request brings its token."""

    def __init__(self) -> None:
        self._none = NullSession()

    def open_session(self, *_: object) -> NullSession:
        """Return the session of everybody, which keeps nothing."""
        return self._none


class _Application(Flask):
    """Flask without what each request would pay for and none has: a tenth of a read.

    No function is a coroutine, nobody has a session, no route depends on a host, and what
    comes before and after a view comes before and after all of them.
    """

    session_interface = _NoSessions()

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Bind the routes to a request, by its path and method alone."""
        if request is None:
            return None
        return MapAdapter(
            self.url_map,
            _NO_HOST,
            script_name="/",
            subdomain="",
            url_scheme="https",
            path_info=request.path,
            default_method=request.method,
        )

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function."""
        return func

    def preprocess_request(self) -> Any:
        """Call what comes before a view, until one of these answers in its place."""
        for before in self.before_request_funcs.get(None, ()):
            if (answer := before()) is not None:
                return answer
        return None

    def process_response(self, response: Response) -> Response:
        """Call what comes after a view, the last registered first."""
        for after in reversed(self.after_request_funcs.get(None, ())):
            response = after(response)
        return response

    def do_teardown_request(self, exc: BaseException | None = None) -> None:
        """Call what ends a request, the last registered first."""
        for end in reversed(self.teardown_request_funcs.get(None, ())):
            end(exc)


def joined(settings: Settings, adapter: Adapter | None) -> Flask:
    """Return the service as `create_app` does, with settings that have been read."""
    mapping = load_mapping(settings.mapping, os.environ)
    # By the name of the package: Flask's own logger is told from ours by it.
    app = _Application("app", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.url_map.merge_slashes = False
    # What `<id>` in a route stands for.
    app.url_map.converters["default"] = Segment
    adapter = adapter or open_adapter(mapping, _counts(mapping))
    app.extensions[EXTENSION] = _join(settings, mapping, adapter)
    register_request_log(app)
    if settings.tracing:
        _trace(app)
    register_metrics(app)
    register_errors(app)
    register_transport(app, settings)
    # Last: who registers first has the last word, and an answer that the trail puts in
    # place of another needs the headers of every answer too.
    if trail := open_trail(settings, mapping=adapter.fingerprint, site=mapping.name):
        register_audit(app, trail)
    for view in (encounter, patient, organization, bundle, metadata):
        app.register_blueprint(view.blueprint, url_prefix=PATH)
    return app


def _counts(mapping: SourceMapping) -> SourceCounts:
    return SourceCounts({n: s.connections for n, s in mapping.sources.items()})


def _trace(app: Flask) -> None:
    # Here: its packages are an extra.
    from app.operations.tracing import open_tracing, register_tracing

    register_tracing(app, open_tracing())


def _join(settings: Settings, mapping: SourceMapping, adapter: Adapter) -> Service:
    profile = profile_of(mapping)
    offer = compute_offer(profile, adapter.capabilities)
    context = context_of(settings.base_url, mapping.constants, mapping.time_zone)
    changed = settings.mapping.stat().st_mtime
    client = connect(settings.redis_url)
    schemas = resource_schemas(mapping.constants)
    return Service(
        settings=settings,
        adapter=adapter,
        offer=offer,
        context=context,
        authenticator=Authenticator.from_settings(settings),
        throttle=_throttle(settings, client),
        walks=Walks(adapter, offer, _page_store(settings, client), context),
        schemas=schemas,
        entries=resource_entries(schemas, settings.base_url),
        title=mapping.name,
        offered_since=datetime.fromtimestamp(changed, UTC).date(),
    )


def _throttle(settings: Settings, client: redis.Redis) -> Throttle:
    return Throttle(
        client,
        clients=settings.client_requests_per_minute,
        addresses=settings.address_requests_per_minute,
        key=derived_key(settings.seal_keys[0], b"throttle"),
    )


def _page_store(settings: Settings, client: redis.Redis) -> PageStore:
    return PageStore(
        client,
        settings.seal_keys,
        idle=60 * settings.page_idle_minutes,
        life=60 * settings.page_life_minutes,
        clock=time.time,
    )
