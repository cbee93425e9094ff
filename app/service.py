"""The parts of a running service that answer requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Self

from adapters.contract import Adapter, ResourceType
from adapters.mapping.model import SourceMapping
from adapters.mapping.profile import profile_of
from app.auth import Authenticator
from app.config import Settings
from app.crypto import derived_key
from app.fhir.resources import SCHEMAS, RecordSchema
from app.middleware import RequestLimit, Transport
from app.offer import Offer, compute_offer
from app.paging import PageStore, SearchSessions
from app.rate_limit import Throttle
from app.redis_client import connect
from app.search.parser import context_of
from app.search.types import Context
from app.server import WAITING_PER_THREAD

EXTENSION = "encounters"


@dataclass(frozen=True, slots=True)
class Service:
    """What the views need to answer a request; built once, by `create_app`.

    `reference_key` makes the references of invalid rows; `offered_since` is the day on which
    the mapping file last changed.
    """

    settings: Settings
    adapter: Adapter
    offer: Offer
    context: Context
    authenticator: Authenticator
    throttle: Throttle
    sessions: SearchSessions
    schemas: Mapping[ResourceType, RecordSchema]
    limit: RequestLimit
    transport: Transport
    reference_key: bytes
    title: str
    offered_since: date

    @classmethod
    def open(cls, settings: Settings, mapping: SourceMapping, adapter: Adapter) -> Self:
        """Build the service of a deployment."""
        offer = compute_offer(profile_of(mapping), adapter.capabilities)
        context = context_of(settings.base_url, mapping.constants, mapping.time_zone)
        client = connect(settings.redis_url)
        store = PageStore(
            client,
            settings.seal_keys,
            idle=60 * settings.page_idle_minutes,
            life=60 * settings.page_life_minutes,
        )
        throttle = Throttle(
            client,
            clients=settings.client_requests_per_minute,
            addresses=settings.address_requests_per_minute,
            key=derived_key(settings.seal_keys[0], b"throttle"),
        )
        return cls(
            settings=settings,
            adapter=adapter,
            offer=offer,
            context=context,
            authenticator=Authenticator(settings),
            throttle=throttle,
            sessions=SearchSessions(
                adapter, adapter.fingerprint, offer, store, context
            ),
            schemas={
                kind: schema(mapping.constants) for kind, schema in SCHEMAS.items()
            },
            limit=RequestLimit(
                running=settings.threads,
                waiting=settings.threads * WAITING_PER_THREAD,
                seconds=settings.request_seconds,
            ),
            transport=Transport(
                settings.trusted_proxies, settings.plain_http == "loopback"
            ),
            reference_key=derived_key(settings.seal_keys[0], b"reference"),
            title=mapping.name,
            offered_since=mapping.changed,
        )
