"""The joined parts of a running service, as the views find them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import cast

from flask import current_app
from marshmallow import Schema

from adapters.contract import Adapter, ResourceType
from app.auth import Authenticator
from app.capabilities import Offer
from app.criteria import Context
from app.schemas.entries import Entries
from app.settings import Settings
from app.throttle import Throttle
from app.walks import Walks

EXTENSION = "encounters"


@dataclass(frozen=True, slots=True)
class Service:
    """What answering a request needs; made once, by `create_app`.

    `offered_since` is the day on which the deployment's offer last changed.
    """

    settings: Settings
    adapter: Adapter
    offer: Offer
    context: Context
    authenticator: Authenticator
    throttle: Throttle
    walks: Walks
    schemas: Mapping[ResourceType, Schema]
    entries: Mapping[ResourceType, Entries]
    title: str
    offered_since: date


def service() -> Service:
    """Return the service of the application that answers this request."""
    return cast("Service", current_app.extensions[EXTENSION])
